"""Module scripts of archived pages with their imports led into the archive, for the engine that runs scripts. Pure.

pywb rewrites a script for the block that it puts round it, and a module may stand in no block: its imports would be
errors of syntax. So modules have a modifier of their own, `esm_` (`wkrm_` where one is a worker), and are rewritten
here:

- A specifier that is a URL leads to `/web/<digits>esm_/<url>` with the digits of the page. A module is one for a page
  only while all its names are one URL, so all of a page's modules have the page's digits.
- The first argument of `import()` goes through a function that does the same when the script runs.
- `import.meta.url` is the URL that was archived.
- `window`, `location` and the like are wombat's, by an import from our own module; what the module declares itself
  keeps its meaning.

Bare names stay: the page's import map resolves them (HTML, "import maps"), and its addresses lead into the archive.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from webarcfs.content.outlinks import bare, resolver
from webarcfs.content.references import fragment_of
from webarcfs.room.replay.javascript import GLOBALS, ScannedScript, SpecifierKind, scan
from webarcfs.room.replay.replay_url import Modifier
from webarcfs.web import limits

#: Our own module, and what it exports beside the names of `GLOBALS`.
OWN_MODULE: Final = "/static/webarc-module.js"
_IMPORT: Final = "__webarc_import"
#: Longest tag that is held back to be rewritten; a longer one stays as it is.
_MOST_TAG: Final = 16 << 10
#: Most addresses of an import map that are rewritten.
_MOST_ADDRESSES: Final = 100_000

_IS_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_IS_RELATIVE = re.compile(r"\.{0,2}/")
_BODY_OF_IMPORT = re.compile(rb"\bimport\s*(?:/\*|//|\()")


@dataclass(frozen=True, slots=True)
class ModulePlace:
    """Where a script is: the digits of its page, its own URL, and the URL that its references are relative to."""

    digits: str
    url: str
    base: str = ""

    @property
    def prefix(self) -> str:
        """What precedes the modifier in the addresses of the page's modules."""
        return f"/web/{self.digits}"

    def address(self, specifier: str, resolve: Callable[[str], str | None]) -> str | None:
        """Return the place of a specifier in the archive; None for one that stays."""
        if not _IS_RELATIVE.match(specifier) and not _is_web(specifier):
            return None
        url = resolve(bare(specifier))
        return None if url is None else f"{self.prefix}{Modifier.MODULE}/{url}{fragment_of(specifier)}"

    def resolver(self) -> Callable[[str], str | None]:
        """Return the function that resolves the references of a script, which is UTF-8 whatever its page is."""
        return resolver(self.base or self.url, "utf-8")


def _is_web(specifier: str) -> bool:
    return bool(_IS_URL.match(specifier)) and specifier[:5].lower() in ("http:", "https")


def rewritten_module(source: str, scanned: ScannedScript, place: ModulePlace) -> str:
    """Return a module with its imports led into the archive; it has as many lines as before."""
    names = ",".join([*sorted(GLOBALS - scanned.declared), _IMPORT])
    head = f'import{{{names}}}from"{OWN_MODULE}";'
    body = _edited(source, _edits(scanned, place, _IMPORT))
    if body.startswith("#!"):
        interpreter, end, rest = body.partition("\n")
        return f"{interpreter}{end}{head}{rest}"
    return head + body


def rewritten_classic(source: str, scanned: ScannedScript, place: ModulePlace) -> str:
    """Return a script that is no module with its calls of `import()` led into the archive."""
    own = f"(self.{_IMPORT}||(x=>x))"
    return _edited(source, _edits(scanned, place, own, is_module=False))


def has_import_call(body: bytes) -> bool:
    """Return whether a script may call `import()`."""
    return _BODY_OF_IMPORT.search(body) is not None


def _edits(
    scanned: ScannedScript, place: ModulePlace, own: str, *, is_module: bool = True
) -> Iterator[tuple[int, int, str]]:
    """Yield what takes the place of which part of a script, as (start, end, text)."""
    resolve = place.resolver()
    arguments = f",{_literal(place.prefix)},{_literal(place.base or place.url)})"
    for reference in scanned.references:
        if reference.kind is SpecifierKind.DYNAMIC:
            yield reference.start, reference.start, f"{own}("
            yield reference.end, reference.end, arguments
        elif is_module and reference.kind is SpecifierKind.META_URL:
            yield reference.start, reference.end, f"({_literal(place.url)})"
        elif is_module and (address := place.address(reference.specifier or "", resolve)) is not None:
            yield reference.start, reference.end, _literal(address)
    if is_module and "location" not in scanned.declared:
        for end in scanned.location_assignments:
            yield end, end, ".href"


def _literal(text: str) -> str:
    """Return a text as a literal of JavaScript that may stand in a page, too."""
    return json.dumps(text).replace("<", "\\u003c")


