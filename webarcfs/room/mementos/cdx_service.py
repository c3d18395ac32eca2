"""`/cdx`: the captures of URLs as rows, in the dialect of the Wayback Machine; `/cdx/pywb`: the same for the engine."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import islice

from starlette.responses import PlainTextResponse, Response

from webarcfs.archive.index.captures import Span
from webarcfs.gate.visible_captures import VisibleCapture
from webarcfs.room.answering import StreamedAnswer
from webarcfs.room.mementos.archived import caching
from webarcfs.room.replay import states
from webarcfs.room.replay.ranges import with_fields
from webarcfs.room.services import Services
from webarcfs.room.visit import Visit
from webarcfs.room.wayback import cdx
from webarcfs.room.wayback.availability import availability as available
from webarcfs.room.wayback.availability import parse_availability
from webarcfs.room.wayback.cdx_question import CdxQuestion, SurtRange, parse_question
from webarcfs.room.wayback.cdx_row import CdxFault
from webarcfs.room.wayback.memento import CORS


def answer(visit: Visit) -> Response:
    """Return the rows that a query asks for; 400 with the parameter that is wrong."""
    question = parse_question(visit.query)
    if isinstance(question, CdxFault):
        return with_fields(PlainTextResponse(f"{question}\n", 400), CORS)
    kind = f"{cdx.MEDIA_TYPES[question.output]}; charset=utf-8"
    fields = [*CORS, ("Content-Type", kind), ("Cache-Control", caching(visit))]
    pieces = _pieces(visit.services, question)
    begin = list(islice(pieces, _AT_ONCE))
    if len(begin) < _AT_ONCE:
        return with_fields(Response("".join(begin)), fields)
    # A long answer is asked for anew: the steps of a stream run in any thread, so it has services of its own.
    return with_fields(StreamedAnswer(_stream(visit, question)), fields)


def _stream(visit: Visit, question: CdxQuestion) -> Generator[bytes, None, None]:
    services = Services(visit.services.shared, visit.reader, of_one_thread=False)
    try:
        services.look()
        for piece in _pieces(services, question):
            yield piece.encode()
    finally:
        services.close()


def _pieces(services: Services, question: CdxQuestion) -> Iterator[str]:
    return cdx.answer(question, lambda asked, backwards: _read(services, asked, backwards=backwards))


def for_pywb(visit: Visit) -> Response:
    """Return the rows for pywb: the version in force, or a redirect and the document behind it."""
    question = parse_question(visit.query)
    if isinstance(question, CdxFault):
        return PlainTextResponse(f"{question}\n", 400)
    if not visit.parameter("closest"):
        return PlainTextResponse("")  # pywb looks for a like URL at any time: what is missing in a snapshot is missing
    lines = cdx.pywb_rows(question, lambda asked, backwards: _read(visit.services, asked, backwards=backwards))
    return PlainTextResponse("".join(lines))


def availability(visit: Visit) -> Response:
    """Return the memento that is closest to a time, as JSON."""
    question = parse_availability(visit.query)
    if isinstance(question, CdxFault):
        return with_fields(PlainTextResponse(f"{question}\n", 400), CORS)
    url = states.at_other_host(visit.services, question.url) or question.url
    body = available(visit.origins.base, question, url, visit.services.captures.history(url).captures)
    fields = [*CORS, ("Content-Type", "application/json"), ("Cache-Control", caching(visit))]
    return with_fields(Response(body), fields)


def _read(services: Services, asked: SurtRange, *, backwards: bool) -> Iterator[VisibleCapture]:
    return services.captures.below(Span(asked.low, asked.high), backwards=backwards, with_met=True)


#: Pieces of an answer that are made before it is sent.
_AT_ONCE = 2
