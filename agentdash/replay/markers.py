"""What is worth stopping at: a beat's marks, by what it told and by what the judge makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntFlag
from typing import Final

from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.model import events as e
from agentdash.model.fleet import Fleet, Thread
from agentdash.model.states import State

_PLAIN: Final = ("ended", "running", "aborted")
"""Outcomes that are nobody's failure."""
_WAITING: Final = (State.WAITING_APPROVAL, State.WAITING_INPUT)
_FAILED: Final = (State.BLOCKED_SANDBOX, State.FAILED_PERMISSION, State.FAILED_PROVIDER)


class Mark(IntFlag):
    """What a beat is, for those who look for something."""

    STEP = 1
    """Something that shows. Token counts, say, do not."""
    TURN = 2
    COMMAND = 4
    POLICY = 8
    """Another policy is in force."""
    ESCALATION = 16
    """A call wants more than the policy grants."""
    FAILURE = 32
    """A call or a turn failed, or a worker has got stuck."""
    DENIAL = 64
    """A sandbox refused something."""
    WAIT = 128
    """A worker begins to wait for somebody."""
    FINDING = 256
    """A worker has a finding that it did not have before."""


class Marker:
    """Marks beats, one after the other."""

    def __init__(self) -> None:
        self._memo = WorkerCache()
        self._known: dict[str, tuple[State, frozenset[str]]] = {}
        """State and kinds of findings of each worker, as judged last."""

    def mark(self, before: Fleet, after: Fleet, events: Iterable[e.Event], at: float) -> Mark:
        """The marks of a beat.

        Args:
            before: what was known before it.
            after: what is known with it.
            events: what it told.
            at: when.
        """
        found, telling = 0, False
        for event in events:
            if isinstance(event, e.ThreadEvent) and (thread := after.threads.get(event.thread)) is not None:
                was = before.threads.get(event.thread) or Thread(event.thread)
                found |= _marks(event, was, thread)
                telling = telling or self._tells(event, was, thread)
            elif isinstance(event, (e.PaneDrawn, e.PaneGone, e.ScreenRead, e.StatusPushed)):
                found |= Mark.STEP
                telling = True
            else:
                telling = telling or isinstance(event, (e.ProcessesCounted, e.FileGone))
        return Mark(found | self._judge(after, at) if telling else found)

    def _tells(self, event: e.ThreadEvent, was: Thread, now: Thread) -> bool:
        """Whether it may change a state or a finding. Judging costs more than all the rest, and most beats change neither."""
        if isinstance(event, (e.TurnStarted, e.TurnEnded, e.MessageLogged, e.FileSeen, e.FileReset)):
            return True
        if self._known.get(now.id, (None,))[0] is not State.RUNNING:
            return True
        if isinstance(event, e.CallStarted) and (
            event.escalation or event.kind in ("question", "permission")
        ):
            return True
        return len(now.observations) != len(was.observations) or now.policies is not was.policies

    def _judge(self, fleet: Fleet, at: float) -> int:
        found = 0
        for worker in build_snapshot(fleet, at, self._memo).workers:
            state, kinds = worker.state, frozenset(finding.kind for finding in worker.sandbox.findings)
            old_state, old_kinds = self._known.get(worker.id, (None, frozenset[str]()))
            self._known[worker.id] = state, kinds
            if state is not old_state:
                found |= Mark.WAIT if state in _WAITING else Mark.FAILURE if state in _FAILED else 0
            if kinds - old_kinds:
                found |= Mark.FINDING
        return found


def _marks(event: e.ThreadEvent, was: Thread, now: Thread) -> int:
    turn = Mark.TURN if now.turns > was.turns else 0
    match event:
        case e.ThreadStarted() | e.TurnStarted() | e.MessageLogged() | e.ChildSpawned():
            return Mark.STEP | turn
        case e.TurnEnded():
            return Mark.STEP | (Mark.FAILURE if event.error else 0)
        case e.PolicySet():
            return Mark.STEP | Mark.POLICY if len(now.policies) > max(1, len(was.policies)) else 0
        case e.CallStarted():
            command = Mark.COMMAND if event.kind == "command" else 0
            return Mark.STEP | command | (Mark.ESCALATION if event.escalation else 0)
        case e.CallEnded():
            denied = now.calls[-1].denial if now.calls else None
            failed = event.outcome not in _PLAIN or event.exit_code not in (None, 0)
            return Mark.STEP | (Mark.FAILURE if failed or denied else 0) | (Mark.DENIAL if denied else 0)
    return 0
