"""Loops that run round by round: `while`, `until` and `for ((…))`, as far as their conditions are known."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from agentdash.engine.detect.env_output.arithmetic import evaluated
from agentdash.engine.detect.env_output.outcomes import inverted
from agentdash.engine.detect.env_output.streams import (
    Outcome,
    behind,
    merged,
)
from agentdash.engine.detect.env_output.unfollowed import MAX_OUTCOMES
from agentdash.engine.detect.env_output.world import State
from agentdash.sandbox.shell import Script, While

if TYPE_CHECKING:
    from agentdash.engine.detect.env_output.interpreter import Interpreter


MAX_ROUNDS: Final = 60
"""Words of a `for` loop that are run one by one."""


def counted_loop(interpreter: Interpreter, raw: str, body: Script, state: State) -> list[Outcome] | None:
    """Run `for ((…; …; …))`; None where its rounds are not known."""
    header = re.match(r"for\s*\(\(([^;]*);([^;]*);([^;]*?)\)\)", raw)
    if header is None:
        return None
    first, test, step = header.groups()
    _, state = evaluated(first, state) if first.strip() else (0, state)

    def goes_on(current: State) -> list[Outcome]:
        value, after = evaluated(test, current)
        return [Outcome(stream=(), status=None if value is None else int(not value), state=after)]

    def after_round(current: State) -> State:
        return evaluated(step, current)[1] if step.strip() else current

    return _repeated(interpreter, goes_on, body, state, after_round=after_round)


def while_rounds(
    interpreter: Interpreter, node: While, state: State, *, guarded: bool
) -> list[Outcome] | None:
    """Run `while` or `until` round by round; None where its rounds are not known."""

    def goes_on(current: State) -> list[Outcome]:
        tested = interpreter.script(node.condition, current, guarded=True)
        return [inverted(outcome) for outcome in tested] if node.until else tested

    return _repeated(interpreter, goes_on, node.body, state, guarded=guarded)


def _repeated(
    interpreter: Interpreter,
    goes_on: Callable[[State], list[Outcome]],
    body: Script,
    state: State,
    *,
    guarded: bool = True,
    after_round: Callable[[State], State] = lambda state: state,
) -> list[Outcome] | None:
    """Run a body as long as a condition holds; None where that is not known, or takes too many rounds."""
    current = [Outcome(stream=(), status=0, state=state)]
    done: list[Outcome] = []
    for _ in range(MAX_ROUNDS):
        following: list[Outcome] = []
        for before in current:
            for tested in behind(before.stream, goes_on(before.state)):
                if tested.status is None or tested.leaves:
                    return None
                if tested.status != 0:
                    done.append(msgspec.structs.replace(tested, status=0))
                    continue
                ran = behind(tested.stream, interpreter.script(body, tested.state, guarded=guarded))
                sort_round(ran, following, done, after_round)
        current = merged(following)
        if not current:
            return merged(done)
        if len(current) > MAX_OUTCOMES:
            break
    return None


def sort_round(
    ran: list[Outcome],
    following: list[Outcome],
    done: list[Outcome],
    after_round: Callable[[State], State] = lambda state: state,
) -> None:
    """Add the outcomes of a round to those that another round follows, or to those that end the loop."""
    for outcome in ran:
        match outcome.leaves:
            case "" | "continue":
                state = after_round(outcome.state)
                following.append(msgspec.structs.replace(outcome, leaves="", state=state))
            case "break":
                done.append(msgspec.structs.replace(outcome, leaves="", status=0))
            case _:
                done.append(outcome)
