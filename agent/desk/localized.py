"""Values of settings as the language of a page writes them, and what people type, in either language. Pure.

`1 week` is `1 Woche` on a German page, `1.5 GB` is `1,5 GB`. Both are taken on both pages. A sign before three digits
groups them where the language of the page groups so: `1.500` is fifteen hundred in German, and one and a half in
English. Dates and times are CET. What is typed becomes the value that TOML has, checked by the check of its setting; a
fault is a sentence in the language of the page that says what to type, and names no setting.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime
from typing import Any

from webarcfs.archive.config import settings_files, validators
from webarcfs.archive.config.settings import (
    BrowserRule,
    Click,
    ErrorPageMark,
    Exclusion,
    HostSecret,
    LeavingRule,
    ReferencePage,
    ServerSettings,
)
from webarcfs.archive.config.validators import UNLIMITED_WORD, Check, Interval
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import CET
from webarcfs.web import language as languages
from webarcfs.web.language import msgid

#: Most characters of what was typed that a sentence repeats.
_QUOTED = 80
#: Faulty lines of a field that are named.
_LINES = 3
_SIGNS = {"en": (".", ","), "de": (",", ".")}  # of decimals, of groups

# == intervals ========================================================================================================


_GERMAN_UNITS = {
    "sekunde": "second", "sekunden": "second", "minute": "minute", "minuten": "minute", "stunde": "hour",
    "stunden": "hour", "tag": "day", "tage": "day", "tagen": "day", "woche": "week", "wochen": "week",
    "monat": "month", "monate": "month", "monaten": "month", "jahr": "year", "jahre": "year", "jahren": "year",
}  # fmt: skip
_GERMAN_WORDS = {
    "stündlich": "hourly", "täglich": "daily", "wöchentlich": "weekly", "monatlich": "monthly",
    "vierteljährlich": "quarterly", "quartalsweise": "quarterly", "halbjährlich": "6 months", "jährlich": "yearly",
}  # fmt: skip
_GERMAN_INTERVAL = re.compile(r"(?:alle|jede[nrs]?)?\s*(\d{1,6})?\s*([a-zäöü]+)", re.ASCII)


def interval_text(interval: Interval, language: str) -> str:
    """Return a length of time in words: `2 weeks`, `2 Wochen`."""
    return languages.duration(interval.count, interval.unit, language)


def interval_of(text: str, language: str) -> str:
    """Return the words of a length of time, as settings have it, in a language; any other text as it is."""
    with suppress(ValueError):
        return interval_text(Interval.parse(text), language)
    return text


def _english_interval(typed: str) -> str:
    """Return a German length of time as settings have it; any other text as it is."""
    text = typed.strip().lower()
    plain = text.replace("ae", "ä").replace("oe", "ö").replace("ue", "ü")
    if plain in _GERMAN_WORDS:
        return _GERMAN_WORDS[plain]
    match = _GERMAN_INTERVAL.fullmatch(text)
    if match is None or match[2] not in _GERMAN_UNITS or (match[1] is None and not text.startswith(("alle", "jede"))):
        return typed
    return f"{match[1] or 1} {_GERMAN_UNITS[match[2]]}"


# == numbers and sizes ================================================================================================


_BLANKS = str.maketrans("", "", " \u00a0\u2009\u202f'\u2019")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:([.,])[0-9]{3})+")
_SIZE = re.compile(r"([0-9., \u00a0\u2009\u202f'\u2019]+)\s*([A-Za-z]*)")
_SIZE_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def _plain_number(typed: str, language: str) -> str:
    """Return a number as TOML has it: `1.500,5` of a German page is `1500.5`; any other text as it is."""
    text = typed.translate(_BLANKS)
    _decimal, group = _SIGNS[language]
    last = max(text.rfind("."), text.rfind(","))
    if "." in text and "," in text:
        return text[:last].replace(".", "").replace(",", "") + "." + text[last + 1 :]
    match = _GROUPED.fullmatch(text)
    if match is not None and (match[1] == group or text.count(match[1]) > 1):
        return text.replace(match[1], "")
    return text.replace(",", ".")


def number_text(value: float, language: str) -> str:
    """Return a number as a field has it, without groups: `0.5`, `0,5`."""
    if value == int(value):
        return str(int(value))
    return f"{value:.10f}".rstrip("0").replace(".", _SIGNS[language][0])


def size_text(value: int, language: str) -> str:
    """Return a size without a loss: `1.5 GB`, `1,5 GB`; from 1000 bytes on with a unit."""
    for factor, unit in _SIZE_UNITS:
        if value >= factor and value % (factor // 1000) == 0:
            whole, rest = divmod(value * 1000 // factor, 1000)
            decimals = f"{_SIGNS[language][0]}{rest:03}".rstrip("0") if rest else ""
            return f"{whole}{decimals} {unit}"
    return str(value)


def _plain_size(typed: str, language: str) -> str:
    match = _SIZE.fullmatch(typed.strip())
    if match is None:
        return typed
    number, unit = _plain_number(match[1], language), match[2]
    return f"{number} {unit}" if unit and unit.lower() not in ("byte", "bytes") else number


# == times ============================================================================================================


_MONTHS = ("jan", "feb", "mar mär mrz", "apr", "may mai", "jun", "jul", "aug", "sep", "oct okt", "nov", "dec dez")
_MONTH_NUMBERS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_CLOCK = r"(?:,?[T ]+([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?)?(?: *Uhr)?(?: *(?:CET|MEZ))?"
_DAY_FIRST = re.compile(rf"([0-9]{{1,2}})(?:\. *|/| +)([0-9]{{1,2}}|[^\W\d_]{{3,9}})(?:\. *|/| +)([0-9]{{4}}){_CLOCK}")
_YEAR_FIRST = re.compile(rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}}){_CLOCK}")


def time_text(value: datetime) -> str:
    """Return a time as the picker of a browser has it, in CET."""
    own = value.astimezone(CET) if value.tzinfo is not None else value
    return own.strftime("%Y-%m-%dT%H:%M:%S" if own.second else "%Y-%m-%dT%H:%M")


def read_time(typed: str) -> datetime:
    """Return the time that was picked or typed, in CET: `2026-12-01T22:00`, `1.12.2026 22:00`, `1 Dec 2026`.

    A date alone is its first moment. Raises ValueError.
    """
    text = typed.strip()
    if match := _YEAR_FIRST.fullmatch(text):
        year, month, day = match[1], match[2], match[3]
    elif match := _DAY_FIRST.fullmatch(text):
        year, month, day = match[3], match[2], match[1]
        if not month.isdecimal():
            month = str(_MONTH_NUMBERS.get(month[:3].lower(), 0))
    else:
        return validators.time(text).astimezone(CET)
    hour, minute, second = (int(part or 0) for part in match.groups()[3:])
    return datetime(int(year), int(month), int(day), hour, minute, second, tzinfo=CET)


def read_day(typed: str) -> date:
    """Return the day that was picked or typed. Raises ValueError, also for one with a time of day."""
    time = read_time(typed)
    if (time.hour, time.minute, time.second) != (0, 0, 0):
        raise ValueError(typed)
    return time.date()


# == values ===========================================================================================================


def text_of(check: Check, value: Any, language: str) -> str:
    """Return a value of a setting, as TOML or the settings have it, as a field has it."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        element = getattr(check, "element", check)
        is_table = hasattr(check, "table")
        return "\n".join(_line(part) if is_table else _text_of_one(element, part, language) for part in value)
    return _text_of_one(check, value, language)


