"""`webarc export`: snapshots in the field's formats, to leave with or to show elsewhere."""

from __future__ import annotations

import contextlib
import errno
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import click

from webarcfs.access.visible_captures import VisibleCaptures
from webarcfs.archive.additions.commit_additions import commit_additions
from webarcfs.archive.additions.waiting_additions import settle_first
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import CaptureIndex
from webarcfs.archive.model.errors import Exists, Exit, Interrupted, UsageError, WebarcError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system.clocks import Progress
from webarcfs.archive.system.standard_streams import is_output_closed
from webarcfs.commands.arguments import ArchiveArgument, moment, named, place_options
from webarcfs.commands.completing import complete_publications, complete_records, complete_tags
from webarcfs.commands.lazy_commands import AbsolutePath
from webarcfs.commands.listing import error_console, to_json
from webarcfs.commands.output import Display, log_progress
from webarcfs.commands.snapshot_names import Beside
from webarcfs.commands.version_words import VersionWords
from webarcfs.export.descriptions import descriptions, write_records
from webarcfs.export.export_result import DAMAGED, Summary, Unfinished
from webarcfs.export.hidden_parts import HiddenParts, count_hidden
from webarcfs.export.selection import Asked, Selection, Stop, opener, select
from webarcfs.export.version_selection import ROWS, VersionSelection, choose

#: Format → the module that has its `export`.
FORMATS = {
    "warc": "webarcfs.export.warc",
    "wacz": "webarcfs.export.wacz",
    "cdxj": "webarcfs.export.cdxj",
    "static": "webarcfs.export.static_site",
    "bagit": "webarcfs.export.bagit",
    "files": "webarcfs.export.named_files",
    "csv": "webarcfs.export.version_table",
    "jsonl": "webarcfs.export.version_table",
}
#: Formats of snapshots alone, and of what a search or a query found alone.
_OF_SNAPSHOTS, _OF_VERSIONS = ("static", "bagit"), ("files", "csv", "jsonl")
#: Formats that standard output can have.
_STREAMS = ("warc", "cdxj", "csv", "jsonl")
_STREAM = "-"
#: Formats that have a place for records of their own.
_WITH_RECORDS = ("wacz", "bagit")


