"""The settings: the keys of webarc.toml, a publication and the command line, each with its check. Pure.

Command line over publication over `[crawl]` over the defaults (/Cr-1/, /Cr-2.1/). settings_files.py reads them. The
fields of `CrawlSettings` are the one list of crawl settings: the file's keys, the publications' keys and the commands'
options are derived from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from webarcfs import __version__
from webarcfs.archive.config import validators
from webarcfs.archive.config.validators import Interval, read_table, required, setting, tables
from webarcfs.archive.model import urls
from webarcfs.archive.model.errors import SettingsError

#: The depth of a crawl without a bound: more links than any site has in a row.
UNLIMITED = 1_000_000_000


class RobotsFor(StrEnum):
    """What robots.txt holds for (`robots_for`)."""

    ALL = "all"
    PAGES = "pages"


class Release(StrEnum):
    """When readers may see the captures of a publication (`release`)."""

    AUTOMATIC = "automatic"
    WHEN_CHECKED = "when-checked"
    BY_HAND = "by-hand"


class Certificates(StrEnum):
    """Whether the certificates of servers are checked (`certificates`)."""

    CHECK = "check"
    ANY = "any"


class PageResources(StrEnum):
    """From where a crawl fetches what pages need to be shown (`page_resources`)."""

    ANY = "any"
    HOSTS = "hosts"
    NONE = "none"


class Fetcher(StrEnum):
    """What shows pages (`fetcher`). wget asks for each of them in any case."""

    WGET = "wget"
    BROWSER = "browser"
    AUTO = "auto"


class Behaviour(StrEnum):
    """What is done on a page that a browser shows (`browser_behaviours`)."""

    SCROLL = "scroll"
    LAZY = "lazy"
    MORE = "more"
    PLAY = "play"


class RenderedPart(StrEnum):
    """A part of what a browser shows of a page (`keep_rendered`)."""

    HTML = "html"
    TEXT = "text"
    PICTURE = "picture"


class PostedRequests(StrEnum):
    """Whether a browser's POST requests are sent (`post`)."""

    OWN = "own"
    KEEP = "keep"
    LEAVE = "leave"


class AtDeadline(StrEnum):
    """What becomes of a crawl whose time is over (`at_deadline`)."""

    PUBLISH = "publish"
    WAIT = "wait"


class NotificationKind(StrEnum):
    """What people are told of (`events`): changes of state, each with a word."""

    CRAWL_FAILED = "crawl-failed"
    CRAWL_INCOMPLETE = "crawl-incomplete"
    CRAWL_SHRANK = "crawl-shrank"
    NOTHING_CAPTURED = "nothing-captured"
    CHECK_FAILED = "check-failed"
    WAITS_FOR_RELEASE = "waits-for-release"
    DISK_LOW = "disk-low"
    BACKUP_OLD = "backup-old"
    INDEX_BEHIND = "index-behind"
    DAMAGED = "damaged"
    AGENT_DOWN = "agent-down"
    RECOVERED = "recovered"


#: Begins the name of the publication that has the pages of a host which people saved one by one.
SAVED = "saved-"
#: Settings of a publication whose values are in files that nobody else may read.
SECRETS = ("login", "cookies", "headers")
_RELEASE = validators.one_of(*Release)
_RELEASE_HELP = (
    "When readers may see a crawl: as soon as it is published, when it passed its checks, or when somebody releases it."
)
_CLOSED_FOR_HELP = "The embargo: time from a crawl until readers may see it."
_STEPS_HELP = "Whether each step of a crawl waits until a person asks for it."
_TWO_HELP = "Whether the person who releases a crawl must not be the one who checked it."


