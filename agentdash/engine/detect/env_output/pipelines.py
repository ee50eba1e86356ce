"""Pipelines: what one part writes is what the next one reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from agentdash.engine.detect.env_output.patterns import ANY, Parts
from agentdash.engine.detect.env_output.streams import (
    STDERR,
    STDOUT,
    Outcome,
    Stream,
    interleaved,
    merged,
    only,
    parts_of,
)
from agentdash.engine.detect.env_output.unfollowed import LOST
from agentdash.engine.detect.env_output.world import State, UnreadableError
from agentdash.sandbox.shell import Pipeline

if TYPE_CHECKING:
    from agentdash.engine.detect.env_output.interpreter import Interpreter

_MAX_RUNS: Final = 24
"""Combinations of outcomes of the parts."""


class _Run(msgspec.Struct, frozen=True):
    """One way in which the parts so far can have run."""

    stream: Stream
    """What was written past the pipe."""
    piped: Parts | None
    statuses: tuple[int | None, ...]
    state: State
    leaves: str = ""


def run_pipeline(interpreter: Interpreter, node: Pipeline, state: State) -> list[Outcome]:
    """Return the outcomes of a pipeline."""
    runs = [_Run(stream=(), piped=None, statuses=(), state=state)]
    for number, part in enumerate(node.parts):
        following: list[_Run] = []
        for run in runs:
            is_last = number == len(node.parts) - 1
            interpreter.captures += not is_last
            outcomes = interpreter.node(part, run.state, guarded=not state.errexit, stdin=run.piped)
            interpreter.captures -= not is_last
            if any(outcome.state.on_exit != run.state.on_exit for outcome in outcomes):
                raise UnreadableError
            for outcome in merged(outcomes):
                following += (
                    _last(run, outcome) if is_last else [_piped(run, outcome, both=node.stderr[number])]
                )
        runs = following
        if len(runs) > _MAX_RUNS:
            raise UnreadableError
    return merged(
        [
            Outcome(
                stream=run.stream,
                status=_status(run.statuses, pipefail=state.pipefail),
                state=run.state,
                leaves=run.leaves,
            )
            for run in runs
        ]
    )


def _piped(run: _Run, outcome: Outcome, *, both: bool) -> _Run:
    return _Run(
        stream=run.stream if both else (*run.stream, *only(outcome.stream, STDERR)),
        piped=parts_of(outcome.stream) if both else parts_of(outcome.stream, STDOUT),
        statuses=(*run.statuses, outcome.status),
        state=msgspec.structs.replace(run.state, files=outcome.state.files),
    )


def _last(run: _Run, outcome: Outcome) -> list[_Run]:
    """Return the runs that end so: shells differ in whether the last part keeps its variables."""
    is_lost = outcome.leaves == LOST and run.state.dialect not in ("bash", "dash")
    state = msgspec.structs.replace(run.state, files=outcome.state.files)
    known = dict(run.state.variables)
    changed = [name for name, value in outcome.state.variables if name not in known or known[name] != value]
    states = [state]
    if changed:
        for name in changed:
            state = state.with_variable(name, (ANY,))
        states.append(state)
    return [
        _Run(
            stream=interleaved(run.stream, outcome.stream),
            piped=None,
            statuses=(*run.statuses, outcome.status),
            state=after,
            leaves=LOST if is_lost else "",
        )
        for after in states
    ]


def _status(statuses: tuple[int | None, ...], *, pipefail: bool) -> int | None:
    if not pipefail or statuses[-1] not in (0, None):
        return statuses[-1]
    if all(status == 0 for status in statuses):
        return 0
    failed = [status for status in statuses if status]
    return failed[-1] if failed and None not in statuses else None
