"""`python -m tests.structure [FOLDER]`: the folders of webarcfs and agent, their modules, the imports between folders.

FOLDER is another checkout, to compare with. import-linter holds the order of the folders; this shows it.
`--arrows` names the modules at both ends of each arrow.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.support.sources import ROOT, Sources


def main() -> None:
    """Print a line for each folder, and the sums."""
    parser = argparse.ArgumentParser(prog="python -m tests.structure", description=__doc__)
    parser.add_argument("--arrows", action="store_true", help="name the modules at both ends of each arrow")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT, help="another checkout")
    options = parser.parse_args()
    with_ends, sources = options.arrows, Sources(options.folder)
    if not sources.modules:
        parser.error(f"{options.folder} is no checkout: it has no webarcfs and no agent")
    folders: dict[str, list[str]] = {}
    for module in sources.modules:
        folders.setdefault(sources.folder_of(module), []).append(module)
    between = sources.arrows()
    for folder in sorted(folders):
        modules = [module for module in folders[folder] if module != folder]
        lines = sum(len(sources.modules[module].read_text("utf-8").splitlines()) for module in folders[folder])
        to = sorted(end for start, end in between if start == folder)
        print(f"{folder:36}{len(modules):3} modules {lines:6,} lines -> {', '.join(to) or '-'}")
        for end in to if with_ends else ():
            for module, name in sorted(set(between[folder, end])):
                print(f"{'':8}{module} -> {name}")
    widest = max(len(modules) - (folder in modules) for folder, modules in folders.items())
    print(
        f"{len(folders)} folders, {len(sources.modules)} modules, {len(between)} arrows between folders, "
        f"{widest} modules in the widest"
    )


if __name__ == "__main__":
    main()
