"""webarc.toml, and publications in files of their own beside it: read and checked as a whole, changed by programs.

All faults are reported together; nothing runs on settings with a fault. Settings are read from files by `load` alone.

A changed file keeps its comments and its order, since people edit it, too; the new file replaces the old one at once.
Programs change the files of publications.d. What is in webarc.toml is changed by hand.
"""

from __future__ import annotations

import codecs
import dataclasses
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webarcfs.archive.config.directory import PUBLICATIONS, Archive
from webarcfs.archive.config.settings import (
    SECRETS,
    BackupSettings,
    BrowserSettings,
    CrawlSettings,
    DescribeSettings,
    DeskSettings,
    IndexSettings,
    LogSettings,
    MetricsSettings,
    MountSettings,
    NotifySettings,
    PageResources,
    Profile,
    Publication,
    ReadersSettings,
    Release,
    ReleaseSettings,
    SaveSettings,
    Settings,
    with_newer_words,
)
from webarcfs.archive.config.validators import Interval, as_table, read_table
from webarcfs.archive.model.errors import NotFound, SettingsError, UsageError
from webarcfs.archive.model.metadata import CET, now
from webarcfs.archive.system import locks
from webarcfs.archive.system.files import replacing, sync_folder

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


# == toml file ========================================================================================================


@contextmanager
def changing(path: Path, lock: Path, mode: int = 0o644) -> Iterator[TOMLDocument]:
    """Yield a file's document under its lock, empty for a new one; what was changed is written, if nothing was raised.

    Raises SettingsError if the file is no TOML, OSError.
    """
    import tomlkit  # noqa: PLC0415 # slow to load, and only commands that change a file need it
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    with locks.exclusive(lock):
        try:
            document = tomlkit.parse(path.read_text("utf-8-sig"))
        except FileNotFoundError:
            document = tomlkit.document()
        except (TOMLKitError, UnicodeDecodeError) as error:
            raise SettingsError(str(path), [f"not TOML: {error}"]) from None
        yield document
        replace_file(path, tomlkit.dumps(document).encode(), mode)


def parsed(text: str, source: str) -> TOMLDocument:
    """Return the document that a text spells, with its comments. Raises SettingsError."""
    import tomlkit  # noqa: PLC0415
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise SettingsError(source, [f"not TOML: {error}"]) from None


def text_of(tables: Mapping[str, Any]) -> str:
    """Return tables as TOML."""
    import tomlkit  # noqa: PLC0415

    return tomlkit.dumps(tables)


def in_lines(value: Any) -> Any:
    """Return a value for a document: a text of several lines is written as such."""
    import tomlkit  # noqa: PLC0415

    return tomlkit.string(value, multiline=True) if isinstance(value, str) and "\n" in value else value


def replace_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace a file durably, under the caller's lock. Raises OSError."""
    scratch = path.with_name(f".{path.name}.new")
    scratch.unlink(missing_ok=True)  # left by a process that was killed
    with replacing(path, scratch) as file:
        scratch.chmod(mode)
        file.write(content)


def write_into_folder(path: Path, content: bytes) -> None:
    """Replace a file as `replace_file` does, in a folder that is made if it is missing. Raises OSError."""
    if not path.parent.is_dir():
        path.parent.mkdir()
        sync_folder(path.parent.parent)
    replace_file(path, content)


# == settings file ====================================================================================================


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


def load_usable(archive: Archive) -> Settings:
    """Return the settings without publications that have faults; the defaults if webarc.toml has some.

    For those who need a setting where others report the faults.
    """
    try:
        return load(archive.settings, apart={})[0]
    except SettingsError:
        return Settings()


def _beside(folder: Path) -> dict[str, str]:
    """Return the files of `publications.d`: name without its ending → text. Raises SettingsError for other texts."""
    texts = {}
    for path in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
        try:
            texts[path.stem] = path.read_text("utf-8-sig")
        except FileNotFoundError:
            continue  # it was removed just now
        except UnicodeDecodeError as error:
            raise SettingsError(str(path), [f"not UTF-8 at byte {error.start}"]) from None
    return texts


