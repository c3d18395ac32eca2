"""The commands `mount.webarcfs` and `umount.webarcfs`, for mount(8), umount(8) and people.

Here errors become exit codes and one line on stderr. The fork happens here, before there is any thread.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from webarcfs import __version__
from webarcfs.archive.config import directory
from webarcfs.archive.model.errors import Busy, Exit, MountFailed, NotAnArchive, UsageError, WebarcError, exit_code_of
from webarcfs.archive.system import processes
from webarcfs.archive.system.standard_streams import prepare_streams
from webarcfs.compiled.loader import form
from webarcfs.mount import options
from webarcfs.mount.adapters import binding
from webarcfs.mount.process import mountpoint, server
from webarcfs.mount.process.server import MountRequest, Server, open_farewell, read_farewell

#: Seconds that umount.webarcfs waits for the mount's process to end: it commits all that was written, which may take
#: long on a busy machine. After the first ones it says what it waits for.
PATIENCE, _SILENT = 600.0, 15.0
#: Seconds in which a mount answers.
_LONGEST_ANSWER = 60.0
_LIVE = b"\0"


class _Mount(click.Command):
    """A command whose help lists the options of -o as well."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 # click's
        with formatter.section("Options of -o"):
            formatter.write_dl(list(options.OURS.items()))
            formatter.write_text("Those that mount(8) has for every type are taken, and mean nothing here.")


