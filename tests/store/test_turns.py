"""Whose turn it is to take a request: one thread's, until it takes long."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

import pytest

from webarcfs.mount.adapters.libfuse3.session import ReceiverTurn, SlowRequestWatcher

pytestmark = pytest.mark.store
WAIT = 60.0


class Session:
    """Requests are functions, put by the test; two threads take them."""

    def __init__(self, turn: ReceiverTurn) -> None:
        self._turn = turn
        self._requests: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._mine = threading.local()
        self.receiving = 0
        self.most = 0
        self._count = threading.Lock()
        self.threads = [threading.Thread(target=turn.work, args=(self._receive, self._process)) for _ in range(3)]
        for thread in self.threads:
            thread.start()

    def ask(self, request: Callable[[], None]) -> None:
        self._requests.put(request)

    def end(self) -> None:
        for _ in self.threads:
            self._requests.put(None)
        for thread in self.threads:
            thread.join(WAIT)
        assert not any(thread.is_alive() for thread in self.threads)

    def _receive(self) -> bool:
        with self._count:
            self.receiving += 1
            self.most = max(self.most, self.receiving)
        request = self._mine.request = self._requests.get(timeout=WAIT)
        with self._count:
            self.receiving -= 1
        return request is not None

    def _process(self) -> bool:
        self._mine.request()
        return True


@pytest.fixture
def turn() -> ReceiverTurn:
    return ReceiverTurn()


@pytest.fixture
def session(turn: ReceiverTurn) -> Iterator[Session]:
    session = Session(turn)
    yield session
    session.end()


def test_one_thread_takes_all_requests_while_none_takes_long(session: Session) -> None:
    takers: queue.SimpleQueue[int] = queue.SimpleQueue()
    for _ in range(100):
        session.ask(lambda: takers.put(threading.get_ident()))
    assert len({takers.get(timeout=WAIT) for _ in range(100)}) == 1
    assert session.most == 1


def test_others_are_answered_while_a_request_takes_long_that_said_so(session: Session, turn: ReceiverTurn) -> None:
    end, answered = threading.Event(), threading.Event()

    def long() -> None:
        turn.pass_on()
        turn.pass_on()  # once is enough, twice does no harm
        assert end.wait(WAIT)

    session.ask(long)
    session.ask(answered.set)
    assert answered.wait(WAIT)
    end.set()


def test_others_are_answered_while_a_request_takes_long_that_did_not_say_so(
    session: Session, turn: ReceiverTurn
) -> None:
    lookout = SlowRequestWatcher(turn, 0.02)
    lookout.start()
    end, answered = threading.Event(), threading.Event()
    session.ask(lambda: _wait(end))
    session.ask(answered.set)
    assert answered.wait(WAIT)
    end.set()
    lookout.stop()


def _wait(event: threading.Event) -> None:
    assert event.wait(WAIT)
