"""Names of jobs' folders, `<YYYYmmddTHHMMSS>-<publication>`, and of publications without a given name. Pure.

An import's name is `<time>-<publication>+<digest>`; `+` cannot occur in a publication's name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+|\.\.+", re.ASCII)
_LONGEST_SLUG = 60


def kind_of(job: str) -> str:
    """Return the part after the time; all crawls of a publication, or all jobs of one import, share it."""
    return job.partition("-")[2]


def publication_of(job: str) -> str:
    """Return the publication whose lock the process of a job holds, for crawls and imports."""
    return kind_of(job).partition("+")[0]


def is_import(job: str) -> bool:
    """Return whether a job, or the kind of a job, is an import."""
    return "+" in job


def command_line_name(urls: Sequence[str]) -> str:
    """Return the publication name of a crawl given on the command line, made from its start URLs."""
    digest = hashlib.sha256("\n".join(sorted(urls)).encode()).hexdigest()[:8]
    return named_after(urls[0].partition("://")[2], digest, "crawl")


def named_after(text: str, digest: str, otherwise: str) -> str:
    """Return a publication name made from `text` (else `otherwise`) and `digest`, which makes it unique."""
    slug = _NOT_IN_A_NAME.sub("-", text).strip("-.")[:_LONGEST_SLUG].rstrip("-.")
    return f"{slug or otherwise}-{digest}"
