"""What an export did: the counts of its summary, and how it tells its progress. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: Called with what is done, how much of it, and how much there is: ("export", 17, 400).
Progress = Callable[[str, int, int], None]
#: Whether someone asked for the end.
Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What was exported. `documents` are those of all snapshots: one that is in three snapshots counts three times.

    `records` are those of the format, if it has records. `bytes` and `files` are those of the result. `left_out` has
    reason → number, for what the format cannot tell or what could not be read: never silently.
    """

    snapshots: int = 0
    documents: int = 0
    records: int = 0
    bytes: int = 0
    files: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)

    def as_fields(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self) | {"left_out": dict(self.left_out)}
