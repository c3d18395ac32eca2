"""Turns of the request threads: one thread at a time receives requests, until it reports that it will be busy.

If two threads wait for requests at once, the kernel wakes them alternately, and each then waits for the interpreter
lock that the other holds; this doubles the cost of a short request (measured). So one thread receives all requests, and
the others stand by. Work that may take long calls `pass_on`, and another thread goes on meanwhile;
`SlowRequestWatcher` finds slow work that did not call it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from webarcfs.view import slow_causes

#: Seconds between two checks for a slow request.
INTERVAL = 0.1


class ReceiverTurn:
    """The turn of one session. Safe for any thread."""

    def __init__(self) -> None:
        self._taken = threading.Lock()
        self._mutex = threading.Lock()
        self._holder = 0
        self._busy = False
        self._requests = 0

    def work(self, receive: Callable[[], bool], process: Callable[[], bool]) -> None:
        """Receive and process requests whenever it is this thread's turn, until the session ends.

        Any number of threads may call it. `receive` and `process` return False at the end.
        """
        me = threading.get_ident()
        going = True
        while going:
            if self._holder != me:
                self._taken.acquire()  # released by pass_on, maybe in another thread
                self._holder = me
            going = receive()
            if going:
                self._requests += 1
                self._busy = True
                going = process()
                if self._holder == me:
                    self._busy = False
        self.pass_on()  # the other threads must see the end, too

    def pass_on(self) -> None:
        """Pass the calling thread's turn on, if it has it: the thread will be busy."""
        self._pass_on(threading.get_ident())

    def look(self, before: int) -> int:
        """Pass the turn on if the latest request was under way at the last check; return a number for the next."""
        holder, requests = self._holder, self._requests
        if self._busy and requests == before:
            slow_causes.note(holder, "no other request was taken until the lookout acted")
            self._pass_on(holder)
        return requests

    def _pass_on(self, holder: int) -> None:
        with self._mutex:
            if self._holder != holder or not holder:
                return
            self._holder = 0
            self._busy = False
        self._taken.release()


class SlowRequestWatcher(threading.Thread):
    """The thread that finds slow requests."""

    def __init__(self, turn: ReceiverTurn, interval: float = INTERVAL) -> None:
        super().__init__(name="lookout", daemon=True)
        self._turn = turn
        self._interval = interval
        self._end = threading.Event()

    def run(self) -> None:
        """Check repeatedly."""
        seen = 0
        while not self._end.wait(self._interval):
            seen = self._turn.look(seen)

    def stop(self) -> None:
        """End the thread."""
        self._end.set()
        self.join()
