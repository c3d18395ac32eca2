"""`webarc-agent crawl`: one crawl, now."""

from __future__ import annotations

import atexit
import dataclasses
import hashlib
import logging
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from agent.catalogue.recording import catch_up_records, crawl_as_before
from agent.commands.common import (
    archive_option,
    console,
    crawl_options,
    follow,
    opened,
    settings_of,
    stop_on_signals,
    sums_of,
    tell,
    tell_release,
    warn_of_root,
)
from agent.commands.report import find
from agent.crawl import job_folder, job_orders, url_files
from agent.crawl.job_folder import Definition, command_line_name, is_step, list_name
from agent.crawl.secrets import Secrets
from agent.indexing import recovery
from agent.jobs import crawljob
from agent.operations import ordering, patching
from agent.operations.patching import PlannedPatch
from agent.reports import missing_urls
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Occasion
from webarcfs.archive.config import settings as config
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import HostSecret, Release, Settings
from webarcfs.archive.config.validators import start_url
from webarcfs.archive.model.errors import Exit, UsageError
from webarcfs.archive.model.urls import domain_of
from webarcfs.archive.system.files import TemporaryFolder
from webarcfs.commands.completing import complete_configured, complete_jobs, complete_reports
from webarcfs.commands.lazy_commands import AbsolutePath, with_archive
from webarcfs.commands.listing import OBJECT, Form, format_option, print_object
from webarcfs.commands.output import Display

_log = logging.getLogger("webarc")

