"""Passwords as argon2id hashes (RFC 9106). An unknown name takes as long as a wrong password."""

from __future__ import annotations

from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from agent.desk import limits
from webarcfs.archive.model.errors import UsageError

_HASHER = PasswordHasher()


def hashed(password: str) -> str:
    """Return the hash of a new password. Raises UsageError for one that is too short, or too long."""
    if not limits.PASSWORD_SHORTEST <= len(password) <= limits.PASSWORD_LONGEST:
        raise UsageError(
            f"a password has {limits.PASSWORD_SHORTEST} to {limits.PASSWORD_LONGEST} characters; several words are best"
        )
    return _HASHER.hash(password)


def matches(known: str, password: str) -> bool:
    """Return whether a password has a hash; False, after the same time, for an empty hash."""
    try:
        return _HASHER.verify(known or _nobodys(), password[: limits.PASSWORD_LONGEST]) and bool(known)
    except (Argon2Error, InvalidHashError):
        return False


@lru_cache(maxsize=1)
def _nobodys() -> str:
    return _HASHER.hash("nobody has this password")
