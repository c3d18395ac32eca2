"""`webarc-agent service`: units of systemd for an archive."""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from agent.commands.common import archive_option, opened
from agent.service.units import MARK, Part, UnitOf, unit_text
from webarcfs.archive.config import directory, named_archives, settings_files, validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import SettingsError, UsageError
from webarcfs.commands.lazy_commands import AbsolutePath, VerbGroup

_F = TypeVar("_F", bound=Callable[..., Any])
_SYSTEM = Path("/etc/systemd/system")
#: The group of web servers, which may open the sockets of desk, gateway and room.
_WEB_SERVERS = "www-data"
_TEMPLATES = "examples"
_EXECUTABLE = 0o001


@click.group(cls=VerbGroup)
def service() -> None:
    """Let systemd run the agent, desk, gateway, reading room, mount or watch of an archive.

    The watch is `webarc-agent watch`, every five minutes: it tells people what is amiss, also that no agent runs.

    Each unit is called after the archive, so that there may be several: webarc-agent@town. It has the folder and the
    owner of the archive, and the program that writes it, wherever these are.

    \b
    Examples:
      webarc-agent service install agent --archive /srv/webarc-town
      webarc-agent service print desk --archive town
      webarc-agent service install room --archive town -- --listen 8080
      webarc-agent service install mount --archive town --on /mnt/town
      webarc-agent service install watch --archive town
      webarc-agent service install agent --archive ~/webarc --user
    """


def _unit_options(command: _F) -> _F:
    for option in reversed(
        (
            click.argument("part", type=click.Choice([str(part) for part in Part])),
            click.argument("options", nargs=-1, metavar="[-- OPTIONS...]"),
            archive_option,
            click.option(
                "--name", default="", help="The name in the unit's name; else the archive's, or its folder's."
            ),
            click.option("--user", "is_personal", is_flag=True, help="For your own service manager, without root."),
            click.option("--on", "point", metavar="DIR", type=AbsolutePath(), help="Where a mount is; for `mount`."),
        )
    ):
        command = option(command)
    return command


@service.command("print")
@_unit_options
def show(
    *, part: str, options: tuple[str, ...], archive: str | None, name: str, is_personal: bool, point: Path | None
) -> None:
    """Print a unit; of `watch` the timer and the service. OPTIONS are those of the program, behind `--`."""
    unit = _unit(opened(archive), Part(part), name, options, point, is_personal=is_personal)
    texts = _texts(unit)
    for file_name, text in texts.items():
        click.echo((f"# == {file_name}\n" if len(texts) > 1 else "") + text, nl=False)


@service.command()
@_unit_options
@click.option("--to", metavar="DIR", type=AbsolutePath(file_okay=False), help="Write it into this folder instead.")
def install(
    *,
    part: str,
    options: tuple[str, ...],
    archive: str | None,
    name: str,
    is_personal: bool,
    point: Path | None,
    to: Path | None,
) -> None:
    """Write a unit where systemd reads it, and print the commands that start it. OPTIONS are those of the program.

    A unit that was written so before is replaced, and no other. Nothing is started yet.
    """
    unit = _unit(opened(archive), Part(part), name, options, point, is_personal=is_personal)
    read = _personal_folder() if is_personal else _SYSTEM
    folder = to or read
    if to is None and not is_personal and os.geteuid() != 0:
        raise UsageError(f"only root may write {_SYSTEM}; do it as root, or give --user for your own service manager")
    texts = {folder / file_name: text for file_name, text in _texts(unit).items()}
    for path in texts:
        if path.exists() and not path.read_text("utf-8", "replace").startswith(MARK):
            raise UsageError(f"{path} was not written by this command; it is left as it is. Remove it, or give --name")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        settings_files.replace_file(path, text.encode())
    for line in _what_to_do(unit, list(texts), read):
        click.echo(line)
    if unit.user == "root" and not is_personal:
        click.echo(
            f"warning: root owns {unit.root}, so it runs as root; a user of its own is safer (README.md)", err=True
        )
    for program in unit.part.programs:
        if not is_personal and not _can_be_run(unit.programs / program, unit.user):
            click.echo(
                f"warning: {unit.user} cannot run {unit.programs / program}, since a folder above it is closed to"
                " others; install webarcfs where all may read it, such as /opt/webarcfs",
                err=True,
            )


