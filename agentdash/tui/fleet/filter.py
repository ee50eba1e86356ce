"""Which workers are shown: by group, and by words found in any column. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from agentdash.model.states import Group
from agentdash.model.worker import Worker

BUCKET_NAMES: Final = {
    "all": "All",
    "needs-you": "Needs you",
    "running": "Running",
    "unclear": "Unclear",
    "done": "Done",
    "past": "Past",
    "mismatch": "Sandbox problems",
}
"""What a click on a count of the header shows."""


class Filter(NamedTuple):
    """A filter. A worker has to match both halves."""

    bucket: str = "all"
    text: str = ""
    """Words that must all occur, in any case and order; after a leading `!`, that must not all occur.
    `state:failed` looks into one column only: see `FIELDS`."""

    @property
    def active(self) -> bool:
        """Whether it can exclude a worker."""
        return self.bucket != "all" or bool(self.text.lstrip("!").strip())

    def accepts(self, worker: Worker) -> bool:
        """Return whether this worker is shown."""
        is_wrong = worker.mismatch and worker.group is not Group.PAST
        is_in = self.bucket in ("all", worker.group) or (self.bucket == "mismatch" and is_wrong)
        return is_in and matches(worker, self.text)


def _sandbox(worker: Worker) -> str:
    sandbox, policy = worker.sandbox, worker.sandbox.configured
    kinds = " ".join(finding.kind for finding in sandbox.findings)
    return f"{policy.brief() if policy else ''} {sandbox.verdict} {kinds}"


def _pane(worker: Worker) -> str:
    pane = worker.pane
    here = f"{pane.key} {pane.session} {pane.window}" if pane else ""
    return f"{here} {worker.pane_there or ''}"


FIELDS: Final[dict[str, Callable[[Worker], str]]] = {
    "state": lambda worker: " ".join(
        (worker.state, worker.state.replace("-", " "), "stalled" if worker.stalled is not None else "")
    ),
    "group": lambda worker: worker.group,
    "name": lambda worker: worker.name,
    "label": lambda worker: worker.label,
    "agent": lambda worker: f"{worker.agent.name} {worker.agent.version or ''}",
    "sandbox": _sandbox,
    "cwd": lambda worker: worker.cwd or "",
    "pane": _pane,
    "host": lambda worker: worker.host or "",
    "model": lambda worker: worker.model or "",
    "id": lambda worker: worker.id,
    "why": lambda worker: f"{worker.fact.text}\n{worker.assessment.why}\n{worker.line}",
}
"""What a word with a prefix is looked for in."""


def matches(worker: Worker, text: str) -> bool:
    """Return whether all words of `text` occur in the worker's columns; no words match every worker."""
    words = text.removeprefix("!").casefold().split()
    if not words:
        return True
    return all(_has(worker, word) for word in words) is not text.startswith("!")


def _has(worker: Worker, word: str) -> bool:
    field, _, value = word.partition(":")
    if field in FIELDS:
        return value in FIELDS[field](worker).casefold()
    return any(word in find(worker).casefold() for find in FIELDS.values())
