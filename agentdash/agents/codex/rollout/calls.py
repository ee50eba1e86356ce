"""Pair tool calls with their endings in all dialects, so that each call ends once.

A call ends with its output; in paginated and extended files an item or an end event precedes it by a line,
and has more (the whole output, the exit code of a command whose output is only `aborted`), but may lack the
beginning of what was printed (0.155, of a command that prints at once). A command that
returned while its process lives on ends a second time, for good: with the poll or the item that has its exit.
Then its output is all that was printed meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from agentdash.agents.codex.policy_formats import parse_grant, printed_launcher
from agentdash.agents.codex.rollout import tools
from agentdash.agents.codex.rollout.records import Invocation, Item, Part
from agentdash.agents.codex.rollout.tools import POSIX_SHELLS, Tool, applied_changes, command_tool, unescaped
from agentdash.model.changes import FileChange
from agentdash.model.decoders import JsonDecoder, texts
from agentdash.model.events import CallEnded, CallStarted, ChildSpawned, Outcome
from agentdash.model.sanitize import clean_block, clean_line

# ---------------------------------------------------------------- how a call ended, by its output


class Ending(NamedTuple):
    """The outcome of a call, and its output (sanitized)."""

    outcome: Outcome
    output: str = ""
    exit_code: int | None = None
    session: str | None = None
    """The number of the session in which it continues; `cell N` for a code-mode script."""
    sandboxed: bool | None = None
    """Whether Codex states that it ran in its sandbox."""
    sandbox_words: str = ""
    """The words that state it."""


_HEADER: Final = re.compile(
    r"(?:Command: (?s:.{1,20000}?)\n(?=Chunk ID: ))?"
    r"(?:(?:Chunk ID: |Exit code: |Wall time:? |Duration: |Process exited with code |"
    r"Process running with session ID |"
    r"Original token count: |Total output lines: |Warning: truncated output |"
    r"Script (?:completed|failed|terminated|running with cell ID ))[^\n]*(?:\n|\Z))+"
    r"(?:Output:(?:\n|\Z))?"
)
"""The lines above the output: `shell_command` begins with the exit code, unified exec with a chunk id (0.115
to 0.119: with its command), code mode with a result."""
_EXIT: Final = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,9})\b", re.MULTILINE)
_SESSION: Final = re.compile(r"^Process running with session ID (\w+)", re.MULTILINE)
_CELL: Final = re.compile(r"^Script running with cell ID (\w+)")
_TIMEOUT: Final = re.compile(r"command timed out after \d+")

_WRAPPED: Final = re.compile(
    r"\s*(?:Script error:|exec_command failed|write_stdin failed|execution error|"
    r"(?:command )?failed in sandbox|"
    r"failed to parse|unsupported call|"
    r"apply_patch verification failed|tool call error|collab spawn failed|err(?:or)?: )"
)
"""Errors that may contain one of the texts below."""
_OUTCOMES: Final[tuple[tuple[re.Pattern[str], Outcome], ...]] = (
    (
        re.compile(
            r"approval policy is \w+; reject command|approval required by policy|This action was rejected"
            r"|MCP tool call (?:requires approval, but|cancelled(?:: interactive| before) approval)"
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
            r"|Network access to \"[^\"]*\" (?:was|is) blocked by policy|MCP tool call blocked by app config",
            re.DOTALL,
        ),
        "refused-by-policy",
    ),
    (_TIMEOUT, "timed-out"),
    (
        re.compile(
            r"failed in sandbox: |Command denied by sandbox|sandbox denied exec error|"
            r"sandbox error: |SandboxDenied|"
            r"(?:Sandbox\()?Denied \{ output"
            r"|Network access was denied by the Codex sandbox"
        ),
        "denied",
    ),
    (re.compile(r"(?:command )?aborted(?: by user)?(?: after [\d.]+ ?s)?\s*\Z"), "aborted"),
)
_STATED_SANDBOX: Final = re.compile(
    r"\s*(?:command )?(?P<words>failed in sandbox)(?=: )|\s*(?P<named>failed in sandbox (?P<name>\w+))"
    r"|(?s:.)*?(?P<denied>Sandbox\(Denied)"
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


def parse_output(output: str | list[Part] | None) -> Ending:
    """Parse the output of a tool call: a string, or content parts."""
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
        return item_ending(None, code, result.output)
    header = _HEADER.match(text)
    lines, body = (header.group(), text[header.end() :]) if header is not None else ("", text)
    if lines.startswith("Script "):
        return _script(lines, [body] if body else [])
    if session := _SESSION.search(lines):
        return Ending("running", clean_block(body), session=session.group(1))
    if code_match := _EXIT.search(lines):
        return item_ending(None, int(code_match.group(1)), body)
    return parse_error(body) or Ending("ended", clean_block(body))


def parse_error(text: str) -> Ending | None:
    """Parse an error text: a refusal, a denial, a time-out, an abort, an error of Codex itself; None for
    other texts.

    Some state the sandbox of their command: `failed in sandbox LinuxSeccomp` (0.34 to 0.47; `None` outside),
    `failed in sandbox: ` (0.46 to 0.50), `Sandbox(Denied`.
    """
    head = text[:4_000]
    wrapped = _WRAPPED.match(head)
    fitting = (
        outcome for pattern, outcome in _OUTCOMES if (pattern.search if wrapped else pattern.match)(head)
    )
    outcome = next(fitting, "failed" if wrapped else None)
    if outcome is None:
        return None
    ending = Ending(outcome, clean_block(text))
    if outcome == "denied":
        code = _DENIED_EXIT.search(head)
        exit_code = int(code.group(1)) if code else None
        ending = ending._replace(output=clean_block(_denied_output(text)), exit_code=exit_code)
    if outcome == "failed" or (stated := _STATED_SANDBOX.match(head)) is None:
        return ending
    words = stated["words"] or stated["named"] or stated["denied"]
    return ending._replace(sandboxed=stated["name"] != "None", sandbox_words=words)


def item_ending(status: str | None, exit_code: int | None, output: str) -> Ending:
    """Return the ending of an item or end event, whose status is `completed`, `failed` (also for exit codes
    but 0) or `declined`."""
    if status == "declined":
        ending = parse_error(output)
        is_refused = ending is not None and ending.outcome.startswith("refused")
        return ending if ending and is_refused else Ending("refused-by-user", clean_block(output))
    if exit_code is not None and exit_code >= 0:
        outcome: Outcome = "timed-out" if _TIMEOUT.match(output) else "ended"
        return Ending(outcome, clean_block(output), exit_code=exit_code)
    if exit_code is None and status != "failed":
        return Ending("ended", clean_block(output))
    # -1: it did not exit by itself; the output has the reason, unless Codex ended the process
    return parse_error(output) or Ending("failed" if output.strip() else "aborted", clean_block(output))


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


# ---------------------------------------------------------------- which call ends with it

_MAX_CALLS: Final = 200
"""Remembered of open and of ended calls each, the newest: calls of aborted turns have no end, and ends are
written twice."""
_MAX_RUNNING: Final = 64
"""Commands in the background whose output is kept: of many their end is never polled."""
_UNKNOWN_PROCESS: Final = "Unknown process id"
_BY_ITSELF: Final = ("ended", "timed-out")
"""Outcomes whose reason need not follow in the output."""


class _Running(NamedTuple):
    """A command that continues in the background."""

    call: str
    output: str
    """Printed so far, as far as it was polled."""


class _Held(NamedTuple):
    """The end of a call by its item; its output follows."""

    ending: Ending
    changes: tuple[FileChange, ...]
    at: float
    line: int


class _Spawned(msgspec.Struct):
    """The output of `spawn_agent`: v1 has the child's id, v2 (0.137+) only its path."""

    agent_id: str | None = None


