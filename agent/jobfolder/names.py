"""Names of jobs' folders, `<YYYYmmddTHHMMSS>-<publication>`, and of publications without a given name. Pure.

An import's name is `<time>-<publication>+<digest>`; if its files hold several crawls, each of these is a job with a
number, `<time>-<publication>+<digest>.0001`, in the folder of the import. The name of a crawl beside the schedule is
`<time>-<publication>+occasion`; `+` cannot occur in a publication's name. A step of a snapshot has a folder there, too,
`step-<record>-<step>`: it is no job of a publication.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+|\.\.+", re.ASCII)
_LONGEST_SLUG = 60
#: What the kind of a crawl beside the schedule ends in: it is no run of its publication.
OCCASION = "+occasion"
_STEP = "step-"
_CRAWL_OF_IMPORT = re.compile(r"(\+[0-9a-z]+)\.\d{4,}\Z", re.ASCII)


def kind_of(job: str) -> str:
    """Return the part after the time; all crawls of a publication, or all jobs of one import, share it.

    Empty for the folder of a step.
    """
    return "" if is_step(job) else job.partition("-")[2]


def publication_of(job: str) -> str:
    """Return the publication whose lock the process of a job holds, for crawls and imports."""
    return kind_of(job).partition("+")[0]


def is_import(job: str) -> bool:
    """Return whether a job, or the kind of a job, is an import."""
    return "+" in job and not is_occasion(job)


def crawl_of_import(folder: str, number: int, crawls: int) -> str:
    """Return the name of the job that is one of the `crawls` of an import, counted from 1."""
    return folder if crawls == 1 else f"{folder}.{number:04}"


def folder_of(job: str) -> str:
    """Return the name of the folder in which a job works."""
    return _CRAWL_OF_IMPORT.sub(r"\1", job)


def is_occasion(job: str) -> bool:
    """Return whether a job, or the kind of a job, is a crawl beside the schedule."""
    return job.endswith(OCCASION)


def is_step(folder: str) -> bool:
    """Return whether a folder is that of a step, also while it is being removed."""
    return folder.lstrip(".").startswith(_STEP)


def step_folder(record: str, step: str) -> str:
    """Return the name of the folder of a step of a record."""
    return f"{_STEP}{record}-{step}"


def step_of(folder: str) -> tuple[str, str] | None:
    """Return record and step of a step's folder; None for another name."""
    record, _, step = folder.removeprefix(_STEP).rpartition("-")
    return (record, step) if folder.startswith(_STEP) and record and step else None


def command_line_name(urls: Sequence[str]) -> str:
    """Return the publication name of a crawl given on the command line, made from its start URLs."""
    digest = hashlib.sha256("\n".join(sorted(urls)).encode()).hexdigest()[:8]
    return named_after(urls[0].partition("://")[2], digest, "crawl")


def named_after(text: str, digest: str, otherwise: str) -> str:
    """Return a publication name made from `text` (else `otherwise`) and `digest`, which makes it unique."""
    slug = _NOT_IN_A_NAME.sub("-", text).strip("-.")[:_LONGEST_SLUG].rstrip("-.")
    return f"{slug or otherwise}-{digest}"