def _text_of_one(check: Check, value: Any, language: str) -> str:
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, datetime):
        text = time_text(value)
    elif isinstance(value, Interval) or check is validators.interval:
        text = interval_of(str(value), language)
    elif check is validators.size:
        text = size_text(value, language) if isinstance(value, int) else _with_sign(str(value), language)
    elif check is validators.time_of_day and value == validators.NEVER:
        text = languages.translate(_NEVER, language)
    elif value and hasattr(check, "unlimited") and value in (check.unlimited, UNLIMITED_WORD):
        text = languages.translate(_UNLIMITED, language)
    else:
        text = number_text(value, language) if isinstance(value, int | float) else str(value)
    return text


def _with_sign(size: str, language: str) -> str:
    return size.replace(".", _SIGNS[language][0])


def _line(table: Any) -> str:
    """Return a table as a line: what is left out as host, path and reason, all else as TOML."""
    plain = settings_files.plain(table) if not isinstance(table, Mapping) else dict(table)
    if plain.keys() <= {"match", "reason"} and "reason" in plain:
        return f"{plain.get('match', '')} # {plain['reason']}"
    return settings_files.text_of(plain).strip().replace("\n", ", ")


_NEVER = msgid("never")
_NEVER_WORDS = (validators.NEVER, "nie")
_UNLIMITED = msgid("unlimited")
_UNLIMITED_WORDS = (UNLIMITED_WORD, "unbegrenzt", "unbeschränkt", "ohne grenze", "no limit")


