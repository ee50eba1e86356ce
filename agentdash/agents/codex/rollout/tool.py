"""The description of a tool call, and the kinds of the tools."""

from __future__ import annotations

from typing import Final, NamedTuple

from agentdash.model.changes import FileChange
from agentdash.model.events import CallKind, Escalation

KINDS: Final[dict[str, CallKind]] = {
    "shell": "command",
    "container.exec": "command",
    "local_shell": "command",
    "shell_command": "command",
    "exec_command": "command",
    "unified_exec": "command",
    "write_stdin": "poll",
    "apply_patch": "patch",
    "request_user_input": "question",
    "request_user_input_async": "question",
    "request_permissions": "permission",
    "spawn_agent": "spawn",
    "wait": "wait",
    "wait_agent": "wait",
}
"""By the name of the tool, without its namespace."""


class Tool(NamedTuple):
    """The description of a tool call."""

    kind: CallKind
    name: str
    text: str
    cwd: str | None = None
    escalation: Escalation | None = None
    session: str | None = None
    """The running command that a poll reads from: its session number, or `cell N`."""
    script: str = ""
    """The shell script of a command as written, with newlines; empty where it is not known or too long."""
    shell: str = ""
    """The POSIX shell that runs it, by name (`bash`); empty where it is not known."""
    changes: tuple[FileChange, ...] = ()
    """What a patch is to change, or has changed."""
