"""The links of a page's last archived version. They replace the links of a page that could not be fetched.

Without them, pages that only a failing page links to would count as no longer linked, and their ARCs would be removed.
"""

from __future__ import annotations

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import DATA_XML, arc_path, data_name, split
from webarcfs.archive.model.errors import WebarcError
from webarcfs.content import mimetype, outlinks, text


def archived_links(archive: Archive, url: str) -> list[outlinks.Link]:
    """Return the links of the archived version of `url`; none if no version exists or it cannot be read."""
    domain, arc = split(arc_path(url))
    try:
        store = Repository(archive.repository(domain))
        head = store.head()
        data = store.find(head.tree, f"{arc}/{data_name(url)}") if head else None
        xml = store.find(head.tree, f"{arc}/{DATA_XML}") if head else None
        if data is None or xml is None or store.size(data.oid) > outlinks.LONGEST_BODY:
            return []
        body = store.read(data.oid)
        mime_type = data_xml.metadata(store.read(xml.oid)).mime_type
    except WebarcError:
        return []  # not archived yet, or damaged: `verify` reports damage, a crawl continues
    return outlinks.links_of(body, url, mime_type, text.decode_charset(body[: mimetype.SAMPLE], ""))
