"""Read the lines of an output that may report a denial, and join what they report."""

from __future__ import annotations

from typing import Final

import msgspec

from agentdash.model.denials import Certainty, Denial
from agentdash.model.policy import Network
from agentdash.sandbox.denials import detector as startup
from agentdash.sandbox.denials import file_messages
from agentdash.sandbox.denials import network as network_messages
from agentdash.sandbox.denials.attribution import Strength
from agentdash.sandbox.denials.call import Call, Finding
from agentdash.sandbox.denials.file_denials import judge_file
from agentdash.sandbox.denials.lines import MAX_DENIALS, quote
from agentdash.sandbox.denials.network import judge_network


def read_denials(call: Call, numbers: tuple[int, ...]) -> tuple[Denial, ...]:
    """Return the denials that the suspicious lines of a call report, in order, without repetitions."""
    if not call.unsandboxed and (report := startup.read(call.lines, numbers, call.exit_code, call.script)):
        return _not_started(call, report)
    if call.is_command and call.origin.marks is not None and not call.lines.may_hold(call.origin.marks):
        return ()
    return tuple(finding.denial for finding in merged(_findings(call, numbers)))[:MAX_DENIALS]


def _not_started(call: Call, report: list[str]) -> tuple[Denial, ...]:
    """Return the denial of a sandbox that could not be started; a file that was shown can read the same."""
    in_doubt = call.is_command and call.origin.commands is not None and call.origin.shows_text
    if in_doubt and not call.denied and not (call.failed and call.origin.is_one_reader()):
        return ()
    certainty: Certainty = "likely" if in_doubt and not call.denied else "certain"
    return (Denial(what="sandbox", operation="start", certainty=certainty, quote=quote(*report)),)


def _findings(call: Call, numbers: tuple[int, ...]) -> list[Finding]:
    findings: list[Finding] = []
    end = -1
    for number in numbers:
        if number > end and (finding := _read(call, number)) is not None:
            findings.append(finding)
            end = finding.last
    return findings


def _inner_sandbox(call: Call, number: int) -> Finding | None:
    source = call.attribute(call.lines[number], (), "sandbox_apply", call.account(number))
    if source.strength is Strength.NONE or call.unsandboxed:
        return None
    return call.finding(
        what="other",
        operation="exec",
        certainty="likely" if source.strength is Strength.AMBIGUOUS else "certain",
        target=None,
        source=source,
        first=number,
        last=number,
    )


def _read(call: Call, number: int) -> Finding | None:
    """Return what one line reports."""
    if call.policy.network is not Network.ON or call.unsandboxed:
        mediated = call.policy.network is Network.MEDIATED
        about_network = network_messages.read_message(
            call.lines, number, call.script, index_reachable=mediated
        )
        if about_network is not None:
            return judge_network(call, about_network)
    if startup.is_inner_sandbox(call.lines[number]):
        return _inner_sandbox(call, number)
    about_file = file_messages.read_message(call.lines, number, call.script)
    return None if about_file is None else judge_file(call, about_file)


_MERGE_LINES: Final = 14
"""Lines within which messages without a target belong to the one that has it."""


def merged(findings: list[Finding]) -> list[Finding]:
    """Return findings without repetitions, and without those that another one of the account completes."""
    kept: list[Finding] = []
    for finding in findings:
        for index, earlier in enumerate(kept):
            if _is_one(earlier, finding):
                kept[index] = _joined(earlier, finding)
                break
        else:
            kept.append(finding)
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
    return Finding(
        denial, min(one.first, two.first), max(one.last, two.last), generic=one.generic and two.generic
    )
