"""What agentdash remembers beyond processes and panes: observations, and workers of past panes."""

from __future__ import annotations

import hashlib

import msgspec

from agentdash.model.observation import Escape, SandboxObservation
from agentdash.model.pane import PaneKey
from agentdash.model.requested import Requested
from agentdash.model.states import State


class RememberedObservation(msgspec.Struct, frozen=True, omit_defaults=True):
    """An observation of a live process, and the policy that it belongs to."""

    observation: SandboxObservation
    """Its `policy` is void: it is an index into policies that are read again."""
    policy_since: float | None = None
    """The begin of the policy period that was in force (unix seconds); None before the first."""


class ThreadMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was observed of a thread's commands and is in none of its files."""

    thread: str
    observations: tuple[RememberedObservation, ...] = ()
    escapes: tuple[Escape, ...] = ()
    requests: tuple[Requested, ...] = ()
    """What the processes that ran it were asked for, oldest first."""


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
    """The name of its tmux window."""
    cwd: str | None = None
    pid: int | None = None
    own: bool = False
    """Of a thread: whether the Codex in the pane ran it itself (`ThreadPane.own`)."""
    state: State = State.UNKNOWN
    """The last state, as it was judged while the pane was there."""
    since: float | None = None
    rule: str = ""
    """The rule that decided the state."""
    words: str = ""
    """Digest of the words that decided it: they may hold messages, and are not kept themselves."""
    ended_at: float | None = None
    """When its process, or its pane, was seen to have ended (unix seconds)."""

    @property
    def is_thread(self) -> bool:
        """Return whether the worker is a Codex thread."""
        return self.worker != str(self.pane)


def digest(words: str) -> str:
    """Return a short digest, by which two texts can be compared later."""
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=6).hexdigest() if words else ""
