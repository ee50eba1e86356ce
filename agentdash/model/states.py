"""The states of a worker, and what is known of the life of a process."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Final

import msgspec

from agentdash.model.fact import Fact


class State(StrEnum):
    """What a worker is doing (DESIGN: states)."""

    RUNNING = "running"
    WAITING_INPUT = "waiting-input"
    WAITING_APPROVAL = "waiting-approval"
    BLOCKED_SANDBOX = "blocked-sandbox"
    FAILED_PERMISSION = "failed-permission"
    FAILED_PROVIDER = "failed-provider"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    EXITED = "exited"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"

    @property
    def needs_you(self) -> bool:
        """Return whether the worker goes on only after the user has acted."""
        return self in NEEDS_YOU


NEEDS_YOU: Final = (
    State.WAITING_APPROVAL,
    State.WAITING_INPUT,
    State.BLOCKED_SANDBOX,
    State.FAILED_PERMISSION,
    State.FAILED_PROVIDER,
)
"""The states that need an action of the user, the most urgent first."""
URGENCY: Final = (
    *NEEDS_YOU,
    State.EXITED,
    State.RUNNING,
    State.UNKNOWN,
    State.UNREACHABLE,
    State.COMPLETED,
    State.INTERRUPTED,
)
"""All states, the most urgent first. `exited` counts here where it ended in the middle of a turn."""


class Liveness(StrEnum):
    """What is known of the life of a process or an owner; `UNKNOWN` is evidence for neither."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"


# ------------------------------------------------------------
# What the user has looked at and acknowledged, and the groups of workers that follow from it


class Group(StrEnum):
    """The groups of the fleet list, in their order."""

    NEEDS_YOU = "needs-you"
    """Waiting, blocked or failed now, or ended so since the last look; not acknowledged."""
    RUNNING = "running"
    UNCLEAR = "unclear"
    """Unreachable, or the evidence does not decide."""
    DONE = "done"
    """At rest, or acknowledged: its process, lock or pane lives, or it ended since the last look."""
    PAST = "past"
    """No process, lock or pane holds it, and it ended before the last look."""


def group_of_state(state: State) -> Group:
    """Return the group of a worker if only its state is known."""
    if state in NEEDS_YOU:
        return Group.NEEDS_YOU
    if state is State.RUNNING:
        return Group.RUNNING
    if state in (State.UNREACHABLE, State.UNKNOWN):
        return Group.UNCLEAR
    return Group.DONE


class Acknowledgement(msgspec.Struct, frozen=True, omit_defaults=True):
    """A state of a worker that the user has acknowledged: it does not need the user until it changes."""

    worker: str
    """Thread id, or pane."""
    state: State
    at: float
    """When it was acknowledged (unix seconds)."""
    fact: str = ""
    """Digest of the fact: it may quote prompts and commands, which are not kept."""


class KnownFinding(msgspec.Struct, frozen=True):
    """A kind of finding that the user knows of in one directory, for as long as the policy stays the same."""

    kind: str
    """A value of `FindingKind`."""
    directory: str
    """That of the workers; of those of another host with its name in front."""
    policy: str
    """The policy configured there, in words."""
    policy_digest: str
    """The same whole, by which two can be compared."""
    at: float
    """When the user marked it (unix seconds)."""


class Bookmark(msgspec.Struct, frozen=True, omit_defaults=True):
    """The label and the pin that the user has given to a session."""

    worker: str
    """Thread id, or pane."""
    started: float | None = None
    """When the session began (unix seconds), where the id does not outlast it: a pane gets others."""
    label: str = ""
    pinned: bool = False
    """Whether it stands above all groups."""


class Attention(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user has looked at, acknowledged, knows of, and has labelled or pinned."""

    looked_at: float | None = None
    """When the user last looked (unix seconds), before the present look; None: never."""
    acknowledged: tuple[Acknowledgement, ...] = ()
    """At most one of a worker."""
    known: tuple[KnownFinding, ...] = ()
    """The newest last."""
    bookmarks: tuple[Bookmark, ...] = ()
    """At most one of a worker, the newest last."""

    def add(self, new: Acknowledgement) -> Attention:
        """Return it with an acknowledgement, in place of that worker's last one."""
        others = (each for each in self.acknowledged if each.worker != new.worker)
        return msgspec.structs.replace(self, acknowledged=(*others, new))

    def mark(self, new: Bookmark) -> Attention:
        """Return it with a bookmark, in place of that worker's last one; without, if it says nothing."""
        others = tuple(each for each in self.bookmarks if each.worker != new.worker)
        kept = (new,) if new.label or new.pinned else ()
        return msgspec.structs.replace(self, bookmarks=(*others, *kept))

    def remove(self, worker: str) -> Attention:
        """Return it without the acknowledgement of a worker."""
        kept = tuple(each for each in self.acknowledged if each.worker != worker)
        return msgspec.structs.replace(self, acknowledged=kept)


def fact_digest(fact: Fact) -> str:
    """Return a short digest of a fact, by which two can be compared later."""
    words = "\0".join((fact.kind, fact.what, fact.object))
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=6).hexdigest()
