"""The commands of `webarc-agent` that are about an archive as a whole.

`init` makes a new, empty archive; `upgrade` brings one of an older layout to the current one.

`backup` keeps an incremental copy of an archive; `restore` makes an archive from a copy.

`verify` says whether an archive is whole; `recover` repairs it, and `maintain` keeps it.

`index` brings the full-text index in step, rebuilds it, or writes it out.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TextIO

import click

from agent.catalogue.recording import catch_up_records, keep_old_defaults
from agent.commands.common import archive_option, console, opened, tell_renamed
from agent.importing.planning import flattened_imports
from agent.indexing import fulltext, recovery
from agent.maintenance import backups, damaged_pages, maintenance, restoration, verification
from agent.maintenance.backup_mark import is_backup
from webarcfs.access import access_rules
from webarcfs.archive.additions.waiting_additions import count_waiting, say_waiting
from webarcfs.archive.catalogue import people
from webarcfs.archive.config import directory, settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings_sample import sample_settings
from webarcfs.archive.history import sequence
from webarcfs.archive.model.errors import Exit, UsageError, WebarcError
from webarcfs.archive.system.processes import Signals
from webarcfs.archive.system.standard_streams import is_output_closed
from webarcfs.commands.lazy_commands import AbsolutePath
from webarcfs.commands.listing import OBJECT, Form, Mood, format_option, print_object, print_sums, styled
from webarcfs.commands.output import Display

# == init =============================================================================================================


@click.command()
@click.argument("archive", type=AbsolutePath())
def init(archive: Path) -> None:
    """Make a new, empty archive in the folder ARCHIVE, which must be new or empty.

    Its webarc.toml has every setting with its default, commented out.
    """
    new_archive = directory.create(archive, sample_settings())
    click.echo(
        f"{new_archive.root} is an archive now; `webarc-agent crawl --archive {quote(str(new_archive.root))} URL` fills"
        f" it. Its settings are in {new_archive.settings}: all have their defaults, and stand there to be changed; "
        "`webarc-agent crawl --help` explains those of [crawl]"
    )


@click.command()
@archive_option
@format_option(*OBJECT)
def upgrade(archive: str | None, form: Form) -> None:
    """Bring an archive of an older webarcfs to this one's layout.

    The next crawl does it, too. The archived documents stay as they are. webarc.db is rebuilt if it is of an older
    webarcfs. Settings whose defaults changed are written beside the publications that exist, so that these are crawled
    as before. It names imports of older versions that made one snapshot of captures of several days. Older programs
    refuse the archive from then on, so stop theirs before.
    """
    opened_archive = opened(archive)
    before = directory.layout_of(opened_archive.root)
    kept = keep_old_defaults(opened_archive)
    with sequence.hold(opened_archive):
        raised = directory.raise_layout(opened_archive)
    with Display(console) as display:
        recovery.catch_up(opened_archive, progress=display)
        described = catch_up_records(opened_archive, progress=display)
    flattened = list(flattened_imports(opened_archive))
    count = access_rules.move_reasons(opened_archive, people.login_name() or "webarcfs")

    def lines() -> Iterator[str]:
        now = f"had layout {before} and has layout {directory.LAYOUT} now" if raised else f"has layout {before} already"
        yield f"{opened_archive.root} {now}"
        yield from (earlier.line() for earlier in flattened)
        if kept:
            what = ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings_files.OLD_DEFAULTS.items())
            yield f"{', '.join(kept)}: crawled as before; what held is written into their settings now ({what})"
        if count:
            yield (
                f"access.aclj: the reasons of {count} rules are for staff alone now, in access-reasons.json; readers "
                "of these pages are told nothing but that they are withheld, unless a rule has a public_text"
            )

    sums = {
        "archive": str(opened_archive.root),
        "layout_before": before,
        "layout": directory.LAYOUT if raised else before,
        "records": described,
        "flattened_imports": [asdict(earlier) | {"tag": str(earlier.tag)} for earlier in flattened],
        "kept_at_old_defaults": list(kept),
        "reasons_moved": count,
    }
    print_sums(form, sums, lines())


# == backup ===========================================================================================================


_log = logging.getLogger("webarc")
_FOLDER = AbsolutePath()


@click.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@archive_option
@click.option("--quick", is_flag=True, help="Do not read what is there already: damage of the disk's is not noticed.")
@format_option(*OBJECT)
def backup(folder: Path, archive: str | None, quick: bool, form: Form) -> None:
    """Copy what is new in the archive to the backup in DIR.

    The archive may be in use meanwhile. The first time DIR must be empty or new. Nothing that was backed up is deleted
    there.

    Unless it is told to be quick, it reads what is in DIR as well, as fast as the disk is, since a disk may damage what
    nobody reads. If a repository is damaged there, it is copied again, and the damaged one is put aside. The command
    says so, and exits with 2.
    """
    place = opened(archive)
    with Display(console) as display:
        copied = backups.backup(place, folder, display, quick=quick)
    left_out = "; the files that were there before were not read" if quick else ""
    state = "is not whole" if copied.failed else "is up to date"
    total = f"{copied.domains} domains, {copied.moved} of them with something new: {folder} {state}{left_out}"
    sums = {"backup": str(folder), **asdict(copied), "whole": not copied.failed, "quick": quick}
    print_sums(form, sums, (*copied.notes, total))
    _complain(copied)


@click.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.argument("archive", type=_FOLDER)
@click.option("--partial", is_flag=True, help="Make an archive also where not all of the backup can be read.")
@click.option("--damaged", is_flag=True, help="Bring back only what is damaged or lost in ARCHIVE, which stays in use.")
@format_option(*OBJECT)
def restore(folder: Path, archive: Path, partial: bool, damaged: bool, form: Form) -> None:
    """Restore an archive, or damaged pages of one, from the backup in DIR.

    ARCHIVE must be an empty or new folder. If something of the backup cannot be read, ARCHIVE is no archive yet. When
    the backup is whole again, the same command resumes. With --partial it makes an archive of what can be read.

    With --damaged ARCHIVE is an archive, of which this is the backup. It stays as it is, but for pages that are damaged
    or lost: they come back, each with its snapshot. Agent, desk, room and mounts may run, and show the pages at once.
    What the backup does not have is named, and the command exits with 2. `webarc-agent verify` names the damage before,
    and shows afterwards that nothing is left.
    """
    if damaged:
        if partial:
            raise UsageError("--damaged is for an archive that exists, and --partial for a new one")
        _restore_damaged(folder, opened(str(archive)), form)
        return
    if (archive / "format").exists():
        raise UsageError(
            f"{archive} is an archive already. With --damaged only what is damaged or lost in it comes back; to restore"
            " all, give a new folder"
        )
    with Display(console) as display:
        copied, recovered, finished = backups.restore(folder, archive, display, partial=partial)
    complaints = [f"not copied: {line}" for line in copied.failed]
    complaints += [f"not repaired: {line}" for line in recovered.left]
    complaints += [f"not readable: {', '.join(recovered.damaged)}"] if recovered.damaged else []
    is_archive = partial or not complaints
    sums = {
        "archive": str(archive),
        "restored": is_archive,
        "domains": copied.domains,
        "snapshots": recovered.snapshots,
        "versions": recovered.versions,
        "missing": [*copied.failed, *recovered.left, *recovered.damaged],
        "backup_was_finished": finished,
    }
    total = f"{copied.domains} domains, {recovered.snapshots} snapshots: {archive} is an archive again"
    print_sums(form, sums, [total] if is_archive else [])
    if not is_archive:
        complaints.append(
            f"{archive} is no archive yet. When {folder} is whole again (`webarc-agent backup` repairs it from a sound"
            " archive), the same command resumes; with --partial it makes an archive of what there is"
        )
    elif complaints:
        complaints.append(f"the file `missing` in {archive} lists what is missing; remove it when you have read it")
    if complaints:
        raise WebarcError("\n".join(complaints))
    if not finished:
        _log.warning("the last backup to %s was not finished: its content is restored", folder)
        sys.exit(Exit.INCOMPLETE)


def _restore_damaged(folder: Path, archive: Archive, form: Form) -> None:
    with Display(console) as display:
        result = restoration.restore_damaged(folder, archive, display)

    def lines() -> Iterator[str]:
        yield from (f"came back: {part}" for part in result.pages)
        yield from result.done
        came = f"{result.objects or 'no'} object{'s' * (result.objects > 1)} came back"
        state = "all are whole" if result.is_whole else "not all are whole"
        yield f"{result.repositories} repositories checked, {came}; {state}"

    sums = {"archive": str(archive.root), **asdict(result), "whole": result.is_whole}
    print_sums(form, sums, lines())
    if not result.is_whole:
        raise WebarcError("\n".join(f"not back: {line}" for line in (*result.lacking, *result.failed)))


def _complain(copied: backups.Copied) -> None:
    complaints = [f"not copied: {line}" for line in copied.failed]
    complaints += [f"was damaged: {line}" for line in copied.mended]
    if complaints:
        raise WebarcError("\n".join(complaints))


#: Most snapshots that a message names.
_MOST_NAMED = 10


# == upkeep ===========================================================================================================


@click.command()
@archive_option
@format_option(*OBJECT)
def maintain(archive: str | None, form: Form) -> None:
    """Repack many small packs, and remove what crashes left.

    `start` does it once a day.
    """
    with Display(console) as display:
        done = maintenance.maintain(opened(archive), display)
    total = f"{len(done.domains)} domains in order, {len(done.removed)} leftovers removed"
    removed = (f"removed {line}" for line in done.removed)
    print_sums(form, asdict(done), (total, *removed, *(f"{name} is in use; skipped" for name in done.busy)))
    if done.failed:
        raise WebarcError("\n".join(done.failed))


@click.command()
@archive_option
@click.option("--leave-out", is_flag=True, help="Rebuild also where snapshots that cannot be read are left out.")
@format_option(*OBJECT)
def recover(archive: str | None, leave_out: bool, form: Form) -> None:
    """Rebuild what derives from the git repositories, and repair these as far as possible.

    It brings no page back that is damaged or lost. `webarc-agent restore --damaged` does that, from a backup. Run that
    first.

    It rebuilds webarc.db, `changes` (the list of snapshots) and, if `[index]` allows, links.db. The full-text index is
    brought in step, and rebuilt only if it has faults. A damaged catalogue.db is removed, and rebuilt when it is read.
    HEAD, settings, refs and the commit-graph of a repository are repaired if a byte was damaged, as far as the
    repository tells what they were. The damaged files are kept in `damaged/` in it. Locks that a killed git left are
    removed. It lists what it could not repair, and exits with 2 then.

    If a damaged object keeps snapshots from being read, it rebuilds nothing, names them, and exits with 2. With
    --leave-out it rebuilds without them. They return with what is damaged.
    """
    place = opened(archive)
    with Display(console) as display:
        done = recovery.recover(place, display, leave_out=leave_out)
        documents = fulltext.recovered(place, display)
        described = catch_up_records(place, progress=display)

    def lines() -> Iterator[str]:
        yield f"{done.snapshots} snapshots, {done.versions} document versions, {done.lines} lines in changes"
        if done.links is not None:
            yield f"{done.links} links of pages"
        if documents is not None:
            yield f"{documents} documents put into the full-text index"
        if described:
            yield f"{described} records of crawls"
        yield from (f"repaired: {line}" for line in done.mended)

    sums = {**asdict(done), "indexed_documents": documents, "records": described}
    sums["repaired"], sums["not_repaired"] = sums.pop("mended"), sums.pop("left")
    print_sums(form, sums, lines())
    complaints = [f"not repaired: {line}" for line in done.left]
    complaints += _unread(place, done)
    if complaints:
        raise WebarcError("\n".join(complaints))


def _unread(archive: Archive, done: recovery.Recovered) -> Iterator[str]:
    """Yield lines on repositories that cannot be read: what that means, and what helps."""
    if not done.damaged:
        return
    number = len(done.left_out)
    counted = "1 snapshot" if number == 1 else f"{number} snapshots"
    names = ", ".join(done.left_out[:_MOST_NAMED]) + f" and {number - _MOST_NAMED} more" * (number > _MOST_NAMED)
    snapshots = f"{counted}: {names}" if number else "no snapshot"
    yield f"not readable: {', '.join(done.damaged)}"
    if done.is_kept:
        yield f"webarc.db, changes and links.db stay as they were; rebuilt now, they would lack {snapshots}"
    else:
        yield f"left out of webarc.db, changes and links.db: {snapshots}"
    yield f"{damaged_pages.advice(archive)}, and with it its snapshots" + (
        "; without a backup, `webarc-agent recover --leave-out` rebuilds without them" if done.is_kept else ""
    )


@click.command()
@archive_option
@click.option("--quick", is_flag=True, help="Leave out what takes long; see above.")
@format_option(*OBJECT)
def verify(archive: str | None, quick: bool, form: Form) -> None:
    """Check whether the archive is whole; a line a finding.

    Git, every data.xml, refs, the list of snapshots, database and journal are held against each other. Ends with 0
    where all is sound, with 2 where something was found. Additions that wait in the journal are counted; they are no
    finding.

    With --quick it looks at HEAD, settings, refs and history of each repository, and at the data.xml that came since
    the last verification. It does not read all objects of git, the commit-graphs, or all pages of webarc.db and
    links.db. Only the full form finds what a disk damaged there.

    The archive may also be a backup, to which nothing is written. Of one the quick form compares the checksums of the
    files that hold objects, and looks whether all are there, but reads no object or document for itself.
    """
    root = directory.default_root(archive)
    waiting: Counter[str] = Counter()
    findings: list[str] = []
    with Display(console) as display:
        if is_backup(root):
            lines, left_out = backups.verify_backup(root, display, quick=quick), backups.LEFT_OUT
        else:
            place = opened(archive)
            lines, left_out = verification.verify(place, display, quick=quick), verification.LEFT_OUT
            waiting = count_waiting(place)
        for line in lines:
            findings.append(line)
            if form is Form.TABLE:
                display.print(line)
    if form is Form.JSON:
        sums = {"sound": not findings, "findings": findings, "waiting_additions": waiting, "quick": quick}
        print_object(sums | {"not_read": left_out if quick else ""})
    else:
        for name, number in sorted(waiting.items()):
            click.echo(say_waiting(name, number))
        not_read = f"; not read: {left_out}" if quick else ""
        good = "nothing was found" if quick else "sound"  # what was not read may be damaged
        verdict = styled(good, Mood.GOOD) if not findings else styled(f"{len(findings)} findings", Mood.BAD)
        click.echo(verdict + not_read, err=bool(findings))
    if findings:
        sys.exit(Exit.FAILED)


# == index ============================================================================================================


#: Crawls, mounts and readers go first.
_NICE = 5


@click.command()
@archive_option
@click.option("--rebuild", is_flag=True, help="Rebuild the whole index, beside the one in use.")
@click.option("--anew", is_flag=True, hidden=True, help="The old name of --rebuild, for one release.")
@click.option("--export", metavar="FILE", type=AbsolutePath(allow_dash=True), help="Write its documents; see below.")
@format_option(*OBJECT)
def index(archive: str | None, rebuild: bool, anew: bool, export: Path | None, form: Form) -> None:
    """Bring the full-text index in step with the archive.

    The agent does it after each crawl. It needs webarcfs[search]; `[index] search = false` disables it. An index of an
    old archive is made domain by domain, and can be searched meanwhile. The next run resumes where this one stopped.

    With --export it writes the documents of the index to a file (- is standard output; .gz is compressed), each as a
    line of JSON with the field names of SolrWayback, for Solr:

    \b
      webarc-agent index --export archive.jsonl
      curl http://localhost:8983/solr/netarchivebuilder/update/json/docs?commit=true \\
           -H 'Content-Type: application/json' --data-binary @archive.jsonl
    """
    if anew:
        tell_renamed("--anew", "--rebuild")
        rebuild = True
    place = opened(archive)
    if export is not None:
        if rebuild:
            raise UsageError("--rebuild and --export are different tasks; give one")
        if form is Form.JSON:
            raise UsageError("--export writes lines of JSON; --format is for the sums of an index that is made")
        from agent.indexing import fulltext_run  # noqa: PLC0415 # of the extra `search`

        count = 0
        with _written(export) as out, Display(console) as display:
            for line in fulltext_run.documents(place):
                if out is sys.stdout and is_output_closed():
                    return
                out.write(json.dumps(line, ensure_ascii=False) + "\n")
                count += 1
                display("write documents", count, 0)
        click.echo(f"{count} documents", err=True)
        return
    if not fulltext.wanted(place) and fulltext.installed():
        raise UsageError(f"{place.settings} says `[index] search = false`, or has faults")
    os.nice(_NICE)
    with Signals() as signals, Display(console) as display:
        done = fulltext.bring_in_step(place, lambda: signals.stop, display, anew=rebuild)
    print_sums(form, asdict(done), [f"{done.documents} documents of {done.snapshots} snapshots indexed"])


@contextmanager
def _written(path: Path) -> Iterator[TextIO]:
    if str(path) == "-":
        yield sys.stdout
    elif path.suffix == ".gz":
        with gzip.open(path, "wt", encoding="utf-8") as file:
            yield file
    else:
        with path.open("w", encoding="utf-8") as file:
            yield file
