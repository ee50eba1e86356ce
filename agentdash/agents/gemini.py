"""The adapter of Gemini CLI: chats, and what its arguments and settings ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from agentdash.agents.adapter import Adapter
from agentdash.agents.chats import SHELLS, ChatFacts, ChatFiles, token_counts
from agentdash.agents.gemini_settings import GEMINI, GeminiRequests
from agentdash.files import read_bytes
from agentdash.model.decoders import JsonDecoder, field, objects, texts
from agentdash.model.events import Outcome
from agentdash.model.process import Process
from agentdash.model.state_paths import resolve_path
from agentdash.model.tokens import ModelUsage, TokenUsage

_MAX_REGISTRY_BYTES: Final = 1 << 20
_LEVELS: Final = 4
"""Of `HOME/tmp/PROJECT/chats`, above a chat."""
_CANCELLED: Final = "Request cancelled."
_EXIT_CODE: Final = re.compile(r"^Exit Code: (\d{1,3})$", re.MULTILINE)
OUTCOMES: Final[dict[str, Outcome]] = {"success": "ended", "error": "failed", "cancelled": "aborted"}
"""By the status of a call that has ended."""


class _Registry(msgspec.Struct):
    projects: dict[str, str]


_registry: Final = JsonDecoder(_Registry)


class GeminiFacts(ChatFacts):
    """The facts of a chat of Gemini CLI."""

    def __init__(self) -> None:
        super().__init__()
        self._before: tuple[ModelUsage, ...] = ()
        """Tokens without those of the newest answer, which may be repeated."""
        self._last = ""

    def place(self, record: dict[str, Any], path: Path) -> tuple[object, object, object]:
        """Return the working directory by the registry of projects: no record states it, nor the version."""
        del record
        if len(path.parents) < _LEVELS:
            return None, None, None
        project, home = path.parents[1].name, path.parents[3]
        return next((cwd for cwd, name in _projects(home).items() if name == project), None), None, None

    def add_record(self, record: dict[str, Any]) -> None:
        """Add a record; others than messages are ignored."""
        match record.get("type"):
            case "user":
                if (prompt := prompt_text(record.get("content"))) is not None:
                    self.begin(prompt)
            case "gemini":
                self.set_turn(None)
                self._answer(record)
            case "error":
                self.set_turn("failed", record.get("content") or "")
            case "info" if record.get("content") == _CANCELLED:
                self.set_turn("interrupted")

    def _answer(self, record: dict[str, Any]) -> None:
        self.set_model(record.get("model"))
        self.say(prompt_text(record.get("content")), record.get("id"))
        for call in objects(record.get("toolCalls")):
            self.set_tool(call.get("name"), call.get("args"), call.get("id"))
            if (outcome := OUTCOMES.get(str(call.get("status")))) is not None:
                for answer in tool_answers(call.get("result")):
                    self.end_call(answer.call, answer.output, outcome, answer.exit_code)
        self._count(record)

    def _count(self, record: dict[str, Any]) -> None:
        counts = token_counts(record.get("tokens"))
        given, returned = counts["input"] + counts["tool"], counts["output"] + counts["thoughts"]
        ident = str(record.get("id"))
        if counts and ident == self._last:
            self.usages = self._before
        if counts:
            self._before, self._last = self.usages, ident
        self.add_usage(
            TokenUsage.within(given, returned, cached=counts["cached"], reasoning=counts["thoughts"])
        )


def prompt_text(content: object) -> str | None:
    """Return the text in the parts of a message, also of Qwen Code; None where they are answers of tools."""
    if isinstance(content, str):
        return content
    found = texts(content)
    return " ".join(found) if found else None


class ToolAnswer(NamedTuple):
    """What a tool returned to the model."""

    call: object
    output: str
    exit_code: int | None


def tool_answers(parts: object) -> Iterator[ToolAnswer]:
    """Yield the answers of tools in the parts of a message, also of Qwen Code."""
    for part in objects(parts):
        answer = field(part, "functionResponse")
        if response := field(answer, "response"):
            output = str(response.get("output") or response.get("error") or "")
            codes = _EXIT_CODE.findall(output) if answer.get("name") in SHELLS else []
            yield ToolAnswer(answer.get("id"), output, int(codes[-1]) if codes else None)


def _projects(home: Path) -> dict[str, str]:
    """Return the names of the directories of projects, by their working directories; empty if unknown."""
    try:
        return _registry.decode(read_bytes(home / "projects.json", _MAX_REGISTRY_BYTES)).projects
    except (OSError, ValueError, msgspec.DecodeError, RecursionError):
        return {}


def gemini_chats(process: Process) -> Path | None:
    """Return the directory with the chats of a Gemini CLI's project."""
    home = resolve_path(GEMINI.home, process.env or {})
    if home is None or process.cwd is None:
        return None
    name = _projects(Path(home)).get(process.cwd, "")
    return Path(home, "tmp", name, "chats") if name and "/" not in name and name != ".." else None


ADAPTER: Final = partial(
    Adapter,
    session_files=ChatFiles(gemini_chats, "session-*.jsonl", GeminiFacts),
    request_reader=GeminiRequests(GEMINI),
)
