"""Checks of settings: each takes a value from TOML or an option, and returns the checked value. Pure.

A check raises ValueError with a sentence that explains the fault. Spans of time are read as people write them: `1 day`,
`every 2 weeks`, `monthly` (/Cr-1.2/). A dataclass of settings says for each field its check, default and help; a table
of TOML becomes one here. Checks that are made for bounds, words or elements have these as attributes: forms explain
with them what to type.
"""

from __future__ import annotations

import calendar
import dataclasses
import difflib
import ipaddress
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from webarcfs.archive.model import urls
from webarcfs.archive.model.errors import UrlRefused, UsageError
from webarcfs.archive.model.metadata import CET
from webarcfs.archive.model.urls import canonical, domain_of

# == interval, pure ===================================================================================================


_FORM = re.compile(
    r"\s*(?:every\s+)?(?:(\d{1,6})\s*|(?<=every )\s*)(second|minute|hour|day|week|month|year)s?\s*",
    re.ASCII | re.IGNORECASE,
)
#: What people call the usual intervals.
_CALLED = {
    "hourly": (1, "hour"),
    "daily": (1, "day"),
    "weekly": (1, "week"),
    "monthly": (1, "month"),
    "quarterly": (3, "month"),
    "yearly": (1, "year"),
    "annually": (1, "year"),
}
_LONGEST = timedelta(days=36525)  # so that every date one interval away is valid
_DAYS = {"month": 30, "year": 365}  # as lengths, not as dates


@dataclass(frozen=True, slots=True)
class Interval:
    """`count` times `unit`, where unit is second, minute, hour, day, week, month or year."""

    count: int
    unit: str

    def __str__(self) -> str:
        return f"{self.count} {self.unit}{'' if self.count == 1 else 's'}"

    @classmethod
    def parse(cls, text: str) -> Interval:
        """Return the interval that `text` spells. Raises ValueError for any other text, or a length of zero."""
        if (called := _CALLED.get(text.strip().lower())) is not None:
            return cls(*called)
        match = _FORM.fullmatch(text)
        if match is None or int(match[1] or 1) == 0:
            raise ValueError(f"{text!r} is no interval; write for instance 'weekly', '2 weeks' or '30 minutes'")
        interval = cls(int(match[1] or 1), match[2].lower())
        if interval.seconds > _LONGEST.total_seconds():
            raise ValueError(f"{text!r} is longer than a hundred years")
        return interval

    @property
    def seconds(self) -> float:
        """Its length in seconds; a month has 30 days, a year 365."""
        if self.unit in _DAYS:
            return timedelta(days=_DAYS[self.unit] * self.count).total_seconds()
        return timedelta(**{f"{self.unit}s": self.count}).total_seconds()

    @property
    def months(self) -> int:
        """Its length in months; 0 for units of one length."""
        return self.count * {"month": 1, "year": 12}.get(self.unit, 0)

    def after(self, time: datetime) -> datetime:
        """Return the time one interval after `time`; months and years keep the day, or take the month's last."""
        if not self.months:
            return time + timedelta(seconds=self.seconds)
        months = time.year * 12 + time.month - 1 + self.months
        year, month = divmod(months, 12)
        day = min(time.day, calendar.monthrange(year, month + 1)[1])
        return time.replace(year=year, month=month + 1, day=day)


# == validators, pure =================================================================================================


Check = Callable[[Any], Any]

#: What is written for a client of a unix socket where others have an address.
UNIX = "unix"

#: What is written in place of a time of the day at which nothing shall happen.
NEVER = "never"
#: What is written in place of a number that shall be no bound.
UNLIMITED_WORD = "unlimited"

