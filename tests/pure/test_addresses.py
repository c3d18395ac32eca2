"""Which addresses a crawl keeps away from, however they are written."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.crawl.scope import host_of, is_private, is_private_host, is_proxied, keeps_out, may_be_private, scope_of
from webarcfs.archive.config.settings import CrawlSettings, Publication
from webarcfs.archive.model.urls import domain_of

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("8.8.8.8", False), ("93.184.216.34", False), ("2606:2800:220:1:248:1893:25c8:1946", False),
        ("127.0.0.1", True), ("127.9.9.9", True), ("10.0.0.1", True), ("172.16.0.1", True), ("172.32.0.1", False),
        ("192.168.1.1", True), ("169.254.169.254", True), ("100.64.0.1", True), ("0.0.0.0", True),
        ("224.0.0.1", True), ("239.255.255.250", True), ("255.255.255.255", True), ("240.0.0.1", True),
        ("192.0.2.1", True), ("198.18.0.1", True),
        ("::1", True), ("::", True), ("fe80::1", True), ("fe80::1%eth0", True), ("fc00::1", True), ("fd12::1", True),
        ("fec0::1", True),
        ("ff02::1", True), ("2001:db8::1", True),
        # IPv4 addresses within those of IPv6.
        ("::ffff:127.0.0.1", True), ("::ffff:10.1.2.3", True), ("::127.0.0.1", True), ("64:ff9b::7f00:1", True),
        ("64:ff9b::808:808", False), ("2002:7f00:1::", True), ("2002:a00:1::1", True), ("64:ff9b:1::a00:1", True),
    ],
)  # fmt: skip
def test_addresses(address: str, private: bool) -> None:
    assert is_private(address) is private


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("127.0.0.1", True), ("127.1", True), ("2130706433", True), ("0x7f000001", True), ("0177.0.0.1", True),
        ("0x7f.1", True), ("134744072", False), ("8.8.8.8", False), ("::1", True), ("[::1]", True), ("0", True),
        ("localhost", True), ("LOCALHOST", True), ("localhost.", True), ("a.localhost", True), ("mylocalhost", None),
        ("example.org", None), ("intranet", None), ("localhost.example.org", None), ("", None),
    ],
)  # fmt: skip
def test_what_a_name_tells(host: str, private: bool | None) -> None:
    assert is_private_host(host) is private


@given(st.ip_addresses(v=4))
def test_an_address_is_the_same_however_it_is_written(address: ipaddress.IPv4Address) -> None:
    number, parts = int(address), str(address).split(".")
    spellings = [
        str(number), hex(number), oct(number).replace("0o", "0"), ".".join(hex(int(part)) for part in parts),
        f"{parts[0]}.{number & 0xFFFFFF}", f"{parts[0]}.{parts[1]}.{number & 0xFFFF}",
    ]  # fmt: skip
    private = is_private(str(address))
    assert {is_private_host(each) for each in [*spellings, str(address)]} == {private}
    assert is_private(f"::ffff:{address}") is private


@given(st.text(max_size=40))
def test_any_text_is_a_host_or_none(text: str) -> None:
    assert is_private_host(text) in (True, False, None)


@pytest.mark.parametrize(
    ("domain", "host"),
    [("e.org", "e.org"), ("e.org:8080", "e.org"), ("[::1]", "::1"), ("[::1]:80", "::1"), ("127.0.0.1:1", "127.0.0.1")],
)
def test_the_host_of_a_domain(domain: str, host: str) -> None:
    assert host_of(domain) == host


def _may(*urls: str, name: str = "news", **crawl: bool) -> bool:
    return may_be_private(Publication(name=name, urls=urls, crawl=CrawlSettings(**crawl)))  # type: ignore[arg-type]


def test_a_start_url_on_a_private_address_lets_the_crawl_ask_them() -> None:
    assert not _may("http://e.org/", "http://intranet/")
    assert _may("http://e.org/", "http://127.0.0.1:8080/")
    assert _may("http://localhost/") and _may("http://[::1]/")
    assert _may("http://e.org/", private_addresses=True)
    assert not _may()


def test_the_url_of_a_saved_page_permits_no_private_address_by_itself() -> None:
    for url in ("http://127.0.0.1:8080/", "http://localhost/", "http://[::1]/", "http://169.254.169.254/"):
        assert not _may(url, name="saved-e.org")
        assert _may(url, name="saved-e.org", private_addresses=True)
        saved, permitted = (
            Publication(name="saved-e.org", urls=(url,), crawl=CrawlSettings(private_addresses=is_permitted))
            for is_permitted in (False, True)
        )
        assert keeps_out(scope_of(saved, None), domain_of(url))
        assert not keeps_out(scope_of(permitted, None), domain_of(url))


@pytest.mark.parametrize(
    ("arguments", "environment", "proxied"),
    [
        ((), {}, False),
        (("-e", "use_proxy=on", "-e", "http_proxy=http://p:1"), {}, True),
        (("--execute=https_proxy = http://p:1",), {}, True),
        (("-e", "HTTP-Proxy=p:1"), {}, True),
        (("-e", "httpsproxy=p:1"), {}, True),
        (("-e", "use_proxy=off"), {}, False),
        ((), {"http_proxy": "http://p:1"}, True),
        ((), {"http_proxy": ""}, False),
        (("--no-proxy",), {"https_proxy": "http://p:1"}, False),
        (("--no-check-certificate",), {}, False),
    ],
)
def test_a_proxy_looks_names_up(arguments: tuple[str, ...], environment: dict[str, str], proxied: bool) -> None:
    assert is_proxied(arguments, environment) is proxied


def test_the_setting_is_a_proxy_unless_wget_is_told_otherwise() -> None:
    assert is_proxied((), {}, "http://p:1")
    assert not is_proxied(("--no-proxy",), {}, "http://p:1")
