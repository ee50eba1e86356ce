"""What was said and done in a thread, turn by turn: what the tabs and the exports of a session show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from agentdash.model.changes import ChangeKind, FileChange
from agentdash.model.thread import Call


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt of the user, or an answer of the agent."""

    at: float
    """Unix seconds."""
    role: Literal["user", "agent"]
    text: str


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


def outcome_words(call: Call) -> str:
    """Return how a call ended: `ok`, `exit 3`, `denied`, `in the background`, `not ended`."""
    match call.outcome:
        case None:
            return "not ended"
        case "running":
            return "in the background"
        case "ended":
            return f"exit {call.exit_code}" if call.exit_code else "ok"
    return str(call.outcome).replace("-", " ")


def change_words(call: Call, change: FileChange) -> str:
    """Return what happened to a file: `added`, `not updated: failed`."""
    if call.outcome is None:
        return f"to be {_PAST[change.kind]}"
    if call.failed:
        return f"not {_PAST[change.kind]}: {outcome_words(call)}"
    return _PAST[change.kind]


_PAST: Final[Mapping[ChangeKind, str]] = {"add": "added", "update": "updated", "delete": "deleted"}
Entry: TypeAlias = Message | Call


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
    def calls(self) -> Iterator[Call]:
        """Yield its calls."""
        return (entry for entry in self.entries if isinstance(entry, Call))


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
    def calls(self) -> Iterator[Call]:
        """Yield the calls of all turns."""
        return (call for turn in self.turns for call in turn.calls)

    @property
    def commands(self) -> Iterator[Call]:
        """Yield the commands of all turns."""
        return (call for call in self.calls if call.kind == "command")