def value_of(check: Check, typed: str, language: str) -> Any:
    """Return what was typed for a setting as TOML has it. Raises ValueError, whose text says what to type."""
    if hasattr(check, "element"):
        return _list_of(check.element, typed, language)
    if hasattr(check, "table"):
        return _tables_of(check, typed, language)
    with suppress(ValueError, OverflowError, UsageError):
        value = _toml_value(check, typed, language)
        check(value)
        return value
    raise ValueError(f"{_quoted(typed, language)} {what_to_type(check, language)}")


def _toml_value(check: Check, typed: str, language: str) -> Any:
    value: Any = typed
    if check is validators.boolean:
        value = {"yes": True, "no": False}.get(typed, typed)
    elif check is validators.interval:
        value = str(Interval.parse(_english_interval(typed)))
    elif check is validators.size:
        size = _plain_size(typed, language)
        value = int(size) if size.isdecimal() else size
    elif check is validators.time:
        value = read_time(typed).replace(tzinfo=None)
    elif check is validators.time_of_day and typed.strip().lower() in _NEVER_WORDS:
        value = validators.NEVER
    elif check in (validators.url, validators.feed_url):
        value = validators.start_url(typed)
    elif hasattr(check, "least"):
        value = _number(check, typed, language)
    return value


def _number(check: Any, typed: str, language: str) -> int | float | str:
    if hasattr(check, "unlimited") and typed.strip().lower() in _UNLIMITED_WORDS:
        return UNLIMITED_WORD
    number = _plain_number(typed, language)
    return int(number) if check.is_whole or number.lstrip("-").isdecimal() else float(number)


def _list_of(element: Check, typed: str, language: str) -> list[Any]:
    values, wrong = [], []
    for line in filter(None, map(str.strip, typed.splitlines())):
        try:
            values.append(value_of(element, line, language))
        except ValueError:
            wrong.append(line)
    if wrong:
        raise ValueError(_of_lines(wrong, what_to_type(element, language), language))
    return values


def _tables_of(check: Check, typed: str, language: str) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = []
    wrong = []
    for line in filter(None, map(str.strip, typed.splitlines())):
        try:
            values.append(_table_of(line, check.table is Exclusion))  # type: ignore[attr-defined]
            check([values[-1]])
        except ValueError:
            wrong.append(line)
    if wrong:
        raise ValueError(_of_lines(wrong, what_to_type(check, language), language))
    return values


def _table_of(line: str, is_exclusion: bool) -> dict[str, Any]:
    """Return the table of a line. Raises ValueError."""
    if is_exclusion and "=" not in line.partition("#")[0]:
        match, _, reason = line.partition("#")
        return {"match": match.strip()} | ({"reason": reason.strip()} if reason.strip() else {})
    return dict(tomllib.loads(f"it = {{ {line} }}")["it"])


def _of_lines(lines: list[str], sentence: str, language: str) -> str:
    named = " ".join(_quoted(line, language) for line in lines[:_LINES])
    if len(lines) > _LINES:
        text = languages.translate(msgid("And %(count)s more lines."), language)
        named = f"{named} {text % {'count': languages.number(len(lines) - _LINES, language)}}"
    return f"{named} {sentence}"


