"""When the next commit of additions is due: a commit's own cost stretches the interval. Pure.

Each commit writes the trees above the ARCs anew, 2 MB for a folder of 60,000 ARCs, whether it brings one addition or
thousands. So after a dear one, the next waits until it brings about as much as those trees cost, or has waited long.
"""

from __future__ import annotations

from webarcfs.archive.model.committed import Cost

#: The longest that an interval is stretched, in seconds.
LONGEST = 60.0
#: What one addition writes to git for itself, in bytes: its blob, its ARC's tree, its line in the commit's message.
OWN_BYTES = 300
#: Trees of this many bytes stretch the interval as far as it goes.
DEAR = 1 << 20
#: Share of the time that may go into commits of one domain.
SHARE = 0.2


def next_commit(interval: float, last: Cost, ended: float, oldest: float, waiting: int) -> float:
    """The time at which to commit; ask again when more additions came, which may make it due earlier.

    `last` is what the domain's last commit cost, and `ended` when that was; `oldest` is when the first of the `waiting`
    additions was confirmed. All times are of one clock, in seconds.
    """
    rested = ended + last.seconds / SHARE
    if waiting * OWN_BYTES < last.shared_bytes:
        rested = max(rested, ended + LONGEST * min(1.0, last.shared_bytes / DEAR))
    soonest = oldest + interval
    return max(soonest, min(rested, soonest + LONGEST))
