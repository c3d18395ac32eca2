"""`webarc`: the commands for readers of an archive. Errors become one line and an exit code, here."""

from __future__ import annotations

import sys

import click

import webarcfs
from webarcfs.archive.model.errors import Exit, WebarcError, exit_code_of
from webarcfs.archive.system.standard_streams import prepare_streams
from webarcfs.commands.lazy_commands import Commands, ProgramGroup, with_archive
from webarcfs.commands.listing import has_colours

#: Name → object; imported on demand, since the libraries for reading an archive are slow to load.
COMMANDS = Commands(
    {
        "serve": "webarcfs.commands.serve:serve",
        "snapshots": "webarcfs.commands.snapshots:snapshots",
        "search": "webarcfs.commands.search:search",
        "curve": "webarcfs.commands.curve:curve",
        "query": "webarcfs.commands.query:query",
        "log": "webarcfs.commands.versions:log",
        "diff": "webarcfs.commands.comparing:diff",
        "stat": "webarcfs.commands.comparing:stat",
        "cat": "webarcfs.commands.versions:cat",
        "links": "webarcfs.commands.links:links",
        "export": "webarcfs.commands.export:export",
        "dataset": "webarcfs.commands.dataset:dataset",
        "completion": "webarcfs.commands.lazy_commands:completion",
    }
)


@click.group(
    "webarc",
    cls=ProgramGroup,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(webarcfs.__version__, prog_name="webarc")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.pass_context
def cli(
    context: click.Context, debug: bool, quiet: bool
) -> None:  # `main` looks for --debug itself, also where options are wrong
    """Ask a web archive: what is in it, by its words and any of its metadata, at any time.

    \b
    Look at it in a browser, as readers may:
      webarc serve --open

    \b
    Find words, at present or at any time:
      webarc search annual report
      webarc search '"annual report" type:pdf' --at 2026-11-21
      webarc curve harbour port

    \b
    Find documents, in every snapshot, by what is known of them:
      webarc query "mimeType = 'application/pdf' AND domain = 'www.example.org'"
      webarc query "title LIKE '%minutes%'" --order-by 'crawlTime DESC' --limit 20

    \b
    The snapshots of a host; each is named by its commitTag, a date, or latest, latest~1:
      webarc snapshots www.example.org

    \b
    What became of a page, and the page as it was:
      webarc log http://www.example.org/
      webarc cat 2026-10 http://www.example.org/ > old.html

    \b
    What a crawl changed: in all, and in the text of a page:
      webarc diff 2026-10-21T03:00:00@www.example.org 2026-11-21T03:00:00@www.example.org
      webarc diff latest~1 latest http://www.example.org/ -w

    \b
    What a snapshot consists of, and how it differs from another:
      webarc stat 2026-11-21T03:00:00@www.example.org
      webarc stat 2025@www.example.org latest@www.example.org

    \b
    What links to a page, and where a word leads:
      webarc links --to http://www.example.org/
      webarc links --word 'annual report' --limit 20

    \b
    Leave again, or show it elsewhere: WARC, WACZ, CDXJ, a folder to browse, a bag:
      webarc export /backup/archive-2026
      webarc export --format static --at 2026-11-21 site/

    \b
    Take away what a search or a query finds: to replay, as files, or as a table with the text:
      webarc export --search 'minutes during:2026' --with-resources minutes.warc.gz
      webarc export --search '"annual report" type:pdf' --format files reports/
      webarc export --query "domain = 'www.example.org'" --format csv example.csv

    \b
    Take tables away for research: pages, texts, links, words; the graph of hosts:
      webarc dataset pages pages/
      webarc dataset text texts/ --as-reader --format parquet

    \b
    Which archive: $WEBARC_ARCHIVE, else /srv/webarc; or one that is named, or is mounted:
      webarc query --archive ~/webarc "url = 'http://www.example.org/'" --format json
      webarc query --mount ~/web "mimeType = 'text/html'" --format paths

    Each command has more with --help. Exit codes: 0 done, 1 usage, 2 failed, 3 done in part.
    """
    context.color = has_colours()
    context.obj = {"debug": debug, "quiet": quiet}


def main() -> None:
    """The entry point."""
    prepare_streams()
    try:
        cli(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(Exit.FAILED)
    except click.ClickException as error:
        error.show()
        sys.exit(Exit.USAGE)
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        known = isinstance(error, WebarcError | OSError)
        text = str(error) if known else f"unexpected {type(error).__name__}: {error}; please report it, with --debug"
        for line in with_archive(text).splitlines() or [type(error).__name__]:
            click.echo(f"webarc: {line}", err=True)
        sys.exit(exit_code_of(error))