def parse(
    text: str, source: str, more: Mapping[str, str] | None = None, apart: dict[str, list[str]] | None = None
) -> Settings:
    """Return settings from TOML; `more` are the texts of further publications, by name; `apart` is as in `load`.

    Raises SettingsError with all faults.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(source, [f"not TOML: {error}{_advice(error)}"]) from None
    faults: list[str] = []
    top = {field.name: tables.pop(field.name) for field in dataclasses.fields(ReleaseSettings) if field.name in tables}
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
        more or {}, {publication.name for publication in listed}, (above, profiles), faults if apart is None else apart
    )
    settings = Settings(
        release=release,
        crawl=crawl,
        mount=read_table(MountSettings, tables.pop("mount", {}), "mount", faults),
        index=read_table(IndexSettings, tables.pop("index", {}), "index", faults),
        describe=describe,
        backup=read_table(BackupSettings, tables.pop("backup", {}), "backup", faults),
        browser=read_table(BrowserSettings, tables.pop("browser", {}), "browser", faults),
        notify=read_table(NotifySettings, tables.pop("notify", {}), "notify", faults),
        readers=read_table(ReadersSettings, tables.pop("readers", {}), "readers", faults),
        desk=read_table(DeskSettings, tables.pop("desk", {}), "desk", faults),
        save=read_table(SaveSettings, tables.pop("save", {}), "save", faults),
        log=read_table(LogSettings, tables.pop("log", {}), "log", faults),
        metrics=read_table(MetricsSettings, tables.pop("metrics", {}), "metrics", faults),
        profiles=profiles,
        publications=listed,
    )
    faults += [f"{key}: there is no such table" for key in tables]
    faults += _cross_check(settings)
    if faults:
        raise SettingsError(source, faults)
    return settings


_TWICE = re.compile(r"Cannot declare \('([^']+)',\) twice")


def _advice(error: tomllib.TOMLDecodeError) -> str:
    """Return what to do about a heading that stands in the file twice."""
    match = _TWICE.match(str(error))
    return "" if match is None else f"; [{match[1]}] stands there already, so write below that heading"


_NOT_LISTED = "publication: write [[publication]], with two brackets"
#: What holds for a publication that watches a feed, whatever [crawl] says.
OF_WATCH: Mapping[str, Any] = {"depth": 0, "sitemaps": False}


def _publications(tables: Any, above: Settings, faults: list[str]) -> tuple[Publication, ...]:
    """Return the publications of the file; what they do not say is said by the tables `above`."""
    if not isinstance(tables, list):
        faults.append(_NOT_LISTED)
        return ()
    own = {field.name for field in dataclasses.fields(Publication) if "check" in field.metadata}
    result = []
    for number, table in enumerate(tables, 1):
        name = table.get("name", f"number {number}") if isinstance(table, dict) else f"number {number}"
        where = f"publication {name}"
        values = as_table(table, where, faults)
        says_where = values.get("urls") or values.get("list") or values.get("watch")
        faults += [f"{where}.name: is missing"] if not values.get("name") else []
        faults += [] if says_where else [f"{where}.urls: is missing"]
        faults += [f"{where}.{fault}" for fault in _against_watch(values)]
        mine = {key: value for key, value in values.items() if key in own}
        below = {key: value for key, value in values.items() if key not in own and key != "describe"}
        its_crawl = read_table(CrawlSettings, with_newer_words(below), where, faults, above.crawl)
        if values.get("watch"):
            its_crawl = dataclasses.replace(its_crawl, **OF_WATCH)
        described = read_table(
            DescribeSettings, values.get("describe", {}), f"{where}.describe", faults, above.describe
        )
        base = dataclasses.replace(above, crawl=its_crawl, describe=described).unlisted("unnamed")
        if "release" not in mine and any(mine.get(kind) for kind in SECRETS):
            mine["release"] = Release.BY_HAND  # what a login shows may be for few
        mine.setdefault("urls", [])
        result.append(read_table(Publication, mine, where, faults, base))
    return tuple(result)


def _against_watch(values: Mapping[str, Any]) -> list[str]:
    """Return what a publication says that does not go with its `watch`."""
    if not values.get("watch"):
        return []
    keys = [key for key in ("urls", "list") if values.get(key)]
    keys += [key for key, value in OF_WATCH.items() if values.get(key, value) != value]
    return [f"{key}: not with `watch`, which captures the pages that its feed names, and those alone" for key in keys]


def _further(
    texts: Mapping[str, str],
    known: set[str],
    above: tuple[Settings, Mapping[str, Profile]],
    faults: list[str] | dict[str, list[str]],
) -> tuple[Publication, ...]:
    """Return the publications of files of their own: one each, of the file's name, which webarc.toml has not."""
    result: list[Publication] = []
    for name, text in texts.items():
        publications, wrong = _one_file(name, text, known, *above)
        messages = [f"{PUBLICATIONS}/{name}.toml: {fault}" for fault in wrong]
        if isinstance(faults, list):
            faults += messages
        elif messages:
            faults[name] = messages
        result += publications if not wrong else ()
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
    publications = _publications(tables.get("publication", []), above, wrong)
    if len(publications) != 1:
        wrong.append(f"it has {len(publications)} [[publication]]; there must be one")
    elif publications[0].name != name:
        wrong.append(f"its publication is called {publications[0].name}, not {name} as the file")
    elif name in known:
        wrong.append("webarc.toml has a publication of that name, too")
    elif publications[0].profile is not None and publications[0].profile not in profiles:
        wrong.append(f"publication {name}.profile: there is no [profile.{publications[0].profile}]")
    return publications, wrong


