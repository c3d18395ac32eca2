"""The pages of the folder that are not archived: what is in it, and the notices that links out lead to. Pure.

They need no script. The notice about a link shows its address by a script of its own, where the browser runs that: a
file is not told what is behind the `#`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

_STYLE = (
    "body{font:1rem/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;"
    "border-bottom:1px solid #bbb}code{overflow-wrap:anywhere}"
)
_SCRIPT = 'try{document.getElementById("address").textContent=decodeURIComponent(location.hash.slice(1))}catch(error){}'
# A way that starts with `../` stays where the folder is, whatever comes behind.
_LEADING_SCRIPT = (
    'try{const way=decodeURIComponent(location.hash.slice(1));document.getElementById("address").textContent=way;'
    'document.getElementById("way").href="../"+way}catch(error){}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A domain in the list: its snapshot, and the file of its start page with the title; empty without one."""

    domain: str
    commit_tag: str
    publication: str
    documents: int
    start: str = ""
    title: str = ""


def index(listed: Iterable[Listed], software: str) -> bytes:
    """Return the page that lists what is in the folder."""
    rows = "\n".join(_row(each) for each in listed)
    body = f"""<h1>Archived web sites</h1>
<p>This folder has archived pages as they were at the times below. Links lead to the pages of this folder only; scripts
do not run. <code>static.json</code> says where each file comes from.</p>
<p lang="de">Dieser Ordner enthält archivierte Seiten, so wie sie zu den genannten Zeiten waren. Verweise führen nur zu
Seiten dieses Ordners; Skripte laufen nicht. <code>static.json</code> nennt die Herkunft jeder Datei.</p>
<table>
<tr><th scope="col">Site / <span lang="de">Angebot</span></th><th scope="col">\
Snapshot (<abbr title="UTC+01:00">CET</abbr>)</th><th scope="col">Publication / <span lang="de">Publikation</span></th>\
<th scope="col">Documents / <span lang="de">Dokumente</span></th></tr>
{rows}
</table>
<p>Made by {escape(software)}.</p>"""
    return _page("Archived web sites", body, "")


def _row(each: Listed) -> str:
    name = escape(each.domain)
    if each.start:
        title = f"<br>{escape(each.title)}" if each.title else ""
        name = f'<a href="{escape(each.start)}">{name}</a>{title}'
    cells = (name, f"<code>{escape(each.commit_tag)}</code>", escape(each.publication), str(each.documents))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def missing() -> bytes:
    """Return the notice for what is not in the folder."""
    body = """<h1>This is not in the folder</h1>
<p>The link leads out of what was exported: to another site, to a page that was not archived, or to a mail address. It
was put out of force; nothing was asked for on the network.</p>
<p lang="de">Der Verweis führt aus dem hinaus, was exportiert wurde: zu einem anderen Angebot, zu einer Seite, die nicht
archiviert wurde, oder zu einer Mailadresse. Er wurde außer Kraft gesetzt; im Netz wurde nichts abgefragt.</p>
"""
    return _notice("This is not in the folder", body)


def form() -> bytes:
    """Return the notice for forms."""
    body = """<h1>Forms do not work here</h1>
<p>The form belongs to an archived page. What was typed in was sent nowhere.</p>
<p lang="de">Das Formular gehört zu einer archivierten Seite. Die Eingaben wurden nirgendwohin gesendet.</p>
"""
    return _notice("Forms do not work here", body)


def live() -> bytes:
    """Return the notice before a document that keeps its links, with the way to it."""
    body = """<h1>This document keeps its links</h1>
<p>It is a PDF in this folder. Links in it were not changed: they lead to the live web, and not to archived pages. A
program that shows it may ask for them when they are clicked.</p>
<p lang="de">Es ist ein PDF in diesem Ordner. Die Verweise darin wurden nicht geändert: sie führen in das heutige Netz,
und nicht zu archivierten Seiten. Ein Programm, das es zeigt, fragt sie vielleicht ab, wenn sie angeklickt werden.</p>
<p><a id="way">Open the document / <span lang="de">Das Dokument öffnen</span></a></p>
"""
    return _notice("This document keeps its links", body, _LEADING_SCRIPT)


def _notice(title: str, body: str, script: str = _SCRIPT) -> bytes:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    ways = f"""<p>Address / <span lang="de">Adresse</span>:
<code id="address">behind the # of this page's own address</code></p>
<p><a href="../index.html">What is in the folder / <span lang="de">Was der Ordner enthält</span></a></p>
<script>{script}</script>"""
    return _page(title, body + ways, f"script-src 'sha256-{digest}'; ")


def _page(title: str, body: str, scripts: str) -> bytes:
    policy = f"default-src 'none'; {scripts}style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
{body}
</body>
</html>
""".encode()
