"""What the tools of Claude Code are for, and their arguments in short."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from agentdash.agents.claude.transcript import records
from agentdash.agents.claude.transcript.records import Block, Record, ToolResult
from agentdash.agents.launchers import is_always_listed
from agentdash.model.changes import Diff, FileChange, edited, file_changes, whole_file
from agentdash.model.decoders import JsonDecoder, decoded, objects, texts
from agentdash.model.events import AllowedBy, CallKind, Escalation, Outcome
from agentdash.model.policy import TMPDIR, Filesystem, Network, Policy, PolicyRule
from agentdash.model.sanitize import clean_block, clean_line

_KINDS: Final[dict[str, CallKind]] = {
    "Bash": "command",
    "PowerShell": "command",
    "BashOutput": "poll",
    "TaskOutput": "wait",
    "AgentOutputTool": "wait",
    "Edit": "patch",
    "MultiEdit": "patch",
    "Write": "patch",
    "NotebookEdit": "patch",
    "AskUserQuestion": "question",
    "ExitPlanMode": "permission",
    "Task": "spawn",
    "Agent": "spawn",
}
_SHOWN: Final = ("command", "file_path", "notebook_path", "description", "pattern", "query", "url", "prompt")
"""Arguments that show what a call does; the first that it has counts."""


class Tool(NamedTuple):
    """A tool call."""

    kind: CallKind
    name: str
    text: str
    script: str = ""
    escalation: Escalation | None = None
    changes: tuple[FileChange, ...] = ()
    """What a call that edits files is to change."""


def describe(name: str | None, raw: bytes) -> Tool:
    """Return what a call of a tool does.

    Args:
        name: the tool.
        raw: its `input`, as JSON.
    """
    tool = clean_line(name or "?", 100)
    arguments = decoded(raw)
    kind = _KINDS.get(tool, "other")
    if kind == "command":
        script = clean_block(str(arguments.get("command") or ""))
        return Tool(kind, tool, clean_line(script), script, _escalation(arguments))
    text = _question(arguments) if kind == "question" else _short(arguments)
    return Tool(kind, tool, text, changes=asked_changes(tool, arguments) if kind == "patch" else ())


def _escalation(arguments: dict[str, Any]) -> Escalation | None:
    """Return the request to run without the sandbox."""
    if arguments.get("dangerouslyDisableSandbox") is not True:
        return None
    return Escalation("escalated", clean_line(str(arguments.get("description") or "")) or None)


def _question(arguments: dict[str, Any]) -> str:
    first = next(iter(objects(arguments.get("questions"))), arguments)
    return clean_line(str(first.get("question") or ""))


def _short(arguments: dict[str, Any]) -> str:
    return next((clean_line(str(arguments[name])) for name in _SHOWN if arguments.get(name)), "")


# ------------------------------------------------------------
# What the tools of Claude Code that edit files change (2.1.197 to 2.1.330)


_EDITS: Final = ("Edit", "MultiEdit")


def asked_changes(tool: str, arguments: dict[str, Any]) -> tuple[FileChange, ...]:
    """Return the changes that a call asks for, without the lines around them, which it does not have."""
    return file_changes(_asked(tool, arguments))


def _asked(tool: str, arguments: dict[str, Any]) -> Iterator[Diff]:
    path = arguments.get("file_path") or arguments.get("notebook_path")
    if not isinstance(path, str):
        return
    if tool == "Write":
        yield edited(path, [(None, arguments.get("content"))])
    elif tool in _EDITS:
        edits = objects(arguments.get("edits")) or [arguments]
        yield edited(path, ((edit.get("old_string", ""), edit.get("new_string")) for edit in edits))
    elif tool == "NotebookEdit":
        yield edited(path, [(None, arguments.get("new_source"))])


def applied_changes(result: bytes) -> tuple[FileChange, ...]:
    """Return the changes of a `toolUseResult`, which has the lines around them (`structuredPatch`)."""
    return file_changes(_applied(decoded(result))) if b'"structuredPatch"' in result else ()


def _applied(result: Mapping[str, Any]) -> Iterator[Diff]:
    path = result.get("filePath")
    if not isinstance(path, str):
        return
    if result.get("type") == "create":
        content = result.get("content")
        yield whole_file(path, "add", content if isinstance(content, str) else "")
        return
    lines: list[str] = []
    for hunk in objects(result.get("structuredPatch")):
        if isinstance(hunk.get("lines"), list):
            ranges = [hunk.get(name) for name in ("oldStart", "oldLines", "newStart", "newLines")]
            lines.append("@@ -{},{} +{},{} @@".format(*ranges))
            lines += [line for line in hunk["lines"] if isinstance(line, str)]
    yield Diff(path=path, kind="update", lines=lines)


# ------------------------------------------------------------
# How a tool call ended, by its result (Claude Code 2.1.197 to 2.1.330)


_EXIT_CODE: Final = re.compile(r"\AExit code (\d{1,3})(?:\n|\Z)")
_TIMED_OUT: Final = re.compile(r"\A(?:Exit code \d+\n)?Command timed out after ")
_VIOLATIONS: Final = re.compile(r"\n*<sandbox_violations>\n(.*?)\n?</sandbox_violations>\s*", re.DOTALL)
_NO_OUTPUT: Final = "(Bash completed with no output)"
SANDBOX_FAILED: Final = "Sandbox is enabled but failed to initialize: "
"""Begins the result of the command for which the sandbox was to be started, and the reason."""
_BY_USER: Final = re.compile(
    r"\A(?:The user doesn't want to (?:proceed with|take) this (?:tool use|action)|User rejected)"
)
_INTERRUPTED: Final = re.compile(r"\A\[Request interrupted by user")
_BY_RULE: Final = re.compile(r"\APermission to use \S+ .*has been denied", re.DOTALL)
_NOT_ASKED: Final = re.compile(
    r"needs approval\.|haven't granted it yet\.|\ARun outside of the sandbox\Z|This command requires approval"
)


class Ending(NamedTuple):
    """The outcome of a call, and its output (sanitized)."""

    outcome: Outcome
    output: str
    exit_code: int | None = None
    session: str | None = None
    """The id of a command that goes on in the background."""


def parse_result(record: Record, block: Block, kind: CallKind | None) -> Ending:
    """Return how a call ended.

    Args:
        record: the record of the result.
        block: its `tool_result`.
        kind: the purpose of the call; None where its beginning was not read.
    """
    text = _VIOLATIONS.sub("", result_text(block.content))
    output = clean_block("" if text == _NO_OUTPUT else text)
    detail = _detail(record)
    if detail is not None and detail.interrupted:
        return Ending("aborted", output)
    if detail is not None and detail.background_task_id:
        return Ending("running", output, session=clean_line(detail.background_task_id))
    if block.is_error:
        return _failed(record, output)
    if kind != "command":
        return Ending("ended", output)
    is_zero = detail is not None and detail.return_code_interpretation is None
    return Ending("ended", output, exit_code=0 if is_zero else None)


def _failed(record: Record, output: str) -> Ending:
    if _TIMED_OUT.match(output):
        return Ending("timed-out", output)
    if found := _EXIT_CODE.match(output):
        return Ending("ended", output[found.end() :], exit_code=int(found[1]))
    if _INTERRUPTED.match(output):
        return Ending("aborted", output)
    if (refusal := _refusal(record, output)) is not None:
        return Ending(refusal, output)
    return Ending("failed", output)


def _refusal(record: Record, output: str) -> Outcome | None:
    """Return what refused a call; `permissionDecision` since 2.1.330, words before."""
    decision = record.permission_decision
    if isinstance(decision, dict) and decision.get("decision") == "reject":
        if str(decision.get("source", "")).startswith("user"):
            return "refused-by-user"
        return "refused-by-approval" if _NOT_ASKED.search(output) else "refused-by-policy"
    if _BY_USER.match(output):
        return "refused-by-user"
    if _BY_RULE.match(output):
        return "refused-by-policy"
    return "refused-by-approval" if _NOT_ASKED.search(output) else None


def allowed_by(record: Record) -> AllowedBy | None:
    """Return what allowed a call (`permissionDecision`); None where that is not stated, or refused."""
    decision = record.permission_decision
    if not isinstance(decision, dict) or decision.get("decision") != "accept":
        return None
    if (reason := decision.get("reasonType")) in ("rule", "mode"):
        return "rule" if reason == "rule" else "mode"
    return "person" if str(decision.get("source", "")).startswith("user") else None


def refused_hosts(record: Record) -> Iterator[str]:
    """Yield the hosts to which Claude Code's proxy refused connections of a command (`sandboxViolations`)."""
    for violation in objects(record.sandbox_violations):
        host = violation.get("host")
        if violation.get("kind") == "network" and isinstance(host, str) and host:
            yield clean_line(host, 300)


