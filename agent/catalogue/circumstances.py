"""What a job knows of its capture when it ends, and git does not: program, command line, settings, person."""

from __future__ import annotations

import getpass
import json
import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agent.capture.wgetcommand import BatchFiles, command
from agent.catalogue.describing import Circumstances
from agent.catalogue.ways import settings_now, way_of
from agent.jobfolder import definition
from agent.jobfolder.definition import Definition
from agent.jobfolder.job import Job
from agent.jobfolder.names import is_import
from webarcfs.archive.catalogue.record import Occasion
from webarcfs.archive.config import settings_file
from webarcfs.archive.config.settings import UNLIMITED, DescribeSettings, Exclusion, Publication, Release
from webarcfs.archive.config.validators import UNLIMITED_WORD
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Damaged, SettingsError
from webarcfs.archive.model.metadata import format_time, now

#: A WARC's first record names the program that wrote it (WARC 1.1, `warcinfo`).
_SOFTWARE = re.compile(rb"^software: *([^\r\n]{1,200})", re.MULTILINE)
_HEAD = 4096
_HIDDEN = "***"
_HARMLESS = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?[kmgKMGsmhd]?|on|off|yes|no", re.ASCII)
# Options, whole or shortened, whose values are secrets or hold some, also where they look like numbers.
_OF_SECRETS = re.compile(r"--?(?:h|us|p|f|b|co|ce|l|e|no-|i)|-[eU]", re.ASCII)


def of_job(job: Job) -> Circumstances:
    """Return the circumstances of a job that has ended. Reads the first WARC in its folder, and webarc.toml."""
    publication, crawl = job.publication, job.settings
    describe = _describe(job, publication)
    texts = {**wanted(publication, describe), 31: format_time(now()), 32: person_of_process()}
    if not is_import(job.name):
        texts |= {
            **how(publication, job.instances or crawl.max_instances),
            11: _software(job.folder),
        }
    closed_for = "" if publication.closed_for is None else str(publication.closed_for)
    way = way_of(job.archive, publication, settings_now(job.archive))
    asked = _asked(job)
    texts |= {5: asked.occasion} if asked is not None and asked.occasion else {}
    return Circumstances(
        texts=texts,
        release=Release(publication.release),
        closed_for=closed_for,
        way=way,
        occasion=Occasion.OCCASION if 5 in texts else Occasion.REGULAR,
        record="" if asked is None else asked.record,
    )


def _asked(job: Job) -> Definition | None:
    try:
        return definition.load(job.folder)
    except Damaged:
        return None


def wanted(publication: Publication, describe: DescribeSettings) -> dict[int, str]:
    """Return what settings say of a record: signature, office, project; and the person whose process this is."""
    return {
        2: describe.signature or publication.name,
        3: describe.provenance or _host(publication),
        4: describe.project,
        8: person_of_process(),
    }


def how(publication: Publication, instances: int) -> dict[int, str]:
    """Return how a publication is fetched: the fields 13 to 19, as far as settings tell them."""
    crawl = publication.crawl
    shown = replace(crawl, wget_args=without_secrets(crawl.wget_args))
    return {
        13: ", ".join((*publication.exclude_hosts, *map(_left_out, publication.exclude))) or "none",
        14: UNLIMITED_WORD if crawl.depth == UNLIMITED else str(crawl.depth),
        15: "requisites of pages, on accepted hosts" if crawl.page_requisites else "0",
        16: ", ".join(crawl.exclude_extensions) or "none",
        17: f"{crawl.rate_limit} bytes a second" if crawl.rate_limit else "none",
        18: str(instances),
        19: shlex.join(command(BatchFiles(Path(), 1), shown, crawl.wait, Path("cookies"), speed=crawl.rate_limit)),
    }


def without_secrets(wget_args: Iterable[str]) -> tuple[str, ...]:
    """Return further arguments of wget as readers may see them: names of options, and values that can be no secret.

    A header, a password, a cookie or a proxy with its user is public once it is in a record. wget takes options
    shortened and in several spellings, so the harmless are told, not the secret: a switch, and a number with its unit
    where the option has no word of a secret.
    """
    shown = []
    before = ""
    for each in wget_args:
        name, sign, value = each.partition("=")
        if not name.startswith("-"):
            shown.append(each if _may_show(before, each) else _HIDDEN)
        elif name.startswith("--"):
            shown.append(each if not sign or _may_show(name, value) else f"{name}={_HIDDEN}")
        else:  # a short option may have its value right behind it
            is_plain = not sign and _may_show(name[:2], name[2:])
            shown.append(each if len(each) == 2 or is_plain else f"{each[:2]}{_HIDDEN}")
        before = name
    return tuple(shown)


def _may_show(option: str, value: str) -> bool:
    return _HARMLESS.fullmatch(value) is not None and _OF_SECRETS.match(option) is None


def person_of_process() -> str:
    """Return the login name of the person whose process this is; the number of the user where there is none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _describe(job: Job, publication: Publication) -> DescribeSettings:
    """Return what webarc.toml says now of the publication's records; the defaults if it has faults."""
    with suppress(SettingsError):
        settings, _ = settings_file.load(job.archive.settings)
        known = (each for each in settings.publications if each.name == publication.name)
        return next(known, settings.unlisted(publication.name)).describe
    return DescribeSettings()


def _left_out(each: Exclusion) -> str:
    return f"{each.match} ({each.reason})" if each.reason else each.match


def settings_as_they_were(job: Job) -> dict[str, bytes]:
    """Return the settings of the job's publication as a file for the catalogue: path → JSON."""
    said = definition.settings_of(job.publication, job.profile)
    content = json.dumps(said, indent=1, ensure_ascii=False, sort_keys=True)
    return {f"publications/{job.publication.name}.json": f"{content}\n".encode()}


def _host(publication: Publication) -> str:
    return split(arc_path(publication.urls[0]))[0] if publication.urls else ""


def _software(folder: Path) -> str:
    for path in sorted(folder.glob("*.warc")):
        with path.open("rb") as file:
            found = _SOFTWARE.search(file.read(_HEAD))
        if found:
            return found[1].decode("utf-8", "replace")
    return ""
