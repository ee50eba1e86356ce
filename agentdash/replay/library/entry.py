"""A past thread as the library lists it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from agentdash.model.findings import Verdict
from agentdash.model.states import State
from agentdash.model.tokens import ModelUsage
from agentdash.replay.library.denials import EntryDenial

Depth = Literal["listed", "header", "skimmed", "read"]
"""How much of a file has been read: nothing, its first line, head and tail, all of it."""


RECORDING: Final = "recording"
"""The agent of an entry that is a recording by agentdash."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A past thread, as far as its file has been read. None and empty: not known yet, or not stated."""

    id: str
    path: Path
    begun: float | None
    """Start (unix seconds)."""
    agent: str = "codex"
    """The worker CLI: `codex`, `claude`; `recording`."""
    listed_at: float = 0.0
    """What it was listed by: its start, or when its file was changed (unix seconds)."""
    archived: bool = False
    compressed: bool = False
    depth: Depth = "listed"
    size: int = 0
    """Bytes on disk."""
    parent: str | None = None
    """Id of the thread that it was spawned by or forked from."""
    fork: bool = False
    helper: bool = False
    """Whether Codex runs it for itself (review, guardian, titles): helpers are not judged."""
    title: str = ""
    """Its name, or its first prompt."""
    cwd: str | None = None
    version: str | None = None
    model: str | None = None
    source: str | None = None
    """What started it: `cli`, `exec`, `vscode`, `subagent` ... (`source` of `session_meta`, since 0.36)."""
    prompt: str = ""
    """The first message of the user."""
    last_prompt: str = ""
    """The last message of the user that was read."""
    took: float | None = None
    """Seconds from its first line to its last."""
    state: State | None = None
    why: str = ""
    verdict: Verdict | None = None
    findings: tuple[str, ...] = ()
    """Kinds of its findings."""
    denied: bool = False
    """Whether its sandbox refused anything, got past or not."""
    denials: tuple[EntryDenial, ...] = ()
    """What it refused, the newest."""
    children: tuple[str, ...] = ()
    tokens: int | None = None
    """Those that it used itself."""
    by_model: tuple[ModelUsage, ...] = ()
    """The same by model."""
    problem: str | None = None
    """Why it cannot be read, or not to its end."""

    @property
    def recording(self) -> bool:
        """Whether it is a recording by agentdash of panes and processes, not the log of a thread."""
        return self.agent == RECORDING

    @property
    def is_unreadable(self) -> bool:
        """Whether nothing of it could be judged."""
        return self.problem is not None and self.state in (None, State.UNREACHABLE)

    @property
    def key(self) -> str:
        """The unique key: its path, since two files may have the same thread id."""
        return str(self.path)

    @property
    def lacks_usage(self) -> bool:
        """Whether the models of some tokens are in a part of the file that was not read."""
        return any(each.model is None for each in self.by_model) or (self.fork and not self.by_model)
