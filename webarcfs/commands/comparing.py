"""`webarc diff`, `stat`: compare two snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from webarcfs.access.reader_repositories import hides
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import redirect_lists, rendered_forms, versions
from webarcfs.archive.history.versions import statistics
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Damaged, InvalidDocument, UsageError
from webarcfs.archive.model.metadata import PAGE_ROLE, ROLES
from webarcfs.commands import output
from webarcfs.commands.arguments import ArchiveArgument, document, host_of, place_options, roles_of, tag
from webarcfs.commands.completing import complete_tags
from webarcfs.commands.lazy_commands import AbsolutePath
from webarcfs.commands.listing import LIST, OBJECT, Form, Row, format_option, print_ascii_lines, print_rows
from webarcfs.commands.snapshot_names import Beside, names_host


@click.command()
@click.argument("old", metavar="TAG", shell_complete=complete_tags)
@click.argument("new", metavar="TAG", shell_complete=complete_tags)
@click.argument("path", default="", metavar="[URL|PATH]")
@place_options
@click.option("-w", "--ignore-space", is_flag=True, help="In texts: differences of white space are none.")
@format_option(*LIST)
def diff(old: str, new: str, path: str, *, place: ArchiveArgument, ignore_space: bool, form: Form) -> None:
    """Show what changed between two snapshots of a host.

    That is the documents that were added, removed or changed, those whose URLs redirect now, and the other redirects
    that differ. With the path of a folder only what lies in it; with a
    document's URL or path, what its readers see, as a diff. What a browser
    showed of a page counts, where the archive has it.

    A host that is named once is that of both snapshots: by either name, or by the URL.

    \b
    Examples:
      webarc diff 2026-10-21T03:00:00@www.example.org 2026-11-21T03:00:00@www.example.org
      webarc diff latest~1 latest http://www.example.org/ -w
      webarc diff 2025@www.example.org latest
    """
    beside = Beside(host_of(place, path)) if path else Beside()
    if not beside.host and not names_host(old):
        second, store = tag(place, new, beside)
        first, _ = tag(place, old, Beside(second.domain))
    else:
        first, store = tag(place, old, beside)
        second, _ = tag(place, new, Beside(beside.host or first.domain))
    if first.domain != second.domain:
        raise UsageError(f"{first} and {second} are snapshots of different domains")
    trees = store.snapshot_tree(first), store.snapshot_tree(second)
    below = ""
    if path and split(path)[1:] != ("",):
        below = document(place, path).arc
    led = _redirects(store, trees, below)
    forms = _Forms(store)
    version_changes: Iterator[versions.VersionChange] = versions.compare(store, *trees, below, forms.blob)
    first_one = next(version_changes, None)  # a document precedes those in its folder
    if first_one is not None and first_one.path == below and form is Form.TABLE and _became(first_one, led) is None:
        before, after = (store.read(blob) if blob else b"" for blob in (first_one.old, first_one.new))
        was, now = (forms.text(blob) if blob else "" for blob in first_one.documents)
        click.echo(
            "\n".join(
                output.difference((before, after), (was, now), (str(first), str(second)), ignore_space=ignore_space)
            )
        )
        return
    changes = (*([first_one] if first_one is not None else ()), *version_changes)
    rows = _rows(first.domain, changes, led)
    counted = 0

    def lines(_: object) -> Iterator[str]:
        nonlocal counted
        for _, line in rows:
            counted += 1
            yield line

    print_rows(form, (row for row, _ in rows), lines, as_json=print_ascii_lines)
    if form is Form.TABLE and not counted:
        click.echo(f"webarc: {first} and {second} do not differ{f' in {below}' if below else ''}", err=True)


@dataclass(frozen=True, slots=True)
class _Forms:
    """The texts that browsers showed, as far as whoever asks may see them: by the blobs of data.xml."""

    store: Repository

    def blob(self, document: str) -> str:
        """Return git's id of the text; empty without one."""
        try:
            meta = data_xml.metadata(self.store.read(document))
            if not meta.rendered or hides(self.store, meta.commit_tag):
                return ""
            return rendered_forms.text_blob(self.store, meta.rendered)
        except (Damaged, InvalidDocument):
            return ""  # `verify` says so

    def text(self, document: str) -> str:
        """Return the text; empty without one."""
        blob = self.blob(document)
        return self.store.read_short(blob, rendered_forms.LONGEST_TEXT).decode("utf-8", "replace") if blob else ""


