"""What the archive takes, as tables and a chart in the terminal, or as JSON: for `webarc-agent report --storage`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agent.reports import storage as figures
from agent.reports.storage import Storage

#: Letters of the longest bar: with the names and figures it fits 80 columns.
_BAR = 28
_NAMES = {
    "catalogue": "records and attachments",
    "database": "webarc.db",
    "links": "links.db",
    "changes": "changes",
    "jobs": "jobs/, with what was fetched",
    "reports": "reports/",
    "journal": "journal/",
    "log": "log/",
    "settings": "settings and the rest",
}


def show(found: Storage, *, as_json: bool, top: int) -> None:
    """Print what the archive takes: JSON, or tables, of repositories the `top` largest (0: all)."""
    if as_json:
        click.echo(json.dumps(_as_object(found), indent=1, ensure_ascii=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    _captured(console, found)
    _on_disk(console, found, top)
    _coming(console, found)


def _as_object(found: Storage) -> dict[str, object]:
    return {
        "captured": {
            "bytes": found.captured,
            "years": [asdict(each) for each in found.years],
        },
        "on_disk": {
            "documents": found.documents_on_disk,
            "repositories": found.repositories,
            "metadata": found.metadata,
            "parts": {name: found.parts[name] for name in figures.METADATA},
            "search": found.parts["search"],
            "free": found.free,
        },
        "a_year": {
            "captured": found.coming_captured,
            "on_disk": found.coming_on_disk,
            "publications": [asdict(each) | {"bytes": each.bytes} for each in found.forecasts],
        },
    }


def _captured(console: Console, found: Storage) -> None:
    table = _table("Captured, each snapshot counted whole", "publication", "year", "snapshots", "documents", "bytes")
    for each in found.years:
        row = (each.publication, str(each.year), f"{each.snapshots:,}", f"{each.documents:,}", f"{each.bytes:,}")
        table.add_row(*map(escape, row))
    snapshots, documents = sum(each.snapshots for each in found.years), sum(each.documents for each in found.years)
    table.add_row("all", "", f"{snapshots:,}", f"{documents:,}", f"{found.captured:,}", style="bold")
    console.print(table)
    uncounted = sum(each.uncounted for each in found.years)
    if uncounted:
        console.print(f"{uncounted:,} snapshots are not counted, and have no bytes here")
    by_year: Counter[str] = Counter()
    for each in found.years:
        by_year[str(each.year)] += each.bytes
    console.print()
    _bars(console, "Captured by year", dict(sorted(by_year.items())))


def _bars(console: Console, title: str, figures_of: Mapping[str, int]) -> None:
    """Print a bar of letters for each figure."""
    most = max(figures_of.values(), default=0)
    table = _table(title, "", "bytes", "")
    table.columns[2].justify = "left"
    for name, size in figures_of.items():
        table.add_row(escape(name), f"{size:,}", bar(size, most))
    console.print(table)


def bar(figure: float, most: float) -> str:
    """Return a bar of letters; that of the largest figure is 28 long, and only nothing has none."""
    return "#" * (math.ceil(figure * _BAR / most) if most else 0)


def _on_disk(console: Console, found: Storage, top: int) -> None:
    console.print()
    parts = {
        f"documents, {len(found.repositories):,} repositories": found.documents_on_disk,
        "metadata": found.metadata,
        **{f"- {_NAMES[name]}": found.parts[name] for name in figures.METADATA if found.parts[name]},
        "full-text index": found.parts["search"],
    }
    _bars(console, "On the disk", parts)
    console.print(f"free: {found.free:,} bytes")
    largest = sorted(found.repositories.items(), key=lambda each: (-each[1], each[0]))
    shown = largest[:top] if top else largest
    if shown:
        console.print()
        table = _table("Largest repositories", "domain", "bytes")
        for domain, size in shown:
            table.add_row(escape(domain), f"{size:,}")
        if len(largest) > len(shown):
            rest = largest[len(shown) :]
            table.add_row(f"{len(rest):,} more", f"{sum(size for _, size in rest):,}")
        console.print(table)


def _coming(console: Console, found: Storage) -> None:
    console.print()
    if not found.forecasts:
        console.print("A year from now cannot be told: no publication that is due has a counted capture.")
        return
    table = _table("A year, if it goes on so", "publication", "every", "captures", "mean bytes", "bytes")
    for each in found.forecasts:
        row = (each.publication, each.interval, f"{each.captures:,.0f}", f"{each.mean:,}", f"{each.bytes:,}")
        table.add_row(*map(escape, row))
    console.print(table)
    console.print(
        f"A year brings {found.coming_captured:,} bytes, each snapshot counted whole: for each publication the mean of"
        f" its last {figures.LAST} captures, times the captures that its interval brings in a year."
    )
    if found.coming_on_disk is not None:
        console.print(
            f"The repositories would grow by {found.coming_on_disk:,} bytes, as {found.documents_on_disk:,} are on the"
            f" disk of {found.captured:,} that were captured: what does not change is kept once."
        )


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        is_text = not number or column in ("year", "every")
        table.add_column(column, justify="left" if is_text else "right", no_wrap=True)
    return table
