"""The archive for Python programs: documents, their files and data nodes, snapshots, news (/Cl-2/ … /Cl-11/).

    from webarcfs.client import WebarchiveClient

    with WebarchiveClient("/mnt/archive") as client:
        for meta in client.select("mimeType = 'text/html'", "crawlTime DESC", limit=10):
            print(meta.title, len(client.open_read(meta, client.data_name(meta)).read()))

An `ArchiveSource` answers: `LocalSource` for a mount or an archive's directory, `RemoteSource` for a server's URL, with
the same errors. Those are of `webarcfs.archive.model.errors`, never bare OSErrors; those of system calls on a mount are
translated. Safe for any thread.

A thread follows the feed and delivers new commitTags to observers (/Cl-3/ … /Cl-5/, /Sv-5/).
"""

from __future__ import annotations

import builtins
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from xml.etree import ElementTree

from webarcfs.archive.index.query import ANY_ORIGIN, SECONDS, DocumentOrigin
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import InvalidDocument, UsageError
from webarcfs.archive.model.metadata import CommitTag, MetaData
from webarcfs.client.client_file import address_of
from webarcfs.client.observers import INTERVAL, FeedPosition, News, Observer
from webarcfs.client.server_address import ServerAddress, is_url
from webarcfs.client.source import LARGE, ArchiveSource, ArcListing, ReadDocument

if TYPE_CHECKING:
    from webarcfs.archive.catalogue.record import Record
    from webarcfs.archive.config.directory import Archive
    from webarcfs.archive.index.links import FoundLink, Question
    from webarcfs.search.hits import SearchAnswer

__all__ = ["CommitTag", "MetaData", "Observer", "WebarchiveClient"]


