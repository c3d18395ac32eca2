"""Answers searches for the mount: finds the documents for the links of `.search/`.

A search is read on lookup, and answered on the first access to its links. An answer belongs to one state of the
full-text index. Its libraries come with the extra `search`, and are loaded with the first search.
"""

from __future__ import annotations

from importlib.util import find_spec

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.condition import from_name
from webarcfs.archive.model.errors import NotFound, TooMany
from webarcfs.view.state.discarded import Discarded
from webarcfs.view.state.query_answers import Hits, Look, Queries, Stamp

#: Most hits of an answer.
_MOST = 20_000


class Searches(Queries):
    """The searches of one mount. An invalid one raises NotFound, and the log has the reason."""

    def __init__(self, archive: Archive, discarded: Discarded | None = None) -> None:
        super().__init__(archive, discarded)
        self._archive = archive

    def stamp(self) -> Stamp:
        """Return the state of the index. Raises NotFound without one."""
        if find_spec("tantivy") is None:
            raise NotFound("searches need more libraries: pip install 'webarcfs[search]'")
        from webarcfs.search import generations  # noqa: PLC0415 # of the extra `search`

        found = generations.state(self._archive)
        return self._with_discarded(Stamp(found.st_ino, found.st_size, found.st_mtime_ns, b""))

    def _checked(self, name: str) -> Look:
        from webarcfs.search.query_language import parse  # noqa: PLC0415 # few mounts are searched

        words = from_name(name)
        parse(words)
        return lambda: self._searched(words)

    def _searched(self, words: str) -> Hits:
        from webarcfs.search.searching import Searcher, SearchQuestion  # noqa: PLC0415 # of the extra `search`

        searcher = Searcher(self._archive, self._discarded.gate())
        question = SearchQuestion(words=words, limit=_MOST)
        if searcher.count(question) > _MOST:
            raise TooMany(f"more than {_MOST:,} documents; narrow the search")
        return tuple(f"{tag}/{path[1:].partition('/')[2]}" for tag, path in searcher.places(question))
