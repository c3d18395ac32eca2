"""`webarc log`, `cat`: the history of a document. Comparing pages takes longer to load: comparing.py."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from operator import itemgetter
from typing import Any

import click

from webarcfs.access.access_rules import Open
from webarcfs.access.reader_repositories import hides
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import redirect_lists, rendered_forms, versions
from webarcfs.archive.index.database import CaptureIndex
from webarcfs.archive.model.arc_paths import HEADERS
from webarcfs.archive.model.errors import NotFound, UsageError, WebarcError
from webarcfs.archive.model.metadata import CET, OK, CommitTag, format_utc, from_epoch
from webarcfs.archive.model.url_lists import spelled
from webarcfs.archive.model.urls import both_schemes
from webarcfs.commands.arguments import ArchiveArgument, Target, arc_in, document, host_of, place_options, tag
from webarcfs.commands.completing import complete_tags
from webarcfs.commands.listing import LIST, Form, format_option, print_ascii_lines, print_rows
from webarcfs.commands.server_archive import ServerArgument, arcs_of_text, place_or_server_options
from webarcfs.commands.snapshot_names import Beside

#: Bytes that are written at a time.
_PIECE = 1 << 20


@click.command()
@click.argument("document_", metavar="URL|PATH")
@place_options
@format_option(*LIST)
def log(document_: str, *, place: ArchiveArgument, form: Form) -> None:
    """Show what each snapshot did to a document, newest first.

    It was added, changed, removed, extended by users, or met unchanged. The time of the server's answer is in UTC. A
    status other than 200 is shown: 404, an error page. So is a server's certificate that was not valid. Of a document
    named by its URL, redirects are shown, too, of http and https.

    \b
    Examples:
      webarc log http://www.example.org/
      webarc log --mount ~/web ~/web/www.example.org/index.html
    """
    target = document(place, document_)
    shown = {tag for tag, _ in versions.snapshots(target.store, target.domain)}
    rows = [(step.tag, *_told(step, shown)) for step in versions.steps(target.store, target.domain, target.arc)]
    urls = both_schemes(target.url) if target.url else ()
    led = redirect_lists.steps(target.store, target.domain, urls)
    rows += [(tag, *_told_of_redirect(change, is_whole=place.gate is None)) for tag, change in led]
    if not rows:
        raise NotFound(f"no snapshot has /{target.domain}/{target.arc}")
    try:
        rows += list(_met_again(place, target, urls, shown))  # all of it, or none
    except WebarcError as error:
        click.echo(f"webarc: the URLs that crawls met unchanged are not listed: {error}", err=True)
    rows.sort(key=itemgetter(0), reverse=True)
    changes = ({"tag": str(when), **fields} for when, fields, _ in rows)
    print_rows(form, changes, lambda _: (f"{when}  {text}" for when, _, text in rows), as_json=print_ascii_lines)


def _told(step: versions.ChangedDocument, shown: Collection[CommitTag]) -> tuple[dict[str, Any], str]:
    """Return a document's change as fields, and as text. The time of a crawl that is not shown is left out."""
    files = f"  + {', '.join(step.files)}" if step.files else ""
    status = f"  ({step.status})" if step.status != OK else ""
    status += f"  (certificate: {step.certificate})" if step.certificate else ""
    captured = format_utc(step.captured) if step.captured is not None and step.stored in shown else ""
    fields = {
        "what": step.what, "size": step.size, "files": step.files, "status": step.status, "captured": captured,
        "certificate": step.certificate,
    }  # fmt: skip
    when = f"  captured {captured}" if captured and step.what != "extended" else ""
    return fields, f"{step.what:10} {step.size:>12,} bytes{status}{when}{files}"


def _met_again(
    place: ArchiveArgument, target: Target, urls: Iterable[str], shown: Collection[CommitTag]
) -> Iterator[tuple[CommitTag, dict[str, Any], str]]:
    """Yield when crawls of snapshots that are shown met the document, or redirects of the URLs, unchanged."""
    path = f"/{target.domain}/{target.arc}"
    with CaptureIndex(place.archive.database) as index:
        rows, redirects = index.at(path)
        for name, captures in (
            (path, rows),
            *((url, [redirect for redirect in redirects if redirect.url == url]) for url in urls),
        ):
            for seq, met in index.met(target.domain, name):
                tag = CommitTag(from_epoch(seq).astimezone(CET), target.domain)
                row = next((capture for capture in captures if capture.first <= seq < capture.last), None)
                if row is None or tag not in shown:
                    continue
                url = row.url if row.target else spelled(row.url, met.spelling)
                time = from_epoch(met.time)
                if place.gate is not None and not isinstance(place.gate.with_rules(Open(seq), url, time), Open):
                    continue
                captured = format_utc(time)
                yield tag, {"what": "met", "url": url, "captured": captured}, f"unchanged  captured {captured}  {url}"


