"""The languages of the pages: which one a person gets, its texts, and dates, numbers and sizes as it writes them.

The texts are English msgids; other languages are `locale/<language>/webarcfs.po`, read when a worker starts. Times are
shown in CET, the archive's clock, and say so.
"""

from __future__ import annotations

import gettext
import io
from datetime import date, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from babel.core import Locale, negotiate_locale
from babel.dates import format_date, format_time, format_timedelta, get_day_names, get_month_names
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from babel.units import format_unit

from webarcfs.archive.model.metadata import CET

LANGUAGES = ("en", "de")
_LOCALES = Path(__file__).parent / "locale"
#: English as archives on this side of the Atlantic write it: the day before the month.
_FORMATS = {"en": "en_GB", "de": "de_DE"}
_DAYS = {"en": "d MMM y", "de": "d. MMM y"}
_MONTHS = {"en": "MMMM y", "de": "MMMM y"}
_CLOCKS = {"en": "CET", "de": "Uhr MEZ"}
_UNITS = ("B", "kB", "MB", "GB", "TB")
#: Most languages of a header that are looked at.
_MOST = 20
#: Most characters of it that are looked at.
_LONGEST = 1_000
#: Dates that are kept as text: those of a few long lists.
_KEPT = 4_096


def msgid(text: str) -> str:
    """Return a text as it is, and mark it as one that is translated where it is shown."""
    return text


def negotiated(asked: str, accepted: str) -> str:
    """Return the language of an answer: the one that is asked for, else the best of Accept-Language, else English."""
    return asked if asked in LANGUAGES else _best(accepted[:_LONGEST])


@lru_cache(maxsize=256)  # browsers differ little in what they accept
def _best(accepted: str) -> str:
    weighted = sorted(_weighted(accepted), key=lambda pair: -pair[1])
    return negotiate_locale([name for name, weight in weighted if weight > 0], LANGUAGES) or LANGUAGES[0]


def _weighted(accepted: str) -> list[tuple[str, float]]:
    """Return the languages of a header with their weights (RFC 9110 section 12.5.4); what is broken counts nothing."""
    languages = []
    for part in accepted.split(",")[:_MOST]:
        name, _, rest = part.strip().partition(";")
        try:
            weight = float(rest.strip().removeprefix("q=")) if rest else 1.0
        except ValueError:
            weight = 0.0
        if 0 <= weight <= 1 and name.strip().replace("-", "").isalnum():
            languages.append((name.strip().partition("-")[0].lower(), weight))
    return languages


@lru_cache(maxsize=len(LANGUAGES))
def translations(language: str) -> gettext.NullTranslations:
    """Return the texts of a language; of English, the msgids."""
    path = _LOCALES / language / "webarcfs.po"
    if not path.exists():
        return gettext.NullTranslations()
    compiled = io.BytesIO()
    with path.open("rb") as file:
        write_mo(compiled, read_po(file, language))
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def translate(text: str, language: str) -> str:
    """Return a text of a view in a language, where it is one of ours; any other text as it is.

    It is for values, which others may have written: what comes back is plain text that templates escape, whereas their
    own `_()` returns markup and takes `%` for a place to fill.
    """
    return translations(language).gettext(text) if text else ""


# -- dates -------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=_KEPT)
def day(time: datetime, language: str) -> str:
    """Return a date: `2 Aug 2005`, `2. Aug. 2005`."""
    return format_date(time.astimezone(CET), _DAYS[language], locale=_FORMATS[language])


@lru_cache(maxsize=_KEPT)
def moment(time: datetime, language: str) -> str:
    """Return a date with its time: `2 Aug 2005, 03:00 CET`, `2. Aug. 2005, 03:00 Uhr MEZ`."""
    own = time.astimezone(CET)
    clock = format_time(own, "HH:mm", tzinfo=CET, locale=_FORMATS[language])
    return f"{day(own, language)}, {clock} {_CLOCKS[language]}"


def month(year: int, number: int, language: str) -> str:
    """Return the name of a month with its year: `August 2005`."""
    return format_date(date(year, number, 1), _MONTHS[language], locale=_FORMATS[language])


@lru_cache(maxsize=len(LANGUAGES))
def months(language: str) -> tuple[str, ...]:
    """Return the short names of the months, from January on."""
    names = get_month_names("abbreviated", "stand-alone", _FORMATS[language])
    return tuple(names[at][:3] for at in range(1, 13))


@lru_cache(maxsize=len(LANGUAGES))
def weekdays(language: str) -> tuple[str, ...]:
    """Return the shortest names of the days, from Monday on, in two letters where one would not distinguish them."""
    names = get_day_names("short", "stand-alone", _FORMATS[language])
    return tuple(names[at][:2] for at in range(7))


# -- numbers and names -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=_KEPT)
def number(value: int, language: str) -> str:
    """Return a number with its separators."""
    return str(format_decimal(value, locale=_FORMATS[language]))


@lru_cache(maxsize=_KEPT)
def per_cent(share: float, decimals: int, language: str) -> str:
    """Return a share from 0 to 1 in per cent: `12.5 %`, `12,5 %`."""
    pattern = f"#,##0.{'0' * decimals}" if decimals else "#,##0"
    return f"{format_decimal(100 * share, pattern, locale=_FORMATS[language])} %"


@lru_cache(maxsize=_KEPT)
def size(value: int, language: str) -> str:
    """Return a size in bytes as people read it: `3.2 MB`."""
    amount, unit = float(value), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    pattern = "#,##0" if unit == 0 or amount >= 100 else "#,##0.0"
    return f"{format_decimal(amount, pattern, locale=_FORMATS[language])} {_UNITS[unit]}"


def duration(count: int, unit: str, language: str) -> str:
    """Return a length of time by its unit: `2 weeks`, `2 Wochen`."""
    return str(format_unit(count, f"duration-{unit}", "long", locale=_FORMATS[language]))


@lru_cache(maxsize=_KEPT)
def time_taken(seconds: int, language: str) -> str:
    """Return a time that something took: `3 hrs`, `45 sec`."""
    return format_timedelta(timedelta(seconds=seconds), threshold=2.0, format="short", locale=_FORMATS[language])


def name_of_language(code: str, language: str) -> str:
    """Return the name of a language by its code: `German` for `de`; the code itself where it has no name."""
    return str(Locale.parse(_FORMATS[language]).languages.get(code.lower(), code))