#: Begins the names of the folders that keep what came by standard input.
_OF_STANDARD_INPUT = "webarcfs-list-"


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL...]")
@archive_option
@click.option(
    "--list",
    "url_list",
    metavar="FILE",
    help="Crawl the URLs of a file (- is standard input): text, bookmarks, OPML, a feed or a sitemap. "
    "Their pages alone, unless --depth says more.",
)
@click.option("--page", is_flag=True, help="Crawl the URLs alone, each with all that it needs to be shown.")
@click.option(
    "--cookies",
    metavar="FILE",
    type=AbsolutePath(exists=True, dir_okay=False),
    help="With URLs: show these cookies to their hosts and to no other: cookies.txt of a browser, or lines name=value. "
    "The file has mode 0600. Readers see the crawl once it is released.",
)
@click.option(
    "--publication",
    metavar="NAME",
    shell_complete=complete_configured,
    help="Crawl a publication of webarc.toml instead of URLs.",
)
@click.option(
    "--resume", metavar="JOB", shell_complete=complete_jobs, help="Resume an interrupted job, with its settings."
)
@click.option(
    "--missing",
    metavar="JOB|NUMBER|PUBLICATION",
    shell_complete=complete_reports,
    help="Ask again for what the crawl of that job or record, or the newest of a publication, did not get, as a part "
    "of its record.",
)
@click.option("--word", default="", metavar="WORD", help="With --missing: those with this word of crawl.log alone.")
@click.option(
    "--url", "url_pattern", default="", metavar="PATTERN", help="With --missing: those of a host, or HOST/PATH, with *."
)
@click.option("--accept-shrink", is_flag=True, help="Believe a crawl that finds much less than the last one did.")
@click.option("--type", "occasion", type=click.Choice([*map(str, Occasion)]), default="regular", show_default=True)
@click.option("--reason", default="", metavar="TEXT", help="The occasion, for --type occasion; kept in the record.")
@click.option("--shift", is_flag=True, help="With --type occasion: the schedule continues from this crawl.")
@crawl_options
@format_option(*OBJECT)
def crawl(
    urls: tuple[str, ...],
    archive: str | None,
    publication: str | None,
    resume: str | None,
    accept_shrink: bool,
    *,
    url_list: str | None,
    page: bool,
    cookies: Path | None,
    missing: str | None,
    word: str,
    url_pattern: str,
    occasion: str,
    reason: str,
    shift: bool,
    form: Form,
    **given: Any,
) -> None:
    """Crawl from start URLs once, now, and publish what came of it.

    The options override webarc.toml. The same command resumes a crawl that was interrupted; no document is fetched
    twice.

    With --page and --list a crawl only adds pages: it removes none.

    With --missing it asks again for URLs that failed, each with what it needs, by the publication's settings and those
    given here. What comes belongs to the record of that crawl. If nothing is missing, or nothing of that word or URL,
    it says so, and ends with 0. What a bound or a person ended the crawl before (max-total-size, max-duration, stopped)
    is asked for by its --word alone: if that is all that is missing, it names the word, and ends with 3. It ends with 1
    for a word that crawl.log cannot have. With URLs it asks for exactly
    these, whatever kept the crawl from them, also for pages that it never saw; hosts and excludes hold.

    A crawl on an occasion comes beside the regular ones: the publication is due as before, unless the crawl shifts it.

    \b
    Example:
      webarc-agent crawl --publication example --type occasion --reason 'end of the election period'
      webarc-agent crawl --missing example --word timeout --timeout 120
      webarc-agent crawl --missing example https://www.example.org/forgotten.html
    """
    place = opened(archive)
    crawl_as_before(place)
    settings = settings_of(place)
    values = {key: value for key, value in given.items() if value is not None and value != ()}
    _check_missing(missing, urls, word, url_pattern, values)
    _check_urls(urls, values, page=page, cookies=cookies)
    if [
        bool(urls) and missing is None,
        *(named is not None for named in (url_list, publication, resume, missing)),
    ].count(True) != 1:
        raise UsageError("give either URLs, or --list FILE, or --publication NAME, or --resume JOB, or --missing JOB")
    if (occasion == Occasion.OCCASION) != bool(reason.strip()) or (reason and publication is None):
        raise UsageError("--type occasion, --reason and --publication go together")
    if missing is not None:
        plan = patching.plan(place, settings, _patched(place, missing), word=word, url=url_pattern, urls=urls)
        is_narrowed = bool(word or url_pattern or urls)
        _tell_plan(plan, is_narrowed=is_narrowed, form=form)
        _tell_bound(place, settings, plan, values)
        if not plan.urls:
            sys.exit(Exit.INCOMPLETE if plan.left_by_end and not is_narrowed else Exit.DONE)
        asked = _with(plan.definition, values)
    elif resume is not None:
        asked = _resumed(place, resume, values)
    elif publication is not None:
        asked = _configured(settings, publication, values)
    elif url_list is not None:
        asked = _of_list(settings, url_list, values)
    else:
        asked = _of_urls(settings, urls, values | ({"depth": 0} if page else {}), only_adds=page, cookies=cookies)
    if asked.publication.crawl.max_instances > settings.crawl.max_instances:
        most = settings.crawl.max_instances
        _log.warning("max_instances is %d in [crawl] of webarc.toml, for all crawls; so many hold", most)
    Secrets.of(asked.publication)  # what is wrong with their files is told before a job begins
    warn_of_root()
    with Display(console) as display:
        recovery.catch_up(place, progress=display)
        catch_up_records(place, progress=display)
        outcome = crawljob.run(
            place,
            asked.publication,
            asked.profile,
            accept_shrink=accept_shrink or asked.accept_shrink,
            instances=settings.crawl.max_instances,
            folder=place.jobs / resume if resume is not None else None,
            occasion=reason.strip(),
            only_adds=asked.only_adds,
            patch=asked.patch,
            shifts=shift,
            stop=stop_on_signals(),
            progress=display,
        )
        record = asked.patch.record if asked.patch is not None else asked.record or outcome.job
        steps_are_done = outcome.interrupted or follow(place, record, display)
    tell(outcome, form=form)
    tell_release(place, record)
    if form is Form.JSON:
        print_object({"record": record, **sums_of(outcome), "steps_done": steps_are_done})
    if not steps_are_done:
        sys.exit(Exit.FAILED)
    if not outcome.is_whole:
        sys.exit(Exit.INCOMPLETE)


