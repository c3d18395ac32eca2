"""The step `index`: brings the full-text index in step, and notes what it is (fields 53 to 59)."""

from __future__ import annotations

from importlib.metadata import version

from agent.indexing import fulltext
from agent.steps.context import Clock, StepContext, StepResult


def index(step: StepContext) -> StepResult:
    """Index a snapshot, if the indexer has not done so. Raises UsageError without the libraries, Interrupted."""
    clock = Clock()
    fulltext.bring_in_step(step.archive, step.stop.is_set, step.progress)
    from agent.indexing.textless import textless  # noqa: PLC0415 # it needs the libraries
    from webarcfs.search import generations  # noqa: PLC0415
    from webarcfs.search.index import STEMMERS, VERSION  # noqa: PLC0415

    reader = generations.opened(step.archive)
    terms = reader.count_terms()
    missing = sum(1 for _ in textless(step.archive, [part.tag for part in step.record.parts]))
    texts = {
        53: clock.begun,
        54: step.person,
        55: clock.told,
        56: f"tantivy {version('tantivy')}",
        57: f"fields of version {VERSION}; words as written, and stems in {', '.join(sorted(STEMMERS))}",
        58: str(terms),
        59: f"{missing} documents of it have no text, or not all of it" if missing else "",
    }
    return StepResult(texts)
