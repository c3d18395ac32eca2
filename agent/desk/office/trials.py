"""Trials of publications that are being written: each in a thread, a few at once, kept for an hour.

A trial keeps what was typed, so that its page has the form again, with what was found.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from agent.acts import trying
from agent.acts.trying import Trial
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.errors import Busy, WebarcError

#: Trials that run at once, those that are kept, and for how long.
_AT_ONCE, _MOST, _SECONDS = 2, 100, 3600.0


@dataclass(slots=True, eq=False)
class RunningTrial:
    """A trial: whose it is, what was typed, and what came of it."""

    name: str
    session: str
    typed: tuple[tuple[str, str], ...]
    state: str
    begun: float = field(default_factory=time.monotonic)
    found: Trial | None = None
    fault: str = ""

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.found is None and not self.fault


class Trials:
    """The trials of a desk. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, RunningTrial] = OrderedDict()

    def begin(self, archive: Archive, settings: Settings, publication: Publication, trial: RunningTrial) -> str:
        """Begin a trial; return its mark. Raises Busy while others run."""
        with self._lock:
            if sum(each.runs for each in self._known.values()) >= _AT_ONCE:
                raise Busy("others try publications at this moment; please try again in a minute")
            mark = secrets.token_urlsafe(9)
            self._known[mark] = trial
            while len(self._known) > _MOST:
                self._known.popitem(last=False)

        def attempt() -> None:
            try:
                profile = settings.profiles.get(publication.profile or "")
                trial.found = trying.attempt(archive, publication, profile, settings.crawl.max_instances)
            except (WebarcError, OSError) as error:
                trial.fault = str(error)
            except BaseException as error:
                trial.fault = f"unexpected: {error!r}"
                raise

        threading.Thread(target=attempt, name=f"trial of {publication.name}", daemon=True).start()
        return mark

    def find(self, mark: str, session: str) -> RunningTrial | None:
        """Return a trial of a session; None for any other, and for one that is long over."""
        with self._lock:
            found = self._known.get(mark)
        if found is None or found.session != session or time.monotonic() - found.begun > _SECONDS:
            return None
        return found


#: All trials of this process: they are few, and bounded.
TRIALS = Trials()
