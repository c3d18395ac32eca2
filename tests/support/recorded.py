"""Archives of several publications for tests, with their catalogues: published as the agent does it."""

from __future__ import annotations

from tests.support import archives
from tests.support.histories import DOMAIN, History
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import CrawlPart, Record
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import SEEN, RefUpdate
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.metadata import CommitTag, CrawlMessage, compact_time


def published(archive: Archive, history: History) -> list[CommitTag]:
    """Publish the snapshots of a history, and save the records of those that have one; return the commitTags."""
    store = archives.store_of(archive, DOMAIN)
    tags = []
    records = []
    main = store.write_tree([])
    for number, step in enumerate(history.steps):
        tag = CommitTag(history.time(number), DOMAIN)
        before = history.states[number - 1] if number else {}
        changes: dict[str, str | None] = {}
        for path in before.keys() | history.states[number].keys():
            now = history.states[number].get(path)
            if now != before.get(path):
                changes |= dict.fromkeys(archives.own_files(store, main, path))
                if now is not None:
                    changes |= archives.arc(store, archives.metadata(DOMAIN, path, tag), path, now.encode())
        main = store.edit(main, changes)
        seen = ""
        if history.seen[number] != history.states[number]:
            kept: dict[str, str | None] = {}
            for path in history.seen[number]:
                kept |= {name: store.find(main, name).oid for name in archives.own_files(store, main, path)}  # type: ignore[union-attr] # it is there
            seen = store.edit(store.write_tree([]), kept)
            store.update_refs([RefUpdate(f"{SEEN}{compact_time(tag.crawl_time)}", seen, None)])
        job = f"{compact_time(tag.crawl_time)}-{step.publication}"
        message = CrawlMessage(tag, step.publication, True, number + 1, job=job, held=step.held, seen=seen)
        archives.commit(store, main, str(message), tag, new_tag=True)
        Feed(archive.changes).append(tag)
        tags.append(tag)
        if step.state is not None:
            records.append(
                Record(
                    id=job, number=0, publication=step.publication, state=step.state, complete=True,
                    closed_for=step.closed_for, parts=(CrawlPart(tag, True, seen, step.held),),
                )
            )  # fmt: skip
    if records:
        Catalogue(archive).save(records, "test", "records", described=len(tags))
    return tags
