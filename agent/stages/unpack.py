"""Stage 2, unpack: makes documents from WARC records, with decoded bodies and the heads as received."""

from __future__ import annotations

from collections.abc import Iterator

from agent.capture.wgetcommand import BatchFiles
from agent.frontier.rows import FrontierUrl
from agent.pipeline.document import Body, Document
from agent.pipeline.domainrun import DomainRun
from agent.policy.vocabulary import Reason, Result
from webarcfs.archive.model.metadata import RESOURCE, parse_time
from webarcfs.warc import decoding, http_response, jobwarc


def unpack(documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
    """Yield the job's documents of this domain, after those given. Each WARC is read once, from start to end."""
    yield from documents
    frontier = run.job.frontier
    for batch in frontier.document_batches(run.domain):
        path = BatchFiles(run.job.folder, batch).warc
        with path.open("rb") as file:
            for row in frontier.documents(run.domain, batch):
                document = _document(row, jobwarc.response_at(file, row.position), run)
                if document is not None:
                    yield document


def _document(row: FrontierUrl, response: http_response.Response, run: DomainRun) -> Document | None:
    body = Body(run.job.folder)
    try:
        for part in decoding.body_of(response):
            body.write(part)
    except decoding.BadBody as error:
        body.close()
        run.note(row.id, Result.UNDECODABLE, note=str(error))
        return None
    return Document(
        row=row.id,
        url=row.url,
        status=response.head.document_status,
        head=response.head,
        body=body,
        captured=parse_time(row.captured) if row.captured else response.date,
        folder=run.job.folder,
        arc=row.arc,
        source=RESOURCE if Reason.RESOURCE in row.note.split(",") else "",
    )
