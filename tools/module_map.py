"""The table of modules that were joined: `tools/modules.map`, read and checked.

A line in brackets names a folder, and behind `<` the folders of before in which the names below are looked up. Each
line below it names a module, and behind `:` the modules of before that it joins, in the order in which they are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ModuleMap:
    """Dotted names of before → dotted names of now: of modules, and of folders."""

    modules: dict[str, str]
    folders: dict[str, str]

    def joined(self) -> dict[str, list[str]]:
        """Module of now → those of before, in the order of the table."""
        parts: dict[str, list[str]] = {}
        for before, now in self.modules.items():
            parts.setdefault(now, []).append(before)
        return parts


def read(table: Path, known: set[str]) -> ModuleMap:
    """Read the table; `known` are the modules of before. Raises ValueError for a name that is not one of them."""
    modules: dict[str, str] = {}
    folders: dict[str, str] = {}
    folder, sources = "", [""]
    for line in table.read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if heading := re.fullmatch(r"\[([\w.]+)(?: < (.+))?\]", line):
            folder = heading[1]
            sources = (heading[2] or folder).split()
            folders |= dict.fromkeys(sources, folder)
            continue
        name, _, parts = line.partition(":")
        for part in parts.split() or [name]:
            places = [part] if "." in part else [f"{source}.{part}" for source in sources]
            there = [place for place in places if place in known and place not in modules]
            if not there:
                raise ValueError(f"{line!r}: there is no module {part}, or it is joined twice")
            modules[there[0]] = f"{folder}.{name}"
    return ModuleMap(modules, folders)
