"""The index of a stream: times and marks of all steps, and checkpoints close to each of them.

Made by reading the stream once in a thread of its own, and extended as the files grow; what has been read
so far can be queried meanwhile. It takes 18 bytes per step, and a bounded number of checkpoints of some
kilobytes.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from enum import IntFlag
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Final

from agentdash.engine.snapshot import WorkerCache
from agentdash.model import events as e
from agentdash.model.findings import DENIAL_KINDS
from agentdash.model.fleet import Fleet, FleetKnown, RecordingEnded
from agentdash.model.pane import PaneKey
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.replay.cursor import Cursor, restore
from agentdash.replay.streams import MergedStream

# ------------------------------------------------------------
# Classify steps, for navigation: by their events, and by the change of states and findings that they cause


_NOT_FAILED: Final = ("ended", "running", "aborted")
"""Outcomes of a call that are not failures by themselves."""
_WAITING: Final = (State.WAITING_APPROVAL, State.WAITING_INPUT)
_FAILED: Final = (State.BLOCKED_SANDBOX, State.FAILED_PERMISSION, State.FAILED_PROVIDER)


class Mark(IntFlag):
    """What a step contains, as a target of navigation."""

    VISIBLE = 1
    """Something that the screen shows; token counts, for example, are not."""
    TURN = 2
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
    MISMATCH = 256
    """A worker has a finding that it did not have before, and not of a denial."""


MARKED: Final = Mark.MISMATCH | Mark.WAIT | Mark.DENIAL | Mark.FAILURE | Mark.ESCALATION | Mark.POLICY
"""What the scrubber shows, and `v` goes to."""


class Marker:
    """Computes the marks of consecutive steps of a cursor.

    Args:
        cursor: at its beginning, to be advanced by the caller.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._family = cursor.stream.has_logs
        self._cursor = cursor
        self._cache = WorkerCache()
        self._assessed: dict[str, tuple[State, frozenset[str]]] = {}
        """State and finding kinds of each worker in the newest assessment."""
        self._panes: set[PaneKey | None] = set()
        """The panes of these workers."""
        self.concerns_at = 0.0
        """Since when a worker is as the newest step shows it (unix seconds); 0: it shows nothing new."""

    def mark(self, before: Fleet, after: Fleet, events: Sequence[e.Event], at: float) -> Mark:
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
        return Mark(found | self._assess(at) if assess else found)

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

    def _assess(self, at: float) -> int:
        """Return the marks of what has changed since the newest assessment."""
        found = 0
        shown = self._cursor.snapshot(self._cache).workers
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
                found |= Mark.MISMATCH if new - DENIAL_KINDS else Mark.DENIAL
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
            return Mark.VISIBLE | (Mark.ESCALATION if event.escalation else 0)
        case e.CallEnded():
            denied = new.calls[-1].denial if new.calls else None
            failed = event.outcome not in _NOT_FAILED or event.exit_code not in (None, 0)
            failure = Mark.FAILURE if failed or denied else 0
            return Mark.VISIBLE | failure | (Mark.DENIAL if denied else 0)
    return 0


# ------------------------------------------------------------


_CHECKPOINT_STEPS: Final = 200
"""Steps between two checkpoints, and so the most that a seek reads: in about 25 ms."""
_MAX_CHECKPOINTS: Final = 2_000
"""Beyond these every second one is dropped and the interval doubles, to bound the memory."""
MAX_GAP_S: Final = 2.0
"""A longer pause between two visible steps counts as this, in recorded seconds."""
_POLL_INTERVAL_S: Final = 0.5
"""Seconds between two checks of whether files have grown: growth is rare in a replay."""


