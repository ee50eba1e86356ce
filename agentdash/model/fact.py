"""The short fact of a worker: what it does or needs, with the object it is about, whole.

A row shows a fact in few cells, a document as fields. It is not a sentence: what may be cut from a path, a
command or a question differs, so the object is a field of its own, with its form.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class FactKind(StrEnum):
    """What a worker does, or what it needs."""

    RUN = "run"
    """It wants to run a command."""
    LEAVE = "leave"
    """It wants to run a command outside the sandbox."""
    EDIT = "edit"
    """It wants to change a file."""
    APPROVE = "approve"
    """It wants another approval, of what its prompt quotes."""
    ASK = "ask"
    """It asks a question."""
    IDLE = "idle"
    """It is at its prompt, and has no task."""
    DENIED = "denied"
    """A sandbox denied an operation."""
    REFUSED = "refused"
    """The user, a rule or the approval policy refused a command."""
    PROVIDER = "provider"
    """The model or its provider failed."""
    SANDBOX = "sandbox"
    """The sandbox itself failed."""
    WORK = "work"
    """It works."""
    DONE = "done"
    """It has finished."""
    STOPPED = "stopped"
    """It was interrupted."""
    CRASHED = "crashed"
    """Its process ended in the middle of a turn."""
    QUIT = "quit"
    """Its process ended at rest."""
    UNCLEAR = "unclear"
    """It cannot be observed, or the evidence does not decide."""


class ObjectForm(StrEnum):
    """What an object is: it decides what may be cut from it."""

    COMMAND = "command"
    """Both ends matter."""
    PATH = "path"
    """Directories in the middle may be cut, the last parts never."""
    HOST = "host"
    """Never cut, as long as there is room for it."""
    TEXT = "text"
    """A question, a message: the beginning matters most."""


WAITING: Final = frozenset((FactKind.RUN, FactKind.LEAVE, FactKind.EDIT, FactKind.APPROVE, FactKind.ASK))
"""Kinds in which work waits for the user. An idle prompt has no work that waits."""


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """What, why, and the object."""

    kind: FactKind
    what: str
    """In a few words, to be read before the object: `wants to run`, `may not write`."""
    object: str = ""
    """The command, path, host, question or message, whole; may be empty."""
    form: ObjectForm = ObjectForm.TEXT
    why: str = ""
    """In a few words, to be read after the object: `read-only file system`."""

    @property
    def text(self) -> str:
        """Return the fact on one line: `may not write /etc/hosts (read-only file system)`."""
        why = f"({self.why})" if self.why and self.why != self.object else ""
        return " ".join(part for part in (self.what, self.object, why) if part)
