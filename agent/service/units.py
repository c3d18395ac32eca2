"""Units of systemd for one archive, written from the templates of examples/: services, and the timer of `watch`.

The templates are for archives at /srv/webarc-<name>, programs in /usr/local/bin and the user webarc. A unit that is
written from one has the folder, the owner and the programs of an archive as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from webarcfs.archive.model.errors import UsageError

#: What the templates say where a unit has its own.
_ROOT, _PROGRAMS, _POINT = "/srv/webarc-%i", "/usr/local/bin/", "/mnt/webarc-%i"
#: The first words of a unit that was written here, which may be replaced.
MARK = "# Written by `webarc-agent service"
_NOT_IN_PATHS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\"'\\]|[\ud800-\udfff]")
#: Settings of a service that a person's own manager can grant, and does not refuse to some.
_PERSONAL = re.compile(
    r"(Type|NotifyAccess|RuntimeDirectory\w*|EnvironmentFile|Exec\w+|KillMode|Timeout\w+|WatchdogSec|Restart\w*"
    r"|SuccessExitStatus|LimitNOFILE|UMask|Nice|NoNewPrivileges|On\w+Sec)="
)
_NEEDS_SYSTEM = re.compile(r"(Wants|After)=network")
#: Folders that a system's unit does not see, and the line by which it sees them.
_HIDDEN = (
    (("/home", "/root", "/run/user"), "ProtectHome=true", "ProtectHome=read-only"),
    (("/tmp", "/var/tmp"), "PrivateTmp=true", "PrivateTmp=false"),  # noqa: S108 # folders, and no files of ours
)


class Part(StrEnum):
    """What runs for an archive."""

    AGENT = "agent"
    DESK = "desk"
    GATEWAY = "gateway"
    ROOM = "room"
    MOUNT = "mount"
    WATCH = "watch"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The endings of its units: the first one is that which people start."""
        return ("timer", "service") if self is Part.WATCH else ("service",)

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the templates' files, in the order of `kinds`."""
        return tuple(f"webarc-{self}@.{kind}" for kind in self.kinds)

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that it runs."""
        if self is Part.MOUNT:
            return ("mount.webarcfs", "umount.webarcfs")
        return ("webarc",) if self is Part.ROOM else ("webarc-agent",)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitOf:
    """What units are for. `is_personal`: for the service manager of a person, who owns the archive.

    `writes` are folders that it writes beside the archive, such as that of its backup; `reads`, those that it reads.
    """

    part: Part
    name: str
    root: Path
    programs: Path
    user: str
    group: str
    options: tuple[str, ...] = ()
    point: Path | None = None
    writes: tuple[Path, ...] = ()
    reads: tuple[Path, ...] = ()
    is_personal: bool = False

    @property
    def file_names(self) -> tuple[str, ...]:
        """The names of its files, which are those of the units, in the order of the part's `kinds`."""
        return tuple(f"webarc-{self.part}@{self.name}.{kind}" for kind in self.part.kinds)


def unit_text(template: str, unit: UnitOf) -> str:
    """Return the text of a unit. Raises UsageError for a path that systemd cannot be told."""
    paths = [unit.root, unit.programs, *unit.writes, *unit.reads, *([unit.point] if unit.point else [])]
    for path in paths:
        if _NOT_IN_PATHS.search(str(path)):
            raise UsageError(f"{str(path)!r} has characters that systemd takes in no path; give a link without them")
    body = template[template.index("[Unit]") :].replace(" \\\n", "")
    lines = [line for old in body.splitlines() for line in _own_lines(re.sub(" {2,}", " ", old), unit, paths)]
    about = f"{MARK} install {unit.part}` for {str(unit.root)!r}; it is replaced when that is done again."
    return "\n".join([about, "# Own settings belong in a drop-in: `systemctl edit` makes one.", "", *lines]) + "\n"


