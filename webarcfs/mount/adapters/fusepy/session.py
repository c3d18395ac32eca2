"""The loop of the fusepy adapter: libfuse 2's own, with its options, and names as bytes of the disk.

`serve` runs in the main thread; libfuse starts the threads that call the operations.
"""

from __future__ import annotations

import codecs
import os
import signal
from typing import Any

import fuse

from webarcfs.mount.adapters.binding import AdapterContext
from webarcfs.mount.adapters.fusepy.operations import Operations
from webarcfs.mount.adapters.fusepy.write_operations import WritingOperations
from webarcfs.mount.options import escaped

_CODEC = "webarcfs-filenames"


def serve(mount: AdapterContext) -> None:
    """Mount, and answer requests until the mount is unmounted. Raises RuntimeError if libfuse could not mount."""
    # fusepy decodes names strictly: a name that is not UTF-8 would be an error instead of ENOENT.
    codecs.register(lambda name: _FILENAMES if name == _CODEC.replace("-", "_") else None)
    try:
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
            hard_remove=True,  # else libfuse renames open files that are removed or replaced, unseen by the mount
            big_writes=True,
            atomic_o_trunc=True,
            **{name: escaped(value) for name, value in mount.options.items()},
        )
    finally:
        # libfuse makes it deadly again when it ends: the last commit must survive a git that dies on a full disk.
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _encode(text: str, _errors: str = "strict") -> tuple[bytes, int]:
    return text.encode("utf-8", "surrogateescape"), len(text)


def _decode(raw: Any, _errors: str = "strict") -> tuple[str, int]:
    return bytes(raw).decode("utf-8", "surrogateescape"), len(raw)


_FILENAMES = codecs.CodecInfo(_encode, _decode, name=_CODEC)
