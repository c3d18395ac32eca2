"""links.db: the links of every version of every page, kept up by the agent, rebuilt by `recover` (seeds 2 and 4)."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.indexing import links
from agent.indexing.recovery import catch_up, catch_up_domain, catch_up_links, recover
from agent.maintenance.verification import verify
from tests.store.test_webarc import webarc
from tests.support.archives import DOMAIN, FIRST, add, publish, store_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import links as link_index
from webarcfs.archive.index.database import Database
from webarcfs.archive.index.links import (
    ArchivedLink,
    AskedKind,
    LinksDatabase,
    LinkTarget,
    PageChange,
    Question,
    words_of,
)
from webarcfs.archive.model.errors import Busy, DatabaseDamaged, TookTooLong
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system import locks

pytestmark = pytest.mark.store
OTHER = "other.example"
A = (
    "<a href=b.html>Zur Übersicht</a><a href=b.html>ZUR UBERSICHT</a><a href=b.html>Zur Übersicht</a>"
    "<a href='mailto:Redaktion@Example.ORG'>Rédaction</a><img src=logo.png alt='Das Logo'>"
    "<a href=http://other.example/a.html target=_blank>other</a>"
    "<a href=http://unknown.example/>unknown</a><a href=gone.html>gone</a>"
).encode()
B = b"<base href=/sub/><a href=x.html>x</a><a href=/a.html>back</a>"


@pytest.fixture
def kept(archive: Archive) -> Archive:
    """An archive that keeps links."""
    archive.settings.write_text("[index]\nlinks = true\n", "utf-8")
    return archive


@pytest.fixture
def published(kept: Archive) -> Archive:
    publish(kept, DOMAIN, {"a.html": A, "b.html": B, "logo.png": b"png"})
    publish(kept, OTHER, {"a.html": b"<a href=http://www.example.org/b.html>Zur Ubersicht</a>"})
    publish(kept, DOMAIN, {"a.html": None, "c.html": b"<a href=b.html>new</a>"})
    catch_up(kept)
    return kept


def rows(archive: Archive, view: str = "links") -> list[tuple[object, ...]]:
    """The whole view, ordered."""
    with closing(sqlite3.connect(archive.links)) as connection:
        return sorted(connection.execute(f"SELECT * FROM {view}"))


def counts(archive: Archive) -> dict[str, int]:
    with LinksDatabase(archive.links) as base:
        return base.counts()


def ask(archive: Archive, *words: str) -> list[dict[str, str]]:
    answer = webarc("links", "--archive", str(archive.root), *words, "--format", "csv")
    assert answer.returncode == 0, answer.stderr
    return list(csv.DictReader(io.StringIO(answer.stdout)))


def said(archive: Archive, *words: str) -> list[tuple[str, str, str]]:
    """Path inside the domain, target, text of each row."""
    return sorted((row["path"].rpartition("/")[2], row["target"], row["text"]) for row in ask(archive, *words))


# --- kept up


def test_not_if_the_settings_say_no(archive: Archive) -> None:
    archive.settings.write_text("[index]\nlinks = false\n", "utf-8")
    publish(archive, DOMAIN, {"a.html": A})
    catch_up(archive)
    catch_up_links(archive, DOMAIN)
    assert not archive.links.exists()
    answer = webarc("links", "--archive", str(archive.root), "--word", "x")
    assert answer.returncode == 2 and "links = false" in answer.stderr


def test_what_was_crawled_before_comes_in_when_it_is_set(archive: Archive) -> None:
    archive.settings.write_text("[index]\nlinks = false\n", "utf-8")
    publish(archive, DOMAIN, {"a.html": A})
    catch_up(archive)
    archive.settings.write_text("[index]\nlinks = true\n", "utf-8")
    publish(archive, DOMAIN, {"b.html": B})
    catch_up_links(archive, DOMAIN)
    assert {row[8] for row in rows(archive)} == {f"2026-11-21T03:00:0{second}@{DOMAIN}" for second in (0, 1)}


def test_it_stops_between_two_pages_and_goes_on(archive: Archive) -> None:
    """An old archive's links take long; whoever is to stop does not read all of them first."""
    archive.settings.write_text("[index]\nlinks = false\n", "utf-8")
    for number in range(3):
        publish(archive, DOMAIN, {f"{page}.html": b"<a href=%d.html>x</a>" % number for page in "abc"})
    catch_up(archive)
    archive.settings.write_text("[index]\nlinks = true\n", "utf-8")
    asked: list[bool] = []
    while not (archive.links.exists() and len(rows(archive)) == 9):
        asked.clear()
        catch_up_links(archive, DOMAIN, lambda: bool(asked.append(True)) or len(asked) > 4)
        assert 0 < len(asked) <= 5
    assert len(rows(archive)) == 9


