"""The settings: the keys of webarc.toml, a publication and the command line, checked as a whole. Pure but for `load`.

Command line over publication over `[crawl]` over the defaults (/Cr-1/, /Cr-2.1/). All faults are reported together;
nothing runs on settings with a fault. The fields of `CrawlSettings` are the one list of crawl settings: the file's
keys, the publications' keys and the commands' options are derived from it.
"""

from __future__ import annotations

import codecs
import dataclasses
import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from webarcfs import __version__
from webarcfs.archive.config import validators
from webarcfs.archive.config.interval import Interval
from webarcfs.archive.model.errors import SettingsError

_T = TypeVar("_T")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _setting(check: validators.Check, default: Any, explain: str) -> Any:
    return field(default=default, metadata={"check": check, "help": explain})


def _required(check: validators.Check) -> Any:
    return field(metadata={"check": check, "help": ""})


class Release(StrEnum):
    """When readers may see the captures of a publication (`release`)."""

    AUTOMATIC = "automatic"
    WHEN_CHECKED = "when-checked"
    BY_HAND = "by-hand"


_RELEASE = validators.one_of(*Release)
_RELEASE_HELP = (
    "When readers may see a snapshot: as soon as it is published, when it passed its checks, or when somebody"
    " releases it."
)
_CLOSED_FOR_HELP = "Time from a capture until readers may see it."


