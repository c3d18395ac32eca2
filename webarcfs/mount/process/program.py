"""The program `mount.webarcfs`: it prefers the compiled modules, if there are any, and then runs `cli.py`.

It is a module of its own, since an import of `cli.py` also imports the modules that have a compiled form. The two forms
of a class do not mix, so none may be imported before.
"""

from __future__ import annotations

from importlib import import_module

from webarcfs.compiled import loader


def main() -> int:
    """Entry point of mount.webarcfs; returns its exit code."""
    loader.use()
    code: int = import_module("webarcfs.mount.process.cli").main()
    return code
