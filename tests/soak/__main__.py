"""`python -m tests.soak [NAME…]`: runs the long tests one after the other (`make soak`); exits 1 if one failed."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Soak:
    """A long test: a module to run, or the tests of a file at full length, which the environment asks for."""

    what: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


#: Name → what it is. Each is the full form of something that CI runs in a small one.
SOAKS: dict[str, Soak] = {
    "properties": Soak(
        "all that is made up of streams, trees, histories and files, with five times the examples",
        (
            "-m",
            "pytest",
            "--timeout=7200",
            "-n",
            "6",
            "--dist",
            "loadfile",
            "-m",
            "not large",
            "tests/pure",
            "tests/store",
            "tests/exchange",
            "tests/crawl/test_import_crawls.py",
            "tests/crawl/test_import_bad.py",
            "tests/crawl/test_import_any_order.py",
            "tests/crawl/test_import_arc.py",
            "tests/crawl/test_import_har.py",
            "tests/crawl/test_import_httrack.py",
            "tests/crawl/test_import_saved.py",
            "tests/crawl/test_import_wacz.py",
            "tests/crawl/test_import_zstd.py",
        ),
        {"PROPERTIES": "all"},
    ),
    "bindings": Soak(
        "all tests of the mount, through each binding",
        ("-m", "pytest", "--timeout=7200", "-n", "6", "--dist", "loadfile", "tests/mount"),
        {"WEBARC_SOAK": "1"},
    ),
    "many-hosts": Soak(
        "a crawl of a hundred hosts, eighty of which answer, is complete for these",
        ("-m", "pytest", "--timeout=7200", "tests/crawl/test_real_hosts.py", "-k", "many_hosts"),
        {"ANSWERING_HOSTS": "80"},
    ),
    "wordcount": Soak(
        "the example's counts of 200 random pages agree with lxml's text of them",
        ("-m", "pytest", "tests/mount/test_wordcount.py", "-k", "agree"),
        {"WORDCOUNT_PAGES": "200"},
    ),
    "mount": Soak(
        "readers, writers, crawls and repacks on one mount for ten minutes; nothing is lost or left",
        ("-m", "tests.soak.mount"),
    ),
    "follow": Soak(
        "tail -f .changes acts on each of a hundred crawls exactly once",
        ("-m", "pytest", "tests/mount/test_trouble.py", "-k", "follows"),
        {"FOLLOWED_CRAWLS": "100"},
    ),
    "big": Soak(
        "a page with as many links as are read of one",
        ("-m", "pytest", "tests/crawl/test_big.py", "-k", "very_many_links"),
        {"BIG_LINKS": "100000"},
    ),
    "redirects": Soak(
        "5,000 answers of five crawls of a site that changes, each as the server's own log has it",
        ("-m", "pytest", "tests/crawl/test_redirect_answers.py"),
        {"MANY_REDIRECTS": "200"},
    ),
    "large-folder": Soak(
        "a folder of 60,000 entries lists in linear time and flat memory",
        ("-m", "pytest", "tests/mount/test_caching.py", "-k", "large_folder"),
        {"LARGE_FOLDER": "60000"},
    ),
    "stateful": Soak(
        "2,000 random steps on each of 20 seeds, on each binding, against a model of the mount",
        ("-m", "pytest", "-n", "6", "tests/mount/test_stateful.py"),  # they wait more than they compute
        {"STATEFUL_SEEDS": "20", "STATEFUL_STEPS": "2000"},
    ),
    "exerciser": Soak(
        "40,000 random operations through several handles of open files, on each binding, against plain bytes",
        ("-m", "pytest", "--timeout=7200", "-n", "2", "tests/mount/test_exerciser.py"),
        {"EXERCISER_OPERATIONS": "40000"},
    ),
    "minute": Soak(
        "a hundred kill -9 of a mount, while makers change what has not settled; what was confirmed last is there",
        ("-m", "pytest", "--timeout=7200", "tests/crash/test_minute.py"),
        {"MINUTE_KILLS": "100"},
    ),
    "changes": Soak(
        "six makers write, cut, append and rename a thousand times, one change at once after the other",
        ("-m", "pytest", "--timeout=7200", "tests/mount/test_settling.py", "-k", "follow_each_other"),
        {"CHANGE_ROUNDS": "1000"},
    ),
    "crash": Soak(
        "fifty kill -9 of a mount, on each binding, while tools write; what close confirmed is there",
        ("-m", "pytest", "--timeout=7200", "tests/crash/test_crash.py"),
        {"CRASH_ROUNDS": "50"},
    ),
    "power": Soak(
        "thirty power cuts on each model of a disk, while tools write; what close confirmed is there",
        ("-m", "pytest", "--timeout=7200", "tests/crash/test_power.py"),
        {"POWER_CUTS": "30"},
    ),
    "writers": Soak(
        "sixteen processes add 10,000 files and 10,000 nodes to 1,000 ARCs while crawls publish",
        ("-m", "tests.soak.writers"),
    ),
    "publications": Soak(
        "thirty publications with intervals of seconds under one agent for ten minutes",
        ("-m", "tests.soak.publications"),
    ),
    "many-publications": Soak(
        "126 publications on 200 hosts under one agent, all due at once; each is crawled once and whole",
        ("-m", "pytest", "--timeout=7200", "-s", "tests/service/test_many_publications.py"),
        {"PUBLICATIONS": "126", "PUBLICATION_HOSTS": "200", "PUBLICATION_PAGES": "60"},
    ),
    "hosts": Soak(
        "forty hosts share four places of a crawl for a minute, each has its part",
        ("-m", "tests.soak.hosts"),
    ),
    "lists": Soak(
        "10,000 bookmarks are one job that goes on after kill -9, a million URLs enter a frontier, in flat memory",
        ("-m", "pytest", "--timeout=7200", "-s", "tests/crawl/test_real_scale.py", "-k", "list or bookmarks"),
        {"LISTED_URLS": "10000", "LONG_LIST": "1000000", "BOMB_MIB": "2048"},
    ),
    "sitemaps": Soak(
        "an index of 50,000 sitemaps with 1,000 URLs each, and 2 GB of gzip, end in flat memory",
        ("-m", "pytest", "--timeout=7200", "-s", "tests/crawl/test_real_scale.py", "-k", "sitemap"),
        {"SITEMAPS": "50000x1000x50000 50000x1x50000", "BOMB_MIB": "2048"},
    ),
    "sites": Soak(
        "whole sites byte for byte, in git and through each binding",
        ("-m", "pytest", "tests/crawl/test_bytes.py", "tests/mount/test_crawled.py"),
        {"WEBARC_SOAK": "1"},
    ),
    "twins": Soak(
        "1,000 histories of ten crawls with twins of http and https and of a folder's index; no version is lost",
        ("-m", "pytest", "--timeout=36000", "tests/crawl/test_twins.py", "-k", "each_url"),
        {"TWIN_HISTORIES": "1000"},
    ),
    "eight-years": Soak(
        "200 WARCs of one host over eight years, imported as a folder, exported and imported again",
        ("-m", "pytest", "--timeout=7200", "tests/exchange/test_eight_years.py"),
        {"YEARS_FILES": "200"},
    ),
    "kill": Soak(
        "kill -9 of a crawl at each point and amid each stage; the next one finishes it",
        ("-m", "pytest", "tests/kill/test_kill.py"),
        {"WEBARC_SOAK": "1"},
    ),
    "kill-notifications": Soak(
        "kill -9 at fifty points of a notification, with a mail program and a webhook; each is told, at most once more",
        ("-m", "pytest", "tests/kill/test_notify_kills.py"),
        {"WEBARC_SOAK": "1"},
    ),
    "kill-many": Soak(
        "100 crawls of one archive, each killed at another step; each state and record is what the site said",
        ("-m", "pytest", "--timeout=7200", "tests/kill/test_many_kills.py"),
        {"KILLS": "100"},
    ),
    "kill-steps": Soak(
        "100 kills over all steps of snapshots; nothing is lost, no step done twice, verify is clean",
        ("-m", "pytest", "--timeout=7200", "tests/kill/test_step_kills.py"),
        {"KILLS": "100"},
    ),
    "gate": Soak(
        "the forms of the gate agree on 10,000 histories in memory and on 500 archives",
        ("-m", "pytest", "--timeout=7200", "tests/store/test_gate.py"),
        {"GATE_HISTORIES": "10000", "GATE_ARCHIVES": "500"},
    ),
    "search-gate": Soak(
        "searches of readers agree with the gate on 300 archives",
        ("-m", "pytest", "--timeout=7200", "tests/store/test_search_gate.py"),
        {"SEARCH_ARCHIVES": "300"},
    ),
    "reader-attacks": Soak(
        "1,000 conditions of readers learn nothing of what is hidden, by answers, steps and times",
        ("-m", "pytest", "--timeout=7200", "-s", "tests/store/test_reader_attacks.py"),
        {"READER_QUESTIONS": "1000", "READER_PAIRS": "200"},
    ),
    "search-truth": Soak(
        "500 words and 100 phrases of each of three real sites, in four states, as another parser finds them",
        ("-m", "pytest", "--timeout=7200", "-s", "tests/store/test_search_truth.py"),
        {"TRUTH_WORDS": "500", "TRUTH_PHRASES": "100", "TRUTH_PAGES": "2000"},
    ),
    "kill-index": Soak(
        "kill -9 of the indexer some hundred times, and of publications beside it; counts are equal, verify is clean",
        ("-m", "pytest", "--timeout=7200", "-s", "tests/kill/test_kill_indexer.py"),
        {"INDEX_KILLS": "60"},
    ),
    "room": Soak(
        "200 pages of four real sites beside the live ones, links of 50, 0 requests of hostile pages in both engines",
        ("-m", "pytest", "--timeout=3000", "-s", "tests/room/test_browser.py", "tests/room/test_pywb.py"),
        {"ROOM_PAGES": "50", "ROOM_LINKED": "50", "PYWB_HOSTILE": "400", "ROOM_HOSTILE": "400"},
    ),
    "looks": Soak(
        "no page of the room or the desk is closed to anybody, in two languages, light and dark, on a desk and a phone",
        ("-m", "pytest", "--timeout=7200", "-n", "2", "tests/room/test_look.py", "tests/desk/test_desk_browser.py"),
        {"ROOM_LOOK": "1", "DESK_LOOK": "1"},
    ),
    "apps": Soak(
        "eleven front ends, crawled by our browser and recorded by another program; all of them run from the archive",
        ("-m", "pytest", "--timeout=7200", "tests/room/test_apps_by_browser.py", "tests/room/test_built_apps.py"),
        {"APPS_BY_BROWSER": "all"},
    ),
    "split-sites": Soak(
        "50 pages of four real sites, split over three hosts each and crawled, beside the live ones; none lacks a part",
        ("-m", "pytest", "--timeout=7200", "-s", "tests/room/test_split_sites.py"),
        {"SPLIT_PAGES": "50"},
    ),
    "costly": Soak(
        "eight of each costly question at once to an archive of a million captures; others are answered, none works on",
        ("-m", "pytest", "--timeout=7200", "-s", "tests/room/test_deadlines.py", "-k", "eight_costly"),
        {"COSTLY_DOCUMENTS": "100000"},
    ),
    "clicks": Soak(
        "500 hostile documents of all types, each link clicked in the room and in an exported folder; none leads out",
        ("-m", "pytest", "--timeout=7200", "-s", "tests/room/test_clicks.py"),
        {"CLICK_DOCUMENTS": "500"},
    ),
    "static": Soak(
        "all of Python's documentation as a folder: all links, 50 pages beside the live ones, all hostile pages",
        ("-m", "pytest", "--timeout=3000", "-s", "tests/exchange/test_static_browser.py"),
        {"STATIC_LINKED": "0", "STATIC_SHOTS": "50", "STATIC_HOSTILE": "1"},
    ),
    "kill-export": Soak(
        "60 kill -9 of exports, beside crawls and upkeep; the bytes are those of one that went through",
        ("-m", "pytest", "--timeout=7200", "tests/kill/test_kill_export.py"),
        {"EXPORT_KILLS": "60"},
    ),
    "round-trip": Soak(
        "three real sites as a whole: out as WARC, in again object for object, and as a crawl of any crawler's",
        ("-m", "pytest", "--timeout=7200", "tests/exchange/test_round_trip.py"),
        {"ROUND_TRIP_DOCUMENTS": "0"},
    ),
    "large-record": Soak(
        "a document of a gigabyte leaves an archive and comes back, in flat memory",
        ("-m", "tests.soak.largerecord"),
    ),
    "kill-orders": Soak(
        "kill -9 of a job amid each order, again and again; nothing is lost, nothing taken twice",
        ("-m", "pytest", "tests/service/test_orders.py", "-k", "kill"),
        {"ORDER_KILLS": "pause stop discard exclude"},
    ),
    "kill-agent": Soak(
        "kill -9 of an agent's job in every stage; the next start finishes it",
        ("-m", "pytest", "tests/kill/test_kill_agent.py"),
        {"WEBARC_SOAK": "1"},
    ),
    "going-on": Soak(
        "an agent or its job killed at several stages, the next start at once or later, a left lock, a freed disk",
        ("-m", "pytest", "tests/kill/test_going_on.py"),
        {"WEBARC_SOAK": "1"},
    ),
    "kill-random": Soak(
        "kill -9 at 50 random moments of crawls and imports; nothing lost, nothing doubled",
        ("-m", "pytest", "tests/kill/test_random.py"),
        {"KILL_ROUNDS": "50"},
    ),
    "kill-browser": Soak(
        "kill -9 of the job, the browser and what drives it at 100 moments; nothing is fetched twice, nothing is left",
        ("-m", "tests.soak.browser_kills", "--kills", "100"),
    ),
    "kill-browser-apps": Soak(
        "the same at 20 moments of a crawl of built apps: their URLs and bodies are those of a crawl without a kill",
        ("-m", "tests.soak.browser_kills", "--kills", "20", "--apps"),
    ),
    "browser-trouble": Soak(
        "disks that get full and clocks that are set amid pages, in all their forms; nothing is lost",
        ("-m", "pytest", "--timeout=7200", "-n", "2", "tests/crawl/test_browser_trouble.py"),
        {"WEBARC_SOAK": "1"},
    ),
    "many-shown": Soak(
        "500 pages by browser: its memory stays, within the life of one browser and over all of them",
        ("-m", "tests.soak.many_shown"),
    ),
    "kill-journal": Soak(
        "kill -9 of a process that confirms and commits additions, at 100 moments; nothing is lost, nothing doubled",
        ("-m", "pytest", "tests/store/test_journal.py", "-k", "kill_9", "-o", "timeout=3600"),
        {"WEBARC_JOURNAL_KILLS": "100"},
    ),
}


def main() -> int:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(
        prog="make soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:20} {soak.what}" for name, soak in SOAKS.items()),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which of them; all if none is named")
    names = parser.parse_args().names or list(SOAKS)
    unknown = [name for name in names if name not in SOAKS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are: {', '.join(SOAKS)}")
    failed = []
    for name in names:
        print(f"=== {name}: {SOAKS[name].what}", flush=True)
        done = subprocess.run(
            [sys.executable, *SOAKS[name].command], env=os.environ | SOAKS[name].environment, check=False
        )
        print(f"=== {name}: {'passed' if not done.returncode else f'failed, exit {done.returncode}'}", flush=True)
        failed += [name] if done.returncode else []
    print(f"{len(names) - len(failed)} of {len(names)} passed" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