def _folders(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete any folder (Tab key)."""
    return [CompletionItem(incomplete, type="dir")]


def _options(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the last word of a list with commas (Tab key)."""
    before, comma, last = incomplete.rpartition(",")
    words = (f"{name.partition('=')[0]}{'=' * ('=' in name)}" for name in options.OURS)
    return [CompletionItem(f"{before}{comma}{word}") for word in words if word.startswith(last)]


@click.command("mount.webarcfs", cls=_Mount, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, required=True, metavar="[ARCHIVE] MOUNTPOINT", shell_complete=_folders)
@click.option(
    "-o", "texts", multiple=True, metavar="OPTIONS", help="Options with commas, as below.", shell_complete=_options
)
@click.option("-f", "foreground", is_flag=True, help="Stay in front and log to stderr.")
@click.option("--debug", is_flag=True, help="The same as -o debug.")
@click.option("-s", "sloppy", is_flag=True, help="Ignore options that are not known.")
@click.option("-v", "verbose", is_flag=True, help="Say what was mounted where.")
@click.option("-n", "no_mtab", is_flag=True, help="Accepted for mount(8); there is no mtab to leave alone.")
@click.option("-t", "kind", metavar="TYPE", help="Accepted for mount(8).")
@click.version_option(__version__, prog_name="mount.webarcfs", message=f"%(prog)s, version %(version)s, {form()}")
def mount(
    names: tuple[str, ...],
    texts: tuple[str, ...],
    *,
    foreground: bool,
    debug: bool,
    sloppy: bool,
    verbose: bool,
    **_: object,
) -> None:
    """Mount the web archive ARCHIVE on MOUNTPOINT; returns when it can be read.

    ARCHIVE defaults to $WEBARC_ARCHIVE, else /srv/webarc.

    \b
    Examples:
      mount.webarcfs ~/webarc ~/web
      mount.webarcfs -o ro,log=journal /srv/webarc /mnt/archive
      ls ~/web/.query/"mimeType='application/pdf' ORDER BY crawlTime DESC"
      umount.webarcfs ~/web
    """
    order = _order(names, options.parse([*texts, *["debug"] * debug], sloppy=sloppy), foreground)
    if foreground:
        Server(order, lambda _: None).run()  # the log is on stderr
        return
    _in_background(order)
    if verbose:
        click.echo(f"{order.archive.root} is mounted on {order.point}")


@click.command("umount.webarcfs", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("point", metavar="MOUNTPOINT", shell_complete=_folders)
@click.option("-l", "lazy", is_flag=True, help="Detach it now, even if it is busy.")
@click.option("-f", "force", is_flag=True, help="End a mount that hangs: whoever waits for it gets an error.")
@click.option("-n", "-r", "-v", "ignored", is_flag=True, help="Accepted for umount(8).")
@click.option("-t", "kind", metavar="TYPE", help="Accepted for umount(8).")
@click.version_option(__version__, prog_name="umount.webarcfs")
def umount(point: str, lazy: bool, force: bool, **_: object) -> None:
    """Unmount a web archive; returns when its process is gone."""
    where = mountpoint.resolved(point)
    kind = mountpoint.mounted(where)
    if kind is None:
        raise MountFailed(f"nothing is mounted on {where}")
    if kind != mountpoint.TYPE:
        raise MountFailed(f"{where} is a mount of type {kind}; unmount it with `umount {where}`")
    if force:
        mountpoint.abort(where)
        mountpoint.unmount(where, lazy=True)
        return
    process, farewell = _process_behind(where)
    try:
        mountpoint.unmount(where, lazy=lazy)
    except Busy as error:
        raise MountFailed(str(error)) from None
    if process is not None and not _ends(process, 1 if lazy else _SILENT):
        if lazy:
            return
        click.echo(f"umount.webarcfs: {where} is unmounted; its process commits what was written", err=True)
        if not _ends(process, PATIENCE - _SILENT):
            raise MountFailed(f"{where} is unmounted, but its process still runs after {PATIENCE:g} s")
    for line in read_farewell(farewell) if farewell is not None else ():
        click.echo(f"umount.webarcfs: {line}", err=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of mount.webarcfs; returns its exit code."""
    return _run(mount, arguments)


def umount_main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of umount.webarcfs; returns its exit code."""
    return _run(umount, arguments)


def _run(command: click.Command, arguments: Sequence[str] | None) -> int:
    prepare_streams()
    name = command.name
    try:
        # click before 8.2 would put a dot into the variable by which shells request completions.
        asked = f"_{str(name).replace('.', '_')}_COMPLETE".upper()
        command.main(arguments, prog_name=name, standalone_mode=False, complete_var=asked)
    except click.ClickException as error:
        click.echo(f"{name}: {error.format_message()} (`{name} --help` shows how to call it)", err=True)
        return Exit.USAGE
    except WebarcError as error:
        click.echo(f"{name}: {error}", err=True)
        return exit_code_of(error)
    except OSError as error:
        click.echo(f"{name}: {error}", err=True)
        return Exit.FAILED
    except (click.Abort, KeyboardInterrupt):
        return Exit.FAILED
    return Exit.DONE


def _order(names: tuple[str, ...], wanted: options.Options, foreground: bool) -> MountRequest:
    """Return the requested mount, checked as far as possible before mounting."""
    if len(names) > 2:
        raise UsageError(f"one archive and one mount point, not {len(names)} names")
    try:
        archive = directory.open_archive(directory.default_root(names[0] if len(names) == 2 else None))
    except NotAnArchive as error:
        raise MountFailed(str(error)) from None
    except OSError as error:
        raise MountFailed(f"the archive cannot be read: {error}") from None
    owner = archive.root.stat().st_uid
    if os.geteuid() not in (0, owner):
        raise MountFailed(f"{archive.root} belongs to user {owner}; mount it as that user or as root")
    _check_device()
    serve = binding.load(wanted.binding)
    group = processes.group(wanted.group) if wanted.group else None
    point = Path(os.path.realpath(names[-1]))
    mountpoint.check(point, archive.root)
    return MountRequest(archive, point, _placed(wanted), serve, foreground, group)


def _placed(wanted: options.Options) -> options.Options:
    """Return the options with an absolute path of the log file: the process that writes it changes its folder."""
    if wanted.log in ("", server.JOURNAL):
        return wanted
    return replace(wanted, log=os.path.abspath(wanted.log))  # noqa: PTH100 # keep symbolic links


def _check_device() -> None:
    if not Path("/dev/fuse").exists():
        raise MountFailed("there is no /dev/fuse; load the kernel's module with `modprobe fuse`")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise MountFailed("/dev/fuse is not open to this user; mount as root, or `chmod 666 /dev/fuse` as it should be")


def _in_background(order: MountRequest) -> None:
    """Serve in a child process; return when the mount is live. Raises MountFailed with the child's reason."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _serve_and_exit(order, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        report = pipe.read()
    for line in report[len(_LIVE) :].decode("utf-8", "replace").splitlines() if report.startswith(_LIVE) else ():
        click.echo(f"mount.webarcfs: {line}", err=True)
    if not report.startswith(_LIVE):
        os.waitpid(child, 0)
        log = order.archive.log / "mount.log"
        raise MountFailed(report.decode("utf-8", "replace") or f"the mount's process died; {log} may say why")


def _serve_and_exit(order: MountRequest, status: int) -> None:
    """Run the child: write one byte to the parent when the mount is live, or else the error; leave its terminal."""
    pipe = os.fdopen(status, "wb", buffering=0)

    def ready(notes: Sequence[str]) -> None:
        pipe.write(_LIVE + "\n".join(notes).encode("utf-8", "replace"))
        pipe.close()

    code = int(Exit.DONE)
    try:
        os.chdir("/")
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        Server(order, ready).run()
    except BaseException as error:
        code = exit_code_of(error)
        if not pipe.closed:
            pipe.write(str(error).encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _process_behind(point: Path) -> tuple[int | None, int | None]:
    """Return descriptors of the process that serves the mount, and of what it says in the end.

    None of a process that is dead, or of another user. Raises MountFailed when the mount does not answer.
    """
    answers: list[tuple[int | None, int | None]] = []

    def ask() -> None:
        try:
            number = int(os.getxattr(point, binding.PID))
            answers.append((os.pidfd_open(number), open_farewell(number)))
        except (OSError, ValueError):
            answers.append((None, None))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_LONGEST_ANSWER)
    if not answers:
        raise MountFailed(f"{point} does not answer; `umount.webarcfs -f {point}` ends it, and who waits gets an error")
    return answers[0]


def _ends(process: int, patience: float) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(patience * 1000))
