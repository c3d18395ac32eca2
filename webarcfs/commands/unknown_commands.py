"""What is said of a command that a program does not have: the other program has it, or one is called nearly so."""

from __future__ import annotations

from collections.abc import Collection, Mapping

#: The commands of each program. A test compares them with what the programs have.
COMMANDS_OF: Mapping[str, tuple[str, ...]] = {
    "webarc": (
        "serve", "snapshots", "search", "curve", "query", "log", "diff", "stat", "cat", "links", "export", "dataset",
        "completion",
    ),
    "webarc-agent": (
        "init", "archives", "crawl", "save", "import", "start", "stop", "service", "job", "publication", "collection",
        "status", "metrics", "watch", "notify", "report", "record", "crawls", "register", "backup", "restore", "desk",
        "gateway", "withhold", "people", "recover", "index", "verify", "maintain", "upgrade",
    ),
}  # fmt: skip
#: Words of other programs, and of older versions: what does the same here.
_MEANT = {
    "ls": "webarc snapshots", "list": "webarc snapshots", "tags": "webarc snapshots", "versions": "webarc log",
    "history": "webarc log", "show": "webarc cat", "get": "webarc cat", "find": "webarc search",
    "grep": "webarc search", "sql": "webarc query", "compare": "webarc diff", "room": "webarc serve",
    "mount": "mount.webarcfs", "umount": "umount.webarcfs", "unmount": "umount.webarcfs",
    "add": "webarc-agent crawl", "fetch": "webarc-agent crawl",
    "capture": "webarc-agent crawl", "ingest": "webarc-agent import", "check": "webarc-agent verify",
    "fsck": "webarc-agent verify", "repair": "webarc-agent recover", "jobs": "webarc-agent job list",
    "pause": "webarc-agent job pause", "resume": "webarc-agent job resume", "runs": "webarc-agent crawls",
    "records": "webarc-agent record list", "publications": "webarc-agent publication list",
    "notifications": "webarc-agent notify list", "monitor": "webarc-agent watch",
    "release": "webarc-agent record release", "users": "webarc-agent people", "prune": "webarc-agent maintain",
}  # fmt: skip


def explain_unknown(program: str, word: str, commands: Collection[str]) -> str:
    """Return the message for a command that a program does not have; `commands` are those that it has."""
    import difflib  # noqa: PLC0415 # no command needs it to begin

    message = f"{program} has no command {word!r}"
    if other := next((name for name, words in COMMANDS_OF.items() if name != program and word in words), ""):
        return f"{message}; `{other} {word}` does that"
    if word in _MEANT:
        return f"{message}; `{_MEANT[word]}` does that"
    if near := difflib.get_close_matches(word, commands, 1, 0.75):
        return f"{message}; did you mean `{program} {near[0]}`?"
    elsewhere = {command: name for name, words in COMMANDS_OF.items() if name != program for command in words}
    if near := difflib.get_close_matches(word, elsewhere, 1, 0.75):
        return f"{message}; did you mean `{elsewhere[near[0]]} {near[0]}`?"
    return f"{message}; `{program} --help` lists them"