_SIZE = re.compile(r"\s*(\d{1,9}(?:\.\d{1,3})?)\s*([kKmMgGtT]i?B?|B)\s*", re.ASCII)
_UNITS = {
    "b": 1,
    "k": 1000,
    "kb": 1000,
    "ki": 1024,
    "kib": 1024,
    "m": 10**6,
    "mb": 10**6,
    "mi": 1 << 20,
    "mib": 1 << 20,
    "g": 10**9,
    "gb": 10**9,
    "gi": 1 << 30,
    "gib": 1 << 30,
    "t": 10**12,
    "tb": 10**12,
    "ti": 1 << 40,
    "tib": 1 << 40,
}
_WINDOW = re.compile(r"[1-9][0-9]{1,3}x[1-9][0-9]{1,3}")
_EXTENSION = re.compile(r"\.?[A-Za-z0-9]+(?:\.[A-Za-z0-9]+)*", re.ASCII)
# A colon before a digit precedes a port, as in `localhost:8080`, and does not end a scheme.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?", re.ASCII)
_URL_PATTERN = re.compile(r"[^\s/:]+(?::[\d*?]+)?(?:/\S*)?")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_PROXY = re.compile(r"http://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?/?", re.ASCII)
_HIGHEST_PORT = 65535
_NOT_IN_PATHS = re.compile("[\0\ud800-\udfff]")
_LISTEN = re.compile(r"(?:(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):)?([0-9]{1,5})", re.ASCII)
# What sendmail(8) takes on its command line, and no mail program reads as an option or a list.
_MAIL_ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~][A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{0,63}"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*",
    re.ASCII,
)
_LONGEST_MAIL_ADDRESS = 254
_TIME_OF_DAY = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)
_MIME_PATTERN = re.compile(r"[A-Za-z0-9*][\w.+*-]*/[\w.+*-]+|\*", re.ASCII)


def boolean(value: Any) -> bool:
    """Check for true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _bounded(check: Check, least: float, most: float | None, *, is_whole: bool = True) -> Check:
    """Return a check that has its bounds as attributes, and whether it is of whole numbers."""
    check.least, check.most, check.is_whole = least, most, is_whole  # type: ignore[attr-defined]
    return check


def whole(least: int, most: int | None = None) -> Check:
    """Return a check for a whole number, `least` or more, and `most` at most."""

    def check(value: Any) -> int:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number or value < least or (most is not None and value > most):
            span = f"{least} on" if most is None else f"{least} to {most}"
            raise ValueError(f"{value!r} is not a whole number from {span}")
        return int(value)

    return _bounded(check, least, most)


def number(least: float, most: float = float("inf")) -> Check:
    """Return a check for a number between `least` and `most`."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ValueError(f"{value!r} is not a number from {least:g} {f'to {most:g}' if most < 1e9 else 'on'}")
        return float(value)

    return _bounded(check, least, most if most < float("inf") else None, is_whole=False)


def whole_or_unlimited(least: int, unlimited: int) -> Check:
    """Return a check for a whole number from `least` on, or the word for none, which is the number `unlimited`."""

    def check(value: Any) -> int:
        if value == UNLIMITED_WORD:
            return unlimited
        try:
            return int(whole(least)(value))
        except ValueError as error:
            raise ValueError(f"{error}, nor {UNLIMITED_WORD!r}") from None

    check.unlimited = unlimited  # type: ignore[attr-defined]
    return _bounded(check, least, None)


def size(value: Any) -> int:
    """Check for bytes: a number of them, or with a unit, as `500 kB`, `2 MB` or `1.5 GiB`."""
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        return round(float(match[1]) * _UNITS[match[2].lower()])
    try:
        return int(whole(0)(value))
    except ValueError:
        raise ValueError(f"{value!r} is no number of bytes, such as 500000, '500 kB' or '2 MB'") from None


def window(value: Any) -> str:
    """Check for width and height of a window in pixels, as `1280x900`."""
    if not isinstance(value, str) or not _WINDOW.fullmatch(value):
        raise ValueError(f"{value!r} is no width and height in pixels, such as 1280x900")
    return value


def extension(value: Any) -> str:
    """Check for the extension of a file's name; return it in lower case, without its dot."""
    if not isinstance(value, str) or not _EXTENSION.fullmatch(value):
        raise ValueError(f"{value!r} is no extension, such as exe or tar.gz")
    return value.lower().removeprefix(".")


