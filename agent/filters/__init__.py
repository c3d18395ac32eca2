"""Filters: decide which documents are kept (/Fi-1/ … /Fi-3/). This module makes the chain; the others are filters.

A filter is a function `keep(document) -> bool`; if its parameter is named `path`, it gets a file instead. Its name is a
module of this package (`mime`), `package.module:function`, or a file, `/path/to/module.py:function`. It may take a
second parameter `settings`: the content of `filters/<module>.toml` (/Fi-2/), converted by the module's function
`settings` if it has one.

Public: `chain`, and `Document` for the annotations of filters.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from agent.filters import mime
from agent.pipeline.domain_run import Document
from webarcfs.archive.config.settings import Profile
from webarcfs.archive.model.errors import SettingsError

Keep = Callable[[Document], bool]


def chain(names: Sequence[str], folder: Path, profile: Profile | None) -> list[tuple[str, Keep]]:
    """Return the filters of a crawl with their names, the publication's profile first.

    Raises one SettingsError for all filters that cannot be loaded or whose settings are wrong.
    """
    filters: list[tuple[str, Keep]] = []
    faults: list[str] = []
    if profile is not None:
        filters.append(("profile", lambda document: mime.keep(document, profile)))
    for name in names:
        try:
            filters.append((name, _load(name, folder)))
        except SettingsError as error:
            faults += [f"{error.source}: {fault}" for fault in error.faults]
    if faults:
        raise SettingsError("filters", [fault.removeprefix("filters: ") for fault in faults])
    return filters


def _load(name: str, folder: Path) -> Keep:
    module_name, _, function_name = name.partition(":")
    try:
        module = _module(name)
        function = getattr(module, function_name or "keep")
        parameters = list(inspect.signature(function).parameters)
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:  # foreign code may raise any exception
        raise SettingsError("filters", [f"{name}: cannot be loaded: {_words(error)}"]) from None
    if "settings" in parameters:
        last = Path(module_name).stem if _is_file(module_name) else module_name.rpartition(".")[2]
        settings = _settings(module, folder / f"{last}.toml")
        return _adapted(function, parameters[0], {"settings": settings})
    return _adapted(function, parameters[0] if parameters else "", {})


def _module(name: str) -> ModuleType:
    """Return the module of a filter, found by its file, by its name, or in this package."""
    module_name, colon, _ = name.partition(":")
    if _is_file(module_name):
        return _from_file(Path(module_name).expanduser())
    return importlib.import_module(module_name if colon or "." in module_name else f"{__name__}.{module_name}")


def _is_file(module_name: str) -> bool:
    return module_name.endswith(".py") and "/" in module_name


def _from_file(path: Path) -> ModuleType:
    """Return the module in a file, executed once per process, under a name that no other module has."""
    if not path.is_absolute():
        raise SettingsError("filters", [f"{path}: give the whole path of a filter's file, from / on"])
    name = f"webarc_filter_{hashlib.sha256(bytes(path)).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "a path that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it is executed: dataclasses look up their module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if not isinstance(error, ImportError | OSError) else str(error)


def _adapted(function: Callable[..., bool], first: str, named: dict[str, Any]) -> Keep:
    if first == "path":
        return lambda document: function(document.path, **named)
    return lambda document: function(document, **named)


def _settings(module: Any, path: Path) -> Any:
    try:
        table = tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        table = {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(str(path), [str(error)]) from None
    understand = getattr(module, "settings", None)
    try:
        return understand(table) if understand is not None else table
    except ValueError as error:
        raise SettingsError(str(path), str(error).splitlines()) from None