def _edited(source: str, edits: Iterable[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
        pieces += (source[at:start], text)
        at = end
    return "".join([*pieces, source[at:]])


# == import maps ======================================================================================================


def rewritten_import_map(text: str, place: ModulePlace) -> str:
    """Return an import map whose addresses, and names that are URLs, lead into the archive.

    Of the `integrity` of modules nothing is left, since their bytes are others. What is no import map stays as it is:
    browsers say so.
    """
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(read, dict):
        return text
    resolve = place.resolver()
    left = _MOST_ADDRESSES

    def mapped(specifiers: object) -> object:
        nonlocal left
        if not isinstance(specifiers, dict):
            return specifiers
        left -= len(specifiers)
        return specifiers if left < 0 else {led(name): led(to) for name, to in specifiers.items()}

    def led(specifier: object) -> object:
        address = place.address(specifier, resolve) if isinstance(specifier, str) else None
        return specifier if address is None else address

    made = {name: value for name, value in read.items() if name != "integrity"}
    if "imports" in made:
        made["imports"] = mapped(made["imports"])
    if isinstance(scopes := made.get("scopes"), dict):
        made["scopes"] = {led(scope): mapped(specifiers) for scope, specifiers in scopes.items()}
    return json.dumps(made).replace("<", "\\u003c")


# == pages ============================================================================================================


_TAG = re.compile(rb"<(script|link|base)\b((?:[^>\"']|\"[^\"]*+\"|'[^']*+')*+)>", re.IGNORECASE)
_MAY_BEGIN = re.compile(rb"<(?:s(?:c(?:r(?:i(?:pt?)?)?)?)?|l(?:i(?:nk?)?)?|b(?:a(?:se?)?)?)?\Z", re.IGNORECASE)
_BEGIN = re.compile(rb"<(?:script|link|base)\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"([^\s=\"'>/]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_END = re.compile(rb"</script\b", re.IGNORECASE)
_ARCHIVED = re.compile(rb"(/web/[0-9]{1,14})[a-z]{2,4}_/")
_CLASSIC = re.compile(rb"|(?:text|application)/(?:x-)?(?:java|ecma)script(?:\s*;.*)?", re.IGNORECASE | re.DOTALL)


class PageScripts:
    """Rewrites the modules and import maps of a page that pywb has rewritten, while it passes. All else stays.

    Give it the page in pieces with `feed`, and at its end `close`.
    """

    def __init__(self, place: ModulePlace, goes_on: Callable[[], bool] = lambda: True) -> None:
        self._place = place
        self._goes_on = goes_on
        self._held = b""
        #: The attributes of the script whose text is held.
        self._script: dict[bytes, bytes] | None = None

    def feed(self, piece: bytes) -> bytes:
        """Return what may go on to the browser."""
        self._held += piece
        return b"".join(self._passing(is_end=False))

    def close(self) -> bytes:
        """Return the rest."""
        return b"".join(self._passing(is_end=True))

    def _passing(self, *, is_end: bool) -> Iterator[bytes]:
        while self._held:
            before = len(self._held)
            yield self._text_of_script(is_end=is_end) if self._script is not None else self._up_to_tag(is_end=is_end)
            if len(self._held) == before:
                return

    def _taken(self, end: int) -> bytes:
        taken, self._held = self._held[:end], self._held[end:]
        return taken

    def _up_to_tag(self, *, is_end: bool) -> bytes:
        found = _BEGIN.search(self._held)
        if found is None:
            partial = None if is_end else _MAY_BEGIN.search(self._held[-8:])
            return self._taken(len(self._held) - (0 if partial is None else len(partial[0])))
        if found.start():
            return self._taken(found.start())
        tag = _TAG.match(self._held, 0, _MOST_TAG)
        if tag is None:  # it has not come whole, or it is none
            return self._taken(_MOST_TAG) if is_end or len(self._held) >= _MOST_TAG else b""
        text = self._taken(tag.end())
        return self._tag(text, tag[1].lower(), _attributes(tag[2]))

    def _tag(self, text: bytes, name: bytes, attributes: dict[bytes, bytes]) -> bytes:
        if name == b"base":
            self._based(attributes.get(b"href", b""))
        elif name == b"link":
            is_preload = b"modulepreload" in attributes.get(b"rel", b"").lower().split()
            return _as_module(text) if is_preload else text
        elif b"src" in attributes:
            return _as_module(text) if _kind(attributes) == b"module" else text
        else:
            self._script = attributes
        return text

    def _based(self, href: bytes) -> None:
        archived = re.search(rb"/web/[0-9]{1,14}[a-z]{0,4}_?/(https?:.*)", href, re.DOTALL)
        if archived is not None and not self._place.base:
            base = resolver(self._place.url, "utf-8")(bare(archived[1].decode("utf-8", "replace")))
            self._place = ModulePlace(self._place.digits, self._place.url, base or "")

    def _text_of_script(self, *, is_end: bool) -> bytes:
        """Return the text of a script, rewritten once its end has come."""
        assert self._script is not None
        kind = _kind(self._script)
        end = _END.search(self._held)
        if end is None:
            is_over = is_end or len(self._held) > limits.INLINE_SCRIPT_BYTES
            if not is_over:
                return b""
            self._script = None
            return self._taken(len(self._held))
        self._script = None
        return self._rewritten(kind, self._taken(end.start()))

    def _rewritten(self, kind: bytes, body: bytes) -> bytes:
        try:
            source, charset = body.decode("utf-8"), "utf-8"
        except UnicodeDecodeError:
            source, charset = body.decode("latin-1"), "latin-1"
        if kind == b"importmap":
            return rewritten_import_map(source, self._place).encode(charset)
        if kind == b"module":
            scanned = scan(source, goes_on=self._goes_on, is_module=True)
            return rewritten_module(source, scanned, self._place).encode(charset)
        if _CLASSIC.fullmatch(kind) and has_import_call(body):
            return rewritten_classic(source, scan(source, goes_on=self._goes_on), self._place).encode(charset)
        return body


def _attributes(text: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, double, single, plain in _ATTRIBUTE.findall(text):
        found.setdefault(name.lower(), double or single or plain)
    return found


def _kind(attributes: dict[bytes, bytes]) -> bytes:
    return attributes.get(b"type", b"").strip().lower()


def _as_module(tag: bytes) -> bytes:
    """Return a tag whose address is that of a module: one module must have one address."""
    return _ARCHIVED.sub(rb"\1" + Modifier.MODULE.encode() + b"/", tag, count=1)
