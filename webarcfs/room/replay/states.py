"""Which state of the archive answers a URL of replay, and what that state has.

Digits that are the time of a visible capture of the very URL name that capture. Digits that are a visible snapshot's
time name the state that the domain has then. All others are answered by a redirect to the digits of what was there
then, so that no address shows another capture than it names. A URL that the state does not have is never answered from
another state, but for what a page embeds, which then comes from the state nearest in time.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from webarcfs.access.access_rules import Absent, Open
from webarcfs.access.reader_stores import RecordHead
from webarcfs.access.visible_captures import VisibleCapture, VisibleState
from webarcfs.archive.config.settings import Exclusion, LeavingRule
from webarcfs.archive.config.validators import read_table
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged, InvalidDocument, UrlRefused
from webarcfs.archive.model.metadata import COPIES, CommitTag, from_epoch
from webarcfs.archive.model.url_lists import LONGEST_CHAIN, without_fragment
from webarcfs.archive.model.urls import domain_of
from webarcfs.room.replay import cdx_question
from webarcfs.room.replay.replay_url import EMBEDDED, Modifier, Replay, digits_of, replay_path
from webarcfs.room.visit import Evidence, Services, Visit


@dataclass(frozen=True, slots=True)
class Located:
    """A URL in a state: `seq` is the snapshot that names the state (seconds since 1970); None: the reader sees none.

    `named` is the time, in seconds, by which an address names what is shown. `is_loop`: its redirects lead to no end.
    """

    url: str
    domain: str
    seq: int | None
    state: VisibleState
    named: int | None
    is_loop: bool = False


@dataclass(frozen=True, slots=True)
class Leaving:
    """What the publications of a state say about what leads out of them, as they were when they were captured."""

    rules: tuple[LeavingRule, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()


def locate(services: Services, url: str, seconds: int) -> Located:
    """Return what a time names at a canonical URL, or what was in force there then.

    | the time is | what is shown |
    |---|---|
    | that of a capture of this very URL | that capture, in the first visible snapshot that has it |
    | that of two of them | the document before the redirect, then the one that came to be visible later |
    | that of a visible snapshot alone | what that has, captured before or after |
    | neither | what the state of that time has, by the last time up to it at which a server sent it |
    """
    domain = domain_of(url)
    seq = state_of(services, domain, seconds)
    capture = services.captures.captured_at(url, seconds)
    named: int | None
    if capture is not None:
        state = VisibleState(capture.since, Open(capture.since), capture)
        seq, named = capture.since, seconds
    else:
        state = services.captures.state(url, seconds if seq is None else seq)
        capture = state.capture
        is_named = seq == seconds or capture is None or capture.url != url
        named = seq if is_named or capture is None else _last_met(services, capture, seconds)
    is_loop = capture is not None and capture.is_redirect and _is_endless(services, capture.target, url, seq or seconds)
    return Located(url, domain, seq, state, named, is_loop)


def _last_met(services: Services, capture: VisibleCapture, seconds: int) -> int:
    """Return the last time, up to `seconds`, at which a crawl captured what is shown, or met it unchanged."""
    times = [
        other.captured
        for other in services.captures.history(capture.url).captures
        if other.url == capture.url
        and (other.blob, other.target) == (capture.blob, capture.target)
        and capture.captured < other.captured <= seconds
    ]
    for time in reversed(times):
        # Two may be of one second: then the address names another one.
        named = services.captures.captured_at(capture.url, time)
        if named is not None and (named.blob, named.target) == (capture.blob, capture.target):
            return time
    return capture.captured


def state_of(services: Services, domain: str, seconds: int) -> int | None:
    """Return the snapshot that names the state of a domain at a time; None where the reader sees none."""
    facts = services.gate.facts(domain)
    return facts.newest(max(seconds, facts.seqs[0]))[0].seq if facts.shown else None


def _is_endless(services: Services, target: str, url: str, seq: int) -> bool:
    """Return whether a redirect leads back to a URL that it came from, or through too many."""
    seen = {url}
    for _ in range(LONGEST_CHAIN):
        target = without_fragment(target)
        if target in seen:
            return True
        seen.add(target)
        try:
            at = state_in_record(services, domain_of(target), domain_of(url), seq)
            capture = None if at is None else services.captures.state(target, at).capture
        except UrlRefused:
            return False
        if capture is None or not capture.is_redirect:
            return False
        target = capture.target
    return True


def state_in_record(services: Services, domain: str, shown: str, seq: int) -> int | None:
    """Return the snapshot of a domain that belongs to the state `seq` of the domain `shown`; None without any.

    That is the one of the same record, where there is one; else the one in force at that time.
    """
    return seq if domain == shown else state_beside(services, domain, record_of(services, shown, seq), seq)


def state_beside(services: Services, domain: str, head: RecordHead | None, seq: int) -> int | None:
    """Return the same for another domain: its snapshot in a record, else the one in force at a time."""
    if head is not None:
        facts = services.gate.facts(domain)
        for tag in head.tags:
            time = int(tag.crawl_time.timestamp())
            if tag.domain == domain and time in facts.seqs:
                return time
    return state_of(services, domain, seq)


def evidence_of(services: Services, domain: str, capture: VisibleCapture) -> Evidence:
    """Return what data.xml says of a capture; nothing for a redirect, or where data.xml cannot be read."""
    if capture.is_redirect:
        return Evidence()
    store = services.shared.repository(domain)
    commit = store.ref(CommitTag(from_epoch(capture.since), domain).ref)
    if commit is None:
        return Evidence()
    found = store.find(store.commit(commit).tree, f"{capture.path.removeprefix(f'/{domain}/')}/{DATA_XML}")
    if found is None or not found.is_document:
        return Evidence()
    return services.shared.evidence.get(found.oid, lambda: _evidence(store, found.oid))


def _evidence(store: Repository, blob: str) -> Evidence:
    try:
        meta = data_xml.metadata(store.read(blob))
    except (InvalidDocument, Damaged):
        return Evidence()
    return Evidence(meta.source if meta.source in COPIES else "", tuple(meta.certificate.split()))


def record_of(services: Services, domain: str, seq: int) -> RecordHead | None:
    """Return the record of a snapshot, as readers see it; None without one."""
    record_id = services.gate.facts(domain).records.get(seq)
    return None if record_id is None else services.records.head_of_shown(record_id)


def folder_of(services: Services, located: Located) -> str | None:
    """Return the URL of the folder that a URL names without its slash, if the state has that; else None."""
    if "?" in located.url or located.url.endswith("/") or located.seq is None:
        return None
    folder = f"{located.url}/"
    return folder if services.captures.state(folder, located.seq).capture is not None else None


def at_other_host(services: Services, url: str) -> str | None:
    """Return a URL with `www.` before its host, or without, if readers see captures of that one and none of this."""
    other = cdx_question.at_other_host(url)
    if other is None or services.captures.history(url).captures:
        return None
    return other if services.captures.history(other).captures else None


def nearest(services: Services, located: Located) -> VisibleState | None:
    """Return the state nearest in time that has a URL; None without any."""
    if not isinstance(located.state.answer, Absent) or located.seq is None:
        return None
    return services.captures.history(located.url).nearest(located.seq)


def other_place(visit: Visit, located: Located, asked: Replay) -> str | None:
    """Return where a URL of replay belongs; None: here.

    That is at the digits of what it shows, at its folder, in the nearest state, or at its host with or without `www.`.
    """
    prefix = visit.token if asked.modifier is not Modifier.FRAME else visit.origins.prefix
    if located.named is not None and digits_of(located.named) != asked.digits:
        return prefix + replay_path(digits_of(located.named), asked.modifier, located.url)
    if not isinstance(located.state.answer, Absent):
        return None
    substitute = like(visit, located, asked)
    return None if substitute is None else prefix + replay_path(digits_of(substitute[0]), asked.modifier, substitute[1])


def like(visit: Visit, located: Located, asked: Replay) -> tuple[int, str] | None:
    """Return the time and the URL of what is shown in place of a URL that a state does not have; None without any."""
    folder = folder_of(visit.services, located)
    if folder is not None and located.seq is not None:
        return located.seq, folder
    near = nearest(visit.services, located) if asked.modifier in EMBEDDED else None
    if near is not None:
        return near.seq, located.url
    other = at_other_host(visit.services, located.url)
    there = None if other is None else locate(visit.services, other, asked.seconds)
    if there is None or there.state.capture is None or there.named is None:
        return None
    return there.named, there.url


# -- what the publications say -----------------------------------------------------------------------------------------


def leaving(services: Services, domain: str, seq: int) -> Leaving:
    """Return what the publications of a state say, by the catalogue's copy of their settings."""
    parts = [_leaving_of(services, snapshot.publication) for snapshot in services.gate.facts(domain).newest(seq)]
    return Leaving(
        tuple(rule for part in parts for rule in part.rules),
        tuple(exclusion for part in parts for exclusion in part.exclusions),
    )


