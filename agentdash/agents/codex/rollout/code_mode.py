"""Describe the scripts of code mode (0.15x+): JavaScript that calls the tools, by its literal parts."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.agents.codex.rollout.tools import KINDS, Tool, command_script, patch_changes, patch_text
from agentdash.model.changes import FileChange
from agentdash.model.events import CallKind, Escalation
from agentdash.model.sanitize import clean_line

_MAX_SCRIPT_CHARS: Final = 16_000
"""Of a script, searched by patterns."""
_JS_STRING: Final = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)"""
_JS_COMMAND: Final = re.compile(rf"""\b(?:cmd|command)["']?\s*:\s*{_JS_STRING}""", re.DOTALL)
_JS_PATCH: Final = re.compile(rf"\bapply_patch\s*\(\s*{_JS_STRING}", re.DOTALL)
_JS_REASON: Final = re.compile(rf"""\bjustification["']?\s*:\s*{_JS_STRING}""", re.DOTALL)
_JS_ESCALATION: Final = re.compile(
    r"""\bsandbox_permissions["']?\s*:\s*["'`](require_escalated|with_additional_permissions)["'`]"""
)
_JS_COMMENT: Final = re.compile(r"^\s*//[^\n]*\n", re.MULTILINE)
_JS_RUN: Final = re.compile(
    r"""\s*(?:const|let|var)\s+(?P<name>\w+)\s*=\s*await\s+tools\.exec_command\s*\(\s*
        \{(?P<options>(?:[^{}"'`]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)*)\}\s*\)\s*;?\s*""",
    re.VERBOSE | re.DOTALL,
)
"""`const r = await tools.exec_command({cmd: "..."});`"""
_JS_PRINT: Final = re.compile(
    r"\s*text\s*\(\s*(?:JSON\.stringify\(\s*(\w+)\s*\)|(\w+)(?:\.output)?)\s*\)\s*;?\s*"
)
"""`text(r.output);`"""
_JS_CALL: Final = re.compile(r"\btools\.(\w+)\s*\(")


def describe_script(tool: str, js: str) -> Tool:
    """Describe a script by the literal commands in it (computed ones are not found), else by its first line
    of code."""
    js = js[:_MAX_SCRIPT_CHARS]
    called = [KINDS.get(name, "other") for name in _JS_CALL.findall(js)]
    kind: CallKind = next(
        (k for k in ("command", "patch", "spawn", "question", "permission", "wait", "poll") if k in called),
        "other",
    )
    commands = [_js_text(literal) for literal in _JS_COMMAND.findall(js)] if kind == "command" else []
    code = (line.strip() for line in js.splitlines())
    patch = patch_text(js.replace("\\n", "\n")) if kind == "patch" else ""
    text = (
        "; ".join(commands)
        or patch
        or next((line for line in code if line and not line.startswith("//")), "")
    )
    return Tool(
        kind=kind,
        name=tool,
        text=clean_line(text),
        escalation=_script_escalation(js),
        script=_printed_commands(js) if kind == "command" else "",
        changes=_script_changes(js) if "apply_patch" in js else (),
    )


def _script_changes(js: str) -> tuple[FileChange, ...]:
    """Return the changes of the literal patches in a script; computed ones are not found."""
    patches = (_js_text(literal) for literal in _JS_PATCH.findall(js))
    return tuple(change for patch in patches for change in patch_changes(patch))


def _printed_commands(js: str) -> str:
    """Return one shell script of a code-mode script that runs commands and prints their whole outputs.

    What any other script prints need not be what its commands printed: it may filter, cut or compose it.
    Several commands become subshells, in the order of their outputs.
    """
    js = _JS_COMMENT.sub("", js)
    ran: dict[str, str] = {}
    printed: list[str] = []
    at = 0
    while at < len(js):
        if (run := _JS_RUN.match(js, at)) is not None:
            literal = _JS_COMMAND.search(run["options"])
            if literal is None or (literal[1].startswith("`") and "${" in literal[1]):
                return ""
            ran[run["name"]] = _js_text(literal[1])
            at = run.end()
        elif (shown := _JS_PRINT.match(js, at)) is not None and (shown[1] or shown[2]) in ran:
            printed.append(ran[shown[1] or shown[2]])
            at = shown.end()
        else:
            return ""
    return command_script(
        "\n".join(f"(\n{each}\n)" for each in printed) if len(printed) > 1 else "".join(printed)
    )


def _script_escalation(js: str) -> Escalation | None:
    requested = _JS_ESCALATION.search(js)
    if requested is None:
        return None
    reason = _JS_REASON.search(js)
    return Escalation(
        "escalated" if requested.group(1) == "require_escalated" else "additional",
        clean_line(_js_text(reason.group(1))) if reason else None,
    )


def _js_text(literal: str) -> str:
    if literal.startswith('"'):
        try:
            return msgspec.json.decode(literal, type=str)
        except msgspec.DecodeError:
            pass
    return re.sub(
        r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), literal[1:-1], flags=re.DOTALL
    )
