"""Read rollouts for audits: calls that can show nothing of a sandbox are counted, not read.

Most lines of a rollout are calls that ended by themselves, and whose output has no word of a denial. A start
and an output that certainly show nothing are left out, and a `CallsLeftOut` stands in their place; a
`RolloutReader` reads all other lines. An audit of these events is that of all, several times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from agentdash.agents.codex.rollout import records, tools
from agentdash.agents.codex.rollout.calls import Ending, item_ending, parse_text
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.agents.codex.rollout.records import HEAD, RECORD_START, SILENT, is_complete
from agentdash.agents.codex.rollout.tools import patch_text
from agentdash.model.decoders import JsonDecoder
from agentdash.model.events import ThreadEvent
from agentdash.model.limits import MAX_LINE_BYTES

_COMMANDS: Final = frozenset(("exec_command", "shell", "shell_command"))
_SPECIAL: Final = ("escalated", "additional_permissions", "Begin Patch")
"""In the arguments of a command that asks for more than its sandbox permits, or applies a patch."""
_REMOVED: Final = ("\\u", "\\b", "\\f")
"""Escapes in JSON of characters that are removed from texts."""
_MAX_REMEMBERED: Final = 1_000
"""Ids of calls that were left out: their lines may be written twice."""


class _Start(NamedTuple):
    """The first line of a call that may be left out when its output is there."""

    number: int
    line: bytes
    call: records.ToolCall


class SparseReader:
    """Reads the lines of one rollout.

    Args:
        reader: of the lines that are not left out.
        suspicion: decides which these are.
    """

    def __init__(self, reader: RolloutReader, suspicion: Suspicion) -> None:
        self._reader = reader
        self._suspicion = suspicion
        self._hints = (*suspicion.hints, *_SPECIAL)
        self.watched: tuple[str, ...] | None = None
        """Words, and calls with one of them are read as well; None: all calls are. To be set after each list
        of events."""
        self._events: list[ThreadEvent] = []
        self._run: list[tuple[int, bytes]] = []
        """Lines to be read next, with their numbers."""
        self._open: dict[str, _Start] = {}
        self._left_out: list[str] = []
        """Calls that were left out behind these lines."""
        self._newest = (0, 0, b"")
        """Of these the number of the last line, that of the newest start, and the time as written."""
        self._ended: dict[str, None] = {}
        """Calls that were left out."""
        self._is_due = False
        """Whether events are due, since what they state decides about the next lines."""
        self._is_first = True
        """Whether the next line follows a header, which makes it the first of copied ones or of own ones."""

    @property
    def at(self) -> float:
        """Time of the newest line (unix seconds)."""
        return self._reader.at

    def read(self, lines: Iterable[bytes], first: int = 1) -> Iterator[list[ThreadEvent]]:
        """Yield the events of lines in lists, in the order of the file.

        Args:
            lines: with or without their newline.
            first: number of the first line, counted from 1.
        """
        can_leave_out = self._can_leave_out()
        for number, line in enumerate(lines, first):
            if can_leave_out and self._is_left_out(number, line):
                continue
            self._keep_open()  # the line may be about one of them
            self._run.append((number, line))
            if not can_leave_out:
                self._note_kind(HEAD.match(line))
            if self._is_due:
                yield self._take_events()
                can_leave_out = self._can_leave_out()
        yield self._take_events()

    def _can_leave_out(self) -> bool:
        return self.watched is not None and not self._reader.is_copying

    def _keep_open(self) -> None:
        """Let the calls be read whose output is not there yet."""
        if self._left_out:
            line, started_line, time = self._newest
            self._read_run()
            self._events.append(
                self._reader.leave_out(self._left_out, line=line, started_line=started_line, time=time)
            )
            self._left_out = []
        self._run += [(start.number, start.line) for start in self._open.values()]
        self._open.clear()

    def _read_run(self) -> None:
        self._events += self._reader.read_numbered(self._run)
        self._run.clear()

    def _take_events(self) -> list[ThreadEvent]:
        self._keep_open()
        self._read_run()
        self._is_due = False
        events, self._events = self._events, []
        return events

    # ------------------------------------------------------------ which lines are left out

    def _is_left_out(self, number: int, line: bytes) -> bool:
        """Return whether a line need not be read, or is kept only until its call has ended."""
        head = HEAD.match(line)
        is_first, self._is_first = self._is_first, False
        if head is None or is_first or len(line) > MAX_LINE_BYTES:
            self._note_kind(head)
            return False
        kind = (head[1], head[2])
        rule = _RULES.get(kind)
        if rule is None:
            if kind in SILENT and line.rstrip().endswith(b"}") and line.find(RECORD_START, 1) < 0:
                return True
        else:
            try:
                if rule.act(self, number, line, rule.line.decode(line).payload):
                    return True
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass  # the reader states what is wrong with it
        self._note_kind(head)
        return False

    def _note_kind(self, head: Any) -> None:
        """Note what follows from the kind of a line that is read."""
        if head is None or not is_complete(head):  # any: the end of a call, too
            self._is_due = True
            return
        self._is_first = head[1] == b"session_meta"
        self._is_due = self._is_due or self._is_first or head[2] in _ENDINGS

    def _command(self, number: int, line: bytes, call: records.ToolCall) -> bool:
        arguments = call.arguments
        if call.name not in _COMMANDS or call.namespace or not isinstance(arguments, str):
            return False
        if any(word in arguments for word in self._hints) and self._may_show(call):
            return False
        if self._is_watched(arguments, _REMOVED):
            return False
        return self._begin(call, number, line)

    def _may_show(self, call: records.ToolCall) -> bool:
        tool = tools.describe(call.name, call.namespace, call.arguments)
        return (
            tool.kind != "command"
            or tool.escalation is not None
            or self._suspicion.of_script(tool.script, tool.text)
        )

    def _patch(self, number: int, line: bytes, call: records.ToolCall) -> bool:
        if call.name != "apply_patch" or call.namespace or call.input is None:
            return False
        if self.watched and self._is_watched(patch_text(call.input)):
            return False
        return self._begin(call, number, line)

    def _is_watched(self, text: str, more: tuple[str, ...] = ()) -> bool:
        return bool(self.watched) and any(word in text for word in (*(self.watched or ()), *more))

    def _begin(self, call: records.ToolCall, number: int, line: bytes) -> bool:
        if not call.call_id or call.call_id in self._open or call.call_id in self._ended:
            return False
        self._open[call.call_id] = _Start(number, line, call)
        return True

    def _output(self, number: int, line: bytes, output: records.ToolOutput) -> bool:
        if not output.call_id or output.call_id in self._ended:
            return bool(output.call_id)  # the reader would pass over it
        if output.call_id not in self._open or not isinstance(output.output, str):
            return False
        return self._end(output.call_id, parse_text(output.output), number, line)

    def _item(self, number: int, line: bytes, payload: _CommandCompleted) -> bool:
        item = payload.item
        call = item.call_id or item.id
        if item.type != "CommandExecution" or item.source not in (None, "agent") or call not in self._open:
            return False
        printed = item.aggregated_output
        if printed is None:
            printed = (item.stdout or "") + (item.stderr or "")
        return self._end(call, item_ending(item.status, item.exit_code, printed), number, line)

    def _end(self, call: str, ending: Ending, number: int, line: bytes) -> bool:
        """Leave a call out, if it exited by itself and its output shows nothing."""
        start, printed = self._open[call], ending.output
        if ending.outcome != "ended" or ending.exit_code is None:
            return False
        if self._suspicion.of_output(printed):
            return False
        del self._open[call]
        self._left_out.append(call)
        self._newest = (number, start.number, max(_time(start.line), _time(line)))
        self._ended[call] = None
        if len(self._ended) > _MAX_REMEMBERED:
            del self._ended[next(iter(self._ended))]
        return True


def _time(line: bytes) -> bytes:
    """Return the time of a line as written."""
    begin = len(RECORD_START)
    return line[begin : line.index(b'"', begin)]


# ---------------------------------------------------------------- the tables


class _Item(records.Command, gc=False):
    """A command, or another item."""

    type: str = ""


class _CommandCompleted(msgspec.Struct, gc=False):
    """`item_completed`, as far as it is about a command."""

    item: _Item
    started_at_ms: int | None = None
    """As the reader wants it: another type is malformed."""


class _Rule(NamedTuple):
    line: JsonDecoder[Any]
    act: Callable[..., bool]
    """Returns whether the line is left out."""


def _rule(payload: Any, act: Callable[..., bool]) -> _Rule:
    return _Rule(JsonDecoder(records.Line[payload]), act)


_RULES: Final = {
    (b"event_msg", b"token_count"): _rule(records.TokenCount, lambda *_: True),  # if it is not damaged
    (b"response_item", b"function_call"): _rule(records.ToolCall, SparseReader._command),
    (b"response_item", b"custom_tool_call"): _rule(records.ToolCall, SparseReader._patch),
    (b"response_item", b"function_call_output"): _rule(records.ToolOutput, SparseReader._output),
    (b"response_item", b"custom_tool_call_output"): _rule(records.ToolOutput, SparseReader._output),
    (b"event_msg", b"item_completed"): _rule(_CommandCompleted, SparseReader._item),
}
_ENDINGS: Final = frozenset(
    (
        b"function_call_output",
        b"custom_tool_call_output",
        b"item_completed",
        b"exec_command_end",
        b"patch_apply_end",
        b"mcp_tool_call_end",
    )
)
"""Lines by which calls end: what they show decides about the next ones."""


class Suspicion(NamedTuple):
    """Which calls can show something of a sandbox. Its functions are certain where they return False."""

    hints: tuple[str, ...]
    """One of these is in every script that can."""
    of_script: Callable[[str, str], bool]
    """By the script of a command, and by its text on one line."""
    of_output: Callable[[str], bool]
    """By what was printed, not cleaned."""