#: Settings whose defaults are for new publications, and what holds for those that were crawled before there were these.
OLD_DEFAULTS: Mapping[str, Any] = {"page_resources": PageResources.HOSTS.value, "sitemaps": False}
_OLD = "as before the upgrade"


def keep_old_defaults(archive: Archive, unsaid: Mapping[str, Set[str]]) -> list[str]:
    """Write the old values of changed defaults into publications that do not say them; return their names.

    `unsaid` has, by publication, the settings that its last crawl did not know. A value of [crawl] in webarc.toml holds
    for its publications. Raises SettingsError for a file that is no TOML, OSError.
    """
    top = _tables(archive.settings).get("crawl", {})
    names: list[str] = []
    for path in (archive.settings, *(file_of(archive, name) for name in sorted(unsaid))):
        if not any(_lacks(table, top, unsaid) for table in _listed(_tables(path))):
            continue
        from tomlkit import item  # noqa: PLC0415 # slow to load

        with changing(path, archive.settings_lock) as document:
            for table in _listed(document):
                lacking = _lacks(table, top, unsaid)
                for key in lacking:
                    line = item(OLD_DEFAULTS[key])
                    line.comment(_OLD)
                    table.append(key, line)  # before the tables of the publication, as tomlkit does
                names += [str(table.get("name", ""))] if lacking else []
    return names


def kept_at_old_defaults(archive: Archive) -> list[str]:
    """Return the publications that an upgrade wrote old values into, as long as the comments beside them stay."""
    names: list[str] = []
    for path in (archive.settings, *sorted(archive.publications.glob("*.toml"))):
        with suppress(OSError, UnicodeDecodeError, SettingsError):
            if _OLD in (text := path.read_text("utf-8-sig")):
                tables = _listed(parsed(text, path.name))
                names += [str(table.get("name", "")) for table in tables if _is_kept(table)]
    return names


def _is_kept(table: Any) -> bool:
    """Return whether a publication, as tomlkit has it, says an old default with the comment of an upgrade."""
    lines = (table.value.item(key) for key in OLD_DEFAULTS if key in table)  # a bool by itself has no comment
    return any(_OLD in line.trivia.comment for line in lines if hasattr(line, "trivia"))


def _lacks(table: Mapping[str, Any], top: Mapping[str, Any], unsaid: Mapping[str, Set[str]]) -> list[str]:
    wanted = unsaid.get(str(table.get("name", "")), frozenset())
    settings_by_key = {**top, **table}
    if settings_by_key.get("page_requisites") is False:
        wanted = wanted - {"page_resources"}  # the older word for none of them
    return [key for key in OLD_DEFAULTS if key in wanted and key not in settings_by_key]


def _cross_check(settings: Settings) -> list[str]:
    faults = []
    names = [publication.name for publication in settings.publications]
    faults += [f"publication {name}: the name is used twice" for name in sorted(set(names)) if names.count(name) > 1]
    for publication in settings.publications:
        if publication.profile is not None and publication.profile not in settings.profiles:
            faults.append(f"publication {publication.name}.profile: there is no [profile.{publication.profile}]")
    return faults


# == publication files ================================================================================================


_BUILT_IN = "default"


@dataclass(frozen=True, slots=True)
class InForce:
    """A setting of a publication as it holds now, and where it is said: a file, a table of webarc.toml, the default."""

    key: str
    value: Any
    source: str

    @property
    def is_default(self) -> bool:
        """Whether nobody said it."""
        return self.source == _BUILT_IN


def file_of(archive: Archive, name: str) -> Path:
    """Return the file of its own that a publication has or may get."""
    return archive.publications / f"{name}.toml"


def place_of(archive: Archive, name: str) -> str:
    """Return where a publication is said: `webarc.toml`, or its file in publications.d. Raises NotFound."""
    if file_of(archive, name).exists():
        return f"{PUBLICATIONS}/{name}.toml"
    if any(table.get("name") == name for table in _listed(_tables(archive.settings))):
        return archive.settings.name
    raise missing(archive, name)


