"""The loop of the fusepy adapter: libfuse 2's own, with its options, and names as they are on disk.

`serve` runs in the main thread; libfuse makes the threads that call the operations.
"""

from __future__ import annotations

import codecs
import os
from typing import Any

import fuse

from webarcfs.mount.adapters.binding import AdapterContext
from webarcfs.mount.adapters.fusepy.operations import Operations
from webarcfs.mount.adapters.fusepy.write_operations import WritingOperations
from webarcfs.mount.options import escaped

_CODEC = "webarcfs-filenames"


def serve(mount: AdapterContext) -> None:
    """Mount and answer until it is unmounted. Raises RuntimeError when libfuse could not mount."""
    # fusepy decodes names strictly, and a name that is no UTF-8 would be an error instead of a name nobody has.
    codecs.register(lambda name: _FILENAMES if name == _CODEC.replace("-", "_") else None)
    fuse.FUSE(
        WritingOperations(mount, mount.additions) if mount.additions is not None else Operations(mount),
        os.fspath(mount.point),
        raw_fi=True,
        encoding=_CODEC,
        foreground=True,
        use_ino=True,
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
        nonempty=True,
        hard_remove=True,  # or libfuse renames behind our back what is removed or replaced while it is open
        big_writes=True,
        atomic_o_trunc=True,
        **{name: escaped(value) for name, value in mount.options.items()},
    )


def _encode(text: str, _errors: str = "strict") -> tuple[bytes, int]:
    return text.encode("utf-8", "surrogateescape"), len(text)


def _decode(raw: Any, _errors: str = "strict") -> tuple[str, int]:
    return bytes(raw).decode("utf-8", "surrogateescape"), len(raw)


_FILENAMES = codecs.CodecInfo(_encode, _decode, name=_CODEC)
