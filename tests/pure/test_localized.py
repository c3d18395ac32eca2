"""Values of settings in the language of a page, and what people type in either language."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.desk import localized
from webarcfs.archive.config import settings, validators
from webarcfs.archive.config.settings import UNLIMITED
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.metadata import CET
from webarcfs.web import language as languages

pytestmark = pytest.mark.pure
LANGUAGES = st.sampled_from(languages.LANGUAGES)
#: Tables of settings that forms have.
KINDS = (
    settings.CrawlSettings, settings.Publication, settings.MountSettings, settings.BackupSettings,
    settings.NotifySettings,
)  # fmt: skip
DEPTH = validators.whole_or_unlimited(0, UNLIMITED)


@pytest.mark.parametrize(
    ("typed", "interval"),
    [
        ("weekly", "1 week"), ("Wöchentlich", "1 week"), ("woechentlich", "1 week"), ("alle 2 Wochen", "2 weeks"),
        ("jeden Monat", "1 month"), ("1 Woche", "1 week"), ("3 Monate", "3 months"), ("vierteljährlich", "3 months"),
        ("halbjährlich", "6 months"), ("every day", "1 day"), ("10 Tagen", "10 days"), ("jährlich", "1 year"),
        ("2 Stunden", "2 hours"), ("30 Minuten", "30 minutes"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("language", languages.LANGUAGES)
def test_intervals_are_taken_in_both_languages(typed: str, interval: str, language: str) -> None:
    assert localized.value_of(validators.interval, typed, language) == interval


@pytest.mark.parametrize(
    ("typed", "language", "size"),
    [
        ("1,5 GB", "de", 1_500_000_000), ("1,5 GB", "en", 1_500_000_000), ("1.5 GB", "de", 1_500_000_000),
        ("500 kB", "en", 500_000), ("1.500 MB", "de", 1_500_000_000), ("1.500 MB", "en", 1_500_000),
        ("1,500 MB", "en", 1_500_000_000), ("0,500 MB", "en", 500_000), ("12345", "de", 12345), ("12.345", "de", 12345),
        ("1.234.567 Byte", "de", 1_234_567), ("2 TB", "en", 2 * 10**12), ("1 GiB", "de", 1 << 30), ("0", "de", 0),
    ],
)  # fmt: skip
def test_sizes_are_taken_with_either_sign(typed: str, language: str, size: int) -> None:
    assert validators.size(localized.value_of(validators.size, typed, language)) == size


@pytest.mark.parametrize(
    ("typed", "time"),
    [
        ("2026-12-01T22:00", "2026-12-01T22:00:00"), ("2026-12-01 22:00:07", "2026-12-01T22:00:07"),
        ("2026-12-01", "2026-12-01T00:00:00"), ("1.12.2026", "2026-12-01T00:00:00"),
        ("1.12.2026 22:00", "2026-12-01T22:00:00"), ("1. Dez. 2026, 22:00 Uhr MEZ", "2026-12-01T22:00:00"),
        ("1 Dec 2026, 22:00 CET", "2026-12-01T22:00:00"), ("3 März 2026", "2026-03-03T00:00:00"),
        ("2026-12-01T21:00:00+00:00", "2026-12-01T22:00:00"),
    ],
)  # fmt: skip
def test_times_are_taken_as_pickers_and_people_write_them(typed: str, time: str) -> None:
    assert localized.read_time(typed) == datetime.fromisoformat(time).replace(tzinfo=CET)


@pytest.mark.parametrize(
    "typed", ["", "yesterday", "2026-13-01", "31.2.2026", "1 Foo 2026", "2026-12-01T25:00", "1.1."]
)
def test_what_is_no_time_is_none(typed: str) -> None:
    with pytest.raises(ValueError):  # the words are of the caller
        localized.read_time(typed)


@given(st.builds(Interval, st.integers(1, 500), st.sampled_from(["hour", "day", "week", "month"])), LANGUAGES)
def test_an_interval_that_is_shown_is_read_as_itself(interval: Interval, language: str) -> None:
    shown = localized.text_of(validators.interval, interval, language)
    assert Interval.parse(localized.value_of(validators.interval, shown, language)) == interval


@given(st.integers(0, 10**12), LANGUAGES)
def test_a_size_that_is_shown_is_read_as_itself(size: int, language: str) -> None:
    shown = localized.text_of(validators.size, size, language)
    assert validators.size(localized.value_of(validators.size, shown, language)) == size


@given(st.integers(0, 10**6).map(lambda number: number / 1000), LANGUAGES)
def test_a_number_that_is_shown_is_read_as_itself(number: float, language: str) -> None:
    check = validators.number(0, 10**6)
    shown = localized.number_text(number, language)
    assert check(localized.value_of(check, shown, language)) == number


@given(st.text(max_size=200), LANGUAGES)
def test_whatever_is_typed_is_taken_or_explained(typed: str, language: str) -> None:
    for kind in KINDS:
        for setting in dataclasses.fields(kind):
            if "check" not in setting.metadata:
                continue
            check: Any = setting.metadata["check"]
            try:
                check(localized.value_of(check, typed, language))
            except ValueError as error:
                assert str(error).startswith(("“", "„")), "it repeats what was typed, and says what to type"
                assert "_" not in setting.name or setting.name not in str(error) or setting.name in typed


@pytest.mark.parametrize("language", languages.LANGUAGES)
def test_each_table_has_an_example_of_a_line_that_is_taken(language: str) -> None:
    checks = [setting.metadata["check"] for setting in dataclasses.fields(settings.Publication) if setting.metadata]
    tables = [check for check in checks if hasattr(check, "table")]
    assert settings.Exclusion in {check.table for check in tables}
    for check in tables:
        example = localized.what_to_type(check, language).partition(": ")[2]
        line = "www.example.org/old/* # moved" if check.table is settings.Exclusion else example
        assert line and len(check(localized.value_of(check, line, language))) == 1, check.table


def test_no_bound_is_a_word_in_the_language_of_the_page() -> None:
    assert localized.text_of(DEPTH, UNLIMITED, "de") == "unbegrenzt"
    assert localized.value_of(DEPTH, "unbegrenzt", "de") == "unlimited" == localized.value_of(DEPTH, "Unlimited", "en")
    assert localized.value_of(DEPTH, "5", "de") == 5
