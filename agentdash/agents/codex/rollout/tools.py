"""Describe tool calls of all Codex versions: kind, text, directory and escalation."""

from __future__ import annotations

import posixpath
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from agentdash.agents.codex.rollout.records import Part
from agentdash.model.changes import ChangeKind, Diff, FileChange, file_changes, whole_file
from agentdash.model.events import CallKind, Escalation
from agentdash.model.sanitize import MAX_BLOCK_CHARS, clean_block, clean_line

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


# ------------------------------------------------------------
# Describe the scripts of code mode (0.15x+): JavaScript that calls the tools, by its literal parts


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


KINDS: Final[dict[str, CallKind]] = {
    "shell": "command",
    "container.exec": "command",
    "local_shell": "command",
    "shell_command": "command",
    "exec_command": "command",
    "unified_exec": "command",
    "write_stdin": "poll",
    "apply_patch": "patch",
    "request_user_input": "question",
    "request_user_input_async": "question",
    "request_permissions": "permission",
    "spawn_agent": "spawn",
    "wait": "wait",
    "wait_agent": "wait",
}
"""By the name of the tool, without its namespace."""


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


_POSIX_SHELLS: Final = frozenset(("sh", "bash", "zsh", "dash", "ash", "ksh"))
_SHELLS: Final = _POSIX_SHELLS | {"fish", "pwsh", "powershell", "cmd"}


def command_text(argv: Sequence[str] | str) -> str:
    """Return the command line of an argv; of a shell's, the script alone."""
    if isinstance(argv, str):
        return clean_line(argv)
    return clean_line(argv[-1] if _shell_of(argv) else shlex.join(argv))


def command_script(argv: Sequence[str] | str) -> str:
    """Return the script of a command as written; empty if no POSIX shell runs it, or it is too long."""
    if isinstance(argv, str):
        script = argv
    elif (shell := _shell_of(argv)) is None:
        script = shlex.join(argv)
    elif shell in _POSIX_SHELLS:
        script = argv[-1]
    else:
        return ""
    return clean_block(script) if len(script) <= MAX_BLOCK_CHARS else ""


def shell_name(argv: Sequence[str] | str, path: str = "") -> str:
    """Return the POSIX shell of an argv, or at a path, by its name, or an empty string."""
    found = posixpath.basename(path) if isinstance(argv, str) else _shell_of(argv)
    return found if found in _POSIX_SHELLS else ""


def posix_shell(name: str) -> str:
    """Return the name of a POSIX shell, empty for that of another shell."""
    return name if name in _POSIX_SHELLS else ""


def _shell_of(argv: Sequence[str]) -> str | None:
    """Return the shell that runs the last argument as a script, or None."""
    if len(argv) < 3 or argv[-2].lower() not in ("-c", "-lc", "-ic", "-command", "/c"):
        return None
    shell = posixpath.basename(argv[0].replace("\\", "/")).removesuffix(".exe")
    return shell if shell in _SHELLS else None


# ------------------------------------------------------------
# Parse what patches change: the text that the model wrote, and the changes that Codex has applied


_FILE: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE: Final = re.compile(r"\*\*\* Move to: (.+)")
_KINDS: Final[Mapping[str, ChangeKind]] = {"Add": "add", "Update": "update", "Delete": "delete"}
_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_MAX_PATCH_CHARS: Final = 400
"""Of a patch that is shown as it is."""
_CONTENT: Final = ("+", "-", " ", "@@")
"""How the lines of a diff begin. An empty line stands for an empty line of context."""


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
            path = header[2].strip()
            kind = _KINDS[header[1]]
            moved_to = None
            lines = []
        elif move := _MOVE.fullmatch(line.rstrip()):
            moved_to = move[1].strip()
        elif line.startswith(_CONTENT):
            lines.append(line)
        elif not line and kind == "update":
            lines.append(" ")
    if kind is not None:
        yield Diff(path, kind, _without_end(lines), moved_to)


def _without_end(lines: list[str]) -> list[str]:
    """Return lines without the empty one that precedes the end of a patch."""
    return lines[:-1] if lines and lines[-1] == " " else lines


def applied_changes(changes: Mapping[str, Any]) -> tuple[FileChange, ...]:
    """Return the changes of a `FileChange` item or a `patch_apply_end` event, by path.

    `{"type": "update", "unified_diff", "move_path"}`, or with the type as the key of an object (until about
    0.60); `add` and `delete` have the content of the file.
    """
    return file_changes(_applied(changes))


def _applied(changes: Mapping[str, Any]) -> Iterator[Diff]:
    for path, change in changes.items():
        if not isinstance(change, Mapping):
            continue
        kind = change.get("type")
        detail = change
        if kind is None and len(change) == 1:
            kind, detail = next(iter(change.items()))
        if not isinstance(detail, Mapping):
            detail = {}
        if kind == "update":
            move = detail.get("move_path")
            yield Diff(
                path=path,
                kind="update",
                lines=_text(detail.get("unified_diff")).removesuffix("\n").split("\n"),
                moved_to=move if isinstance(move, str) else None,
            )
        elif kind in ("add", "delete"):
            yield whole_file(path, kind, _text(detail.get("content")))


def patch_text(patch: str) -> str:
    """Return `add a.py, update b.py` of a patch; its beginning where it names no files."""
    files = re.findall(r"^\*\*\* (Add|Update|Delete) File: (.+)$", patch, re.MULTILINE)
    return clean_line(
        ", ".join(f"{verb.lower()} {path.strip()}" for verb, path in files)
        or clean_block(patch, _MAX_PATCH_CHARS)
    )


def changes_text(changes: Mapping[str, Any]) -> str:
    """Return the same of a `changes` map, path -> `{"type": "add"}` or `{"add": ...}`."""

    def verb(change: Any) -> str:
        return (
            str(change.get("type") or next(iter(change), "change")) if isinstance(change, dict) else "change"
        )

    return clean_line(", ".join(f"{verb(change)} {path}" for path, change in changes.items()))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
