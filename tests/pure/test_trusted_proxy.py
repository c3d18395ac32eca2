"""Whose name is believed: a table of requests (BT-sec-2)."""

from __future__ import annotations

import pytest

from agent.service.agent_status import disagreements
from webarcfs.archive.config.settings import ReadersSettings
from webarcfs.archive.config.settings_files import parse
from webarcfs.archive.model.errors import SettingsError
from webarcfs.room.visit import reader_of

pytestmark = pytest.mark.pure

_SETTINGS = ReadersSettings(header="X-Reader", proxies=("127.0.0.1/32", "10.1.0.0/16", "::1/128"))


@pytest.mark.parametrize(
    ("peer", "headers", "name"),
    [
        ("127.0.0.1", {"x-reader": "anna"}, "anna"),
        ("10.1.2.3", {"X-READER": " anna "}, "anna"),
        ("::1", {"X-Reader": "\u4f8b"}, "\u4f8b"),
        ("::ffff:127.0.0.1", {"X-Reader": "anna"}, "anna"),
        ("10.2.0.1", {"X-Reader": "anna"}, ""),
        ("192.0.2.1", {"X-Reader": "anna"}, ""),
        ("", {"X-Reader": "anna"}, ""),
        ("nonsense", {"X-Reader": "anna"}, ""),
        ("127.0.0.1", {"X-Other": "anna"}, ""),
        ("127.0.0.1", {"X-Reader": "anna", "x-reader": "bert"}, ""),
        ("127.0.0.1", {"X-Reader": "anna, bert"}, ""),
        ("127.0.0.1", {"X-Reader": "an\x00na"}, ""),
        ("127.0.0.1", {"X-Reader": "a" * 201}, ""),
        ("127.0.0.1", {}, ""),
    ],
)
def test_the_reader_that_a_proxy_names(peer: str, headers: dict[str, str], name: str) -> None:
    assert reader_of(_SETTINGS, peer, headers).name == name
    assert reader_of(ReadersSettings(), peer, headers).name == ""


def test_whoever_may_open_the_socket_is_trusted_only_where_the_settings_say_so() -> None:
    assert reader_of(_SETTINGS, "unix", {"X-Reader": "anna"}).name == ""
    by_socket = ReadersSettings(header="X-Reader", proxies=("unix",))
    assert reader_of(by_socket, "unix", {"X-Reader": "anna"}).name == "anna"
    assert reader_of(by_socket, "127.0.0.1", {"X-Reader": "anna"}).name == ""
    assert parse("[readers]\nheader = 'X-Reader'\nproxies = ['unix']\n", "x").readers == by_socket


def test_the_settings_are_checked() -> None:
    said = parse("[readers]\nheader = 'X-Reader'\nproxies = ['127.0.0.1', '10.1.0.0/16', '::1']\n", "x")
    assert said.readers == _SETTINGS
    for wrong in ("proxies = ['proxy.example']", "proxies = ['10.1.2.3/8']", "proxies = [7]", "names = 'x'"):
        with pytest.raises(SettingsError):
            parse(f"[readers]\n{wrong}\n", "x")


def test_publications_of_one_host_that_disagree_are_told() -> None:
    """R10."""
    text = "[[publication]]\nname = '{}'\nurls = ['http://e.org/{}']\n{}\n"
    same = text.format("a", "", "") + text.format("b", "x", "")
    assert disagreements(parse(same, "x")) == []
    by_hand = "release = 'by-hand'\nclosed_for = '1 year'"
    (found,) = disagreements(parse(same + text.format("c", "", by_hand), "x"))
    rules = "a (automatic), b (automatic) and c (by-hand, closed_for 1 year)"
    assert str(found).startswith(f"e.org: {rules} differ in release or closed_for; readers see a page as soon as any")
    assert [[known.name for known in found.others(name)] for name in "acx"] == [["c"], ["a", "b"], []]
    assert disagreements(parse(same + text.format("c", "", f"{by_hand}\nretired = true"), "x")) == []
