"""Spans of time as people write them: `1 day`, `2 weeks`, `10 minutes`. Pure (/Cr-1.2/)."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

_FORM = re.compile(r"\s*(\d{1,6})\s*(second|minute|hour|day|week|month|year)s?\s*", re.IGNORECASE)
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
        match = _FORM.fullmatch(text)
        if match is None or int(match[1]) == 0:
            raise ValueError(f"{text!r} is no interval; write for instance '1 day', '2 weeks' or '30 minutes'")
        interval = cls(int(match[1]), match[2].lower())
        if interval.seconds > _LONGEST.total_seconds():
            raise ValueError(f"{text!r} is longer than a hundred years")
        return interval

    @property
    def seconds(self) -> float:
        """Its length in seconds; a month has 30 days, a year 365."""
        if self.unit in _DAYS:
            return timedelta(days=_DAYS[self.unit] * self.count).total_seconds()
        return timedelta(**{f"{self.unit}s": self.count}).total_seconds()

    def after(self, time: datetime) -> datetime:
        """Return the time one interval after `time`; months and years keep the day, or take the month's last."""
        if self.unit not in _DAYS:
            return time + timedelta(seconds=self.seconds)
        months = time.year * 12 + time.month - 1 + self.count * (12 if self.unit == "year" else 1)
        year, month = divmod(months, 12)
        day = min(time.day, calendar.monthrange(year, month + 1)[1])
        return time.replace(year=year, month=month + 1, day=day)
