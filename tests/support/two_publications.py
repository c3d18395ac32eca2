"""An archive of two publications on one host: two released snapshots, and one that waits for its release."""

from __future__ import annotations

from pathlib import Path

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from tests.support.histories import DOMAIN, History, Step
from tests.support.recorded import published
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CommitTag

#: The tags of the snapshots; readers do not see the last one.
TAGS = [CommitTag(History([Step("p", {})] * 4).time(number), DOMAIN) for number in range(3)]


def two_publications(folder: Path) -> Archive:
    """Return the archive, indexed, with links and records."""
    archive = directory.create(folder / "archive")
    archive.settings.write_text("[index]\nlinks = true\n")
    page = '<title>Minutes é</title><a href="/b.html">first report</a><a href="http://other.example/">out</a>'
    mail = '<a href="mailto:a@example.org">mail</a><a href="/gone.html">gone</a>'
    steps = (
        Step("p", {"a.html": page, "b.html": f"minutes of b {mail}", "a.html/c.html": "minutes below"}),
        Step("q", {"q.html": "minutes of q", "%FC?x=1&y=%20": "minutes of a folder"}),
        Step("p", {"a.html": "zebra", "zebra.html": "minutes of a zebra"}, RecordState.COUNTED, held=True),
    )
    assert published(archive, History(steps)) == TAGS
    recover(archive)
    bring_in_step(archive)
    return archive
