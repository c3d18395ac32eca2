"""`webarc-agent import`: what other crawlers wrote."""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from agent.catalogue.recording import catch_up_records, crawl_as_before
from agent.commands.common import archive_option, console, follow, opened, settings_of, stop_on_signals, sums_of, tell
from agent.importing import import_sources
from agent.importing.crawls import CrawlsBy
from agent.importing.foreign import Stated
from agent.importing.planning import MOST_CUTS, PAUSE_HOURS, Grouping, PlannedImport
from agent.indexing import recovery
from agent.jobs import exportedjob, importjob
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.errors import Damaged, Exit, Interrupted, UsageError
from webarcfs.archive.model.metadata import format_utc
from webarcfs.commands.completing import complete_configured
from webarcfs.commands.lazy_commands import AbsolutePath
from webarcfs.commands.listing import OBJECT, Form, format_option, print_object, print_sums
from webarcfs.commands.output import Display
from webarcfs.warc import http_response

_log = logging.getLogger("webarc")


@click.command("import")
@click.argument("files", nargs=-1, metavar="FILE...", type=AbsolutePath(allow_dash=True))
@archive_option
@click.option(
    "--list", "list_", metavar="FILE", help="Paths, one a line, beside FILE...", type=AbsolutePath(allow_dash=True)
)
@click.option("--complete", is_flag=True, help="The files hold all that there was: remove what is missing in them.")
@click.option(
    "--publication",
    metavar="NAME",
    shell_complete=complete_configured,
    help="Whose crawl it is; its settings in webarc.toml hold.",
)
@click.option("--accept-shrink", is_flag=True, help="With --complete: also if much less is left than there was.")
@click.option(
    "--crawls",
    type=click.Choice([choice.value for choice in CrawlsBy]),
    default=CrawlsBy.AUTO.value,
    help="What is one crawl: what its crawler names so, else what no pause parts (auto); all; each file.",
)
@click.option(
    "--pause",
    metavar="HOURS",
    type=click.FloatRange(min=0, min_open=True),
    default=PAUSE_HOURS,
    show_default=True,
    help="So long without a capture ends a crawl.",
)
@click.option(
    "--max-cuts",
    metavar="N",
    type=click.IntRange(min=1),
    default=MOST_CUTS,
    show_default=True,
    help="Snapshots of a host in one crawl, at most.",
)
@click.option("--try", "is_trial", is_flag=True, help="Say which crawls it would make, and publish nothing.")
@click.option(
    "--captured",
    metavar="TIME",
    help="When copies were made that do not say it: mirrors, most saved pages. In CET without a zone.",
)
@click.option(
    "--base", metavar="URL", help="What FILE is a copy of: the address of a saved page, or of a mirror's folder."
)
@click.option("--again", is_flag=True, help="Take files that were imported before, and add what is missing.")
@click.option("--as-exported", is_flag=True, help="The files are of `webarc export`: make the same snapshots again.")
@format_option(*OBJECT)
def import_(  # noqa: PLR0917 # click passes them by name
    files: tuple[Path, ...],
    archive: str | None,
    list_: Path | None,
    complete: bool,
    publication: str | None,
    accept_shrink: bool,
    crawls: CrawlsBy,
    pause: float,
    max_cuts: int,
    is_trial: bool,
    captured: str | None,
    base: str | None,
    again: bool,
    as_exported: bool,
    form: Form,
) -> None:
    """Take in what any crawler wrote: WARC and ARC files (plain, gzip, zstd), WACZ, and mirrors of HTTrack.

    FILE may be a folder: all such files in it are taken, in order of their paths. `-` is one from standard input.

    Copies are taken as well: pages that a browser saved (SingleFile, MHTML, "Save as: complete"), HAR, and folders that
    `wget -r` or `wget -p` made. Their time is the one in the file, else --captured; the date of a file is no time. A
    copy never takes the place of what a server sent to a crawler. data.xml says what it was taken from.

    What a crawler's browser showed of a page (urn:text, urn:view and the lists of pages of Browsertrix and
    ArchiveWeb.page) is kept beside it. Search finds the words of that text, and a page without a title has the one that
    is listed.

    The captures of all files are sorted by time and become crawls, each with a record of its own. A crawl is what its
    crawler names so (a WACZ, a launch of Heritrix, a snapshot of ArchiveBox, isPartOf of a warcinfo record); captures
    without such a name are one until a pause. Each host becomes a snapshot at the time of its first capture, and a
    further one wherever a URL has other bytes than before. A file that was imported before changes nothing; with
    --again, it adds what the archive does not have of it.

    With --as-exported, each snapshot comes back as it was exported, with its publication, additions and data nodes; one
    whose files are not all there, or were changed, is refused.
    """
    files = (*files, *(import_sources.listed(list_) if list_ else ()))
    if not files:
        raise UsageError("FILE or --list is missing; give what is to be imported")
    if as_exported and (complete or publication or accept_shrink or is_trial or again or captured or base):
        raise UsageError("--as-exported takes everything as it was; no other option changes that")
    stated = _stated(captured, base, files)
    place = opened(archive)
    crawl_as_before(place)
    settings = settings_of(place)
    with Display(console) as display:
        recovery.catch_up(place, progress=display)
        catch_up_records(place, progress=display)
    request = importjob.ImportRequest(
        complete=complete,
        accept_shrink=accept_shrink,
        again=again,
        grouping=Grouping(CrawlsBy(crawls), max(round(pause * 3600), 1), max_cuts),
    )
    with ExitStack() as stack:
        if as_exported:
            _as_exported(place, import_sources.files_of(files, place.log, stack), form)
        else:
            _import(place, settings, _Asked(files, publication, is_trial, stated, form), request, stack)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for: files, their publication, whether it is a trial, what is said of copies, how it is told."""

    files: Sequence[Path]
    publication: str | None
    is_trial: bool
    stated: Stated
    form: Form


def _import(
    place: Archive, settings: Settings, asked: _Asked, request: importjob.ImportRequest, stack: ExitStack
) -> None:
    with Display(console) as display:
        given = import_sources.chosen(asked.files, place.log, stack, display, asked.stated)
        if request.complete and given.faults:  # what is in these would be removed as missing
            raise Damaged("\n".join(given.faults))
        copies = [source.name for source in given.sources if request.complete and source.is_copy]
        if copies:
            raise UsageError(
                f"--complete: {copies[0]} is a copy, which does not say what was gone; leave the option out"
            )
        whose = _publication(settings, asked.publication or import_sources.name_of(given.sources))
        profile = settings.profiles[whose.profile] if whose.profile else None
        work = importjob.tried if asked.is_trial else importjob.run
        done = work(place, given.sources, whose, profile, request, stop=stop_on_signals(), progress=display)
    for fault in given.faults:
        _log.warning("%s", fault)
    for remark in (*given.remarks, *done.remarks):
        _log.info("%s", remark)
    if isinstance(done, PlannedImport):
        is_whole = _planned(done, asked.form)
    else:
        is_whole = _imported(place, done, given.faults, asked.form)
    if given.faults or not is_whole:
        sys.exit(Exit.INCOMPLETE)


def _planned(plan: PlannedImport, form: Form) -> bool:
    """Print a plan; return whether nothing would be lost."""
    print_sums(form, dataclasses.asdict(plan), plan.lines())
    return not plan.losses


def _imported(place: Archive, done: importjob.Imported, faults: Sequence[str], form: Form) -> bool:
    """Report what an import did; return whether nothing is lost."""
    for known in done.known if form is Form.TABLE else ():
        click.echo(f"{known.place} was imported already")
    for warning in dict.fromkeys(warning for outcome in done.outcomes for warning in outcome.warnings):
        _log.warning("%s", warning)
    for outcome in done.outcomes:
        tell(dataclasses.replace(outcome, warnings=()), judged=False, form=form)
        follow(place, outcome.job)
    if form is Form.JSON:
        known_files = [str(known.place) for known in done.known]
        sums = {"known": known_files, "remarks": list(done.remarks), "faults": list(faults)}
        print_object({"crawls": [sums_of(outcome, judged=False) for outcome in done.outcomes], **sums})
    return not any(outcome.interrupted or outcome.warnings for outcome in done.outcomes)


def _as_exported(place: Archive, files: tuple[Path, ...], form: Form) -> None:
    """Rebuild the snapshots of exported files, and report what came of it."""
    try:
        with Display(console) as display:
            done = exportedjob.run(place, files, stop=stop_on_signals(), progress=display)
    except Interrupted as error:
        _log.warning("%s", error)
        sys.exit(Exit.INCOMPLETE)
    for line in done.faults:
        _log.warning("%s", line)
    tags = list(map(str, done.published))
    sums = dataclasses.asdict(done) | {"published": tags, "there": list(map(str, done.there))}
    print_sums(form, sums, tags)
    for line in done.remarks:
        _log.warning("%s", line)
    _log.info("%d snapshots made, %d were there already", len(done.published), len(done.there))
    if done.refused:
        raise Damaged("\n".join(done.refused))


def _stated(captured: str | None, base: str | None, files: Sequence[Path]) -> Stated:
    """Return what the options say of copies. Raises UsageError."""
    try:
        time = None if captured is None else validators.time(captured)
        date = format_utc(time) if time else ""
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--captured: {error}") from None
    if date and not http_response.parse_date(date):
        raise UsageError(f"--captured: {captured} is before the web, or in the future")
    if base and len(files) != 1:
        raise UsageError("--base says what one FILE is a copy of; give one")
    try:
        return Stated(validators.start_url(base) if base else "", time)
    except UsageError as error:
        raise UsageError(f"--base: {error}") from None


def _publication(settings: Settings, name: str) -> Publication:
    """Return the publication of that name in webarc.toml, else a new one."""
    try:
        validators.name(name)
    except ValueError as error:
        raise UsageError(f"--publication: {error}") from None
    known = (publication for publication in settings.publications if publication.name == name)
    return next(known, settings.unlisted(name))
