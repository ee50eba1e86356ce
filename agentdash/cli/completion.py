"""`agentdash completion`: shell completion of commands, flags and workers."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

SHELLS: Final = ("bash", "zsh", "fish")
_BEFORE: Final = {
    # a fresh .zshrc has not loaded the completion system yet
    "zsh": "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n",
    # fish makes completions from manual pages, which offer the options of all commands
    "fish": "complete --erase --command agentdash\n",
}
"""Lines before the script of click."""
_VARIABLE: Final = "_AGENTDASH_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands, flags and workers in SHELL: bash, zsh or fish.

    \b
    eval "$(agentdash completion bash)"                  in ~/.bashrc
    eval "$(agentdash completion zsh)"                   in ~/.zshrc
    agentdash completion fish > ~/.config/fish/completions/agentdash.fish
    """
    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"the installed version of click does not support {shell}")
    click.echo(
        _BEFORE.get(shell, "") + completer(context.find_root().command, {}, "agentdash", _VARIABLE).source()
    )
