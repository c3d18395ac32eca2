"""`tests/support/growth.py` tells linear work from quadratic, also when other work comes between."""

from __future__ import annotations

import itertools

import pytest

from tests.support.growth import is_linear

pytestmark = pytest.mark.pure


def test_linear_work_beside_other_work_is_linear() -> None:
    noise = itertools.cycle([3.0, 0.0, 5.0])
    assert is_linear(lambda size: size * 0.001 + next(noise), 1_000)


def test_quadratic_work_is_not() -> None:
    assert not is_linear(lambda size: size * size * 1e-6, 1_000)
