"""What a record says of the fetching program holds no secret of the settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.catalogue.recording import how, without_secrets
from webarcfs.archive.config.settings import CrawlSettings, Publication

pytestmark = pytest.mark.pure

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("given_args", "shown"),
    [
        (["--tries=3", "--no-hsts", "-4", "--timeout", "30"], ["--tries=3", "--no-hsts", "-4", "--timeout", "30"]),
        ([f"--header=Authorization: Bearer {SECRET}"], ["--header=***"]),
        ([f"--head=Cookie: {SECRET}"], ["--head=***"]),
        (["--header", f"Cookie: {SECRET}"], ["--header", "***"]),
        (["--password", "123456"], ["--password", "***"]),
        (
            ["--http-pass=123456", "--user=1", "--ftp-password=9"],
            ["--http-pass=***", "--user=***", "--ftp-password=***"],
        ),
        (["-e", f"http_proxy=http://a:{SECRET}@proxy/"], ["-e", "***"]),
        ([f"-ehttp_proxy=http://a:{SECRET}@proxy/"], ["-e***"]),
        ([f"--execute=https-proxy=http://a:{SECRET}@proxy/"], ["--execute=***"]),
        ([f"--post-data=password={SECRET}", f"--body-data={SECRET}"], ["--post-data=***", "--body-data=***"]),
        ([f"http://a:{SECRET}@e.org/"], ["***"]),
        (["--user-agent=me"], ["--user-agent=***"]),
    ],
)
def test_values_that_may_be_secret_are_not_shown(given_args: list[str], shown: list[str]) -> None:
    assert list(without_secrets(given_args)) == shown


def test_no_address_of_the_own_network_is_shown() -> None:
    crawl = CrawlSettings(bind="10.1.2.3", proxy="http://proxy.intranet:3128")
    shown = how(Publication(name="p", urls=("http://e.org/",), crawl=crawl), 1)[19]
    assert "--bind-address=***" in shown and "10.1.2.3" not in shown and "intranet" not in shown


@given(st.sampled_from(["--header=", "--password=", "--http-passwd=", "-e", "-U", "--x=", "--proxy-pass=", ""]))
def test_no_spelling_shows_the_secret(option: str) -> None:
    publication = Publication(
        name="p", urls=("http://e.org/",), crawl=CrawlSettings(wget_args=(f"{option}{SECRET}", SECRET))
    )
    assert SECRET not in how(publication, 1)[19]
