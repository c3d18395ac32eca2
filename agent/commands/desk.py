"""`webarc-agent desk`: the curators' pages, an archive's work in a browser."""

from __future__ import annotations

from importlib.util import find_spec

import click

from agent.commands.common import archive_option, log_as_asked, opened
from webarcfs.archive.model.errors import UsageError
from webarcfs.commands.log_format import log_format_option, printer

_LISTEN = "127.0.0.1:8081"
_NEEDED = ("starlette", "uvicorn", "argon2", "itsdangerous", "jinja2", "babel", "httptools")


@click.command()
@archive_option
@click.option("--listen", metavar="ADDRESS", default=_LISTEN, show_default=True, help="Where the desk listens.")
@click.option("--origin", metavar="URL", default="", help="Where browsers find the desk, if behind a proxy.")
@click.option(
    "--host", "hosts", metavar="NAME", multiple=True, help="A further host name that is answered; may be repeated."
)
@click.option("--access-log", metavar="FILE|-|off", help="A line a request; - is stdout, the default but on terminals.")
@log_format_option
@click.option("--open", "opens", is_flag=True, help="Open the desk in a browser of this machine.")
def desk(
    *,
    archive: str | None,
    listen: str,
    origin: str,
    hosts: tuple[str, ...],
    access_log: str | None,
    opens: bool,
    log_format: str | None,
) -> None:
    """Open the desk: the work of archivists and administrators, in a browser.

    They log in with a name and a password, or a proxy in front of it says who they are ([desk] in webarc.toml). The
    role in people.toml decides what a person may do. ADDRESS is HOST:PORT, a PORT of this machine, or unix:PATH. The
    desk changes files; the agent (`start`) does what it is asked for. The host names that are answered are those of the
    origin and of ADDRESS, localhost, the address that was asked, and each --host; any other is 421.

    \b
    Examples:
      webarc-agent people add anna --name 'Anna Beispiel' --password
      webarc-agent desk --open
      webarc-agent desk --listen unix:/run/webarc-desk/desk --origin https://desk.example.org
    """
    if any(find_spec(library) is None for library in _NEEDED):
        raise UsageError("the desk needs more libraries: pip install 'webarcfs[desk]'")
    from agent.desk.server.app import DeskOptions, serve  # noqa: PLC0415 # of the extra `desk`
    from webarcfs.web.access_log import OFF, STDOUT, is_terminal  # noqa: PLC0415
    from webarcfs.web.listeners import address, host_name  # noqa: PLC0415
    from webarcfs.web.listeners import origin as checked  # noqa: PLC0415

    place = opened(archive)
    as_json = log_as_asked(log_format, place)
    options = DeskOptions(
        archive=place.root,
        listen=address(listen),
        origin=checked(origin) if origin else "",
        hosts=tuple(map(host_name, hosts)),
        access_log=access_log or (OFF if is_terminal() else STDOUT),
        opens_browser=opens,
        logs_json=as_json,
    )
    serve(options, printer(as_json=as_json))
