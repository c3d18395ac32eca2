"""`/record/<digits>/<base64url of the URL>`: a capture as a WARC record, for pywb."""

from __future__ import annotations

from starlette.responses import Response

from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import CommitTag, from_epoch
from webarcfs.archive.model.url import both_schemes, domain_of
from webarcfs.gate.visible_captures import VisibleCapture
from webarcfs.room.visit import Visit
from webarcfs.room.wayback.cdx import parse_record_name
from webarcfs.room.wayback.warc_record import MEDIA_TYPE, warc_record


def answer(visit: Visit, name: str) -> Response:
    """Return the record of the capture of a time at a URL. Raises NotFound."""
    asked = parse_record_name(name)
    if asked is None:
        raise NotFound("there is no such record")
    domain = domain_of(asked.url)
    capture = _capture(visit, asked.url, asked.seconds)
    if capture is None:
        raise NotFound("there is no such record")
    body = visit.services.shared.body(domain, capture.blob) if capture.blob else b""
    head = visit.services.shared.body(domain, capture.head) if capture.head else b""
    tag = CommitTag(from_epoch(capture.since), domain)
    return Response(b"".join(warc_record(capture, str(tag), head, body)), media_type=MEDIA_TYPE)


def _capture(visit: Visit, url: str, seconds: int) -> VisibleCapture | None:
    """Return the capture of that very URL, else of its path: an http URL shares the document of the https one."""
    for each in dict.fromkeys((url, *both_schemes(url))):
        found = [one for one in visit.services.captures.history(each).captures if one.captured == seconds]
        exact = [one for one in found if one.url == url]
        if exact or found:
            return (exact or found)[0]
    return None
