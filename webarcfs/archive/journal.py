"""The journal of one mount: what was confirmed and is not in git yet (DESIGN.md section 5, "Durability")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webarcfs.archive.additions import Addition
from webarcfs.archive.committing import Committed
from webarcfs.archive.directory import Archive


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes of a file to be added: `data`, or the first `size` bytes of the descriptor `fd` of a draft.

    A `final` draft is taken as it is, and must not be written any more; one that is not is copied. The descriptor
    stays the caller's.
    """

    size: int
    data: bytes | None = None
    fd: int = -1
    final: bool = True


@dataclass(frozen=True, slots=True)
class Ticket:
    """A confirmed addition, and where it stands: its log and its number there."""

    log: str
    number: int
    addition: Addition


class Journal:
    """The logs of one mount's process; its methods may be called by any thread."""

    @classmethod
    def open(cls, archive: Archive) -> Journal:
        """A new journal of this process. Raises OSError when none can be made."""
        raise NotImplementedError

    def draft(self) -> int:
        """A descriptor of a new file without a name, on the journal's disk. Raises OSError."""
        raise NotImplementedError

    def confirm(self, addition: Addition, body: Body | None = None) -> Ticket:
        """Make an addition durable: it is when this returns. The caller holds the domain's lock, shared.

        Raises Exists when another pending addition of this version, of any mount, has the name; OSError when it could
        not be written, and then nothing is left of it.
        """
        raise NotImplementedError

    def read_blob(self, blob: str) -> bytes | int | None:
        """A pending body: its bytes, or a descriptor of a large one that the caller closes; None once git has it."""
        raise NotImplementedError

    def pending(self, domain: str | None = None) -> Sequence[Ticket]:
        """What was confirmed here and is not released yet, in order."""
        raise NotImplementedError

    def release(self, committed: Committed) -> Sequence[Ticket]:
        """Forget what is in git now, and give its disk space back; returns what was forgotten."""
        raise NotImplementedError

    def close(self) -> None:
        """End it. What is not committed stays for the next mount or agent; a journal with nothing pending goes."""
        raise NotImplementedError