@click.command()
@click.argument("out", metavar="OUT", type=AbsolutePath(allow_dash=True))
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="warc", show_default=True)
@click.option("--search", "words", metavar="WORDS", help="The versions that `webarc search` finds by these words.")
@click.option("--query", "where", metavar="WHERE", help="The versions that `webarc query` finds; '' is all of them.")
@click.option("--one-a-url", is_flag=True, help="Of what was found at a URL, the newest version alone.")
@click.option("--with-resources", is_flag=True, help="Also images, sheets, scripts and frames that the pages need.")
@click.option("--text", "with_text", is_flag=True, help="With files: also the plain text of each, beside it.")
@click.option("--text-only", is_flag=True, help="With files: the plain text instead of the documents.")
@click.option(
    "--at",
    metavar="TAG|TIME",
    shell_complete=complete_tags,
    help="The snapshot TAG, or every domain as it was at TIME; a day is its end.",
)
@click.option(
    "--since", metavar="TAG", shell_complete=complete_tags, help="Only what its domain had after this snapshot."
)
@click.option(
    "--record",
    default="",
    metavar="RECORD",
    shell_complete=complete_records,
    help="The snapshots of this record, by its name or number, as its publication saw them; of a publication's name "
    "those of its newest crawl.",
)
@click.option(
    "--publication",
    default="",
    metavar="NAME",
    shell_complete=complete_publications,
    help="Those of this publication, as it saw them.",
)
@place_options
@click.option(
    "--with-records",
    is_flag=True,
    help="Also the description of each crawl, its record as XML, with a folder of WARC files, a wacz or a bagit.",
)
@click.option("--json", "as_json", is_flag=True, help="Tell what was exported as JSON.")
def export(
    out: Path,
    *,
    form: str,
    words: str | None,
    where: str | None,
    one_a_url: bool,
    with_resources: bool,
    with_text: bool,
    text_only: bool,
    at: str | None,
    since: str | None,
    record: str,
    publication: str,
    place: ArchiveArgument,
    with_records: bool,
    as_json: bool,
) -> None:
    """Write snapshots, or what a search or a query finds, to OUT in another format.

    Without a choice it is the whole archive: all snapshots of all domains. With --as-reader it is what readers may see.
    Without --as-reader it takes along what readers do not see, and says how much that is: pages that are withheld, and
    crawls that are not released or under embargo.

    OUT must not exist. While it is being made it is in OUT.part. The same command resumes an interrupted export, with
    the snapshots that there were when it began. A document that is damaged is left out; the exit code is 3 then.

    \b
    warc     WARC/1.1 files in a folder; one file if OUT ends in .warc.gz or .warc; - is standard output
    wacz     one file with WARC, index and pages, for replay in a browser
    cdxj     the index of such files; with OUT the folder of a WARC export, of these files
    static   a folder that a browser reads without any server
    bagit    a bag with WARC files, events and checksums, for deposit; needs `pip install 'webarcfs[exchange]'`
    files    a folder of files named by date and title, with index.csv: of a search or query
    csv      a row a version, with its text, times, URL and language: of a search or query
    jsonl    the same, an object a line

    --search and --query take away every version that they find, and each capture that met it unchanged, with the times
    of the captures: a URL has as many versions as it had contents with these words. --one-a-url takes the newest of
    them. All words of `webarc search` hold, as do its defaults: no error pages, no mere resources. --at, --record and
    --publication narrow it. With --with-resources, replay shows the pages as they were.

    To hand a crawl over to another institution, take --record with --with-records: the description comes with the
    pages, in the folder records/ of the result, or metadata/records/ of a bag. `webarc-agent record export` writes
    descriptions alone, also as JSON, CSV and Dublin Core.

    \b
    Examples:
      webarc export /backup/archive-2026 --json
      webarc export --format warc --at 2026-11-21T03:00:00@www.example.org example.warc.gz
      webarc export --since 2026-10-21T03:00:00@www.example.org news/
      webarc export --since latest~1@www.example.org newest/
      webarc export --format wacz --publication example --as-reader example.wacz
      webarc export --format static --at 2026-11-21 site/
      webarc export --record 20261121T030000-example --with-records --format wacz crawl.wacz
      webarc export --record 20261121T030000-example - | warcio index -

    \b
    Examples of what a search or a query finds:
      webarc export --search 'mayor site:example.org' --with-resources mayor.warc.gz
      webarc export --search '"annual report" type:pdf' --format files --text reports/
      webarc export --search 'flood after:2021-07' --format csv flood.csv
      webarc export --query "mimeType = 'application/pdf' AND title LIKE '%minutes%'" --format files minutes/
      webarc export --query "domain = 'www.example.org'" --format jsonl --as-reader - | jq -r .text
    """
    is_stream = str(out) == _STREAM
    if is_stream and form not in _STREAMS:
        formats = f"{', '.join(_STREAMS[:-1])} or {_STREAMS[-1]}"
        raise UsageError(f"standard output can have {formats}, and not {form}; give a name")
    beside = Beside(publication=publication)
    when, after = moment(place, at, beside), named(place, since, beside) if since else None
    options = {"one_a_url": one_a_url, "resources": with_resources, "text": with_text, "text_only": text_only}
    exported: _Exported
    if words is None and where is None:
        _check_of_snapshots(form, options)
        exported = _Snapshots(place, Asked(when, after, record, publication))
    else:
        _check_of_versions(form, options, after)
        exported = _Versions(
            place,
            VersionWords(words, where, when, record, publication, one_a_url=one_a_url, with_resources=with_resources),
        )
    if with_records:
        _check_records(form, out)
        options["records"] = True
    write = _format(form, options)
    if not is_stream and out.is_dir() and form == "cdxj":
        out = out / "index.cdxj"
    log_progress()
    _settle(place.archive)
    with stopping() as stop, Display(error_console()) as progress:

        def make(selection: Any, target: Path) -> Summary:
            hidden = _hidden_in(place, selection, after, stop)
            records = descriptions(place.archive, selection, place.gate) if with_records else ()
            own = {"records": records} if form in _WITH_RECORDS else {}
            summary = write(selection, target, progress, lambda: stop() or (is_stream and is_output_closed()), **own)
            count, size = write_records(target, () if own else records)
            return replace(summary, hidden=hidden, files=summary.files + count, bytes=summary.bytes + size)

        if is_stream:
            try:
                with tempfile.TemporaryDirectory(prefix="webarcfs-") as folder:
                    summary = make(exported.select(Path(folder), progress, stop), out).as_fields()
            except Interrupted:
                if is_output_closed():
                    return
                raise
        else:
            summary = _made(place, exported, out, make, form=form, options=options, shown=(progress, stop))
    report = {"format": form, "out": str(out), **summary}
    click.echo(to_json(report) if as_json else _text(report), err=is_stream)
    for reason, number in summary["left_out"].items() if not as_json else ():
        click.echo(f"webarc: left out: {number:,} {reason}", err=True)
    if not as_json and (said := _text_of_hidden(summary["hidden"])):
        click.echo(f"webarc: {said}", err=True)
    if DAMAGED in summary["left_out"]:
        sys.exit(Exit.INCOMPLETE)


