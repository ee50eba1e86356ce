"""Make findings of denials, and join those of one operation."""

from __future__ import annotations

from typing import Final

import msgspec

from agentdash.model.denials import Certainty, Denial, Operation, What
from agentdash.sandbox.denials.attribution import Attribution, prefix_of
from agentdash.sandbox.denials.call import Call
from agentdash.sandbox.denials.lines import quote

_MERGE_LINES: Final = 14
"""Lines within which messages without a target belong to the one that has it."""


class Finding(msgspec.Struct, frozen=True):
    """A denial and where it was read."""

    denial: Denial
    first: int
    last: int
    generic: bool = False
    """Whether another line of the same account names the cause."""


def finding(
    call: Call,
    what: What,
    operation: Operation,
    certainty: Certainty,
    target: str | None,
    source: Attribution,
    first: int,
    last: int,
) -> Finding:
    """Return the finding of a denial that is reported in the lines from `first` to `last`."""
    command = source.command
    agent = call.script.agent() if call.is_command else None
    denial = Denial(
        what=what,
        operation=operation,
        certainty=certainty,
        quote=quote(*call.lines.range(first, last)),
        target=target,
        program=command.name if command is not None and command.name else prefix_of(call.lines[first]),
        nested=agent[0] if agent is not None and command == agent[1] else None,
    )
    return Finding(denial, first, last)


def merged(findings: list[Finding]) -> list[Finding]:
    """Return findings without repetitions, and without those that another one of the account completes."""
    kept: list[Finding] = []
    for found in findings:
        for index, earlier in enumerate(kept):
            if _is_one(earlier, found):
                kept[index] = _joined(earlier, found)
                break
        else:
            kept.append(found)
    return kept


def _is_one(one: Finding, two: Finding) -> bool:
    """Return whether two findings are of one operation."""
    a, b = one.denial, two.denial
    if a.what != b.what:
        return False
    alike = a.operation == b.operation
    if a.target == b.target and alike:
        return True
    if a.target == b.target is not None and a.what == "filesystem" and "write" in (a.operation, b.operation):
        return True  # the other one has more exactly what was written
    if two.first - one.last > _MERGE_LINES:
        return False
    generic = one.generic or two.generic
    if a.target == b.target:
        return generic or {a.operation, b.operation} == {"connect", "resolve"}
    return None in (a.target, b.target) and (alike or generic or a.program == b.program)


def _joined(one: Finding, two: Finding) -> Finding:
    """Return the finding that has more to it, completed by the other one."""
    second = (one.generic and not two.generic) or (one.denial.target is None and not two.generic)
    if one.denial.target == two.denial.target is not None:
        second = second or one.denial.operation == "write"
    better, other = (two, one) if second else (one, two)
    both = (one.denial.certainty, two.denial.certainty)
    denial = msgspec.structs.replace(
        better.denial,
        target=better.denial.target or other.denial.target,
        certainty="certain" if "certain" in both else "likely",
    )
    first, last = min(one.first, two.first), max(one.last, two.last)
    return Finding(denial, first, last, generic=one.generic and two.generic)
