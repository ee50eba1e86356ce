"""Which workers are shown: by bucket, and by words found in any column. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from agentdash.model.states import bucket
from agentdash.model.worker import Worker

BUCKETS: Final = ("all", "needs-you", "running", "ready", "gone", "mismatch")
"""In the order in which the key `bucket` cycles through them."""
BUCKET_NAMES: Final = {
    "all": "All",
    "needs-you": "Needs you",
    "running": "Running",
    "ready": "Ready",
    "gone": "Gone",
    "mismatch": "Mismatch",
}


class Filter(NamedTuple):
    """A filter. A worker has to match both halves."""

    bucket: str = "all"
    text: str = ""
    """Words that must all occur, in any case and order; after a leading `!`, that must not all occur."""

    @property
    def active(self) -> bool:
        """Whether it can exclude a worker."""
        return self.bucket != "all" or bool(self.text.lstrip("!").strip())

    def cycled(self) -> Filter:
        """Return the filter with the next bucket."""
        return self._replace(bucket=BUCKETS[(BUCKETS.index(self.bucket) + 1) % len(BUCKETS)])

    def accepts(self, worker: Worker) -> bool:
        """Return whether this worker is shown."""
        return _in_bucket(worker, self.bucket) and matches(worker, self.text)


def matches(worker: Worker, text: str) -> bool:
    """Return whether all words of `text` occur in the worker's columns; no words match every worker."""
    words = text.removeprefix("!").casefold().split()
    if not words:
        return True
    columns = searchable_text(worker)
    return all(word in columns for word in words) is not text.startswith("!")


def searchable_text(worker: Worker) -> str:
    """Return everything that a row can show, as one case-folded text."""
    sandbox, pane = worker.sandbox, worker.pane
    parts = (
        worker.state.value,
        worker.state.value.replace("-", " "),
        worker.name,
        worker.id,
        worker.agent.name,
        worker.agent.version or "",
        sandbox.configured.brief() if sandbox.configured else "",
        sandbox.verdict,
        "" if worker.stalled is None else "stalled",
        *(finding.kind for finding in sandbox.findings),
        worker.line,
        worker.assessment.why,
        worker.cwd or "",
        worker.model or "",
        f"{pane.key} {pane.session} {pane.window}" if pane else "",
    )
    return "\n".join(parts).casefold()


def _in_bucket(worker: Worker, name: str) -> bool:
    if name == "all":
        return True
    return worker.mismatch if name == "mismatch" else bucket(worker.state) == name
