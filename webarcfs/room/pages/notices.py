"""`/notice/…`: why a way does not go on. A notice names a URL as text, and never leads there by itself.

Forms of archived pages are sent to `/notice/form/<action>/<digits>/<url of the page>`: a form with the method GET
replaces the query of its action, so all of it stands in the path. A rule of the publication may make a search of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import unquote, urlencode

from webarcfs.archive.config.settings import LeavingRule
from webarcfs.archive.model.url import domain_of
from webarcfs.content.outlinks import bare
from webarcfs.content.urlresolver import resolver
from webarcfs.room.memento_views import Notice, NoticePage
from webarcfs.room.pages import rows
from webarcfs.room.pages.records import field_groups
from webarcfs.room.replay import states
from webarcfs.room.replay.targets import rule_for
from webarcfs.room.views import SnapshotRow
from webarcfs.room.visit import Visit
from webarcfs.room.wayback.replay_url import Modifier, Replay, parse, replay_path

#: Longest URL that a notice names.
_LONGEST = 2_000


def notice(visit: Visit, kind: Notice) -> NoticePage:
    """Return a notice: `url` is what it is about, `from` the page that led here, as `<digits>/<url>`."""
    url = visit.parameter("url")[:_LONGEST]
    place = _place(visit.parameter("from"))
    rule = None if place is None or kind is not Notice.FUNCTION else rule_for(_rules(visit, place), "link", url, None)
    return _page(visit, kind, url, place, "" if rule is None else rule.text)


def form(visit: Visit, action: str, place_text: str, fields: Mapping[str, Sequence[str]]) -> NoticePage | str:
    """Return the notice of a form that was sent; or the path to go to, where a rule makes a search or a page of it."""
    place = _place(place_text)
    written = unquote(action)[:_LONGEST]
    if place is None:
        return _page(visit, Notice.FORM, written, None, "")
    url = resolver(place.url, "utf-8")(bare(written)) if written.strip("-") else place.url
    rule = rule_for(_rules(visit, place), "form", url or written, None)
    if rule is None:
        return _page(visit, Notice.FORM, url or written, place, "")
    value = (list(fields.get(rule.term, ())) or [""])[0]
    if rule.does == "search":
        record = _head_id(visit, place)
        return f"/search?{urlencode({'q': value, **({'from': record} if record else {})})}"
    if rule.does == "select-page" and (target := resolver(place.url, "utf-8")(bare(value))):
        return replay_path(place.digits, Modifier.FRAME, target)
    return _page(visit, Notice.FUNCTION, url or written, place, rule.text)


def left_out(visit: Visit, url: str, reason: str, place: tuple[str, int]) -> NoticePage:
    """Return the notice of a URL that an appraisal left out. `place` are domain and snapshot."""
    return NoticePage(Notice.LEFT_OUT, url, "", reason=reason, record=_row(visit, *place))


def closed(visit: Visit, url: str, until: datetime | None, place: tuple[str, int]) -> NoticePage:
    """Return the notice of a URL that is closed until a date: with the description of its record, and nothing else."""
    record_id = visit.services.gate.facts(place[0]).records.get(place[1])
    head = None if record_id is None else visit.services.records.head(record_id)
    if head is None:
        return NoticePage(Notice.CLOSED, url, "", until=until)
    groups = field_groups(visit.services.records.read(head.id), visit.language)
    row = rows.snapshot_row(visit.services, head)
    return NoticePage(Notice.CLOSED, url, "", until=until, record=row, groups=groups)


def _page(visit: Visit, kind: Notice, url: str, place: Replay | None, text: str) -> NoticePage:
    back = "" if place is None else replay_path(place.digits, Modifier.FRAME, place.url)
    record = None
    if place is not None and (seq := states.state_of(visit.services, domain_of(place.url), place.seconds)) is not None:
        record = _row(visit, domain_of(place.url), seq)
    return NoticePage(kind=kind, url=url, back=back, text=text, record=record)


def _place(text: str) -> Replay | None:
    """Return the archived page that led here; None where nothing names one."""
    found = parse(b"/web/" + text.encode("utf-8", "replace")) if text[:1].isdigit() else None
    return found if isinstance(found, Replay) else None


def _rules(visit: Visit, place: Replay) -> tuple[LeavingRule, ...]:
    domain = domain_of(place.url)
    seq = states.state_of(visit.services, domain, place.seconds)
    return () if seq is None else states.leaving(visit.services, domain, seq).rules


def _row(visit: Visit, domain: str, seq: int) -> SnapshotRow | None:
    head = states.record_of(visit.services, domain, seq)
    return None if head is None else rows.snapshot_row(visit.services, head)


def _head_id(visit: Visit, place: Replay) -> str:
    domain = domain_of(place.url)
    seq = states.state_of(visit.services, domain, place.seconds)
    head = None if seq is None else states.record_of(visit.services, domain, seq)
    return "" if head is None else head.id
