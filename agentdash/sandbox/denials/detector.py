"""Read the lines of an output that may report a denial, and join what they report."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from agentdash.model.denials import Certainty, Denial
from agentdash.model.policy import Network
from agentdash.sandbox.denials import file_messages, network
from agentdash.sandbox.denials.attribution import Strength, prefix_of
from agentdash.sandbox.denials.call import Call, Finding
from agentdash.sandbox.denials.file_denials import judge_file
from agentdash.sandbox.denials.lines import MAX_DENIALS, Lines, quote
from agentdash.sandbox.denials.network import judge_network
from agentdash.sandbox.denials.programs import Role
from agentdash.sandbox.denials.ran import Ran


def read_denials(call: Call, numbers: tuple[int, ...]) -> tuple[Denial, ...]:
    """Return the denials that the suspicious lines of a call report, in order, without repetitions."""
    if not call.unsandboxed and (report := start_failure(call.lines, numbers, call.exit_code, call.script)):
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
        about_network = network.read_message(call.lines, number, call.script, index_reachable=mediated)
        if about_network is not None:
            return judge_network(call, about_network)
    if is_inner_sandbox(call.lines[number]):
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
_INNER: Final = re.compile(r"\bsandbox_apply: Operation not permitted")
_PREAMBLE: Final = re.compile(
    r"^\s*$|^(?:warning|note|hint)\b|could not find bubblewrap|is deprecated", re.IGNORECASE
)
"""What may be printed before: Codex's own warnings."""
_BACKTRACE: Final = re.compile(r"^stack backtrace:$|^ *\d+: |^ +at ")
"""Lines of a panic after its message (`RUST_BACKTRACE` is set in many shells)."""
_EXIT_CODES: Final = (None, 1, 65, 71, 101, 125, 126, 127, 134)
"""Of bubblewrap, sandbox-exec, a panic, an abort."""
_PANIC_EXIT_CODES: Final = (None, 101, 134)
_OWN_BUSINESS: Final = re.compile(r"bwrap|linux-sandbox|sandbox-exec|landlock|codex sandbox")
_MAX_LINES: Final = 14
"""Lines of the longest account without a backtrace. A command that ran would have printed more."""
_MAX_TRACED_LINES: Final = 120
"""With a backtrace."""


def is_inner_sandbox(line: str) -> bool:
    """Return whether a program could not start a sandbox of its own inside of this one (SwiftPM)."""
    return _INNER.search(line) is not None


def start_failure(
    lines: Lines, numbers: tuple[int, ...], exit_code: int | None, script: str
) -> list[str] | None:
    """Return the lines that report it; None where the sandbox started.

    Nothing ran, so the report is all of the output. A script that deals with sandboxes itself proves nothing.
    """
    if exit_code not in _EXIT_CODES or len(lines) > _MAX_TRACED_LINES or _OWN_BUSINESS.search(script):
        return None
    written: list[int] = []
    for number in range(len(lines)):
        if not _PREAMBLE.search(lines[number]) and not _BACKTRACE.match(lines[number]):
            written.append(number)
            if written[0] not in numbers or len(written) > _MAX_LINES:
                return None
    if not written:
        return None
    last = written[0]
    if "panicked at" in lines[last] and exit_code not in _PANIC_EXIT_CODES:
        return None
    for number in written:
        panicked = "panicked at" in lines[last] and number == last + 1
        if not panicked and not _FAILED.match(lines[number]):
            return None
        last = number
    return lines.range(written[0], last)


# ------------------------------------------------------------
# Restore messages as programs gave them: without what a script prints before a message that it captured
# (`echo "failed: $(cp a /opt 2>&1)"`), and without the line breaks of blocks


_BLOCK_MARGIN: Final = "  "
"""On both sides of a block of Symfony's console (Composer, Artisan): its lines are cut at a width, inside of
words as well, and padded to it."""


def without_breaks(lines: Lines, numbers: Iterable[int]) -> Lines:
    """Return the lines with each of these that is part of a block as long as its paragraph.

    Args:
        lines: the output.
        numbers: of the lines that may report a denial.
    """
    for number in numbers:
        first = last = number
        while _goes_on(lines, first - 1):
            first -= 1
        while _goes_on(lines, last):
            last += 1
        if first < last:
            parts = (line.removeprefix(_BLOCK_MARGIN).rstrip() for line in lines.range(first, last))
            lines = lines.with_line(number, "".join(parts))
    return lines


def _goes_on(lines: Lines, number: int) -> bool:
    """Return whether a line of a block is cut at its width and goes on in the next one."""
    if not 0 <= number < len(lines) - 1:
        return False
    line, following = lines[number], lines[number + 1]
    if not (line.startswith(_BLOCK_MARGIN) and line.endswith(_BLOCK_MARGIN) and len(line) == len(following)):
        return False
    is_full = not line.removesuffix(_BLOCK_MARGIN).endswith(" ")
    return is_full and following.startswith(_BLOCK_MARGIN) and following.endswith(_BLOCK_MARGIN)


def without_labels(lines: Lines, numbers: Iterable[int], ran: Iterable[Ran]) -> Lines:
    """Return the lines with each of these beginning with the name of a simple tool, where the script prints
    what is known only when it runs, and a line holds such a message.

    Args:
        lines: the output.
        numbers: of the lines that may report a denial.
        ran: the commands of the script.
    """
    commands = tuple(ran)
    names = {c.name for c in commands if c.role is Role.TOOL and not c.unseen}
    if not names or not any(c.name in ("echo", "printf") and "" in c.words for c in commands):
        return lines
    named = re.compile(rf"[\s=:'\"(\[](?=(?:{'|'.join(map(re.escape, sorted(names)))}): )")
    for number in numbers:
        line = lines[number]
        if prefix_of(line) not in names and (label := named.search(line)):
            lines = lines.with_line(number, line[label.end() :])
    return lines
