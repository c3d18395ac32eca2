"""What a request that writes is about, read from the arguments of libfuse's callbacks: for the reason of a refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: An inode, the name in it (or none), the handle (or 0).
Subject = tuple[int, bytes, int]


def _name_in(parent: int, name: bytes, *_: Any) -> Subject:
    return parent, name, 0


def _second_name(_first: Any, parent: int, name: bytes, *_: Any) -> Subject:
    return parent, name, 0


def _new_name(_parent: int, _name: bytes, new_parent: int, new_name: bytes, *_: Any) -> Subject:
    return new_parent, new_name, 0


def _file(inode: int, *rest: Any) -> Subject:
    return inode, b"", rest[-1].contents.fh if rest and rest[-1] else 0


def _inode(inode: int, *_: Any) -> Subject:
    return inode, b"", 0


#: Operation → what its arguments, without the request, are about.
SUBJECTS: Mapping[str, Callable[..., Subject]] = {
    "create": _name_in,
    "mkdir": _name_in,
    "mknod": _name_in,
    "unlink": _name_in,
    "rmdir": _name_in,
    "symlink": _second_name,
    "link": _second_name,
    "rename": _new_name,
    "open": _inode,
    "setattr": _file,
    "write": _file,
    "fallocate": _file,
    "flush": _file,
    "fsync": _file,
    "fsyncdir": _inode,
    "setxattr": _inode,
    "removexattr": _inode,
}
