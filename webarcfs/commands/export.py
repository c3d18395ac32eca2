"""`webarc export`: snapshots in the field's formats, to leave with or to show elsewhere."""

from __future__ import annotations

import contextlib
import errno
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import click

from webarcfs.archive.additions.commit_additions import commit_additions
from webarcfs.archive.additions.waiting_additions import settle_first
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Exists, Exit, Interrupted, UsageError, WebarcError
from webarcfs.archive.system.standard_streams import is_output_closed
from webarcfs.commands.arguments import ArchiveArgument, moment, named, place_options
from webarcfs.commands.completing import complete_publications, complete_records, complete_tags
from webarcfs.commands.lazy_commands import AbsolutePath
from webarcfs.commands.listing import error_console, to_json
from webarcfs.commands.output import Display
from webarcfs.commands.snapshot_names import Beside
from webarcfs.export.export_result import DAMAGED, Progress, Stop, Summary, Unfinished
from webarcfs.export.selection import Asked, Selection, opener, select

#: Format → the module that has its `export`.
FORMATS = {
    "warc": "webarcfs.export.warc",
    "wacz": "webarcfs.export.wacz",
    "cdxj": "webarcfs.export.cdxj",
    "static": "webarcfs.export.static_site",
    "bagit": "webarcfs.export.bagit",
}
#: Formats that standard output can have.
_STREAMS = ("warc", "cdxj")
_STREAM = "-"


@click.command()
@click.argument("out", metavar="OUT", type=AbsolutePath(allow_dash=True))
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="warc", show_default=True)
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
    help="The snapshots of this record, as its publication saw them.",
)
@click.option(
    "--publication",
    default="",
    metavar="NAME",
    shell_complete=complete_publications,
    help="Those of this publication, as it saw them.",
)
@place_options
@click.option("--json", "as_json", is_flag=True, help="Tell what was exported as JSON.")
def export(
    out: Path,
    *,
    form: str,
    at: str | None,
    since: str | None,
    record: str,
    publication: str,
    place: ArchiveArgument,
    as_json: bool,
) -> None:
    """Write snapshots to OUT in another format.

    Without a choice it is the whole archive: all snapshots of all domains. With --as-reader it is what readers may see.
    OUT must not exist. While it is being made it is in OUT.part. The same command resumes an interrupted export, with
    the snapshots that there were when it began. A document that is damaged is left out; the exit code is 3 then.

    \b
    warc     WARC/1.1 files in a folder; one file if OUT ends in .warc.gz or .warc; - is standard output
    wacz     one file with WARC, index and pages, for replay in a browser
    cdxj     the index of such files; with OUT the folder of a WARC export, of these files
    static   a folder that a browser reads without any server
    bagit    a bag with WARC files, events and checksums, for deposit

    \b
    Examples:
      webarc export /backup/archive-2026 --json
      webarc export --format warc --at 2026-11-21T03:00:00@www.example.org example.warc.gz
      webarc export --since 2026-10-21T03:00:00@www.example.org news/
      webarc export --since latest~1@www.example.org newest/
      webarc export --format wacz --publication example --as-reader example.wacz
      webarc export --format static --at 2026-11-21 site/
      webarc export --record 20261121T030000-example - | warcio index -
    """
    beside = Beside(publication=publication)
    asked = Asked(moment(place, at, beside), named(place, since, beside) if since else None, record, publication)
    write = _format(form)
    is_stream = str(out) == _STREAM
    if is_stream and form not in _STREAMS:
        raise UsageError(f"standard output can have {' or '.join(_STREAMS)}, and not {form}; give a name")
    if not is_stream and out.is_dir() and form == "cdxj":
        out = out / "index.cdxj"
    logging.basicConfig(level=logging.INFO, format="webarc: %(message)s", stream=sys.stderr)
    _settle(place.archive)
    with _stopping() as stop, Display(error_console()) as progress:

        def make(selection: Selection, target: Path) -> Summary:
            return write(selection, target, progress, lambda: stop() or (is_stream and is_output_closed()))

        if is_stream:
            try:
                summary = make(select(place.archive, asked, place.reader), out).as_fields()
            except Interrupted:
                if is_output_closed():
                    return
                raise
        else:
            summary = _made(place, asked, form, out, make)
    report = {"format": form, "out": str(out), **summary}
    click.echo(to_json(report) if as_json else _text(report), err=is_stream)
    for reason, number in summary["left_out"].items() if not as_json else ():
        click.echo(f"webarc: left out: {number:,} {reason}", err=True)
    if DAMAGED in summary["left_out"]:
        sys.exit(Exit.INCOMPLETE)


def _settle(archive: Archive) -> None:
    """Let the provisional files of mounts settle, and commit them, so that they are exported; say how many."""
    settled = settle_first(archive)
    for domain in settled.domains:
        with contextlib.suppress(WebarcError, OSError):  # the mount commits them as soon as it can
            commit_additions(archive, domain)
    for line in settled.lines:
        click.echo(f"webarc: {line}", err=True)


def _made(
    place: ArchiveArgument, asked: Asked, form: str, out: Path, make: Callable[[Selection, Path], Summary]
) -> dict[str, Any]:
    """Make the result at `out`, or resume it; report a full disk."""
    reader = "" if place.gate is None or place.gate.is_staff else place.gate.reader.name or "public"
    words = {"format": form, "archive": str(place.archive.root.absolute()), "what": str(asked), "reader": reader}

    def again(noted: Mapping[str, Any]) -> Selection:
        selection = Selection.from_json(noted, opener(place.archive, place.reader))
        if place.reader is not None:
            now = select(place.archive, replace(asked, at=None, since=None), place.reader)
            if any(set(rows) - set(now.chosen.get(domain, ())) for domain, rows in selection.chosen.items()):
                raise Exists(f"readers may see less now than when {out}.part was begun; remove that")
        return selection

    def begin() -> Selection:
        return select(place.archive, asked, place.reader)

    try:
        return Unfinished(out, words, begin, again, make).run()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise WebarcError(
            f"{out} is incomplete: {error.strerror}; with more room the same command resumes it (or remove {out}.part)"
        ) from None


def _format(name: str) -> Callable[[Selection, Path, Progress, Stop], Summary]:
    """Return the function that writes a format. Raises UsageError where its libraries are missing."""
    try:
        write: Callable[[Selection, Path, Progress, Stop], Summary] = import_module(FORMATS[name]).export
    except ModuleNotFoundError as error:
        raise UsageError(f"{name} needs more libraries ({error.name}): pip install 'webarcfs[exchange]'") from None
    return write


def _text(report: Mapping[str, Any]) -> str:
    """Return the summary for people."""
    numbers = {name: report[name] for name in ("snapshots", "documents", "records", "files", "bytes") if report[name]}
    words = (f"{number:,} {name if number != 1 else name[:-1]}" for name, number in numbers.items())
    return f"{report['out']}: {', '.join(words)}"


@contextmanager
def _stopping() -> Iterator[Stop]:
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
