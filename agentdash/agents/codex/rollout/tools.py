"""Describe tool calls of all Codex versions: kind, text, directory, escalation and changes."""

from __future__ import annotations

import posixpath
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from agentdash.agents.codex.rollout.records import Part
from agentdash.model.changes import ChangeKind, Diff, FileChange, file_changes, whole_file
from agentdash.model.decoders import objects
from agentdash.model.events import CallKind, Escalation
from agentdash.model.sanitize import MAX_BLOCK_CHARS, clean_block, clean_line

_MAX_SHOWN_CHARS: Final = 400
"""Of arguments that are shown as JSON, and of a patch that is shown as it is."""
_OWN_NAMESPACES: Final = ("functions", "multi_agent_v1", "collaboration", "container", "local")
_KINDS: Final[dict[str, CallKind]] = {
    **dict.fromkeys(("shell", "container.exec", "shell_command"), "command"),
    **dict.fromkeys(("exec_command", "unified_exec"), "command"),
    "apply_patch": "patch",
    **dict.fromkeys(("request_user_input", "request_user_input_async"), "question"),
    "request_permissions": "permission",
    "spawn_agent": "spawn",
    **dict.fromkeys(("wait", "wait_agent"), "wait"),
    "write_stdin": "poll",
}
"""By the name of the tool, without its namespace; the first kind here is that of a script with several."""


class Tool(NamedTuple):
    """The description of a tool call."""

    kind: CallKind
    name: str
    text: str
    cwd: str | None = None
    escalation: Escalation | None = None
    session: str | None = None
    """The running command that a poll reads from: its session number, or `cell N`."""
    script: str = ""
    """The shell script of a command as written, with newlines; empty where it is not known or too long."""
    shell: str = ""
    """The POSIX shell that runs it, by name (`bash`); empty where it is not known."""
    changes: tuple[FileChange, ...] = ()
    """What a patch is to change, or has changed."""


def describe(name: str, namespace: str | None, arguments: str | Mapping[str, Any] | None) -> Tool:
    """Describe the call of a function tool.

    Args:
        name: `exec_command`, or in old files prefixed by its MCP server, `server__tool`.
        namespace: `mcp__server__`, `multi_agent_v1`, `collaboration` ... (about 0.110+).
        arguments: JSON in a string, as written, or decoded already. Text that is not JSON is shown as it is.
    """
    tool = sys.intern(_full_name(name, namespace))
    kind = _KINDS.get(tool, "other")
    args = arguments
    if isinstance(arguments, str):
        try:
            args = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            args = None
    if not isinstance(args, dict):
        return Tool(kind, tool, clean_line(_string(arguments), _MAX_SHOWN_CHARS))
    if kind == "command":
        return _describe_command(tool, args)
    if kind == "patch":
        return _describe_patch(tool, _string(args.get("input")) or _string(args.get("patch")))
    if tool == "wait" and "cell_id" in args:
        return _poll(tool, f"cell {args.get('cell_id')}", "")
    if kind == "poll":
        return _poll(tool, str(args.get("session_id")), _string(args.get("chars")))
    if tool == "update_plan":
        return Tool(kind, tool, clean_line(_plan(args)))
    shown = ": ".join(filter(None, (_shown(args.get(name)) for name in _SHOWN.get(tool, ()))))
    return Tool(kind, tool, clean_line(shown) or brief(args))


def describe_custom(name: str, namespace: str | None, text: str) -> Tool:
    """Describe the call of a custom tool: `apply_patch` with a patch, or `exec` of code mode with JavaScript
    (0.15x+)."""
    tool = _full_name(name, namespace)
    if tool == "apply_patch":
        return _describe_patch(tool, text)
    if tool == "exec":
        return _describe_javascript(tool, text)
    return Tool("other", tool, clean_line(text, _MAX_SHOWN_CHARS))


def _full_name(name: str, namespace: str | None) -> str:
    name = clean_line(name)
    space = clean_line(namespace or "").rstrip(".")
    if name.startswith("mcp__") or (not space and "__" in name.strip("_")):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return mcp_name(server, tool)
    if not space or space in _OWN_NAMESPACES:
        return name
    return mcp_name(space, name)


def mcp_name(server: str, tool: str) -> str:
    """Return `server.tool` for all spellings of its parts."""
    return clean_line(f"{server.removeprefix('mcp__').rstrip('_')}.{tool}".lstrip("."))


def plain_path(path: str | None) -> str | None:
    """Return a path; that of items is a `file://` URI (0.150+)."""
    if path is None:
        return None
    return clean_line(unquote(path[7:]) if path.startswith("file://") else path)


def brief(arguments: Any) -> str:
    """Return arguments as short JSON."""
    return clean_line(msgspec.json.encode(arguments).decode(), _MAX_SHOWN_CHARS) if arguments else ""


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


# ---------------------------------------------------------------- commands

POSIX_SHELLS: Final = frozenset(("sh", "bash", "zsh", "dash", "ash", "ksh"))
_SHELLS: Final = POSIX_SHELLS | {"fish", "pwsh", "powershell", "cmd"}


