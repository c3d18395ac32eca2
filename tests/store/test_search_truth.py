"""Searches find what an independent reading of real pages finds: words and phrases, at present and in older states."""

from __future__ import annotations

import os
import random
from datetime import timedelta
from pathlib import Path

import pytest

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.realsites import HANDBOOK, POSTGRESQL, PYTHON, RealSite
from tests.support.truth import Truth, states
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.search.searching import Searcher, SearchQuestion

pytestmark = [pytest.mark.store, pytest.mark.timeout(3_000)]
#: Words, phrases and pages; the soak has more.
_WORDS = int(os.environ.get("TRUTH_WORDS", "20"))
_PHRASES = int(os.environ.get("TRUTH_PHRASES", "8"))
_PAGES = int(os.environ.get("TRUTH_PAGES", "60"))


@pytest.mark.parametrize("site", [PYTHON, POSTGRESQL, HANDBOOK], ids=lambda site: site.package)
def test_hits_equal_the_truth(tmp_path: Path, site: RealSite) -> None:
    if not site.is_installed:
        pytest.skip(site.missing)
    archive = archives.make_archive(tmp_path)
    domain = "site.example.org"
    moments: list[CommitTag] = []
    before: dict[str, bytes] = {}
    history = states(site, _PAGES)
    for number, state in enumerate(history):
        changes: dict[str, bytes | None] = {path: body for path, body in state.items() if before.get(path) != body}
        changes |= dict.fromkeys(before.keys() - state.keys())
        moments.append(archives.publish(archive, domain, changes, archives.FIRST + timedelta(days=number)))
        before = state
    recover(archive)
    bring_in_step(archive)
    searcher = Searcher(archive)
    known: dict[bytes, list[str]] = {}
    chance = random.Random(2)
    compared = found = 0
    for number, state in reversed(list(enumerate(history))):
        at = moments[number] if number < len(history) - 1 else None
        truth = Truth(state, known)
        words = chance.sample(sorted(truth.words), min(_WORDS, len(truth.words)))
        for word in words:
            compared += 1
            found += len(truth.words[word])
            assert _paths(searcher, f"text:{word}", at, domain) == truth.with_word(word), (word, at)
        for phrase in truth.phrases(chance, _PHRASES):
            compared += 1
            assert _paths(searcher, f'text:"{" ".join(phrase)}"', at, domain) == truth.with_phrase(phrase), (phrase, at)
    assert compared > 4 * (_WORDS + _PHRASES) * 0.9 and found > compared
    print(f"{site.package}: {len(history[0])} pages, {compared} words and phrases in {len(history)} states")


def _paths(searcher: Searcher, words: str, at: CommitTag | None, domain: str) -> set[str]:
    question = SearchQuestion(words=words, at=at, present=at is None, exact=True, limit=10_000)
    return {path.removeprefix(f"/{domain}/") for _, path in searcher.places(question)}
