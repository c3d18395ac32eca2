"""The webarc.toml of a new archive: every setting with its default, commented out. Pure.

It is written from the classes of the settings, so it says what holds. A line `#key = value` becomes a setting without
its `#`; prose has a blank behind the `#`.
"""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from webarcfs.archive.config.settings import Settings
from webarcfs.archive.config.validators import Interval

_WIDTH = 100
_HEAD = """\
Settings of this archive. What stands here behind a # holds already: remove the # before a setting to change it, and
keep its heading in brackets. `webarc-agent status` reports faults. The agent reads the file again when it changes."""
_PUBLICATIONS = """\
Sites that are crawled again and again. `webarc-agent publication add` writes one into publications.d/, a file each;
the desk does as well. They may also stand here. A publication may have each setting of [crawl], for itself."""
_PROFILES = "Named lists of MIME types, for `profile` of a publication."
#: Of these there may be several, with names of their own.
_EXAMPLES = """
#[profile.pages]
#include = ["text/*", "image/*"]
#exclude = []

#[[publication]]
#name = "example"
#urls = ["https://www.example.org/"]
#interval = "1 week"
"""
_SETTING = re.compile(r"^#(?=\S)", re.MULTILINE)


def sample_settings() -> str:
    """Return the file."""
    tables = {field.name: field.default for field in dataclasses.fields(Settings)}
    lines = [*_prose(_HEAD), "", *_of_table(tables.pop("release"))]
    for name, table in tables.items():
        if dataclasses.is_dataclass(table):
            lines += ["", f"[{name}]", *_of_table(table)]
    examples = _EXAMPLES.split("\n\n")
    for heading, example in zip((_PROFILES, _PUBLICATIONS), examples, strict=True):
        lines += ["", *_prose(heading), example.strip()]
    return "\n".join(lines) + "\n"


def uncommented(text: str) -> str:
    """Return such a file with all its settings in force."""
    return _SETTING.sub("", text)


def _of_table(table: Any) -> Iterator[str]:
    for field in dataclasses.fields(table):
        if "check" not in field.metadata:
            continue
        words = getattr(field.metadata["check"], "words", ())
        choice = f" One of {', '.join(words)}." if words else ""
        yield from _prose(f"{field.metadata['help']}{choice}")
        key = field.metadata.get("key", field.name)
        value = getattr(table, field.name)
        yield f"# {key} is not set" if value is None else f"#{key} = {_toml(value)}"


def _prose(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False)


def _toml(value: Any) -> str:
    """Return a default as TOML; JSON spells texts, numbers and lists alike."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(str(value) if isinstance(value, Interval) else value, ensure_ascii=False)
