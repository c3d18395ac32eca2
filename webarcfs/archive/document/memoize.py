"""Caches the results of functions of small bytes, within bounds of memory. Otherwise pure; safe for any thread.

The data nodes of one addition are checked as they are written and as a whole, claimed, merged and committed, by several
threads; each step can use the results of those before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from webarcfs.archive.system.cache import Cache

#: Bytes of arguments up to which a result is remembered.
SMALL = 8 << 10
#: Capacity of one function's cache in bytes; each result also counts as much as the largest arguments.
HELD = 8 << 20

R = TypeVar("R")


class Remembered(Generic[R]):
    """A deterministic function of bytes, with a cache; `weigh` returns the bytes that a result takes."""

    def __init__(self, function: Callable[..., R], weigh: Callable[[R], int]) -> None:
        self._function = function
        self._results: Cache[tuple[bytes, ...], R] = Cache(HELD, lambda result: SMALL + weigh(result))
        self.__doc__ = function.__doc__

    @property
    def weight(self) -> int:
        """Upper bound of the bytes in the cache."""
        return self._results.weight

    def __call__(self, *arguments: bytes) -> R:
        """Return the function's result. Errors are not cached."""
        if sum(map(len, arguments)) > SMALL:
            return self._function(*arguments)
        return self._results.get(arguments, lambda: self._function(*arguments))

    def know(self, result: R, *arguments: bytes) -> None:
        """Add a result that the caller has found in another way."""
        if sum(map(len, arguments)) <= SMALL:
            self._results.get(arguments, lambda: result)


def remembered(weigh: Callable[[Any], int]) -> Callable[[Callable[..., R]], Remembered[R]]:
    """Decorate a function with a cache."""
    return lambda function: Remembered(function, weigh)


def weight_of_names(names: tuple[str, ...]) -> int:
    """Return the bytes that names take."""
    return sum(map(sys.getsizeof, names))
