"""HTML Tidy as a process: each defect that seed 2 names has a page; Tidy that hangs, dies, is not there (BT-xhtml)."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent.steps import converting
from agent.steps.converting import Converter, Tidied, Tidy
from webarcfs.archive.model.errors import SettingsError, UsageError, WebarcError
from webarcfs.content import visible_lines

pytestmark = pytest.mark.store

_HEAD = "<!DOCTYPE html><html><head><meta charset='utf-8'><title>T</title></head><body>"
#: Defect → page, a part of what Tidy says, and a part of the XHTML.
_DEFECTS = {
    "special characters": (f"{_HEAD}<p>Öl &amp; Größe &euro; &nbsp;</p>", "", "&#160;"),
    "empty elements that are not closed": (f"{_HEAD}<p>a<br>b<hr><img src='a.png' alt='a'></p>", "", "<br />"),
    "unclosed tags": (f"{_HEAD}<p><b>bold<p>next", "missing </b>", "</b>"),
    "missing tags": (f"{_HEAD}<table><td>cell</table>", "", "<tr>"),
    "missing DOCTYPE": (
        "<html><head><title>T</title></head><body><p>x</p></body></html>",
        "missing <!DOCTYPE>",
        "<p>x",
    ),
    "meta in body": (f"{_HEAD}<meta name='a' content='b'><p>x</p>", "", "<p>x"),
    "unexpected end tag": (f"{_HEAD}<p>x</p></div>", "unexpected </div>", "<p>x"),
    "unescaped & in a query": (f'{_HEAD}<a href="a?b=1&c=2">x</a>', "unescaped &", "b=1&amp;c=2"),
    "empty elements stay": (f"{_HEAD}<p>x<i class='icon'></i></p>", "", '<i class="icon"></i>'),
    "blank in a file name": (f'{_HEAD}<a href="annual report.html">x</a>', "URI", "annual%20report.html"),
    "a missing opening form": (f"{_HEAD}<p>x</p></form>", "</form>", "<p>x"),
    "attributes without quotes": (f"{_HEAD}<table border=1 width=90%><tr><td>x</table>", "", 'border="1"'),
    "crossed tags": (f"{_HEAD}<p><b><i>x</b></i></p>", "", "x"),
    "custom elements": (f"{_HEAD}<my-card>x</my-card>", "", "x"),
}


def _converted(
    tmp_path: Path, pages: list[bytes | None], how: Converter | None = None, patience: float = 20.0
) -> list[Tidied]:
    with Tidy[int](how or converting.converter(tmp_path / "none"), tmp_path / "scratch", patience) as running:
        found = list(running.converted(enumerate(pages)))
    assert [number for number, _ in found] == list(range(len(pages)))
    assert not (tmp_path / "scratch").exists()
    return [each for _, each in found]


def test_each_defect_is_mended(tmp_path: Path) -> None:
    pages = [page.encode() for page, _, _ in _DEFECTS.values()]
    for name, result in zip(_DEFECTS, _converted(tmp_path, list(pages)), strict=True):
        page, said, part = _DEFECTS[name]
        assert not result.failed, (name, result)
        ElementTree.fromstring(result.xhtml)
        assert part in result.xhtml.decode().replace("'", '"'), (name, result.xhtml.decode())
        assert any(said in each.text for each in result.messages) or not said, (name, result.messages)
        assert all(each.line >= 1 and each.column >= 1 and each.level == "warning" for each in result.messages)
        before, after = (
            " ".join(" ".join(visible_lines.lines(each)).split()) for each in (page.encode(), result.xhtml)
        )
        assert before == after, name  # BT-conv-2: what people read stays


def test_tags_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    bad, good = _converted(tmp_path, [f"{_HEAD}<blah>x</blah>".encode(), f"{_HEAD}<p>x</p>".encode()])
    assert bad.failed == "<blah> is not recognized!" and not bad.xhtml and bad.errors == 1
    assert [(each.line, each.level) for each in bad.messages if each.level == "error"] == [(1, "error")]
    assert good.xhtml and not good.failed


def test_settings_and_languages_of_the_machine_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _converted(tmp_path, [f"{_HEAD}<p>x</div>".encode()])
    (tmp_path / ".tidyrc").write_text("uppercase-tags: yes\nindent: yes\n")
    for name, value in (("HOME", tmp_path), ("HTML_TIDY", tmp_path / ".tidyrc"), ("LANG", "de_DE.UTF-8")):
        monkeypatch.setenv(name, str(value))
    assert _converted(tmp_path, [f"{_HEAD}<p>x</div>".encode()]) == plain and plain[0].warnings == 1


def test_many_warnings_are_counted_and_few_kept(tmp_path: Path) -> None:
    (found,) = _converted(tmp_path, [f"{_HEAD}{'</div>' * 900}<blah>".encode()])
    assert found.warnings >= 900 and len(found.messages) == converting.MOST_MESSAGES and found.failed
    assert found.messages[0].level == "error" or any(each.level == "error" for each in found.messages)


def test_settings_are_checked_and_change_the_id(tmp_path: Path) -> None:
    own = tmp_path / "tidy.conf"
    plain = converting.converter(own)
    own.write_text("wrap: 40\n")
    assert converting.converter(own).id != plain.id and len(plain.id) == 12
    own.write_text("wrap: many\nfoo-bar: 1\n")
    with pytest.raises(SettingsError, match="foo-bar"):
        converting.converter(own)
    own.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="UTF-8"):
        converting.converter(own)


def test_without_tidy_the_command_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="apt-get install tidy"):
        converting.converter(tmp_path / "none")


#: Stands before the real Tidy: hangs or dies at a page with a word, else does what it was asked for.
_STAND_IN = """#!/bin/sh
said= out=
for word; do
  case "$last" in -f) said=$word;; -o) out=$word;; esac
  case "$word" in
    [0-9]*.html)
      : > "$said"
      grep -q HANG "$word" && exec sleep 600
      grep -q DIE "$word" && kill -SEGV $$
      grep -q EXIT "$word" && exit 7
      {tidy} -quiet -utf8 -asxhtml --gnu-emacs yes -f "$said" -o "$out" "$word";;
  esac
  last=$word