def path_pattern(value: Any) -> str:
    """Check for the path of URLs, in which `*` matches any characters and `?` one; a host may precede it."""
    if not isinstance(value, str) or "/" not in value or not _URL_PATTERN.fullmatch(value.lstrip("/") or "x"):
        raise ValueError(f"{value!r} is no path, such as /press/* or www.example.org/press/*")
    return value


def text(value: Any) -> str:
    """Check for a line of printable text."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"{value!r} is not a line of text")
    return value


def file_path(value: Any) -> str:
    """Check for the absolute path of a file: jobs run in folders of their own. Empty for none."""
    if value == "":
        return ""
    if not isinstance(value, str) or not value.startswith("/") or _NOT_IN_PATHS.search(value):
        raise ValueError(f"{value!r} is no absolute path")
    return value  # it may have any other character, as names of files do


def proxy(value: Any) -> str:
    """Check for the URL of a proxy, without a password: settings are in records. Empty for none."""
    address = "" if value == "" else text(value)
    if "@" in address:
        raise ValueError(
            "the URL of a proxy has a password here; set it as http_proxy and https_proxy of the environment"
        )
    match = _PROXY.fullmatch(address)
    if address and (match is None or int(match[1] or 80) > _HIGHEST_PORT):
        raise ValueError(f"{address!r} is no URL of a proxy, such as http://proxy.example.org:3128")
    return address


def address(value: Any) -> str:
    """Check for an IP address, IPv6 without brackets. Empty for none."""
    try:
        return "" if value == "" else str(ipaddress.ip_address(text(value)))
    except ValueError:
        raise ValueError(f"{value!r} is no IP address, such as 192.0.2.1 or 2001:db8::1") from None


def origin(value: Any) -> str:
    """Check for a host with or without a port, behind `https://` or `http://` or nothing; no pattern."""
    host = text(value)
    try:
        domain = domain_of(host if "://" in host else f"https://{host}")
    except UrlRefused as error:
        raise ValueError(str(error)) from None
    scheme, sign, rest = host.rpartition("://")
    if rest.lower() != domain or "*" in host:
        raise ValueError(f"{host!r} is no host such as www.example.org, or http://www.example.org")
    return f"{scheme.lower()}{sign}{domain}"


def one_of(*words: str) -> Check:
    """Return a check for one of a few words."""

    def check(value: Any) -> str:
        if value not in words:
            raise ValueError(f"{value!r} is none of {', '.join(words)}")
        return str(value)

    check.words = words  # type: ignore[attr-defined] # forms offer them
    return check


def list_of(check_one: Check) -> Check:
    """Return a check for a list that applies `check_one` to each element."""

    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{value!r} is not a list")
        values, faults = [], []
        for element in value:
            try:
                values.append(check_one(element))
            except ValueError as error:
                faults.append(str(error))
        if faults:
            raise ValueError("; ".join(faults))
        return tuple(values)

    check.element = check_one  # type: ignore[attr-defined]
    return check


def one_or_list_of(check_one: Check) -> Check:
    """Return a check for a list, in whose place one element may stand."""
    check_list = list_of(check_one)

    def check(value: Any) -> tuple[Any, ...]:
        return tuple(check_list([value] if isinstance(value, str) and value else value or []))

    check.element = check_one  # type: ignore[attr-defined]
    return check


def command_line(value: Any) -> tuple[str, ...]:
    """Check for a program with its arguments: a list, or one text that is split as a shell would. Empty for none."""
    try:
        words = shlex.split(value) if isinstance(value, str) else list_of(text)(value)
    except ValueError as error:
        raise ValueError(f"{value!r} is no program with its arguments: {error}") from None
    return tuple(text(word) for word in words)


def mail_address(value: Any) -> str:
    """Check for the address of a mailbox, without a name beside it."""
    if not isinstance(value, str) or len(value) > _LONGEST_MAIL_ADDRESS or not _MAIL_ADDRESS.fullmatch(value):
        raise ValueError(f"{value!r} is no mail address such as archive@example.org")
    return value


def sender(value: Any) -> str:
    """Check for the address of a mailbox. Empty for none."""
    return "" if value == "" else mail_address(value)


def web_address(value: Any) -> str:
    """Check for the URL that requests are sent to, which has no password before its host."""
    address = text(value)
    if "@" in address.partition("://")[2].partition("/")[0]:
        raise ValueError("the URL has a password before its host; requests are signed instead")
    return str(url(address))


def time_of_day(value: Any) -> str:
    """Check for a time of the day, or `never`."""
    if value != NEVER and (not isinstance(value, str) or not _TIME_OF_DAY.fullmatch(value)):
        raise ValueError(f"{value!r} is no time of the day such as 08:00, and not {NEVER!r}")
    return str(value)


def interval(value: Any) -> Interval:
    """Check for an interval such as `1 day`."""
    return value if isinstance(value, Interval) else Interval.parse(text(value))


def time(value: Any) -> datetime:
    """Check for a date and time, as TOML has it or as its text; local ones are CET."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        raise ValueError(f"{value!r} is not a date and time such as 2026-12-01T22:00:00")
    return value.replace(tzinfo=value.tzinfo or CET)


