"""`webarc-agent publication`: the publications of an archive, shown, tried and changed."""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click

from agent.commands.common import archive_option, opened, say_how_often, settings_of, stop_on_signals, values_of
from agent.crawl import browser_check
from agent.crawl.secrets import kept_back
from agent.operations import excluded_parts, first_crawls, trying
from agent.operations.trying import NAMED_REFUSED, Answer, MoreByDefaults, ShownStart, Trial
from agent.reports import tables
from agent.service import agent_status, scheduler
from agent.service.agent_status import overview
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import settings_files, validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import UNLIMITED, Publication, Release, Settings
from webarcfs.archive.config.validators import UNLIMITED_WORD, Interval, start_url
from webarcfs.archive.model.errors import Exit, UsageError
from webarcfs.archive.model.metadata import CET, format_time, now
from webarcfs.commands.completing import complete_configured
from webarcfs.commands.lazy_commands import VerbGroup
from webarcfs.commands.listing import LIST, OBJECT, Form, format_option, print_object, print_rows

_set = click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="A setting, its value as in TOML. May be given again."
)
#: URLs that are named for each word why they would not be fetched.
_MOST_REFUSED = 5
#: Hosts of a trial that are named.
_MOST_HOSTS = 20
_every = click.option(
    "--every",
    "interval",
    metavar="INTERVAL",
    help="How often, such as weekly, monthly or '10 days'; else as the archive says.",
)
_try = click.option("--try", "only_try", is_flag=True, help="Try it so, and change nothing.")


@click.group(cls=VerbGroup)
def publication() -> None:
    """Show, try, add, change and retire publications.

    One that a command adds lies in a file of its own, publications.d/NAME.toml. People may edit it, too; its comments
    stay. A running agent takes changes within a second. A running job keeps the settings that it began with.
    """


@publication.command(name="list")
@archive_option
@format_option(*LIST)
def list_(archive: str | None, form: Form) -> None:
    """List publications: when each is due, and where it is said.

    \b
    Example:
      webarc-agent publication list
    """
    place = opened(archive)
    states_by_name = {state["name"]: state for state in overview(place)["publications"]}
    rows = [
        _row(place, publication, states_by_name[publication.name]) for publication in settings_of(place).publications
    ]
    print_rows(form, rows, _lines_of_list, as_json=print_object)