def _leaving_of(services: Services, publication: str) -> Leaving:
    content = services.records.file(f"publications/{publication}.json")
    return Leaving() if content is None else _parsed(content)


@lru_cache(maxsize=256)
def _parsed(content: bytes) -> Leaving:
    """Return the rules of a publication's settings; of a file that cannot be read, none."""
    with suppress(ValueError, TypeError, AttributeError):
        settings = json.loads(content)
        faults: list[str] = []
        tables = settings.get("publication", settings)
        rules = tuple(read_table(LeavingRule, table, "rule", faults) for table in tables.get("rule", ()))
        exclusions = tuple(read_table(Exclusion, table, "exclude", faults) for table in tables.get("exclude", ()))
        return Leaving(rules, exclusions)
    return Leaving()


def left_out(exclusions: tuple[Exclusion, ...], url: str) -> Exclusion | None:
    """Return the exclusion that leaves a URL out; None without one."""
    address = url.partition("://")[2]
    host = address.partition("/")[0]
    for exclusion in exclusions:
        place = address if "/" in exclusion.match else host
        if _glob(exclusion.match).fullmatch(place):
            return exclusion
    return None


@lru_cache(maxsize=1_000)
def _glob(match: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, match.split("*"))), re.IGNORECASE | re.DOTALL)
