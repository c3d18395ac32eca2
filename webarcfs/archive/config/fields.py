"""Fields of settings: a dataclass says for each its check, default and help; here a table of TOML becomes one. Pure."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeVar

from webarcfs.archive.config import validators

_T = TypeVar("_T")


def setting(check: validators.Check, default: Any, explain: str, key: str = "", words: int | None = None) -> Any:
    """Return a field; `key` is its name in TOML where that is a word of Python.

    `words`: people may also write it in words; the number is the one that `unlimited` stands for.
    """
    told = {"check": check, "help": explain, **({"key": key} if key else {})}
    return field(default=default, metadata=told if words is None else {**told, "words": words})


def tables(kind: type[_T]) -> validators.Check:
    """Return a check for an array of tables, each the settings of a dataclass whose first field is required."""

    def check(value: Any) -> tuple[_T, ...]:
        first = dataclasses.fields(kind)[0].name  # type: ignore[arg-type] # it is a dataclass
        if not isinstance(value, list) or not all(isinstance(each, dict) and each.get(first) for each in value):
            raise ValueError(f"write it with two brackets, [[…]], and `{first} = …` in each")
        faults: list[str] = []
        found = tuple(read_table(kind, each, "", faults) for each in value)
        if faults:
            raise ValueError("; ".join(faults))
        return found

    return check


def required(check: validators.Check) -> Any:
    """Return a field without a default."""
    return field(metadata={"check": check, "help": ""})


def read_table(kind: type[_T], table: Any, where: str, faults: list[str], base: _T | None = None) -> _T:
    """Return a settings dataclass from a table over `base`; a fault is added to `faults`, and the default used."""
    known = (each for each in dataclasses.fields(kind) if "check" in each.metadata)  # type: ignore[arg-type]
    fields = {each.metadata.get("key", each.name): each for each in known}
    values: dict[str, Any] = {}
    for key, value in as_table(table, where, faults).items():
        label = f"{where}.{key}" if where else key
        if key not in fields:
            faults.append(f"{label}: there is no such setting{_nearest(key, fields)}")
            continue
        try:
            values[fields[key].name] = fields[key].metadata["check"](value)
        except ValueError as error:
            faults.append(f"{label}: {error}")
    return dataclasses.replace(base, **values) if base is not None else kind(**values)  # type: ignore[type-var]


def as_table(value: Any, where: str, faults: list[str]) -> dict[str, Any]:
    """Return a table; a fault is added for anything else, and the table is empty."""
    if isinstance(value, dict):
        return value
    faults.append(f"{where}: is not a table")
    return {}


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(key, known, 1)
    return f"; did you mean {close[0]}?" if close else ""
