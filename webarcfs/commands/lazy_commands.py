"""Commands that are imported when they are called for: whoever runs one does not wait for what the others need.

Here are also the group of a program, the kind of their arguments that are paths, and `webarc completion`, for which
click generates the script and answers the Tab key. Commands that messages tell people to type name the archive where
the command that tells them was told it.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from webarcfs.archive.model.errors import WebarcError
from webarcfs.commands.unknown_commands import COMMANDS_OF, explain_unknown

# == lazy commands ====================================================================================================


class AbsolutePath(click.Path):  # type: ignore[type-arg,unused-ignore] # not generic when it runs
    """A path, made absolute: git, which is handed it, runs in another folder. `-` stays with `allow_dash`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; links in it are not followed."""
        path = Path(str(super().convert(value, param, ctx)))
        return path if self.allow_dash and str(path) == "-" else path.absolute()


class ArchivePath(click.Path):  # type: ignore[type-arg,unused-ignore] # not generic when it runs
    """The folder of an archive, or its name in a list: `default_root` tells which when the command opens it."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer names, and folders where no name fits."""
        from webarcfs.archive.config.named_archives import named_archives  # noqa: PLC0415 # only the Tab key needs it

        offered = super().shell_complete(ctx, param, incomplete)
        with suppress(WebarcError, OSError):  # a Tab key says nothing of faults
            offered += [
                CompletionItem(archive.name) for archive in named_archives() if archive.name.startswith(incomplete)
            ]
        return offered


#: The option that names the archive.
archive_option = click.option(
    "--archive",
    metavar="DIR|NAME",
    help="The archive: its folder, or its name (see `archives`); else $WEBARC_ARCHIVE, else /srv/webarc.",
    type=ArchivePath(file_okay=False),
)


