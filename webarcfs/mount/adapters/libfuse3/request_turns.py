"""Whose turn it is to take a request: one thread's at a time, until it says that it will be busy.

Two threads that wait for requests at once take every other one each: the kernel wakes them in turn, and in Python each
then waits for the interpreter that the other holds, which doubles what a short request costs (measured). So one thread
takes all requests, and the others stand by. What may take long says so (`pass_on`), and another thread goes on
meanwhile; what takes long and did not say so is found by `SlowRequestWatcher`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

#: Seconds between two looks at whether a request takes long.
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
        """Take requests and have them answered whenever it is this thread's turn, until there are no more.

        Any number of threads may call it. `receive` and `process` say whether it goes on.
        """
        me = threading.get_ident()
        going = True
        while going:
            if self._holder != me:
                self._taken.acquire()  # given back by pass_on, maybe in another thread
                self._holder = me
            going = receive()
            if going:
                self._requests += 1
                self._busy = True
                going = process()
                if self._holder == me:
                    self._busy = False
        self.pass_on()  # the others, too, are to learn that it is over

    def pass_on(self) -> None:
        """The calling thread is busy for a while, if it was its turn."""
        self._pass_on(threading.get_ident())

    def look(self, before: int) -> int:
        """Pass the turn on if the request taken last was under way at the last look; a number for the next look."""
        holder, requests = self._holder, self._requests
        if self._busy and requests == before:
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
    """The thread that finds what takes long."""

    def __init__(self, turn: ReceiverTurn, interval: float = INTERVAL) -> None:
        super().__init__(name="lookout", daemon=True)
        self._turn = turn
        self._interval = interval
        self._end = threading.Event()

    def run(self) -> None:
        """Look again and again."""
        seen = 0
        while not self._end.wait(self._interval):
            seen = self._turn.look(seen)

    def stop(self) -> None:
        """End the thread."""
        self._end.set()
        self.join()