def _rows(domain: str, changes: Iterable[versions.VersionChange], led: _Redirects) -> Iterator[tuple[Row, str]]:
    """Yield the documents that changed, then the other redirects that differ: each as fields, and as a line."""
    for change in changes:
        became = _became(change, led)
        if became is not None:
            led[change.path].remove(became)
        yield _told("path", f"/{domain}/{change.path}", change.what, became)
    for redirects in led.values():
        yield from (_told("url", redirect.url, redirect.what, redirect) for redirect in redirects)


_Redirects = dict[str, list[redirect_lists.RedirectChange]]
_MARKS = {"added": "+", "removed": "-", "changed": "~"}


def _redirects(store: Repository, trees: tuple[str, str], below: str) -> _Redirects:
    """Return the redirects that differ, by the place that their URLs have in the domain."""
    led: _Redirects = {}
    for redirect in redirect_lists.differences(store, *trees):
        place = split(arc_path(redirect.url))[1]
        if not below or place == below or place.startswith(f"{below}/"):
            led.setdefault(place, []).append(redirect)
    return dict(sorted(led.items()))


def _became(change: versions.VersionChange, led: _Redirects) -> redirect_lists.RedirectChange | None:
    """Return the redirect that took the place of a removed document; None without one."""
    if change.what != "removed":
        return None
    return next((redirect for redirect in led.get(change.path, ()) if redirect.new is not None), None)


def _told(kind: str, name: str, what: str, led: redirect_lists.RedirectChange | None) -> tuple[Row, str]:
    """Return the fields and the line of a document, or of a redirect."""
    redirect = None if led is None else led.new or led.old
    if led is None or redirect is None:
        return {kind: name, "what": what}, f"{_MARKS[what]} {name}"
    word = "redirected" if led.new is not None else "redirect-ended"
    fields = {kind: name, "what": word, "status": redirect.status, "target": redirect.target}
    return fields, f"{_MARKS[what]} {name}  ({redirect.status}) -> {redirect.target}"


@click.command()
@click.argument("tags", nargs=-1, required=True, metavar="TAG [TAG]", shell_complete=complete_tags)
@place_options
@format_option(*OBJECT)
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default=PAGE_ROLE,
    show_default=True,
    help="Count pages, what only pages of other hosts needed, or both.",
)
@click.option("--plot", metavar="FILE.svg|png", type=AbsolutePath(), help="Draw them, too.")
def stat(tags: tuple[str, ...], *, place: ArchiveArgument, form: Form, role: str, plot: Path | None) -> None:
    """Count documents and bytes of a snapshot, or compare two.

    They are counted by MIME type and by extension. What only pages of other hosts needed is a line of its own. The
    links of its pages: webarc links --count TAG.

    \b
    Examples:
      webarc stat 2026-10-21T03:00:00@www.example.org 2026-11-21T03:00:00@www.example.org
      webarc stat latest@www.example.org --plot types.svg
    """
    if len(tags) > 2:
        raise UsageError("one snapshot is counted, or two are compared")
    figures, counted = [], []
    for text in tags:
        which, store = tag(place, text)
        counted.append(str(which))
        figures.append(statistics(store, store.snapshot_tree(which), roles_of(role)))
    if plot is not None:
        output.draw(counted, figures, plot)
    if form is Form.JSON:
        table = {name: counts.as_table() for name, counts in zip(counted, figures, strict=True)}
        click.echo(json.dumps(table, indent=1))
        return
    for line in output.statistics_table(counted, figures, names_resources=role == PAGE_ROLE):
        click.echo(line)