def _tell_plan(plan: PlannedPatch, *, is_narrowed: bool, form: Form) -> None:
    """Say what a patch asks for again, and what it leaves out though it did not come."""
    if not plan.urls and form is Form.JSON:
        print_object({"job": plan.patch.job, "missing": 0, "left_out": plan.text_of_left_out()})
        return
    job, rest = plan.patch.job, plan.text_of_left_out()
    if plan.urls:
        _log.info("asking again for %d URLs of %s", plan.urls, job)
    elif is_narrowed or not rest:
        click.echo(f"{job}: nothing {'of that ' * is_narrowed}is missing")
        if plan.patch.url:
            text = "a URL that the crawl never saw is none of it; `webarc-agent crawl --missing JOB URL` asks for that"
            click.echo(with_archive(text.replace("JOB", job)))
    else:
        click.echo(f"{job}: nothing failed; what did not come for another reason is asked for by its word: {rest}")
        word = shlex.quote(next(iter(plan.left_by_end), plan.main_word))
        click.echo(with_archive(f"`webarc-agent crawl --missing {job} --word {word}` asks for these"))
        return
    if not rest:
        return
    if is_narrowed:
        text = f"it does not ask for what else did not come: {rest}"
    else:
        text = f"it asks for these only by their words, such as --word {shlex.quote(plan.main_word)}: {rest}"
    if plan.urls:
        _log.info("%s", text)
    else:
        click.echo(text)


def _tell_bound(place: Archive, settings: Settings, plan: PlannedPatch, values: Mapping[str, Any]) -> None:
    """Say that the bound that ended a crawl bounds its patch as well, unless an option sets it or it was raised."""
    word = plan.patch.word or next(iter(plan.left_by_end), "")
    bound = patching.bound_of(place, settings, Catalogue(place).read(plan.patch.record)[0], word)
    if bound is not None and bound.holds and bound.setting not in values:
        option = f"--{bound.setting.replace('_', '-')}"
        text = "%s is %s, and bounds what is asked for again as well: raise it first, or give %s for this once"
        _log.warning(text, bound.setting, bound.now, option)


def _of_urls(
    settings: Settings, urls: tuple[str, ...], values: dict[str, Any], *, only_adds: bool, cookies: Path | None
) -> Definition:
    crawl_settings = config.override(settings.crawl, values, "command line")
    for url in urls:
        if url.startswith("@"):
            raise UsageError(f"{url} is no URL; `--list {url[1:]}` crawls the URLs of a file")
        if "://" not in url and Path(url).is_file():
            listed = f"`webarc-agent crawl --list {shlex.quote(url)}` crawls the URLs in it"
            raise UsageError(f"{url} is a file; {listed}. If a host is meant, write http://{url}/")
    start = tuple(dict.fromkeys(start_url(url) for url in urls))
    shown: dict[str, Any] = {}
    if cookies is not None:  # as for publications with secrets: a person releases what they show
        hosts = tuple(dict.fromkeys(f"{url.partition('://')[0]}://{domain_of(url)}" for url in start))
        shown = {"cookies": (HostSecret(hosts=hosts, file=str(cookies)),), "release": Release.BY_HAND}
    publication = settings.unlisted(command_line_name(start), start, crawl=crawl_settings, **shown)
    return Definition(publication=publication, only_adds=only_adds)


