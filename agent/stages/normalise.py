"""Stage 4, normalise: assigns each document its ARC and the name of its data file (/Cr-8.2/, /Cr-11/).

Two URLs of one crawl may share an ARC (http and https, `/` and `/index.html`). https takes precedence over http, then
the URL of the directory, then the URL found first. crawl.log names the winner at each loser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from agent.frontier.rows import FrontierUrl
from agent.pipeline.document import Document, replace
from agent.pipeline.domainrun import DomainRun
from agent.policy.vocabulary import Reason, Result
from webarcfs.archive.model.arc_paths import data_name


def normalise(documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
    """Yield the documents that win their ARC, with the name of its data file."""
    losers = _losers(run.job.frontier.rivals(run.domain))
    for document in documents:
        if document.row in losers:
            run.note(document.row, Result.DUPLICATE, document.mime_type, losers[document.row])
            document.body.close()
        else:
            yield replace(document, data_name=data_name(document.url))


def _losers(rivals: Iterable[FrontierUrl]) -> dict[int, str]:
    """Return row → note, for the responses that lose their ARC to another response."""
    losers = {}
    for _, group in groupby(rivals, key=lambda row: row.arc):
        winner, *rest = sorted(group, key=_rank)
        for row in rest:
            what = Reason.SAME_AS if row.digest == winner.digest else Reason.DIFFERS_FROM
            losers[row.id] = f"{what}{winner.url}"
    return losers


def _rank(row: FrontierUrl) -> tuple[bool, bool, int]:
    return not row.url.startswith("https:"), not row.url.partition("?")[0].endswith("/"), row.id
