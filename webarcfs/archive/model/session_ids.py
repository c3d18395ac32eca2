"""Session ids in URLs: by them one page has another URL for each visitor and each crawl. Pure.

A server that knows a visitor by no cookie writes an id into all links: as a parameter of the path
(`/a;jsessionid=…`), of the query (`?PHPSESSID=…`), or as a segment (`/(S(…))/`, ASP.NET). `SessionIds` takes them out
of canonical URLs. Names that other things have as well, such as `sid`, count only where the value looks like an id.
"""

from __future__ import annotations

import re

from webarcfs.archive.model.urls import canonical

#: What the setting `session_parameters` has by default; `*` stands for any letters, `(s)` for the segments of ASP.NET.
DEFAULT = (
    "jsessionid", "phpsessid", "aspsessionid*", "cfid", "cftoken", "zenid", "oscsid", "sid", "sessid", "sessionid",
    "session_id", "(s)",
)  # fmt: skip
#: The word for segments such as `(S(…))`.
SEGMENTS = "(s)"
#: Names that have other meanings, too; and those that mean a session only together.
_COMMON = frozenset({"sid", "s", "session", "sessid", "sessionid", "session_id", "sess", "token"})
_PAIR = frozenset({"cfid", "cftoken"})
# A value that a program made up: long, with digits, of nothing but letters and digits.
_ID = re.compile(r"(?=[^0-9]*[0-9])[A-Za-z0-9_,.-]{16,}")
_SEGMENT = re.compile(r"/\((?:[A-Za-z]\([A-Za-z0-9_-]{8,}\))+\)(?=/)")
NAME = re.compile(r"[A-Za-z0-9_.-]+\*?|\([sS]\)", re.ASCII)


class SessionIds:
    """Takes the parameters of some names out of URLs."""

    def __init__(self, names: tuple[str, ...]) -> None:
        lower = tuple(name.lower() for name in names)
        self._has_segments = SEGMENTS in lower
        parts = [re.escape(name).replace(r"\*", r"[a-z]*") for name in lower if name != SEGMENTS]
        self._name = re.compile("|".join(parts) or r"(?!)", re.IGNORECASE)
        self._hint = re.compile(rf"[;?&](?:{self._name.pattern})=|/\([a-z]\(", re.IGNORECASE)

    def without(self, url: str) -> str:
        """Return a canonical URL without session ids, canonical as well."""
        # Most URLs have nothing of the kind, and looking for a character costs a tenth of a search.
        if ("=" not in url and "/(" not in url) or self._hint.search(url) is None:
            return url
        bare = self._taken_out(url)
        # Without its parameter a segment may be `..`: what is judged is what a program would ask for.
        return url if bare == url else canonical(bare)

    def _taken_out(self, url: str) -> str:
        head, mark, query = url.partition("?")
        path, *parameters = head.split(";")
        # A parameter of the path ends at the next slash, whose segments stay.
        for parameter in parameters:
            name, _, rest = parameter.partition("=")
            value, slash, behind = rest.partition("/")
            path += slash + behind if self._is_id(name, value, ()) else f";{parameter}"
        if self._has_segments:  # some are segments only without their parameters
            path = _SEGMENT.sub("", path)
        if not mark:
            return path
        fields = re.split("([&;])", query)
        names = tuple(field.partition("=")[0].lower() for field in fields[::2])
        kept = ""
        for number, field in enumerate(fields[::2]):
            name, equals, value = field.partition("=")
            if not (equals and self._is_id(name, value, names)):
                kept += (fields[2 * number - 1] if kept else "") + field
        return f"{path}?{kept}" if kept or not query else path

    def _is_id(self, name: str, value: str, names: tuple[str, ...]) -> bool:
        if not value or not self._name.fullmatch(name):
            return False
        lower = name.lower()
        if lower in _PAIR:
            return set(names) >= _PAIR
        return lower not in _COMMON or _ID.fullmatch(value) is not None
