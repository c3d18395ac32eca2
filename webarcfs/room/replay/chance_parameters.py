"""What a script asks for by a URL that only time or chance made different from the one that was captured.

Scripts add the time, or a random number, to what they ask for, so that no cache answers: `?page=2&_=1732161600123`. In
replay they make another number than in the capture. If the state does not have such a URL, it is asked for once without
these parameters. Then it is looked for once more: if the state has exactly one URL that differs in the values of these
parameters alone, that one answers. The answer is a redirect, so each address shows what it names.

A crawl by browser archives such URLs without those parameters that have certain names (`drop_parameters`), and with
others that only look like them. So what is not found is looked for without these names as well.

The key of a POST is such a URL too (`webarcfs.warc.request_key`). Its fields may have another order, as in indexes of
the field, which sort them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from webarcfs.access.access_rules import Absent
from webarcfs.archive.index.database import Span
from webarcfs.archive.model.urls import CHANCE_PARAMETERS, is_time_or_random, surt, without_chance
from webarcfs.archive.system import clocks
from webarcfs.room.replay.headers import is_for_window
from webarcfs.room.replay.memento import Located, locate
from webarcfs.room.replay.replay_url import FRAMES, Replay, digits_of, replay_path
from webarcfs.room.visit import Services, Visit
from webarcfs.warc import request_key
from webarcfs.web import limits

# == parameters, pure =================================================================================================


#: Names that mean nothing but "no cache": of jQuery and of advertisements.
_NAMES: Final = frozenset({"_", "cb"})
_NUMBER: Final = re.compile(r"[0-9]{6,20}", re.ASCII)
_ORDER: Final = "order"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A URL in parts: what is before its query, its parameters, the places of those that time or chance made."""

    plain: str
    parameters: tuple[str, ...]
    chance: tuple[int, ...]

    def without(self) -> str:
        """Return the URL without what time or chance made."""
        kept = [parameter for at, parameter in enumerate(self.parameters) if at not in self.chance]
        return f"{self.plain}?{'&'.join(kept)}" if any(kept) else self.plain

    def names(self) -> str:
        """Return the names of what time or chance made, as a header may have them."""
        named = sorted({self.parameters[at].partition("=")[0] for at in self.chance}) or [_ORDER]
        return ",".join(named)[:200]

    def fixed(self) -> Counter[str]:
        """Return what another URL must have as well: all but the values that time or chance made."""
        return Counter(
            f"{parameter.partition('=')[0]}=" if at in self.chance else parameter
            for at, parameter in enumerate(self.parameters)
        )


def _taken_apart(url: str, seconds: int) -> _Asked:
    plain, _, query = url.partition("?")
    parameters = tuple(query.split("&")) if query else ()
    return _Asked(plain, parameters, tuple(at for at, one in enumerate(parameters) if is_of_chance(one, seconds)))


def is_of_chance(parameter: str, seconds: int) -> bool:
    """Return whether time or chance made the value of a parameter; `seconds` is the time of its page or capture."""
    name, _, value = parameter.partition("=")
    return is_time_or_random(value, seconds) or (name in _NAMES and _NUMBER.fullmatch(value) is not None)


def _common_begin(asked: _Asked) -> str:
    """Return what the URLs that may answer begin with. A key of a request has its fields in any order."""
    end = asked.chance[0] if asked.chance else len(asked.parameters)
    kept = [*asked.parameters[:end]]
    for at, parameter in enumerate(kept):
        if parameter.startswith(f"{request_key.METHOD}="):
            kept = kept[: at + 1]
            break
    else:
        kept.append(f"{asked.parameters[end].partition('=')[0]}=")
    return f"{asked.plain}?{'&'.join(kept)}"


# == looking ==========================================================================================================


def redirect_place(visit: Visit, located: Located, asked: Replay) -> tuple[str, str] | None:
    """Return where a URL leads that the state does not have, and the names of the parameters that differ; or None.

    Only where scripts run, and only for what they ask: a reader who writes a URL gets what it names.
    """
    if not visit.origins.runs_scripts or not isinstance(located.state.answer, Absent) or located.seq is None:
        return None
    if asked.modifier in FRAMES or is_for_window(visit.request):
        return None
    parts = _taken_apart(located.url, asked.seconds)
    if not parts.chance and request_key.parts_of(located.url) is None:
        return None
    there = _found(visit.services, parts, located.seq, asked.seconds)
    if there is None:
        there = _found_as_captured(visit.services, located.url, located.seq, asked.seconds)
    if there is None or there.named is None:
        return None
    return replay_path(digits_of(there.named), asked.modifier, there.url), parts.names()


def _found(services: Services, asked: _Asked, seq: int, seconds: int) -> Located | None:
    if asked.chance:
        there = locate(services, asked.without(), seconds)
        if there.state.capture is not None:
            return there
    candidates = _alike(services, asked)
    held = [url for url in candidates if services.captures.state(url, seq).capture is not None]
    if len({url.partition("://")[2] for url in held}) != 1:
        return None
    there = locate(services, held[0], seconds)
    return there if there.state.capture is not None else None


def _found_as_captured(services: Services, url: str, seq: int, seconds: int) -> Located | None:
    """Return what a browser captured by a URL without the parameters that such a crawl drops; None if nothing fits."""
    kept = without_chance(url, CHANCE_PARAMETERS, seconds)
    if kept == url:
        return None
    there = locate(services, kept, seconds)
    if there.state.capture is not None:
        return there
    parts = _taken_apart(kept, seconds)
    has_more = bool(parts.chance) or request_key.parts_of(kept) is not None
    return _found(services, parts, seq, seconds) if has_more else None


def _alike(services: Services, asked: _Asked) -> Sequence[str]:
    """Return the URLs that readers see which differ in the values of chance alone; none where there are too many."""
    begin, wanted = surt(_common_begin(asked)), asked.fixed()
    below = services.captures.below(Span(begin, f"{begin}\U0010ffff"))
    urls: dict[str, None] = {}
    left = limits.ALIKE_CAPTURES
    for capture in islice(below, limits.ALIKE_CAPTURES):
        clocks.check()
        left -= 1
        if _taken_apart(capture.url, capture.captured).fixed() == wanted:
            urls[capture.url] = None
    return tuple(urls) if left and len(urls) <= limits.ALIKE_URLS else ()
