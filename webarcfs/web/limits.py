"""The bounds of the reading room: what one request, one client and one process may take. Pure.

One table, so that an administrator finds them together. Sizes are bytes and times are seconds, where nothing else is
said. Each is of one worker process.
"""

from __future__ import annotations

from typing import Final

# -- a request ---------------------------------------------------------------------------------------------------------

#: Longest query string of a URL (414 beyond); an archived URL with its own query string counts too.
QUERY_BYTES: Final = 8_192
#: Longest head of a request: its line and all header fields (431 beyond).
HEAD_BYTES: Final = 32_768
#: Time in which the body of a script's request comes (408 beyond). Its size is bounded where keys are made.
BODY_SECONDS: Final = 10.0
#: Bytes of a body that is refused which are read all the same, so that the browser takes the answer.
DISCARDED_BYTES: Final = 4 * 1024 * 1024
#: Time for one answer, or for one piece of a streamed answer, waiting for a thread included (503 beyond). The work for
#: an answer that was given up ends.
SECONDS: Final = 30.0
#: Time that a thread may work for all pieces of a streamed answer; the connection is cut beyond.
STREAM_SECONDS: Final = 120.0
#: Answers that something is not there (404) go out at multiples of this time after their requests came.
ABSENT_STEP_SECONDS: Final = 0.025
#: Requests that wait for a thread; the next one is asked to try again.
WAITING: Final = 200
#: The same for requests that may read much, which have threads of their own.
COSTLY_WAITING: Final = 50
#: What `Retry-After` says where something is busy.
RETRY_SECONDS: Final = 5

# -- clients -----------------------------------------------------------------------------------------------------------

#: Open connections of a listener: 503 for requests beyond. Connections beyond twice as many are closed at once.
CONNECTIONS: Final = 1_000
#: Requests of a connection that wait for the one before them.
PIPELINED: Final = 16
#: Time for which an idle connection is kept for a further request.
KEEP_ALIVE_SECONDS: Final = 5
#: Time that a client has to send the head of its request (408 beyond).
HEAD_SECONDS: Final = 10.0
#: Time in which a client takes at least `SLOW_BYTES` of an answer that waits for it; else its connection is closed.
SLOW_SECONDS: Final = 30.0
#: The bytes of `SLOW_SECONDS`: 500 a second.
SLOW_BYTES: Final = 15_000

# -- processes ---------------------------------------------------------------------------------------------------------

#: Threads in which handlers run.
THREADS: Final = 4
#: Further threads for requests that may read much, such as CDX, TimeMaps, comparisons and searches.
COSTLY_THREADS: Final = 2
#: Pools of the C library's memory (mallopt(3)), by default eight for each processor: each keeps its largest size ever.
POOLS: Final = 1
#: Time that running requests have to finish when a worker ends.
GRACE_SECONDS: Final = 10
#: Time in which a worker gives a sign of life; else it is killed, and another one takes its place.
HEALTH_SECONDS: Final = 30.0
#: Time that a worker has to start.
START_SECONDS: Final = 120.0
#: Repositories that are open at a time.
REPOSITORIES: Final = 256
#: Memory of the positions of references that the rewriter keeps.
REWRITER_CACHE_BYTES: Final = 32 * 1024 * 1024
#: Largest body that is rewritten; a larger one is not shown as a page.
REWRITTEN_BYTES: Final = 16 * 1024 * 1024
#: Largest script, and longest script in a page, that is held until it has come whole, where scripts run: its calls of
#: `import()` are led into the archive. A larger one passes as it is.
SCRIPT_BYTES: Final = 8 * 1024 * 1024
INLINE_SCRIPT_BYTES: Final = 2 * 1024 * 1024

# -- answers -----------------------------------------------------------------------------------------------------------

#: Time that means the present, where no time is asked for (seconds since 1970: the year 9999).
NOW: Final = 253_402_300_799
#: Snapshots on a page of the list of a calendar.
CALENDAR_ROWS: Final = 100
#: Links of a snapshot that are listed.
LINKS: Final = 100_000
#: Documents of a comparison that are listed.
COMPARED: Final = 100_000
#: Bytes and lines of a page that are compared with another version.
DIFF_BYTES: Final = 2 * 1024 * 1024
DIFF_LINES: Final = 5_000
#: Words of changed lines that are compared; further lines are marked as a whole.
DIFF_WORDS: Final = 100_000
#: References of a page whose distance in time is looked up.
EMBEDDED: Final = 100

#: Captures that are looked through for URLs that differ in a time or a random number alone, and such URLs.
ALIKE_CAPTURES: Final = 1_000
ALIKE_URLS: Final = 32

#: Bytes of the rows of one answer to a query of the API, which lie in an unnamed file until the client has them.
ROWS_BYTES: Final = 1 << 30

# -- kept between requests ---------------------------------------------------------------------------------------------

#: Captures of which is kept what data.xml says: how far they can be relied on, and what a browser showed of them.
EVIDENCE: Final = 4_096
#: Pages of which is kept whether they have scripts.
SCRIPTED: Final = 4_096
#: Snapshots whose counts are kept.
COUNTS: Final = 256
#: Pages whose distance in time is kept.
DISTANCES: Final = 4_096
#: Listeners to the news of the API, each with a connection that stays open.
WATCHERS: Final = 200
#: Readers for whom the API keeps an archive open, and domains that are open for one of them.
API_READERS: Final = 16
API_DOMAINS: Final = 256