def _quoted(typed: str, language: str) -> str:
    text = " ".join(typed.split())
    short = text if len(text) <= _QUOTED else f"{text[: _QUOTED - 1]}…"
    return languages.translate(msgid("“%(typed)s” cannot be taken."), language) % {"typed": short}


# == what to type =====================================================================================================


#: Check of a setting → what a person types (msgids).
_WHAT: dict[Check, str] = {
    validators.boolean: msgid("Choose one of the list."),
    validators.interval: msgid("Type a length of time, such as 1 week, 10 days or 2 hours."),
    validators.size: msgid("Type a size, such as 500 kB or 1.5 GB, or a number of bytes."),
    validators.time: msgid("Type a date and time in CET, such as 2026-12-01 22:00."),
    validators.url: msgid("Type the address of a page, such as https://www.example.org/."),
    validators.feed_url: msgid("Type the address of a feed, such as https://www.example.org/feed.xml."),
    validators.name: msgid("Type up to 100 letters, digits, dots and hyphens, such as example.org."),
    validators.extension: msgid("Type the ending of a file name, such as exe or tar.gz."),
    validators.path_pattern: msgid("Type a path, such as /press/* or www.example.org/press/*."),
    validators.url_pattern: msgid("Type a host, or a host and a path, such as www.example.org/old/*."),
    validators.mime_pattern: msgid("Type a MIME type, such as text/html or image/*."),
    validators.file_path: msgid("Type the whole path of a file, which begins with a slash."),
    validators.proxy: msgid("Type the address of a proxy without a password, such as http://proxy.example.org:3128."),
    validators.address: msgid("Type an IP address, such as 192.0.2.1."),
    validators.function: msgid("Type a function as package.module:function."),
    validators.session_parameter: msgid("Type the name of a parameter, such as sid."),
    validators.chance_parameter: msgid("Type the name of a parameter, such as _ or nocache."),
    validators.text: msgid("Type one line of text."),
    validators.mail_address: msgid("Type a mail address, such as archive@example.org."),
    validators.sender: msgid("Type a mail address, such as archive@example.org."),
    validators.web_address: msgid("Type a web address without a password, such as https://www.example.org/hook."),
    validators.time_of_day: msgid("Type a time of the day, such as 08:00, or never."),
}
#: Kind of a table → an example of a line.
_LINES_OF: dict[type, str] = {
    ReferencePage: 'url = "https://www.example.org/", name = "Start", expects = "page", by = "person"',
    LeavingRule: 'match = "/search", on = "form", does = "search", term = "q"',
    ErrorPageMark: 'contains = "<h1>Error</h1>"',
    ServerSettings: 'host = "www.example.org", wait = 2',
    BrowserRule: 'match = "/map/*"',
    Click: 'text = "Accept"',
    HostSecret: 'hosts = ["www.example.org"], file = "/etc/webarc/login"',
}


def what_to_type(check: Check, language: str) -> str:
    """Return the sentence that says what a person types for a setting."""
    text = languages.translate
    if hasattr(check, "table"):
        if check.table is Exclusion:
            return text(msgid("Type a host, or host and path with *, then # and the reason, one a line."), language)
        example = _LINES_OF[check.table]
        return text(msgid("Write each line as in this example: %(example)s"), language) % {"example": example}
    if hasattr(check, "words"):
        return text(_WHAT[validators.boolean], language)
    if hasattr(check, "least"):
        return _of_number(check, language)
    return text(_WHAT.get(check, _WHAT[validators.text]), language)


def _of_number(check: Any, language: str) -> str:
    text = languages.translate
    least = languages.number(check.least, language)
    most = None if check.most is None else languages.number(check.most, language)
    if hasattr(check, "unlimited"):
        sentence = msgid("Type a whole number from %(least)s on, or unlimited.")
    elif most is None:
        sentence = (
            msgid("Type a whole number from %(least)s on.")
            if check.is_whole
            else msgid("Type a number from %(least)s on.")
        )
    else:
        sentence = (
            msgid("Type a whole number from %(least)s to %(most)s.")
            if check.is_whole
            else msgid("Type a number from %(least)s to %(most)s.")
        )
    return text(sentence, language) % {"least": least, "most": most}