def command_tool(name: str, argv: Sequence[str] | str, shell: str = "") -> Tool:
    """Describe the run of a command line; of a shell's argv, the script alone.

    Args:
        name: of the tool.
        argv: words, or a script.
        shell: path of the shell that runs a script, where it is known.
    """
    if isinstance(argv, str):
        program, script = posixpath.basename(shell), argv
    else:
        program = _shell_of(argv)
        script = argv[-1] if program else shlex.join(argv)
    text = clean_line(script)
    runs_posix = not program or program in POSIX_SHELLS
    kept = clean_block(script) if runs_posix and len(script) <= MAX_BLOCK_CHARS else ""
    known = program if program in POSIX_SHELLS else ""
    return Tool("command", name, text, script=text if kept == text else kept, shell=known)


def _shell_of(argv: Sequence[str]) -> str:
    """Return the shell that runs the last argument as a script, or an empty string."""
    if len(argv) < 3 or argv[-2].lower() not in ("-c", "-lc", "-ic", "-command", "/c"):
        return ""
    name = posixpath.basename(argv[0].replace("\\", "/")).removesuffix(".exe")
    return name if name in _SHELLS else ""


def _describe_command(tool: str, args: Mapping[str, Any]) -> Tool:
    argv = args.get("command", args.get("cmd"))
    words = [str(word) for word in argv] if isinstance(argv, list) else _string(argv)
    session = args.get("session_id")
    if tool == "unified_exec" and session is not None:  # 0.4x: one tool starts commands and writes to them
        return _poll(tool, str(session), " ".join(words))
    if _is_patch(words):
        called = _describe_patch(tool, words if isinstance(words, str) else words[-1])
    else:
        called = command_tool(tool, words, _string(args.get("shell")))
    cwd = _string(args.get("workdir") or args.get("working_directory"))
    return called._replace(cwd=plain_path(cwd or None), escalation=_escalation(args))


def _is_patch(argv: Sequence[str] | str) -> bool:
    """Return whether a shell call applies a patch: `apply_patch PATCH`, or a here-document."""
    words = [argv] if isinstance(argv, str) else argv
    names = ("apply_patch", "applypatch")
    return bool(words) and _BEGIN in words[-1] and (words[0] in names or words[-1].lstrip().startswith(names))


def _escalation(args: Mapping[str, Any]) -> Escalation | None:
    """Parse a request for more than the sandbox permits, in its three forms (until about 0.9x, since about
    0.8x, since 0.117)."""
    permissions, rule = args.get("sandbox_permissions"), args.get("prefix_rule")
    prefix = tuple(clean_line(str(word)) for word in rule) if isinstance(rule, list) else ()
    reason = clean_line(_string(args.get("justification"))) or None
    if permissions == "require_escalated" or args.get("with_escalated_permissions") is True:
        return Escalation("escalated", reason, prefix)
    return Escalation("additional", reason, prefix) if permissions == "with_additional_permissions" else None


def _poll(tool: str, session: str, typed: str) -> Tool:
    session = clean_line(session)
    text = session if session.startswith("cell ") else f"session {session}"
    return Tool(
        "poll", tool, clean_line(f"{text}: {typed.rstrip()}" if typed.strip() else text), session=session
    )


# ---------------------------------------------------------------- texts of the other tools


def _plan(args: Mapping[str, Any]) -> str:
    steps = objects(args.get("plan"))
    done = sum(step.get("status") == "completed" for step in steps)
    now = next((_string(step.get("step")) for step in steps if step.get("status") == "in_progress"), "")
    return f"{done}/{len(steps)} {now}".strip()


_MESSAGE: Final = ("target", "id", "message")
_SHOWN: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("request_user_input", "request_user_input_async"), ("questions",)),
    "request_permissions": ("reason", "permissions"),
    "spawn_agent": ("task_name", "message", "items"),
    **dict.fromkeys(("wait", "wait_agent"), ("targets", "ids")),
    "view_image": ("path",),
    **dict.fromkeys(("send_input", "send_message", "followup_task"), _MESSAGE),
    **dict.fromkeys(("resume_agent", "close_agent", "interrupt_agent"), _MESSAGE),
}
"""Arguments that are shown of a tool; of another one all of them, as JSON."""


def _shown(value: Any) -> str:
    """Return a text as it is, those in a list together, and other values as JSON."""
    if isinstance(value, str):
        return value
    if asked := objects(value):
        return " / ".join(filter(None, (_string(each.get("question") or each.get("text")) for each in asked)))
    return " ".join(map(str, value)) if isinstance(value, list) else brief(value)


def parts_text(content: Sequence[Part] | str | None) -> str:
    """Return the text of a message's content: a string, or parts, of which images and encrypted ones have
    none."""
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(part.text for part in content if part.text)


# ---------------------------------------------------------------- scripts of code mode (0.15x+)

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