def test_publishing_goes_on_while_recover_reads_links(published: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was published meanwhile is not missing afterwards."""
    index_links = links.index_links
    later: list[CommitTag] = []

    def publishes(*arguments: Any) -> None:
        index_links(*arguments)
        if not later:
            with locks.if_free(published.sequence) as free:
                assert free
            later.append(publish(published, OTHER, {"later.html": A}))
            catch_up_links(published, OTHER)

    monkeypatch.setattr(links, "index_links", publishes)
    recover(published)
    assert str(later[0]) in {row[8] for row in rows(published)}
    before = rows(published)
    catch_up(published)
    assert rows(published) == before


def test_what_git_cannot_give_keeps_nothing_else_out(archive: Archive, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the other pages nor later snapshots; it is told, with its path."""
    archive.settings.write_text("[index]\nlinks = false\n", "utf-8")
    publish(archive, DOMAIN, {"a.html": A, "b.html": B, "c.html": b"<a href=x>x</a>"})
    publish(archive, DOMAIN, {"d.html": b"<a href=y>y</a>"})
    catch_up(archive)
    store = store_of(archive, DOMAIN)
    for path in ("a.html/data.html", "b.html/data.xml"):
        head = store.head()
        found = store.find(head.tree, path) if head else None
        assert found is not None
        (store.path / "objects" / found.oid[:2] / found.oid[2:]).unlink()
    archive.settings.write_text("[index]\nlinks = true\n", "utf-8")
    catch_up_links(archive, DOMAIN)
    assert {row[1] for row in rows(archive)} == {f"/{DOMAIN}/c.html", f"/{DOMAIN}/d.html"}
    assert len({row[8] for row in rows(archive)}) == 2
    assert f"/{DOMAIN}/a.html" in caplog.text and f"/{DOMAIN}/b.html/data.xml" in caplog.text


def test_a_row_for_each_link_of_each_page_and_snapshot(published: Archive) -> None:
    page = f"http://{DOMAIN}/a.html"
    first = [row for row in rows(published) if row[0] == page]
    assert [(row[3], row[4], row[5], row[6]) for row in first] == sorted(
        [
            ("http", f"http://{DOMAIN}/b.html", "Zur Übersicht", 2),
            ("http", f"http://{DOMAIN}/b.html", "ZUR UBERSICHT", 1),
            ("http", f"http://{DOMAIN}/gone.html", "gone", 1),
            ("http", f"http://{OTHER}/a.html", "other", 1),
            ("http", "http://unknown.example/", "unknown", 1),
            ("image", f"http://{DOMAIN}/logo.png", "Das Logo", 1),
            ("mail", "mailto:Redaktion@example.org", "Rédaction", 1),
        ],
        key=lambda row: (row[0], row[1], row[2]),
    )
    assert {row[8] for row in first} == {f"2026-11-21T03:00:00@{DOMAIN}"}
    assert {row[4]: row[9] for row in first if row[9]} == {f"http://{OTHER}/a.html": "_blank"}


def test_a_link_that_opens_elsewhere_is_another_one(kept: Archive) -> None:
    """BT-link-4: the window that a link opens in is registered with it."""
    publish(kept, DOMAIN, {"a.html": b"<a href=b>x</a><a href=b target=menu>x</a><a href=b target=menu>x</a>"})
    publish(kept, DOMAIN, {"a.html": b"<a href=b>x</a>"})
    catch_up(kept)
    found = sorted((row["window"], row["times"], row["until"] != "") for row in ask(kept, "--word", "x", "--ever"))
    assert found == [("", "1", False), ("", "1", True), ("menu", "2", True)]
    assert [row["window"] for row in ask(kept, "--word", "x")] == [""]


def test_words_are_counted_as_in_seed_4(published: Archive) -> None:
    """The pair of link and word, how often in the page; case and accents folded."""
    found = [
        row[3:5]
        for row in rows(published, "link_words")
        if row[0] == "ubersicht" and row[1].startswith(f"http://{DOMAIN}")
    ]  # type: ignore[attr-defined]
    assert found == [(f"http://{DOMAIN}/b.html", 3)]


def test_each_word_of_any_text_names_its_link(kept: Archive) -> None:
    """SQLite's full-text index takes the words as they are given, whatever script, case, mark or sign is in a text."""
    texts = [
        "Zur ÜBERSICHT, Straße", "ΑΘΗΝΑ Σίσυφος", "हिन्दी पाठ", "日本語 ページ", "العَرَبِيَّة 2026", "İstanbul ﬁne ① x²",
        "a_b-c.d'e\"f*g^h",
        "NEAR AND or NOT", "ꟶꟷ 𞤀𞤁 🦆 ok", "w" * 70 + " end", "", "... !",
        *("".join(Random(seed).choices([chr(n) for n in range(33, 0x3000)], k=40)) for seed in range(20)),
    ]  # fmt: skip
    with LinksDatabase(kept.links) as base:
        links = [ArchivedLink(AskedKind.HTTP, f"http://x.org/{number}", text) for number, text in enumerate(texts)]
        base.record(CommitTag(FIRST, DOMAIN), [_change("a", 1)], lambda _: links)
    seen = {(word, link.target) for link in links for word in words_of(link.text)}
    assert {(row[0], row[3]) for row in rows(kept, "link_words")} == seen
    for link in links:
        if words_of(link.text):
            found = link_index.ask(kept, Question(word=link.text), 60)
            assert link.target in {row.target for row in found}, link


def test_what_did_not_change_costs_no_row(published: Archive) -> None:
    """Nor do additions, nor a page that comes back as it was."""
    before = counts(published)
    publish(published, DOMAIN, {})
    add(published, "b.html/notes.txt", b"<a href=no.html>")
    catch_up(published)
    publish(published, DOMAIN, {"a.html": A})
    catch_up(published)
    assert counts(published) == before
    assert len(said(published, "--from", f"/{DOMAIN}/a.html")) == 7


def test_a_changed_page_costs_its_rows_only(published: Archive) -> None:
    before = counts(published)
    publish(published, DOMAIN, {"b.html": B + b"<a href=y.html>y</a>"})
    with closing(sqlite3.connect(published.links)) as connection:
        held = connection.execute("SELECT rowid, * FROM reference").fetchall()
    catch_up_links(published, DOMAIN)
    after = counts(published)
    assert {name: after[name] - before[name] for name in after} == {
        "links": 3, "bodies": 1, "refs": 2 - 1, "urls": 1, "words": 1,
    }  # fmt: skip
    with closing(sqlite3.connect(published.links)) as connection:
        assert set(held) < set(connection.execute("SELECT rowid, * FROM reference"))


def test_a_page_that_goes_takes_what_only_it_had(published: Archive) -> None:
    """From every answer about the present; the past keeps it."""
    assert said(published, "--word", "redaction") == [] and len(said(published, "--word", "Rédaction", "--ever")) == 1
    assert said(published, "--to", f"http://{DOMAIN}/gone.html") == []
    assert said(published, "--word", "ubersicht") == [("a.html", f"http://{DOMAIN}/b.html", "Zur Ubersicht")]


def test_a_domain_that_goes_takes_what_only_it_had(published: Archive, tmp_path: Path) -> None:
    """Rows, not only answers: what is left is what an archive that never had it would have."""
    published.repository(DOMAIN).rename(tmp_path / "elsewhere.git")
    catch_up(published)
    left, size = rows(published), counts(published)
    published.links.unlink()
    recover(published)
    assert (rows(published), counts(published)) == (left, size)
    assert [row[2] for row in left] == [OTHER] and size["words"] == 2


def test_recover_gives_the_same(published: Archive) -> None:
    before = rows(published), rows(published, "link_words"), counts(published)
    published.links.unlink()
    assert recover(published).links == before[2]["links"]
    assert (rows(published), rows(published, "link_words"), counts(published)) == before
    assert not [path.name for path in published.root.iterdir() if path.name.startswith(".")]


def test_recover_removes_it_where_it_is_not_wanted(published: Archive) -> None:
    published.settings.write_text("[index]\nlinks = false\n", "utf-8")
    assert recover(published).links is None
    assert not published.links.exists()


def test_settings_are_read_again_when_any_of_their_files_changed(kept: Archive) -> None:
    """Also that of a publication: with faults, they say nothing."""
    assert links.wanted(kept)
    kept.publications.mkdir(exist_ok=True)
    own = kept.publications / "nightly.toml"
    own.write_text("no such line\n", "utf-8")
    assert not links.wanted(kept)
    own.unlink()
    assert links.wanted(kept)
    kept.settings.write_text("[index]\nlinks = false\n", "utf-8")
    assert not links.wanted(kept)


def test_pages_of_other_types_have_none(kept: Archive) -> None:
    publish(kept, DOMAIN, {"a.txt": A, "a.html": b"no link"})
    catch_up(kept)
    assert rows(kept) == [] and counts(kept)["bodies"] == 1


def test_snapshots_in_between(tmp_path: Path) -> None:
    """However imports come between crawls: each snapshot holds what it held, found by comparing with plain sets."""
    chance = Random(5)
    for number in range(12):
        path = tmp_path / f"{number}.db"
        times = list(range(6))
        chance.shuffle(times)
        state: dict[int, dict[str, int]] = {}
        with LinksDatabase(path) as base:
            for time in times:
                before = state.get(max((each for each in state if each < time), default=-1), {})
                new = {page: chance.randrange(3) for page in "abc" if chance.random() < 0.6}
                state[time] = new
                changes = [_change(page, new.get(page)) for page in "abc" if new.get(page) != before.get(page)]
                base.record(CommitTag(FIRST + timedelta(seconds=time), DOMAIN), changes, _one_link)
        with closing(sqlite3.connect(path)) as connection:
            found = sorted(connection.execute("SELECT commitTag, page, target FROM links"))
        assert found == sorted(
            (str(CommitTag(FIRST + timedelta(seconds=time), DOMAIN)), f"http://{DOMAIN}/{page}", f"http://x.org/{body}")
            for time, pages in state.items()
            for page, body in pages.items()
        )


def _change(page: str, body: int | None) -> PageChange:
    return PageChange(f"/{DOMAIN}/{page}", None if body is None else (f"http://{DOMAIN}/{page}", f"{body:040x}"))


def _one_link(change: PageChange) -> Iterable[ArchivedLink]:
    assert change.page is not None
    return [ArchivedLink(AskedKind.HTTP, f"http://x.org/{int(change.page[1], 16)}", "")]


# --- trouble


def test_a_killed_writer_leaves_nothing_half(kept: Archive) -> None:
    """Bodies come before versions; what was begun is taken up again."""
    changes = [_change(page, number) for number, page in enumerate("abc")]
    tag = CommitTag(FIRST, DOMAIN)

    def dies(change: PageChange) -> Iterable[ArchivedLink]:
        yield ArchivedLink(AskedKind.HTTP, "http://x.org/half", "half")
        if change.path.endswith("b"):
            raise KeyboardInterrupt

    with LinksDatabase(kept.links) as base:
        with pytest.raises(KeyboardInterrupt):
            base.record(tag, changes, dies)
        assert base.indexed(DOMAIN) == set() and base.counts()["links"] == 0
        base.record(tag, changes, _one_link)
        assert base.counts()["links"] == 3
    assert len(rows(kept)) == 3


def test_a_damaged_one_stops_no_crawl_and_is_made_anew(published: Archive) -> None:
    before = rows(published)
    os.truncate(published.links, 10_000)
    with published.links.open("r+b") as file:
        file.write(b"no database")
    publish(published, DOMAIN, {"d.html": B})
    catch_up_domain(published, DOMAIN)
    catch_up_links(published, DOMAIN)
    with Database(published.database) as database:
        assert len(database.indexed(DOMAIN)) == 3
    assert any("links.db" in line for line in verify(published))
    assert webarc("links", "--archive", str(published.root), "--word", "x").returncode == 2
    catch_up(published)
    assert set(before) < set(rows(published))
    assert not list(verify(published))


def test_one_that_cannot_be_written_stops_no_crawl(published: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is another user's, or another is in its place since `recover`; the next start tries again."""
    publish(published, DOMAIN, {"d.html": B})
    own = sqlite3.connect

    def read_only(path: Path, **options: Any) -> sqlite3.Connection:
        return own(f"{path.as_uri()}?mode=ro", uri=True, **options) if path == published.links else own(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", read_only)
        with LinksDatabase(published.links) as base, pytest.raises(PermissionError):
            base.forget(DOMAIN)
        catch_up_domain(published, DOMAIN)
        catch_up_links(published, DOMAIN)
        catch_up(published)
    with Database(published.database) as database:
        assert len(database.indexed(DOMAIN)) == 3
    catch_up(published)
    with LinksDatabase(published.links) as base:
        assert len(base.indexed(DOMAIN)) == 3


def test_one_of_another_version_is_made_anew(published: Archive) -> None:
    before = rows(published)
    with closing(sqlite3.connect(published.links)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(DatabaseDamaged, match="version 99"):
        LinksDatabase(published.links)
    catch_up(published)
    assert rows(published) == before


def test_a_page_of_very_many_links_is_taken_in_by_portions(kept: Archive) -> None:
    """Each link is there once, as often as the page says it, also where its portions lie far apart."""
    body = b"".join(b"<a href=%d.html>n</a>" % (number % 22_000) for number in range(45_000))
    publish(kept, DOMAIN, {"a.html": body})
    catch_up(kept)
    with closing(sqlite3.connect(kept.links)) as connection:
        found = connection.execute("SELECT count(*), sum(times), max(times) FROM links").fetchone()
    assert found == (22_000, 45_000, 3)


# --- questions


def test_from_to_word(published: Archive) -> None:
    first = f"2026-11-21T03:00:00@{DOMAIN}"
    assert said(published, "--from", f"http://{DOMAIN}/a.html") == []
    assert len(said(published, "--from", f"http://{DOMAIN}/a.html", "--at", first)) == 7
    assert said(published, "--from", f"/{DOMAIN}/b.html", "--kind", "http") == [
        ("b.html", f"http://{DOMAIN}/a.html", "back"),
        ("b.html", f"http://{DOMAIN}/sub/x.html", "x"),
    ]
    assert {row[0] for row in said(published, "--to", f"HTTP://{DOMAIN}:80/b.html#x")} == {"a.html", "c.html"}
    assert {row[1] for row in said(published, "--to", "mailto:Redaktion@EXAMPLE.org", "--ever")} == {
        "mailto:Redaktion@example.org"
    }
    assert len(said(published, "--word", "UBERSICHT zur", "--at", first)) == 2
    assert said(published, "--word", "übersicht nirgends", "--ever") == []
    assert said(published, "--word", "...", "--ever") == said(published, "--word", "", "--ever") == []


def test_broken(published: Archive) -> None:
    """To documents of an archived domain that it does not have, at that moment; of other domains nothing is known."""
    assert said(published, "--broken") == [
        ("b.html", f"http://{DOMAIN}/a.html", "back"),
        ("b.html", f"http://{DOMAIN}/sub/x.html", "x"),
    ]
    assert said(published, "--broken", "--at", f"2026-11-21T03:00:00@{DOMAIN}") == [
        ("a.html", f"http://{DOMAIN}/gone.html", "gone"),
        ("b.html", f"http://{DOMAIN}/sub/x.html", "x"),
    ]
    assert said(published, "--broken", "--from", f"/{DOMAIN}/c.html") == []


def test_a_folder_without_its_slash_is_not_broken(kept: Archive) -> None:
    """Servers redirect it to the folder; git has the folder, and not the redirect."""
    body = b"<a href=/sub>sub</a><a href=/none>none</a><a href='/sub?q'>q</a>"
    publish(kept, DOMAIN, {"a.html": body, "sub/index.html": b"", "x.html": b""})
    catch_up(kept)
    assert {row[2] for row in said(kept, "--broken")} == {"none", "q"}


def test_external(published: Archive) -> None:
    assert said(published, "--external") == [("a.html", f"http://{DOMAIN}/b.html", "Zur Ubersicht")]
    targets = {row[1] for row in said(published, "--external", "--at", f"2026-11-21T03:00:00@{DOMAIN}")}
    assert targets == {f"http://{OTHER}/a.html", "http://unknown.example/"}


def test_counts_of_a_snapshot(published: Archive) -> None:
    """Seed 2's figures 39 to 42."""
    answer = webarc(
        "links", "--archive", str(published.root), "--count", f"2026-11-21T03:00:00@{DOMAIN}", "--format", "json"
    )
    assert json.loads(answer.stdout) == {
        "total": 8, "external": 2, "external_targets": 2, "internal": 6, "mails": 1, "images": 1,
    }  # fmt: skip
    answer = webarc("links", "--archive", str(published.root), "--count", f"2026-11-21T03:00:00@{OTHER}")
    assert [line.split()[-1] for line in answer.stdout.splitlines()] == ["1", "1", "1", "0", "0", "0"]


def test_formats(published: Archive) -> None:
    found = ask(published, "--from", f"/{DOMAIN}/c.html")
    answer = webarc("links", "--archive", str(published.root), "--from", f"/{DOMAIN}/c.html", "--format", "json")
    assert [{name: str(value) for name, value in row.items()} for row in json.loads(answer.stdout)] == found
    assert found[0]["since"] == "2026-11-21T03:00:01" and found[0]["until"] == "" and found[0]["times"] == "1"
    answer = webarc("links", "--archive", str(published.root), "--from", f"/{DOMAIN}/c.html")
    assert "new" in answer.stdout and len(answer.stdout.splitlines()) == 2
    assert len(ask(published, "--external", "--ever", "--limit", "1")) == 1
    assert (
        len(
            webarc(
                "links", "--archive", str(published.root), "--word", "x", "--limit", "0", "--format", "csv"
            ).stdout.splitlines()
        )
        == 1
    )


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        ([], 1, "say which links"),
        (["--from", "/a/b", "--to", "http://e.org/"], 1, "give one"),
        (["--from", "relative"], 1, "names no document"),
        (["--from", "http://nowhere.example/"], 2, "no domain"),
        (["--from", f"/{DOMAIN}/../x"], 1, "names no document"),
        (["--to", "javascript:x"], 1, "give a URL"),
        (["--to", "'; DROP TABLE link --"], 1, "give a URL"),
        (["--word", "x", "--at", "yesterday"], 1, "commitTag"),
        (["--word", "x", "--at", f"2001-01-01T00:00:00@{DOMAIN}"], 2, "no snapshot"),
        (["--broken", "--at", f"2026-11-21T03:00:00@{DOMAIN}", "--ever"], 1, "give one"),
        (["--count", "x@y", "--broken"], 1, "nothing narrows it"),
        (["--count", f"2001-01-01T00:00:00@{DOMAIN}"], 2, "no snapshot"),
    ],
)  # fmt: skip
def test_bad_questions(published: Archive, words: list[str], code: int, part: str) -> None:
    answer = webarc("links", "--archive", str(published.root), *words)
    assert (answer.returncode, part in answer.stderr) == (code, True), answer.stderr


def test_an_answer_that_takes_too_long_is_given_up(kept: Archive) -> None:
    publish(kept, DOMAIN, {"a.html": b"".join(b"<a href=%d.html>n</a>" % number for number in range(3_000))})
    catch_up(kept)
    with pytest.raises(TookTooLong):
        list(link_index.ask(kept, link_index.Question(word="n", external=True), 0.0))
    with pytest.raises(TookTooLong, match="more than 0 s"):
        list(link_index.ask(kept, link_index.Question(broken=True, kind=AskedKind.MAIL), 0.0))


@pytest.mark.parametrize("held", ["links", "database"])
def test_what_is_being_written_to_is_not_called_damaged(
    published: Archive, held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody shall make anew what another process is at."""
    monkeypatch.setattr(link_index, "PATIENCE", 0.01)
    with closing(sqlite3.connect(getattr(published, held), isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Busy, match="is being written to"):
            list(link_index.ask(published, link_index.Question(broken=True), 30.0))
        writer.execute("ROLLBACK")


@pytest.mark.parametrize("left", ["links", "database"])
def test_what_a_killed_writer_left_waits_for_the_next_one(published: Archive, left: str) -> None:
    """Readers may not play its journal back, and are not told to make all of it anew."""
    expected = ask(published, "--broken")
    script = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA cache_size = 5'); c.execute('BEGIN IMMEDIATE');"
        "c.executemany('INSERT INTO domain (name) VALUES (?)', ((str(n) * 50,) for n in range(3000)));"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, getattr(published, left)], check=False)
    answer = webarc("links", "--archive", str(published.root), "--broken")
    assert (answer.returncode, "webarc-agent crawl" in answer.stderr, "recover" in answer.stderr) == (2, True, False)
    catch_up(published)
    assert ask(published, "--broken") == expected


def test_a_reader_writes_nothing(published: Archive) -> None:
    before: Mapping[str, int] = {path.name: path.stat().st_mtime_ns for path in published.root.iterdir()}
    ask(published, "--broken")
    ask(published, "--word", "x")
    assert {path.name: path.stat().st_mtime_ns for path in published.root.iterdir()} == before


@pytest.mark.parametrize("asked", [Question(ever=True), Question(ever=True, broken=True), Question(limit=2)])
def test_no_writer_waits_while_an_answer_is_judged_for_a_reader(published: Archive, asked: Question) -> None:
    class Looking:
        """A reader that sees everything, and tries to write whenever it is asked."""

        def span(self, _path: str, first: int, last: int) -> tuple[int, int] | None:
            with closing(sqlite3.connect(published.links, timeout=0, isolation_level=None)) as writer:
                writer.execute("BEGIN EXCLUSIVE")  # fails at once where somebody reads
                writer.execute("ROLLBACK")
            return first, last

        def held(self, url: str) -> LinkTarget:
            self.span(url, 0, 0)
            return LinkTarget(True, "" if url.endswith("gone.html") else "some")

    found = list(link_index.ask(published, asked, 60, Looking(), arcs=True))
    gone = [each for each in found if each.target.endswith("gone.html")]
    assert found and (gone == found if asked.broken else len(found) == (asked.limit or len(found)))


def test_a_long_answer_for_a_reader_is_spooled(published: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    class Seeing:
        def span(self, _path: str, first: int, last: int) -> tuple[int, int] | None:
            return first, last

        def held(self, _url: str) -> LinkTarget:
            return LinkTarget(True, "")

    whole = list(link_index.ask(published, Question(ever=True), 60, Seeing()))
    for name, value in (("_PAGE", 2), ("_SPOOLED", 64)):
        monkeypatch.setattr(link_index, name, value)
    assert list(link_index.ask(published, Question(ever=True), 60, Seeing())) == whole
