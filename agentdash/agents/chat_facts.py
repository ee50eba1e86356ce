"""The facts that chats of several CLIs have: name, turn, tokens, last tool."""

from __future__ import annotations

from typing import Any, Final

from agentdash.model.chat import Chat
from agentdash.model.sanitize import clean_line
from agentdash.model.times import parse_iso
from agentdash.model.tokens import ModelUsage

_MAX_TEXT_CHARS: Final = 200
_OBJECTS: Final = ("command", "file_path", "absolute_path", "path", "pattern", "query", "url", "prompt")
"""Arguments of tools that say what they are called for, the most telling first."""


def clean_text(text: object) -> str:
    """Return one line of a prompt, a command or an error, not longer than a row may show."""
    return clean_line(str(text), _MAX_TEXT_CHARS)


def token_counts(usage: dict[str, Any]) -> dict[str, int]:
    """Return the counts in what a record states of its tokens, by name."""
    return {name: value for name, value in usage.items() if isinstance(value, int) and value >= 0}


class ChatFacts:
    """The facts of a chat, as its records are parsed one after the other."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.model: str | None = None
        self.tool: str | None = None
        self.turn: Any = None
        self.since: float | None = None
        self.why = ""
        self.trouble: str | None = None
        self.usages: tuple[ModelUsage, ...] = ()
        self.context: int | None = None

    def set_turn(self, turn: str | None, record: dict[str, Any], why: str = "") -> None:
        """Set where the turn is, since the record's time."""
        if turn != self.turn:
            self.since = parse_iso(str(record.get("timestamp")))
        self.turn = turn
        self.why = clean_text(why)

    def begin(self, prompt: str, record: dict[str, Any]) -> None:
        """Begin a turn with a prompt of the user."""
        self.name = self.name or clean_text(prompt) or None
        self.trouble = None
        self.turn = None
        self.set_turn("open", record)

    def add_tool(self, name: object, arguments: object) -> None:
        """Note a call of a tool."""
        values = arguments if isinstance(arguments, dict) else {}
        object_ = next((values[key] for key in _OBJECTS if isinstance(values.get(key), str)), "")
        words = f"{name}: {object_}" if object_ else str(name)
        self.tool = clean_text(words)

    def chat(self, by: str, *, is_whole: bool) -> Chat:
        """Return what is known; totals only of a chat that was read as a whole."""
        usages = self.usages if is_whole else ()
        return Chat(
            by=by,
            name=self.name if is_whole else None,
            model=self.model,
            total=sum(each.usage.total for each in usages) if usages else None,
            by_model=usages,
            context=self.context,
            tool=self.tool,
            turn=self.turn,
            since=self.since,
            why=self.why,
            trouble=self.trouble,
        )
