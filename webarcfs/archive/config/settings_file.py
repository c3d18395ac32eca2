"""webarc.toml, and publications in files of their own beside it: read and checked as a whole.

All faults are reported together; nothing runs on settings with a fault. Only `load` and `identity` read files.
"""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from webarcfs.archive.config.fields import as_table, read_table
from webarcfs.archive.config.settings import (
    BackupSettings,
    CrawlSettings,
    DescribeSettings,
    DeskSettings,
    IndexSettings,
    MountSettings,
    Profile,
    Publication,
    ReadersSettings,
    ReleaseSettings,
    Settings,
)
from webarcfs.archive.model.errors import SettingsError

#: The folder beside webarc.toml with a publication a file.
PUBLICATIONS = "publications.d"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def load(
    path: Path, instead: Mapping[str, str] | None = None, apart: dict[str, list[str]] | None = None
) -> tuple[Settings, str | None]:
    """Return the settings of a file, and a warning if it is missing or unreadable and the defaults hold (/Cr-1/).

    Beside it may lie `publications.d/`: a publication each, in a file of its name; `instead` has other texts for some.
    Raises SettingsError for readable files with faults. With `apart`, a publication whose own file has faults is left
    out, and they are added there under its name: the others have none of it.
    """
    more = {**_beside(path.with_name(PUBLICATIONS)), **(instead or {})}
    try:
        text = path.read_text("utf-8-sig")  # some editors begin a file with a byte order mark
    except OSError as error:
        return parse("", str(path), more, apart), f"{path}: {error.strerror}; the built-in defaults are used"
    except UnicodeDecodeError as error:
        if error.object.startswith(_UTF_16):
            raise SettingsError(str(path), ["it is UTF-16, as some editors save a file; save it as UTF-8"]) from None
        raise SettingsError(str(path), [f"not UTF-8 at byte {error.start}"]) from None
    return parse(text, str(path), more, apart), None


def own_identity(path: Path) -> tuple[object, ...]:
    """Return a value that changes when webarc.toml at `path` does; empty without one."""
    with contextlib.suppress(OSError):
        return (path.name, *_changes(path.stat()))
    return ()


