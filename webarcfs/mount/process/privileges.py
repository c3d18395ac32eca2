"""What the mount's process may do. From root to the archive's owner, once it is mounted: git refuses repositories of
somebody else, and so do we.

What only root can do, unmounting, is left to the keeper (keeper.py). No state.
"""

from __future__ import annotations

import grp
import importlib
import os
import pwd
import resource

from webarcfs.archive.model.errors import UsageError

#: Modules that Python imports only when something of them is used for the first time.
_LATER = ("_strptime", "concurrent.futures.thread", "encodings.idna", "linecache", "lxml.etree", "traceback")


def allow_many_files() -> None:
    """Let the process have as many files open as its hard limit says: each file that is being written takes one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def become(uid: int, gid: int) -> None:
    """Make the whole process, all its threads, run as this user for good."""
    for name in _LATER:  # this user may not be allowed to read where Python lies
        importlib.import_module(name)
    try:
        user = pwd.getpwuid(uid)
        os.initgroups(user.pw_name, gid)
        os.environ.update(HOME=user.pw_dir, USER=user.pw_name, LOGNAME=user.pw_name)
    except KeyError:  # a number without a name, as in containers
        os.setgroups([gid])
        os.environ.update(HOME="/")
    os.setgid(gid)
    os.setuid(uid)


def group(name: str) -> int:
    """The number of a group, given by name or number. Raises UsageError when there is none of that name."""
    if name.isascii() and name.isdecimal():
        return int(name)
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise UsageError(f"there is no group {name!r}; `getent group` lists them") from None
