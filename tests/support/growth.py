"""Whether work grows linearly with its size, on a machine that others use as well."""

from __future__ import annotations

from collections.abc import Callable

#: How many times larger the large work is. Quadratic work takes the square of it.
_FACTOR = 8
_TRIES = 6


def is_linear(seconds: Callable[[int], float], size: int) -> bool:
    """Return whether `seconds` of eight times `size` are nearer to eight times than to sixty-four times as many.

    Other work only ever adds seconds, so the least of several rounds decides; rounds end once they show it.
    """
    small = large = float("inf")
    for _ in range(_TRIES):
        small, large = min(small, seconds(size)), min(large, seconds(_FACTOR * size))
        if large < 2.5 * _FACTOR * small + 0.05:
            return True
    return False
