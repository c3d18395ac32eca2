"""The forms in which commands print what they list: a table for people; JSON, lines of JSON and CSV for programs.

The rows of all forms are the same. Nothing is cut, wrapped or coloured where the output is no terminal.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import IO, TYPE_CHECKING, Any, TextIO, TypeVar, cast

import click

from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.system.standard_streams import is_output_closed

if TYPE_CHECKING:
    from rich.console import Console  # slow to load, and programs do not need it
    from rich.table import Table
    from rich.text import Text

_F = TypeVar("_F", bound=Callable[..., Any])
_R = TypeVar("_R")
Row = Mapping[str, Any]
# Wider than any table: the output of a pipe has no width.
_ENDLESS = 1_000_000
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Blanks at the end of a line, also before the end of a colour.
_END_OF_LINE = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)


class Form(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PATHS = "paths"
    SVG = "svg"


#: The forms of a list, and those of one object.
LIST = (Form.TABLE, Form.JSON, Form.JSONL, Form.CSV)
OBJECT = (Form.TABLE, Form.JSON)


def format_option(*forms: Form) -> Callable[[_F], _F]:
    """Add `--format`, and `--json` as its short form; the command gets `form`."""

    def decorate(command: _F) -> _F:
        @functools.wraps(command)
        def with_form(*args: Any, form: str | None, as_json: bool, **options: Any) -> Any:
            if as_json and form not in (None, Form.JSON):
                raise UsageError(f"--json is --format json; it does not go with --format {form}")
            return command(*args, form=Form.JSON if as_json else Form(form or Form.TABLE), **options)

        about = "jsonl: an object a line. " if Form.JSONL in forms else "json: one object. "
        option = click.option(
            "--format", "form", type=click.Choice([*map(str, forms)]), help=f"{about}[default: {forms[0]}]"
        )
        return cast(
            _F, option(click.option("--json", "as_json", is_flag=True, help="Short for --format json.")(with_form))
        )

    return decorate


def print_rows(
    form: Form,
    rows: Iterable[Row],
    show: Callable[[Any], Iterable[str] | None],
    *,
    as_json: Callable[[Iterable[Row]], None] | None = None,
    columns: Sequence[str] = (),
    newline: str = "\r\n",
) -> None:
    """Print rows in a form.

    `show` prints the table, or yields its lines. `as_json` prints the JSON, by default an object a line. `columns` are
    those of CSV, by default all keys of the rows. Nothing is printed as CSV where there are neither columns nor rows.
    """
    if form is Form.TABLE:
        for line in while_read(show(rows) or ()):
            click.echo(line)
    elif form is Form.CSV:
        print_csv(rows, columns, newline)
    elif form is Form.JSON and as_json is not None:
        as_json(rows)
    else:
        print_lines(rows)


def print_sums(form: Form, sums: Mapping[str, Any], lines: Iterable[str]) -> None:
    """Print what came of a piece of work: one object as JSON, or lines for people."""
    if form is Form.JSON:
        print_object(sums)
        return
    for line in lines:
        click.echo(line)


def while_read(rows: Iterable[_R]) -> Iterable[_R]:
    """Return rows, or lines, as long as somebody reads standard output: a list ends with its reader."""
    return takewhile(lambda _: not is_output_closed(), rows)


def to_json(content: object, *, indent: int | None = None, ensure_ascii: bool = False) -> str:
    """Return content as JSON. The bytes of a name that is not UTF-8 are escaped, as `\\udcff`: JSON is UTF-8."""
    text = json.dumps(content, indent=indent, ensure_ascii=ensure_ascii, default=str)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_lines(rows: Iterable[Row], *, ensure_ascii: bool = False) -> None:
    """Print an object a line."""
    for row in while_read(rows):
        click.echo(to_json(row, ensure_ascii=ensure_ascii))


#: The JSON of commands whose output has always been ASCII.
print_ascii_lines = functools.partial(print_lines, ensure_ascii=True)


def print_object(content: object, *, indent: int = 2) -> None:
    """Print one object, or all rows as an array, over several lines."""
    click.echo(to_json(content, indent=indent))


def print_array(rows: Iterable[Row]) -> None:
    """Print an array with an object a line, for readers of JSON as a whole and of lines as they come."""
    click.echo("[", nl=False)
    for number, row in enumerate(while_read(rows)):
        click.echo((",\n" if number else "\n") + to_json(row), nl=False)
    click.echo("\n]")


def print_csv(rows: Iterable[Row], columns: Sequence[str] = (), newline: str = "\r\n") -> None:
    """Print CSV as RFC 4180 has it; nested values are JSON, null is empty. Columns are by default those of all rows."""
    if not columns:
        rows = list(rows)
        columns = list(dict.fromkeys(key for row in rows for key in row))
    if columns:
        writer = csv.DictWriter(sys.stdout, columns, extrasaction="ignore", lineterminator=newline)
        writer.writeheader()
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in while_read(rows))


def _cell(value: Any) -> Any:
    if isinstance(value, str | int | float | None) and not isinstance(value, bool):
        return value
    return to_json(value)


class Mood(StrEnum):
    """The colour of a word that is good, waits or is bad. The word says it by itself, too."""

    GOOD = "green"
    WAITS = "yellow"
    BAD = "red"


def has_colours(stream: TextIO | None = None) -> bool:
    """Return whether a stream, standard output by default, gets colours: terminals that know them, or FORCE_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    out = sys.stdout if stream is None else stream
    return out is not None and out.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "unknown"}