def _own_lines(line: str, unit: UnitOf, paths: Sequence[Path]) -> Iterator[str]:
    """Yield what stands for a line of the template."""
    key, _, value = line.partition("=")
    if unit.is_personal and not _is_for_a_person(line):
        return
    if key == "User":
        line = f"User={unit.user}"
    elif key == "Group":
        line = f"Group={unit.group}"
    elif key.startswith("Exec") and _PROGRAMS in value:
        line = f"{key}={_command(value, unit)}"
    elif key == "EnvironmentFile" and unit.is_personal:
        line = "EnvironmentFile=-%h/.config/webarc/%i.env"
    elif key == "ReadWritePaths":
        line += "".join(f" {_as_word(path, prefix='-')}" for path in unit.writes)
    elif line == "WantedBy=multi-user.target" and unit.is_personal:
        line = "WantedBy=default.target"
    elif unit.part is Part.ROOM and _listens_at_a_port(unit.options):
        if key == "PrivateNetwork" or line.startswith("# With --listen"):
            return
        line = line.replace("RestrictAddressFamilies=AF_UNIX", "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6")
    for folders, hidden, seen in _HIDDEN:
        if line == hidden and any(path.is_relative_to(folder) for path in paths for folder in folders):
            line = seen
    word = _as_word if key.endswith("Paths") else _as_text
    yield line.replace(_ROOT, word(unit.root)).replace(_POINT, word(unit.point or Path(_POINT)))


def _is_for_a_person(line: str) -> bool:
    if _NEEDS_SYSTEM.match(line):
        return False
    is_of_service = "=" in line and not line.startswith(("#", "[", "Description", "Documentation", "WantedBy"))
    return not line.startswith("#") and (not is_of_service or _PERSONAL.match(line) is not None)


def _command(value: str, unit: UnitOf) -> str:
    """Return a command line of a unit, from that of the template."""
    words = value.split(" ")
    if unit.part is Part.ROOM and _listens_at_a_port(unit.options) and "--replay-listen" in words:
        at = words.index("--replay-listen")  # the next port, unless the options say another
        del words[at : at + 2]
    own = []
    for word in words:
        if word.startswith(_PROGRAMS):
            own.append(_as_word(unit.programs / word.removeprefix(_PROGRAMS), is_command=True))
        elif word.startswith("$WEBARC_"):
            own += [*(_quoted(option) for option in unit.options), word]
        elif word == _ROOT:
            own.append(_as_word(unit.root, is_command=True))
        elif word == _POINT and unit.point is not None:
            own.append(_as_word(unit.point, is_command=True))
        else:
            own.append(word.replace("unix:/run/", "unix:%t/") if unit.is_personal else word)
    if not any(word.startswith("$WEBARC_") for word in words):
        at = len(own) if unit.part is not Part.MOUNT else 1
        own[at:at] = [_quoted(option) for option in unit.options]
    return " ".join(own)


def _listens_at_a_port(options: Sequence[str]) -> bool:
    """Return whether options have the room listen at a port of TCP."""
    addresses = [
        option.partition("=")[2] or (options[number + 1] if number + 1 < len(options) else "")
        for number, option in enumerate(options)
        if option == "--listen" or option.startswith("--listen=")
    ]
    return bool(addresses) and not addresses[-1].startswith("unix:")


def _as_text(path: Path) -> str:
    return str(path).replace("%", "%%").replace("%%i", "%i") if str(path) == _POINT else str(path).replace("%", "%%")


def _as_word(path: Path, *, is_command: bool = False, prefix: str = "") -> str:
    """Return a path as one word, behind a prefix; in a command line `$` begins a variable."""
    text = prefix + (_as_text(path).replace("$", "$$") if is_command else _as_text(path))
    return f'"{text}"' if re.search(r"\s|;", text) else text


def _quoted(option: str) -> str:
    """Return an option as one word of a command line. Raises UsageError for what systemd cannot be told."""
    if re.search(r"[\x00-\x1f\x7f]|[\ud800-\udfff]", option):
        raise UsageError(f"{option!r} has characters that systemd takes in no command")
    text = option.replace("%", "%%").replace("$", "$$")
    if re.fullmatch(r"[\w./:@%+=,$-]+", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