def result_text(content: Any) -> str:
    """Return the text of a result: a string, or content parts."""
    return content if isinstance(content, str) else "\n".join(texts(content))


def _detail(record: Record) -> ToolResult | None:
    raw = bytes(record.tool_use_result)
    if not raw.startswith(b"{"):
        return None
    try:
        return records.tool_result.decode(raw)
    except msgspec.DecodeError:
        return None


def spawned_agent(record: Record) -> str | None:
    """Return the id of the sub-agent that a call started; None for other calls."""
    detail = _detail(record)
    return clean_line(detail.agent_id) if detail is not None and detail.agent_id else None


# ------------------------------------------------------------
# The sandbox as it is described to the model: attachments `sandbox_instructions` (2.1.330)


_FILESYSTEM: Final = re.compile(r"^Filesystem: (\{.*\})[ \t]*$", re.MULTILINE)
_LEFT_OUT: Final = "... and "
"""Begins the last entry of a list that was cut: `... and 100 more (truncated for prompt size)`."""
_MAX_RULES: Final = 400
NO_SANDBOX: Final = Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
"""No sandbox is described to the model: none is switched on, or it could not be started."""


class _Reading(msgspec.Struct, rename="camel"):
    deny_only: list[str] = []


class _Writing(msgspec.Struct, rename="camel"):
    allow_only: list[str] | None = None
    deny_within_allow: list[str] = []


