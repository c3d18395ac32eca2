"""The step `check`: reference pages, a search, sizes against the snapshot before, missing images, checks of others.

What programs look at is judged at once (fields 62 and 63); a page with `by = "person"` waits until somebody has looked.

`waiting` and `looked` are for that look.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.crawl import scope
from agent.crawl.scope import EXCLUDED, EXCLUDED_HOST, CrawlScope
from agent.crawl.vocabulary import LinkKind
from agent.indexing import fulltext
from agent.steps import converting, picture_check, plugin
from agent.steps.context import Snapshot, StepContext, StepResult
from agent.steps.picture_check import PictureCheck
from webarcfs.archive.catalogue.record import NO_WARRANT, Event, FieldNumber, Record, RecordState, Warrant
from webarcfs.archive.catalogue.workflow import CHECKING, LOOKED, TABLE, WorkflowStep, progress_of, with_status
from webarcfs.archive.config.settings import Publication, ReferencePage
from webarcfs.archive.index import links
from webarcfs.archive.index.database import CaptureRow
from webarcfs.archive.index.links import AskedKind, Question
from webarcfs.archive.model.errors import NotFound, TookTooLong, UrlRefused, WebarcError
from webarcfs.archive.model.metadata import ANY_ROLE, now
from webarcfs.archive.model.urls import canonical

# == checking =========================================================================================================


REPORT = "checks.json"
#: Missing images that are counted at most, and how many more than before are a finding.
_MOST_MISSING, _MORE_MISSING = 10_000, 10
_LINKS_SECONDS = 60.0
_PICTURES = "pictures"
#: What lies between checks in a field of a record.
_BETWEEN = "; "
#: Pages that look other than in the crawl, which the record names.
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """A check: its name, what it found wrong (empty: nothing), and a remark.

    `waits`: a person has to look. `is_skipped`: it could not be done, and the remark says why.
    """

    name: str
    fault: str = ""
    remark: str = ""
    waits: bool = False
    is_skipped: bool = False

    @property
    def told(self) -> str:
        """The outcome in words."""
        passed = "not done" if self.is_skipped else "good"
        how = "to be looked at" if self.waits else f"failed: {self.fault}" if self.fault else passed
        return f"{self.name}: {how}" + (f" ({self.remark})" if self.remark else "")


def check(step: StepContext) -> StepResult:
    """Run all checks of a snapshot. One that fails keeps no other from running."""
    snapshot = Snapshot(step.archive, step.record)
    pages = [_page(snapshot, step, page) for page in pages_in_force(step.publication, step.record)]
    others = []
    for outcome in _others(step):
        step.must_go_on()
        others.append(outcome)
    with step.report() as folder:
        if most := step.publication.check_pictures:
            others.append(_pictures(step, picture_check.compare(step, snapshot, most, folder)))
        rows = [
            {
                "check": outcome.name,
                "fault": outcome.fault,
                "remark": outcome.remark,
                "skipped": outcome.is_skipped,
            }
            for outcome in (*pages, *others)
        ]
        (folder / REPORT).write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
    failed = [outcome for outcome in (*pages, *others) if outcome.fault]
    texts: dict[int, str] = {
        FieldNumber.CHECKED_PAGES: "; ".join(outcome.told for outcome in pages),
        FieldNumber.OTHER_CHECKS: "; ".join(outcome.told for outcome in others),
    }
    remark = (
        f"{len(failed)} of {len(pages) + len(others)} checks failed: {', '.join(outcome.name for outcome in failed)}"
    )
    return StepResult(texts, remark if failed else "", waits=any(outcome.waits for outcome in pages))


def pages_in_force(publication: Publication, record: Record) -> list[ReferencePage]:
    """Return the reference pages of a publication that a snapshot of that time is checked by."""
    return [page for page in publication.check if converting.holds(page.since, page.until, record.date)]


def name_of(page: ReferencePage) -> str:
    """Return what people call a reference page."""
    return page.name or page.url


def _page(snapshot: Snapshot, step: StepContext, page: ReferencePage) -> Outcome:
    try:
        capture = snapshot.find(page.url)
        fault = "it is not in the snapshot" if capture is None else _fault(snapshot, step, page, capture)
    except (WebarcError, ValueError) as error:
        fault = str(error)
    waits = page.by == "person" and not fault
    return Outcome(name_of(page), fault, page.url if waits else "", waits)


def _fault(snapshot: Snapshot, step: StepContext, page: ReferencePage, capture: CaptureRow) -> str:
    """Return what a reference page lacks; empty if it has all that is expected."""
    if capture.status >= 400:
        return f"it was sent with status {capture.status}"
    if page.expects == "page":
        rules = converting.rules_of(step.publication.error_page, (), step.record.date)
        is_error = any(mark.encode() in snapshot.body(capture) for mark in rules.marks)
        return "it is an error page" if is_error else ""
    if page.expects == "text":
        return "" if page.text in " ".join(snapshot.text(capture).split()) else f"it does not say {page.text!r}"
    targets = [link.target for link in snapshot.links(capture) if page.text in link.target]
    if any(_is_expected(step.publication, page.expects, capture.url, target) for target in targets):
        return ""
    return f"it has no {page.expects} link" + (f" with {page.text!r}" if page.text else "")


def _is_expected(publication: Publication, expects: str, url: str, target: str) -> bool:
    if expects == "mailto":
        return target.startswith("mailto:")
    if target.startswith("mailto:"):
        return False
    if expects == "excluded":
        return _is_left_out(publication, target)
    return scope.domain_in(target) != scope.domain_in(url)


def _is_left_out(publication: Publication, url: str) -> bool:
    bounds = CrawlScope(
        hosts=frozenset({scope.domain_in(url)}),
        exclude=publication.exclude_hosts,
        left_out=tuple(exclusion.match for exclusion in publication.exclude),
        private_addresses=True,
    )
    return scope.judge(bounds, url, 0, LinkKind.LINK) in (EXCLUDED, EXCLUDED_HOST)


def _others(step: StepContext) -> Iterator[Outcome]:
    """Run the checks that are of no single page."""
    if not step.record.complete:
        yield Outcome("capture", "it is incomplete")
    if not step.publication.watch:  # what is new has the size that it has
        yield from _sizes(step)
    if step.publication.check_search:
        yield _search(step, step.publication.check_search)
    yield from _missing(step)
    for name in step.publication.checks:
        step.must_go_on()
        findings = plugin.findings(step.archive, step.record.id, name, step.scratch)
        yield Outcome(name, "; ".join(findings))


def _sizes(step: StepContext) -> Iterator[Outcome]:
    """Compare bytes and documents with those of the snapshot before."""
    bound = step.publication.check_bounds
    for number, name in ((FieldNumber.BYTES, "bytes"), (FieldNumber.FILES, "documents")):
        new = step.record.text(number)
        old = "" if step.before is None else step.before.text(number)
        if not (new.isdecimal() and old.isdecimal() and int(old)):
            continue
        change = (int(new) - int(old)) / int(old)
        fault = f"{new}, {change:+.0%} beside {old} before" if bound and abs(change) > bound else ""
        yield Outcome(name, fault, f"{change:+.1%}" if not fault else "")


def _search(step: StepContext, word: str) -> Outcome:
    """Search a word in the snapshot."""
    name = f"search for {word!r}"
    if not fulltext.installed():
        return Outcome(name, "the full-text index needs more libraries: pip install 'webarcfs[search]'")
    from webarcfs.search.searching import Searcher, SearchQuestion  # noqa: PLC0415 # they need libraries

    total = 0
    try:
        searcher = Searcher(step.archive)
        for part in step.record.parts:
            total += searcher.ask(SearchQuestion(words=word, at=part.tag, limit=1)).total
    except WebarcError as error:
        return Outcome(name, str(error))
    return Outcome(name, "" if total else "it finds nothing", f"{total} hits" if total else "")


def _missing(step: StepContext) -> Iterator[Outcome]:
    """Count images that pages show and the snapshot has not, beside the snapshot before."""
    try:
        new = _missing_images(step, step.record)
        old = None if step.before is None else _missing_images(step, step.before)
    except (NotFound, TookTooLong):
        return  # links are not kept
    is_worse = old is not None and new > old * (1 + step.publication.check_bounds) and new - old >= _MORE_MISSING
    fault = f"{new}, {old} before" if is_worse else ""
    yield Outcome("missing images", fault, str(new) if not fault else "")


def _pictures(step: StepContext, checked: PictureCheck) -> Outcome:
    """Return what came of the comparison of pictures."""
    if checked.why_not:
        return Outcome(_PICTURES, remark=checked.why_not.replace(_BETWEEN, ", "), is_skipped=True)
    compared = sum(row.likeness is not None for row in checked.rows)
    failed = len(checked.rows) - compared
    left = f", {failed} could not be compared" if failed else ""
    unlike = checked.unlike(step.publication.check_likeness)
    if not unlike:
        return Outcome(_PICTURES, remark=f"{compared} pages compared{left}", is_skipped=not compared)
    named = ", ".join(f"{row.url} {row.likeness:.0%}" for row in unlike[:_MOST_NAMED])
    more = f", {len(unlike) - _MOST_NAMED} more" if len(unlike) > _MOST_NAMED else ""
    return Outcome(_PICTURES, f"{len(unlike)} of {compared} pages look unlike the crawl: {named}{more}{left}")


def _missing_images(step: StepContext, record: Record) -> int:
    count = 0
    for part in record.parts:
        question = Question(at=part.tag, kind=AskedKind.IMAGE, broken=True, role=ANY_ROLE, limit=_MOST_MISSING)
        count += sum(1 for _ in links.ask(step.archive, question, _LINKS_SECONDS))
    return count


def is_known(url: str, page: ReferencePage) -> bool:
    """Return whether people mean a page by its name or its URL."""
    try:
        return url in (page.name, page.url) or canonical(url) == page.url
    except UrlRefused:
        return False


# == looking ==========================================================================================================


def waiting(record: Record, publication: Publication) -> list[ReferencePage]:
    """Return the reference pages of a snapshot that a person has to look at."""
    if not progress_of(record).looks_wanted:
        return []
    lines = record.text(FieldNumber.CHECKED_PAGES).split(_BETWEEN)
    pages = pages_in_force(publication, record)
    return [page for page in pages if any(line.startswith(_waits(page)) for line in lines)]


def looked(  # noqa: PLR0917 # of one caller
    record: Record,
    page: ReferencePage,
    waiting_pages: Sequence[ReferencePage],
    person: str,
    outcome: Outcome,
    warrant: Warrant = NO_WARRANT,
) -> Record:
    """Return a record after a person looked at one of the pages that wait; the last look ends the check.

    The event names the person: readers see field 62.
    """
    lines = [
        line for line in record.text(FieldNumber.CHECKED_PAGES).split(_BETWEEN) if not line.startswith(_waits(page))
    ]
    changed = record.with_values({FieldNumber.CHECKED_PAGES: _BETWEEN.join([*lines, outcome.told])}, person, now())
    changed = changed.with_event(LOOKED, person, outcome.told, warrant=warrant)
    if len(waiting_pages) > 1:
        return changed
    state = None if record.state is RecordState.RELEASED else RecordState.CHECKED
    faults = _BETWEEN.join(_faults(changed.events))
    checked = changed.with_event(TABLE[WorkflowStep.CHECK].event, person, faults, state, warrant=warrant)
    return with_status(checked, person, now())


def _faults(events: Sequence[Event]) -> list[str]:
    """Return what the last check found wrong: by programs, then by persons."""
    faults: list[str] = []
    for event in events:
        if event.what == CHECKING:
            faults = [event.text] if event.text else []
        elif event.what == LOOKED and ": failed: " in event.text:
            faults.append(event.text)
    return faults


def _waits(page: ReferencePage) -> str:
    return Outcome(name_of(page), waits=True).told
