"""Draws the statistics of snapshots as bars, for `webarc stat --plot`.

Matplotlib is large and therefore optional: `pip install 'webarcfs[plot]'`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from webarcfs.archive.history.statistics import Statistics
from webarcfs.archive.model.errors import UsageError

FORMATS = (".svg", ".png")
#: Most bars of a panel; the rest becomes one more, "others".
MOST = 15
OTHERS = "others"
_TABLES = {"types": "MIME types", "extensions": "extensions"}
_MEASURES = {0: "documents", 1: "bytes"}
# Texts stay texts, never formulas; equal figures are equal bytes.
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "webarcfs", "text.parse_math": False}


def draw(tags: Sequence[str], figures: Sequence[Statistics], file: Path) -> None:
    """Draw documents and bytes by MIME type and by extension into `file`, snapshots side by side.

    Raises UsageError for an unknown file ending or without matplotlib, OSError when the file cannot be written.
    """
    if file.suffix.lower() not in FORMATS:
        raise UsageError(f"{file} must end in {' or '.join(FORMATS)}, which says what it will be")
    try:
        import matplotlib  # noqa: PLC0415 # optional, and slow to load
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise UsageError("--plot needs matplotlib, which is not installed: pip install 'webarcfs[plot]'") from None
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # characters that the font lacks become boxes
        figure = Figure(figsize=(14, 10), layout="constrained")
        panels = figure.subplots(len(_TABLES), len(_MEASURES))
        for row, (table, title) in zip(panels, _TABLES.items(), strict=True):
            bars = shortened([getattr(each, table) for each in figures])
            for panel, (measure, unit) in zip(row, _MEASURES.items(), strict=True):
                _panel(panel, tags, [{key: cell[measure] for key, cell in each.items()} for each in bars])
                panel.set_title(f"{title}: {unit}")
        figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside upper center")
        figure.savefig(file, metadata={"Date": None} if file.suffix.lower() == ".svg" else None)


def shortened(tables: Sequence[Mapping[str, tuple[int, int]]]) -> list[dict[str, tuple[int, int]]]:
    """Return tables with the same keys in the same order, the most frequent first, with the sum of the rest."""
    keys = sorted({key for table in tables for key in table}, key=lambda key: (-_most(tables, key), key))
    rest = keys[MOST:]
    found = []
    for table in tables:
        short = {key: table.get(key, (0, 0)) for key in keys[:MOST]}
        if rest:
            cells = [table.get(key, (0, 0)) for key in rest]
            short[f"{len(rest)} {OTHERS}"] = sum(cell[0] for cell in cells), sum(cell[1] for cell in cells)
        found.append(short)
    return found


def _most(tables: Sequence[Mapping[str, tuple[int, int]]], key: str) -> int:
    return max(table.get(key, (0, 0))[0] for table in tables)


def _panel(panel: Any, tags: Sequence[str], columns: Sequence[Mapping[str, int]]) -> None:
    """Draw one snapshot's bars, or two snapshots' side by side, with their numbers; the first key on top."""
    height = 0.8 / len(columns)
    for number, (tag, column) in enumerate(zip(tags, columns, strict=True)):
        places = [place + (number - (len(columns) - 1) / 2) * height for place in range(len(column))]
        drawn = panel.barh(places, list(column.values()), height, label=tag)
        panel.bar_label(drawn, [f"{value:,}" for value in column.values()], padding=3, fontsize="small")
    panel.set_yticks(range(len(columns[0])), list(columns[0]))
    panel.invert_yaxis()
    panel.margins(x=0.2)
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.tick_params(axis="x", rotation=30)
