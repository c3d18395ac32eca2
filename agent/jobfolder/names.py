"""Names of jobs' folders, `<YYYYmmddTHHMMSS>-<publication>`, and of publications that got none. Pure.

An import's name is `<time>-<publication>+<digest>`; `+` cannot occur in a publication's name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+|\.\.+", re.ASCII)
_LONGEST_SLUG = 60


def kind_of(job: str) -> str:
    """The part behind the time, which all crawls of a publication, or all jobs of one import, share."""
    return job.partition("-")[2]


def publication_of(job: str) -> str:
    """The publication whose lock a job holds while a process is at work on it, whether it crawls or imports."""
    return kind_of(job).partition("+")[0]


def is_import(job: str) -> bool:
    """Whether a job (or the kind of one) is an import and no crawl."""
    return "+" in job


def command_line_name(urls: Sequence[str]) -> str:
    """The name of the publication that a crawl given on the command line is: after its start URLs."""
    digest = hashlib.sha256("\n".join(sorted(urls)).encode()).hexdigest()[:8]
    return named_after(urls[0].partition("://")[2], digest, "crawl")


def named_after(text: str, digest: str, otherwise: str) -> str:
    """A publication's name that says what `text` does, as far as a name can; `digest` tells it from others."""
    slug = _NOT_IN_A_NAME.sub("-", text).strip("-.")[:_LONGEST_SLUG].rstrip("-.")
    return f"{slug or otherwise}-{digest}"
