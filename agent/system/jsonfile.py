"""Small files of JSON that are there whole or not at all, whatever dies when."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.system.fsync import replacing


def write(path: Path, content: dict[str, Any], *, durable: bool = True) -> None:
    """Put `content` at `path` in one step. Durable: it is on the disk when this returns (fsync(2), both file and name).

    Raises OSError (the disk is full, the folder is gone); what was at `path` is there still.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.unlink(missing_ok=True)  # left by a process that died, and had our number
    try:
        with replacing(path, scratch, durable=durable) as file:
            file.write(json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")
    except OSError as error:
        if error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def read(path: Path) -> dict[str, Any] | None:
    """The content of `path`; None where there is no such file. Raises Damaged when it is no JSON object."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise Damaged(f"{path} is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise Damaged(f"{path} holds no JSON object")
    return content
