"""The tools of `agentdash mcp`: read-only, with short answers."""

from __future__ import annotations

import asyncio
import gc
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final, TypeVar

import click
import msgspec
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field
from rich.console import Console

from agentdash.cli.fleet_access import FleetView, read_fleet, with_server_of
from agentdash.cli.wait import WORKING_STATES, wait_for
from agentdash.collect.tmux.servers import servers
from agentdash.config import Config
from agentdash.model.engine_failure import EngineFailedError
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import mask_fields, mask_secrets
from agentdash.model.states import Group, State
from agentdash.model.times import iso
from agentdash.model.worker import Worker
from agentdash.report.explain import print_explained
from agentdash.report.status import wait_line

MAX_ANSWER_CHARACTERS: Final = 8_000
"""About 2,000 tokens: an agent pays for each of them again with every later request."""
_ANSWER_COLUMNS: Final = 240
_DEFAULT_WAIT_S: Final = 45.0
"""Codex 0.169 gives up on a tool after 60 s, unless its config has another `tool_timeout_sec`."""
_MAX_WAIT_S: Final = 900.0
_MAX_WORKERS: Final = 50
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
        return self.status, self.wait, self.explain

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
        snapshot, via = await _in_thread(lambda: self._read(target))
        problems = [f"{source.name}: {source.detail}" for source in snapshot.failing_sources]
        problems += [f"engine: {snapshot.failure.text}"] if snapshot.failure is not None else []
        problems += [via.problem] if via is not None and via.problem else []
        shown = [each for each in snapshot.workers if target is not None or each.group is not Group.PAST]
        shown.sort(key=lambda worker: list(Group).index(worker.group))
        document = {
            "problems": [clean_line(problem, _MAX_WHY_CHARACTERS) for problem in problems],
            "workers": [_worker_fields(worker) for worker in shown[:limit]],
        }
        return msgspec.json.encode(mask_fields(document)).decode()

    async def wait(
        self,
        target: Target,
        until: Annotated[
            list[str] | None, Field(description="States to wait for. Default: all but running and unknown.")
        ] = None,
        timeout_seconds: Annotated[float, Field(ge=0, le=_MAX_WAIT_S)] = _DEFAULT_WAIT_S,
    ) -> str:
        """Wait until a worker reaches one of the given states, and return that state and why. If the time is
        up, the answer states that: call again."""
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


def _short(text: str) -> str:
    text = mask_secrets(text.strip())
    if len(text) <= MAX_ANSWER_CHARACTERS:
        return text
    rest = len(text) - MAX_ANSWER_CHARACTERS
    return f"{text[:MAX_ANSWER_CHARACTERS]}\n… {rest} characters more: ask about one worker or thread"