def _check_records(form: str, out: Path) -> None:
    is_folder = form == "warc" and str(out) != _STREAM and not out.name.endswith((".warc", ".warc.gz"))
    if form not in _WITH_RECORDS and not is_folder:
        raise UsageError(
            "--with-records needs a place for them: --format wacz or bagit, or a folder of WARC files; "
            "`webarc-agent record export` writes records alone"
        )


def _hidden_in(place: ArchiveArgument, selection: Any, since: CommitTag | None, stop: Stop) -> Mapping[str, int] | None:
    """Return what an export has that readers do not see; nothing of one for readers. None: that is not known."""
    if place.gate is not None and not place.gate.is_staff:
        return HiddenParts().as_fields()
    try:
        return count_hidden(place.archive, selection, stop, since).as_fields()
    except Interrupted:
        raise
    except (WebarcError, OSError) as error:
        click.echo(f"webarc: what of it readers do not see is not known: {error}", err=True)
        return None


def _text_of_hidden(hidden: Mapping[str, int] | None) -> str:
    """Return what an export has that readers do not see, for people; empty for nothing."""
    if hidden is None or not any(hidden.values()):
        return ""
    pages, snapshots, hosts = hidden["pages"], hidden["snapshots"], hidden["hosts"]
    parts = []
    if pages:
        parts.append(f"{pages:,} withheld page{'s' * (pages != 1)}")
    if snapshots:
        what = f"{snapshots:,} snapshot{'s' * (snapshots != 1)} of {hosts:,} host{'s' * (hosts != 1)}"
        parts.append(f"{what}, not released or under embargo")
    return f"included, and hidden from readers: {'; '.join(parts)}. --as-reader leaves that out"


def _check_of_snapshots(form: str, options: Mapping[str, bool]) -> None:
    if form in _OF_VERSIONS:
        raise UsageError(f"{form} is of a search or a query; give --search or --query (--query '' is every version)")
    if any(options.values()):
        raise UsageError("--one-a-url, --with-resources, --text and --text-only belong to --search and --query")


def _check_of_versions(form: str, options: Mapping[str, bool], since: CommitTag | None) -> None:
    if form in _OF_SNAPSHOTS:
        others = ", ".join(name for name in FORMATS if name not in _OF_SNAPSHOTS)
        raise UsageError(f"{form} is of whole snapshots; the formats of a search or a query are {others}")
    if since is not None:
        raise UsageError("--since is of snapshots; a search has after:, a query crawlTime")
    if options["resources"] and form in _OF_VERSIONS:
        raise UsageError(f"--with-resources is for replay, by warc, wacz and cdxj; {form} has what was found")
    if form != "files" and (options["text"] or options["text_only"]):
        raise UsageError("--text and --text-only are of --format files; csv and jsonl have the text in a column")
    if options["text"] and options["text_only"]:
        raise UsageError("--text puts the text beside the documents, --text-only in their place; give one of them")


class _Exported(Protocol):
    """What is exported: decided now, or as it was written down."""

    def select(self, part: Path, progress: Progress, stop: Stop) -> Any: ...

    def again(self, noted: Mapping[str, Any], part: Path) -> Any: ...


