"""What people and programs see changes on purpose only: tests/golden/ has it byte for byte."""

from __future__ import annotations

import pytest

from tests.support.surfaces import GOLDEN, SURFACES, text_of

pytestmark = pytest.mark.mount


@pytest.mark.parametrize("name", SURFACES)
def test_a_surface_is_as_it_was(name: str) -> None:
    """If this fails and the change is meant: `python -m tests.support.surfaces`, and look at the diff."""
    assert text_of(name).splitlines() == (GOLDEN / name).read_text("utf-8").splitlines()


def test_there_are_no_others() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(SURFACES)
