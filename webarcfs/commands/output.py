"""What commands show people: the progress of long work, differences of pages, tables and pictures of statistics.

Progress is a bar on a terminal, and log lines elsewhere; speed and time left are of the last half minute.
Matplotlib, for `webarc stat --plot`, is large and therefore optional: `pip install 'webarcfs[plot]'`.
"""

from __future__ import annotations

import difflib
import logging
import sys
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from webarcfs.archive.history.versions import Statistics
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.system.clocks import Speed
from webarcfs.content.visible_lines import compared_lines, folded

# == numbers in words, pure ===========================================================================================


_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_SIZES = ("bytes", "kB", "MB", "GB", "TB")


def duration(seconds: float) -> str:
    """Return a duration in its two largest units, such as `3 min 20 s`; `0 s` for less than a second."""
    rest, words = round(seconds), list[str]()
    for unit, length in _UNITS:
        count, rest = divmod(rest, length)
        if count or words:
            words.append(f"{count} {unit}")
        if len(words) == 2:
            break
    return " ".join(word for word in words if not word.startswith("0 ")) or "0 s"


def described(a_second: float | None, left: float | None, *, in_bytes: bool = False) -> str:
    """Return speed and time left as text, such as `12.3/s, 45 s left`; empty before the speed is known."""
    if a_second is None:
        return ""
    speed = f"{_size(a_second)}/s" if in_bytes else f"{a_second:.{1 if a_second < 100 else 0}f}/s"
    return speed if left is None else f"{speed}, {duration(left)} left"


def count_of(done: int, known: int) -> str:
    """Return how much is done, such as `3 of 12`; `3` where nobody knows of how many."""
    return f"{done} of {known}" if known else str(done)


def _size(count: float) -> str:
    power = 0
    while count >= 1000 and power < len(_SIZES) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.{1 if power else 0}f} {_SIZES[power]}"


# == progressbar ======================================================================================================


_log = logging.getLogger("webarc")
_SECONDS_BETWEEN_LINES = 10.0
#: How often a bar is drawn at most.
_LOOKS_A_SECOND = 4


