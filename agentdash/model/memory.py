"""What agentdash remembers beyond processes and panes: observations, and workers of past panes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from agentdash.model.observation import Escape, SandboxObservation
from agentdash.model.pane import PaneKey
from agentdash.model.requested import Requested
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State

_MAX_PROMPT_CHARS: Final = 150
"""Compared of a prompt and an argument: either may have been cut further on."""


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
    """Of a thread: whether the Codex in the pane ran it itself (`ThreadPane.own`); without a pid, whether the
    pane claims that."""
    state: State = State.UNKNOWN
    """The last state, as it was judged while the pane was there."""
    since: float | None = None
    rule: str = ""
    """The rule that decided the state."""
    words: str = ""
    """Digest of the words that decided it: they may hold messages, and are not kept themselves."""
    ended_at: float | None = None
    """When its process, or its pane, was seen to have ended (unix seconds)."""
    started: float | None = None
    """When its process started (unix seconds)."""
    arguments: tuple[str, ...] = ()
    """Digests of its arguments: one may be its prompt, by which its session is found."""

    @property
    def is_thread(self) -> bool:
        """Return whether the worker is a Codex thread."""
        return self.worker != str(self.pane)


def argument_digests(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the digests of the arguments of a worker CLI that may be its prompt."""
    return tuple(prompt_digest(each) for each in argv[1:] if not each.startswith("-"))


def prompt_digest(prompt: str) -> str:
    """Return the digest of a prompt, on one line and cut as arguments are."""
    return digest(clean_line(prompt, _MAX_PROMPT_CHARS))


def digest(words: str) -> str:
    """Return a short digest, by which two texts can be compared later."""
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=6).hexdigest() if words else ""
