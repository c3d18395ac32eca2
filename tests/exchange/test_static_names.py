"""Names of an exported folder: every file system takes them, and no two documents share one."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from webarcfs.export import static_places
from webarcfs.export.static_places import EXTENSIONS, FileType, SiteReading, file_path, file_type, folded, to_mark

pytestmark = pytest.mark.pure

HTML, PNG, CSS = (file_type(each, "x") for each in ("text/html", "image/png", "text/css"))
NFD = unicodedata.normalize("NFD", "é")

#: Path of an ARC in the domain, type, path in the folder.
CASES = (
    ("index.html", "text/html", "e.org/index.html"),
    ("page.HTM", "text/html", "e.org/page.HTM"),
    ("blog", "text/html", "e.org/blog.html"),
    ("a/b/c.css", "text/css", "e.org/a/b/c.css"),
    ("logo.png", "image/png", "e.org/logo.png"),
    ("logo.gif", "image/png", "e.org/logo.gif.png"),
    ("photo.JPEG", "image/jpeg", "e.org/photo.JPEG"),
    ("p.php?id=5", "text/html", "e.org/p.php@id=5.html"),
    ("style.css?v=2.1", "text/css", "e.org/style.css@v=2.1.css"),
    ("lib.js", "text/plain", "e.org/lib.js"),
    ("notes", "text/plain", "e.org/notes.txt"),
    ("evil.html", "text/plain", "e.org/evil.html.txt"),
    ("evil.svg", "application/octet-stream", "e.org/evil.svg.bin"),
    ("evil.html", "image/gif", "e.org/evil.html.gif"),
    ("feed.xml", "application/rss+xml", "e.org/feed.xml.txt"),
    ("feed.xml", "text/xml", "e.org/feed.xml.txt"),
    ("data", "application/x-unheard-of", "e.org/data.bin"),
    ("tool.exe", "application/x-dosexec", "e.org/tool.exe"),
    ("empty.html", "application/x-empty", "e.org/empty.html"),
    ("empty", "application/x-empty", "e.org/empty.txt"),
    ("CON", "text/html", "e.org/_CON.html"),
    ("nul.txt", "text/plain", "e.org/_nul.txt"),
    ("aux/com1.png", "image/png", "e.org/_aux/_com1.png"),
    ("LPT¹ .txt", "text/plain", "e.org/_LPT¹ .txt"),
    ("console.html", "text/html", "e.org/console.html"),
    ("dir./b ", "text/html", "e.org/dir_/b_.html"),
    (" a", "text/html", "e.org/_a.html"),
    (".htaccess", "text/plain", "e.org/_htaccess.txt"),
    ('<>:"|*\\', "text/html", "e.org/__+____.html"),
    ("%2F%3F", "text/html", "e.org/%2F%3F.html"),
    ("a/%/b", "text/html", "e.org/a/%/b.html"),
    (f"caf{NFD}", "text/html", "e.org/café.html"),
    ("a\u202egnp.html", "text/html", "e.org/a_gnp.html"),
    ("a\u00a0b", "text/html", "e.org/a_b.html"),
    ("LONGNA~1.HTM", "text/html", "e.org/LONGNA_1.HTM"),
    # A folder never looks like a file, so that neither takes the other's name.
    ("a.html/b", "text/html", "e.org/a.html~7aa267cfbf8e/b.html"),
    ("doc/html/b", "text/html", "e.org/doc/html/b.html"),
    ("v1.0/b", "text/html", "e.org/v1.0/b.html"),
    # What looks marked is marked, so that no mark can be imitated.
    ("x~0123456789ab.html", "text/html", "e.org/x~0123456789ab~0a0e7753257f.html"),
    ("_long/x", "text/html", "e.org/_long~1d26639513d9/x.html"),
    ("x" * 200, "text/html", "e.org/" + "x" * 62 + "~aa20c23e3201.html"),
)  # fmt: skip


@pytest.mark.parametrize(("arc", "kind", "path"), CASES, ids=[each[0][:20] for each in CASES])
def test_a_document_gets_this_file(arc: str, kind: str, path: str) -> None:
    segments = arc.split("/")
    assert file_path("e.org", segments, file_type(kind, segments[-1].partition("?")[0])) == path


@pytest.mark.parametrize(
    ("domain", "name"),
    [
        ("www.example.org", "www.example.org"),
        ("e.org:8080", "e.org+8080"),
        ("[2001:db8::1]:81", "[2001+db8++1]+81"),
        ("nul.example.org", "_nul.example.org~0e2f8c9b3e1d"),
        ("_webarcfs", "_webarcfs~a"),
        ("index.html", "index.html~a"),
        ("static.json", "static.json~a"),
        ("x" * 60 + ".org", "x" * 37 + "~a"),
    ],
)
def test_a_domain_gets_this_folder(domain: str, name: str) -> None:
    found = static_places.host_name(domain)
    assert found.partition("~")[0] == name.partition("~")[0]
    assert re.fullmatch(r"~[0-9a-f]{12}", found[found.find("~") :]) if "~" in name else found == name


def test_of_names_that_some_system_takes_for_one_all_but_one_are_marked() -> None:
    assert not to_mark(["a", "b", "c.html"])
    assert to_mark(["index.html", "Index.html", "INDEX.HTML"]).always == {"Index.html", "index.html"}
    assert to_mark(["café", f"caf{NFD}"]).always == {f"caf{NFD}"}
    assert to_mark(["a@b", "a?b"]).always == {"a?b"}
    assert to_mark(["straße", "STRASSE"]).always == {"straße"}


def test_a_document_that_might_become_anothers_file_is_marked_and_the_folder_of_that_name_is_not() -> None:
    marks = to_mark(["blog", "blog.html", "blog.css"])
    assert (marks.always, marks.as_files) == (frozenset(), {"blog"})
    assert re.fullmatch(r"e\.org/blog~[0-9a-f]{12}\.html", file_path("e.org", ["blog"], HTML, [marks]))
    assert file_path("e.org", ["blog", "x"], HTML, [marks, to_mark(["x"])]) == "e.org/blog/x.html"


def test_paths_that_are_too_long_are_in_a_folder_of_their_own() -> None:
    segments = ["a" * 70, "b" * 70, "c" * 70 + ".png"]
    path = file_path("e.org", segments, PNG)
    assert re.fullmatch(r"e\.org/_long/c{23}~[0-9a-f]{16}\.png", path)
    assert file_path("e.org", [*segments[:2], segments[2].replace("c", "d", 1)], PNG) != path


@pytest.mark.parametrize(
    ("kind", "name", "declared", "extension"),
    [
        ("text/plain", "load", "text/css", "css"), ("text/x-asm", "load", "text/css", "css"),
        ("text/x-asm", "main.css", "", "css"), ("text/x-c", "load", "application/javascript", "js"),
        ("text/x-c", "main.c", "text/plain", "txt"), ("text/plain", "load", "text/html", "txt"),
        ("image/png", "x", "text/css", "png"), ("application/octet-stream", "x", "image/svg+xml", "bin"),
    ],
)  # fmt: skip
def test_text_that_was_sent_as_a_sheet_or_a_script_is_one(kind: str, name: str, declared: str, extension: str) -> None:
    assert file_type(kind, name, lambda: declared).extension == extension


@pytest.mark.parametrize(
    ("kind", "name"), [("message/rfc822", "a.eml"), ("application/octet-stream", "a.eml"), ("text/plain", "a.eml")]
)
def test_a_mail_is_no_file_that_chromium_makes_a_page_of(kind: str, name: str) -> None:
    assert not file_path("e.org", [name], file_type(kind, name)).endswith(".eml")


# -- properties

_MARK = "~" + "0123456789ab"
_PIECES = (
    "a", "A", "b", ".", " ", "~", "?", ":", "_", "@", "%", "é", NFD, "ß", "ss", "SS", "ı", "i", "I", "İ", "K", "k", "ſ",
    "s", "ﬁ", "fi", "html", "HTML", ".html", ".png", ".css", "con", "CON", "nul", "\u00ad", "\u200d", "\ufe0f",
    "\u3164", "🙂", _MARK, "x" * 70, "_long", "½", "…", "．", "~1",
)  # fmt: skip
_NAMES = st.one_of(
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=5).map("".join), st.text(min_size=1, max_size=8)
).filter(lambda name: "/" not in name and "\0" not in name and len(name.encode("utf-8", "replace")) <= 255)
_KINDS = st.sampled_from(
    [HTML, PNG, CSS, FileType("bin", frozenset({"bin", "txt", "png"})), file_type("image/jpeg", "x")]
)
#: ARCs: path → type. Some lie below others.
_SITES = st.dictionaries(st.lists(_NAMES, min_size=1, max_size=3).map(tuple), _KINDS, min_size=1, max_size=12)


def paths_of(site: dict[tuple[str, ...], FileType], domain: str = "e.org") -> dict[tuple[str, ...], str]:
    """The paths of all documents, with the marks of each folder."""
    below: dict[tuple[str, ...], set[str]] = {}
    for arc in site:
        for depth, name in enumerate(arc):
            below.setdefault(arc[:depth], set()).add(name)
    marks = {folder: to_mark(sorted(found)) for folder, found in below.items()}
    return {
        arc: file_path(domain, arc, kind, [marks[arc[:depth]] for depth in range(len(arc))])
        for arc, kind in site.items()
    }


def as_systems_see_it(name: str) -> set[str]:
    """A name as file systems compare it: NTFS, APFS and HFS+, ext4 with casefold, FAT."""
    nfd = unicodedata.normalize("NFD", name)
    upper = "".join(each.upper() if len(each.upper()) == 1 else each for each in name)
    bare = re.sub("[\u00ad\u200d\ufe0f\u3164]", "", nfd)
    return {
        f"ntfs {upper}", f"apfs {unicodedata.normalize('NFD', nfd.casefold())}", f"nfd {nfd}", f"lower {name.lower()}",
        f"ext4 {unicodedata.normalize('NFD', bare.casefold())}",
    }  # fmt: skip


@settings(max_examples=examples(200), deadline=None)
@given(_SITES)
@example({("a",): HTML, ("a.html",): HTML, ("A",): PNG, ("a", "b"): HTML, ("a.html", "b"): HTML})
@example({("a.html",): HTML, ("a.html", "a.html"): HTML, ("a.html.html",): PNG})
@example({("a.html",): PNG, ("a.html.png",): HTML, ("a.html.png.html",): CSS})
@example({("ı",): HTML, ("I",): HTML, ("i",): HTML})
def test_no_two_documents_share_a_file_and_no_file_is_a_folder(site: dict[tuple[str, ...], FileType]) -> None:
    paths = paths_of(site)
    taken: dict[str, tuple[str, str]] = {}  # what a system sees → what is there, and whose it is
    for arc, path in paths.items():
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            is_file = depth == len(parts)
            owner = repr(arc) if is_file else "folder " + "/".join(parts[:depth])
            above = parts[: depth - 1]
            for seen in as_systems_see_it(parts[depth - 1]):
                key = f"{[folded(each) for each in above]} {seen}"
                assert taken.setdefault(key, (owner, path))[0] == owner, (taken[key], path)


@settings(max_examples=examples(200), deadline=None)
@given(_SITES)
def test_every_system_takes_every_name(site: dict[tuple[str, ...], FileType]) -> None:
    for arc, path in paths_of(site).items():
        assert len(path.encode("utf-16-le")) // 2 <= static_places.LONGEST_PATH
        for part in path.split("/"):
            assert len(part.encode()) <= 255
            assert len(part.encode("utf-16-le")) // 2 <= static_places.LONGEST_NAME
            assert not re.search(r'[<>:"/\\|?*\x00-\x1f\x7f]', part)
            assert part[-1] not in " ." and part[0] not in " ."
            assert part.partition(".")[0].strip().upper() not in {"CON", "PRN", "AUX", "NUL", "COM1", "LPT9", "COM¹"}
            assert unicodedata.normalize("NFC", part) == part
            assert not re.fullmatch(r"[^.~]{1,7}~[0-9]{1,6}(\.[^.]{0,3})?", part)
        last = path.rpartition("/")[2].rpartition(".")[2].lower()
        assert last in site[arc].accepted | {site[arc].extension}


@given(
    st.sampled_from(["text/plain", "image/gif", "application/octet-stream", "text/xml", "x/y", "application/gzip"]),
    _NAMES,
)
def test_what_is_no_page_never_becomes_one(kind: str, name: str) -> None:
    found = file_type(kind, name)
    extension = file_path("e.org", [name], found).rpartition(".")[2].lower()
    assert extension not in {"html", "htm", "xhtml", "xht", "svg", "svgz", "xml", "mht", "mhtml", "shtml"}
    assert extension in EXTENSIONS
    assert found.reading in (SiteReading.NONE, SiteReading.CSS)