def url(value: Any) -> str:
    """Check for an http(s) URL; return its canonical form."""
    try:
        return canonical(text(value))
    except UrlRefused as error:
        raise ValueError(str(error)) from None


def server_address(value: Any) -> str:
    """Check for the address of a server, such as https://desk.example.org, or none; return it without a last slash."""
    if not text(value):
        return ""
    address = url(value)
    if "?" in address or "#" in value:
        raise ValueError(f"{value!r} is no address of a server, such as https://desk.example.org")
    return address.rstrip("/")


def feed_url(value: Any) -> str:
    """Check for an http(s) URL, or none; return its canonical form."""
    return url(value) if value else ""


def start_url(typed: str) -> str:
    """Return a URL that a person typed, validated, with `http://` if it has no scheme. Raises UsageError."""
    try:
        return url(typed if _SCHEME.match(typed) else f"http://{typed}")
    except ValueError as error:
        raise UsageError(str(error)) from None


def name(value: Any) -> str:
    """Check for a publication's name: it becomes part of refs and folder names."""
    if not isinstance(value, str) or not _NAME.fullmatch(value) or ".." in value or value.endswith(".lock"):
        raise ValueError(f"{value!r} is no name: up to 100 letters, digits and . _ - (it becomes part of a git ref)")
    return value


def network(value: Any) -> str:
    """Check for an IP address, a network such as 10.0.0.0/8, or `unix` for whoever may open a server's socket."""
    if value == UNIX:
        return UNIX
    try:
        return str(ipaddress.ip_network(value if isinstance(value, str) else ""))
    except ValueError:
        known = "no IP address or network, such as 127.0.0.1 or 10.0.0.0/8"
        raise ValueError(f"{value!r} is {known}, and not {UNIX!r}") from None


def listen_address(value: Any) -> str:
    """Check for an address of a listener: a port of this machine, HOST:PORT or unix:PATH. Empty for none."""
    address = "" if value == "" else str(value) if type(value) is int else text(value)
    match = _LISTEN.fullmatch(address)
    is_path = address.startswith("unix:/")
    if address and not is_path and (match is None or int(match[1]) > _HIGHEST_PORT):
        raise ValueError(f"{address!r} is no address to listen at, such as 9464, 127.0.0.1:9464 or unix:/run/webarc/m")
    return address


def function(value: Any) -> str:
    """Check for the name of a function in a module, `package.module:function`."""
    if not isinstance(value, str) or not _FUNCTION.fullmatch(value):
        raise ValueError(f"{value!r} is no function such as package.module:function")
    return value