# -- the settings themselves -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings:
    """`[crawl]`: settings of a crawl. A publication, or an option of the same name, may override each."""

    depth: int = _setting(validators.whole(0), 5, "How many links away from a start URL a page may be (/Cr-1.1/).")
    interval: Interval = _setting(
        validators.interval, Interval(1, "day"), "Time from one crawl to the next (/Cr-1.2/)."
    )
    max_instances: int = _setting(
        validators.whole(1), 4, "wget processes at a time, one at most for a server (/Cr-1.3/)."
    )
    filters: tuple[str, ...] = _setting(
        validators.list_of(validators.text), ("mime",), "Filter modules, in order (/Cr-1.4/)."
    )
    robots: bool = _setting(validators.boolean, True, "Obey robots.txt.")
    user_agent: str = _setting(
        validators.text,
        f"webarcfs/{__version__} (web archive)",
        "User agent; add a way to reach you, as in 'x/1 (+mail)'.",
    )
    wait: float = _setting(validators.number(0, 86400), 1.0, "Seconds between two requests to one server.")
    timeout: float = _setting(validators.number(1, 86400), 300.0, "Seconds that one document may take.")
    max_duration: Interval = _setting(
        validators.interval, Interval(10, "day"), "Time after which a crawl is cut short."
    )
    max_file_size: int = _setting(validators.whole(0), 0, "Bytes of one document; 0 is no limit.")
    max_total_size: int = _setting(validators.whole(0), 0, "Bytes of one crawl; 0 is no limit.")
    max_hosts: int = _setting(
        validators.whole(0), 1000, "Hosts that a crawl finds and accepts beside those of its start URLs; 0 is no limit."
    )
    max_path_depth: int = _setting(validators.whole(0), 32, "Segments of a URL's path; 0: as many as can be kept, 200.")
    max_repeats: int = _setting(
        validators.whole(0), 5, "How often one segment, or one parameter, may occur in a URL; 0 is no limit."
    )
    max_parameters: int = _setting(validators.whole(0), 32, "Parameters of a URL's query; 0 is no limit.")
    max_queries: int = _setting(
        validators.whole(0), 10_000, "URLs that differ in nothing but their queries; 0 is no limit."
    )
    max_redirects: int = _setting(
        validators.whole(0), 100_000, "Redirects of a domain that one crawl keeps; the rest is counted."
    )
    max_years_ahead: int = _setting(
        validators.whole(0), 5, "How many years ahead of today a date in a URL may lie, as calendars have it; 0: any."
    )
    private_addresses: bool = _setting(
        validators.boolean,
        False,
        "Also crawl hosts at addresses of one's own network or machine; a start URL at one does so.",
    )
    conditional: bool = _setting(
        validators.boolean,
        False,
        "Ask for archived pages only if they changed: fewer bytes, a process and a connection for each.",
    )
    page_requisites: bool = _setting(
        validators.boolean, True, "Also fetch images, styles and scripts of a page, beyond depth, on accepted hosts."
    )
    keep_errors: bool = _setting(
        validators.boolean, False, "Archive the bodies of 404 and other error pages of the 400s too."
    )
    keep_warc: bool = _setting(validators.boolean, False, "Keep the WARC files with the report.")
    min_share: float = _setting(
        validators.number(0, 1), 0.5, "A crawl that finds a smaller share of what the last one saw removes nothing."
    )
    unchanged: str = _setting(
        validators.one_of("keep", "replace"), "keep", "Whether a page that did not change keeps its ARC and additions."
    )
    wget_args: tuple[str, ...] = _setting(validators.list_of(validators.text), (), "Further arguments for wget.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSettings:
    """`[mount]`."""

    commit_interval: float = _setting(validators.number(0.05, 3600), 1.0, "Seconds until additions are committed.")
    strict_schema: bool = _setting(validators.boolean, False, "Refuse data nodes that have no schema in xsd/.")
    query_seconds: float = _setting(validators.number(0.05, 3600), 10.0, "Seconds for a condition in .query/.")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """`[index]`."""

    links: bool = _setting(validators.boolean, False, "Keep the links of pages, for `webarc links`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """`[profile.NAME]`: MIME types by name; a type that matches no include or any exclude is refused."""

    include: tuple[str, ...] = _setting(
        validators.list_of(validators.mime_pattern), (), "MIME types to keep; none means all."
    )
    exclude: tuple[str, ...] = _setting(validators.list_of(validators.mime_pattern), (), "MIME types to refuse.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSettings:
    """`[describe]`: what the record of a capture says where nobody says otherwise. A publication may override each."""

    signature: str = _setting(validators.text, "", "Signature of the fonds (field 2); else the publication's name.")
    provenance: str = _setting(validators.text, "", "The office in charge (field 3); else the host of its start URL.")
    project: str = _setting(validators.text, "Internet", "Project (field 4).")
    institution: str = _setting(validators.text, "", "The archive, as publisher in Dublin Core.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """`[[publication]]`: a configured source. `crawl` is `[crawl]`, overridden by the publication's own values."""

    name: str = _required(validators.name)
    urls: tuple[str, ...] = _required(validators.list_of(validators.url))
    start: datetime | None = _setting(validators.time, None, "When its first crawl is due.")
    hosts: tuple[str, ...] = _setting(
        validators.list_of(validators.text), (), "Hosts accepted beside those of the start URLs."
    )
    exclude_hosts: tuple[str, ...] = _setting(validators.list_of(validators.text), (), "Hosts never asked.")
    profile: str | None = _setting(validators.text, None, "The profile of MIME types that its documents must fit.")
    release: str = _setting(_RELEASE, Release.AUTOMATIC, f"{_RELEASE_HELP} The archive's own value holds else.")
    closed_for: Interval | None = _setting(
        validators.interval, None, f"{_CLOSED_FOR_HELP} The archive's own value holds else."
    )
    description: str = _setting(validators.text, "", "What it is, for people.")
    note: str = _setting(validators.text, "", "Why it is archived as it is: decisions of appraisal, with their dates.")
    describe: DescribeSettings = DescribeSettings()
    crawl: CrawlSettings = CrawlSettings()

    @property
    def is_held(self) -> bool:
        """Whether its captures are hidden from readers for a while after publication."""
        return self.release != Release.AUTOMATIC or self.closed_for is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSettings:
    """Top-level keys: when readers may see captures, for publications without keys of their own."""

    release: str = _setting(_RELEASE, Release.AUTOMATIC, _RELEASE_HELP)
    closed_for: Interval | None = _setting(validators.interval, None, _CLOSED_FOR_HELP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of webarc.toml."""

    release: ReleaseSettings = ReleaseSettings()
    crawl: CrawlSettings = CrawlSettings()
    mount: MountSettings = MountSettings()
    index: IndexSettings = IndexSettings()
    describe: DescribeSettings = DescribeSettings()
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    publications: tuple[Publication, ...] = ()

    def unlisted(self, name: str, urls: tuple[str, ...] = (), **more: Any) -> Publication:
        """Return a publication that webarc.toml does not list, with the archive's settings."""
        own = {
            "crawl": self.crawl,
            "describe": self.describe,
            "release": self.release.release,
            "closed_for": self.release.closed_for,
        }
        return Publication(name=name, urls=urls, **{**own, **more})


# -- reading them ------------------------------------------------------------------------------------------------------


def load(path: Path) -> tuple[Settings, str | None]:
    """Return the settings of a file, and a warning if it is missing or unreadable and the defaults hold (/Cr-1/).

    Raises SettingsError for a readable file with faults.
    """
    try:
        text = path.read_text("utf-8-sig")  # some editors begin a file with a byte order mark
    except OSError as error:
        return Settings(), f"{path}: {error.strerror}; the built-in defaults are used"
    except UnicodeDecodeError as error:
        if error.object.startswith(_UTF_16):
            raise SettingsError(str(path), ["it is UTF-16, as some editors save a file; save it as UTF-8"]) from None
        raise SettingsError(str(path), [f"not UTF-8 at byte {error.start}"]) from None
    return parse(text, str(path)), None


def parse(text: str, source: str) -> Settings:
    """Return settings from TOML. Raises SettingsError with all faults."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(source, [f"not TOML: {error}"]) from None
    faults: list[str] = []
    top = {each.name: tables.pop(each.name) for each in dataclasses.fields(ReleaseSettings) if each.name in tables}
    release = _read(ReleaseSettings, top, "", faults)
    crawl = _read(CrawlSettings, tables.pop("crawl", {}), "crawl", faults)
    describe = _read(DescribeSettings, tables.pop("describe", {}), "describe", faults)
    above = Settings(release=release, crawl=crawl, describe=describe)
    profiles = {
        name: _read(Profile, table, f"profile.{name}", faults)
        for name, table in _table(tables.pop("profile", {}), "profile", faults).items()
    }
    settings = Settings(
        release=release,
        crawl=crawl,
        mount=_read(MountSettings, tables.pop("mount", {}), "mount", faults),
        index=_read(IndexSettings, tables.pop("index", {}), "index", faults),
        describe=describe,
        profiles=profiles,
        publications=_publications(tables.pop("publication", []), above, faults),
    )
    faults += [f"{key}: there is no such table" for key in tables]
    faults += _cross_check(settings)
    if faults:
        raise SettingsError(source, faults)
    return settings


def override(crawl: CrawlSettings, values: Mapping[str, Any], source: str) -> CrawlSettings:
    """Return `crawl` with some settings replaced (/Cr-2.1/). Raises SettingsError with all faults."""
    faults: list[str] = []
    result = _read(CrawlSettings, dict(values), "", faults, crawl)
    if faults:
        raise SettingsError(source, faults)
    return result


def _read(kind: type[_T], table: Any, where: str, faults: list[str], base: _T | None = None) -> _T:
    """Return a settings dataclass from a table over `base`; a fault is added to `faults`, and the default used."""
    fields = {each.name: each for each in dataclasses.fields(kind) if "check" in each.metadata}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, value in _table(table, where, faults).items():
        label = f"{where}.{key}" if where else key
        if key not in fields:
            faults.append(f"{label}: there is no such setting{_nearest(key, fields)}")
            continue
        try:
            values[key] = fields[key].metadata["check"](value)
        except ValueError as error:
            faults.append(f"{label}: {error}")
    return dataclasses.replace(base, **values) if base is not None else kind(**values)  # type: ignore[type-var]


def _publications(tables: Any, above: Settings, faults: list[str]) -> tuple[Publication, ...]:
    """Return the publications of the file; what they do not say is said by the tables `above`."""
    if not isinstance(tables, list):
        faults.append("publication: write [[publication]], with two brackets")
        return ()
    own = {each.name for each in dataclasses.fields(Publication) if "check" in each.metadata}
    result = []
    for number, table in enumerate(tables, 1):
        name = table.get("name", f"number {number}") if isinstance(table, dict) else f"number {number}"
        where = f"publication {name}"
        values = _table(table, where, faults)
        missing = [key for key in ("name", "urls") if not values.get(key)]
        faults += [f"{where}.{key}: is missing" for key in missing]
        mine = {key: value for key, value in values.items() if key in own}
        below = {key: value for key, value in values.items() if key not in own and key != "describe"}
        its_crawl = _read(CrawlSettings, below, where, faults, above.crawl)
        described = _read(DescribeSettings, values.get("describe", {}), f"{where}.describe", faults, above.describe)
        base = dataclasses.replace(above, crawl=its_crawl, describe=described).unlisted("unnamed")
        result.append(_read(Publication, mine, where, faults, base))
    return tuple(result)


def _table(value: Any, where: str, faults: list[str]) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    faults.append(f"{where}: is not a table")
    return {}


def _cross_check(settings: Settings) -> list[str]:
    faults = []
    names = [publication.name for publication in settings.publications]
    faults += [f"publication {name}: the name is used twice" for name in sorted(set(names)) if names.count(name) > 1]
    for publication in settings.publications:
        if publication.profile is not None and publication.profile not in settings.profiles:
            faults.append(f"publication {publication.name}.profile: there is no [profile.{publication.profile}]")
    return faults


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(key, known, 1)
    return f"; did you mean {close[0]}?" if close else ""