done
exit 0
"""


def _stand_in(tmp_path: Path) -> Converter:
    real = converting.converter(tmp_path / "none")
    path = tmp_path / "stand-in"
    path.write_text(_STAND_IN.replace("{tidy}", real.program))
    path.chmod(0o755)
    return Converter(str(path), real.version, "")


def test_a_page_at_which_tidy_hangs_or_dies_costs_itself_alone(tmp_path: Path) -> None:
    words = ["a", "HANG", "b", "DIE", "EXIT", "c", "DIE"]
    found = _converted(
        tmp_path, [f"{_HEAD}<p>{word}</p>".encode() for word in words], _stand_in(tmp_path), patience=0.5
    )
    assert [each.failed for each in found] == [
        "", "Tidy took more than 0.5 s", "", "Tidy died of SIGSEGV", "Tidy ended with 7", "", "Tidy died of SIGSEGV",
    ]  # fmt: skip
    assert [f"<p>{word}</p>" in each.xhtml.decode() for word, each in zip(words, found, strict=True)] == [
        not word.isupper() for word in words
    ]


def test_a_tidy_that_does_not_run_at_all_is_no_fault_of_pages(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 9\n")
    broken.chmod(0o755)
    with pytest.raises(WebarcError, match="ended with 9 before it read a page"):
        _converted(tmp_path, [b"x"], Converter(str(broken), "x", ""))


def test_large_and_odd_pages(tmp_path: Path) -> None:
    odd = [b"", b"\0\0\0", b"plain text", os.urandom(5_000), b"<" * 20_000, b"<div>" * 5_000, None]
    found = _converted(tmp_path, [*odd, f"{_HEAD}<p>x</p>".encode()])
    assert "bytes" in found[6].failed and found[7].xhtml
    assert all(bool(each.xhtml) != bool(each.failed) for each in found)
