"""The links of a page as it was archived last: they stand in for those of a page that could not be fetched.

Without them, pages that only a failing page links to would count as no longer linked, and their ARCs would go.
"""

from __future__ import annotations

from agent import links, sniff, text
from webarcfs.archive import arcxml
from webarcfs.archive.directory import Archive
from webarcfs.archive.errors import WebarcError
from webarcfs.archive.layout import DATA_XML, arc_path, data_name, split
from webarcfs.archive.store import Store


def archived_links(archive: Archive, url: str) -> list[links.Link]:
    """The links of the archived version of `url`; none where there is none, or it cannot be read."""
    domain, arc = split(arc_path(url))
    try:
        store = Store(archive.repository(domain))
        head = store.head()
        data = store.find(head.tree, f"{arc}/{data_name(url)}") if head else None
        xml = store.find(head.tree, f"{arc}/{DATA_XML}") if head else None
        if data is None or xml is None or store.size(data.oid) > links.LONGEST_BODY:
            return []
        body = store.read(data.oid)
        mime_type = arcxml.metadata(store.read(xml.oid)).mime_type
    except WebarcError:
        return []  # not archived yet; or damaged, which is for `verify` to name, while a crawl goes on
    return links.links_of(body, url, mime_type, text.decode_charset(body[: sniff.SAMPLE], ""))
