"""Reports of what crawls of real sites miss: parts that browsers load (finding Q)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.messy_sites import PIXEL, Case, MessyCrawl, check, crawl_cases
from tests.support.site import Site
from webarcfs.archive.config import directory

CASES = (
    Case(
        name="plain",
        finding="Q",
        serves={"/": "<img src=/x.png>", "/x.png": PIXEL},
        asked=["/x.png"],
        bodies={"/x.png": PIXEL},
    ),
)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessyCrawl]:
    """One crawl of all cases."""
    archive = directory.create(tmp_path_factory.mktemp("real") / "archive")
    with Site() as site:
        yield crawl_cases(archive, site, CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(crawl: MessyCrawl, case: Case) -> None:
    check(case, crawl)
