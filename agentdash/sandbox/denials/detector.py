"""Read the lines of an output that may report a denial."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentdash.model.denials import Certainty, Denial
from agentdash.model.policy import Network
from agentdash.sandbox.denials import executions, file_messages, network
from agentdash.sandbox.denials.attribution import (
    Attribution,
    Strength,
)
from agentdash.sandbox.denials.call import Call
from agentdash.sandbox.denials.file_messages import judge_file
from agentdash.sandbox.denials.findings import Finding, finding, merged
from agentdash.sandbox.denials.hosts import operand_hosts
from agentdash.sandbox.denials.lines import MAX_DENIALS, quote
from agentdash.sandbox.denials.network import connects, judge_network

_REASON_ALONE: Final = re.compile(
    r"\s*(?:Operation not permitted|Permission denied|Read-only file ?system)\s*"
)


def read_denials(call: Call) -> tuple[Denial, ...]:
    """Return the denials that the suspicious lines of a call report, in order, without repetitions."""
    report = None if call.unsandboxed else _start_failure(call)
    if report:
        return _not_started(call, report)
    return tuple(found.denial for found in merged(list(_findings(call))))[:MAX_DENIALS]


def _findings(call: Call) -> Iterator[Finding]:
    end = -1
    for number in call.numbers:
        if number > end and (found := _read(call, number)) is not None:
            yield found
            end = found.last


def _read(call: Call, number: int) -> Finding | None:
    """Return what one line reports."""
    if (nameless := _nameless(call, number)) is not None:
        return nameless
    if call.policy.network is not Network.ON or call.unsandboxed:
        mediated = call.policy.network is Network.MEDIATED
        about_network = network.read_message(call.lines, number, call.source, index_reachable=mediated)
        if about_network is not None:
            return judge_network(call, about_network, number)
    if (about_program := executions.read_message(call, number)) is not None:
        return executions.judge_execution(call, about_program, number)
    about_file = file_messages.read_message(call.lines, number, call.source)
    return None if about_file is None else judge_file(call, about_file)


def _nameless(call: Call, number: int) -> Finding | None:
    """Return the denial of which Codex (0.46 to 0.50) left the reason alone: `failed in sandbox: Permission
    denied`, where the script connects to another machine."""
    line = call.lines[number]
    if not call.denied or call.unsandboxed or not _REASON_ALONE.fullmatch(line) or not call.is_alone(line):
        return None
    connecting = next(filter(connects, call.script.visible), None)
    if connecting is None or call.policy.network is not Network.OFF:
        return None
    host = next(iter(operand_hosts(connecting.name, connecting.words)), None)
    source = Attribution(Strength.OWN, connecting)
    return finding(call, "network", "connect", "certain", host, source, number, number)


# ------------------------------------------------------------
# Recognize a sandbox that could not be started: then the command did not run, and every other one fails
# alike


_FAILED: Final = re.compile(
    r"^(?:bwrap: \S"
    r"|thread '[^']*' (?:\(\d+\) )?panicked at (?:\S*/)?linux-sandbox/"
    r"|sandbox-exec: "
    r"|sandbox_apply: "
    r"|codex-linux-sandbox: "
    r"|(?:windows sandbox|sandbox error|error running landlock)\b.*: "
    r"|.*filesystem-restricted execution requires bubblewrap"
    r"|.*Landlock was not able to fully enforce all sandbox rules"
    r"|.*Sandbox\(LandlockRestrict\)"
    r"|.*CreateProcessAsUserW failed"
    r"|.*use_legacy_landlock.*(?:not supported|unsupported|requires|panicked|removed))"
)
_PREAMBLE: Final = re.compile(
    r"^\s*$|^(?:warning|note|hint)\b|could not find bubblewrap|is deprecated"
    r"|^stack backtrace:$|^ *\d+: |^ +at ",  # of a panic, after its message
    re.IGNORECASE,
)
"""What may be printed besides: Codex's own warnings, a backtrace."""
_EXIT_CODES: Final = (None, 1, 65, 71, 101, 125, 126, 127, 134)
"""Of bubblewrap, sandbox-exec, a panic, an abort."""
_PANIC_EXIT_CODES: Final = (None, 101, 134)
_OWN_BUSINESS: Final = re.compile(r"bwrap|linux-sandbox|sandbox-exec|landlock|codex sandbox")
_MAX_LINES: Final = 120
"""Lines of the longest account, with its backtrace. A command that ran would have printed more."""


def _start_failure(call: Call) -> list[str] | None:
    """Return the lines that report that the sandbox did not start, or None if it did.

    Nothing ran, so the report is all of the output. A script that deals with sandboxes itself proves nothing.
    """
    lines, code = call.lines, call.exit_code
    if code not in _EXIT_CODES or len(lines) > _MAX_LINES or _OWN_BUSINESS.search(call.source):
        return None
    written = (number for number in range(len(lines)) if not _PREAMBLE.search(lines[number]))
    first = next(written, -1)
    if first not in call.numbers or not _FAILED.match(lines[first]):
        return None
    has_panicked = "panicked at" in lines[first]
    if has_panicked and code not in _PANIC_EXIT_CODES:
        return None
    others = list(written)
    if not all(_FAILED.match(lines[number]) for number in others[has_panicked:]):  # a panic has two lines
        return None
    return lines.range(first, others[-1] if others else first)


def _not_started(call: Call, report: list[str]) -> tuple[Denial, ...]:
    """Return the denial of a sandbox that could not be started; a file that was shown can read the same."""
    commands = call.script.commands
    in_doubt = call.is_command and commands is not None and call.script.shows_text and not call.denied
    if in_doubt and not (call.failed and commands is not None and len(commands) == 1):
        return ()
    certainty: Certainty = "likely" if in_doubt else "certain"
    return (Denial(what="sandbox", operation="start", certainty=certainty, quote=quote(*report)),)
