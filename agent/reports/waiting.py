"""The revisits of an import that found nothing: they wait in its report until a later import has what they repeat.

`waiting.jsonl.gz` has a line of JSON for each. The file is there only while some wait.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from webarcfs.archive.model.errors import Damaged

NAME = "waiting.jsonl.gz"
_FIELDS = ("url", "time", "fraction", "digest", "origin", "seen")


def write(folder: Path, revisits: Iterable[dict[str, Any]]) -> None:
    """Write the revisits that wait into the folder of a report, durably; without any there is no file."""
    path, scratch = folder / NAME, folder / f".{NAME}"
    is_empty = True
    with (
        scratch.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed,
    ):
        for revisit in revisits:
            is_empty = False
            fields = {name: revisit[name] for name in _FIELDS}
            fields["head"] = base64.b64encode(revisit["head"]).decode()
            packed.write(json.dumps(fields).encode() + b"\n")
        packed.close()
        os.fsync(file.fileno())
    if is_empty:
        scratch.unlink()
        path.unlink(missing_ok=True)
    else:
        scratch.rename(path)


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the revisits that wait in the folder of a report. Raises Damaged."""
    try:
        with gzip.open(folder / NAME, "rb") as file:
            for line in file:
                revisit = json.loads(line)
                yield revisit | {"head": base64.b64decode(revisit["head"])}
    except FileNotFoundError:
        return
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise Damaged(f"{folder / NAME} cannot be read: {error}; remove it to go on without its revisits") from None


def folders(reports: Path) -> list[Path]:
    """Return the folders of the reports with revisits that wait."""
    return sorted(path.parent for path in reports.glob(f"[!.]*/{NAME}"))


def keep(folder: Path, still_waits: Callable[[dict[str, Any]], bool]) -> None:
    """Remove from a report the revisits that wait no more."""
    write(folder, filter(still_waits, read(folder)))