class _Filesystem(msgspec.Struct):
    read: _Reading = msgspec.field(default_factory=_Reading)
    write: _Writing = msgspec.field(default_factory=_Writing)


_decoder: Final = JsonDecoder(_Filesystem)


def described_policy(content: str, cwd: str | None) -> Policy:
    """Return the policy that `sandbox_instructions` describe; `NO_SANDBOX` where they are empty.

    Commands reach the network through Claude Code's own proxy alone. Files that cannot be read are unknown.

    Args:
        content: of the attachment.
        cwd: the session's working directory, `.` in the lists.
    """
    if not content.strip():
        return NO_SANDBOX
    unknown = Policy(network=Network.MEDIATED, enforced_by="agent")
    if (found := _FILESYSTEM.search(content)) is None:
        return unknown
    try:
        files = _decoder.decode(found[1])
    except (msgspec.DecodeError, RecursionError):
        return unknown
    allowed = files.write.allow_only
    if allowed is None or any(path.startswith(_LEFT_OUT) for path in allowed):
        return unknown
    rules = [PolicyRule("/", "read")]
    rules += [_rule(path, "write", cwd) for path in allowed if not is_always_listed(path)]
    rules += [_rule(path, "read", cwd) for path in _named(files.write.deny_within_allow)]
    rules += [_rule(path, "deny", cwd) for path in _named(files.read.deny_only)]
    return Policy(
        filesystem=Filesystem.WORKSPACE,
        network=Network.MEDIATED,
        rules=tuple(rules[:_MAX_RULES]),
        enforced_by="agent",
    )


def _named(paths: list[str]) -> list[str]:
    return [path for path in paths if not path.startswith(_LEFT_OUT)]


def _rule(path: str, access: str, cwd: str | None) -> PolicyRule:
    if path == "." or path.startswith("./"):
        path = posixpath.normpath(posixpath.join(cwd or "/nowhere", path))
    is_pattern = any(character in path for character in "*?[") and not path.startswith(TMPDIR)
    return PolicyRule(path=path, access=access, glob=is_pattern)  # type: ignore[arg-type]
