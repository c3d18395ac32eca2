"""Small JSON files, replaced atomically: after a crash a file is whole or absent."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.system.fsync import replacing


def write(path: Path, content: dict[str, Any], *, durable: bool = True) -> None:
    """Replace `path` by `content` atomically. Durable: it is on the disk on return (fsync(2) of file and folder).

    Raises OSError (the disk is full, the folder does not exist); `path` is then unchanged.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.unlink(missing_ok=True)  # left by a dead process with the same process id
    try:
        with replacing(path, scratch, durable=durable) as file:
            file.write(json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")
    except OSError as error:
        if error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def read(path: Path) -> dict[str, Any] | None:
    """Return the content of `path`; None if the file does not exist. Raises Damaged if it is no JSON object."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise Damaged(f"{path} is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise Damaged(f"{path} holds no JSON object")
    return content
