"""The request of a job, as `definition.json` in its folder. With it, any process can resume the job."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.jobfolder.jobstate import VERSION
from agent.system import jsonfile
from webarcfs.archive.config import settings as config
from webarcfs.archive.config import validators
from webarcfs.archive.config.interval import Interval
from webarcfs.archive.config.settings import CrawlSettings, Profile, Publication
from webarcfs.archive.model.errors import Damaged, WebarcError

FILE = "definition.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The publication as of the job's start. `instances` is the number of wgets that the archive allows (/Cr-1.3/).

    `record` is the record that was there before the job, `occasion` why it was begun; empty for a regular job.
    """

    publication: Publication
    profile: Profile | None = None
    accept_shrink: bool = False
    instances: int = 0
    record: str = ""
    occasion: str = ""


def save(folder: Path, definition: Definition) -> None:
    """Write it down, durably. When readers may see the captures, and why, is what was said when the job began."""
    publication, begun = definition.publication, None
    with contextlib.suppress(Damaged):  # what cannot be read is replaced
        begun = load(folder)
    if begun is not None:
        said = begun.publication
        publication = dataclasses.replace(publication, release=said.release, closed_for=said.closed_for)
    content = {
        "version": VERSION,
        **settings_of(publication, definition.profile),
        "accept_shrink": definition.accept_shrink,
        "instances": definition.instances,
        "record": (begun or definition).record,
        "occasion": (begun or definition).occasion,
    }
    jsonfile.write(folder / FILE, content)


def settings_of(publication: Publication, profile: Profile | None) -> dict[str, Any]:
    """Return all settings of a publication as JSON: its own, the crawl's, its profile's."""
    return {
        "publication": _plain(publication),
        "crawl": _plain(publication.crawl),
        "profile": None if profile is None else _plain(profile),
    }


def load(folder: Path) -> Definition | None:
    """Return the definition in a job's folder; None if it has none. Raises Damaged if it cannot be parsed."""
    content = jsonfile.read(folder / FILE)
    if content is None:
        return None
    if content.get("version") != VERSION:
        raise Damaged(f"{folder} is of another version of webarcfs; it is left alone, finish or remove it by hand")
    return _definition(content, str(folder / FILE))


def parsed(text: bytes) -> Definition:
    """Return what `settings_of` told of a publication, from its JSON. Raises Damaged if it cannot be parsed."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise Damaged(f"settings of a publication are no JSON: {error}") from None
    return _definition({"accept_shrink": False, "instances": 0, **content}, "settings of a publication")


def _definition(content: dict[str, Any], where: str) -> Definition:
    try:
        crawl = config.override(CrawlSettings(), content["crawl"], where)
        profile = content["profile"]
        return Definition(
            publication=Publication(**_checked(Publication, content["publication"]), crawl=crawl),
            profile=None if profile is None else Profile(**_checked(Profile, profile)),
            accept_shrink=bool(content["accept_shrink"]),
            instances=int(content["instances"]),
            record=str(content.get("record", "")),
            occasion=str(content.get("occasion", "")),
        )
    except (KeyError, TypeError, ValueError, WebarcError) as error:
        raise Damaged(f"{where} is no definition of a job: {error}; it is left alone") from None


def _plain(settings: Publication | CrawlSettings | Profile) -> dict[str, Any]:
    """Return the settings that have a check and a value, as JSON. `start` is left out: only the scheduler needs it."""
    values: dict[str, Any] = {}
    for each in dataclasses.fields(settings):
        value = getattr(settings, each.name)
        if "check" in each.metadata and each.name != "start" and value not in (None, ""):
            unlimited = value != each.default and value == each.metadata.get("words") == config.UNLIMITED
            values[each.name] = validators.UNLIMITED_WORD if unlimited else _as_json(value)
    return values


def _as_json(value: Any) -> Any:
    if isinstance(value, Interval):
        return str(value)
    if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
        return [_table(each) for each in value]
    return value


def _table(item: Any) -> dict[str, Any]:
    """Return an exclusion or a rule as its table in TOML."""
    found = {each.metadata.get("key", each.name): getattr(item, each.name) for each in dataclasses.fields(item)}
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in found.items()
        if value not in (None, "")
    }


def _checked(kind: type[Publication] | type[Profile], values: dict[str, Any]) -> dict[str, Any]:
    checks = {each.name: each.metadata["check"] for each in dataclasses.fields(kind) if "check" in each.metadata}
    return {name: checks[name](value) for name, value in values.items()}
