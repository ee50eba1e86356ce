"""What belongs together: the result of `judge.kinship`. Each tie says on what it rests."""

from __future__ import annotations

import msgspec

from agentdash.model.pane import PaneKey
from agentdash.model.process import Process, ProcessKey


class ThreadOwner(msgspec.Struct, frozen=True):
    """A thread's owner."""

    pid: int
    by: str
    key: ProcessKey | None = None
    """Its process, where that is among the tracked ones."""


class ThreadPane(msgspec.Struct, frozen=True):
    """A thread's pane."""

    key: PaneKey
    by: str
    own: bool = False
    """Whether the Codex in the pane is the thread's own: a TUI may only show a thread of a daemon's."""


class FleetLinks(msgspec.Struct, frozen=True):
    """All ties of a fleet at one moment."""

    owners: dict[str, ThreadOwner] = {}
    orphans: dict[str, float] = {}
    """Threads whose owner was seen to have ended, and when (unix seconds); until somebody else takes one up."""
    commands: dict[str, tuple[Process, ...]] = {}
    """Live processes that are commands of a thread."""
    panes: dict[str, ThreadPane] = {}
    below: dict[PaneKey, tuple[Process, ...]] = {}
    """Live processes below each pane, outermost first."""
    parents: dict[str, str] = {}
    servers: dict[PaneKey, Process] = {}
    """The tmux server of each pane, where it is among the tracked processes."""
