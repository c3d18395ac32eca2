"""The program `mount.webarcfs`: has the compiled form of the modules in front, if there is one, and then runs `cli.py`.

A module of its own, since whatever imports `cli.py` imports the modules that it is about.
"""

from __future__ import annotations

from importlib import import_module

from webarcfs.native import loader


def main() -> int:
    """Entry point of mount.webarcfs; returns its exit code."""
    loader.use()
    code: int = import_module("webarcfs.mount.process.cli").main()
    return code