_spawned = JsonDecoder(_Spawned)
_ARGV_TOOLS: Final = ("shell", "container.exec")
"""Tools whose arguments name the shell, or a program that runs without one."""


class CallTracker:
    """Tracks the tool calls of one thread.

    Args:
        emit: adds an event of the line that is being read.
        let_out_by: returns the rule that lets a script run outside the sandbox, or an empty string.
    """

    def __init__(self, emit: Callable[..., None], let_out_by: Callable[[str], str]) -> None:
        self._emit = emit
        self._let_out_by = let_out_by
        self._open: dict[str, Tool] = {}
        self._running: dict[str, _Running] = {}
        """By session number."""
        self._held: dict[str, _Held] = {}
        """Ends of open calls."""
        self._ended: dict[str, None] = {}
        self.user_shell = ""
        """Name of the shell that runs scripts of tools without a shell of their own."""

    def start(self, call: str, tool: Tool, *, at: float, by_user: bool = False) -> None:
        """Start a call; ignore a known one, which was written twice.

        Args:
            call: its id.
            tool: what it calls.
            at: when it started (unix seconds).
            by_user: whether the user runs it.
        """
        if call in self._open or call in self._ended:
            return
        self._open[call] = tool
        _forget_oldest(self._open)
        shell, script = tool.shell, tool.script
        if self.user_shell and not shell and tool.name not in _ARGV_TOOLS:
            shell = self.user_shell if self.user_shell in POSIX_SHELLS else ""
            script = script if shell else ""
        self._emit(
            CallStarted,
            at=at,
            call=call,
            kind=tool.kind,
            tool=tool.name,
            text=tool.text,
            script=script,
            shell=shell,
            cwd=tool.cwd,
            escalation=tool.escalation,
            let_out_by="" if by_user or tool.kind != "command" else self._let_out_by(script or tool.text),
            by_user=by_user,
            changes=tool.changes,
        )

    def add_output(self, call: str, output: str | list[Part] | None) -> None:
        """End a call with its output; that of a poll may end an earlier command as well."""
        tool = self._open.get(call)
        if call in self._ended or (tool and tool.name == "exec" and _is_notice(output)):
            return
        kind = tool.kind if tool is not None else "other"
        ending = parse_output(output)
        if (held := self._held.get(call)) is not None:
            if held.ending.outcome in _BY_ITSELF:
                self._end_held(call, held, ending.output)
                return
            if held.ending.outcome == "failed" and ending.outcome == "ended" and ending.exit_code is None:
                ending = ending._replace(outcome="failed")  # the output has the reason
        if tool is not None and kind == "poll":
            self._end_poll(call, tool.session or "", ending)
        elif ending.outcome == "running" and ending.session:
            self._running[ending.session] = _Running(call, ending.output)
            if len(self._running) > _MAX_RUNNING:
                del self._running[next(iter(self._running))]
            self._emit_end(call, ending)
        elif kind == "spawn":
            self._end_spawn(call, ending)
        elif kind == "permission" and isinstance(output, str):
            self._end(call, ending, grant=parse_grant(output))
        else:
            self._end(call, ending)

    def finish(self, done: Finished, *, started_at: float, at: float, line: int) -> None:
        """End a call with an item or end event, at a time and on a line; it also starts an unknown one
        (nested in a script, or the user's own)."""
        call, ending = clean_line(done.call), done.ending
        if call in self._ended:
            return
        if call not in self._open:
            self.start(call, done.tool, at=started_at, by_user=done.by_user)
        elif all(running.call != call for running in self._running.values()) and (
            done.tool.kind == "command" or ending.outcome not in _BY_ITSELF
        ):
            self._held[call] = _Held(ending, done.tool.changes, at, line)
            return
        self._end(call, ending, changes=done.tool.changes)

    def release(self) -> None:
        """End the calls whose items were read, and whose outputs have not followed."""
        for call, held in list(self._held.items()):
            self._end_held(call, held, "")

    def _end_held(self, call: str, held: _Held, printed: str) -> None:
        """End a call by its item, with the beginning of the output that the model got, where the item lacks
        it."""
        output = held.ending.output
        whole = printed if printed.rstrip().endswith(output.rstrip()) else output
        ending = held.ending._replace(output=whole or output)
        self._end(call, ending, changes=held.changes, at=held.at, line=held.line)

    def _end_poll(self, poll: str, session: str, ending: Ending) -> None:
        continues = ending.outcome == "running"
        outcome = "ended" if continues else ending.outcome
        self._end(poll, Ending(outcome, ending.output, session=session))
        if (command := self._running.get(session)) is None:
            return
        if _UNKNOWN_PROCESS in ending.output and ending.outcome == "failed":
            self._end(command.call, Ending("ended", command.output))
        elif (
            continues
            or ending.outcome in ("ended", "timed-out")
            or (session.startswith("cell ") and ending.outcome != "aborted")
        ):
            output = clean_block(command.output + ending.output)
            self._running[session] = command._replace(output=output)
            if not continues:
                self._end(command.call, ending._replace(output=output))

    def _end_spawn(self, call: str, ending: Ending) -> None:
        try:
            child = _spawned.decode(ending.output)
        except msgspec.DecodeError:
            self._end(call, ending._replace(outcome="failed") if ending.outcome == "ended" else ending)
            return
        self._end(call, ending)
        if child.agent_id:
            self._emit(ChildSpawned, child=clean_line(child.agent_id))

    def _end(self, call: str, ending: Ending, **more: Any) -> None:
        tool = self._open.pop(call, None)
        if tool is not None and "linux-sandbox" in ending.output:
            more["launcher"] = printed_launcher(tool.script, ending.output)
        self._held.pop(call, None)
        for session in [s for s, r in self._running.items() if r.call == call]:
            del self._running[session]
        self._ended[call] = None
        _forget_oldest(self._ended)
        self._emit_end(call, ending, **more)

    def _emit_end(self, call: str, ending: Ending, **more: Any) -> None:
        self._emit(CallEnded, call=call, **ending._asdict(), **more)