def _of_list(settings: Settings, url_list: str, values: dict[str, Any]) -> Definition:
    """Return the crawl of a list. Standard input, and what can be read only once, is kept in a file until the end."""
    crawl_settings = config.override(settings.crawl, {"depth": 0} | values, "command line")
    if url_list == "-" or Path(url_list).is_fifo():
        folder = TemporaryFolder(_OF_STANDARD_INPUT)
        atexit.register(folder.remove)
        file = folder.path / url_files.STANDARD_INPUT
        with file.open("wb") as kept, sys.stdin.buffer if url_list == "-" else Path(url_list).open("rb") as source:
            shutil.copyfileobj(source, kept)
        stem = "stdin"
    else:
        file = Path(url_list).absolute()
        stem = file.stem
    good = sum(bool(listed.url) for listed in url_files.read_urls(file))
    if not good:
        raise UsageError(f"{url_files.list_title(file)} has no URL")
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()[:8]
    publication = settings.unlisted(list_name(stem, digest), (), list=str(file), crawl=crawl_settings)
    return Definition(publication=publication, only_adds=True)


def _configured(settings: Settings, name: str, values: dict[str, Any]) -> Definition:
    """Return a publication of webarc.toml; settings of the command line override its own (/Cr-2.1/)."""
    publication = next((publication for publication in settings.publications if publication.name == name), None)
    if publication is None:
        known = ", ".join(publication.name for publication in settings.publications) or "none"
        raise UsageError(f"webarc.toml has no publication {name}; there are: {known}")
    if publication.retired:
        raise UsageError(f"{name} is retired; `webarc-agent publication edit {name} --unset retired` takes it back")
    return _with(Definition(publication=publication, profile=settings.profiles.get(publication.profile or "")), values)


def _resumed(place: Archive, job: str, values: dict[str, Any]) -> Definition:
    """Return the definition of an interrupted job, overridden by the command line.

    Raises NotFound for one that has ended, UsageError for any other, and Damaged.
    """
    asked = None if "/" in job else job_folder.load(place.jobs / job)
    if asked is None:
        if ended_job := ordering.find_ended(place, job):
            raise job_orders.ended(ended_job)
        names = (path.name for path in place.jobs.iterdir())
        waiting = ", ".join(sorted(name for name in names if not is_step(name))) or "none"
        raise UsageError(f"there is no interrupted job {job}; there are: {waiting}")
    return _with(asked, values)


def _with(asked: Definition, values: dict[str, Any]) -> Definition:
    if asked.publication.watch and ("depth" in values or values.get("sitemaps")):
        name = asked.publication.name
        raise UsageError(f"{name} watches a feed, and captures the pages of its items alone: no --depth, no --sitemaps")
    crawl_settings = config.override(asked.publication.crawl, values, "command line")
    return dataclasses.replace(asked, publication=dataclasses.replace(asked.publication, crawl=crawl_settings))


def _check_missing(
    missing: str | None, urls: Sequence[str], word: str, url_pattern: str, values: dict[str, Any]
) -> None:
    if missing is None and (word or url_pattern):
        raise UsageError("--word and --url go with --missing")
    if missing is not None and urls and (word or url_pattern):
        raise UsageError("--word and --url choose among what is missing; URLs are asked for without them")
    if missing is not None and "depth" in values:
        raise UsageError("--missing follows no links; leave --depth out")


def _check_urls(urls: Sequence[str], values: dict[str, Any], *, page: bool, cookies: Path | None) -> None:
    if page and (not urls or "depth" in values):
        raise UsageError("--page goes with URLs, and without --depth")
    if cookies is not None and not urls:
        raise UsageError("--cookies goes with URLs; a publication names its own in webarc.toml")


def _patched(place: Archive, name: str) -> str:
    """Return the job that --missing means, which has ended. Raises NotFound, UsageError."""
    folder, _ = find(place, name)
    if folder.parent != place.jobs:
        return missing_urls.patched_by(folder) or folder.name
    if ordering.state_of(folder).runs:
        raise UsageError(f"{folder.name} still runs; `webarc-agent job add {folder.name} URL` has it ask for more")
    raise UsageError(f"{folder.name} has not ended; `webarc-agent crawl --resume {folder.name}` ends it")
