"""`webarc-agent gateway`: the API for programs of persons, who also add to the archive."""

from __future__ import annotations

from importlib.util import find_spec

import click

from agent.commands.common import archive_option, log_as_asked, opened
from webarcfs.archive.model.errors import UsageError
from webarcfs.commands.log_format import log_format_option, printer

_LISTEN = "127.0.0.1:8082"
_NEEDED = ("starlette", "uvicorn", "httptools")


@click.command()
@archive_option
@click.option("--listen", metavar="ADDRESS", default=_LISTEN, show_default=True, help="Where the gateway listens.")
@click.option("--origin", metavar="URL", default="", help="Where programs find the gateway, if behind a proxy.")
@click.option(
    "--host", "hosts", metavar="NAME", multiple=True, help="A further host name that is answered; may be repeated."
)
@click.option("--access-log", metavar="FILE|-|off", help="A line a request; - is stdout, the default but on terminals.")
@log_format_option
def gateway(
    *,
    archive: str | None,
    listen: str,
    origin: str,
    hosts: tuple[str, ...],
    access_log: str | None,
    log_format: str | None,
) -> None:
    """Serve the archive to programs of persons: they read all of it, and add files and data nodes.

    A program sends the token of a person, or a proxy in front of it says who asks ([desk] in webarc.toml). It may do
    what the scopes of the token and the roles of the person both allow. What it adds is kept before the answer, needs
    no mount, and is committed in the name of the person. The paths are those of the reading room, below /api/v1.
    ADDRESS is HOST:PORT, a PORT of this machine, or unix:PATH. Beyond this machine, put a proxy with TLS in front:
    tokens are passwords.

    \b
    Examples:
      webarc-agent people token make laptop --scope read --scope add
      webarc-agent gateway
      curl -H "Authorization: Bearer $T" http://127.0.0.1:8082/api/v1/domains
      curl -H "Authorization: Bearer $T" -H 'If-None-Match: *' -T note.txt \\
        'http://127.0.0.1:8082/api/v1/files/TAG/index.html?name=note.txt'
      webarc-agent gateway --listen unix:/run/webarc-gateway/gateway --origin https://api.example.org
    """
    if any(find_spec(library) is None for library in _NEEDED):
        raise UsageError("the gateway needs more libraries: pip install 'webarcfs[desk]'")
    from agent.gateway.gateway_app import GatewayOptions, serve  # noqa: PLC0415 # of the extra `desk`
    from webarcfs.web.access_log import OFF, STDOUT, is_terminal  # noqa: PLC0415
    from webarcfs.web.listeners import address, host_name  # noqa: PLC0415
    from webarcfs.web.listeners import origin as checked  # noqa: PLC0415

    place = opened(archive)
    as_json = log_as_asked(log_format, place)
    options = GatewayOptions(
        archive=place.root,
        listen=address(listen),
        origin=checked(origin) if origin else "",
        hosts=tuple(map(host_name, hosts)),
        access_log=access_log or (OFF if is_terminal() else STDOUT),
        logs_json=as_json,
    )
    serve(options, printer(as_json=as_json))
