"""Pages as the archive has them: their links, and the conditions under which a server need not send them again.

The links replace those of a page that was not fetched. Without them, pages that only this page links to would count as
no longer linked, and their ARCs would be removed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, arc_path, data_name, places, split
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import OK
from webarcfs.content import mimetype, outlinks, text
from webarcfs.warc import http_response

#: Response field → the request field that makes a request conditional on it (RFC 9110 section 13.1).
_CONDITIONS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
#: Values that are sent back: an entity tag or a date, which a server may have made up.
_VALUE = re.compile(r"[ !#-~\x22]{1,200}", re.ASCII)
_LARGEST_HEAD = 1 << 16
#: Repositories that stay open.
_REPOSITORIES = 16


@dataclass(frozen=True, slots=True)
class ArchivedPage:
    """A page in the newest state of its domain: git's ids of its body and head, its MIME type, its status."""

    url: str
    body: str
    head: str
    mime_type: str
    status: int


class ArchivedPages:
    """Reads pages from the newest states of an archive's domains. For one thread."""

    def __init__(self, archive: Archive) -> None:
        self._open = lru_cache(_REPOSITORIES)(lambda domain: Repository(archive.repository(domain)))

    def links(self, url: str) -> list[outlinks.Link]:
        """Return the links of the page at `url`; none if there is no page, or it cannot be read."""
        try:
            page = self._page(url)
            store = self._store(url)
            if page is None or store.size(page.body) > outlinks.LONGEST_BODY:
                return []
            body = store.read(page.body)
            head = http_response.parse_head(store.read(page.head)) if store.size(page.head) <= _LARGEST_HEAD else None
        except WebarcError:
            return []  # not archived yet, or damaged: `verify` reports damage, a crawl continues
        charset = text.decode_charset(body[: mimetype.SAMPLE], "" if head is None else head.content_type)
        return outlinks.links_of(body, url, page.mime_type, charset)

    def mime_type(self, url: str) -> str | None:
        """Return the MIME type of the page that was stored for this very URL; None if there is none."""
        try:
            page = self._page(url)
        except WebarcError:
            return None
        return page.mime_type if page is not None and page.url == url and page.status == OK else None

    def conditions(self, url: str) -> Mapping[str, str]:
        """Return request fields for `url` by which a server sends the page only if it is not the archived one.

        Empty if the page must be requested in full: it was not stored for this very URL, is an error page, or came
        without an entity tag and a date.
        """
        try:
            page = self._page(url)
            store = self._store(url)
            if page is None or page.url != url or page.status != OK or store.size(page.head) > _LARGEST_HEAD:
                return {}
            head = http_response.parse_head(store.read(page.head))
        except WebarcError:
            return {}
        if head is None or head.status != OK:
            return {}
        values = {asked: head.get(sent) for sent, asked in _CONDITIONS.items()}
        return {asked: value for asked, value in values.items() if _VALUE.fullmatch(value)}

    def _store(self, url: str) -> Repository:
        store: Repository = self._open(split(arc_path(url))[0])
        return store

    def _page(self, url: str) -> ArchivedPage | None:
        store = self._store(url)
        head = store.head()
        if head is None:
            return None
        names = (data_name(url), HEADERS, DATA_XML)
        for arc in places(url):
            body, answer, xml = (store.find(head.tree, f"{arc}/{name}") for name in names)
            if body is not None and answer is not None and xml is not None:
                meta = data_xml.metadata(store.read(xml.oid))
                return ArchivedPage(meta.url, body.oid, answer.oid, meta.mime_type, meta.status)
        return None
