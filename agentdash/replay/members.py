"""The workers of a family among those that were recorded at the same time."""

from __future__ import annotations

from msgspec.structs import replace

from agentdash.model.worker import Snapshot, Worker


def members_only(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot of a family without what a recording has of others.

    Members are the threads, each with its pane in its own row, and the worker CLIs that their commands
    started. A pane without one of the threads runs something else, or nothing yet.
    """
    threads = {worker.id for worker in snapshot.workers if _has_log(worker)}
    workers = tuple(each for each in snapshot.workers if each.id in threads or each.parent in threads)
    past = tuple(
        pane for pane in snapshot.past if pane.worker in threads or (pane.shown and _has_log(pane.shown))
    )
    return replace(snapshot, workers=workers, past=past, idle_panes=())


def _has_log(worker: Worker) -> bool:
    return worker.kind in ("codex-thread", "claude-session")
