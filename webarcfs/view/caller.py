"""Authors of additions: the user behind a request, as commits name authors."""

from __future__ import annotations

import pwd
import socket
from dataclasses import dataclass
from functools import lru_cache

from webarcfs.archive.model.addition import Author


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of the process that sent a request."""

    uid: int
    gid: int


@lru_cache(maxsize=1000)
def author(uid: int) -> Author:
    """Return `name <login@host>`, with the full name if there is one. A number without a user is `uid<n>`."""
    try:
        user = pwd.getpwuid(uid)
        login, name = user.pw_name, user.pw_gecos.partition(",")[0]
    except KeyError:
        login, name = f"uid{uid}", ""
    return Author(_clean(name) or login, f"{_clean(login)}@{_clean(socket.gethostname()) or 'localhost'}")


def _clean(text: str) -> str:
    """Return `text` without the characters that are invalid in a commit's author line."""
    return "".join(each for each in text if each.isprintable() and each not in "<>").strip()