def _lines_of_list(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        since = f" since {row['retired_since']}" if row["retired_since"] else ""
        why = f" ({row['retired_reason']})" if row["retired_reason"] else ""
        often = f"{say_how_often(row['interval'])}, next {row['next']}"
        coming = f"retired{since}{why}" if row["retired"] else often
        about = f": {row['description']}" if row["description"] else ""
        yield f"{row['name']} ({row['place']}), {coming}{about}"
    if not rows:
        yield ("there is no publication; `webarc-agent publication add NAME URL` adds one")


def _row(archive: Archive, publication: Publication, state: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": publication.name,
        "place": settings_files.place_of(archive, publication.name),
        "urls": list(publication.urls),
        "watch": publication.watch,
        "description": publication.description,
        "interval": str(publication.crawl.interval),
        "next": None if publication.retired else state["next"],
        "retired": publication.retired,
        "retired_since": None if publication.retired_since is None else format_time(publication.retired_since),
        "retired_reason": publication.retired_reason,
        "jobs": state["jobs"],
    }


@publication.command()
@archive_option
@format_option(*LIST)
def profiles(archive: str | None, form: Form) -> None:
    """List the profiles of MIME types, and which publications use them."""
    settings = settings_of(opened(archive))
    rows = [
        {
            "name": name,
            "description": profile.description,
            "include": list(profile.include),
            "exclude": list(profile.exclude),
            "publications": [publication.name for publication in settings.publications if publication.profile == name],
        }
        for name, profile in settings.profiles.items()
    ]
    print_rows(form, rows, _lines_of_profiles, as_json=print_object)


def _lines_of_profiles(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        about = f": {row['description']}" if row["description"] else ""
        types = ", ".join([*row["include"], *(f"not {mime_type}" for mime_type in row["exclude"])]) or "all types"
        yield f"{row['name']}{about} ({types}); used by {', '.join(row['publications']) or 'none'}"


@publication.command()
@click.argument("name", shell_complete=complete_configured)
@archive_option
@click.option("--all", "is_all", is_flag=True, help="Also settings that have their defaults.")
@format_option(*OBJECT)
def show(name: str, archive: str | None, is_all: bool, form: Form) -> None:
    """Show the settings of a publication as they hold now, and where each is said.

    \b
    Example:
      webarc-agent publication show example --all
    """
    settings = settings_files.in_force(opened(archive), name)
    if form is Form.JSON:
        rows = {
            setting.key: {"value": _shown(setting.key, setting.value), "source": setting.source} for setting in settings
        }
        print_object(rows)
        return
    for setting in settings:
        if is_all or not setting.is_default:
            value = json.dumps(_shown(setting.key, setting.value), ensure_ascii=False, default=str)
            click.echo(f"{setting.key} = {value}    # {setting.source}")


def _shown(key: str, value: Any) -> Any:
    return UNLIMITED_WORD if key == "depth" and value == UNLIMITED else settings_files.plain(value)


@publication.command()
@click.argument("name", shell_complete=complete_configured)
@click.argument("urls", nargs=-1, metavar="[URL...]")
@archive_option
@_every
@click.option(
    "--start",
    metavar="TIME",
    help="When its first crawl begins, CET: now, 2026-12-01 or 2026-12-01T22:00. [default: in a minute; now without an"
    " agent]",
)
@_set
@_try
@format_option(*OBJECT)
def add(
    name: str,
    urls: tuple[str, ...],
    *,
    archive: str | None,
    interval: str | None,
    start: str | None,
    sets: tuple[str, ...],
    only_try: bool,
    form: Form,
) -> None:
    """Add a publication, and say when it is crawled.

    A running agent begins the first crawl in a minute or two, so that there is time to change it; without an agent it
    begins with the agent. All further ones come at the interval, counted from the first.

    \b
    Examples:
      webarc-agent publication add example http://www.example.org/ --every monthly --try
      webarc-agent publication add example http://www.example.org/ --every weekly --start 2026-12-01T22:00
      webarc-agent publication add example http://www.example.org/ --set 'paths=["/press/*"]' --set depth=unlimited
      webarc-agent publication add news --set watch=http://www.example.org/feed.xml --every hourly --try
    """
    place = opened(archive)
    people.acting(place, Right.PUBLICATIONS)
    values = ({"urls": [start_url(url) for url in urls]} if urls else {}) | _every_of(interval) | values_of(sets)
    if start is not None:
        values["start"] = _start_of(start)
    if not any(values.get(key) for key in ("urls", "list", "watch")):
        raise UsageError("give start URLs, or --set list=FILE, or --set watch=FEED, whose new items are captured")
    if only_try:
        text = settings_files.new_text(place, name, values)
        _tell_trial(place, *settings_files.with_text(place, name, text), form=form, is_in_force=False)
        return
    values.setdefault("start", first_crawls.first_start(place).replace(tzinfo=None))
    path = settings_files.write_publication(place, name, lambda: settings_files.new_text(place, name, values))
    click.echo(f"{name} is in {path}")
    settings = settings_of(place)
    added = next((publication for publication in settings.publications if publication.name == name), None)
    if added is not None and not added.retired:
        click.echo(_line_of_next(place, added))
    lines = (*_lines_of_future(added), *_lines_of_differing(settings, added)) if added is not None else ()
    for line in lines:
        click.echo(line)


def _every_of(interval: str | None) -> dict[str, Any]:
    """Return the setting of an interval. Raises UsageError."""
    if interval is None:
        return {}
    try:
        return {"interval": str(Interval.parse(interval))}
    except ValueError as error:
        raise UsageError(str(error)) from None


def _start_of(text: str) -> datetime:
    """Return the time of a first crawl, in CET, as TOML has it. Raises UsageError."""
    if text == "now":
        return now().replace(second=0, microsecond=0, tzinfo=None)
    try:
        return validators.time(text).astimezone(CET).replace(tzinfo=None)
    except ValueError:
        raise UsageError(f"{text!r} is no time; write now, 2026-12-01 or 2026-12-01T22:00 (CET)") from None


def _line_of_next(archive: Archive, publication: Publication) -> str:
    """Return when a publication is crawled next, and what changes that."""
    name, at = publication.name, now()
    runs = scheduler.read(archive).runs.get(name, frozenset())
    due = scheduler.next_due(publication, runs, at)
    which = "next" if runs else "first"
    if due <= at and agent_status.running(archive) is None:
        return f"its {which} crawl begins as soon as an agent runs (`webarc-agent start`)"
    when = "now" if due <= at else f"at {format_time(due)} CET"
    return (
        f"its {which} crawl begins {when}, up to {_depth(publication)} links from its start URLs; "
        f"`webarc-agent publication edit {name} --set start=TIME` moves it"
    )


def _depth(publication: Publication) -> str:
    depth = publication.crawl.depth
    return "any number of" if depth == UNLIMITED else str(depth)


@publication.command()
@click.argument("name", shell_complete=complete_configured)
@archive_option
@_every
@_set
@click.option("--unset", "unsets", multiple=True, metavar="KEY", help="A setting to remove. May be given again.")
@_try
@format_option(*OBJECT)
def edit(
    name: str,
    *,
    archive: str | None,
    interval: str | None,
    sets: tuple[str, ...],
    unsets: tuple[str, ...],
    only_try: bool,
    form: Form,
) -> None:
    """Change a publication that has a file of its own; without --every, --set or --unset in $EDITOR.

    Settings with a fault are refused, and nothing is changed.

    \b
    Examples:
      webarc-agent publication edit example --every weekly --unset depth
      webarc-agent publication edit example
    """
    place = opened(archive)
    people.acting(place, Right.PUBLICATIONS)
    values = _every_of(interval) | values_of(sets)
    if "retired" in unsets:
        unsets = (*unsets, *settings_files.written_of_retirement(place, name) - {*unsets})
    if only_try:
        text = settings_files.edited_text(place, name, values, unsets)
        _tell_trial(place, *settings_files.with_text(place, name, text), form=form, is_in_force=False)
    elif values or unsets:
        path = settings_files.write_publication(
            place, name, lambda: settings_files.edited_text(place, name, values, unsets)
        )
        click.echo(f"{path} is changed")
        settings = settings_of(place)
        held = next((known for known in settings.publications if known.name == name), None)
        if held is not None and not held.retired:
            click.echo(_line_of_next(place, held))
            exclusions = _lines_of_exclusions(place, held) if "exclude" in values else ()
            for line in (*exclusions, *_lines_of_differing(settings, held)):
                click.echo(line)
    else:
        _in_editor(place, name)


def _in_editor(archive: Archive, name: str) -> None:
    path = settings_files.own_file(archive, name)
    before = path.read_text("utf-8-sig")
    text = click.edit(before, extension=".toml", require_save=True)
    if text is None or text == before:
        click.echo("nothing is changed")
        return
    settings_files.with_text(archive, name, text)
    if path.read_text("utf-8-sig") != before:
        raise UsageError(f"{path} was changed by somebody else meanwhile; nothing is changed")
    settings_files.write_publication(archive, name, lambda: text)
    click.echo(f"{path} is changed")


@publication.command(name="try")
@click.argument("name", shell_complete=complete_configured)
@archive_option
@format_option(*OBJECT)
def try_(name: str, archive: str | None, form: Form) -> None:
    """Fetch robots.txt and the start URLs of a publication, and name 20 URLs that it would fetch next.

    Of one that watches a feed it fetches the feed, and names 20 items that it would capture.

    Where a browser shows pages, it shows the start pages, and says what their words are then.

    Nothing is archived. `add` and `edit` have --try, to try what is not in force yet.

    Of a publication with page_resources = "hosts" or sitemaps = false it also says what the new defaults would bring:
    hosts, documents, bytes.
    """
    place = opened(archive)
    settings = settings_of(place)
    chosen_publication = next((publication for publication in settings.publications if publication.name == name), None)
    if chosen_publication is None:
        raise settings_files.missing(place, name)
    _tell_trial(place, settings, chosen_publication, form=form)


def _lines_of_future(publication: Publication, *, is_in_force: bool = True) -> Iterator[str]:
    """Yield when a publication will be crawled, and that readers wait for a release, where they do."""
    if not publication.retired:
        first = f" from {format_time(publication.start)} on" if publication.start is not None else ""
        crawls = "crawls" if is_in_force else "would crawl"
        ends = f"`webarc-agent publication retire {publication.name}` ends that"
        yield (
            f"a running agent {crawls} it {say_how_often(publication.crawl.interval)}{first} (the setting interval); "
            + (ends if is_in_force else "nothing is changed until the command is run without --try")
        )
    if publication.release == Release.BY_HAND:
        why = ", since it has a login, cookies or headers" if publication.has_secrets else ""
        yield f'readers see a crawl of it only once somebody releases it (release = "by-hand"{why})'
    yield from kept_back(publication)


def _lines_of_exclusions(archive: Archive, publication: Publication) -> Iterator[str]:
    """Yield how many URLs that its newest crawl knew each excluded part matches, and that one has no reason."""
    for part in excluded_parts.count_matches(archive, publication.name, publication.exclude):
        without = "" if part.has_reason else "; it has no reason, which the catalogue would keep"
        if part.job:
            least = "at least " * part.is_cut
            yield f"{part.match} matches {least}{part.urls} of {part.known} URLs that {part.job} knew{without}"
        elif without:
            yield f"{part.match}{without}"
    if (more := len(publication.exclude) - excluded_parts.MOST) > 0:
        yield f"and {more} more excluded parts"


def _lines_of_differing(settings: Settings, publication: Publication) -> Iterator[str]:
    """Yield the hosts of which another publication has other rules of when readers may see its crawls."""
    yield from (str(host) for host in agent_status.disagreements(settings) if publication.name in host.names)


def _tell_trial(
    archive: Archive, settings: Settings, publication: Publication, *, form: Form, is_in_force: bool = True
) -> None:
    """Try a publication and print what came of it; exit with 3 where that was not good."""
    profile = settings.profiles.get(publication.profile or "")
    trial = trying.attempt(archive, publication, profile, settings.crawl.max_instances, stop_on_signals())
    if form is Form.JSON:
        differing = list(_lines_of_differing(settings, publication))
        print_object({**dataclasses.asdict(trial), "good": trial.is_good, "warnings": differing})
    else:
        future = _lines_of_future(publication, is_in_force=is_in_force)
        about = (_lines_of_exclusions(archive, publication), _lines_of_differing(settings, publication))
        for line in itertools.chain(_lines(trial), future, *about):
            click.echo(line)
    if not trial.is_good:
        sys.exit(Exit.INCOMPLETE)


def _lines(trial: Trial) -> Iterator[str]:
    yield from (_said(answer) for answer in trial.robots)
    for chain in trial.starts:
        yield from (f"{'  ' * number}{_said(answer)}" for number, answer in enumerate(chain))
    if trial.feed:
        before = f", {trial.captured} were captured before" if trial.captured else ""
        yield f"{trial.number} items would be captured{before}" + (":" if trial.would else "")
    else:
        yield f"{trial.number} URLs would be fetched next" + (":" if trial.would else "")
    yield from (f"  {url}" for url in trial.would)
    if trial.number > len(trial.would):
        yield f"  and {trial.number - len(trial.would)} more"
    for word, count in sorted(trial.refused.items(), key=lambda item: -item[1]):
        yield f"{count} would not be, {word}: {tables.sentence_of(word) or ''}"
        urls = trial.refused_urls.get(word, [])[:_MOST_REFUSED]
        yield from (f"  {url}" for url in urls)
        if count > len(urls):
            yield f"  and {count - len(urls)} more; --json names {NAMED_REFUSED} of each word"
    for start in trial.shown:
        yield from _shown_lines(start)
    for url in trial.needs_browser:
        yield f'{url} holds little without its scripts; `fetcher = "auto"` lets a browser show such pages'
    yield from browser_check.lines_of(trial.browser)
    if trial.more is not None:
        yield from _more_lines(trial.more)


def _shown_lines(start: ShownStart) -> Iterator[str]:
    """Yield what the browser showed of a start page."""
    if start.is_shown:
        yield f"{start.url}: the browser showed {start.words} words, and its scripts made {start.requests} requests"
        yield f"  {start.text}"
    else:
        yield f"{start.url}: the browser did not show it"
    if start.sentence:
        yield f"  {start.notes}: {start.sentence}"


def _more_lines(more: MoreByDefaults) -> Iterator[str]:
    """Yield what the new defaults would bring."""
    least = "" if more.is_all else "at least "
    number = len(more.hosts)
    yield 'the new defaults (page_resources = "any", sitemaps = true) would bring:'
    yield f"  {least}{number} further hosts, {more.documents} documents, about {more.bytes:,} bytes"
    if more.documents:
        yield f"    {more.measured} fetched for the start pages, the others named by {more.pages} archived documents"
    for host, count in list(more.hosts.items())[:_MOST_HOSTS]:
        yield f"  {count:6} {host}"
    if number > _MOST_HOSTS:
        yield f"  and {number - _MOST_HOSTS} hosts more"
    yield f"  {least}{more.listed} further pages of sitemaps, {more.new} of which are not archived"


def _said(answer: Answer) -> str:
    return f"{answer.url}: " + ", ".join(filter(None, (str(answer.status), answer.meaning, answer.words)))


@publication.command()
@click.argument("name", shell_complete=complete_configured)
@archive_option
@click.option("--reason", default="", metavar="TEXT", help="Why; kept in its file.")
def retire(name: str, archive: str | None, reason: str) -> None:
    """Keep a publication, and crawl it no more; its crawls stay.

    A running job of it continues to its end. `edit NAME --unset retired` takes it back.
    """
    place = opened(archive)
    people.acting(place, Right.PUBLICATIONS)
    settings_files.write_publication(place, name, lambda: settings_files.retired_text(place, name, reason))
    click.echo(f"{name} is retired")
    for job in overview(place)["jobs"]:
        if job["publication"] == name:
            click.echo(f"its job {job['job']} continues; `webarc-agent job stop {job['job']}` ends it")
