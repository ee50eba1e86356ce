"""`agentdash completion`: what a shell needs to complete commands, flags and workers."""

from __future__ import annotations

from itertools import islice
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_AGENTDASH_COMPLETE"
_NEWEST: Final = 50
"""Threads that are offered where no agentdash is running."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands, flags and workers in a shell.

    \b
    eval "$(agentdash completion bash)"                  in ~/.bashrc
    eval "$(agentdash completion zsh)"                   in ~/.zshrc
    agentdash completion fish > ~/.config/fish/completions/agentdash.fish
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"this click cannot complete in {shell}")
    click.echo(made(context.find_root().command, {}, "agentdash", _VARIABLE).source())


def workers(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Workers whose id, pane or name begins so: those that a running agentdash tells of, else the newest threads."""
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
        filter(None, map(thread_id, islice(CodexHome(home).rollouts(), _NEWEST))), ""
    )
    return [CompletionItem(name, help=told) for name, told in offered.items() if name.startswith(begun)]
