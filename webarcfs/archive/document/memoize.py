"""Remembers what functions of small bytes found last, within bounds of memory. Pure but for that, safe for any thread.

The data nodes of one addition are judged as they are written and as a whole, claimed, merged and committed, by several
threads; what one of these steps has found, the next ones need not find again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from webarcfs.archive.system.cache import Cache

#: Bytes of arguments up to which a result is remembered.
SMALL = 8 << 10
#: Bytes that one function may hold, each result counted as if it were found for as many.
HELD = 8 << 20

R = TypeVar("R")


class Remembered(Generic[R]):
    """A function of bytes alone, the same each time; `weigh` says how many bytes a result takes."""

    def __init__(self, function: Callable[..., R], weigh: Callable[[R], int]) -> None:
        self._function = function
        self._results: Cache[tuple[bytes, ...], R] = Cache(HELD, lambda result: SMALL + weigh(result))
        self.__doc__ = function.__doc__

    @property
    def weight(self) -> int:
        """Bytes that are held, at most."""
        return self._results.weight

    def __call__(self, *arguments: bytes) -> R:
        """What the function returns. What it raises is not remembered."""
        if sum(map(len, arguments)) > SMALL:
            return self._function(*arguments)
        return self._results.get(arguments, lambda: self._function(*arguments))

    def know(self, result: R, *arguments: bytes) -> None:
        """What the function would return, from who has found it in another way."""
        if sum(map(len, arguments)) <= SMALL:
            self._results.get(arguments, lambda: result)


def remembered(weigh: Callable[[Any], int]) -> Callable[[Callable[..., R]], Remembered[R]]:
    """The same function, remembered."""
    return lambda function: Remembered(function, weigh)


def weight_of_names(names: tuple[str, ...]) -> int:
    """Bytes that names take."""
    return sum(map(sys.getsizeof, names))