def _describe_javascript(tool: str, js: str) -> Tool:
    """Describe a script by the literal commands in it (computed ones are not found), else by its first line
    of code."""
    js = js[:_MAX_SCRIPT_CHARS]
    called = {_KINDS.get(name, "other") for name in _JS_CALL.findall(js)}
    kind: CallKind = next((kind for kind in _KINDS.values() if kind in called), "other")
    text = ""
    if kind == "command":
        text = "; ".join(map(_js_text, _JS_COMMAND.findall(js)))
    elif kind == "patch":
        text = patch_text(js.replace("\\n", "\n"))
    code = (line.strip() for line in js.splitlines())
    text = text or next((line for line in code if line and not line.startswith("//")), "")
    escalation = None
    if (requested := _JS_ESCALATION.search(js)) is not None:
        reason = _JS_REASON.search(js)
        why = clean_line(_js_text(reason[1])) if reason else None
        escalation = Escalation("escalated" if requested[1] == "require_escalated" else "additional", why)
    return Tool(
        kind=kind,
        name=tool,
        text=clean_line(text),
        escalation=escalation,
        script=_printed_commands(js) if kind == "command" else "",
        changes=tuple(change for patch in _JS_PATCH.findall(js) for change in patch_changes(_js_text(patch))),
    )


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
    script = "".join(printed)
    if len(printed) > 1:
        script = "\n".join(f"(\n{each}\n)" for each in printed)
    return command_tool("", script).script


def _js_text(literal: str) -> str:
    if literal.startswith('"'):
        try:
            return msgspec.json.decode(literal, type=str)
        except msgspec.DecodeError:
            pass
    return unescaped(literal[1:-1])


def unescaped(text: str) -> str:
    r"""Return a text with `\n`, `\"` and the like as what they stand for."""
    return re.sub(
        r"\\(.)", lambda m: {"n": "\n", "r": "\r", "t": "\t"}.get(m[1], m[1]), text, flags=re.DOTALL
    )


# ---------------------------------------------------------------- patches: as written, and as applied

_FILE: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE: Final = re.compile(r"\*\*\* Move to: (.+)")
_CHANGES: Final[Mapping[str, ChangeKind]] = {"Add": "add", "Update": "update", "Delete": "delete"}
_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_CONTENT: Final = ("+", "-", " ", "@@")
"""How the lines of a diff begin. An empty line stands for an empty line of context."""


def _describe_patch(tool: str, patch: str) -> Tool:
    return Tool("patch", tool, patch_text(patch), changes=patch_changes(patch))


def patch_text(patch: str) -> str:
    """Return `add a.py, update b.py` of a patch; its beginning where it names no files."""
    files = re.findall(r"^\*\*\* (Add|Update|Delete) File: (.+)$", patch, re.MULTILINE)
    named = ", ".join(f"{verb.lower()} {path.strip()}" for verb, path in files)
    return clean_line(named or clean_block(patch, _MAX_SHOWN_CHARS))


def patch_changes(text: str) -> tuple[FileChange, ...]:
    """Return the changes that a patch asks for, from its `*** Begin Patch` on; what surrounds it (a shell
    command with a here-document) is skipped."""
    begin = text.find(_BEGIN)
    if begin < 0:
        return ()
    end = text.find(_END, begin)
    return file_changes(_diffs(text[begin : end if end >= 0 else None]))


def _diffs(patch: str) -> Iterator[Diff]:
    path = ""
    kind: ChangeKind | None = None
    moved_to: str | None = None
    lines: list[str] = []
    for line in patch.split("\n"):
        if header := _FILE.fullmatch(line.rstrip()):
            if kind is not None:
                yield Diff(path, kind, lines, moved_to)
            path, kind, moved_to, lines = header[2].strip(), _CHANGES[header[1]], None, []
        elif move := _MOVE.fullmatch(line.rstrip()):
            moved_to = move[1].strip()
        elif line.startswith(_CONTENT):
            lines.append(line)
        elif not line and kind == "update":
            lines.append(" ")
    if kind is not None:
        # without the empty line that precedes the end of a patch
        yield Diff(path, kind, lines[:-1] if lines[-1:] == [" "] else lines, moved_to)


def applied_changes(changes: Mapping[str, Any]) -> tuple[FileChange, ...]:
    """Return the changes of a `FileChange` item or a `patch_apply_end` event, by path.

    `{"type": "update", "unified_diff", "move_path"}`, or with the type as the key of an object (until about
    0.60); `add` and `delete` have the content of the file.
    """
    return file_changes(_applied(changes))


def _applied(changes: Mapping[str, Any]) -> Iterator[Diff]:
    for path, change in changes.items():
        match change:
            case {"type": kind, **detail}:
                pass
            case {"update": dict(detail)} | {"add": dict(detail)} | {"delete": dict(detail)}:
                kind = next(iter(change))
            case _:
                continue
        if kind == "update":
            lines = _string(detail.get("unified_diff")).removesuffix("\n").split("\n")
            yield Diff(path, "update", lines, _string(detail.get("move_path")) or None)
        elif kind in ("add", "delete"):
            yield whole_file(path, kind, _string(detail.get("content")))
