"""`/options`: the archive's settings in webarc.toml, in force from the next job on; comments in the file stay."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from agent.desk.look import words
from agent.desk.office_views import OptionsPage
from agent.desk.pages import fields
from agent.desk.shared.visit import DeskVisit
from agent.desk.views import FieldSet
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import settings_file, toml_file
from webarcfs.archive.config.settings import (
    BackupSettings,
    CrawlSettings,
    DescribeSettings,
    IndexSettings,
    MountSettings,
    ReleaseSettings,
    Settings,
)
from webarcfs.archive.model.errors import Busy

#: Table of webarc.toml (empty: its top) → heading (a msgid), its class, and whether it is unfolded.
TABLES: dict[str, tuple[str, type, bool]] = {
    "": (words.msgid("Release"), ReleaseSettings, True),
    "crawl": (words.msgid("Crawler"), CrawlSettings, True),
    "describe": (words.msgid("Description"), DescribeSettings, True),
    "backup": (words.msgid("Backup"), BackupSettings, True),
    "index": (words.msgid("Search and links"), IndexSettings, False),
    "mount": (words.msgid("Mount"), MountSettings, False),
}
#: Attributes of `Settings` by table.
_OF = {"": "release", "crawl": "crawl", "describe": "describe", "backup": "backup", "index": "index", "mount": "mount"}


def show(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the settings in force, as a form for those who may change them."""
    settings, faults = visit.desk.settings_and_faults()
    is_open = visit.may(Right.OPTIONS) and not faults
    sets = []
    for table, (heading, kind, unfolded) in TABLES.items():
        known = getattr(settings, _OF[table])
        values = {each.name: getattr(known, each.name) for each in dataclasses.fields(known)}
        prefix = f"{table}." if table else ""
        sets.append(
            FieldSet(heading, fields.of_settings(visit, kind, values, prefix=prefix, is_open=is_open), unfolded)
        )
    path = visit.desk.archive.settings
    view = OptionsPage(tuple(sets), _state(visit), is_open, str(path), "\n".join(faults))
    return visit.page(view)


def _state(visit: DeskVisit) -> str:
    return str(settings_file.identity(visit.desk.archive.settings)[:1])


def save(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Write the settings that differ from those in force. Raises SettingsError with all faults, and writes nothing."""
    settings = visit.desk.settings()
    archive = visit.desk.archive
    with toml_file.changing(archive.settings, archive.settings_lock) as document:
        if visit.form.token.state != _state(visit):
            said = words.msgid("webarc.toml was changed meanwhile. Nothing was saved; what you typed is still here.")
            raise Busy(visit.desk.said(said, visit.language))
        changed = _changed(visit, settings)
        for table, values in changed.items():
            target: Any = document if not table else document.setdefault(table, {})
            for key, value in values.items():
                if value in ("", None):
                    target.pop(key, None)
                else:
                    target[key] = value
        settings_file.parse(_text(document), str(archive.settings))
    said = words.msgid("The settings were saved.") if changed else words.msgid("Nothing was different.")
    return visit.led("/options", said)


def _text(document: Any) -> str:
    text = str(document.as_string())
    tomllib.loads(text)
    return text


def _changed(visit: DeskVisit, settings: Settings) -> dict[str, dict[str, Any]]:
    """Return what was typed and differs from what holds, by table."""
    found: dict[str, dict[str, Any]] = {}
    for table, (_, kind, _unfolded) in TABLES.items():
        known = getattr(settings, _OF[table])
        prefix = f"{table}." if table else ""
        for each in dataclasses.fields(kind):
            name = f"{prefix}{each.metadata.get('key', each.name)}"
            if "check" not in each.metadata or not visit.form.has(name):
                continue
            typed = visit.form.one(name)
            if typed != fields.as_text(getattr(known, each.name)).strip():
                value = fields.from_text(kind, each.name, typed)
                found.setdefault(table, {})[each.metadata.get("key", each.name)] = value
    return found
