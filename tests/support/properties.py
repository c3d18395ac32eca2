"""How many examples the tests of properties try: in CI a fifth, and all of them in `make soak ARGS=properties`."""

from __future__ import annotations

import os

IS_LONG = "PROPERTIES" in os.environ


def examples(count: int) -> int:
    """Of so many examples, those to try now."""
    return count if IS_LONG else max(count // 5, 3)