def styled(text: str, mood: Mood | None) -> str:
    """Return a word of a line in its colour, where standard output has colours."""
    return click.style(text, fg=str(mood)) if mood is not None and has_colours() else text


def cell_of(text: str, mood: Mood | None) -> Text:
    """Return a word of a table in its colour."""
    from rich.text import Text  # noqa: PLC0415 # slow to load

    return Text(text, style="" if mood is None else str(mood))


#: Said below a table of which something is cut.
CUT = "… is cut to the width of the terminal; with `| cat`, or --format csv, all of it is there"


def show_table(table: Table) -> None:
    """Print a table: whole where the output is no terminal; else as wide as that, and with a line if that cut it."""
    console = table_console()
    if not sys.stdout.isatty():
        console.print(table)
        return
    with console.capture() as shown:
        console.print(table)
    sys.stdout.write(shown.get())
    own = sum(str(cell).count("…") for column in table.columns for cell in (column.header, *column.cells))
    if shown.get().count("…") > own:
        console.print(CUT)


class _Trimmed(io.TextIOBase):
    """Standard output without the blanks by which tables fill the ends of their lines."""

    def write(self, text: str) -> int:
        return sys.stdout.write(_END_OF_LINE.sub(r"\1", text))

    def flush(self) -> None:
        sys.stdout.flush()


def table_console() -> Console:
    """Return the console of tables: as wide as the terminal, or without an end and without blanks at ends of lines."""
    if sys.stdout.isatty():
        return _plain_console(soft_wrap=True)
    return _plain_console(file=cast(IO[str], _Trimmed()), width=_ENDLESS, soft_wrap=True)


def error_console() -> Console:
    """Return the console of standard error, for progress and logs."""
    return _plain_console(stderr=True)


def _plain_console(**options: Any) -> Console:
    """Return a console that prints each text as it is: what people, sites and files say is no markup and no emoji.

    Styles of our own are a `Text`, or the `style` of a row.
    """
    from rich.console import Console  # noqa: PLC0415 # slow to load

    return Console(markup=False, emoji=False, highlight=False, **options)


def print_table(columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Print these columns of rows as a table."""
    from rich.table import Table  # noqa: PLC0415 # slow to load

    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(str(row[name]) for name in columns))
    if table.row_count:
        show_table(table)
    else:
        click.echo("none")
