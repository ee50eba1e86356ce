"""Classify steps, for navigation: by their events, and by the change of states and findings that they
cause.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntFlag
from typing import Final

from msgspec.structs import replace

from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.model import events as e
from agentdash.model.findings import DENIAL_KINDS
from agentdash.model.fleet import Fleet, FleetKnown, RecordingEnded
from agentdash.model.pane import PaneKey
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.model.worker import Snapshot, Worker

_NOT_FAILED: Final = ("ended", "running", "aborted")
"""Outcomes of a call that are not failures by themselves."""
_WAITING: Final = (State.WAITING_APPROVAL, State.WAITING_INPUT)
_FAILED: Final = (State.BLOCKED_SANDBOX, State.FAILED_PERMISSION, State.FAILED_PROVIDER)


class Mark(IntFlag):
    """What a step contains, as a target of navigation."""

    VISIBLE = 1
    """Something that the screen shows; token counts, for example, are not."""
    TURN = 2
    COMMAND = 4
    POLICY = 8
    """The policy in force has changed."""
    ESCALATION = 16
    """A call requests more than the policy grants."""
    FAILURE = 32
    """A call, a turn or a worker has failed."""
    DENIAL = 64
    """A sandbox denied something."""
    WAIT = 128
    """A worker begins to wait for input or approval."""
    FINDING = 256
    """A worker has a finding that it did not have before."""
    MISMATCH = 512
    """One of these findings is a difference between layers, not a denial."""


class Marker:
    """Computes the marks of consecutive steps.

    Args:
        family: whether only the workers of a family are shown, and not all that was recorded.
    """

    def __init__(self, *, family: bool) -> None:
        self._family = family
        self._cache = WorkerCache()
        self._assessed: dict[str, tuple[State, frozenset[str]]] = {}
        """State and finding kinds of each worker in the newest assessment."""
        self._panes: set[PaneKey | None] = set()
        """The panes of these workers."""
        self.concerns_at = 0.0
        """Since when is what the newest step shows of a worker, by a line of its log or by its assessment
        (unix seconds); 0 where it shows nothing new."""

    def mark(self, before: Fleet, after: Fleet, events: Iterable[e.Event], at: float) -> Mark:
        """Return the marks of a step.

        Args:
            at: its time (unix seconds).
        """
        found, assess = 0, False
        self.concerns_at = 0.0 if self._family else at
        for event in events:
            if isinstance(event, e.ThreadEvent) and (thread := after.threads.get(event.thread)) is not None:
                self.concerns_at = at
                old = before.threads.get(event.thread) or Thread(event.thread)
                found |= _marks(event, old, thread)
                assess = assess or self._may_change_assessment(event, old, thread)
            elif isinstance(event, (e.PaneDrawn, e.PaneGone, e.ScreenRead)):
                found |= Mark.VISIBLE if not self._family or event.key in self._panes else 0
                assess = True
            elif isinstance(event, (e.StatusPushed, FleetKnown)):
                found |= Mark.VISIBLE
                assess = True
            else:
                assess = assess or isinstance(event, (e.ProcessesCounted, e.FileGone, RecordingEnded))
        return Mark(found | self._assess(after, at) if assess else found)

    def _may_change_assessment(self, event: e.ThreadEvent, old: Thread, new: Thread) -> bool:
        """Return whether an event may change a state or a finding.

        Assessing costs more than everything else here, and most events change neither.
        """
        if isinstance(event, (e.TurnStarted, e.TurnEnded, e.MessageLogged, e.FileSeen, e.FileReset)):
            return True
        if self._assessed.get(new.id, (None,))[0] is not State.RUNNING:
            return True
        if isinstance(event, e.CallStarted) and (
            event.escalation or event.kind in ("question", "permission")
        ):
            return True
        return len(new.observations) != len(old.observations) or new.policies is not old.policies

    def _assess(self, fleet: Fleet, at: float) -> int:
        """Return the marks of what has changed since the newest assessment."""
        found = 0
        snapshot = build_snapshot(fleet, at, self._cache)
        shown = (members_only(snapshot) if self._family else snapshot).workers
        self._panes = {worker.pane.key for worker in shown if worker.pane is not None}
        for worker in shown:
            kinds = frozenset(str(finding.kind) for finding in worker.sandbox.findings)
            old_state, old_kinds = self._assessed.get(worker.id, (None, frozenset[str]()))
            self._assessed[worker.id] = worker.state, kinds
            if worker.state is not old_state:
                self.concerns_at = max(self.concerns_at, worker.assessment.since or at)
            elif kinds != old_kinds:
                self.concerns_at = at
            if worker.state is not old_state:
                found |= Mark.WAIT if worker.state in _WAITING else 0
                found |= Mark.FAILURE if worker.state in _FAILED else 0
            if new := kinds - old_kinds:
                found |= Mark.FINDING | (Mark.MISMATCH if new - DENIAL_KINDS else Mark.DENIAL)
        return found


def _marks(event: e.ThreadEvent, old: Thread, new: Thread) -> int:
    match event:
        case e.ThreadStarted() | e.TurnStarted() | e.MessageLogged() | e.ChildSpawned():
            return Mark.VISIBLE | (Mark.TURN if new.turns > old.turns else 0)
        case e.TurnEnded():
            return Mark.VISIBLE | (Mark.FAILURE if event.error else 0)
        case e.PolicySet():
            # the first policy of a thread is not a change
            return Mark.VISIBLE | Mark.POLICY if len(new.policies) > max(1, len(old.policies)) else 0
        case e.CallStarted():
            command = Mark.COMMAND if event.kind == "command" else 0
            return Mark.VISIBLE | command | (Mark.ESCALATION if event.escalation else 0)
        case e.CallEnded():
            denied = new.calls[-1].denial if new.calls else None
            failed = event.outcome not in _NOT_FAILED or event.exit_code not in (None, 0)
            failure = Mark.FAILURE if failed or denied else 0
            return Mark.VISIBLE | failure | (Mark.DENIAL if denied else 0)
    return 0


# ------------------------------------------------------------
# The workers of a family among those that were recorded at the same time


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
