"""Build a conversation from the events of a thread."""

from __future__ import annotations

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
        self._turns: list[_Turn] = []
        self._open: dict[str, tuple[_Turn, int]] = {}
        """Where the calls are that have not ended: the turn, and the index in it."""
        self._number = 0
        self._marked = False
        """Whether the file marks the beginnings of turns (since 0.107)."""
        self._entries = 0
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
            case e.MessageLogged(role="user"):
                if not self._marked and self._turn.entries:
                    self._begin(event.at)
                self._append(Message(at=event.at, role="user", text=mask_secrets(event.text)))
            case e.MessageLogged():
                self._append(Message(at=event.at, role="agent", text=mask_secrets(event.text)))
            case e.CallStarted() if event.kind != "poll":
                self._start(event)
            case e.CallEnded():
                self._end(event, denial)
            case e.TurnEnded():
                self._turn.end(event)
            case e.FileGapSkipped():
                self._is_whole = False
            case e.FileReset():
                self.__init__(self._thread)  # type: ignore[misc]

    def conversation(self, problem: str | None = None) -> Conversation:
        """Return the conversation so far."""
        turns = (turn.frozen() for turn in self._turns if turn.entries or turn.error)
        return Conversation(
            thread=self._thread,
            turns=tuple(turns),
            is_whole=self._is_whole,
            dropped=self._dropped,
            problem=problem,
        )

    @property
    def _turn(self) -> _Turn:
        """The turn to which what follows belongs."""
        if not self._turns or (self._turns[-1].ended_at is not None and not self._marked):
            self._begin(0.0)
        return self._turns[-1]

    def _begin(self, at: float) -> None:
        self._number += 1
        self._turns.append(_Turn(self._number, at))

    def _append(self, entry: Entry) -> None:
        turn = self._turn
        turn.at = turn.at or entry.at
        turn.entries.append(entry)
        self._entries += 1
        self._chars += _chars(entry)
        while self._entries > _MAX_ENTRIES or self._chars > _MAX_CHARS:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Drop the oldest turn; of the only one, its first half."""
        oldest = self._turns[0]
        count = len(oldest.entries) if len(self._turns) > 1 else max(1, len(oldest.entries) // 2)
        dropped = oldest.entries[:count]
        oldest.entries = oldest.entries[count:]
        if len(self._turns) > 1:
            del self._turns[0]
        self._entries -= len(dropped)
        self._dropped += len(dropped)
        self._chars -= sum(map(_chars, dropped))
        self._open = {
            call: (turn, index if turn is not oldest else index - count)
            for call, (turn, index) in self._open.items()
            if turn is not oldest or index >= count
        }

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
        self._append(mask_fields(call))
        self._open[event.call] = (self._turn, len(self._turn.entries) - 1)

    def _end(self, event: e.CallEnded, denial: str | None) -> None:
        """End a call; a command that went on in the background ends a second time."""
        if event.call not in self._open:
            return
        turn, index = self._open[event.call]
        if event.outcome != "running":
            del self._open[event.call]
        call = turn.entries[index]
        if not isinstance(call, CallRecord):
            return
        ended = replace(
            call,
            ended_at=event.at,
            outcome=event.outcome,
            exit_code=event.exit_code,
            output=mask_secrets(both_ends(event.output, _MAX_OUTPUT_CHARS)),
            denial=mask_secrets(denial) if denial else call.denial,
            changes=mask_fields(event.changes) or call.changes,
        )
        turn.entries[index] = ended
        self._chars += _chars(ended) - _chars(call)


class _Turn:
    """A turn that is being built."""

    def __init__(self, number: int, at: float) -> None:
        self.number = number
        self.at = at
        self.entries: list[Entry] = []
        self.ended_at: float | None = None
        self.how: str | None = None
        self.error: str | None = None

    def end(self, event: e.TurnEnded) -> None:
        self.at = self.at or event.at
        self.ended_at = event.at
        self.how = event.how
        cause = event.error or event.reason
        self.error = mask_secrets(cause) if cause else None

    def frozen(self) -> ConversationTurn:
        return ConversationTurn(
            number=self.number,
            at=self.at,
            entries=tuple(self.entries),
            ended_at=self.ended_at,
            how=self.how,  # type: ignore[arg-type]
            error=self.error,
        )


def _chars(entry: Entry) -> int:
    """Return the characters of an entry's long texts."""
    if isinstance(entry, Message):
        return len(entry.text)
    return len(entry.script) + len(entry.output) + sum(len(change.diff) for change in entry.changes)