def missing(archive: Archive, name: str) -> NotFound:
    """Return the error of a publication that there is not; it names those that there are."""
    settings, _ = load(archive.settings)
    known = ", ".join(publication.name for publication in settings.publications) or "none"
    return NotFound(f"there is no publication {name}; there are: {known}")


def in_force(archive: Archive, name: str) -> list[InForce]:
    """Return all settings of a publication, with where each comes from. Raises NotFound, SettingsError."""
    place = place_of(archive, name)
    settings, _ = load(archive.settings)
    publication = next((publication for publication in settings.publications if publication.name == name), None)
    if publication is None:
        raise missing(archive, name)
    top = _tables(archive.settings)
    tables = _tables(file_of(archive, name)) if place != archive.settings.name else top
    own = next(table for table in _listed(tables) if table.get("name") == name)

    def source(key: str, above: Mapping[str, Any], table: str, own_table: Mapping[str, Any] = own) -> str:
        return place if key in own_table else f"{archive.settings.name}, {table}" if key in above else _BUILT_IN

    released = {field.name for field in dataclasses.fields(ReleaseSettings)}
    lines = [
        InForce(key, value, source(key, top if key in released else {}, "above all tables"))
        for key, value in _values(publication)
    ]
    lines += [
        InForce(key, value, source(key, top.get("crawl", {}), "[crawl]")) for key, value in _values(publication.crawl)
    ]
    if publication.watch:
        lines = [
            dataclasses.replace(line, source=f"{place}, watch") if line.key in OF_WATCH else line for line in lines
        ]
    describe_table = own.get("describe", {})
    return lines + [
        InForce(f"describe.{key}", value, source(key, top.get("describe", {}), "[describe]", describe_table))
        for key, value in _values(publication.describe)
    ]


def plain(value: Any) -> Any:
    """Return a value of a setting as TOML and JSON have it."""
    if isinstance(value, Interval):
        return str(value)
    if isinstance(value, tuple):
        return [plain(element) for element in value]
    if dataclasses.is_dataclass(value):
        table = {
            field.metadata.get("key", field.name): getattr(value, field.name) for field in dataclasses.fields(value)
        }
        return {key: plain(setting) for key, setting in table.items() if setting not in (None, "", ())}
    return value


def new_text(archive: Archive, name: str, values: Mapping[str, Any]) -> str:
    """Return the text of a new publication; `describe.…` are keys of its table.

    Raises UsageError if there is one, SettingsError for faults.
    """
    settings, _ = load(archive.settings)
    if file_of(archive, name).exists() or any(publication.name == name for publication in settings.publications):
        raise UsageError(f"there is a publication {name} already; `webarc-agent publication edit {name}` changes it")
    table: dict[str, Any] = {"name": name}
    change_keys(table, values, (), f"{PUBLICATIONS}/{name}.toml")
    text = text_of({"publication": [table]})
    with_text(archive, name, text)
    return text


def edited_text(archive: Archive, name: str, values: Mapping[str, Any], removed: Iterable[str] = ()) -> str:
    """Return the text of a publication's file with keys set and others removed; all else stays as it is.

    Raises UsageError if it has no file of its own, SettingsError for faults.
    """
    path = own_file(archive, name)
    document = parsed(path.read_text("utf-8-sig"), str(path))
    table: Any = next(iter(_listed(document)), None)
    if table is None:
        raise SettingsError(str(path), [_NOT_LISTED])
    source = f"{PUBLICATIONS}/{path.name}"
    change_keys(table, {}, removed, source)
    new = {key: value for key, value in values.items() if key not in table and "." not in key}
    change_keys(table, {key: value for key, value in values.items() if key not in new}, (), source)
    text = _with_keys(document.as_string(), new)
    with_text(archive, name, text)
    return text


#: What is written beside `retired`, for people.
_OF_RETIREMENT = frozenset({"retired_since", "retired_reason"})


def retired_text(archive: Archive, name: str, reason: str) -> str:
    """Return what `edited_text` does, of a publication that is crawled no more from now on."""
    values: dict[str, Any] = {"retired": True, "retired_since": now().astimezone(CET).replace(tzinfo=None)}
    values |= {"retired_reason": reason.strip()} if reason.strip() else {}
    return edited_text(archive, name, values, written_of_retirement(archive, name) - {*values})