class WebarchiveClient:
    """Access to one archive (/Cl-2.2/): `place` is its directory, a mount (or a path inside one), or a server's URL.

    Without a place it is the server of the section `[client]` in the user's webarcfs.toml (/Cl-1/). The `token` for a
    server is else that of $WEBARC_TOKEN. It goes over plain http to this machine only, unless `token_over_http`: others
    could read it.

    `interval` is the time between two checks for observers' news, in seconds (/Sv-5.1/); from a server news come at
    once, but not sooner after others. With the name of a `reader` (empty: the public), the client shows what that
    reader may see, of an archive's directory only. Raises NotAnArchive, UsageError, SettingsError.
    """

    #: The mount and the archive's directory, where there are such.
    mount: Path | None
    archive: Archive | None

    def __init__(
        self,
        place: str | os.PathLike[str] | None = None,
        *,
        interval: float = INTERVAL,
        reader: str | None = None,
        token: str | None = None,
        token_over_http: bool = False,
    ) -> None:
        name = None if place is None else os.fspath(place)
        if name is None or is_url(name):
            if reader is not None:
                raise UsageError("a server knows its readers itself; a reader's client needs the archive's directory")
            address = address_of(name, token, token_over_http=token_over_http)
            self._answer_from(_remote_source(address), interval)
        else:
            if token is not None:
                raise UsageError(f"a token is for a server, and {name} is no URL of one")
            self._answer_from(_local_source(Path(name), reader), interval)

    @classmethod
    def of(cls, source: ArchiveSource, *, interval: float = INTERVAL) -> WebarchiveClient:
        """Return a client of an archive that is open already; closing the client closes that."""
        client = cls.__new__(cls)
        client._answer_from(source, interval)
        return client

    def _answer_from(self, source: ArchiveSource, interval: float) -> None:
        self.mount, self.archive = source.mount, source.archive
        self._source = source
        self._news = News(source.feed, interval)

    def __enter__(self) -> WebarchiveClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the observers' thread, after the deliveries under way."""
        self._news.stop()
        self._source.close()

    # -- documents ---------------------------------------------------------------------------------------------------

    def select(
        self, where: str = "", order_by: str = "", limit: int | None = None, *, origin: DocumentOrigin = ANY_ORIGIN
    ) -> builtins.list[MetaData]:
        """Return the documents for which an SQL condition holds, one for each snapshot that has them (/Cl-6/).

        `origin` leaves those of a domain, or those that a publication stored. Raises BadCondition, TookTooLong;
        `webarc query --help` describes conditions.
        """
        return self._source.select(where, order_by, limit, origin)

    def search(self, words: str, **narrowing: Any) -> SearchAnswer:
        """Return URLs with words, in the language of `webarc search --help`: 20 hits, and the number of all.

        `narrowing` are the fields of `webarcfs.search.hits.SearchQuestion`: `at` (a CommitTag or a time),
        `present`, `during`, `domain`, `type`, `language`, `publication`, `record`, `sort`, `limit`, `offset`, …. Raises
        BadCondition, NotFound without an index, UsageError without the libraries of webarcfs[search].
        """
        return self._source.search(words, narrowing)

    def links(self, question: Question, seconds: float = SECONDS) -> Iterator[FoundLink]:
        """Yield links of pages, with the ARC of each target that is archived; `Question` says which.

        Raises NotFound without links.db, TookTooLong.
        """
        return self._source.links(question, seconds)

    def document(self, commit_tag: CommitTag | str, path: str) -> MetaData:
        """Return the document at `path` (`/<domain>/…`) in a snapshot, as `at` has it. Raises NotFound."""
        return self._source.document(_tag(commit_tag), path)

    def listing(self, meta: MetaData) -> ArcListing:
        """Return what a document's ARC has in its snapshot, as git has it: names, sizes, ids. Raises NotFound."""
        return self._source.listing(meta)

    def list(self, meta: MetaData) -> builtins.list[str]:
        """Return the names in a document's ARC in its snapshot, additions included (/Cl-7/). Raises NotFound."""
        return self._source.names(meta)

    def data_name(self, meta: MetaData) -> str:
        """Return the name of the document's data file (`data.html`). Raises NotFound."""
        return self._source.data_name(meta)

    def open_read(self, meta: MetaData, name: str) -> BinaryIO:
        """Open a file of the document's ARC as a stream (/Cl-8/): `name` may be in users' folders. Raises NotFound."""
        return self._source.read(meta, name)

    @contextmanager
    def open_write(self, meta: MetaData, name: str) -> Iterator[BinaryIO]:
        """Open a new file in the document's ARC as a stream (/Cl-9/); it is kept if the `with` block raises nothing.

        Raises Exists for an existing name, Stale when a crawl replaced the document (/Ar-10/), NotPermitted where no
        addition is allowed, or for a client of a directory. On a server they may be raised at the end of the block.
        """
        # A file that is closed stays for ever, so nothing from a failed block may get there.
        with self._source.adding(meta, name) as keep, tempfile.SpooledTemporaryFile(LARGE) as spooled:
            body = cast(BinaryIO, spooled)
            yield body
            body.seek(0)
            keep(body)

    # -- data nodes --------------------------------------------------------------------------------------------------

    def get_data(self, meta: MetaData, tag: str) -> ElementTree.Element | None:
        """Return the data node of an expanded name (`words`, `{urn:x}words`), or None (/Cl-10/)."""
        from webarcfs.archive.document.data_xml import data_node  # noqa: PLC0415 # its library takes a while

        with self.open_read(meta, DATA_XML) as stream:
            return data_node(stream.read(), tag)

    def add_data(self, meta: MetaData, tag: str, element: ElementTree.Element | str) -> None:
        """Add a data node (/Cl-11/): `element`, whose expanded name must be `tag`, or the text of a new element.

        Raises Exists for an existing name, InvalidDocument when a schema of the archive does not allow it, Stale,
        NotPermitted as `open_write` does.
        """
        if isinstance(element, str):
            text, element = element, ElementTree.Element(tag)
            element.text = text
        if element.tag != tag:
            raise InvalidDocument(f"the element is called {element.tag}, not {tag}")
        node = ElementTree.tostring(element, "unicode").encode("utf-8", "xmlcharrefreplace")
        self._source.add_node(meta, tag, node)

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def domains(self) -> builtins.list[str]:
        """Return the domains of the archive, in order."""
        return self._source.domains()

    def records(self, publication: str | None = None) -> Iterator[Record]:
        """Yield the records of captures, or of a publication's, newest first: those that the client may see.

        Raises Damaged.
        """
        return self._source.records(publication)

    def snapshots(self, domain: str) -> builtins.list[CommitTag]:
        """Return the commitTags of a domain, oldest first. Raises NotFound."""
        return self._source.snapshots(domain)

    def at(self, commit_tag: CommitTag | str, *, after: str = "") -> Iterator[MetaData]:
        """Yield all documents of a snapshot, by folders; as `select`, but read from git. Raises NotFound.

        `after` is the path of a document (`/<domain>/…`): it yields those that come after that one.
        """
        return self._source.documents(_tag(commit_tag), after)

    def changed(self, commit_tag: CommitTag | str) -> Iterator[MetaData]:
        """Yield the documents that a snapshot added, or of which it stored another version. Raises NotFound."""
        return self._source.changed(_tag(commit_tag))

    def read_all(self, commit_tag: CommitTag | str) -> Iterator[ReadDocument]:
        """Yield all documents of a snapshot with the files of their ARCs, as `at` and `open_read` have them.

        Whoever reads much of a snapshot reads it so: from a server in one stream. Additions are there as far as git has
        them. Raises NotFound.
        """
        return _closing_each(self._source.read_all(_tag(commit_tag)))

    # -- news --------------------------------------------------------------------------------------------------------

    def published(self, since: CommitTag | str | None = None) -> builtins.list[CommitTag]:
        """Return the commitTags of the archive in the order of their publication; those after `since`, if given.

        Raises NotFound when the feed has no such tag.
        """
        tags, _ = self._source.feed.after(FeedPosition("" if since is None else str(_tag(since))))
        return [tag for tag in tags if self._source.is_shown(tag)]

    def add_observer(self, observer: Observer, since: CommitTag | str | None = None) -> None:
        """Call `observer` with the list of new commitTags, in order, from a thread of its own (/Cl-4/, /Cl-5/).

        It begins after `since`, the last tag that it remembers, or with later publications only. A call that raises is
        logged, and its tags are delivered again, with newer ones. A reader's observer gets the tags that the reader may
        see when they are delivered. Raises NotFound when the feed has no such tag.
        """
        self._news.add(observer, None if since is None else str(_tag(since)), self._source.is_shown)

    def remove_observer(self, observer: Observer) -> None:
        """Stop calling it; on return no call is under way, unless the observer itself is the caller."""
        self._news.remove(observer)


def _local_source(place: Path, reader: str | None) -> ArchiveSource:
    from webarcfs.client.local_source import LocalSource  # noqa: PLC0415 # its libraries are no need of a server's client

    return LocalSource(place, reader)


def _remote_source(address: ServerAddress) -> ArchiveSource:
    from webarcfs.client.remote_source import RemoteSource  # noqa: PLC0415 # no need of a local archive's client

    return RemoteSource(address)


def _tag(tag: CommitTag | str) -> CommitTag:
    return tag if isinstance(tag, CommitTag) else CommitTag.parse(tag)


def _closing_each(documents: Iterator[ReadDocument]) -> Iterator[ReadDocument]:
    """Yield documents, and close each before the next."""
    for document in documents:
        try:
            yield document
        finally:
            document.close()
