"""Recognize the processes that are commands of a thread."""

from __future__ import annotations

from typing import Final

from agentdash.engine.link.process_tree import ProcessTree, is_daemon, is_multiplexer
from agentdash.model.process import THREAD_VARIABLES, Process

_SERVED_FOR: Final = "CLAUDE_PROJECT_DIR"
"""Claude Code gives it to hooks and MCP servers, which run in no sandbox, and not to commands (2.1.197 to
2.1.330)."""
_CODEX_VARIABLE: Final = THREAD_VARIABLES["codex"]


def thread_of(process: Process, tree: ProcessTree) -> str | None:
    """Return the thread that the process's environment names, by the variable of the CLI above it.

    CLIs start each other, and environments are inherited: a command of Claude Code may have the variables of
    Codex as well. Without a CLI above it, the only variable that it has counts.
    """
    if not process.env:
        return None
    for parent in tree.above(process):
        if (variable := _variable_of(parent)) is not None:
            return process.env.get(variable)
        if is_multiplexer(parent):
            break
    named = [value for name in THREAD_VARIABLES.values() if (value := process.env.get(name))]
    return named[0] if len(named) == 1 else process.env.get(_CODEX_VARIABLE)


def is_command(process: Process, tree: ProcessTree) -> bool:
    """Return whether this process is (part of) a command that the thread in its environment ran.

    Agents, sandbox launchers and tmux servers are not, nor are processes that merely inherited the variables:
    panes of a tmux server that a command started, and the servers and hooks of a CLI that was itself started
    by a command.
    """
    if process.agent or is_daemon(process) or process.launcher or is_multiplexer(process):
        return False
    for parent in tree.above(process):
        if is_multiplexer(parent):
            return False
        if (variable := THREAD_VARIABLES.get(parent.agent or "")) is not None:
            own, inherited = process.env or {}, parent.env or {}
            is_served = parent.agent == "claude" and _SERVED_FOR in own
            return not is_served and own.get(variable) != inherited.get(variable)
    return _SERVED_FOR not in (process.env or {})


def _variable_of(process: Process) -> str | None:
    """Return the variable by which a CLI names the thread to its commands; None for other processes."""
    return _CODEX_VARIABLE if is_daemon(process) else THREAD_VARIABLES.get(process.agent or "")
