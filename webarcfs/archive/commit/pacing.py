"""When the next commit of additions is due: a commit's own cost stretches the interval. Pure.

Each commit rewrites the trees above the ARCs, 2 MB for a folder of 60,000 ARCs, whether it has one addition or
thousands. So after an expensive commit, the next waits until its additions weigh as much as those trees, or for long.
"""

from __future__ import annotations

from webarcfs.archive.model.committed import Cost

#: The longest that an interval is stretched, in seconds.
LONGEST = 60.0
#: Bytes that one addition itself adds to git: its blob, its ARC's tree, its line in the commit's message.
OWN_BYTES = 300
#: Trees of this many bytes stretch the interval to the limit.
DEAR = 1 << 20
#: Share of the time for commits of one domain.
SHARE = 0.2


def next_commit(interval: float, last: Cost, ended: float, oldest: float, waiting: int) -> float:
    """Return the time of the next commit; call again when more additions came, which may make it earlier.

    `last` is the cost of the domain's last commit, and `ended` its time; `oldest` is the time at which the first of the
    `waiting` additions was confirmed. All times are of one clock, in seconds.
    """
    rested = ended + last.seconds / SHARE
    if waiting * OWN_BYTES < last.shared_bytes:
        rested = max(rested, ended + LONGEST * min(1.0, last.shared_bytes / DEAR))
    soonest = oldest + interval
    return max(soonest, min(rested, soonest + LONGEST))
