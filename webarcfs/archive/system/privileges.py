"""Privileges of a server's process: root becomes the archive's owner after it has done what only root can do.

That is mounting, and binding of low ports. Git refuses repositories of another user, and so do mount and reading room.
No state.
"""

from __future__ import annotations

import grp
import importlib
import os
import pwd
import resource

from webarcfs.archive.model.errors import UsageError

#: Modules that Python imports on first use only.
_LATER = ("_strptime", "concurrent.futures.thread", "encodings.idna", "linecache", "lxml.etree", "traceback")


def allow_many_files() -> None:
    """Raise the limit of open files to the hard limit: each file that is being written takes one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def become(uid: int, gid: int) -> None:
    """Switch the whole process, all its threads, to this user for good."""
    for name in _LATER:  # this user may not be allowed to read Python's folder
        importlib.import_module(name)
    try:
        user = pwd.getpwuid(uid)
        os.initgroups(user.pw_name, gid)
        os.environ.update(HOME=user.pw_dir, USER=user.pw_name, LOGNAME=user.pw_name)
    except KeyError:  # a number without a name, common in containers
        os.setgroups([gid])
        os.environ.update(HOME="/")
    os.setgid(gid)
    os.setuid(uid)


def group(name: str) -> int:
    """Return the number of a group, given by name or number. Raises UsageError for an unknown name."""
    if name.isascii() and name.isdecimal():
        return int(name)
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise UsageError(f"there is no group {name!r}; `getent group` lists them") from None
