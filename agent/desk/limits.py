"""The bounds of the desk, beside those of the room's server, which hold for its connections. Pure.

One table, so that an administrator finds them together. Sizes are bytes and times are seconds, where nothing else is
said.
"""

from __future__ import annotations

from typing import Final

from webarcfs.archive.catalogue.record import LARGEST_ATTACHMENT

#: Largest body of a form (413 beyond), and the time in which it must be there (408 beyond).
BODY_BYTES: Final = 256 * 1024
BODY_SECONDS: Final = 15.0
#: The same for the form with a file, of who may attach one: the file is 20 MB at most. It is read as a stream.
UPLOAD_BYTES: Final = LARGEST_ATTACHMENT + BODY_BYTES
UPLOAD_SECONDS: Final = 300.0
#: Bytes of a file that are kept in memory; more go to a temporary file.
UPLOAD_IN_MEMORY: Final = 1 << 20
#: Most fields of a form.
FIELDS: Final = 2_000

#: A session ends when nothing was asked for so long, and in any case after the second time.
IDLE_SECONDS: Final = 12 * 3600
LONGEST_SECONDS: Final = 24 * 3600
#: Most sessions that are open, in all and of a person. One whose cookie never came back goes first, then the one that
#: was idle longest; in all, it is one of the person who has most.
SESSIONS: Final = 1_000
SESSIONS_OF_PERSON: Final = 50
#: Forms of a session that were sent, of which a second copy is told apart.
SENT: Final = 5_000
#: A preview is valid so long.
PREVIEW_SECONDS: Final = 3600

#: Guesses of passwords within `GUESS_SECONDS`: for a name from an address, from an address, and for a name in all.
GUESS_SECONDS: Final = 300.0
GUESSES_OF_BOTH: Final = 5
GUESSES_OF_ADDRESS: Final = 20
GUESSES_OF_NAME: Final = 30
#: Names and addresses that are remembered, each.
GUESSERS: Final = 10_000
#: Shortest and longest password, in characters.
PASSWORD_SHORTEST: Final = 10
PASSWORD_LONGEST: Final = 500

#: Rows of a page of a list, and of each part of Today.
ROWS: Final = 50
TODAY_ROWS: Final = 10
#: Snapshots that one form may release or change.
AT_ONCE: Final = 500
#: Days in which Today tells of what is over: incomplete and empty captures, rules that lapse.
DAYS: Final = 30

#: Seconds between two looks at the running jobs, for all that watch; and most that watch.
WATCH_SECONDS: Final = 1.0
WATCHERS: Final = 500
#: Seconds after which a watcher hears something, so that a broken connection is noticed.
WATCH_QUIET: Final = 15.0
