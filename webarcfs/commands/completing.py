"""What the Tab key offers for the arguments of commands: snapshots, hosts, publications, records, jobs.

It is silent where there is no archive, or where the archive does not answer at once. What readers may see takes longer
to know than a key may take, so with `--as-reader` no name is offered.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice

import click
from click.shell_completion import BashComplete

from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.names import completions
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.archive.model.metadata import CommitTag, parse_moment

# == words ============================================================================================================


#: Words that are offered at most.
MOST = 50
_LATEST = ("latest", "latest~1")
#: The lengths of years, months and days.
_STEPS = (4, 7, 10)
_Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _offering(words: Callable[[Archive, str], Iterable[str]]) -> _Complete:
    """Return what click asks for the words that begin with a text."""

    def complete(context: click.Context, _parameter: click.Parameter, text: str) -> list[str]:
        offered: list[str] = []
        with suppress(WebarcError, OSError, ValueError):  # a Tab key says nothing of faults
            if (archive := _archive(context)) is not None:
                offered.extend(islice((word for word in words(archive, text) if word.startswith(text)), MOST))
        return offered

    return complete


def _archive(context: click.Context) -> Archive | None:
    """Return the archive of a command line; None where the names in it are not for whoever asks."""
    options = context.params
    if options.get("as_reader") or options.get("reader") is not None or options.get("mount") is not None:
        return None
    return directory.open_archive(directory.default_root(options.get("archive")))


def _tags(archive: Archive, text: str) -> Iterator[str]:
    """Yield names of snapshots: whole ones if they are few, else the years, months or days that have some."""
    yield from _LATEST
    with completions(archive.database) as words:
        name, at, of = text.partition("@")
        if at and not _begins_tag(name):
            yield from (f"{name}@{whose}" for whose in chain(words.hosts(of, MOST), words.publications(of, MOST)))
            return
        tags = words.tags(text, MOST + 1)
        length = next((length for length in _STEPS if len(text) < length), 0)
        if len(tags) > MOST and length:
            yield from words.steps(text, length, MOST)
            return
    discarded = _discarded(archive)
    for tag in map(CommitTag.parse, tags):
        if (tag.domain, int(tag.crawl_time.timestamp())) not in discarded:
            yield str(tag)


def _begins_tag(time: str) -> bool:
    """Return whether what stands before the @ is that of a commitTag. Raises Damaged for what no name begins with."""
    if time.startswith(_LATEST[0]):
        return False
    parse_moment(time)
    with suppress(Damaged):
        CommitTag.parse(f"{time}@host")
        return True
    return False


def _discarded(archive: Archive) -> set[tuple[str, int]]:
    if not archive.catalogue_database.exists():
        return set()
    with completions(archive.catalogue_database) as words:
        return words.discarded()


def _hosts(archive: Archive, text: str) -> list[str]:
    with completions(archive.database) as words:
        return words.hosts(text, MOST)


def _publications(archive: Archive, text: str) -> list[str]:
    with completions(archive.database) as words:
        return words.publications(text, MOST)


def _configured(archive: Archive, text: str) -> list[str]:
    """Return the publications of the settings, and those that have snapshots."""
    names = {name.removesuffix(".toml") for name in _names(archive.publications) if name.endswith(".toml")}
    with suppress(OSError, tomllib.TOMLDecodeError), archive.settings.open("rb") as file:
        tables = tomllib.load(file).get("publication")
        names |= {str(table.get("name")) for table in tables or () if isinstance(table, dict)}
    with suppress(WebarcError):
        names |= {*_publications(archive, text)}
    return sorted(names)


def _records(archive: Archive, text: str) -> list[str]:
    with completions(archive.catalogue_database) as words:
        return words.records(text, MOST)


def _jobs(archive: Archive, _text: str) -> list[str]:
    return sorted(_names(archive.jobs), reverse=True)


def _reports(archive: Archive, _text: str) -> list[str]:
    return sorted({*_names(archive.reports), *_names(archive.jobs)}, reverse=True)


def _names(folder: os.PathLike[str]) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]  # noqa: PTH208 # names alone
    except FileNotFoundError:
        return []


#: For arguments and options of click: names of snapshots, hosts, publications of snapshots, and those of the settings,
#: records, open jobs, and jobs with reports.
complete_tags = _offering(_tags)
complete_hosts = _offering(_hosts)
complete_publications = _offering(_publications)
complete_configured = _offering(_configured)
complete_records = _offering(_records)
complete_jobs = _offering(_jobs)
complete_reports = _offering(_reports)


# == bash =============================================================================================================


class NamesInBash(BashComplete):
    """Bash takes words apart at : @ and =, which are in commitTags and URLs. They are put together again."""

    source_template = r"""
%(complete_func)s() {
    local IFS=$'\n' line="${COMP_LINE:0:${COMP_POINT:-0}}" words=() cut="" gap="" word="" i=0
    local response completion type value

    for ((i = 0; i <= COMP_CWORD; i++)); do
        word="${COMP_WORDS[i]}"
        if [[ -n "$word" ]]; then gap="${line%%%%"$word"*}"; else gap="$line"; fi
        if [[ $i -gt 0 && -n "${COMP_LINE}" && -z "$gap" && "${words[-1]}$word" == *[:@=]* ]]; then
            words[-1]+="$word"
        else
            words+=("$word")
        fi
        line="${line#"$gap$word"}"
    done
    word="${words[-1]}"
    if [[ "$word" == *"$2" ]]; then cut="${word%%"$2"}"; fi
    cut="${cut#--*=}"

    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) %(complete_var)s=bash_complete $1)

    for completion in $response; do
        IFS=',' read type value <<< "$completion"

        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("${value#"$cut"}")
        fi
    done

    return 0
}

%(complete_func)s_setup() {
    complete -o nosort -F %(complete_func)s %(prog_name)s
}

%(complete_func)s_setup;
"""
