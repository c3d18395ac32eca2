"""The name of a reader in the paths of replay: `/~<token>/web/…`. Pure.

Replay neither sets nor reads cookies. A reader whom a trusted proxy names to the room gets the name signed, with an end
within twelve hours; workers share the key. A token that is not valid any more names nobody: the public.
"""

from __future__ import annotations

from itsdangerous import BadData, URLSafeTimedSerializer

from webarcfs.gate.gate import Reader

#: Seconds that a token is valid.
LONGEST = 12 * 3600
_SALT = "webarcfs reader"


def prefix_of(reader: Reader, key: str) -> str:
    """Return the beginning of the paths of replay for a reader: nothing for the public."""
    return f"/~{URLSafeTimedSerializer(key, salt=_SALT).dumps(reader.name)}" if reader.name else ""


def split(path: bytes, key: str) -> tuple[Reader, str, bytes]:
    """Return the reader of a raw path, the token's part of it, and the rest."""
    if not path.startswith(b"/~"):
        return Reader(), "", path
    token, slash, rest = path[2:].partition(b"/")
    try:
        name = URLSafeTimedSerializer(key, salt=_SALT).loads(token.decode("ascii", "replace"), max_age=LONGEST)
    except BadData:
        return Reader(), "", slash + rest
    reader = Reader(name) if isinstance(name, str) else Reader()
    return reader, f"/~{token.decode('ascii')}" if reader.name else "", slash + rest
