"""One URL asked for by each of the two fetchers, in the way in which crawls use them."""

from __future__ import annotations

import dataclasses
import io
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.crawl import wget
from agent.crawl.frontier import FrontierUrl
from agent.crawl.http_connections import Connector, FetchBounds, Proxies
from agent.crawl.http_fetcher import HttpFetcher, HttpRequest
from agent.crawl.vocabulary import LinkKind, UrlState
from tests.support.waiting import PATIENCE
from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model.errors import FetchFailed
from webarcfs.archive.model.urls import domain_of
from webarcfs.warc import job_warc
from webarcfs.warc.decoding import body_of, decoded
from webarcfs.warc.http_response import parse_head


@dataclass(frozen=True)
class Fetched:
    """What came of a URL: the HTTP status or the fetch status, the words, and the body without its codings."""

    status: int
    words: frozenset[str]
    body: bytes = b""


Fetcher = Callable[..., Fetched]


def by_wget(
    folder: Path,
    url: str,
    settings: CrawlSettings,
    *,
    checked: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Fetched:
    """Ask by one run of wget, whose log and WARC are read as a crawl's."""
    folder.mkdir(parents=True, exist_ok=True)
    files = wget.BatchFiles(folder, 1 + sum(1 for _ in folder.glob("*.list")))
    wget.write_list(files, [url])
    command = wget.command(files, settings, 0, folder / "cookies", checked=checked)
    variables = {name: value for name, value in wget.environment().items() if not name.endswith("_proxy")}
    variables |= environment or {}
    if settings.proxy:
        given = wget.environment(settings.proxy)
        variables |= {name: given[name] for name in ("http_proxy", "https_proxy")}
    subprocess.run(command, env=variables, cwd=folder, check=False, timeout=PATIENCE)
    batch = wget.Batch([_row(url)], files.warc, wget.read_log(files), None)
    (result,) = wget.answers(batch, wget.Limits(settings.max_file_size, keep_errors=True), time.time())
    outcome = result.settled
    body = b""
    if outcome.state == UrlState.DONE and outcome.size:
        with files.warc.open("rb") as file:
            body = b"".join(body_of(job_warc.response_at(file, outcome.position)))
    return Fetched(outcome.status, frozenset(filter(None, outcome.note.split(","))), body)


def by_http_fetcher(
    _: Path,
    url: str,
    settings: CrawlSettings,
    *,
    checked: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Fetched:
    """Ask by our own fetcher, with the bounds that a crawl of these settings has."""
    bounds = FetchBounds(settings.timeout, 60.0, settings.max_file_size, public=False, checked=checked)
    proxies = Proxies(settings.proxy, environment or {})
    fetcher = HttpFetcher(Connector(ca=settings.ca, bind=settings.bind, proxies=proxies))
    try:
        response = fetcher.fetch(HttpRequest(url), bounds)
    except FetchFailed as failure:
        return Fetched(int(failure.status), frozenset(failure.note.split(",")))
    finally:
        fetcher.close()
    words = filter(None, (*response.faults.split(","), response.cut))
    head = parse_head(response.head)
    assert head is not None
    body = b"" if response.cut else b"".join(decoded(io.BytesIO(response.raw), head, len(response.raw)))
    return Fetched(response.status, frozenset(words), body)


FETCHERS: dict[str, Fetcher] = {"wget": by_wget, "http_fetcher": by_http_fetcher}


def _row(url: str) -> FrontierUrl:
    values: dict[str, object] = {
        attribute.name: "" if attribute.type == "str" else 0 for attribute in dataclasses.fields(FrontierUrl)
    }
    values.update(id=1, url=url, domain=domain_of(url), kind=LinkKind.LINK, found_on=None, state=UrlState.FETCHING)
    return FrontierUrl(**values)  # type: ignore[arg-type]