def _told_of_redirect(change: redirect_lists.RedirectChange, *, is_whole: bool) -> tuple[dict[str, Any], str]:
    """Return the change of a redirect as fields, and as text. Its time may be that of a hidden crawl."""
    if change.new is None:
        return {"what": "redirect-ended", "url": change.url}, f"no longer redirected: {change.url}"
    status, target = change.new.status, change.new.target
    captured = format_utc(change.new.time) if is_whole else ""
    fields = {"what": "redirected", "url": change.url, "status": status, "target": target, "captured": captured}
    when = f"  captured {captured}" if captured else ""
    return fields, f"redirected ({status}) {change.url} -> {target}{when}"


@click.command()
@click.argument("tag_", metavar="TAG", shell_complete=complete_tags)
@click.argument("document_", metavar="URL|PATH")
@click.option("--text", is_flag=True, help="The text that people read, as the full-text index has it.")
@click.option("--rendered", is_flag=True, help="What a browser showed: the DOM as HTML, or its text with --text.")
@place_or_server_options
def cat(tag_: str, document_: str, *, place: ArchiveArgument | ServerArgument, text: bool, rendered: bool) -> None:
    """Write what a document was in a snapshot to stdout.

    Byte for byte, as the server sent it. --text writes the plain text of HTML, PDF, office files, mail and XML, in
    UTF-8, with the lines that only a browser showed. A document without a text is an error.

    \b
    Examples:
      webarc cat 2026-11-21T03:00:00@www.example.org /www.example.org/index.html > old.html
      webarc cat --text 2026-11-21T03:00:00@www.example.org https://www.example.org/report.pdf | wc -w
      webarc cat --rendered --text 2026-11-21T03:00:00@www.example.org https://www.example.org/app/
      webarc cat 2026-11 http://www.example.org/
      webarc cat latest~1 http://www.example.org/
      webarc cat latest http://www.example.org/ --server https://archive.example.org/
    """
    if isinstance(place, ServerArgument):
        if text or rendered:
            raise UsageError("a server sends documents as they were archived: leave out --text and --rendered")
        _write_from_server(place, tag_, document_)
        return
    which, store = tag(place, tag_, Beside(host_of(place, document_)))
    target = document(place, document_)
    if target.domain != which.domain:
        raise UsageError(f"{which} is a snapshot of {which.domain}, and {document_} is of {target.domain}")
    tree = store.snapshot_tree(which)
    path = arc_in(target, store, tree)
    folder = store.find(tree, path)
    arc = next(versions.arcs(store, folder.oid), None) if folder is not None and folder.is_tree else None
    if folder is None or arc is None or arc.path or arc.data is None:
        raise NotFound(
            f"{which} has no document /{target.domain}/{path}; `webarc log {document_}` lists what became of it"
        )
    sys.stdout.flush()
    with suppress(BrokenPipeError):  # its reader has seen enough
        if rendered:
            _write_rendered(store, arc, is_text=text)
        elif text:
            _write_text(store, arc, folder.oid)
        else:
            store.copy(arc.data.oid, sys.stdout.fileno())


def _write_from_server(place: ServerArgument, tag_: str, document_: str) -> None:
    """Write a document of a server, once all of it is here."""
    meta = place.document(place.named(tag_, Beside(arcs_of_text(document_)[0])), document_)
    with place.client.open_read(meta, place.client.data_name(meta)) as body, suppress(BrokenPipeError):
        while piece := body.read(_PIECE):
            _write(piece)


def _write_text(store: Repository, arc: versions.ArcTree, folder: str) -> None:
    """Write the text of a document. Raises NotFound where it has none; says where it is not all of it."""
    from webarcfs.content.extractors.extracted import SENTENCES, Fault  # noqa: PLC0415 # slow to load
    from webarcfs.texts.version_text import read_text  # noqa: PLC0415 # of the extra `search`

    assert arc.data is not None
    head = next((entry.oid for entry in store.entries(folder) if entry.name == HEADERS), "")
    meta = versions.described(store, arc)
    extracted = read_text(store, meta, arc.data.oid, head)
    reason = SENTENCES.get(Fault(extracted.fault), "")
    if not extracted.body:
        raise NotFound(f"{meta.url} ({meta.mime_type}) has no text. {reason}".rstrip())
    if reason:
        click.echo(f"webarc: {meta.url}: this is not all of its text. {reason}", err=True)
    _write(extracted.body.encode("utf-8", "replace") + b"\n")


def _write_rendered(store: Repository, arc: versions.ArcTree, *, is_text: bool) -> None:
    """Write what a browser showed of a document. Raises NotFound where there is nothing, or a hidden crawl has it."""
    meta = versions.described(store, arc)
    shown = b""
    if meta.rendered and not hides(store, meta.commit_tag):
        if is_text:
            shown = rendered_forms.text_of(store, meta.rendered).encode()
        else:
            shown = rendered_forms.read_html(store, meta.rendered)
    if not shown:
        what = "text" if is_text else "DOM"
        raise NotFound(f"the archive has no {what} of {meta.url} that a browser showed in this version")
    _write(shown)


def _write(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
