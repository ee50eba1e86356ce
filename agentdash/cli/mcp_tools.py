"""The tools of `agentdash mcp`: read-only, with short answers."""

from __future__ import annotations

import asyncio
import gc
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import click
import msgspec
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field
from rich.console import Console

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome, default_home
from agentdash.cli.fleet_access import FleetView, read_fleet, with_server_of
from agentdash.cli.wait import WORKING_STATES, wait_for
from agentdash.collect.tmux.servers import servers
from agentdash.config import Config, state_folder
from agentdash.model.engine_failure import EngineFailedError
from agentdash.model.findings import DENIAL_KINDS
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import mask_fields, mask_secrets
from agentdash.model.states import Group, State
from agentdash.model.times import iso
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.audit import audit, find_logs
from agentdash.report.check import ThreadReport
from agentdash.report.elements import denial_line
from agentdash.report.explain import print_explained
from agentdash.report.sessions import read_sessions
from agentdash.report.status import wait_line
from agentdash.store.digests import DigestStore

MAX_ANSWER_CHARACTERS: Final = 8_000
"""About 2,000 tokens: an agent pays for each of them again with every later request."""
_ANSWER_COLUMNS: Final = 240
_DEFAULT_WAIT_S: Final = 45.0
"""Codex 0.169 gives up on a tool after 60 s, unless its config has another `tool_timeout_sec`."""
_MAX_WAIT_S: Final = 900.0
_MAX_WORKERS: Final = 50
_MAX_SESSIONS: Final = 50
_MAX_NAME_CHARACTERS: Final = 40
_MAX_WHY_CHARACTERS: Final = 200
_R = TypeVar("_R")

Target = Annotated[str, Field(description="Thread id or its beginning, tmux pane (%4), or name of a worker.")]


class Tools:
    """Answers questions about workers with the configuration of this agentdash."""

    def __init__(self, config: Config) -> None:
        self._config = config

    @property
    def all(self) -> tuple[Callable[..., Any], ...]:
        """Return the tools; a docstring is what the model reads."""
        return self.status, self.wait, self.explain, self.check, self.sessions

    async def status(
        self,
        target: Annotated[
            str | None, Field(description="One worker: thread id, pane (%4) or name. Default: all.")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=_MAX_WORKERS)] = 20,
    ) -> str:
        """State of the coding agents that run on this machine: what each does, why, whether it needs its
        user, and whether its sandbox is the one it was promised. JSON, the most urgent worker first. Past
        sessions are left out unless they are asked for by id."""
        view = await _in_thread(lambda: self._read(target))
        snapshot = view.snapshot
        problems = [f"{source.name}: {source.detail}" for source in snapshot.failing_sources]
        problems += [f"engine: {snapshot.failure.text}"] if snapshot.failure is not None else []
        problems += [view.via.problem] if view.via is not None and view.via.problem else []
        workers = [_worker_fields(worker) for worker in _most_urgent(snapshot, target, limit)]
        document = {"problems": [clean_line(problem, _MAX_WHY_CHARACTERS) for problem in problems]}
        return msgspec.json.encode(mask_fields(document | {"workers": workers})).decode()

    async def wait(
        self,
        target: Target,
        until: Annotated[
            list[str] | None,
            Field(description="States to wait for. Default: all but running and unknown."),
        ] = None,
        timeout_seconds: Annotated[float, Field(ge=0, le=_MAX_WAIT_S)] = _DEFAULT_WAIT_S,
    ) -> str:
        """Wait until a worker is in one of some states, and return its state and why. If the time is up, the
        answer states that: call again."""
        try:
            states = tuple(map(State, until or ()))
        except ValueError as error:
            raise ToolError(f"{error}: choose from {', '.join(State)}") from error
        wanted = states or tuple(state for state in State if state not in WORKING_STATES)
        self._check_server(target)
        with _expected_errors():
            report = await wait_for(self._config, target, wanted, timeout_seconds)
        return _short(wait_line(report))

    async def explain(self, target: Target) -> str:
        """Explain the state of a worker and the verdict on its sandbox: all evidence, what disagrees, what
        was denied, and the narrowest change that would help."""
        view = await _in_thread(lambda: self._read(target))
        out = io.StringIO()
        print_explained(
            view.snapshot, Console(file=out, width=_ANSWER_COLUMNS, soft_wrap=True, highlight=False)
        )
        return _short(out.getvalue())

    async def check(
        self,
        thread: Annotated[
            str | None, Field(description="Thread id or its beginning. Default: the newest sessions.")
        ] = None,
        newest: Annotated[int, Field(ge=1, le=_MAX_SESSIONS)] = 20,
    ) -> str:
        """Audit past sessions from their files: where the sandbox that a command had differs from the one
        that was configured, and what was denied and not got past."""
        return await _in_thread(lambda: _short(self._check(thread, newest)))

    async def sessions(self, limit: Annotated[int, Field(ge=1, le=_MAX_SESSIONS)] = 10) -> str:
        """The newest sessions: id, begin, directory and first prompt. JSON."""
        return await _in_thread(lambda: _short(self._sessions(limit)))

    def _read(self, target: str | None) -> FleetView:
        """Return the fleet, or what matches a target."""
        self._check_server(target)
        return read_fleet(self._config, target)

    def _check_server(self, target: str | None) -> None:
        """Check that a target is on a tmux server that is watched in any case: a model chooses no socket.

        Raises:
            ToolError: it names another server.
        """
        watched, named = (
            servers(config.socket_names, config.socket_paths, default=True)
            for config in (self._config, with_server_of(self._config, target))
        )
        if not set(named) <= set(watched):
            raise ToolError(f"{clean_line(target or '')!r} is on a tmux server that is not watched")

    def _check(self, thread: str | None, newest: int) -> str:
        home = CodexHome(self._config.codex_home or default_home())
        claude = ClaudeHome(self._config.claude_home)
        try:  # a tool of a model audits sessions, not any file
            found = find_logs(home, claude, () if thread is None else [thread], are_paths=False)
        except LookupError as error:
            raise ToolError(f"{error}: see the tool sessions") from error
        paths = found.paths
        if thread is None:
            paths = sorted(paths, key=_modified_at, reverse=True)[:newest]
        report = audit(paths, unreadable=found.unreadable, digests=DigestStore(state_folder()))
        lines = [line for each in report.threads for line in _thread_lines(each)]
        totals = report.totals
        lines.append(
            f"{totals.threads} threads: {totals.match} match, {totals.mismatch} mismatch, "
            f"{totals.unverified} unverified, {totals.unreadable} unreadable, "
            f"{totals.open_denials} denials not got past"
        )
        return "\n".join(lines)

    def _sessions(self, limit: int) -> str:
        listed = read_sessions(self._config.codex_home, limit, self._config.claude_home)
        rows = [
            {"id": each.id, "started_at": each.started_at, "cwd": each.cwd, "prompt": each.prompt}
            for each in listed.sessions
        ]
        problems = [str(problem) for problem in listed.problems] + (
            [listed.problem] if listed.problem else []
        )
        return msgspec.json.encode({"sessions": rows, "problems": problems}).decode()