class Display:
    """A context manager that is a `Progress`: bars on a terminal, and a line every ten seconds elsewhere.

    The lines come from a thread, so there is one also where a single thing takes long. With `--quiet`, which is a level
    of the log, nothing is shown.
    """

    def __init__(self, console: Console, between_lines: float = _SECONDS_BETWEEN_LINES) -> None:
        self._is_shown = _log.isEnabledFor(logging.INFO)
        self._bars: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._speeds: defaultdict[str, Speed] = defaultdict(Speed)
        self._at: tuple[str, int, int] | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._lines = threading.Thread(target=self._print_lines, args=(between_lines,), daemon=True)
        # FORCE_COLOR makes a terminal of a pipe: that is for colours, and a log has no bars.
        if self._is_shown and console.is_terminal and not console.is_dumb_terminal and console.file.isatty():
            description = TextColumn("{task.description}", markup=False)
            columns = (SpinnerColumn(), description, BarColumn(), TextColumn("{task.fields[count]}", markup=False))
            speed = TextColumn("{task.fields[speed]}", markup=False)
            self._bars = RichProgress(
                *columns,
                TimeElapsedColumn(),
                speed,
                console=console,
                transient=True,
                refresh_per_second=_LOOKS_A_SECOND,
                redirect_stdout=False,  # it would send what is printed to standard error
            )

    def __enter__(self) -> Display:
        if self._bars is not None:
            self._bars.start()
        elif self._is_shown:
            self._lines.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        if self._bars is not None:
            self._bars.stop()
        elif self._is_shown:
            self._lines.join()

    def __call__(self, what: str, done: int, known: int) -> None:
        """Show that `done` of `known` things of the work `what` are done."""
        if not self._is_shown:
            return
        with self._lock:
            self._at = what, done, known
            speed = self._speeds[what]
            speed.note(time.monotonic(), done)
            if self._bars is None:
                return
            pace, count = _pace(what, speed, known), count_of(done, known)
            total = max(known, done) if known else None
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(what, completed=done, total=total, speed=pace, count=count)
            self._bars.update(self._tasks[what], completed=done, total=total, speed=pace, count=count)

    def print(self, line: str) -> None:
        """Print a result while the work goes on."""
        if self._bars is not None and sys.stdout.isatty():
            self._bars.console.print(line, soft_wrap=True)
        else:
            click.echo(line)

    def _print_lines(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            with self._lock:
                if self._at is None:
                    continue
                what, done, known = self._at
                self._speeds[what].note(time.monotonic(), done)
                pace = _pace(what, self._speeds[what], known)
            _log.info("%s: %s%s", what, count_of(done, known), f", {pace}" if pace else "")


def log_progress() -> None:
    """Let the lines of progress go to standard error, unless `webarc --quiet` leaves them out."""
    options = click.get_current_context().find_root().obj or {}
    level = logging.WARNING if options.get("quiet") else logging.INFO
    logging.basicConfig(level=level, format="webarc: %(message)s", stream=sys.stderr)


def _pace(what: str, speed: Speed, known: int) -> str:
    left = speed.left(known) if known else None
    return described(speed.a_second, left, in_bytes="(bytes)" in what)


# == picture ==========================================================================================================


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
            bars = shortened([getattr(statistics, table) for statistics in figures])
            for panel, (measure, unit) in zip(row, _MEASURES.items(), strict=True):
                _panel(panel, tags, [{key: cell[measure] for key, cell in cells.items()} for cells in bars])
                panel.set_title(f"{title}: {unit}")
        figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside upper center")
        figure.savefig(file, metadata={"Date": None} if file.suffix.lower() == ".svg" else None)


def shortened(tables: Sequence[Mapping[str, tuple[int, int]]]) -> list[dict[str, tuple[int, int]]]:
    """Return tables with the same keys in the same order, the most frequent first, with the sum of the rest."""
    keys = sorted({key for table in tables for key in table}, key=lambda key: (-_most(tables, key), key))
    rest = keys[MOST:]
    short_tables = []
    for table in tables:
        short = {key: table.get(key, (0, 0)) for key in keys[:MOST]}
        if rest:
            cells = [table.get(key, (0, 0)) for key in rest]
            short[f"{len(rest)} {OTHERS}"] = sum(cell[0] for cell in cells), sum(cell[1] for cell in cells)
        short_tables.append(short)
    return short_tables


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


# == textual ==========================================================================================================


def difference(
    bodies: tuple[bytes, bytes], shown: tuple[str, str], names: tuple[str, str], *, ignore_space: bool
) -> Iterator[str]:
    """Yield the lines of a unified diff of two versions of a page; for equal texts, a line that says so.

    `shown` are the texts that browsers showed of them, empty without one.
    """
    before, after = compared_lines(bodies, shown)
    if ignore_space:
        before, after = ([text_line for line in text if (text_line := folded(line))] for text in (before, after))
    diff_lines = list(difflib.unified_diff(before, after, *names, lineterm=""))
    if diff_lines:
        yield from diff_lines
    else:
        yield "the same text; " + (
            "nothing differs" if bodies[0] == bodies[1] else "the page does not show the difference"
        )


def statistics_table(tags: Sequence[str], figures: Sequence[Statistics], *, names_resources: bool) -> Iterator[str]:
    """Yield one snapshot's statistics, or two side by side with their differences.

    `names_resources`: the figures leave out what only pages of other hosts needed, so a line counts that.
    """
    for tag, statistics in zip(tags, figures, strict=True):
        errors = f", and {statistics.error_pages:,} error pages" if statistics.error_pages else ""
        yield f"{tag}: {statistics.documents:,} documents, {statistics.bytes:,} bytes{errors}"
        if statistics.resources[0] and names_resources:
            count, size = statistics.resources
            yield f"  and {count:,} that only pages of other hosts needed, {size:,} bytes (--role any counts them)"
    for title in ("types", "extensions"):
        tables = [getattr(statistics, title) for statistics in figures]
        yield ""
        yield f"{title:40}" + "".join(f"{'documents':>12}{'bytes':>16}" for _ in tables)
        for key in sorted({key for table in tables for key in table}, key=lambda key: (-_most(tables, key), key)):
            cells = [table.get(key, (0, 0)) for table in tables]
            note = ""
            if len(cells) == 2:
                note = (
                    "  new" if not cells[0][0] else "  gone" if not cells[1][0] else _change(cells[0][0], cells[1][0])
                )
            yield f"{key:40}" + "".join(f"{count:>12,}{size:>16,}" for count, size in cells) + note


def _change(old: int, new: int) -> str:
    return "" if old == new else f"  {new - old:+,}"
