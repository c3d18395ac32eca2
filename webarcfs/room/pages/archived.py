"""Answers of replay: what the archive has at a URL in a state, as a browser may show it, or why there is none.

`mp_` is a page in the room's frame, `rn_` the same page as a browser showed it, `id_` the bytes as they were sent,
the other modifiers what pages embed. Each answer depends on the reader and is judged each time: caches must ask again
(RFC 9111 section 5.2.2.4). Answers about captures have the headers of Memento (RFC 7089).

A URL that a state does not show is absent, closed, blocked, or left out by an appraisal. What is absent, excluded or
not released is the same answer, byte for byte, by the same work: nothing here looks past the gate.

`/notice/…` says why a way ends. A notice names a URL as text, and never leads there by itself.

Forms of archived pages are sent to `/notice/form/<action>/<digits>/<url of the page>`: a form with the method GET
replaces the query of its action, so all of it is in the path. A rule of the publication may make a search of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from urllib.parse import parse_qs, unquote, urlencode

from starlette.responses import PlainTextResponse, Response

from webarcfs.access.access_rules import Absent, Blocked, Closed
from webarcfs.access.visible_captures import VisibleCapture, VisibleState
from webarcfs.archive.config.settings import LeavingRule
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.model.urls import domain_of
from webarcfs.archive.system import clocks
from webarcfs.archive.system.cache import Cache
from webarcfs.content.mimetype import declared_type
from webarcfs.content.outlinks import bare, resolver
from webarcfs.content.references import VERSION
from webarcfs.content.text import SCRIPT_TYPES
from webarcfs.room.pages import lists
from webarcfs.room.pages.calendar import has_some_below, variants
from webarcfs.room.pages.records import field_groups
from webarcfs.room.replay import chance_parameters, headers, javascript, memento, module_scripts
from webarcfs.room.replay.memento import CORS, Headers, Located, headers_for_all, redirect_headers
from webarcfs.room.replay.replay_url import (
    FRAMES,
    MODULES,
    Modifier,
    Replay,
    calendar_path,
    digits_of,
    parse,
    prefix_path,
    record_path,
    replay_path,
)
from webarcfs.room.replay.rewriting import (
    RewrittenBody,
    head_of,
    reason_against,
    rewritten,
    rewritten_dom,
    rule_for,
    shown_type,
)
from webarcfs.room.views import Notice, PageLink, SnapshotRow
from webarcfs.room.visit import Visit
from webarcfs.web import limits, ranges
from webarcfs.web.answering import CHANCE
from webarcfs.web.language import moment

# == memento fields ===================================================================================================


def of_capture(visit: Visit, located: Located, capture: VisibleCapture) -> Headers:
    """Return the headers of a memento: an archived page, redirect or error."""
    return headers_for_all(visit.origins.base, located.url, visit.services.captures.history(located.url), capture)


def of_redirect(url: str, place: str) -> Headers:
    """Return the headers of a redirect within the room, which is no memento."""
    return [*CORS, *redirect_headers(url, place)]


# == notices ==========================================================================================================


#: Longest URL that a notice names.
_LONGEST = 2_000


def notice(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Show a notice: `url` is what it is about, `from` the page that led here, as `<digits>/<url>`."""
    kind = Notice(path_params["kind"])
    url = visit.parameter("url")[:_LONGEST]
    place = _place(visit.parameter("from"))
    rule = None if place is None or kind is not Notice.FUNCTION else rule_for(_rules(visit, place), "link", url, None)
    return _notices_page(visit, kind, url, place, "" if rule is None else rule.text)