def written_of_retirement(archive: Archive, name: str) -> set[str]:
    """Return the keys about its retirement, besides that it is retired, that the file of a publication has."""
    path = own_file(archive, name)
    table: Any = next(iter(_listed(parsed(path.read_text("utf-8-sig"), str(path)))), None)
    return {key for key in _OF_RETIREMENT if table is not None and key in table}


def _with_keys(text: str, new: Mapping[str, Any]) -> str:
    """Return the text with keys added to its publication, behind its last key: comments stay above what they are about.

    Tables come behind all that there is.
    """
    document = parsed(text, PUBLICATIONS)
    table: Any = document["publication"][0]
    for key, value in new.items():
        table[key] = value
    plain_ = {key: value for key, value in new.items() if not _is_table(value)}
    lines = text.splitlines(keepends=True)
    begin = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[[publication]]")), None)
    if not plain_ or len(plain_) < len(new) or begin is None:
        return document.as_string()
    ends = (at for at in range(begin + 1, len(lines)) if lines[at].lstrip().startswith("["))
    end = next(ends, len(lines))
    while end > begin + 1 and lines[end - 1].strip()[:1] in ("", "#"):
        end -= 1
    before = "".join(lines[:end])
    before += "" if before.endswith("\n") else "\n"
    extended_text = before + text_of(plain_) + "".join(lines[end:])
    # A line that begins as a table, or a comment, may be part of a long value; then the library finds the place.
    is_same = _parsed(extended_text) == tomllib.loads(document.as_string())
    return extended_text if is_same else document.as_string()


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and any(isinstance(element, Mapping) for element in value)
    )


def change_keys(table: Any, values: Mapping[str, Any], removed: Iterable[str], source: str) -> None:
    """Remove keys from a table, and set others: `describe.project` is a key of its table `describe`.

    Raises UsageError for a key that `source` does not say, and for one of what is no table.
    """
    for key in removed:
        inner, name = _inner(table, key, source)
        if name not in inner:
            raise UsageError(f"{source} does not say {key}")
        del inner[name]
    for key, value in sorted(values.items(), key=lambda setting: "." in setting[0]):  # tables come last
        inner, name = _inner(table, key, source)
        inner[name] = value


def _inner(table: Any, key: str, source: str) -> tuple[Any, str]:
    """Return the table that a key is in, and its name there. Raises UsageError."""
    head, dot, tail = key.partition(".")
    if not dot:
        return table, key
    if head not in table:
        table[head] = {}
    if not isinstance(table[head], Mapping):
        raise UsageError(f"{source}: {head} is no table, so it has no {key}")
    return table[head], tail


def with_text(archive: Archive, name: str, text: str) -> tuple[Settings, Publication]:
    """Return the settings as they would be with this text for a publication, and the publication.

    Raises SettingsError for faults that it would bring; those that others have are none of it.
    """
    try:
        settings, _ = load(archive.settings, {name: text})
    except SettingsError as error:
        known = _faults(archive)
        faults = [fault for fault in error.faults if fault not in known]
        raise SettingsError(error.source, faults or error.faults) from None
    publication = next((publication for publication in settings.publications if publication.name == name), None)
    if publication is None:
        raise UsageError(f"the publication has another name than {name}")
    return settings, publication


def write_publication(archive: Archive, name: str, make: Callable[[], str]) -> Path:
    """Write the file of a publication with the text that `make` returns, under the lock of the settings; durable."""
    path = file_of(archive, name)
    with locks.exclusive(archive.settings_lock):
        write_into_folder(path, make().encode())
    return path


def own_file(archive: Archive, name: str) -> Path:
    """Return the file of its own that a publication has. Raises UsageError if it is in webarc.toml."""
    place = place_of(archive, name)
    if place == archive.settings.name:
        raise UsageError(
            f"{name} is kept in {archive.settings}, which people change by hand;"
            f" moved to {PUBLICATIONS}/{name}.toml as it is, commands can change it"
        )
    return file_of(archive, name)


def _faults(archive: Archive) -> tuple[str, ...]:
    try:
        load(archive.settings)
    except SettingsError as error:
        return error.faults
    return ()


def _tables(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}


def _listed(tables: Mapping[str, Any]) -> list[Any]:
    """Return the [[publication]] of a file; whatever else has that name is none."""
    listed = tables.get("publication")
    return [table for table in listed if isinstance(table, Mapping)] if isinstance(listed, list) else []


def _values(settings: Publication | CrawlSettings | DescribeSettings) -> list[tuple[str, Any]]:
    fields = [field for field in dataclasses.fields(settings) if "check" in field.metadata]
    return [(field.metadata.get("key", field.name), getattr(settings, field.name)) for field in fields]