async def _in_thread(work: Callable[[], _R]) -> _R:
    """Run blocking work, which has an event loop of its own, in a thread.

    Raises:
        ToolError: no worker matches, or it cannot be read.
    """
    with _expected_errors():
        try:
            return await asyncio.to_thread(work)
        finally:
            gc.unfreeze()  # commands freeze what they leave and end; this program would keep all of it


@contextmanager
def _expected_errors() -> Iterator[None]:
    """Raise the errors of commands as those of tools, whose messages the model reads."""
    try:
        yield
    except click.ClickException as error:
        raise ToolError(error.format_message()) from error
    except (EngineFailedError, OSError) as error:
        raise ToolError(clean_line(str(error))) from error


def _most_urgent(snapshot: Snapshot, target: str | None, limit: int) -> list[Worker]:
    """Return the most urgent workers; past ones only if they were asked for."""
    order = list(Group)
    workers = [worker for worker in snapshot.workers if target is not None or worker.group is not Group.PAST]
    return sorted(workers, key=lambda worker: order.index(worker.group))[:limit]


def _worker_fields(worker: Worker) -> dict[str, Any]:
    """Return what `agentdash status --json` states of a worker, without evidence, and cut."""
    return {
        "id": worker.id,
        "name": clean_line(worker.name, _MAX_NAME_CHARACTERS),
        "agent": worker.agent.name,
        "state": worker.state,
        "since": iso(worker.assessment.since),
        "why": clean_line(worker.fact.text, _MAX_WHY_CHARACTERS),
        "needs_you": worker.needs_you,
        "pane": str(worker.pane.key) if worker.pane else None,
        "verdict": worker.sandbox.verdict,
        "findings": [finding.kind for finding in worker.sandbox.findings],
    }


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _thread_lines(thread: ThreadReport) -> list[str]:
    lines = [f"{thread.id} cannot be read: {thread.problem}"] if thread.problem else []
    lines += [
        f"{thread.id} {finding.kind} ({finding.direction}): {finding.message}"
        + (f" Remedy: {finding.remedy}" if finding.remedy else "")
        for finding in thread.findings
        if finding.kind not in DENIAL_KINDS
    ]
    lines += [
        f"{thread.id} {denial_line(denial)}" + (f" Remedy: {denial.remedy}" if denial.remedy else "")
        for denial in thread.denials
        if not denial.got_past
    ]
    return lines


def _short(text: str) -> str:
    text = mask_secrets(text.strip())
    if len(text) <= MAX_ANSWER_CHARACTERS:
        return text
    rest = len(text) - MAX_ANSWER_CHARACTERS
    return f"{text[:MAX_ANSWER_CHARACTERS]}\n… {rest} characters more: ask about one worker or thread"