def form(visit: Visit, _: Mapping[str, str]) -> Response:
    """Show the notice of a form that was sent; or lead on, where a rule makes a search or a page of it."""
    action, _slash, place_text = visit.raw_path.removeprefix(b"/notice/form/").decode("latin-1").partition("/")
    fields = parse_qs(visit.query.decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    place = _place(unquote(place_text))
    written = unquote(action)[:_LONGEST]
    if place is None:
        return _notices_page(visit, Notice.FORM, written, None, "")
    url = resolver(place.url, "utf-8")(bare(written)) if written.strip("-") else place.url
    rule = rule_for(_rules(visit, place), "form", url or written, None)
    if rule is None:
        return _notices_page(visit, Notice.FORM, url or written, place, "")
    value = fields.get(rule.term, [""])[0]
    if rule.does == "search":
        record = _head_id(visit, place)
        return visit.led(f"/search?{urlencode({'q': value, **({'from': record} if record else {})})}")
    if rule.does == "select-page" and (target := resolver(place.url, "utf-8")(bare(value))):
        return visit.led(replay_path(place.digits, Modifier.FRAME, target))
    return _notices_page(visit, Notice.FUNCTION, url or written, place, rule.text)


def closed(visit: Visit, url: str, until: datetime | None, place: tuple[str, int]) -> Response:
    """Show that a URL is closed until a date: with the description of its record, and nothing else."""
    record_id = visit.services.gate.facts(place[0]).records.get(place[1])
    head = None if record_id is None else visit.services.records.head(record_id)
    return visit.page(
        "notice.html", kind=Notice.CLOSED, url=url, back="", text="", reason="", until=until,
        record=None if head is None else lists.snapshot_row(visit.services, head),
        groups=() if head is None else field_groups(visit.services.records.read(head.id), visit.language), save=None,
        http_status=403, http_headers=_REFUSED,
    )  # fmt: skip


def _notices_page(visit: Visit, kind: Notice, url: str, place: Replay | None, text: str) -> Response:
    """Show a notice. Its URL is shown word for word; `text` is the archive's own words, empty for ours."""
    back = ""
    if place is not None:
        modifier = place.modifier if place.modifier in FRAMES else Modifier.FRAME
        back = replay_path(place.digits, modifier, place.url)
    record = None
    if place is not None and (seq := memento.state_of(visit.services, domain_of(place.url), place.seconds)) is not None:
        record = _row(visit, domain_of(place.url), seq)
    return visit.page(
        "notice.html", kind=kind, url=url, back=back, text=text, reason="", until=None, record=record, groups=(),
        save=lists.save_link(visit.services, url) if kind is Notice.EXTERNAL else None,
    )  # fmt: skip


def _place(text: str) -> Replay | None:
    """Return the archived page that led here; None where nothing names one."""
    asked = parse(b"/web/" + text.encode("utf-8", "replace")) if text[:1].isdigit() else None
    return asked if isinstance(asked, Replay) else None


def _rules(visit: Visit, place: Replay) -> tuple[LeavingRule, ...]:
    domain = domain_of(place.url)
    seq = memento.state_of(visit.services, domain, place.seconds)
    return () if seq is None else memento.leaving(visit.services, domain, seq).rules


def _row(visit: Visit, domain: str, seq: int) -> SnapshotRow | None:
    head = memento.record_of(visit.services, domain, seq)
    return None if head is None else lists.snapshot_row(visit.services, head)


def _head_id(visit: Visit, place: Replay) -> str:
    domain = domain_of(place.url)
    seq = memento.state_of(visit.services, domain, place.seconds)
    head = None if seq is None else memento.record_of(visit.services, domain, seq)
    return "" if head is None else head.id


# == missing ==========================================================================================================


#: By this field clients of the Wayback Machine distinguish what may not be shown from what is not there.
_REFUSED = {"X-Archive-Wayback-Runtime-Error": "AdministrativeAccessControlException: it may not be shown"}


#: What frames of archived pages ask for: there is no place for a page of the room.
_INNER = frozenset({Modifier.INNER_FRAME, Modifier.IFRAME, Modifier.OBJECT})


#: The status says "for legal reasons", and is for programs. Why a rule withholds a page, only its public text says.
_WITHHELD = "This page is withheld"


def missing(visit: Visit, located: Located, modifier: Modifier = Modifier.FRAME) -> Response:
    """Return the answer about a URL that a state does not show: 403 closed, 451 blocked, else 404."""
    return _inner(visit, located) if modifier in _INNER else _whole(visit, located)


def _inner(visit: Visit, located: Located) -> Response:
    """Return the same answer as a small notice: its heading, and the URL."""
    heading, status = "Not in this snapshot", 404
    if isinstance(located.state.answer, Closed):
        heading, status = "This is under embargo", 403
    elif isinstance(located.state.answer, Blocked):
        heading, status = _WITHHELD, 451
    headers_of_refusal = None if status == 404 else _REFUSED
    return visit.page(
        "inner_notice.html", heading=heading, url=located.url, http_status=status, http_headers=headers_of_refusal
    )


def _whole(visit: Visit, located: Located) -> Response:
    answer = located.state.answer
    place = located.domain, located.state.closed or located.state.seq
    if isinstance(answer, Closed):
        return closed(visit, located.url, answer.until, place)
    if isinstance(answer, Blocked):
        return visit.page(
            "error.html", status=451, heading=_WITHHELD,
            text="This page is archived, and may not be shown.", details=answer.text,
            http_status=451, http_headers=_REFUSED,
        )  # fmt: skip
    if located.seq is not None:
        exclusions = memento.leaving(visit.services, located.domain, located.seq).exclusions
        exclusion = memento.left_out(exclusions, located.url)
        if exclusion is not None:
            return visit.page(
                "notice.html", kind=Notice.LEFT_OUT, url=located.url, back="", text="", reason=exclusion.reason,
                until=None, record=_row(visit, located.domain, located.seq), groups=(), save=None, http_status=404,
            )  # fmt: skip
    return _absent(visit, located)


def _absent(visit: Visit, located: Located) -> Response:
    """Say that a snapshot does not have a URL, since when that is so, and what there is instead.

    crawl.log knows why, and tells of what was withheld since. So readers are told what the list of versions tells them,
    and staff read the log in the desk's preview.
    """
    services, seq = visit.services, located.seq
    history = services.captures.history(located.url)
    before: VisibleState | None = None
    after: VisibleState | None = None
    gone: PageLink | None = None
    if seq is not None:
        before, after = history.beside(seq)
        # Where readers see no version, they are told nothing, as in the list of versions.
        since = history.gone_since(seq) if before or after else None
        gone = None if since is None else _crawl(visit, located.domain, since)
    states = history.states
    is_last = before is not None and _lacks(state for state in states if state.seq > before.seq)
    is_first = after is not None and _lacks(state for state in states if state.seq < after.seq)
    head = None if seq is None else memento.record_of(services, located.domain, seq)
    scheme, _, rest = located.url.partition("://")
    site = f"{scheme}://{rest.partition('/')[0]}/"
    folders = dict.fromkeys((f"{located.url.partition('?')[0].rpartition('/')[0]}/", site))
    has_start = seq is not None and services.captures.state(site, seq).capture is not None
    return visit.page(
        "missing.html",
        http_status=404,
        url=located.url,
        host=located.domain,
        is_loop=located.is_loop,
        is_known=bool(history.captures),
        has_host=seq is not None,
        date=None if seq is None else from_epoch(seq),
        gone=gone,
        before=_version(visit, located.url, before),
        after=_version(visit, located.url, after),
        is_last=is_last,
        is_first=is_first,
        variants=list(variants(services, located.url)),
        calendar=calendar_path(located.url),
        prefixes=[PageLink(prefix_path(folder), folder) for folder in folders if has_some_below(visit, folder)],
        start=replay_path(digits_of(seq), Modifier.FRAME, site) if seq is not None and has_start else "",
        search=_search(visit, located.domain if seq is not None else ""),
        save=None if located.is_loop else lists.save_link(services, located.url),
        record=None if head is None else lists.snapshot_row(services, head),
    )


def _search(visit: Visit, domain: str) -> str:
    if not visit.services.has_search:
        return ""
    return f"/search?{urlencode({'q': f'site:{domain}'})}" if domain else "/search"


def _lacks(states: Iterable[VisibleState]) -> bool:
    """Return whether these states neither show a URL nor say that it is withheld."""
    return all(isinstance(state.answer, Absent) for state in states)


def _crawl(visit: Visit, domain: str, seq: int) -> PageLink:
    """Return the time of a snapshot, and where its record is, if it has one."""
    head = memento.record_of(visit.services, domain, seq)
    return PageLink("" if head is None else record_path(head.id), moment(from_epoch(seq), visit.language))


def _version(visit: Visit, url: str, state: VisibleState | None) -> PageLink | None:
    if state is None:
        return None
    when = moment(from_epoch(state.seq), visit.language)
    return PageLink(replay_path(digits_of(state.seq), Modifier.FRAME, url), when)


# == archived =========================================================================================================


def answer(visit: Visit, asked: Replay, *, of_chance: bool = True) -> Response:
    """Return the answer to a URL of replay, but for the frame's.

    `of_chance`: a script may be led to a URL that differs in what time or chance made.
    """
    if visit.request.headers.get("service-worker", "").lower() == "script":
        text = "Archived service workers are not run."
        return visit.page("error.html", status=403, heading="Not allowed", text=text, details="", http_status=403)
    if asked.modifier in MODULES and visit.origins.runs_scripts:
        return module(visit, asked)
    located = memento.locate(visit.services, asked.url, asked.seconds)
    elsewhere = memento.other_place(visit, located, asked)
    if elsewhere is not None:
        return redirect(visit, elsewhere, asked.url)
    capture = located.state.capture
    if capture is None or located.seq is None:
        return _alike(visit, located, asked) if of_chance else missing(visit, located, asked.modifier)
    if capture.is_redirect:
        return led_on(visit, located, capture, asked.modifier)
    is_dom = asked.modifier is Modifier.RENDERED
    return _rendered(visit, located, capture) if is_dom else _body(visit, located, capture, asked.modifier)


def _alike(visit: Visit, located: Located, asked: Replay) -> Response:
    """Return the redirect to a URL that differs in what time or chance made alone; without one, that it is missing."""
    alike = chance_parameters.redirect_place(visit, located, asked)
    if alike is None:
        return missing(visit, located, asked.modifier)
    return ranges.with_fields(redirect(visit, alike[0], asked.url), [(CHANCE, alike[1])])


def beside_replay(visit: Visit, asked: Replay) -> Response:
    """Return the room's answer where replay has an origin of its own: browsers are sent there, programs get a file.

    Programs do not follow to another port, or they save the redirect. Whoever it is that looks like one, nothing
    archived is shown with the room's origin. So what was sent may be asked for under any name.
    """
    is_for_replay = visit.names_purpose if asked.modifier is Modifier.AS_SENT else visit.is_from_browser
    if is_for_replay:
        return redirect(visit, visit.origins.replay + visit.token + asked.location, asked.url)
    response = answer(replace(visit, token=""), asked, of_chance=False)
    if all(name != b"memento-datetime" for name, _ in response.raw_headers):
        return response
    return ranges.with_fields(response, headers.AS_FILE)


def redirect(visit: Visit, place: str, url: str) -> Response:
    """Return a redirect within the room, which is no memento."""
    fields = [*of_redirect(url, place), ("Cache-Control", visit.caching)]
    return ranges.with_fields(Response(status_code=302), fields)


def led_on(
    visit: Visit, located: Located, capture: VisibleCapture, modifier: Modifier, kept: str | None = None
) -> Response:
    """Return an archived redirect, which leads on within the archive; one that leads to no end is no answer.

    `kept` are digits that stay, whatever the target has.
    """
    if located.is_loop:
        return missing(visit, located, modifier)
    target, mark, fragment = capture.target.partition("#")
    domain = domain_of(target)
    seq = memento.state_in_record(visit.services, domain, located.domain, located.seq or capture.since)
    digits = kept or digits_of(seq if seq is not None else located.seq or capture.since)
    prefix = visit.origins.prefix if modifier in FRAMES else visit.token
    place = prefix + replay_path(digits, modifier, target) + mark + fragment
    fields = [("Location", place), *of_capture(visit, located, capture)]
    return ranges.with_fields(Response(status_code=capture.status), [*fields, ("Cache-Control", visit.caching)])


def _body(visit: Visit, located: Located, capture: VisibleCapture, modifier: Modifier) -> Response:
    services = visit.services
    head = head_of(services, located.domain, capture)
    room = visit.origins.room or "'self'"
    fields: headers.Headers = [
        *headers.COMMON,
        *of_capture(visit, located, capture),
        *headers.echo_head(head),
    ]
    fields.append(("Cache-Control", visit.caching))
    anew = rewritten(visit, located, capture, head, modifier)
    if _is_download(capture, modifier):
        fields.append(("Content-Disposition", "attachment"))
    if modifier is Modifier.AS_SENT:
        fields.append(("Content-Security-Policy", headers.policy_of_bytes()))
    else:
        is_framed = modifier is Modifier.PAGE
        policy = headers.policy(room, is_framed=is_framed, has_links=anew is not None)
        fields.append(("Content-Security-Policy", policy))
    if modifier in MODULES:
        shown = capture.mime_type if _is_importable(capture.mime_type) else "text/plain"
    else:
        shown = capture.mime_type if modifier is Modifier.AS_SENT else shown_type(capture.mime_type)
    kind = headers.content_type(shown, head, modifier, "" if anew is None else anew.charset)
    fields.append(("Content-Type", kind))
    if anew is None:
        etag = f'"{capture.blob}"'

        def pieces(start: int, end: int) -> Iterator[bytes]:
            return services.shared.body_in_pieces(located.domain, capture.blob, capture.size, start, end)

        return ranges.partly(visit.request, capture.status, capture.size, pieces, [*fields, ("ETag", etag)])
    etag = _etag(visit, located, capture.blob, modifier, anew)
    return ranges.whole(visit.request, capture.status, anew.body, [*fields, ("ETag", etag)])


def _rendered(visit: Visit, located: Located, capture: VisibleCapture) -> Response:
    """Return a page as a browser showed it; without that, the redirect to the page as it was sent."""
    page = rewritten_dom(visit, located, capture)
    if page is None:
        digits = digits_of(capture.since if located.named is None else located.named)
        return redirect(visit, visit.token + replay_path(digits, Modifier.PAGE, located.url), located.url)
    blob, body = page
    fields: headers.Headers = [
        *headers.COMMON,
        *of_capture(visit, located, capture),
        ("Cache-Control", visit.caching),
        ("Content-Security-Policy", headers.policy(visit.origins.room or "'self'", is_framed=True, has_links=True)),
        ("Content-Type", "text/html; charset=utf-8"),
        ("ETag", _etag(visit, located, blob, Modifier.RENDERED, body)),
    ]
    return ranges.whole(visit.request, capture.status, body.body, fields)


def _etag(visit: Visit, located: Located, blob: str, modifier: Modifier, body: RewrittenBody) -> str:
    """Return the ETag of a rewritten body: another one for each thing that it is made of."""
    made_of = f"{blob} {located.seq} {modifier} {VERSION} {visit.token} {visit.origins.pages}"
    return ranges.entity_tag(made_of.encode() + body.digest)


def _is_download(capture: VisibleCapture, modifier: Modifier) -> bool:
    """Return whether a browser must not show a body. What asks for one as a part of a page takes it all the same."""
    if modifier in (Modifier.SCRIPT, Modifier.SHEET) or modifier in MODULES:
        return False
    return modifier is Modifier.AS_SENT or reason_against(capture.mime_type, capture.size) is not None


# == modules ==========================================================================================================


#: What was found in module scripts, by their blobs.
_SCANNED: Cache[str, javascript.ScannedScript] = Cache(
    limits.REWRITER_CACHE_BYTES // 8, lambda scanned: 500 + 200 * len(scanned.references)
)


def module(visit: Visit, asked: Replay) -> Response:
    """Return a module script of a page whose scripts run, with its imports led into the archive.

    It is answered at the digits that it was asked for with, whatever its own are: a module that comes from two
    addresses is two modules, each with variables of its own.
    """
    located = memento.locate(visit.services, asked.url, asked.seconds)
    if located.state.capture is None and (found := memento.like(visit, located, asked)) is not None:
        seconds, url = found
        if url != asked.url:
            return redirect(visit, visit.token + replay_path(asked.digits, asked.modifier, url), asked.url)
        located = memento.locate(visit.services, url, seconds)
    capture = located.state.capture
    if capture is None or located.seq is None:
        return missing(visit, located, asked.modifier)
    if capture.is_redirect:
        return led_on(visit, located, capture, asked.modifier, asked.digits)
    head = head_of(visit.services, located.domain, capture)
    declared = "" if head is None else declared_type(head.content_type)
    if not SCRIPT_TYPES & {capture.mime_type, declared}:
        return _body(visit, located, capture, asked.modifier)  # JSON, a sheet; or no module, and browsers say so
    if capture.size > limits.REWRITTEN_BYTES:
        text = f"this module has {capture.size} bytes; of more than {limits.REWRITTEN_BYTES}, none is run\n"
        return PlainTextResponse(text, 413)
    source = visit.services.shared.body(located.domain, capture.blob).decode("utf-8-sig", "replace")
    scanned = _SCANNED.get(capture.blob, lambda: javascript.scan(source, goes_on=clocks.goes_on, is_module=True))
    place = module_scripts.ModulePlace(asked.digits, located.url)
    body = module_scripts.rewritten_module(source, scanned, place).encode()
    fields: headers.Headers = [
        *headers.COMMON,
        *of_capture(visit, located, capture),
        *headers.echo_head(head),
        ("Cache-Control", visit.caching),
        ("Content-Type", "text/javascript; charset=utf-8"),
        ("Content-Security-Policy", headers.POLICY_WITH_SCRIPTS),
        ("Connection-Allowlist", headers.connections(visit.origins.room)),
        ("ETag", ranges.entity_tag(body)),
    ]
    return ranges.whole(visit.request, capture.status, body, fields)


def _is_importable(mime_type: str) -> bool:
    """Return whether modules import documents of a type that is no script's (HTML, "fetch a single module script")."""
    return mime_type in {"application/json", "text/json", "text/css", "application/wasm"} or mime_type.endswith("+json")
