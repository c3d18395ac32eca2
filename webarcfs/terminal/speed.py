"""The speed of long work and the time left, computed from the last half minute. Pure."""

from __future__ import annotations

from collections import deque

#: Seconds over which the speed is averaged: long enough to smooth one slow page, short enough to show a slower server.
WINDOW = 30.0
#: Seconds of work before a speed is known.
LEAST = 1.0
# Within so many seconds only the last call is stored: a crawl does thousands of things in a second.
_APART = 0.1
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_SIZES = ("bytes", "kB", "MB", "GB", "TB")


class Speed:
    """The speed of one kind of work. Call `note` whenever something was done, with a clock in seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, now: float, done: int) -> None:
        """Record the total `done` at the time `now`. A smaller total than before lowers all earlier totals as well."""
        if self._seen and done < self._seen[-1][1]:
            back = self._seen[-1][1] - done
            self._seen = deque((time, max(0, before - back)) for time, before in self._seen)
        if len(self._seen) > 2 and now - self._seen[-2][0] < _APART:
            self._seen.pop()
        self._seen.append((now, done))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()

    @property
    def a_second(self) -> float | None:
        """The work done per second; None before it is known."""
        if not self._seen:
            return None
        (begin, before), (end, done) = self._seen[0], self._seen[-1]
        return (done - before) / (end - begin) if end - begin >= LEAST else None

    def left(self, known: int) -> float | None:
        """Return the seconds until `known` is done at this speed; None before they are known."""
        speed = self.a_second
        return max(0, known - self._seen[-1][1]) / speed if speed else None


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


def _size(count: float) -> str:
    power = 0
    while count >= 1000 and power < len(_SIZES) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.{1 if power else 0}f} {_SIZES[power]}"
