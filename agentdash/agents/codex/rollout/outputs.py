"""Parse how a call ended from its output: exit code, session, refusal, denial. Texts of Codex 0.20 to
0.169."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import msgspec

from agentdash.agents.codex.rollout.records import Part
from agentdash.agents.codex.rollout.tools import unescaped
from agentdash.model.decoders import JsonDecoder
from agentdash.model.events import Outcome
from agentdash.model.sanitize import clean_block


class Ending(NamedTuple):
    """The outcome of a call, and its output (sanitized)."""

    outcome: Outcome
    output: str = ""
    exit_code: int | None = None
    session: str | None = None
    """The number of the session in which it continues; `cell N` for a code-mode script."""


_HEADER: Final = re.compile(
    r"(?:(?:Chunk ID: |Exit code: |Wall time:? |Duration: |Process exited with code |"
    r"Process running with session ID |"
    r"Original token count: |Total output lines: |Warning: truncated output |"
    r"Script (?:completed|failed|terminated|running with cell ID ))[^\n]*(?:\n|\Z))+"
    r"(?:Output:(?:\n|\Z))?"
)
"""The lines above the output: `shell_command` begins with the exit code, unified exec with a chunk id, code
mode with a result."""
_EXIT: Final = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,9})\b", re.MULTILINE)
_SESSION: Final = re.compile(r"^Process running with session ID (\w+)", re.MULTILINE)
_CELL: Final = re.compile(r"^Script running with cell ID (\w+)")
_TIMEOUT: Final = re.compile(r"command timed out after \d+")

_WRAPPED: Final = re.compile(
    r"\s*(?:Script error:|exec_command failed|write_stdin failed|execution error|failed in sandbox|"
    r"failed to parse|unsupported call|"
    r"apply_patch verification failed|tool call error|collab spawn failed|err(?:or)?: )"
)
"""Errors that may contain one of the texts below."""
_OUTCOMES: Final[tuple[tuple[re.Pattern[str], Outcome], ...]] = (
    (
        re.compile(
            r"approval policy is \w+; reject command|approval required by policy|This action was rejected"
            r"|patch rejected: [^\n]{0,200}rejected by user approval settings"
        ),
        "refused-by-approval",
    ),
    (
        re.compile(r"(?:exec command |patch )?rejected by user|user (?:rejected|cancelled|denied) "),
        "refused-by-user",
    ),
    (
        re.compile(
            r"`.{1,500}?` rejected: |(?:patch )?rejected: "
            r"|Network access to \"[^\"]*\" (?:was|is) blocked by policy",
            re.DOTALL,
        ),
        "refused-by-policy",
    ),
    (_TIMEOUT, "timed-out"),
    (
        re.compile(
            r"Command denied by sandbox|sandbox denied exec error|sandbox error: |SandboxDenied|"
            r"(?:Sandbox\()?Denied \{ output"
            r"|Network access was denied by the Codex sandbox"
        ),
        "denied",
    ),
    (re.compile(r"(?:command )?aborted(?: by user)?(?: after [\d.]+ ?s)?\s*\Z"), "aborted"),
)
_DENIED_EXIT: Final = re.compile(r"exit[ _]code: (-?\d{1,9})\b")
_DENIED_STREAMS: Final = re.compile(r"exit code: -?\d+, stdout: (.*?), stderr: (.*)", re.DOTALL)

_DENIED_DEBUG: Final = re.compile(
    r'aggregated_output: StreamOutput \{ text: "(.*?)", truncated_after_lines', re.DOTALL
)


class _Metadata(msgspec.Struct):
    exit_code: int


class _Structured(msgspec.Struct):
    """The output of the `shell` tool of 2025; that of `tools.exec_command` in code mode has the exit code at
    the top level."""

    output: str
    metadata: _Metadata | None = None
    exit_code: int | None = None


_structured = JsonDecoder(_Structured)


def parse_output(output: str | list[Part] | dict[str, Any] | None) -> Ending:
    """Parse the output of a tool call.

    Args:
        output: a string, content parts, or (2025) an object `{content, success}`.
    """
    if isinstance(output, dict):
        content = output.get("content")
        if not isinstance(content, str):
            content = msgspec.convert(output.get("content_items") or [], list[Part], strict=False)
        ending = parse_output(content)
        failed = output.get("success") is False and ending.outcome == "ended"
        return ending._replace(outcome="failed") if failed else ending
    if isinstance(output, list):
        texts = [part.text for part in output if part.text]
        if texts and texts[0].startswith("Script ") and (header := _HEADER.match(texts[0])):
            return _script(header.group(), [rest for rest in (texts[0][header.end() :], *texts[1:]) if rest])
        output = "\n".join(texts)
    return parse_text(output or "")


def parse_text(text: str) -> Ending:
    """Parse the text of an output."""
    if text.startswith("{") and '"exit_code"' in text and (result := _result(text)) is not None:
        code = result.metadata.exit_code if result.metadata else result.exit_code
        return _exited(result.output, code)
    header = _HEADER.match(text)
    if header is None:
        return _plain(text)
    lines, body = header.group(), text[header.end() :]
    if lines.startswith("Script "):
        return _script(lines, [body] if body else [])
    if session := _SESSION.search(lines):
        return Ending("running", clean_block(body), session=session.group(1))
    if code_match := _EXIT.search(lines):
        return _exited(body, int(code_match.group(1)))
    return _plain(body)


def parse_error(text: str) -> Ending | None:
    """Parse an error text: a refusal, a denial, a time-out, an abort, an error of Codex itself; None for
    other texts."""
    head = text[:4_000]
    wrapped = _WRAPPED.match(head)
    for pattern, outcome in _OUTCOMES:
        if (pattern.search if wrapped else pattern.match)(head):
            if outcome != "denied":
                return Ending(outcome, clean_block(text))
            code = _DENIED_EXIT.search(head)
            exit_code = int(code.group(1)) if code else None
            return Ending(outcome, clean_block(_denied_output(text)), exit_code=exit_code)
    return Ending("failed", clean_block(text)) if wrapped else None


def item_ending(status: str | None, exit_code: int | None, output: str) -> Ending:
    """Return the ending of an item or end event, whose status is `completed`, `failed` (also for exit codes
    but 0) or `declined`."""
    if exit_code is not None and exit_code >= 0 and status != "declined":
        return _exited(output, exit_code)
    if status == "declined":
        ending = parse_error(output)
        if ending and ending.outcome.startswith("refused"):
            return ending
        return Ending("refused-by-user", clean_block(output))
    if exit_code is None and status != "failed":
        return Ending("ended", clean_block(output))
    # -1: it did not exit by itself; the output has the reason, unless Codex ended the process
    return parse_error(output) or Ending("failed" if output.strip() else "aborted", clean_block(output))


def _exited(output: str, code: int | None) -> Ending:
    if code is not None and code < 0:
        return item_ending("failed", code, output)
    return Ending("timed-out" if _TIMEOUT.match(output) else "ended", clean_block(output), exit_code=code)


def _plain(text: str) -> Ending:
    return parse_error(text) or Ending("ended", clean_block(text))


def _denied_output(text: str) -> str:
    """Return the output of a denied command: after `stderr:` (0.20-0.36), or in a Rust struct (0.42; in a
    message 0.98-0.114)."""
    if streams := _DENIED_STREAMS.search(text):
        return "".join(streams.groups())
    for level in (text, unescaped(text)):
        if printed := _DENIED_DEBUG.search(level):
            return unescaped(printed.group(1))
    return text


def _script(header: str, texts: list[str]) -> Ending:
    """Parse the output of a code-mode script: mostly results of commands as JSON; their outputs are kept."""
    results = [_result(text) for text in texts]
    body = "\n".join(
        (result.output if result else text).rstrip("\n") for result, text in zip(results, texts, strict=True)
    )
    if cell := _CELL.match(header):
        return Ending("running", clean_block(body), session=f"cell {cell.group(1)}")
    if header.startswith("Script terminated"):
        return Ending("aborted", clean_block(body))
    if header.startswith("Script failed"):
        error = next((text for text in texts if text.startswith("Script error:")), "")
        known = parse_error(error)
        return Ending(known.outcome if known else "failed", clean_block(body))
    codes = [result.exit_code for result in results if result]
    return Ending("ended", clean_block(body), exit_code=codes[0] if len(codes) == 1 else None)


def _result(text: str) -> _Structured | None:
    try:
        return _structured.decode(text)
    except msgspec.DecodeError:
        return None