class StreamIndex:
    """The index of a merged stream. A position is a number of consumed steps.

    Args:
        stream: at its beginning.
        size: bytes of its files.
        is_open: returns whether more may still be written, given the time of the newest step. Called when
            all has been read.
    """

    def __init__(self, stream: MergedStream, size: int, is_open: Callable[[float], bool]) -> None:
        self._cursor = Cursor(stream)
        self._size = size
        self._is_open = is_open
        self._marker = Marker(self._cursor)
        self._checkpoints = [(0, self._cursor.checkpoint())]
        """Positions and their checkpoints, in order."""
        self.checkpoint_steps = _CHECKPOINT_STEPS
        """Steps between two checkpoints."""
        self._visible_elapsed = 0.0
        """`elapsed` of the newest visible step."""
        self._visible_at = 0.0
        """Time of the newest visible step (unix seconds)."""
        self._stopped = threading.Event()
        self.times = array("d")
        """Time of each step (unix seconds)."""
        self.elapsed = array("d")
        """Seconds of play from the first step to each, with long pauses shortened."""
        self.marks = array("H")
        """Marks of each step (`Mark`)."""
        self.last = 0
        """Position behind the newest step that concerns a worker: a recording goes on for a while."""
        self.complete = False
        """Whether everything written so far has been read."""
        self.open = True
        """Whether more may still be written."""

    @property
    def progress(self) -> float:
        """Share of the files that has been read, 0 to 1."""
        return 1.0 if self.complete else min(0.999, self._cursor.stream.offset / max(1, self._size))

    # ------------------------------------------------------------ building

    def run(self) -> None:
        """Read the stream and what is appended to it, until `stop`. Runs in a thread."""
        self._stopped.clear()
        while not self._stopped.is_set():
            self.read()
            self._stopped.wait(_POLL_INTERVAL_S)
            self._cursor.stream.poll()

    def read(self) -> None:
        """Read to the current end of the files."""
        cursor = self._cursor
        before, was_active = cursor.fleet, cursor.is_active
        while not self._stopped.is_set() and (step := cursor.advance()) is not None:
            mark = self._marker.mark(before, cursor.fleet, step.events, step.at)
            before = cursor.fleet
            self._append(step.at, mark)
            if was_active or self._marker.concerns_at > self.end:
                self.last = len(self.times)
            was_active = cursor.is_active
            if cursor.position - self._checkpoints[-1][0] >= self.checkpoint_steps:
                self._add_checkpoint()
        if not self._stopped.is_set():
            self.open = self._is_open(self.times[-1] if self.times else 0.0)
            self.complete = True

    def stop(self) -> None:
        """End `run`."""
        self._stopped.set()

    def _append(self, at: float, mark: Mark) -> None:
        """Append a step. `times` is appended to last: readers in other threads go by its length."""
        self.marks.append(mark)
        elapsed = self._visible_elapsed + min(MAX_GAP_S, at - self._visible_at) if self.times else 0.0
        if mark & Mark.VISIBLE or not self.times:
            self._visible_elapsed = elapsed
            self._visible_at = at
        self.elapsed.append(elapsed)
        self.times.append(at)

    def _add_checkpoint(self) -> None:
        self._checkpoints.append((self._cursor.position, self._cursor.checkpoint()))
        if len(self._checkpoints) > _MAX_CHECKPOINTS:
            self._checkpoints = self._checkpoints[::2]
            self.checkpoint_steps *= 2

    # ------------------------------------------------------------ queries

    @property
    def is_over(self) -> bool:
        """Whether everything has been read and nothing will follow."""
        return self.complete and not self.open

    @property
    def known(self) -> int:
        """The last position, as far as it has been read."""
        return self.last if self.is_over else len(self.times)

    @property
    def end(self) -> float:
        """Time of the newest step that concerns a worker (unix seconds); 0 before the first."""
        return self.times[self.last - 1] if self.last else 0.0

    def cursor(self, position: int) -> Cursor:
        """Return a new cursor at a position, or at the end if that comes first."""
        checkpoints = self._checkpoints
        number = bisect_right(checkpoints, position, key=lambda checkpoint: checkpoint[0]) - 1
        cursor = restore(checkpoints[number][1])
        while cursor.position < position and cursor.advance() is not None:
            pass
        return cursor

    def covers(self, at: float) -> bool:
        """Return whether everything up to a time (unix seconds) has been read."""
        return self.complete or bool(self.times and at < self.times[-1])

    def find(self, position: int, wanted: Mark, direction: int) -> int | None:
        """Return the next (1) or previous (-1) position whose newest step has one of these marks."""
        marks, mask, known = self.marks, int(wanted), self.known
        number = position - 1 + direction
        while 0 <= number < known:
            if marks[number] & mask:
                return number + 1
            number += direction
        return None

    def share_of(self, position: int) -> float:
        """Return the share of the play time at a position, 0 to 1."""
        known = len(self.elapsed)
        if not known or position < 1:
            return 0.0
        total = self.elapsed[known - 1]
        last = min(position, known)
        return self.progress * (self.elapsed[last - 1] / total if total else last / known)

    def position_of(self, share: float) -> int | None:
        """Return the position at a share of the play time; None if it has not been read yet."""
        known = len(self.elapsed)
        if not known or share > self.progress:
            return None
        total = self.elapsed[known - 1]
        part = share / self.progress
        return max(1, bisect_right(self.elapsed, part * total, hi=known) if total else round(part * known))

    def marks_per_cell(self, cells: int) -> list[Mark]:
        """Return the marks in each of `cells` equal parts of the play time."""
        known = len(self.elapsed)
        if not known:
            return [Mark(0)] * cells
        total, end = self.elapsed[known - 1], self.progress
        edges = []
        for cell in range(cells + 1):
            part = min(1.0, cell / cells / end) if end else 1.0
            edges.append(bisect_left(self.elapsed, part * total, hi=known) if total else round(part * known))
        edges[-1] = known
        marks = self.marks[:known]
        return [Mark(reduce(or_, set(marks[a:b]), 0)) for a, b in pairwise(edges)]