def _forget_oldest(calls: dict[str, Any]) -> None:
    if len(calls) > _MAX_CALLS:
        del calls[next(iter(calls))]


def _is_notice(output: str | list[Part] | None) -> bool:
    """Return whether an output is that of `notify()` in a script: it has the id of the script's call, and
    does not end it."""
    return isinstance(output, str) and not output.startswith("Script ") and parse_error(output) is None


# ---------------------------------------------------------------- calls written when they have ended:
# items (0.150+), end events, and the user's own commands


class Finished(NamedTuple):
    """A call with its ending."""

    call: str
    tool: Tool
    ending: Ending
    by_user: bool = False


def command(item: Item) -> Finished | None:
    """Parse a command that has exited; None for a poll of one, which has a call of its own."""
    if item.source == "unified_exec_interaction":
        return None
    by_user = item.source == "user_shell"
    tool = command_tool("user_shell" if by_user else "exec_command", item.command)
    tool = tool._replace(cwd=tools.plain_path(item.cwd))
    output = item.aggregated_output
    if output is None:
        output = (item.stdout or "") + (item.stderr or "")
    ending = item_ending(item.status, item.exit_code, output)
    return Finished(item.call_id or item.id, tool, ending, by_user)


def patch(item: Item) -> Finished:
    """Parse the application of a patch."""
    status = item.status or ("failed" if item.success is False else "completed")
    ending = item_ending(status, None, (item.stdout or "") + (item.stderr or ""))
    changes = applied_changes(item.changes)
    text = clean_line(", ".join(f"{change.kind} {change.path}" for change in changes))
    tool = Tool("patch", "apply_patch", text, changes=changes)
    return Finished(item.call_id or item.id, tool, ending)


