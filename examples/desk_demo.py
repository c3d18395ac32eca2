"""`make desk`: the demo's archive with two people, its agent and its desk, until the Enter key; prints how to log in.

Serves Python's own documentation on loopback, crawls a part of it twice, releases the first crawl and leaves the
second to be released, then runs the agent and the desk. Where nobody sits before a terminal, it logs in once as a
browser does, checks what it sees, and ends. It leaves nothing behind: no process, no file.
"""

# ruff: noqa: T201 # it is there to print
from __future__ import annotations

import http.cookiejar
import secrets
import signal
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

from demo import Terminal, _linger, change, check, interrupted, scratch, serving

from agent.desk.login import hashed

#: Key, name, role.
PEOPLE = (("anna", "Anna Beispiel", "archivist"), ("adam", "Adam Beispiel", "administrator"))


def prepared(terminal: Terminal, folder: Path, port: int) -> dict[str, str]:
    """Make the archive, two crawls of a part of the site, and the people; return their passwords."""
    start = f"http://localhost:{port}/tutorial/index.html"
    terminal.run("webarc-agent init archive")
    (folder / "archive/webarc.toml").write_text(
        "# The demo's settings. The desk changes them as well, and keeps comments.\n"
        'release = "by-hand"\n\n[describe]\nsignature = "5100"\nprovenance = "Python Software Foundation"\n\n'
        "[crawl]\nwait = 0.0\ndepth = 1\n"
    )
    terminal.run(f"webarc-agent publication add tutorial {start} --archive archive --set interval='1 month'")
    for number in range(2):
        if number:
            change()
        terminal.run("webarc-agent --quiet crawl --archive archive --publication tutorial", codes=(0, 3))
    terminal.run("webarc-agent record release 1 --archive archive")
    passwords = {}
    for key, name, role in PEOPLE:
        passwords[key] = "-".join(secrets.token_hex(2) for _ in range(4))
        person = f'[person.{key}]\nname = "{name}"\nroles = ["{role}"]\npassword = "{hashed(passwords[key])}"\n'
        with (folder / "archive/people.toml").open("a", encoding="utf-8") as file:
            file.write(person)
    (folder / "archive/people.toml").chmod(0o600)
    return passwords


def looked_at(origin: str, password: str) -> None:
    """Log in as the archivist, and see that something waits for a release."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    form = urllib.parse.urlencode({"name": "anna", "password": password, "back": "/"}).encode()
    with opener.open(f"{origin}/login", form, timeout=60) as answer:
        page = answer.read().decode("utf-8")
    check("Anna Beispiel" in page, "the archivist could not log in")
    check("/snapshot/" in page, "nothing waits for a release")


def main() -> int:
    """The desk of the demo; its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with scratch() as (terminal, folder), serving() as site:
        terminal.without_proxy()
        terminal.heading("An archive with two crawls, and two people")
        passwords = prepared(terminal, folder, site)
        terminal.heading("Its agent and its desk")
        programs = []
        try:
            listen = ["--listen", f"127.0.0.1:{port}", "--access-log", "off"]
            for words in (["start", "--archive", "archive"], ["desk", "--archive", "archive", *listen]):
                print(f"$ webarc-agent {' '.join(words)}", flush=True)
                program = str(Path(sys.executable).with_name("webarc-agent"))
                out = subprocess.PIPE if words[0] == "desk" else subprocess.DEVNULL
                programs.append(
                    subprocess.Popen([program, *words], cwd=folder, text=True, stdout=out, stderr=subprocess.DEVNULL)
                )
            told = programs[-1].stdout.readline().strip() if programs[-1].stdout is not None else ""
            check(told, "the desk did not start")
            origin = f"http://127.0.0.1:{port}"
            for key, name, role in PEOPLE:
                print(f"  {origin}/  {name}, {role}: name {key}, password {passwords[key]}")
            looked_at(origin, passwords["anna"])
            _linger(f"{origin}/")
        finally:
            for each in reversed(programs):
                each.terminate()
            for each in reversed(programs):
                each.wait(60)
                if each.stdout is not None:
                    each.stdout.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
