"""`webarc completion`: makes a shell complete the commands; click generates the script, and answers the Tab key."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

#: The commands with completion.
PROGRAMS = ("webarc", "webarc-agent", "mount.webarcfs", "umount.webarcfs")
_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Write what a shell needs for the Tab key.

    It then completes commands, options and files of webarc, webarc-agent, mount.webarcfs and umount.webarcfs.

    \b
    Examples:
      eval "$(webarc completion bash)"                                # now; in ~/.bashrc: always
      webarc completion bash > /etc/bash_completion.d/webarcfs        # for everybody, as root
      eval "$(webarc completion zsh)"                                 # in ~/.zshrc, behind compinit
      webarc completion fish > ~/.config/fish/conf.d/webarcfs.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    for program in PROGRAMS:
        click.echo(kind(click.Command(program), {}, program, variable(program)).source())


def variable(program: str) -> str:
    """Return click's name of the environment variable by which a shell requests completions from a program."""
    return f"_{program.replace('-', '_').replace('.', '_')}_COMPLETE".upper()