def identity(path: Path) -> tuple[object, ...]:
    """Return a value that changes when webarc.toml at `path`, or a publication's file beside it, does."""
    beside: list[tuple[str, int, int, int]] = []
    with contextlib.suppress(OSError):
        folder = os.open(path.with_name(PUBLICATIONS), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:  # the desk asks this for each page, of hundreds of files: names in an open folder are found soonest
            for name in sorted(os.listdir(folder)):  # noqa: PTH208
                if name.endswith(".toml"):
                    try:
                        status = os.stat(name, dir_fd=folder)
                    except OSError:
                        continue
                    beside.append((name, status.st_ino, status.st_size, status.st_mtime_ns))
        finally:
            os.close(folder)
    return (own_identity(path), *beside)


def _changes(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _beside(folder: Path) -> dict[str, str]:
    """Return the files of `publications.d`: name without its ending → text. Raises SettingsError for other texts."""
    found = {}
    for each in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
        try:
            found[each.stem] = each.read_text("utf-8-sig")
        except FileNotFoundError:
            continue  # it was removed just now
        except UnicodeDecodeError as error:
            raise SettingsError(str(each), [f"not UTF-8 at byte {error.start}"]) from None
    return found


def parse(
    text: str, source: str, more: Mapping[str, str] | None = None, apart: dict[str, list[str]] | None = None
) -> Settings:
    """Return settings from TOML; `more` are the texts of further publications, by name; `apart` is as in `load`.

    Raises SettingsError with all faults.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(source, [f"not TOML: {error}"]) from None
    faults: list[str] = []
    top = {each.name: tables.pop(each.name) for each in dataclasses.fields(ReleaseSettings) if each.name in tables}
    release = read_table(ReleaseSettings, top, "", faults)
    crawl = read_table(CrawlSettings, tables.pop("crawl", {}), "crawl", faults)
    describe = read_table(DescribeSettings, tables.pop("describe", {}), "describe", faults)
    above = Settings(release=release, crawl=crawl, describe=describe)
    profiles = {
        name: read_table(Profile, table, f"profile.{name}", faults)
        for name, table in as_table(tables.pop("profile", {}), "profile", faults).items()
    }
    listed = _publications(tables.pop("publication", []), above, faults)
    listed += _further(
        more or {}, {each.name for each in listed}, (above, profiles), faults if apart is None else apart
    )
    settings = Settings(
        release=release,
        crawl=crawl,
        mount=read_table(MountSettings, tables.pop("mount", {}), "mount", faults),
        index=read_table(IndexSettings, tables.pop("index", {}), "index", faults),
        describe=describe,
        backup=read_table(BackupSettings, tables.pop("backup", {}), "backup", faults),
        readers=read_table(ReadersSettings, tables.pop("readers", {}), "readers", faults),
        desk=read_table(DeskSettings, tables.pop("desk", {}), "desk", faults),
        profiles=profiles,
        publications=listed,
    )
    faults += [f"{key}: there is no such table" for key in tables]
    faults += _cross_check(settings)
    if faults:
        raise SettingsError(source, faults)
    return settings


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
        values = as_table(table, where, faults)
        missing = [key for key in ("name", "urls") if not values.get(key)]
        faults += [f"{where}.{key}: is missing" for key in missing]
        mine = {key: value for key, value in values.items() if key in own}
        below = {key: value for key, value in values.items() if key not in own and key != "describe"}
        its_crawl = read_table(CrawlSettings, below, where, faults, above.crawl)
        described = read_table(
            DescribeSettings, values.get("describe", {}), f"{where}.describe", faults, above.describe
        )
        base = dataclasses.replace(above, crawl=its_crawl, describe=described).unlisted("unnamed")
        result.append(read_table(Publication, mine, where, faults, base))
    return tuple(result)


def _further(
    texts: Mapping[str, str],
    known: set[str],
    above: tuple[Settings, Mapping[str, Profile]],
    faults: list[str] | dict[str, list[str]],
) -> tuple[Publication, ...]:
    """Return the publications of files of their own: one each, of the file's name, which webarc.toml has not."""
    result: list[Publication] = []
    for name, text in texts.items():
        found, wrong = _one_file(name, text, known, *above)
        told = [f"{PUBLICATIONS}/{name}.toml: {each}" for each in wrong]
        if isinstance(faults, list):
            faults += told
        elif told:
            faults[name] = told
        result += found if not wrong else ()
    return tuple(result)


def _one_file(
    name: str, text: str, known: set[str], above: Settings, profiles: Mapping[str, Profile]
) -> tuple[tuple[Publication, ...], list[str]]:
    """Return the publication of a file, and what is wrong with it."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return (), [f"not TOML: {error}"]
    wrong = [f"{key}: only one [[publication]] may be here" for key in tables if key != "publication"]
    found = _publications(tables.get("publication", []), above, wrong)
    if len(found) != 1:
        wrong.append(f"it has {len(found)} [[publication]]; there must be one")
    elif found[0].name != name:
        wrong.append(f"its publication is called {found[0].name}, not {name} as the file")
    elif name in known:
        wrong.append("webarc.toml has a publication of that name, too")
    elif found[0].profile is not None and found[0].profile not in profiles:
        wrong.append(f"publication {name}.profile: there is no [profile.{found[0].profile}]")
    return found, wrong


def _cross_check(settings: Settings) -> list[str]:
    faults = []
    names = [publication.name for publication in settings.publications]
    faults += [f"publication {name}: the name is used twice" for name in sorted(set(names)) if names.count(name) > 1]
    for publication in settings.publications:
        if publication.profile is not None and publication.profile not in settings.profiles:
            faults.append(f"publication {publication.name}.profile: there is no [profile.{publication.profile}]")
    return faults
