"""`webarc-agent index`: the full-text index, brought in step, made anew, or written out."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from agent.commands.common import archive_option, console, opened
from agent.indexing import fulltext
from agent.system.signals import Signals
from webarcfs.archive.model.errors import UsageError
from webarcfs.lazy_commands import AbsolutePath
from webarcfs.terminal.progressbar import Display

#: Crawls, mounts and readers go first.
_NICE = 5


@click.command()
@archive_option
@click.option("--anew", is_flag=True, help="Make the whole index anew, beside the one in use.")
@click.option("--export", metavar="FILE", type=AbsolutePath(allow_dash=True), help="Write its documents; see below.")
def index(archive: str | None, anew: bool, export: Path | None) -> None:
    """Bring the full-text index in step with the archive.

    The agent does it after each crawl. It needs webarcfs[search]; `[index] search = false` switches it off. An index of
    an old archive is made domain by domain, and can be searched meanwhile; the next run goes on where this one stopped.

    With --export it writes the documents of the index to a file (- is standard output; .gz is compressed), each as a
    line of JSON with the field names of SolrWayback, for Solr:

    \b
      webarc-agent index --export archive.jsonl
      curl http://localhost:8983/solr/netarchivebuilder/update/json/docs?commit=true \\
           -H 'Content-Type: application/json' --data-binary @archive.jsonl
    """
    place = opened(archive)
    if export is not None:
        if anew:
            raise UsageError("--anew and --export are different tasks; give one")
        from agent.indexing import fulltext_export  # noqa: PLC0415 # of the extra `search`

        count = 0
        with _written(export) as out:
            for line in fulltext_export.documents(place):
                out.write(json.dumps(line, ensure_ascii=False) + "\n")
                count += 1
        click.echo(f"{count} documents", err=True)
        return
    if not fulltext.wanted(place) and fulltext.installed():
        raise UsageError(f"{place.settings} says `[index] search = false`, or has faults")
    os.nice(_NICE)
    with Signals() as signals, Display(console) as display:
        done = fulltext.bring_in_step(place, lambda: signals.stop, display, anew=anew)
    click.echo(f"{done.documents} documents of {done.snapshots} snapshots indexed")


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
