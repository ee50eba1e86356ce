"""Recognize a sandbox that could not be started: then the command did not run, and every other one fails
alike."""

from __future__ import annotations

import re
from typing import Final

from agentdash.sandbox.denials.lines import Lines

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


def read(lines: Lines, numbers: tuple[int, ...], exit_code: int | None, script: str) -> list[str] | None:
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
