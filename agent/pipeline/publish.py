"""Stage 8, publish: writes new and changed ARCs into git, and updates main atomically (/Cr-14/, /Ar-1.2/, /Ar-8/).

First, without a lock, the objects are written, without a ref. Then, under the domain's lock, the tree is merged with
the current main, the refs are updated by compare and swap, and the feed gets its line. A reader sees all of a crawl or
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from agent.crawl.frontier import SHOWED_SECRETS
from agent.crawl.vocabulary import GONE, Reason, Result, is_error_page, source_in
from agent.pipeline.domain_run import Document, DomainRun, TreeReader
from agent.pipeline.removal import SeenTree, crawl_before, own_files, own_paths, removed_arcs, seen_part, without
from agent.pipeline.url_lists import MetAtHand, merge_redirects, met_list_of
from webarcfs.archive.additions.commit_additions import commit_additions, fold_in
from webarcfs.archive.additions.placement import additions_since
from webarcfs.archive.config import directory
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import MAIN, PUBLICATIONS, Commit, RefUpdate, TreeEntry, is_arc
from webarcfs.archive.git.writing import FastImport, Rewriting
from webarcfs.archive.history import redirect_lists, rendered_forms, sequence
from webarcfs.archive.history.rendered_forms import RenderedForm
from webarcfs.archive.history.versions import arcs, leads_to_arcs
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, is_reserved, places, second_name
from webarcfs.archive.model.metadata import COMMITTER, COPIES, CrawlMessage
from webarcfs.archive.model.url_lists import REDIRECTS, place_of
from webarcfs.archive.system import locks

_log = logging.getLogger(__name__)
#: Number of checked folders that are remembered: documents of a folder mostly follow each other.
_FOLDERS_KEPT = 10_000
#: Why nothing was removed, by whether the snapshot is older than the newest state.
_INCOMPLETE = {False: "crawl incomplete", True: "older than what is there, which stays the newest state"}


@dataclass(frozen=True, slots=True)
class Published:
    """The result of publishing one domain: the crawl's commit, and whether it was complete and could remove ARCs.

    `shared` is the commitTag of an earlier crawl whose commit it is, where nothing changed; else empty.
    `met` is for the index of this process.
    """

    commit: str
    complete: bool
    reason: str = ""
    shared: str = ""
    met: MetAtHand = field(default_factory=lambda: MetAtHand(None))


class Publisher:
    """Writes the documents of one domain; `finish` publishes them. A context manager; without `finish` it discards."""

    def __init__(self, run: DomainRun) -> None:
        self._run = run
        self._importer: FastImport | None = None
        self._forms = _RenderedForms(run)
        #: Error pages that were seen, and those of them whose ARC held none before.
        self._errors, self._new_errors = 0, 0
        #: Copies that were stored.
        self._copies = 0
        #: Whether stored headers may have secrets: of this crawl, or of the one that an import takes from an export.
        self._has_secrets = run.job.publication.has_secrets or run.job.frontier.get(SHOWED_SECRETS) is True
        self._roomy: set[str] = set()
        #: ARCs that stay although the crawl did not see them: the one before knew them by sitemaps alone.
        self._held_listed: list[str] = []
        #: Those of them of which the server says that they are gone.
        self._gone_listed: list[str] = []

    def __enter__(self) -> Publisher:
        # The lock protects unfinished packs of mounts that commit additions.
        with locks.exclusive(self._run.job.archive.committing_lock(self._run.domain)):
            self._run.store.drop_scratch()
        with self._run.job.frontier.changes():
            self._run.job.frontier.clear_results(self._run.domain)
            self._run.job.frontier.clear_moves(self._run.domain)
        return self

    def __exit__(self, *exc: object) -> None:
        self._forms.close()
        if self._importer is not None:
            self._importer.__exit__(*exc)

    def publish(self, documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
        """Yield all documents, after passing the new and changed ones to git's importer."""
        for document in documents:
            if is_error_page(document.status):
                self._errors += 1
                self._new_errors += not document.was_error
            if document.unchanged:
                run.arcs["unchanged"] += 1
                if document.nested:  # `rest_unchanged` sets the result of the others
                    run.note(document.row, Result.UNCHANGED, nested=True)
            else:
                result = self._store(document)
                self._copies += document.source in COPIES
                self._has_secrets |= document.has_secrets
                note = ""
                if document.becomes_page:  # a version of its own, for the role alone: the document did not change
                    result, note = Result.UNCHANGED, Reason.BECAME_PAGE
                run.arcs[result] += 1
                run.note(document.row, result, document.mime_type, note, nested=document.nested)
            yield document
        self._count_not_modified()
        run.flush()
        with run.job.frontier.changes():
            run.job.frontier.rest_unchanged(run.domain)

    def finish(self) -> Published:
        """Publish the documents and redirects, and remove the ARCs that the crawl may remove."""
        run = self._run
        tree = self._imported_tree()
        complete, reason, removed = run.complete, "" if run.complete else _INCOMPLETE[run.older], []
        seen_before = self._seen_last()
        if run.complete:
            self._hold_unseen(seen_before)
            # A page that became an error page was not found; an error page that was one before is as it was.
            count = run.arcs["added"] + run.arcs["changed"] + run.arcs["unchanged"] - self._new_errors
            count += len(self._earlier())
            seen = self._seen_part(tree, seen_before)
            # One that is gone at one URL may have been met at another URL of its place.
            listed = [arc for arc in self._gone_listed if not run.job.frontier.has_body(run.domain, arc)]
            verdict, seen_tree = removed_arcs(run, seen_before, seen, count, listed), seen.tree
            complete, reason, removed = verdict.complete, verdict.reason, verdict.removed
        if not complete:
            tree = self._with_pages_for_errors(tree)
            removed = [] if run.job.cut is None else list(self._redirected(tree))
            tree = without(run.store, tree, removed)
            seen_tree, seen_before = self._seen_with_the_one_before(tree)
        else:
            tree = without(run.store, tree, removed)
        run.arcs["removed"] = len(removed)
        merged = merge_redirects(run, tree, seen_tree, seen_before, complete=complete)
        if (earlier := self._unchanged(merged.tree, merged.seen)) is not None:
            return Published(earlier.oid, complete, reason, shared=str(earlier.message.tag))
        at_hand = MetAtHand()
        met = run.store.write_blob(met_list_of(run, merged.seen, merged.met, at_hand))
        return Published(self._swap(merged.tree, merged.seen, met, complete), complete, reason, met=at_hand)

    def _unchanged(self, tree: str, seen: str) -> Commit | None:
        """Return the publication's last crawl of a domain of resources if this one changed nothing; else None.

        Pages of thousands of hosts need something of as many others, which seldom changes. So it is where nothing but
        the watched feed was asked for: most crawls of a feed find it as it was.
        """
        run, store = self._run, self._run.store
        is_feed_alone = bool(run.job.publication.watch) and not run.job.frontier.has_more(run.domain)
        if not (run.is_resource or is_feed_alone) or run.older or run.base is None or tree != run.base.tree:
            return None
        if store.ref(MAIN) != run.base.oid:
            return None
        if not is_feed_alone and store.ref(PUBLICATIONS + run.job.publication.name) != seen:
            return None
        last = sequence.crawl_commit(store, run.base.oid)
        if last is None or last.message.publication != run.job.publication.name:
            return None
        return last if last.message.is_held == run.job.is_held else None

    def _count_not_modified(self) -> None:
        """Count the documents that a server did not send again. If one is gone meanwhile, the crawl is not complete."""
        run = self._run
        for row, url, arc in run.job.frontier.not_modified(run.domain):
            second = second_name(arc, url)
            if run.shelf.find(f"{second}/{DATA_XML}") is not None:
                run.move(row, second)
                run.arcs["unchanged"] += 1
            elif run.shelf.find(f"{arc}/{DATA_XML}") is not None:
                run.arcs["unchanged"] += 1
            else:
                _log.warning("%s: the server said that it is unchanged, and it was removed meanwhile", url)
                run.complete = False

    # -- objects -------------------------------------------------------------------------------------------------

    def _store(self, document: Document) -> str:
        importer = self._open_importer()
        stored = document.stored or ()
        was_arc = is_arc(stored)
        self._make_room(importer, document.arc)
        for entry in stored:
            self._remove_old(importer, f"{document.arc}/{entry.name}", entry)
        importer.put_stream(f"{document.arc}/{document.data_name}", document.body.size, document.body.chunks())
        importer.put(f"{document.arc}/{DATA_XML}", document.data_xml)
        importer.put(f"{document.arc}/{HEADERS}", document.head.raw)
        if document.rendered is not None:
            self._forms.put(importer, document.rendered)
        return Result.CHANGED if was_arc else Result.ADDED

    def _remove_old(self, importer: FastImport, path: str, entry: TreeEntry) -> None:
        """Remove an entry of a replaced ARC: its files and additions are removed, the ARCs inside it stay."""
        if entry.is_tree and leads_to_arcs(self._run.store, entry.oid):
            return
        importer.remove(path)
        if entry.is_tree or not is_reserved(entry.name):
            _log.info("/%s/%s: the addition went with the old version of its ARC", self._run.domain, path)

    def _make_room(self, importer: FastImport, arc: str) -> None:
        """Remove additions whose names a crawled page needs, for its ARC or for a folder above it (section 3).

        Only entries of the base tree are removed, so checking a folder twice loses nothing.
        """
        if self._run.base is None:
            return
        parts = arc.split("/")
        for depth in range(1, len(parts)):
            path = "/".join(parts[:depth])
            if path not in self._roomy:
                if len(self._roomy) >= _FOLDERS_KEPT:
                    self._roomy.clear()
                self._roomy.add(path)
                self._clear(importer, path, own=False)
        self._clear(importer, arc, own=True)

    def _clear(self, importer: FastImport, path: str, *, own: bool) -> None:
        entry = self._run.shelf.find(path)
        if entry is None or (entry.is_tree and own):
            return  # an ARC's own folder is replaced by _remove_old
        names = [""]
        if entry.is_tree and leads_to_arcs(self._run.store, entry.oid):
            inner = self._run.store.entries(entry.oid)
            names = [] if is_arc(inner) else [f"/{child.name}" for child in inner if not child.is_tree]
        for name in names:
            importer.remove(path + name)
            _log.warning("/%s/%s%s: the addition went, its place is needed by a page", self._run.domain, path, name)

    def _open_importer(self) -> FastImport:
        if self._importer is None:
            base = self._run.base
            self._importer = self._run.store.importer(base.tree if base else None)
        return self._importer

    def _imported_tree(self) -> str:
        run = self._run
        if self._importer is not None:
            return self._importer.finish()
        return run.base.tree if run.base is not None else run.store.write_tree([])

    # -- what stays -------------------------------------------------------------------------------------------

    def _seen_last(self) -> str | None:
        """Return the tree that the publication saw last in a complete crawl, or in the snapshot before of this one."""
        run = self._run
        name = run.job.publication.name
        if run.job.cut is not None and run.job.cut.number > 1:
            before = crawl_before(run.store, run.base, name).tree
            if before is not None:
                return before
        return run.store.ref(PUBLICATIONS + name)

    def _earlier(self) -> list[str]:
        """Return the ARCs that the crawl saw in its earlier snapshots of the domain, and not again."""
        urls = () if self._run.job.cut is None else self._run.job.cut.earlier
        earlier_arcs = (next((arc for arc in places(url) if self._is_in_base(arc)), None) for url in urls)
        return [arc for arc in earlier_arcs if arc is not None]

    def _is_in_base(self, arc: str) -> bool:
        return self._run.shelf.find(f"{arc}/{DATA_XML}") is not None

    def _hold_unseen(self, last: str | None) -> None:
        """Keep the last seen ARCs of pages that timed out, failed or were refused, and those seen before."""
        run = self._run
        held = list(self._earlier())
        if last is not None:
            shelf = TreeReader(run.store, last)
            self._take_listed(last)
            held += self._held_listed
            unanswered = (arc for url in run.job.frontier.unanswered(run.domain) for arc in places(url))
            held += [arc for arc in unanswered if shelf.find(f"{arc}/{DATA_XML}") is not None]
        with run.job.frontier.changes():
            run.job.frontier.hold(run.domain, held)

    def _take_listed(self, last: str) -> None:
        """Find the ARCs that the publication's last complete crawl knew by sitemaps alone: they stay unless gone.

        The tree behind refs/publications, `last`, is without them (`_without_listed`).
        """
        run = self._run
        if run.base is None or not run.job.settings.sitemaps:
            return
        before = crawl_before(run.store, run.base, run.job.publication.name, only_complete=True).tree
        if before is None or before == last:
            return
        for difference in run.store.differences(before, last):
            arc, _, name = difference.path.rpartition("/")
            if name != DATA_XML or difference.new is not None:
                continue
            entry = run.shelf.find(difference.path)
            if entry is None:
                continue
            row = run.job.frontier.by_url(data_xml.metadata(run.store.read(entry.oid)).url)
            (self._gone_listed if row is not None and row.status in GONE else self._held_listed).append(arc)

    def _without_listed(self, seen_tree: str) -> str:
        """Return what the publication saw without the ARCs that it knows by sitemaps alone.

        A later crawl removes what is in the tree behind refs/publications and was not seen again.
        """
        run = self._run
        listed = [*self._held_listed, *run.job.frontier.listed_arcs(run.domain)]
        shelf = TreeReader(run.store, seen_tree)
        return without(run.store, seen_tree, [arc for arc in listed if shelf.find(f"{arc}/{DATA_XML}") is not None])

    def _redirected(self, tree: str) -> Iterator[str]:
        """Yield the ARCs of URLs that redirect in this import. In a crawl only a complete one ends them."""
        run, shelf = self._run, TreeReader(self._run.store, tree)
        for _, url, *_, note in run.job.frontier.redirects(run.domain):
            for arc in places(url):
                entry = shelf.find(f"{arc}/{DATA_XML}")
                if entry is None or not entry.is_document or run.job.frontier.has_body(run.domain, arc):
                    continue
                stored = data_xml.metadata(run.store.read(entry.oid))
                if stored.url == url and (stored.source in COPIES or source_in(note) not in COPIES):
                    yield arc

    def _with_pages_for_errors(self, tree: str) -> str:
        """The tree with what error pages took the place of, a page or a redirect: an incomplete crawl ends neither."""
        run, frontier = self._run, self._run.job.frontier
        if run.base is None or not self._new_errors:
            return tree
        held = 0
        now, before = TreeReader(run.store, tree), TreeReader(run.store, run.base.tree)
        with run.store.rewriting(tree) as rewriting:
            for row, url, arc, result in frontier.new_errors(run.domain):
                if not self._replaces(before, url, arc):
                    continue
                for path in own_paths(run.store, now, arc):
                    rewriting.remove(path)
                for path, blob in own_files(run.store, before, arc):
                    rewriting.put(path, blob)
                run.note(row, Result.UNCHANGED, note=Reason.ERROR_HELD)
                run.arcs[result] -= 1
                held += 1
            run.flush()
            run.arcs["unchanged"] += held
            return rewriting.finish() if held else tree

    def _replaces(self, before: TreeReader, url: str, arc: str) -> bool:
        """Return whether an error page replaced a page at `arc`, or the redirect of its URL."""
        entry = before.find(f"{arc}/{DATA_XML}")
        if entry is None:
            return url in redirect_lists.urls(self._run.store, before.find(place_of(url)))
        return not is_error_page(data_xml.metadata(self._run.store.read(entry.oid)).status)

    # -- what the publication saw ----------------------------------------------------------------------------

    def _seen_part(self, tree: str, before: str | None) -> SeenTree:
        """The ARCs of `tree` that the publication saw now, with the redirects that it saw `before`."""
        run, frontier = self._run, self._run.job.frontier
        names, arcs_seen = frontier.seen_names(run.domain), lambda: frontier.seen(run.domain)
        redirects = None if before is None else run.store.find(before, REDIRECTS)
        return seen_part(run.store, run.job.publication.name, tree, names, arcs_seen, redirects=redirects)

    def _seen_with_the_one_before(self, tree: str) -> tuple[str, str | None]:
        """What an incomplete crawl saw of `tree` with what its publication's crawl before it had; and the latter."""
        run, frontier = self._run, self._run.job.frontier
        before = crawl_before(run.store, run.base, run.job.publication.name)
        if run.base is None or (before.is_newest and before.is_whole):
            return tree, before.tree
        if before.tree is not None:
            with frontier.changes():
                frontier.hold(run.domain, (arc.path for arc in arcs(run.store, before.tree)))
        return self._seen_part(tree, before.tree).tree, before.tree

    # -- the swap ------------------------------------------------------------------------------------------------

    def _swap(self, tree: str, seen_tree: str, met: str, complete: bool) -> str:
        """Publish the state `tree`, of which the publication saw `seen_tree`, and met unchanged what `met` lists."""
        run, store = self._run, self._run.store
        archive = run.job.archive
        commit_additions(archive, run.domain)  # so that little work is left under the lock
        last_seen = self._without_listed(seen_tree) if complete else None
        forms = self._forms.updates()
        with locks.Turnstile(archive.lock(run.domain)).exclusive(), sequence.publication_slot(archive, run.tag) as turn:
            # Additions confirmed until now belong to the previous state: a mount confirms under the same lock.
            fold_in(archive, store, run.domain, following=None if run.older else tree)
            directory.raise_layout(archive)
            seen = "" if seen_tree == tree else seen_tree
            main = store.ref(MAIN)
            parent = run.parent(main)
            if not run.older and run.base is not None and main is not None and main != run.base.oid:
                tree = additions_since(store, run.base.tree, store.commit(main).tree, tree)
            cut = run.job.cut
            message = CrawlMessage(
                run.tag,
                run.job.publication.name,
                complete,
                turn.number,
                sources=() if cut is None else cut.sources,
                ended=() if cut is None else cut.ended,
                imported_by="" if cut is None else cut.job,
                job=run.job.crawl,
                held=run.job.is_held,
                seen=seen,
                errors=run.errors or self._errors > 0,
                copies=run.copies or self._copies > 0,
                resources="alone" if run.is_resource else "kept" if run.resources else "",
                secrets=self._has_secrets,
                met=met,
                patch="" if run.job.patch is None else run.job.name,
            )
            seconds = int((run.job.begun if cut is None else run.tag.crawl_time).timestamp())
            commit = store.write_commit(tree, [parent] if parent else [], str(message), COMMITTER, seconds)
            updates = self._ref_updates(commit, main, seen, last_seen)
            store.update_refs([*updates, *forms, RefUpdate(run.tag.met_ref, met, store.ref(run.tag.met_ref))])
            turn.publish()
        return commit

    def _ref_updates(self, commit: str, main: str | None, seen: str, last_seen: str | None) -> list[RefUpdate]:
        """What moves: `seen` is the tree for refs/seen, `last_seen` what a complete crawl saw."""
        store = self._run.store
        updates = [RefUpdate(self._run.tag.ref, commit, None)]
        if seen:
            updates.append(RefUpdate(self._run.tag.seen_ref, seen, None))
        if not self._run.older:
            updates.append(RefUpdate(MAIN, commit, main))
        publication = PUBLICATIONS + self._run.job.publication.name
        last = store.ref(publication)
        if last_seen is not None and last_seen != last:
            updates.append(RefUpdate(publication, last_seen, last))
        return updates


# == rendered forms ===================================================================================================


class _RenderedForms:
    """The forms that the new versions of a crawl have; their ref moves with main."""

    def __init__(self, run: DomainRun) -> None:
        self._store = run.store
        self._stack = ExitStack()
        self._rewriting: Rewriting | None = None
        self._before: str | None = None

    def put(self, importer: FastImport, form: RenderedForm) -> None:
        """Store a form."""
        if self._rewriting is None:
            self._before = self._store.ref(rendered_forms.REF)
            self._rewriting = self._stack.enter_context(self._store.rewriting(self._before))
        blobs = {name: importer.store(name, len(content), [content]) for name, content in form.files().items()}
        tree = rendered_forms.tree_id(blobs)
        for name, blob in blobs.items():
            self._rewriting.put(rendered_forms.path_of(tree, name), blob)

    def updates(self) -> list[RefUpdate]:
        """Return what moves; the blobs must be in the repository."""
        if self._rewriting is None:
            return []
        return [RefUpdate(rendered_forms.REF, self._rewriting.finish(), self._before)]

    def close(self) -> None:
        """Release what is held."""
        self._stack.close()
