"""Statements that are not followed: they may print anything, and what stands behind them is read further."""

from __future__ import annotations

from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dumps import FLAGS
from agentdash.engine.detect.env_output.effects import effects
from agentdash.engine.detect.env_output.patterns import ANY, Parts, concrete
from agentdash.engine.detect.env_output.streams import (
    STDERR,
    STDOUT,
    Emit,
    Fork,
    Outcome,
    Stream,
    merged,
)
from agentdash.engine.detect.env_output.world import State, UnreadableError
from agentdash.sandbox.shell import Node

LOST: Final = "lost"
"""How an outcome leaves where nothing is known of the rest of the shell's script: it may print anything."""
MAX_OUTCOMES: Final = 24
"""Outcomes that are followed side by side."""
ANYTHING: Final[Stream] = (Emit(STDOUT, (ANY,)), Emit(STDERR, (ANY,)))


class OutlivingError(UnreadableError):
    """A job may print behind the end of the statement, or of the shell, that started it."""


def lost(state: State) -> Outcome:
    """Return the outcome of a statement that may change anything."""
    return Outcome(stream=ANYTHING, status=None, state=state, leaves=LOST)


def unfollowed(node: Node, state: State) -> list[Outcome]:
    """Return the outcomes of a statement that cannot be followed."""
    found = effects(node, dict(state.functions))
    if found is None:
        return [lost(state)]
    after = msgspec.structs.replace(_without(found.names, state), files=())
    outcome = Outcome(stream=ANYTHING, status=None, state=after)
    return [outcome, lost(state)] if found.leaves or state.nounset else [outcome]


def unknown_after(node: Node, state: State) -> State:
    """Return the state after a statement that ran an unknown number of times."""
    found = effects(node, dict(state.functions))
    if found is None:
        raise UnreadableError
    return _without(found.names, state)


def _without(names: set[str], state: State) -> State:
    """Return a state in which some variables, and those that they stand for, are not known."""
    names = names | {target for name in names & state.references if (target := _target(name, state))}
    kept = {name: value for name, value in state.variables if name.partition("[")[0] not in names}
    return msgspec.structs.replace(
        state,
        variables=_sorted({**kept, **dict.fromkeys(names, (ANY,))}),
        arrays=tuple((name, elements) for name, elements in state.arrays if name not in names),
        references=state.references - names,
    )


def _target(name: str, state: State) -> str | None:
    """Return the variable for which another one stands (`declare -n`)."""
    return concrete(dict(state.variables).get(name) or ())


def _sorted(variables: dict[str, Parts | None]) -> tuple[tuple[str, Parts | None], ...]:
    return tuple(sorted(variables.items(), key=lambda entry: entry[0]))


# ---------------------------------------------------------------- too many outcomes


def bounded(outcomes: list[Outcome]) -> list[Outcome]:
    """Return outcomes with those of the same state and status made one, and no more than are followed."""
    found = merged(outcomes)
    return widened(found) if len(found) > MAX_OUTCOMES else found


def widened(outcomes: list[Outcome]) -> list[Outcome]:
    """Return fewer outcomes that stand for many: exit codes and variables in which they differ are not known.

    The flags stay apart.
    """

    def key(outcome: Outcome) -> tuple[object, ...]:
        state = outcome.state
        flags = tuple((state.value(name), name in state.exported) for name in FLAGS)
        blank = {"variables": (), "arrays": (), "exported": frozenset(), "files": (), "status": 0}
        return outcome.leaves, flags, msgspec.structs.replace(state, **blank)

    groups: list[tuple[tuple[object, ...], list[Outcome]]] = []
    for outcome in outcomes:
        at = key(outcome)
        same = next((members for known, members in groups if known == at), None)
        if same is None:
            groups.append((at, [outcome]))
        else:
            same.append(outcome)
    return [_joined(members) for _, members in groups]


def _joined(outcomes: list[Outcome]) -> Outcome:
    """Return one outcome that stands for all."""
    first = outcomes[0].state
    states = [outcome.state for outcome in outcomes]
    names = {name for state in states for name, _ in state.variables}
    variables = {name: first.value(name) for name in names}
    for name in names - set(FLAGS):
        if any(
            state.value(name) != first.value(name) or (name in state.exported) != (name in first.exported)
            for state in states
        ):
            variables[name] = (ANY,)
    arrays = [entry for entry in first.arrays if all(entry in state.arrays for state in states)]
    files = [entry for entry in first.files if all(entry in state.files for state in states)]
    state = msgspec.structs.replace(
        first,
        variables=_sorted(variables),
        arrays=tuple(arrays),
        exported=frozenset.union(*(state.exported for state in states)),
        files=tuple(files),
        status=0,
    )
    statuses = {outcome.status for outcome in outcomes}
    streams = tuple(dict.fromkeys(outcome.stream for outcome in outcomes))
    return Outcome(
        stream=streams[0] if len(streams) == 1 else (Fork(streams),),
        status=statuses.pop() if len(statuses) == 1 else None,
        state=state,
        leaves=outcomes[0].leaves,
    )