@dataclass(frozen=True, slots=True)
class _Snapshots:
    """Snapshots."""

    place: ArchiveArgument
    asked: Asked

    def __str__(self) -> str:
        return str(self.asked)

    def select(self, _part: Path, _progress: Progress, _stop: Stop) -> Selection:
        """Decide which."""
        return select(self.place.archive, self.asked, self.place.reader)

    def again(self, noted: Mapping[str, Any], part: Path) -> Selection:
        """Return those that were decided. Raises Exists if readers may see less by now."""
        archive, reader = self.place.archive, self.place.reader
        selection = Selection.from_json(noted, opener(archive, reader))
        if reader is not None:
            now = select(archive, replace(self.asked, at=None, since=None), reader)
            if any(set(rows) - set(now.chosen.get(domain, ())) for domain, rows in selection.chosen.items()):
                raise Exists(f"readers may see less now than when {part} was begun; remove that")
        return selection


@dataclass(frozen=True, slots=True)
class _Versions:
    """Versions that a question finds."""

    place: ArchiveArgument
    words: VersionWords

    def __str__(self) -> str:
        return str(self.words)

    def select(self, part: Path, progress: Progress, stop: Stop) -> VersionSelection:
        """Find them."""
        question = self.words.question(self.place)
        gate = self.place.known_gate()
        gate.look()
        with CaptureIndex(self.place.archive.database) as index:
            captures = VisibleCaptures(gate, index)
            open_ = opener(self.place.archive, self.place.reader)
            return choose(captures, question, open_, part / ROWS, progress=progress, stop=stop)

    def again(self, noted: Mapping[str, Any], part: Path) -> VersionSelection:
        """Return those that were found. Raises Exists if they may not all be seen any more."""
        selection = VersionSelection.from_json(noted, part / ROWS, opener(self.place.archive, self.place.reader))
        if self.place.reader is not None:
            selection.must_be_visible()
        return selection


def _settle(archive: Archive) -> None:
    """Let the provisional files of mounts settle, and commit them, so that they are exported; say how many."""
    settled = settle_first(archive)
    for domain in settled.domains:
        with contextlib.suppress(WebarcError, OSError):  # the mount commits them as soon as it can
            commit_additions(archive, domain)
    for line in settled.lines:
        click.echo(f"webarc: {line}", err=True)


def _made(
    place: ArchiveArgument,
    exported: _Exported,
    out: Path,
    make: Callable[[Any, Path], Summary],
    *,
    form: str,
    options: Mapping[str, bool],
    shown: tuple[Progress, Stop],
) -> dict[str, Any]:
    """Make the result at `out`, or resume it; report a full disk."""
    reader = "" if place.gate is None or place.gate.is_staff else place.gate.reader.name or "public"
    words = {"format": form, "archive": str(place.archive.root.absolute()), "what": str(exported), "reader": reader}
    words |= {name: "yes" for name, is_asked in options.items() if is_asked}

    def begin(part: Path) -> Any:
        return exported.select(part, *shown)

    try:
        return Unfinished(out, words, begin, exported.again, make).run()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise WebarcError(
            f"{out} is incomplete: {error.strerror}; with more room the same command resumes it (or remove {out}.part)"
        ) from None


def _format(name: str, options: Mapping[str, bool]) -> Callable[..., Summary]:
    """Return the `export` of a format; some take records. Raises UsageError where its libraries are missing."""
    try:
        write: Callable[..., Summary] = import_module(FORMATS[name]).export
    except ModuleNotFoundError as error:
        raise UsageError(f"{name} needs more libraries ({error.name}): pip install 'webarcfs[exchange]'") from None
    if name == "files":
        return partial(write, with_text=options["text"] or options["text_only"], with_bodies=not options["text_only"])
    return partial(write, as_csv=name == "csv") if name in _OF_VERSIONS else write


#: What a summary for people has, as far as it is not 0.
_SHOWN = ("snapshots", "versions", "documents", "records", "files", "bytes")


def _text(report: Mapping[str, Any]) -> str:
    """Return the summary for people."""
    numbers = {name: report[name] for name in _SHOWN if report[name]}
    words = (f"{number:,} {name if number != 1 else name[:-1]}" for name, number in numbers.items())
    return f"{report['out']}: {', '.join(words)}"


@contextmanager
def stopping() -> Iterator[Stop]:
    """Yield what says whether SIGINT or SIGTERM came; a second one ends the command at once."""
    asked = False

    def note(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, note)
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
