"""Build a conversation from the events of a thread."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.conversation import Conversation, ConversationTurn, Entry, Message
from agentdash.model.denials import Denial
from agentdash.model.sanitize import both_ends
from agentdash.model.secrets import mask_fields, mask_secrets
from agentdash.model.thread import Call

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
        self._entries: dict[int, tuple[int, Entry]] = {}
        """By their number: the turn of each, and the entry; that of a call is replaced when it ends."""
        self._open: dict[str, int] = {}
        """The entries of calls that have not ended."""
        self._marked = False
        """Whether the file marks the beginnings of turns (since 0.107)."""
        self._chars = 0
        self._added = 0
        self._is_whole = True
        self._cwd: str | None = None
        """The directory of calls that state none."""

    def add(self, event: e.Event, denials: tuple[Denial, ...] = ()) -> None:
        """Add an event; those of other threads are skipped.

        Args:
            event: in the order of the file.
            denials: of the end of a call, what its output shows.
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
                call = replace(Call.started(event, self._cwd), changes=event.changes)
                self._open[event.call] = self._append(mask_fields(call))
            case e.CallEnded():
                self._end(event, denials)
            case e.TurnEnded():
                cause = event.error or event.reason
                ended = replace(self._turn(event.at), ended_at=event.at, how=event.how)
                self._turns[-1] = replace(ended, error=mask_secrets(cause) if cause else None)
            case e.FileGapSkipped():
                self._is_whole = False
            case e.FileReset():
                self.__init__(self._thread)  # type: ignore[misc]

    def conversation(self, problem: str | None = None) -> Conversation:
        """Return the conversation so far."""
        entries: dict[int, list[Entry]] = {}
        for turn, entry in self._entries.values():
            entries.setdefault(turn, []).append(entry)
        turns = (replace(turn, entries=tuple(entries.get(turn.number, ()))) for turn in self._turns)
        return Conversation(
            thread=self._thread,
            turns=tuple(turn for turn in turns if turn.entries or turn.error),
            is_whole=self._is_whole,
            dropped=self._added - len(self._entries),
            problem=problem,
        )

    def _turn(self, at: float) -> ConversationTurn:
        """Return the turn to which what follows belongs."""
        if not self._turns or (self._turns[-1].ended_at is not None and not self._marked):
            self._begin(at)
        return self._turns[-1]

    def _begin(self, at: float) -> None:
        self._turns.append(ConversationTurn(number=len(self._turns) + 1, at=at))

    def _append(self, entry: Entry) -> int:
        """Add an entry, and return its number; the oldest are dropped where there are too many."""
        number = self._added
        self._added += 1
        self._entries[number] = self._turn(entry.at).number, entry
        self._chars += _chars(entry)
        while len(self._entries) > _MAX_ENTRIES or self._chars > _MAX_CHARS:
            _, oldest = self._entries.pop(next(iter(self._entries)))
            self._chars -= _chars(oldest)
            if isinstance(oldest, Call):
                self._open.pop(oldest.id, None)
        return number

    def _end(self, event: e.CallEnded, denials: tuple[Denial, ...]) -> None:
        """End a call; a command that went on in the background ends a second time."""
        turn, call = self._entries.get(self._open.get(event.call, -1), (0, None))
        if not isinstance(call, Call):
            return
        ended = replace(
            call,
            ended_at=event.at,
            outcome=event.outcome,
            exit_code=event.exit_code,
            output=mask_secrets(both_ends(event.output, _MAX_OUTPUT_CHARS)),
            denials=mask_fields(denials) or call.denials,
            changes=mask_fields(event.changes) or call.changes,
        )
        self._entries[self._open[event.call]] = turn, ended
        self._chars += _chars(ended) - _chars(call)
        if event.outcome != "running":
            del self._open[event.call]


def _chars(entry: Entry) -> int:
    """Return the characters of an entry's long texts."""
    if isinstance(entry, Message):
        return len(entry.text)
    return len(entry.script) + len(entry.output) + sum(len(change.diff) for change in entry.changes)
