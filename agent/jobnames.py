"""What a job's folder is called: `<YYYYmmddTHHMMSS>-<publication>` (DESIGN.md section 2). Pure.

An import is of a publication too, and its name has a `+` behind that, which no publication's name has, and what tells
it from others.
"""

from __future__ import annotations


def kind_of(job: str) -> str:
    """What stands behind the time: all jobs of one publication's crawls, or of one import, share it."""
    return job.partition("-")[2]


def publication_of(job: str) -> str:
    """The publication whose lock a job holds while a process is at work on it, whether it crawls or imports."""
    return kind_of(job).partition("+")[0]
