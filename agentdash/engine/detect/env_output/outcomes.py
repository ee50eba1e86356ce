"""How statements end: at a failure under `set -e`, at the end of a subshell, of a substitution."""

from __future__ import annotations

import msgspec

from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.patterns import QUIET, Choice, Hole, Kind, Parts, Trimmed, joined
from agentdash.engine.detect.env_output.streams import FAILED, STDOUT, Emit, Outcome
from agentdash.engine.detect.env_output.world import State, UnreadableError


def trimmed(parts: Parts) -> Parts:
    """Return text without the line breaks at its end."""
    match parts:
        case ():
            return ()
        case (*before, str() as last) if last.rstrip("\n"):
            return joined((*before, last.rstrip("\n")))
        case (str() as text,):
            return (text.rstrip("\n"),) if text.rstrip("\n") else ()
        case (*before, Hole(kind=Kind.OTHER | Kind.DIGITS) as hole, "\n"):
            return (*before, hole)
        case _:
            return (Trimmed(_without_blank_line(parts)),)


def _without_blank_line(parts: Parts) -> Parts:
    """Return text without a line break behind a dump, which ends its last line itself."""
    match parts:
        case (*before, Dump() as dump, "\n"):
            return (*before, dump)
        case (*before, Choice(options=options)):
            return (*before, Choice(tuple(_without_blank_line(option) for option in options)))
        case _:
            return parts


def checked(outcomes: list[Outcome], guarded: bool) -> list[Outcome]:
    """End the script at failures where `set -e` holds."""
    result: list[Outcome] = []
    for outcome in outcomes:
        if outcome.state.reports_errors and not guarded and outcome.status != 0:
            noise = Emit(STDOUT, (QUIET,))
            outcome = msgspec.structs.replace(outcome, stream=(*outcome.stream, noise))  # noqa: PLW2901
        if guarded or outcome.leaves or not outcome.state.errexit or outcome.status == 0:
            result.append(outcome)
            continue
        status = FAILED if outcome.status is None else outcome.status
        result.append(msgspec.structs.replace(outcome, leaves="exit", status=status))
        if outcome.status is None:
            result.append(msgspec.structs.replace(outcome, status=0))
    return result


def inverted(outcome: Outcome) -> Outcome:
    """Return the outcome of `! statement`."""
    status = None if outcome.status is None else int(outcome.status == 0)
    return msgspec.structs.replace(outcome, status=status)


def of_subshell(outcome: Outcome, state: State) -> Outcome:
    """Return the outcome of a subshell: its variables are gone, its files stay."""
    if outcome.state.on_exit != state.on_exit:
        raise UnreadableError
    return msgspec.structs.replace(
        outcome, state=msgspec.structs.replace(state, files=outcome.state.files), leaves=""
    )
