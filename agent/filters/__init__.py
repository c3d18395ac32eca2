"""Filters: which documents are kept (/Fi-1/ … /Fi-3/). This module makes the chain; the others are filters.

A filter is a function `keep(document) -> bool`, or one whose parameter is called `path` and is given a file. It is
named by a module of this package (`mime`) or as `package.module:function`. It may take a second parameter `settings`:
what its file `filters/<module>.toml` says (/Fi-2/), as its module's function `settings`, if any, understands it.
"""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent.document import Document
from agent.filters import mime
from webarcfs.archive.config import Profile
from webarcfs.archive.errors import SettingsError

Keep = Callable[[Document], bool]


def chain(names: Sequence[str], folder: Path, profile: Profile | None) -> list[tuple[str, Keep]]:
    """The filters of a crawl with their names, the publication's profile first.

    Raises SettingsError for a filter that cannot be loaded or whose settings are wrong.
    """
    filters: list[tuple[str, Keep]] = []
    if profile is not None:
        filters.append(("profile", lambda document: mime.keep(document, profile)))
    return filters + [(name, _load(name, folder)) for name in names]


def _load(name: str, folder: Path) -> Keep:
    module_name, colon, function_name = name.partition(":")
    qualified = module_name if colon or "." in module_name else f"{__name__}.{module_name}"
    try:
        module = importlib.import_module(qualified)
        function = getattr(module, function_name or "keep")
        parameters = list(inspect.signature(function).parameters)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise SettingsError("filters", [f"{name}: cannot be loaded: {error}"]) from None
    if "settings" in parameters:
        settings = _settings(module, folder / f"{module_name.rpartition('.')[2]}.toml")
        return _adapted(function, parameters[0], {"settings": settings})
    return _adapted(function, parameters[0] if parameters else "", {})


def _adapted(function: Callable[..., bool], first: str, named: dict[str, Any]) -> Keep:
    if first == "path":
        return lambda document: function(document.path, **named)
    return lambda document: function(document, **named)


def _settings(module: Any, path: Path) -> Any:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        table = {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(str(path), [str(error)]) from None
    understand = getattr(module, "settings", None)
    try:
        return understand(table) if understand is not None else table
    except ValueError as error:
        raise SettingsError(str(path), str(error).splitlines()) from None
