"""The user's file with the server of a client, and where its token is (/Cl-1/).

`~/.config/webarcfs.toml`:

    [client]
    url = "https://archive.example.org/"
    token_file = "~/.config/webarcfs.token"

The token stands in a file of its own, that nobody else may read: the settings may be shown to others.
"""

from __future__ import annotations

import os
import stat
import tomllib
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.model.errors import SettingsError, UsageError
from webarcfs.client.server_address import ServerAddress

#: The variable of the environment with the token for a server.
TOKEN_VARIABLE = "WEBARC_TOKEN"  # noqa: S105 # its name
_NAME = "webarcfs.toml"
_KEYS = {"url": str, "token_file": str, "token_over_http": bool}
_LARGEST = 1 << 16


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The section `[client]`: the server's URL, the token for it, and whether that may go over plain http."""

    url: str
    token: str = ""
    token_over_http: bool = False


def address_of(url: str | None, token: str | None, *, token_over_http: bool) -> ServerAddress:
    """Return the address of a server's URL, or of the one in the user's file, with the token for it.

    The token of the file goes to the server of the file alone. Raises UsageError, SettingsError.
    """
    token = os.environ.get(TOKEN_VARIABLE) if token is None else token
    if url is not None and token is not None:
        return ServerAddress.parse(url, token, may_send_plainly=token_over_http)
    path = client_file()
    settings = None if path is None else read_client_file(path)
    if settings is None and url is None:
        raise UsageError(f"name an archive, or a server in {path or _NAME}: [client], url = 'https://…/'")
    if settings is None or (url is not None and not ServerAddress.parse(settings.url).is_origin_of(url)):
        return ServerAddress.parse(url or "")
    may_send_plainly = token_over_http or settings.token_over_http
    token = settings.token if token is None else token
    return ServerAddress.parse(url or settings.url, token, may_send_plainly=may_send_plainly)


def client_file() -> Path | None:
    """Return the path of the user's file, which need not exist; None where there is no home folder."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    if config.startswith("/"):
        return Path(config) / _NAME
    home = os.path.expanduser("~")  # noqa: PTH111 # Path.home() raises without one
    return Path(home) / ".config" / _NAME if home.startswith("/") else None


def read_client_file(path: Path) -> ClientSettings | None:
    """Return what a file says of the client; None without the file or the section. Raises SettingsError, OSError."""
    try:
        with path.open("rb") as file:
            table = tomllib.loads(file.read(_LARGEST).decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise SettingsError(str(path), [f"not UTF-8 at byte {error.start}"]) from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(str(path), [f"not TOML: {error}"]) from None
    section = table.get("client")
    if section is None:
        return None
    if not isinstance(section, dict):
        raise SettingsError(str(path), ["client: it is a section, [client]"])
    faults = [f"client.{name}: there is no such setting" for name in section.keys() - _KEYS.keys()]
    faults += [
        f"client.{name}: {value!r} is no {'text' if _KEYS[name] is str else 'true or false'}"
        for name, value in section.items()
        if name in _KEYS and not isinstance(value, _KEYS[name])
    ]
    if not section.get("url"):
        faults.append('client.url: it is missing; such as url = "https://archive.example.org/"')
    if faults:
        raise SettingsError(str(path), sorted(faults))
    token = read_token(path, section["token_file"]) if section.get("token_file") else ""
    return ClientSettings(section["url"], token, section.get("token_over_http", False))


def read_token(path: Path, name: str) -> str:
    """Return the token of a file, which a setting of the file at `path` names. Raises SettingsError."""
    place = path.parent / os.path.expanduser(name)  # noqa: PTH111 # as above
    try:
        with place.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            token = file.read(_LARGEST).decode("ascii").strip()
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else "it has other characters than a token"
        raise SettingsError(str(path), [f"client.token_file: {place}: {words}"]) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(str(path), [f"client.token_file: others may read it; `chmod 600 {place}`"])
    if not token:
        raise SettingsError(str(path), [f"client.token_file: {place} is empty"])
    return token