def mcp_call(item: Item) -> Finished:
    """Parse a call of an MCP server, or of a dynamic tool of an app."""
    invocation = item.invocation or Invocation(item.server or item.namespace or "", item.tool, item.arguments)
    result = item.result if isinstance(item.result, dict) else {}
    printed = result.get("Ok", result)
    is_error = isinstance(printed, dict) and printed.get("isError") is True
    error = item.error or result.get("Err")
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        error = error["message"]  # of items; the event has the message alone
    output = error if isinstance(error, str) else tools.brief(error)
    if is_error:
        output = output or "\n".join(texts(printed.get("content")))
    ending = item_ending("failed" if error or is_error else item.status, None, output)
    if is_error and ending.outcome == "aborted":
        ending = ending._replace(outcome="failed")  # without words
    name = tools.mcp_name(invocation.server, invocation.tool)
    return Finished(item.call_id or item.id, Tool("other", name, tools.brief(invocation.arguments)), ending)


def user_command(message: str, at: float) -> Finished | None:
    """Parse a `!cmd` from the message that informs the model, its only record in legacy files; None for other
    messages.

    Args:
        message: a user message.
        at: its time (unix seconds), which becomes the id of the call: the message has none.
    """
    if not message.lstrip().startswith("<user_shell_command>"):
        return None
    text, _, rest = message.partition("<command>")[2].partition("</command>")
    result = rest.partition("<result>")[2].rpartition("</result>")[0]
    ending = parse_text(result.removeprefix("\n").removesuffix("\n"))
    return Finished(f"user-{at:.3f}", command_tool("user_shell", text), ending, by_user=True)