def url_pattern(value: Any) -> str:
    """Check for a host, or a host and a path, in which `*` matches any characters and `?` one, without scheme."""
    if isinstance(value, str) and value.startswith("/"):
        raise ValueError(f"{value!r} has no host; write it before the path, such as www.example.org{value}")
    if not isinstance(value, str) or not _URL_PATTERN.fullmatch(value):
        raise ValueError(f"{value!r} is no host or part of one, such as dip.example.org or www.example.org/old/*")
    return value


def session_parameter(value: Any) -> str:
    """Check for the name of a parameter with a session id, which may end in `*`, or `(s)` for segments `(S(…))`."""
    if not isinstance(value, str) or not urls.SESSION_PARAMETER.fullmatch(value):
        raise ValueError(f"{value!r} is no name of a parameter, such as jsessionid or aspsessionid*")
    return value.lower()


def chance_parameter(value: Any) -> str:
    """Check for the name of a parameter whose value time or chance made, such as `_`."""
    if not isinstance(value, str) or not urls.CHANCE_PARAMETER.fullmatch(value):
        raise ValueError(f"{value!r} is no name of a parameter, such as _ or nocache")
    return value.lower()


def mime_pattern(value: Any) -> str:
    """Check for a MIME type, or a pattern of one with `*`."""
    if not isinstance(value, str) or not _MIME_PATTERN.fullmatch(value):
        raise ValueError(f"{value!r} is no MIME type or pattern such as text/html or image/*")
    return value.lower()


# == fields, pure =====================================================================================================


_T = TypeVar("_T")


def setting(check: Check, default: Any, explain: str, key: str = "", words: int | None = None) -> Any:
    """Return a field; `key` is its name in TOML where that is a word of Python.

    `words`: people may also write it in words; the number is the one that `unlimited` means.
    """
    metadata = {"check": check, "help": explain, **({"key": key} if key else {})}
    return field(default=default, metadata=metadata if words is None else {**metadata, "words": words})


def tables(kind: type[_T]) -> Check:
    """Return a check for an array of tables, each the settings of a dataclass whose first field is required."""

    def check(value: Any) -> tuple[_T, ...]:
        first = dataclasses.fields(kind)[0].name  # type: ignore[arg-type] # it is a dataclass
        if not isinstance(value, list) or not all(isinstance(table, dict) and table.get(first) for table in value):
            raise ValueError(f"write it with two brackets, [[…]], and `{first} = …` in each")
        faults: list[str] = []
        settings = tuple(read_table(kind, table, "", faults) for table in value)
        if faults:
            raise ValueError("; ".join(faults))
        return settings

    check.table = kind  # type: ignore[attr-defined]
    return check


def required(check: Check) -> Any:
    """Return a field without a default."""
    return field(metadata={"check": check, "help": ""})


def read_table(kind: type[_T], table: Any, where: str, faults: list[str], base: _T | None = None) -> _T:
    """Return a settings dataclass from a table over `base`; a fault is added to `faults`, and the default used."""
    known = (field for field in dataclasses.fields(kind) if "check" in field.metadata)  # type: ignore[arg-type]
    fields = {field.metadata.get("key", field.name): field for field in known}
    values: dict[str, Any] = {}
    for key, value in as_table(table, where, faults).items():
        label = f"{where}.{key}" if where else key
        if key not in fields:
            faults.append(f"{label}: there is no such setting{_nearest(key, fields)}")
            continue
        if value == "" == fields[key].default:
            values[fields[key].name] = ""  # the default, written out
            continue
        try:
            values[fields[key].name] = fields[key].metadata["check"](value)
        except ValueError as error:
            faults.append(f"{label}: {error}")
    return dataclasses.replace(base, **values) if base is not None else kind(**values)  # type: ignore[type-var]


def as_table(value: Any, where: str, faults: list[str]) -> dict[str, Any]:
    """Return a table; a fault is added for anything else, and the table is empty."""
    if isinstance(value, dict):
        return value
    faults.append(f"{where}: is not a table")
    return {}


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(key, known, 1)
    return f"; did you mean {close[0]}?" if close else ""
