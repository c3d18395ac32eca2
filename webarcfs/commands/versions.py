"""`webarc log`, `cat`: the history of a document. Comparing pages takes longer to load: comparing.py."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from operator import itemgetter
from typing import Any

import click

from webarcfs.archive.history import redirect_lists, versions
from webarcfs.archive.model.errors import NotFound, UsageError
from webarcfs.archive.model.metadata import OK
from webarcfs.archive.model.url import both_schemes
from webarcfs.commands.place import Place, place_options
from webarcfs.commands.targets import document, tag


@click.command()
@click.argument("document_", metavar="URL|PATH")
@place_options
@click.option("--json", "as_json", is_flag=True, help="An object a line.")
def log(document_: str, *, place: Place, as_json: bool) -> None:
    """Show what each snapshot did to a document, newest first.

    It was added, changed, removed, or extended by users. A status other than 200 is shown: 404, an error page. Of a
    document named by its URL, redirects are shown, too, of http and https.

    \b
    Examples:
      webarc log http://www.example.org/
      webarc log --mount ~/web ~/web/www.example.org/index.html
    """
    target = document(place, document_)
    found = [(step.tag, *_told(step)) for step in versions.steps(target.store, target.domain, target.arc)]
    urls = both_schemes(target.url) if target.url else ()
    found += [(tag, *_told_of_redirect(each)) for tag, each in redirect_lists.steps(target.store, target.domain, urls)]
    if not found:
        raise NotFound(f"no snapshot has /{target.domain}/{target.arc}")
    for when, fields, text in sorted(found, key=itemgetter(0), reverse=True):
        click.echo(json.dumps({"tag": str(when), **fields}) if as_json else f"{when}  {text}")


def _told(step: versions.Step) -> tuple[dict[str, Any], str]:
    """Return a document's change as fields, and as text."""
    files = f"  + {', '.join(step.files)}" if step.files else ""
    status = f"  ({step.status})" if step.status != OK else ""
    return asdict(step) | {"tag": str(step.tag)}, f"{step.what:10} {step.size:>12,} bytes{status}{files}"


def _told_of_redirect(change: redirect_lists.RedirectChange) -> tuple[dict[str, Any], str]:
    """Return the change of a redirect as fields, and as text."""
    if change.new is None:
        return {"what": "redirect-ended", "url": change.url}, f"no longer redirected: {change.url}"
    status, target = change.new.status, change.new.target
    fields = {"what": "redirected", "url": change.url, "status": status, "target": target}
    return fields, f"redirected ({status}) {change.url} -> {target}"


@click.command()
@click.argument("tag_", metavar="TAG")
@click.argument("document_", metavar="URL|PATH")
@place_options
def cat(tag_: str, document_: str, *, place: Place) -> None:
    """Write what a document was in a snapshot to stdout.

    Byte for byte, as the server sent it.

    \b
    Example:
      webarc cat 2026-11-21T03:00:00@www.example.org /www.example.org/index.html > old.html
    """
    which, store = tag(place, tag_)
    target = document(place, document_)
    if target.domain != which.domain:
        raise UsageError(f"{tag_} is a snapshot of {which.domain}, and {document_} is of {target.domain}")
    folder = store.find(versions.tree_of(store, which), target.arc)
    arc = next(versions.arcs(store, folder.oid), None) if folder is not None and folder.is_tree else None
    if arc is None or arc.path or arc.data is None:
        raise NotFound(f"{which} has no document /{target.domain}/{target.arc}")
    sys.stdout.flush()
    store.copy(arc.data.oid, sys.stdout.fileno())