# -- the settings themselves -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings:
    """`[crawl]`: settings of a crawl. A publication, or an option of the same name, may override each."""

    depth: int = setting(
        validators.whole_or_unlimited(0, UNLIMITED),
        5,
        "How many links away from a start URL a page may be, or `unlimited`.",
        words=UNLIMITED,
    )
    interval: Interval = setting(validators.interval, Interval(1, "day"), "Time from one crawl to the next.")
    max_instances: int = setting(
        validators.whole(1),
        4,
        "wget processes at a time, one at most for a server; no crawl has more than [crawl] says.",
    )
    filters: tuple[str, ...] = setting(validators.list_of(validators.text), ("mime",), "Filter modules, in order.")
    robots: bool = setting(validators.boolean, True, "Obey robots.txt.")
    robots_for: str = setting(
        validators.one_of(*RobotsFor),
        RobotsFor.ALL,
        "Whether robots.txt holds for all, or for pages alone and not for the images, styles and scripts they need.",
    )
    user_agent: str = setting(
        validators.text,
        f"webarcfs/{__version__} (web archive)",
        "User agent; add a way to reach you, as in 'x/1 (+mail)'.",
    )
    wait: float = setting(validators.number(0, 86400), 1.0, "Seconds between two requests to one server.")
    rate_limit: int = setting(
        validators.size,
        0,
        "Bytes a second of all requests of a crawl together, such as 500 kB; 0 is no limit.",
        words=0,
    )
    timeout: float = setting(
        validators.number(1, 86400), 300.0, "Seconds for which a document may come no further: no answer, no bytes."
    )
    max_document_time: Interval = setting(
        validators.interval, Interval(2, "hour"), "Time that one document may take, however steadily it comes."
    )
    max_duration: Interval = setting(validators.interval, Interval(10, "day"), "Time after which a crawl is cut short.")
    at_deadline: str = setting(
        validators.one_of(*AtDeadline),
        AtDeadline.PUBLISH,
        "Whether what it has then is published, or waits for `job deadline JOB`, `stop` or `discard`.",
    )
    max_file_size: int = setting(validators.size, 0, "Bytes of one document, such as 10 MB; 0 is no limit.", words=0)
    max_total_size: int = setting(validators.size, 0, "Bytes of one crawl, such as 2 GB; 0 is no limit.", words=0)
    max_host_documents: int = setting(
        validators.whole(0), 0, "Documents of one host that a crawl fetches; 0 is no limit."
    )
    paths: tuple[str, ...] = setting(
        validators.list_of(validators.path_pattern),
        (),
        "Paths that belong to the crawl, such as /press/*; none means all. Embedded resources may lie elsewhere.",
    )
    exclude_extensions: tuple[str, ...] = setting(
        validators.list_of(validators.extension), (), "Extensions of what is never fetched, such as exe."
    )
    types: tuple[str, ...] = setting(
        validators.list_of(validators.mime_pattern), (), "MIME types to keep, beside those of the profile."
    )
    exclude_types: tuple[str, ...] = setting(
        validators.list_of(validators.mime_pattern), (), "MIME types to reject, not fetched where that can be told."
    )
    max_hosts: int = setting(
        validators.whole(0), 1000, "Hosts that a crawl finds and accepts beside those of its start URLs; 0 is no limit."
    )
    max_path_depth: int = setting(
        validators.whole_or_unlimited(0, 0),
        32,
        "Segments of a URL's path; 0 or `unlimited`: as many as can be kept, 200.",
        words=0,
    )
    max_repeats: int = setting(
        validators.whole(0), 5, "How often one segment, or one parameter, may occur in a URL; 0 is no limit."
    )
    max_parameters: int = setting(validators.whole(0), 32, "Parameters of a URL's query; 0 is no limit.")
    max_queries: int = setting(
        validators.whole(0), 10_000, "URLs that differ in nothing but their queries; 0 is no limit."
    )
    max_redirects: int = setting(
        validators.whole(0), 100_000, "Redirects of a domain that one crawl keeps; the rest is counted."
    )
    max_years_ahead: int = setting(
        validators.whole(0), 5, "How many years ahead of today a date in a URL may lie, as calendars have it; 0: any."
    )
    max_years_back: int = setting(
        validators.whole(0), 50, "How many years back from today a date in a URL may lie, as calendars have it; 0: any."
    )
    max_pattern: int = setting(
        validators.whole(0),
        1_000,
        "Pages in a row of one pattern, such as /day/17, that lead to nothing new but each other; 0 is no limit.",
    )
    session_parameters: tuple[str, ...] = setting(
        validators.list_of(validators.session_parameter),
        urls.SESSION_PARAMETERS,
        "Parameters with session ids: URLs with and without them are one page. (s): segments such as (S(…)).",
    )
    drop_parameters: tuple[str, ...] = setting(
        validators.list_of(validators.chance_parameter),
        urls.CHANCE_PARAMETERS,
        "Parameters that scripts add to URLs against caches: kept without them where the value is a time or random.",
    )
    sitemaps: bool = setting(
        validators.boolean,
        True,
        "Look for pages in sitemaps, which robots.txt names or which lie at /sitemap.xml, and in feeds of pages.",
    )
    max_sitemap_urls: int = setting(
        validators.whole(0), 50_000, "URLs that the sitemaps of one host may add to a crawl; 0 is no limit."
    )
    private_addresses: bool = setting(
        validators.boolean,
        False,
        "Also crawl hosts at addresses of one's own network or machine; "
        "a start URL that is such an address, and no name of one, does so.",
    )
    certificates: str = setting(
        validators.one_of(*Certificates),
        Certificates.CHECK,
        "Whether servers need a valid certificate, or `any` does; what was wrong with it stands with each capture.",
    )
    ca: str = setting(
        validators.file_path, "", "File with certificates of authorities that are trusted beside the system's (PEM)."
    )
    proxy: str = setting(
        validators.proxy,
        "",
        "URL of a proxy for all requests but those to hosts of `no_proxy`; none: `http_proxy` and `https_proxy` of the "
        "environment.",
    )
    bind: str = setting(validators.address, "", "Local IP address from which requests are sent; none: any.")
    conditional: bool = setting(
        validators.boolean,
        False,
        "Request archived pages only if they changed: fewer bytes, a process and a connection for each.",
    )
    page_resources: str = setting(
        validators.one_of(*PageResources),
        PageResources.ANY,
        "Where images, styles, scripts and frames of pages may lie: on any host, on accepted hosts, or none of them.",
    )
    page_requisites: bool = setting(
        validators.boolean, True, "Older setting: false is the same as `page_resources` none."
    )
    max_resource_hosts: int = setting(
        validators.whole(0), 1000, "Hosts that only give resources of pages; 0 is no limit."
    )
    max_page_resources: int = setting(
        validators.whole(0), 1000, "Resources that a page is the first to need; 0 is no limit."
    )
    keep_errors: bool = setting(
        validators.boolean, False, "Archive the bodies of 404 and other error pages of the 400s too."
    )
    keep_warc: bool = setting(validators.boolean, False, "Keep the WARC files with the report.")
    min_share: float = setting(
        validators.number(0, 1), 0.5, "A crawl that finds a smaller share of what the last one saw removes nothing."
    )
    unchanged: str = setting(
        validators.one_of("keep", "replace"),
        "keep",
        "Whether a page that did not change keeps its document folder (ARC) with the additions.",
    )
    wget_args: tuple[str, ...] = setting(validators.list_of(validators.text), (), "Further arguments for wget.")
    fetcher: str = setting(
        validators.one_of(*Fetcher),
        Fetcher.WGET,
        "Whether a browser shows pages, so that what their scripts ask for and make is archived: none of them, "
        "each (`browser`), or those that hold little without their scripts (`auto`).",
    )
    browser_page_seconds: float = setting(
        validators.number(1, 3600), 60.0, "Seconds that a browser shows a page at most."
    )
    browser_requests: int = setting(validators.whole(1), 300, "Requests that a page's scripts may make.")
    browser_bytes: int = setting(validators.size, 100_000_000, "Bytes that a page's scripts may ask for.")
    browser_scroll: int = setting(validators.whole(0), 30, "Steps by which a page is scrolled at most; 0: none.")
    browser_clicks: int = setting(
        validators.whole(0), 5, "How often a button that loads more is clicked; 0: it is not."
    )
    browser_behaviours: tuple[str, ...] = setting(
        validators.list_of(validators.one_of(*Behaviour)),
        tuple(Behaviour),
        "What is done on a page, so that it asks for what a reader would come to see.",
    )
    keep_rendered: tuple[str, ...] = setting(
        validators.list_of(validators.one_of(*RenderedPart)),
        (RenderedPart.HTML, RenderedPart.TEXT),
        "What is kept of what a browser showed: the `text`, the DOM and the text (`html`), a `picture` of the window.",
    )
    hash_routes: bool = setting(
        validators.boolean,
        False,
        "Whether the browser shows what links of a page lead to by `#/` and `#!` alone: what it asks for is archived.",
    )
    post: str = setting(
        validators.one_of(*PostedRequests),
        PostedRequests.OWN,
        "POST requests of scripts: sent to the publication's own hosts (`own`), also where these are shown secrets "
        "(`keep`), or never (`leave`).",
    )

    @property
    def resources(self) -> PageResources:
        """From where it fetches what pages need to be shown."""
        return PageResources(self.page_resources) if self.page_requisites else PageResources.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSettings:
    """`[mount]`."""

    commit_interval: float = setting(validators.number(0.05, 3600), 1.0, "Seconds until additions are committed.")
    settle: float = setting(
        validators.number(0, 3600), 60.0, "Seconds for which the maker of an addition may change or remove it."
    )
    strict_schema: bool = setting(validators.boolean, False, "Reject data nodes that have no schema in xsd/.")
    query_seconds: float = setting(validators.number(0.05, 3600), 10.0, "Seconds for a condition in .query/.")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """`[index]`."""

    links: bool = setting(validators.boolean, True, "Keep the links of pages, for `webarc links`.")
    search: bool = setting(
        validators.boolean, True, "Keep the words of documents, for `webarc search`; needs webarcfs[search]."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """`[profile.NAME]`: MIME types by name; a type that matches no include or any exclude is refused."""

    include: tuple[str, ...] = setting(
        validators.list_of(validators.mime_pattern), (), "MIME types to keep; none means all."
    )
    exclude: tuple[str, ...] = setting(validators.list_of(validators.mime_pattern), (), "MIME types to reject.")
    description: str = setting(validators.text, "", "What it is for, for people.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSettings:
    """`[describe]`: what the record of a capture says where nobody says otherwise. A publication may override each."""

    signature: str = setting(validators.text, "", "Signature of the fonds (field 2); else the publication's name.")
    provenance: str = setting(validators.text, "", "The office in charge (field 3); else the host of its start URL.")
    project: str = setting(validators.text, "Internet", "Project (field 4).")
    institution: str = setting(validators.text, "", "The archive, as publisher in Dublin Core.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSettings:
    """`[backup]`: a backup that follows captures, as a step of each snapshot (fields 65 to 73)."""

    to: str = setting(validators.text, "", "The folder of the backup, on another disk. None: no step makes one.")
    medium: str = setting(validators.text, "", "Medium (field 71).")
    after: str = setting(validators.one_of("capture", "release"), "capture", "The step that it follows.")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """`[notify]`: who is told when something goes wrong, and how. Without a program, address or URL: nobody."""

    mail: tuple[str, ...] = setting(
        validators.one_or_list_of(validators.mail_address), (), "Mail addresses that get a mail for each notification."
    )
    mail_from: str = setting(
        validators.sender, "", "Mail address that they come from; none: the user of the agent at this machine."
    )
    sendmail: str = setting(
        validators.file_path, "/usr/sbin/sendmail", "The program that sends mail, as Postfix, Exim and msmtp have it."
    )
    webhook: tuple[str, ...] = setting(
        validators.one_or_list_of(validators.web_address), (), "URLs that get each notification as JSON, by POST."
    )
    webhook_secret: str = setting(
        validators.file_path,
        "",
        "File of mode 0600 with the secret that signs these requests, `whsec_` and base64, as Standard Webhooks has "
        "it; none: they are not signed.",
    )
    private_addresses: bool = setting(
        validators.boolean, False, "Whether these URLs may be at addresses of one's own network or machine."
    )
    command: tuple[str, ...] = setting(
        validators.command_line,
        (),
        "Program with its arguments that is run for each notification, which it gets as JSON on its standard input.",
    )
    events: tuple[str, ...] = setting(
        validators.list_of(validators.one_of(*NotificationKind)),
        tuple(NotificationKind),
        "What is told: a crawl failed, is incomplete or found much less; nothing was captured for two intervals; a "
        "check found something; a crawl waits for its release; disk, backup, index or agent need care; "
        "something could not be read; it is over.",
    )
    digest: str = setting(
        validators.time_of_day,
        "08:00",
        "Time of the day (CET) at which what is still so is told again, all together, or `never`.",
    )
    disk_free: int = setting(
        validators.size, 0, "Bytes of free disk below which that is told; 0 is 2 GiB, or a twentieth of a small disk."
    )
    backup_age: Interval = setting(validators.interval, Interval(1, "week"), "Age at which a backup is old.")
    index_age: Interval = setting(
        validators.interval, Interval(1, "hour"), "Time for which the full-text index may be behind."
    )

    @property
    def tells_anybody(self) -> bool:
        """Whether there is any way by which somebody is told."""
        return bool(self.mail or self.webhook or self.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadersSettings:
    """`[readers]`: how servers for readers learn a reader's name."""

    header: str = setting(validators.text, "", "The header in which a trusted proxy names the reader.")
    proxies: tuple[str, ...] = setting(
        validators.list_of(validators.network), (), "Addresses and networks of the proxies that are trusted."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskSettings(ReadersSettings):
    """`[desk]`: how the desk learns who works at it, where a proxy in front of it asks for passwords."""


class LogFormat(StrEnum):
    """How lines of logs are written (`format`)."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """`[log]`: the lines that the agent, the desk and the reading room log. An option `--log-format` overrides it."""

    format: str = setting(
        validators.one_of(*LogFormat), LogFormat.TEXT, "Whether each line is text, or a JSON object for programs."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """`[metrics]`: where the agent answers monitoring systems."""

    listen: str = setting(
        validators.listen_address,
        "",
        "A port of this machine such as 9464, HOST:PORT or unix:PATH, for OpenMetrics at /metrics. None: nowhere.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveSettings:
    """`[save]`: pages that people save one by one, and where readers are led who want one saved."""

    address: str = setting(
        validators.server_address,
        "",
        "The desk's address, such as https://desk.example.org: notices of the reading room on pages that are not in "
        "the archive then link to its form. None: they have no link.",
    )
    release: str = setting(
        validators.one_of("", *Release), "", "When readers may see a saved page. None: as the archive's own value says."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """`[[publication.exclude]]`: a part of a site that is left out, and why."""

    match: str = setting(validators.url_pattern, "", "A host, or a host and a path; `*` matches any characters.")
    reason: str = setting(validators.text, "", "Why; kept in the catalogue.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """`[[publication.server]]`: settings of one server, or of all that match. The first that matches holds."""

    host: str = setting(validators.text, "", "The host, in which `*` matches any characters.")
    depth: int | None = setting(
        validators.whole(0), None, "How many links away from the page by which the crawl came to the server."
    )
    max_documents: int | None = setting(validators.whole(0), None, "Documents that a crawl fetches; 0 is no limit.")
    wait: float | None = setting(validators.number(0, 86400), None, "Seconds between two requests.")
    certificates: str | None = setting(
        validators.one_of(*Certificates), None, "`any`: its certificate is not checked; `check`: it is."
    )
    fetcher: str | None = setting(validators.one_of(*Fetcher), None, "Whether a browser shows its pages.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserRule:
    """`[[publication.browser]]`: pages that a browser shows, whatever `fetcher` says."""

    match: str = setting(validators.path_pattern, "", "A path such as /app/*; `*` matches any characters.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Click:
    """`[[publication.click]]`: a button that a browser clicks on each page, such as that of a consent."""

    text: str = setting(validators.text, "", "The whole text of the button or link.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSettings:
    """`[browser]`: the browser of this machine, for all publications."""

    program: str = setting(validators.file_path, "", "Chromium; else the first `chromium` on the path.")
    user: str = setting(validators.text, "nobody", "As whom root runs it; others run it as themselves.")
    memory: int = setting(validators.size, 1_500_000_000, "Bytes of memory that it may have.")
    pages: int = setting(validators.whole(1), 200, "Pages after which another one is started.")
    browsers: int = setting(validators.whole(1), 1, "Browsers at a time, over all jobs.")
    window: str = setting(validators.window, "1280x900", "Width and height of its window.")

    @property
    def window_size(self) -> tuple[int, int]:
        """Width and height of its window, in pixels."""
        width, _, height = self.window.partition("x")
        return int(width), int(height)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSecret:
    """`[[publication.login]]`, `.cookies`, `.headers`: what single hosts are shown, in a private file."""

    hosts: tuple[str, ...] = setting(
        validators.list_of(validators.origin),
        (),
        "The hosts that get it, by https; `http://www.example.org` gets it by http.",
    )
    file: str = setting(validators.file_path, "", "The file, of mode 0600.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingRule:
    """`[[publication.rule]]`: what a reading room does with a form or a link that leads out of what is archived."""

    match: str = setting(validators.text, "", "A part of the form's or link's URL; `*` matches any characters.")
    on: str = setting(validators.one_of("form", "link"), "link", "What it is for.")
    does: str = setting(validators.one_of("search", "select-page", "notice"), "notice", "What happens.")
    term: str = setting(validators.text, "", "For a search: the field of the form with the words.")
    text: str = setting(validators.text, "", "For a notice: its text, or a word for one.")
    since: datetime | None = setting(validators.time, None, "Captures from this time on.", key="from")
    until: datetime | None = setting(validators.time, None, "Captures until this time.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePage:
    """`[[publication.check]]`: a page that is looked at in each new snapshot (reference page)."""

    url: str = setting(validators.url, "", "The page.")
    name: str = setting(validators.text, "", "What people call it; else its URL.")
    expects: str = setting(
        validators.one_of("page", "text", "external", "excluded", "mailto"), "page", "What it must have."
    )
    text: str = setting(
        validators.text, "", "The words, for `text`; a part of the link's URL for `external`, `excluded`, `mailto`."
    )
    by: str = setting(validators.one_of("system", "person"), "system", "Who looks at it.")
    since: datetime | None = setting(validators.time, None, "Captures from this time on.", key="from")
    until: datetime | None = setting(validators.time, None, "Captures until this time.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPageMark:
    """`[[publication.error_page]]`: what shows that a page with status 200 is an error page."""

    contains: str = setting(validators.text, "", "A text that such a page has in its source.")
    since: datetime | None = setting(validators.time, None, "Captures from this time on.", key="from")
    until: datetime | None = setting(validators.time, None, "Captures until this time.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """`[[publication]]`: a configured source. `crawl` is `[crawl]`, overridden by the publication's own values."""

    name: str = required(validators.name)
    urls: tuple[str, ...] = required(validators.list_of(validators.url))
    list: str = setting(
        validators.text, "", "A file with further start URLs: text, bookmarks, OPML, a feed or a sitemap."
    )
    watch: str = setting(
        validators.feed_url, "", "A feed instead of start URLs: each crawl captures the pages of its new items, once."
    )
    start: datetime | None = setting(validators.time, None, "When its first crawl is due.")
    hosts: tuple[str, ...] = setting(
        validators.list_of(validators.text), (), "Hosts accepted beside those of the start URLs."
    )
    exclude_hosts: tuple[str, ...] = setting(validators.list_of(validators.text), (), "Hosts that are never requested.")
    required_hosts: tuple[str, ...] = setting(
        validators.list_of(validators.text), (), "Hosts that must be complete before `when-checked` releases a crawl."
    )
    profile: str | None = setting(validators.text, None, "The profile of MIME types that its documents must fit.")
    release: str = setting(_RELEASE, Release.AUTOMATIC, f"{_RELEASE_HELP} The archive's own value holds else.")
    closed_for: Interval | None = setting(
        validators.interval, None, f"{_CLOSED_FOR_HELP} The archive's own value holds else."
    )
    description: str = setting(validators.text, "", "What it is, for people.")
    note: str = setting(validators.text, "", "Why it is archived as it is: decisions of appraisal, with their dates.")
    additions: str = setting(
        validators.one_of("shown", "staff"), "shown", "Whether readers see what was added to its pages."
    )
    exclude: tuple[Exclusion, ...] = setting(tables(Exclusion), (), "Parts of its sites that are left out.")
    server: tuple[ServerSettings, ...] = setting(tables(ServerSettings), (), "Settings of single servers.")
    browser: tuple[BrowserRule, ...] = setting(tables(BrowserRule), (), "Pages that a browser shows.")
    click: tuple[Click, ...] = setting(tables(Click), (), "Buttons that a browser clicks on each page.")
    login: tuple[HostSecret, ...] = setting(
        tables(HostSecret), (), "Files with user:password for hosts that ask for one (Basic)."
    )
    cookies: tuple[HostSecret, ...] = setting(
        tables(HostSecret), (), "Files with cookies for hosts: cookies.txt, or lines name=value."
    )
    headers: tuple[HostSecret, ...] = setting(
        tables(HostSecret), (), "Files with header fields for hosts: lines Name: value."
    )
    retired: bool = setting(validators.boolean, False, "It is kept, and not crawled any more.")
    retired_since: datetime | None = setting(validators.time, None, "When it was retired; written by `retire`.")
    retired_reason: str = setting(validators.text, "", "Why it was retired.")
    rule: tuple[LeavingRule, ...] = setting(tables(LeavingRule), (), "What a reading room does with forms and links.")
    check: tuple[ReferencePage, ...] = setting(tables(ReferencePage), (), "Pages that the step `check` looks at.")
    checks: tuple[str, ...] = setting(
        validators.list_of(validators.function), (), "Further checks, each as `package.module:function`."
    )
    check_search: str = setting(validators.text, "", "A word that a search in each new crawl must find.")
    check_bounds: float = setting(
        validators.number(0, 100),
        0.5,
        "By which share bytes and documents may differ from the crawl before; 0: any.",
    )
    check_pictures: int = setting(
        validators.whole(0, 20),
        0,
        "Pages of a crawl whose pictures are compared with what replay shows of them; 0: none.",
    )
    check_likeness: float = setting(
        validators.number(0, 1), 0.8, "How like such pictures must be: the part of their content that looks alike."
    )
    error_page: tuple[ErrorPageMark, ...] = setting(
        tables(ErrorPageMark), (), "How error pages show themselves that were sent as pages."
    )
    step_by_step: bool = setting(validators.boolean, False, f"{_STEPS_HELP} The archive's own value holds else.")
    two_persons: bool = setting(validators.boolean, False, f"{_TWO_HELP} The archive's own value holds else.")
    describe: DescribeSettings = DescribeSettings()
    crawl: CrawlSettings = CrawlSettings()

    @property
    def named_urls(self) -> tuple[str, ...]:
        """The URLs that a person wrote into it: its start URLs, or the feed that it watches."""
        return (*self.urls, self.watch) if self.watch else self.urls

    @property
    def is_held(self) -> bool:
        """Whether its captures are hidden from readers for a while after publication."""
        return self.release != Release.AUTOMATIC or self.closed_for is not None

    @property
    def is_saved(self) -> bool:
        """Whether it has single pages that people saved: a URL among them that is private permits nothing by itself."""
        return self.name.startswith(SAVED)

    @property
    def has_secrets(self) -> bool:
        """Whether servers are shown what nobody else may know."""
        return bool(self.login or self.cookies or self.headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSettings:
    """Top-level keys: how captures get to readers, for publications without keys of their own."""

    release: str = setting(_RELEASE, Release.AUTOMATIC, _RELEASE_HELP)
    closed_for: Interval | None = setting(validators.interval, None, _CLOSED_FOR_HELP)
    step_by_step: bool = setting(validators.boolean, False, _STEPS_HELP)
    two_persons: bool = setting(validators.boolean, False, _TWO_HELP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of webarc.toml."""

    release: ReleaseSettings = ReleaseSettings()
    crawl: CrawlSettings = CrawlSettings()
    mount: MountSettings = MountSettings()
    index: IndexSettings = IndexSettings()
    describe: DescribeSettings = DescribeSettings()
    backup: BackupSettings = BackupSettings()
    browser: BrowserSettings = BrowserSettings()
    notify: NotifySettings = NotifySettings()
    readers: ReadersSettings = ReadersSettings()
    desk: DeskSettings = DeskSettings()
    save: SaveSettings = SaveSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    publications: tuple[Publication, ...] = ()

    def unlisted(self, name: str, urls: tuple[str, ...] = (), **more: Any) -> Publication:
        """Return a publication that webarc.toml does not list, with the archive's settings."""
        own = {
            "crawl": self.crawl,
            "describe": self.describe,
            "release": self.release.release,
            "closed_for": self.release.closed_for,
            "step_by_step": self.release.step_by_step,
            "two_persons": self.release.two_persons,
        }
        return Publication(name=name, urls=urls, **{**own, **more})


def with_newer_words(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a crawl in which what is said with a newer word holds, whatever an older one says above."""
    newer = "page_resources" in values and "page_requisites" not in values
    return {**values, "page_requisites": True} if newer else dict(values)


def override(crawl: CrawlSettings, values: Mapping[str, Any], source: str) -> CrawlSettings:
    """Return `crawl` with some settings replaced (/Cr-2.1/). Raises SettingsError with all faults."""
    faults: list[str] = []
    result = read_table(CrawlSettings, with_newer_words(values), "", faults, crawl)
    if faults:
        raise SettingsError(source, faults)
    return result
