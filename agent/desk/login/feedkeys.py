"""The secrets in addresses of feeds: made here, kept as a hash in people.toml, as a password is. Pure.

A secret has 256 random bits, so that no hash that takes long is needed: each request of a feed is judged by it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from webarcfs.archive.catalogue.people import Person

_KIND = "sha256:"


def made() -> tuple[str, str]:
    """Return a new secret, and what is kept of it."""
    secret = secrets.token_urlsafe(32)
    return secret, _hashed(secret)


def is_of(person: Person, secret: str) -> bool:
    """Return whether a secret is the person's."""
    return bool(person.feed) and hmac.compare_digest(person.feed.encode(), _hashed(secret).encode())


def _hashed(secret: str) -> str:
    return _KIND + hashlib.sha256(b"webarcfs feed " + secret.encode("utf-8", "replace")).hexdigest()
