"""Changes a TOML file that people edit, too: comments and order stay; the new file replaces the old one at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webarcfs.archive.model.errors import SettingsError
from webarcfs.archive.system import locks
from webarcfs.archive.system.fsync import replacing

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


@contextmanager
def changing(path: Path, lock: Path, mode: int = 0o644) -> Iterator[TOMLDocument]:
    """Yield a file's document under its lock, empty for a new one; what was changed is written, if nothing was raised.

    Raises SettingsError if the file is no TOML, OSError.
    """
    import tomlkit  # noqa: PLC0415 # slow to load, and only commands that change a file need it
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    with locks.exclusive(lock):
        try:
            document = tomlkit.parse(path.read_text("utf-8-sig"))
        except FileNotFoundError:
            document = tomlkit.document()
        except (TOMLKitError, UnicodeDecodeError) as error:
            raise SettingsError(str(path), [f"not TOML: {error}"]) from None
        yield document
        write(path, tomlkit.dumps(document).encode(), mode)


def parsed(text: str, source: str) -> TOMLDocument:
    """Return the document that a text spells, with its comments. Raises SettingsError."""
    import tomlkit  # noqa: PLC0415
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise SettingsError(source, [f"not TOML: {error}"]) from None


def text_of(tables: Mapping[str, Any]) -> str:
    """Return tables as TOML."""
    import tomlkit  # noqa: PLC0415

    return tomlkit.dumps(tables)


def write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace a file durably, under the caller's lock. Raises OSError."""
    scratch = path.with_name(f".{path.name}.new")
    scratch.unlink(missing_ok=True)  # left by a process that was killed
    with replacing(path, scratch) as file:
        scratch.chmod(mode)
        file.write(content)
