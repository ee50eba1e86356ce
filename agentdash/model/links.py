"""Links between threads, processes and panes: the result of `engine.link`. Each names its evidence (`by`)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum, auto
from functools import cached_property

import msgspec

from agentdash.model.evidence import EvidenceSource
from agentdash.model.pane import PaneKey
from agentdash.model.process import Process, ProcessKey


class ThreadOwner(msgspec.Struct, frozen=True):
    """The process that has a thread loaded."""

    pid: int
    by: str
    """The evidence, in words."""
    source: EvidenceSource
    """`lock`: it holds the writer lock (Codex 0.148+). `process`: it holds the rollout open."""
    key: ProcessKey | None = None
    """Its identity, where it is among the tracked processes."""


class PaneLink(StrEnum):
    """The kind of evidence that links a thread to a pane, the strongest first."""

    OWNER = auto()
    """Its Codex runs in the pane, or did."""
    ARGUMENTS = auto()
    PROMPT = auto()
    ONLY_ONE = auto()


class ThreadPane(msgspec.Struct, frozen=True):
    """The pane of a thread."""

    key: PaneKey
    by: str
    """The evidence, in words."""
    own: bool = False
    """Whether the Codex in the pane runs the thread itself: a TUI may merely show a thread of a daemon."""
    how: PaneLink = PaneLink.OWNER


class FleetLinks(msgspec.Struct, frozen=True, dict=True):
    """All links of a fleet at one moment."""

    owners: dict[str, ThreadOwner] = {}
    orphans: dict[str, float] = {}
    """Threads whose owner was seen to have ended, and when (unix seconds); until they have an owner again."""
    commands: dict[str, tuple[Process, ...]] = {}
    """Live processes that are commands of a thread: they name it, and descend from its owner, or did."""
    claims: dict[str, tuple[Process, ...]] = {}
    """Live processes that name a thread, and were not seen below its owner: anybody may do that."""
    panes: dict[str, ThreadPane] = {}
    below: dict[PaneKey, tuple[Process, ...]] = {}
    """Live processes below each pane, by pid."""
    parents: dict[str, str] = {}
    """The parent thread of each child thread."""
    servers: dict[ProcessKey, Process] = {}
    """The tmux server that each worker CLI descends from, where it is among the tracked processes."""

    nested: dict[ProcessKey, str] = {}
    """The thread whose command started a worker CLI that lives, and has no pane of its own."""

    outer: dict[str, str] = {}
    """The thread whose command started the Codex that runs a thread."""

    def threads_in(self, pane: PaneKey) -> Sequence[str]:
        """Return the threads that are linked to a pane."""
        return self._threads_by_pane.get(pane, ())

    @cached_property
    def _threads_by_pane(self) -> dict[PaneKey, list[str]]:
        found: dict[PaneKey, list[str]] = {}
        for thread, link in self.panes.items():
            found.setdefault(link.key, []).append(thread)
        return found
