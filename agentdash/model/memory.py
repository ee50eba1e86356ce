"""What agentdash remembers beyond processes and panes: observations, and workers of past panes."""

from __future__ import annotations

import msgspec

from agentdash.model.observation import Escape, SandboxObservation
from agentdash.model.pane import PaneKey
from agentdash.model.states import State


class ThreadMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was observed of a thread's commands and is in none of its files."""

    thread: str
    observations: tuple[SandboxObservation, ...] = ()
    """Of live processes. Their `policy` is void: it is an index into policies that are read again."""
    escapes: tuple[Escape, ...] = ()


class PastWorker(msgspec.Struct, frozen=True, omit_defaults=True):
    """A worker whose pane is gone, or may be when this is read."""

    pane: PaneKey
    worker: str
    """Its id: a thread's id, or that of the pane."""
    agent: str
    seen: float
    """When it was last in the pane (unix seconds)."""
    server_pid: int | None = None
    """The tmux server that the pane id belongs to: another server counts from `%0` again."""
    name: str = ""
    cwd: str | None = None
    pid: int | None = None
    state: State = State.UNKNOWN
    """The last state, as it was judged while the pane was there."""
    since: float | None = None
    rule: str = ""
    """The rule that decided the state: the text itself may hold messages, and is not kept."""
    ended_at: float | None = None
    """When its process was seen to have ended."""
