"""Build a conversation from the events of a thread."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.conversation import CallRecord, Conversation, ConversationTurn, Entry, Message
from agentdash.model.sanitize import both_ends
from agentdash.model.secrets import mask_fields, mask_secrets

_MAX_ENTRIES: Final = 5_000
"""Entries kept; about a day of work."""
_MAX_CHARS: Final = 16 << 20
"""Characters kept, of all texts."""
_MAX_OUTPUT_CHARS: Final = 8_000
"""Characters kept of one output: both ends, more than is read on a screen."""


class ConversationBuilder:
    """Collects the conversation of one thread, in bounded memory; texts are masked.

    Args:
        thread: its id.
    """

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._turns: list[ConversationTurn] = []
        """Without their entries."""
        self._entries: deque[_Entry] = deque()
        self._open: dict[str, _Entry] = {}
        """The calls that have not ended."""
        self._marked = False
        """Whether the file marks the beginnings of turns (since 0.107)."""
        self._chars = 0
        self._dropped = 0
        self._is_whole = True
        self._cwd: str | None = None
        """The directory of calls that state none."""

    def add(self, event: e.Event, denial: str | None = None) -> None:
        """Add an event; those of other threads are skipped.

        Args:
            event: in the order of the file.
            denial: of the end of a call, the words that show that a sandbox refused something.
        """
        if not isinstance(event, e.ThreadEvent) or event.thread != self._thread:
            return
        match event:
            case e.ThreadStarted() | e.PolicySet():
                self._cwd = event.cwd or self._cwd
            case e.TurnStarted():
                self._marked = True
                self._begin(event.at)
            case e.MessageLogged():
                if event.role == "user" and not self._marked and self._entries:
                    self._begin(event.at)
                self._append(Message(at=event.at, role=event.role, text=mask_secrets(event.text)))
            case e.CallStarted() if event.kind != "poll":
                self._start(event)
            case e.CallEnded():
                self._end(event, denial)
            case e.TurnEnded():
                self._end_turn(event)
            case e.FileGapSkipped():
                self._is_whole = False
            case e.FileReset():
                self.__init__(self._thread)  # type: ignore[misc]

    def conversation(self, problem: str | None = None) -> Conversation:
        """Return the conversation so far."""
        entries: dict[int, list[Entry]] = {}
        for each in self._entries:
            entries.setdefault(each.turn, []).append(each.entry)
        turns = (replace(turn, entries=tuple(entries.get(turn.number, ()))) for turn in self._turns)
        return Conversation(
            thread=self._thread,
            turns=tuple(turn for turn in turns if turn.entries or turn.error),
            is_whole=self._is_whole,
            dropped=self._dropped,
            problem=problem,
        )

    def _turn(self, at: float) -> ConversationTurn:
        """Return the turn to which what follows belongs."""
        if not self._turns or (self._turns[-1].ended_at is not None and not self._marked):
            self._begin(at)
        return self._turns[-1]

    def _begin(self, at: float) -> None:
        self._turns.append(ConversationTurn(number=len(self._turns) + 1, at=at))

    def _end_turn(self, event: e.TurnEnded) -> None:
        cause = event.error or event.reason
        error = mask_secrets(cause) if cause else None
        turn = self._turn(event.at)
        self._turns[-1] = replace(turn, ended_at=event.at, how=event.how, error=error)

    def _append(self, entry: Entry) -> _Entry:
        added = _Entry(self._turn(entry.at).number, entry)
        self._entries.append(added)
        self._chars += _chars(entry)
        while len(self._entries) > _MAX_ENTRIES or self._chars > _MAX_CHARS:
            oldest = self._entries.popleft().entry
            if isinstance(oldest, CallRecord):
                self._open.pop(oldest.id, None)
            self._chars -= _chars(oldest)
            self._dropped += 1
        return added

    def _start(self, event: e.CallStarted) -> None:
        call = CallRecord(
            id=event.call,
            at=event.at,
            kind=event.kind,
            tool=event.tool,
            text=event.text,
            script=event.script,
            cwd=event.cwd or self._cwd,
            by_user=event.by_user,
            escalation=event.escalation,
            changes=event.changes,
        )
        self._open[event.call] = self._append(mask_fields(call))

    def _end(self, event: e.CallEnded, denial: str | None) -> None:
        """End a call; a command that went on in the background ends a second time."""
        started = self._open.get(event.call)
        if started is None or not isinstance(call := started.entry, CallRecord):
            return
        if event.outcome != "running":
            del self._open[event.call]
        started.entry = replace(
            call,
            ended_at=event.at,
            outcome=event.outcome,
            exit_code=event.exit_code,
            output=mask_secrets(both_ends(event.output, _MAX_OUTPUT_CHARS)),
            denial=mask_secrets(denial) if denial else call.denial,
            changes=mask_fields(event.changes) or call.changes,
        )
        self._chars += _chars(started.entry) - _chars(call)


@dataclass
class _Entry:
    """An entry of a turn; that of a call is replaced when the call ends."""

    turn: int
    entry: Entry


def _chars(entry: Entry) -> int:
    """Return the characters of an entry's long texts."""
    if isinstance(entry, Message):
        return len(entry.text)
    return len(entry.script) + len(entry.output) + sum(len(change.diff) for change in entry.changes)
