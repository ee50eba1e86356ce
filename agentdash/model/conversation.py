"""What was said and done in a thread, turn by turn: what the tabs and the exports of a session show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from agentdash.model.changes import ChangeKind, FileChange
from agentdash.model.events import CallKind, Escalation, Outcome


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt of the user, or an answer of the agent."""

    at: float
    """Unix seconds."""
    role: Literal["user", "agent"]
    text: str


_SHELL_TOOLS: Final = (
    "shell",
    "shell_command",
    "container.exec",
    "exec_command",
    "unified_exec",
    "exec",
)
"""Tools of Codex that run commands; they apply patches as well."""


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call with its outcome."""

    id: str
    at: float
    kind: CallKind
    tool: str
    text: str
    """The command line, the question, or the arguments in short."""
    script: str = ""
    """Of a command: as written, with its line breaks; empty where it is not known."""
    cwd: str | None = None
    by_user: bool = False
    escalation: Escalation | None = None
    ended_at: float | None = None
    outcome: Outcome | None = None
    """None while open."""
    exit_code: int | None = None
    output: str = ""
    """Its two ends, where it is long."""
    denial: str | None = None
    """The words that show that a sandbox refused something."""
    changes: tuple[FileChange, ...] = ()
    """Of a patch: what it has changed, or was to change."""

    @property
    def label(self) -> str:
        """Return what stands before its text: `$`, `!` for a command of the user, else the tool."""
        if self.kind == "command":
            return "!" if self.by_user else "$"
        return shown_tool(self.kind, self.tool)

    @property
    def took(self) -> float | None:
        """Return how long it ran, in seconds; None while open, and where it goes on in the background."""
        return None if self.ended_at is None or self.outcome == "running" else self.ended_at - self.at

    @property
    def failed(self) -> bool:
        """Return whether it ended without success."""
        return bool(self.exit_code) or self.outcome not in (None, "ended", "running")

    @property
    def has_changed(self) -> bool | None:
        """Return whether its changes were made; None while it is not known."""
        return None if self.outcome is None else not self.failed


def shown_tool(kind: CallKind, tool: str) -> str:
    """Return the name of a tool; a patch that a shell applies is a patch all the same."""
    return "patch" if kind == "patch" and tool in _SHELL_TOOLS else tool


def shown_path(path: str, cwd: str | None) -> str:
    """Return a path as it is shown: relative to the directory of its call where it is below it."""
    below = f"{cwd.rstrip('/')}/" if cwd else ""
    return path.removeprefix(below) if below and path != below else path


def shown_paths(change: FileChange, cwd: str | None) -> str:
    """Return the path of a change; of a moved file, both."""
    path = shown_path(change.path, cwd)
    return f"{path} → {shown_path(change.moved_to, cwd)}" if change.moved_to else path


def line_counts(change: FileChange) -> str:
    """Return how many lines were added and removed, `+3 -1`; empty where that is not known."""
    return f"+{change.added} -{change.removed}" if change.added or change.removed else ""


def outcome_words(call: CallRecord) -> str:
    """Return how a call ended: `ok`, `exit 3`, `denied`, `in the background`, `not ended`."""
    match call.outcome:
        case None:
            return "not ended"
        case "running":
            return "in the background"
        case "ended":
            return f"exit {call.exit_code}" if call.exit_code else "ok"
    return str(call.outcome).replace("-", " ")


def change_words(call: CallRecord, change: FileChange) -> str:
    """Return what happened to a file: `added`, `not updated: failed`."""
    if call.has_changed is None:
        return f"to be {_PAST[change.kind]}"
    if not call.has_changed:
        return f"not {_PAST[change.kind]}: {outcome_words(call)}"
    return _PAST[change.kind]


_PAST: Final[Mapping[ChangeKind, str]] = {"add": "added", "update": "updated", "delete": "deleted"}
Entry: TypeAlias = Message | CallRecord


class ConversationTurn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A turn: from a prompt to the final answer."""

    number: int
    """Counted from 1, from where the file was read."""
    at: float
    entries: tuple[Entry, ...] = ()
    """In the order of their beginnings."""
    ended_at: float | None = None
    how: Literal["completed", "aborted"] | None = None
    error: str | None = None

    @property
    def calls(self) -> Iterator[CallRecord]:
        """Yield its calls."""
        return (entry for entry in self.entries if isinstance(entry, CallRecord))


class Conversation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The conversation of a thread."""

    thread: str
    turns: tuple[ConversationTurn, ...] = ()
    """Oldest first."""
    is_whole: bool = True
    """Whether it begins with the thread: of large files only the newest part is read."""
    dropped: int = 0
    """Entries at the beginning that were left out, since there are too many."""
    problem: str | None = None
    """Why it cannot be read, or not to its end."""

    @property
    def calls(self) -> Iterator[CallRecord]:
        """Yield the calls of all turns."""
        return (call for turn in self.turns for call in turn.calls)

    @property
    def commands(self) -> Iterator[CallRecord]:
        """Yield the commands of all turns."""
        return (call for call in self.calls if call.kind == "command")
