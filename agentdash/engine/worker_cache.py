"""The workers of the snapshot before, reused while nothing that they are derived from has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from agentdash.engine.judge.attention import Standing
from agentdash.engine.judge.findings.write_access import DenialPredictor, reach_by_policy
from agentdash.engine.judge.states.state_history import SettledState
from agentdash.engine.judge.states.thread_state import judge_thread
from agentdash.engine.remote_rows import RemoteRows, SharedHomes
from agentdash.engine.thread_worker import RowInputs, thread_sandbox, thread_worker
from agentdash.model.git import Repository
from agentdash.model.pane import PaneKey
from agentdash.model.policy import Policy
from agentdash.model.reach import Reach
from agentdash.model.secrets import mask_fields
from agentdash.model.state_paths import Installed
from agentdash.model.states import State
from agentdash.model.worker import Assessment, PastPane, Sandbox, Worker

_MAX_FORMER_WORKERS: Final = 20
"""Workers that are gone, at most, besides as many as there are: looking for them takes time."""


class WorkerCache:
    """What snapshots of one fleet share."""

    def __init__(self) -> None:
        self._judged: dict[str, tuple[RowInputs, Worker]] = {}
        self._sandboxes: dict[str, tuple[RowInputs, State, Sandbox]] = {}
        self._masked: dict[str, tuple[Worker, Worker]] = {}
        self._shown: dict[str, tuple[Worker, Worker]] = {}
        self._reaches: dict[str, tuple[Reach, Policy, Reach]] = {}
        """What each worker could reach by its policy, with what that follows from."""
        self._predictor: DenialPredictor | None = None
        self._past: tuple[PastPane, ...] = ()
        self._idle: tuple[PaneKey, ...] = ()
        self.remote = RemoteRows()
        self.shared_homes = SharedHomes()

    def forget_others(self, workers: Mapping[str, Worker]) -> None:
        """Forget workers that are not among these any more, where they have become many."""
        known: dict[str, Any]
        for known in (
            self._judged,
            self._sandboxes,
            self._masked,
            self._shown,
            self._reaches,
        ):
            if len(known) > 2 * len(workers) + _MAX_FORMER_WORKERS:
                for former in known.keys() - workers.keys():
                    del known[former]

    def predictor(self, installed: Installed | None) -> DenialPredictor | None:
        """Return the predictor for these worker CLIs: the cached one while they are the same."""
        if installed is None:
            return None
        if self._predictor is None or self._predictor.installed != installed:
            self._predictor = DenialPredictor(installed)
        return self._predictor

    def same_past(self, past: tuple[PastPane, ...]) -> tuple[PastPane, ...]:
        """Return the cached past panes if they are equal: comparing snapshots is then cheap."""
        if past != self._past:
            self._past = past
        return self._past

    def same_idle(self, idle: tuple[PaneKey, ...]) -> tuple[PaneKey, ...]:
        """Return the cached panes without a worker if they are equal."""
        if idle != self._idle:
            self._idle = idle
        return self._idle

    def worker(self, inputs: RowInputs) -> Worker:
        """Return the masked worker of these inputs: the cached one, or else a new one."""
        thread = inputs.case.thread.id
        cached = self._judged.get(thread)
        if cached is not None and cached[0].is_same(inputs):
            return cached[1]
        assessment = judge_thread(inputs.case)
        worker = self.masked(thread_worker(inputs, assessment, self._sandbox(inputs, assessment)))
        self._judged[thread] = (inputs, worker)
        return worker

    def _sandbox(self, inputs: RowInputs, assessment: Assessment) -> Sandbox:
        """Return the sandbox of a thread: most lines of a session change nothing of it."""
        thread = inputs.case.thread.id
        cached = self._sandboxes.get(thread)
        if cached is not None and cached[1] is assessment.state and cached[0].has_same_sandbox(inputs):
            return cached[2]
        sandbox = thread_sandbox(inputs, assessment)
        self._sandboxes[thread] = inputs, assessment.state, sandbox
        return sandbox

    def masked(self, worker: Worker) -> Worker:
        """Return a worker with secrets masked in its name and in what agentdash concludes and quotes.

        Its moments, its calls and its screen stay as they are, for the eyes of its user. What is as before is
        not masked again.
        """
        before, masked = self._masked.get(worker.id, (None, None))
        changes = {
            name: getattr(masked, name)
            if before is not None and getattr(before, name) == getattr(worker, name)
            else mask_fields(getattr(worker, name))
            for name in ("name", "assessment", "sandbox", "line", "links", "notes")
        }
        known = replace(worker, **changes)
        self._masked[worker.id] = (worker, known)
        return known

    def reach_by_policy(self, worker: str, own: Reach, policy: Policy) -> Reach:
        """Return what a worker could reach by its policy: the identical object as before, if that is so."""
        cached = self._reaches.get(worker)
        if cached is None or cached[0] is not own or cached[1] != policy:
            cached = self._reaches[worker] = own, policy, reach_by_policy(own, policy).compact()
        return cached[2]

    def shown(
        self,
        worker: Worker,
        settled: SettledState,
        stalled: float | None,
        standing: Standing,
        session: str | None = None,
        around: tuple[Repository | None, Reach | None] = (None, None),
    ) -> Worker:
        """Return the worker as it is shown: the identical object as before, if it is equal."""
        cached = self._shown.get(worker.id)
        if cached is not None and (cached[0] is worker or cached[0] == worker):
            before, assessment = cached[1], settled.assessment
            is_same_state = before.assessment is assessment or before.assessment == assessment
            is_same_place = (before.standing, before.is_new) == (standing.group, standing.is_new)
            is_same = is_same_state and is_same_place and before.history == settled.periods
            is_same = is_same and before.ssh_connection == session
            if is_same and before.stalled == stalled and (before.git, before.reach) == around:
                return before
        shown = replace(
            worker,
            assessment=settled.assessment,
            history=settled.periods,
            stalled=stalled,
            standing=standing.group,
            is_new=standing.is_new,
            ssh_connection=session,
            git=around[0],
            reach=around[1],
        )
        self._shown[worker.id] = (worker, shown)
        return shown
