"""Describe tool calls of all Codex versions: kind, text, directory and escalation."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from agentdash.agents.codex.rollout.records import Part
from agentdash.agents.codex.rollout.tools import (
    KINDS,
    Tool,
    command_script,
    command_text,
    describe_script,
    patch_changes,
    patch_text,
    posix_shell,
    shell_name,
)
from agentdash.model.events import CallKind, Escalation
from agentdash.model.sanitize import clean_line

_MAX_ARGUMENTS_CHARS: Final = 400
"""Of arguments that are shown as JSON."""


def describe(name: str, namespace: str | None, arguments: str | Mapping[str, Any] | None) -> Tool:
    """Describe the call of a function tool.

    Args:
        name: `exec_command`, or in old files prefixed by its MCP server, `server__tool`.
        namespace: `mcp__server__`, `multi_agent_v1`, `collaboration` ... (about 0.110+).
        arguments: JSON in a string, as written, or decoded already. Text that is not JSON is shown as it is.
    """
    if isinstance(arguments, str):
        try:
            decoded = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            decoded = None
    else:
        decoded = arguments
    tool = sys.intern(_full_name(name, namespace))
    if not isinstance(decoded, dict):
        return Tool(
            KINDS.get(tool, "other"),
            tool,
            clean_line(arguments if isinstance(arguments, str) else "", _MAX_ARGUMENTS_CHARS),
        )
    kind: CallKind = "poll" if tool == "wait" and "cell_id" in decoded else KINDS.get(tool, "other")
    if kind == "command":
        return _command(tool, decoded)
    if kind == "patch":
        patch = _string(decoded.get("input")) or _string(decoded.get("patch"))
        return Tool(kind, tool, patch_text(patch), changes=patch_changes(patch))
    if kind == "poll":
        return _poll(tool, decoded)
    text = _TEXTS[kind](decoded) if kind in _TEXTS else _TEXTS_OF_OTHERS.get(tool, _brief)(decoded)
    return Tool(kind, tool, clean_line(text))


def describe_custom(name: str, namespace: str | None, text: str) -> Tool:
    """Describe the call of a custom tool: `apply_patch` with a patch, or `exec` of code mode with JavaScript
    (0.15x+)."""
    tool = _full_name(name, namespace)
    if tool == "apply_patch":
        return Tool("patch", tool, patch_text(text), changes=patch_changes(text))
    return (
        describe_script(tool, text)
        if tool == "exec"
        else Tool("other", tool, clean_line(text, _MAX_ARGUMENTS_CHARS))
    )


def plain_path(path: str | None) -> str | None:
    """Return a path; that of items is a `file://` URI (0.150+)."""
    if path is None:
        return None
    return clean_line(unquote(path[7:]) if path.startswith("file://") else path)


def mcp_name(server: str, tool: str) -> str:
    """Return `server.tool` for all spellings of its parts."""
    return clean_line(f"{server.removeprefix('mcp__').rstrip('_')}.{tool}".lstrip("."))


def brief(arguments: Any) -> str:
    """Return arguments as short JSON."""
    return clean_line(msgspec.json.encode(arguments).decode(), _MAX_ARGUMENTS_CHARS) if arguments else ""


# ---------------------------------------------------------------- names and kinds

_OWN_NAMESPACES: Final = {"functions", "multi_agent_v1", "collaboration", "container", "local"}


def _full_name(name: str, namespace: str | None) -> str:
    name = clean_line(name)
    space = clean_line(namespace or "").rstrip(".")
    if name.startswith("mcp__") or (not space and "__" in name.strip("_")):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return mcp_name(server, tool)
    if not space or space in _OWN_NAMESPACES:
        return name
    return mcp_name(space, name)


# ---------------------------------------------------------------- commands


def _command(tool: str, args: Mapping[str, Any]) -> Tool:
    argv = args.get("command", args.get("cmd"))
    words = (
        [str(word) for word in argv]
        if isinstance(argv, Sequence) and not isinstance(argv, str)
        else _string(argv)
    )
    cwd = _string(args.get("workdir") or args.get("working_directory"))
    session = args.get("session_id")
    if (
        tool == "unified_exec" and session is not None
    ):  # 0.4x: one tool that starts commands and writes to them
        return Tool("poll", tool, _poll_text(str(session), " ".join(words)), session=str(session))
    kind: CallKind = "patch" if _is_patch(words) else "command"
    text = (
        patch_text(words if isinstance(words, str) else words[-1]) if kind == "patch" else command_text(words)
    )
    shell = _string(args.get("shell"))  # exec_command: another shell than the user's
    runs_posix = not shell or posix_shell(posixpath.basename(shell))
    script = command_script(words) if kind == "command" and runs_posix else ""
    return Tool(
        kind=kind,
        name=tool,
        text=text,
        cwd=plain_path(cwd) if cwd else None,
        escalation=_escalation(args),
        script=text if script == text else script,  # mostly: kept once
        shell=shell_name(words, shell) if kind == "command" else "",
        changes=patch_changes(words if isinstance(words, str) else words[-1]) if kind == "patch" else (),
    )


def _is_patch(argv: Sequence[str] | str) -> bool:
    """Return whether a shell call applies a patch: `apply_patch PATCH`, or a here-document."""
    script = argv if isinstance(argv, str) else (argv[-1] if argv else "")
    if "*** Begin Patch" not in script:
        return False
    if not isinstance(argv, str) and argv[0] in ("apply_patch", "applypatch"):
        return True
    return script.lstrip().startswith(("apply_patch", "applypatch"))


def _escalation(args: Mapping[str, Any]) -> Escalation | None:
    """Parse a request for more than the sandbox permits, in its three forms (until about 0.9x, since about
    0.8x, since 0.117)."""
    permissions = args.get("sandbox_permissions")
    rule = args.get("prefix_rule")
    prefix = (
        tuple(clean_line(str(word)) for word in rule)
        if isinstance(rule, Sequence) and not isinstance(rule, str)
        else ()
    )
    reason = clean_line(_string(args.get("justification"))) or None
    if permissions == "require_escalated" or args.get("with_escalated_permissions") is True:
        return Escalation("escalated", reason, prefix)
    return Escalation("additional", reason, prefix) if permissions == "with_additional_permissions" else None


def _poll(tool: str, args: Mapping[str, Any]) -> Tool:
    if tool == "wait":
        session = f"cell {clean_line(str(args.get('cell_id')))}"
        return Tool("poll", tool, session, session=session)
    session = clean_line(str(args.get("session_id")))
    return Tool("poll", tool, _poll_text(session, _string(args.get("chars"))), session=session)


def _poll_text(session: str, typed: str) -> str:
    return clean_line(f"session {session}: {typed.rstrip()}" if typed.strip() else f"session {session}")


# ---------------------------------------------------------------- texts of the other tools


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _brief(args: Mapping[str, Any]) -> str:
    return brief(args)


def _question(args: Mapping[str, Any]) -> str:
    questions = args.get("questions")
    texts = (
        [_string(q.get("question")) for q in questions if isinstance(q, dict)]
        if isinstance(questions, Sequence)
        else []
    )
    return " / ".join(q for q in texts if q) or brief(args)


def _permission(args: Mapping[str, Any]) -> str:
    return " ".join(filter(None, (_string(args.get("reason")), brief(args.get("permissions")))))


def _spawn(args: Mapping[str, Any]) -> str:
    """v1 `{message | items}`; v2 (0.137+) `{task_name, message}`, whose message may be encrypted."""
    message = _string(args.get("message"))
    if not message and isinstance(items := args.get("items"), Sequence):
        message = " ".join(_string(item.get("text")) for item in items if isinstance(item, dict))
    task = _string(args.get("task_name"))
    return f"{task}: {message}" if task and message else task or message


def _wait(args: Mapping[str, Any]) -> str:
    targets = args.get("targets") or args.get("ids")
    return (
        " ".join(str(t) for t in targets)
        if isinstance(targets, Sequence) and not isinstance(targets, str)
        else ""
    )


def _plan(args: Mapping[str, Any]) -> str:
    steps = (
        [s for s in args.get("plan") or () if isinstance(s, dict)]
        if isinstance(args.get("plan"), Sequence)
        else []
    )
    done = sum(s.get("status") == "completed" for s in steps)
    now = next((_string(s.get("step")) for s in steps if s.get("status") == "in_progress"), "")
    return f"{done}/{len(steps)} {now}".strip()


def _message(args: Mapping[str, Any]) -> str:
    """Return target and text of `send_input`, `send_message`, `followup_task`, `close_agent` ..."""
    return " ".join(
        filter(None, (_string(args.get("target") or args.get("id")), _string(args.get("message"))))
    )


_TEXTS: Final[dict[CallKind, Callable[[Mapping[str, Any]], str]]] = {
    "question": _question,
    "permission": _permission,
    "spawn": _spawn,
    "wait": _wait,
}
_TEXTS_OF_OTHERS: Final[dict[str, Callable[[Mapping[str, Any]], str]]] = {
    "update_plan": _plan,
    "view_image": lambda args: _string(args.get("path")),
    **dict.fromkeys(
        ("send_input", "send_message", "followup_task", "resume_agent", "close_agent", "interrupt_agent"),
        _message,
    ),
}


def parts_text(content: Sequence[Part] | str | None) -> str:
    """Return the text of a message's content: a string, or parts, of which images and encrypted ones have
    none."""
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(part.text for part in content if part.text)