def _what_to_do(unit: UnitOf, paths: list[Path], read: Path) -> Iterator[str]:
    """Yield what was written, the commands that start it, and those that show whether it works.

    `read` is where systemd reads it: from another folder it has to be copied there.
    """
    manager = "systemctl --user" if unit.is_personal else "systemctl"
    name = unit.file_names[0].removesuffix(".service")
    is_read = paths[0].parent.resolve() == read.resolve()
    written = f"{' and '.join(map(str, paths))} {'is' if len(paths) == 1 else 'are'} written."
    where = "" if is_read else " systemd does not read this folder."
    yield f"{written}{where} These commands start it, now and with the machine:"
    if not is_read:
        yield f"  install -D -m 644 -t {shlex.quote(str(read))} {shlex.join(map(str, paths))}"
    yield f"  {manager} daemon-reload && {manager} enable --now {name}"
    if unit.is_personal:
        yield "  loginctl enable-linger    # so that it runs while you are not logged in"
    yield "Whether it works:"
    yield f"  {manager} status {name}"
    root = shlex.quote(str(unit.root))
    shown = {
        Part.AGENT: f"webarc-agent status --archive {root}",
        Part.WATCH: f"webarc-agent notify test --archive {root}    # sends a test to whoever [notify] names",
        Part.MOUNT: f"ls {shlex.quote(str(unit.point))}",
    }
    if unit.part in shown:
        yield f"  {shown[unit.part]}"


def _unit(
    archive: Archive, part: Part, name: str, options: tuple[str, ...], point: Path | None, *, is_personal: bool
) -> UnitOf:
    owner = archive.root.stat()
    user, group = pwd.getpwuid(owner.st_uid).pw_name, grp.getgrgid(owner.st_gid).gr_name
    if part in (Part.DESK, Part.GATEWAY, Part.ROOM) and any(entry.gr_name == _WEB_SERVERS for entry in grp.getgrall()):
        group = _WEB_SERVERS
    if (point is not None) != (part is Part.MOUNT):
        raise UsageError("a mount needs --on DIR, its mount point; nothing else has one")
    return UnitOf(
        part=part, name=_name(archive, name), root=archive.root, programs=_programs(part), user=user, group=group,
        options=options, point=point, is_personal=is_personal, writes=_backup(archive) if part is Part.AGENT else (),
        reads=_backup(archive) if part in (Part.DESK, Part.WATCH) else (),  # they say how old it is
    )  # fmt: skip


def _backup(archive: Archive) -> tuple[Path, ...]:
    """Return the folder of the archive's backup, if its settings name one."""
    try:
        to = settings_files.load(archive.settings)[0].backup.to
    except SettingsError:
        return ()
    return (Path(to),) if to.startswith("/") else ()


def _name(archive: Archive, given: str) -> str:
    """Return the name for the unit of an archive. Raises UsageError if there is none that systemd takes."""
    named = [entry.name for entry in named_archives.named_archives() if entry.root.resolve() == archive.root]
    name = given or (named[0] if named else archive.root.name)
    try:
        validators.name(name)
    except ValueError:
        raise UsageError(f"{name!r} is no name for a unit; give one with --name: letters, digits and . _ -") from None
    return name


def _programs(part: Part) -> Path:
    """Return the folder of the programs: that of this one, else the first on the path that has them."""
    first = part.programs[0]
    found = shutil.which(first)
    for folder in (Path(sys.executable).parent, *([Path(found).parent] if found else [])):
        if all((folder / program).is_file() for program in part.programs):
            return folder.absolute()
    raise UsageError(f"there is no {first} beside {sys.executable} or on the path; is webarcfs installed?")


def _can_be_run(program: Path, user: str) -> bool:
    """Return whether anybody may run a program, if `user` is not root. Links are followed."""
    return user == "root" or all(
        folder.stat().st_mode & _EXECUTABLE for path in (program, program.resolve()) for folder in path.parents
    )


def _texts(unit: UnitOf) -> dict[str, str]:
    """Return the texts of units by the names of their files."""
    templates = (directory.path(_TEMPLATES, template).read_text("utf-8") for template in unit.part.templates)
    return {name: unit_text(template, unit) for name, template in zip(unit.file_names, templates, strict=True)}


def _personal_folder() -> Path:
    folder = named_archives.config_folder()
    if folder is None:
        raise UsageError("there is no home folder; set HOME")
    return folder / "systemd" / "user"
