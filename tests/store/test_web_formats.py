"""The register of the common formats of the web, and what an archive's own files change of it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from agent.desk.theme import words
from tests.support import sources
from webarcfs.archive.catalogue import formats
from webarcfs.archive.config import directory
from webarcfs.archive.model.errors import SettingsError

pytestmark = pytest.mark.store
_TYPE = re.compile(r"(application|audio|font|image|message|multipart|text|video)/[A-Za-z0-9][A-Za-z0-9.+-]*")
_PUID = re.compile(r"(x-)?fmt/[1-9]\d{0,3}")
_PATH = Path(formats.__file__).with_name("web_formats.toml")


def test_each_known_format_of_the_web_is_well_formed() -> None:
    known = formats.web_formats()
    assert len(known) >= 150 and list(known) == sorted(known)
    assert list(tomllib.loads(_PATH.read_text("utf-8"))) == ["format"]
    assert "PRONOM" in _PATH.read_text("utf-8") and re.search(r"of \d{4}-\d\d-\d\d", _PATH.read_text("utf-8"))
    names: dict[str, set[str]] = {}
    for extension, known_format in known.items():
        assert re.fullmatch(r"[a-z0-9]{1,12}", extension)
        assert known_format.name.strip() == known_format.name != ""
        assert known_format.read_by in words.READERS, extension
        assert not known_format.made_by, "who made a file is not known of its format"
        assert not known_format.mime_type or _TYPE.fullmatch(known_format.mime_type), extension
        puids = known_format.puid.split(", ") if known_format.puid else []
        assert all(map(_PUID.fullmatch, puids)) and len(puids) == len(set(puids)), extension
        for puid in puids:
            names.setdefault(puid, set()).add(known_format.name)
    shared = {puid: called for puid, called in names.items() if len(called) > 1}
    # An Ogg file may be sound or a video, and an APNG is called .png as well.
    assert shared.keys() <= {"fmt/944", "fmt/945", "fmt/203", "fmt/946", "fmt/935"}, shared
    assert {known_format.read_by for known_format in known.values()} == words.READERS


def test_puids_are_those_of_pronom() -> None:
    """A few that everybody in the field knows."""
    known = formats.web_formats()
    sure = {
        "html": "fmt/471", "pdf": "fmt/18", "png": "fmt/11", "gif": "fmt/4", "jpg": "fmt/43", "docx": "fmt/412",
        "warc": "fmt/289", "css": "x-fmt/224",
    }  # fmt: skip
    for extension, puid in sure.items():
        assert puid in known[extension].puid.split(", ")


_DOCUMENT = re.compile(r"""["'(]/[\w/.-]*?[\w-]+\.([a-z][a-z0-9]{1,4})(?=["'<?#)])""")
#: What stands like a document in the sources of our sites and is none: files of an archive.
_NO_DOCUMENTS = {"gz", "http", "toml"}


def test_the_formats_of_the_sites_of_tests_are_known() -> None:
    folder = Path(sources.__file__).parent
    texts = [path.read_text("utf-8") for path in sorted(folder.glob("*.py"))]
    extensions = {match[1] for text in texts for match in _DOCUMENT.finditer(text)} - _NO_DOCUMENTS
    assert extensions > {"html", "css", "js", "png", "xml", "txt", "json"}
    assert formats.unreadable(formats.web_formats(), extensions) == []


def test_an_archives_own_register_goes_over_ours_key_by_key(tmp_path: Path) -> None:
    archive = directory.create(tmp_path / "archive")
    assert formats.load(archive) == {} and formats.known(archive) == formats.web_formats()
    assert formats.unreadable(formats.known(archive), ["html", "PNG", "wk4"]) == ["wk4"]
    formats.keep(archive, "pdf", {"read_by": "Evince 43"})
    formats.keep(archive, "wk4", {"name": "Lotus 1-2-3 Worksheet", "puid": "x-fmt/116", "read_by": "LibreOffice 7"})
    known, ours = formats.known(archive), formats.web_formats()["pdf"]
    assert known["pdf"].read_by == "Evince 43" and known["pdf"].puid == ours.puid and known["pdf"].name == ours.name
    assert known["html"] == formats.web_formats()["html"]
    assert formats.unreadable(known, ["wk4"]) == [] and formats.load(archive).keys() == {"pdf", "wk4"}
    archive.formats.write_text('[format.pdf]\nread_by = ""\n', "utf-8")
    assert formats.unreadable(formats.known(archive), ["pdf"]) == ["pdf"], "an archive may say that nothing reads it"
    formats.keep_type(archive, "text/html", {"description": "our pages", "extension": "html"})
    assert asdict(formats.known_types(archive)["text/html"])["description"] == "our pages"
    assert formats.known_types(archive)["font/woff2"].extension == "woff2"
    archive.formats.write_text('[format.pdf]\npuids = "fmt/14"\n', "utf-8")
    with pytest.raises(SettingsError, match="there is no such key"):
        formats.known(archive)
