"""`webarc serve`: the reading room, an archive in a browser."""

from __future__ import annotations

from importlib.util import find_spec

import click

from webarcfs.archive.config import directory
from webarcfs.archive.model.errors import UsageError
from webarcfs.commands.lazy_commands import archive_option
from webarcfs.commands.log_format import log_format_option, printer, wants_json
from webarcfs.room.server.options import Engine, ServerOptions, replay_address
from webarcfs.web.access_log import OFF, STDOUT, is_terminal
from webarcfs.web.listeners import address, host_name, origin

_LISTEN = "127.0.0.1:8080"


@click.command()
@archive_option
@click.option("--listen", metavar="ADDRESS", default=_LISTEN, show_default=True, help="Where the room listens.")
@click.option("--origin", "own", metavar="URL", default="", help="Where browsers find the room, if behind a proxy.")
@click.option("--replay-listen", metavar="ADDRESS|same", help="Where archived pages are served; else the next port.")
@click.option("--replay-origin", metavar="URL", default="", help="Where browsers find archived pages.")
@click.option(
    "--host", "hosts", metavar="NAME", multiple=True, help="A further host name that is answered; may be repeated."
)
@click.option(
    "--engine",
    type=click.Choice([str(engine) for engine in Engine]),
    default=str(Engine.BUILT_IN),
    show_default=True,
    help="What shows archived pages.",
)
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Processes that answer.")
@click.option("--access-log", metavar="FILE|-|off", help="A line a request; - is stdout, the default but on terminals.")
@log_format_option
@click.option("--open", "opens", is_flag=True, help="Open the room in a browser of this machine.")
@click.option("--check", is_flag=True, help="Serve nothing; say what would be served, and what is wrong.")
def serve(
    *, archive: str | None, listen: str, own: str, replay_listen: str | None, replay_origin: str,
    hosts: tuple[str, ...], engine: str, workers: int, access_log: str | None, opens: bool, check: bool,
    log_format: str | None,
) -> None:  # fmt: skip
    """Open the reading room: the archive's snapshots, pages and search, in a browser.

    Readers see what is released, and change nothing. ADDRESS is HOST:PORT, a PORT of this machine, or unix:PATH.
    Archived pages are served on an address of their own, so that they cannot meddle with the room; `same` serves both
    on one, which the built-in engine, that runs no scripts, makes safe as well.

    The host names that are answered are those of the origins and of ADDRESS, localhost, the address that was asked, and
    each --host. Any other is 421: a page of another site cannot read the room through a name that leads here.

    SIGHUP reloads the settings and opens the access log again without losing a request; SIGTERM ends after the requests
    that run.

    \b
    Examples:
      webarc serve --open
      webarc serve --archive /srv/webarc --listen 127.0.0.1:8080 --access-log /var/log/webarc-room.log
      webarc serve --listen unix:/run/webarc-room/room --replay-listen unix:/run/webarc-room/replay \\
        --origin https://archive.example.org --replay-origin https://replay.example.org
      webarc serve --check
    """
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        raise UsageError("the reading room needs more libraries: pip install 'webarcfs[room]'")
    listens, kind = address(listen), Engine(engine)
    place = directory.open_archive(directory.default_root(archive))
    as_json = wants_json(log_format, place)
    options = ServerOptions(
        archive=place.root,
        listen=listens,
        replay_listen=replay_address(replay_listen, listens, kind),
        origin=origin(own) if own else "",
        replay_origin=origin(replay_origin) if replay_origin else "",
        hosts=tuple(map(host_name, hosts)),
        engine=kind,
        workers=workers,
        access_log=access_log or (OFF if is_terminal() else STDOUT),
        opens_browser=opens,
        logs_json=as_json,
    )
    if check:
        _check(options)
        return
    from webarcfs.room.server import serving  # noqa: PLC0415 # --help needs none of it

    serving.serve(options, say=printer(as_json=as_json))


def _check(options: ServerOptions) -> None:
    from webarcfs.room.server.checks import checks  # noqa: PLC0415 # it reads the archive, which the parent of the workers never does

    faults = 0
    for check in checks(options):
        click.echo(f"{'ok   ' if check.is_good else 'FAULT'}  {check.what}: {check.found}")
        faults += not check.is_good
    if faults:
        raise UsageError(f"{faults} of the checks found a fault")