class Commands(MutableMapping[str, click.Command]):
    """The commands of a `click.Group` by name; each is given as `package.module:attribute` and imported when asked for.

    `--help` of the group imports them all, since it shows a line of each.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = self._places[name].partition(":")
            self._loaded[name] = getattr(import_module(module), attribute)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._places[name] = ""
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._places[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class ProgramGroup(click.Group):
    """The commands of a program. That nobody reads its output any more is no failure (exit code 0)."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that a command line names. Raises UsageError of click, which says who has it."""
        if self.name is not None and self.name in COMMANDS_OF and is_unknown(self, ctx, args):
            ctx.fail(explain_unknown(self.name, args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises WebarcError for another broken pipe: click would end with 1 and no word."""
        try:
            outcome = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError as error:
            raise WebarcError(f"a program or connection that it wrote to has ended ({error}): try it again") from error
        return outcome


class VerbGroup(click.Group):
    """Commands of which each is a verb for one kind of object: the verb comes first, then the object.

    Options may stand before the verb, too.
    """

    #: Whether the object may come first, as in former versions; a line on stderr has the order of today then.
    is_former_order_taken = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the verb first; the rest is what click does."""
        if not ctx.resilient_parsing:
            args = self._with_verb_first(ctx, args)
        return super().parse_args(ctx, args)

    def _with_verb_first(self, ctx: click.Context, args: list[str]) -> list[str]:
        places = list(islice(self._places(ctx, args), 2))
        if places and self.get_command(ctx, args[places[0]]) is not None:
            return [args[places[0]], *args[: places[0]], *args[places[0] + 1 :]]
        if {*ctx.help_option_names} & {*args}:
            return args
        if not self.is_former_order_taken or (places and not self._is_former_order(ctx, args, places)):
            return [*(args[place] for place in places), *(word for n, word in enumerate(args) if n not in places)]
        if not places:
            args = ["list", *args]
        else:
            name, verb = places
            args = [args[verb], args[name], *args[:name], *args[name + 1 : verb], *args[verb + 1 :]]
        click.echo(f"{_program_of(ctx)}: now it is `{ctx.command_path} {shlex.join(args)}`", err=True)
        return args

    def _is_former_order(self, ctx: click.Context, args: Sequence[str], places: Sequence[int]) -> bool:
        return len(places) == 2 and self.get_command(ctx, args[places[1]]) is not None

    def _places(self, ctx: click.Context, args: Sequence[str]) -> Iterator[int]:
        """Yield the places of words that are neither options of a verb nor their values."""
        verbs = (self.get_command(ctx, name) for name in self.list_commands(ctx))
        options = [option for verb in verbs if verb is not None for option in verb.params]
        valued = {
            word
            for option in options
            if isinstance(option, click.Option) and not option.is_flag
            for word in option.opts
        }
        is_value = False
        for place, word in enumerate(args):
            if not is_value and (not word.startswith("-") or word == "-"):
                yield place
            is_value = not is_value and word in valued

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that a command line names. Raises UsageError of click, with the right order."""
        if is_unknown(self, ctx, args) and args[1:] and self.get_command(ctx, args[1]) is not None:
            ctx.fail(f"the verb comes first: `{ctx.command_path} {args[1]} {args[0]}`")
        return super().resolve_command(ctx, args)


def is_unknown(group: click.Group, context: click.Context, words: Sequence[str]) -> bool:
    """Return whether the first of these words is no command of a group, and no option."""
    is_asked = not context.resilient_parsing and bool(words) and not words[0].startswith("-")
    return is_asked and group.get_command(context, words[0]) is None


def _program_of(context: click.Context) -> str:
    return context.command_path.partition(" ")[0]


# == completion =======================================================================================================


#: The commands with completion.
PROGRAMS = ("webarc", "webarc-agent", "mount.webarcfs", "umount.webarcfs")
_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Write what a shell needs for the Tab key.

    It then completes commands, options and files of webarc, webarc-agent, mount.webarcfs and umount.webarcfs. In the
    archive of $WEBARC_ARCHIVE, or of an --archive on the left, it completes snapshots and dates, hosts, publications,
    records and jobs.

    \b
    Examples:
      eval "$(webarc completion bash)"                                # now; in ~/.bashrc: always
      webarc completion bash > /etc/bash_completion.d/webarcfs        # for everybody, as root
      eval "$(webarc completion zsh)"                                 # in ~/.zshrc, behind compinit
      webarc completion fish > ~/.config/fish/conf.d/webarcfs.fish
    """
    from webarcfs.commands.completing import NamesInBash  # noqa: PLC0415 # no other command needs it

    kind = NamesInBash if shell == "bash" else get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    for program in PROGRAMS:
        click.echo(kind(click.Command(program), {}, program, variable(program)).source())


def variable(program: str) -> str:
    """Return click's name of the environment variable by which a shell requests completions from a program."""
    return f"_{program.replace('-', '_').replace('.', '_')}_COMPLETE".upper()


# == told commands, pure ==============================================================================================


#: A command in a message. `init` and `restore` name their folders themselves, `archives` names none; `--debug …` is no
#: whole command.
_COMMAND = re.compile(r"`(webarc(?:-agent)? (?!init\b|restore\b|archives\b|--)[^`\n]*)`")


def with_archive(message: str, arguments: Sequence[str] | None = None) -> str:
    """Return a message whose commands have the `--archive` of a command line (`sys.argv`), if that has one."""
    named = _named(sys.argv if arguments is None else arguments) if "`webarc" in message else ""
    if not named:
        return message
    option = f" --archive {shlex.quote(named)}"
    return _COMMAND.sub(lambda found: found[0] if "--archive" in found[1] else f"`{found[1]}{option}`", message)


def _named(arguments: Sequence[str]) -> str:
    """Return the archive that a command line names; the last one counts."""
    named = ""
    for number, argument in enumerate(arguments):
        if argument == "--archive":
            named = arguments[number + 1] if number + 1 < len(arguments) else ""
        elif argument.startswith("--archive="):
            named = argument.partition("=")[2]
    return named
