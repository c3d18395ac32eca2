"""Who writes: the user behind a request, as commits name authors."""

from __future__ import annotations

import pwd
import socket
from dataclasses import dataclass
from functools import lru_cache

from webarcfs.archive.model.addition import Author


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of a process that asks."""

    uid: int
    gid: int


@lru_cache(maxsize=1000)
def author(uid: int) -> Author:
    """`name <login@host>`: the full name if there is one. A number without a user is `uid<n>`."""
    try:
        user = pwd.getpwuid(uid)
        login, name = user.pw_name, user.pw_gecos.partition(",")[0]
    except KeyError:
        login, name = f"uid{uid}", ""
    return Author(_clean(name) or login, f"{_clean(login)}@{_clean(socket.gethostname()) or 'localhost'}")


def _clean(text: str) -> str:
    """`text` without what an author's line of a commit cannot hold."""
    return "".join(each for each in text if each.isprintable() and each not in "<>").strip()
