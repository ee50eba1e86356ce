"""`agentdash completion`: shell completion of commands, flags and workers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS: Final = ("bash", "zsh", "fish")
_BEFORE: Final = {
    # a fresh .zshrc has not loaded the completion system yet
    "zsh": "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n",
    # fish makes completions from manual pages, which offer the options of all commands
    "fish": "complete --erase --command agentdash\n",
}
"""Lines before the script of click."""
_VARIABLE: Final = "_AGENTDASH_COMPLETE"
_MAX_THREADS: Final = 50
"""Newest threads to offer if no agentdash publishes its workers; a longer menu is useless."""


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


def host_names(context: click.Context, parameter: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Complete the name of a host of the configuration."""
    del context, parameter
    from agentdash.config import ConfigError, load

    try:
        hosts = load({})[0].hosts
    except ConfigError:
        return []
    return [CompletionItem(name) for name in hosts if name.startswith(prefix)]


def one_of_list(words: Iterable[str], prefix: str) -> list[CompletionItem]:
    """Complete the last of several words that are separated by commas."""
    before, comma, last = prefix.rpartition(",")
    given = before.split(",")
    return [
        CompletionItem(f"{before}{comma}{word}")
        for word in words
        if word.startswith(last) and word not in given
    ]


def workers(context: click.Context, parameter: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Complete a pane or id from the workers of the status file, else from the newest threads."""
    del context, parameter
    from agentdash.agents.codex.home import CodexHome, default_home, thread_id
    from agentdash.collect.clock import SystemClock
    from agentdash.store.status_file import UnpublishedError, outdated, read_published, status_file

    home = default_home()
    offered: dict[str, str] = {}
    try:
        published = read_published(status_file(home))
        if outdated(published, SystemClock().now()) is None:
            for worker in published.snapshot.workers:
                offered[worker.pane.key.id if worker.pane else worker.id] = f"{worker.state} {worker.name}"
    except UnpublishedError:
        pass
    offered = offered or dict.fromkeys(
        filter(None, map(thread_id, islice(CodexHome(home).rollouts(), _MAX_THREADS))), ""
    )
    return [CompletionItem(name, help=text) for name, text in offered.items() if name.startswith(prefix)]
