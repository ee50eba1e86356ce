"""Recognize the processes that are commands of a Codex thread."""

from __future__ import annotations

from agentdash.engine.link.process_tree import ProcessTree, is_daemon, is_multiplexer
from agentdash.model.process import THREAD_AGENTS, Process


def thread_of(process: Process) -> str | None:
    """Return the thread that the process's environment names (`CODEX_THREAD_ID`, Codex 0.98+)."""
    return process.env.get("CODEX_THREAD_ID") if process.env else None


def is_command(process: Process, tree: ProcessTree) -> bool:
    """Return whether this process is (part of) a command that the thread in its environment ran.

    Agents, sandbox launchers and tmux servers are not, nor are processes that merely inherited the variables:
    panes of a tmux server that a command started, and the servers and hooks of a Codex that was itself
    started by a command.
    """
    if process.agent or is_daemon(process) or process.launcher or is_multiplexer(process):
        return False
    for parent in tree.above(process):
        if is_multiplexer(parent):
            return False
        if parent.agent in THREAD_AGENTS:
            return thread_of(parent) != thread_of(process)
    return True
