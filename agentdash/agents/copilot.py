"""The adapter of Copilot CLI: its sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from agentdash.agents.adapter import Adapter
from agentdash.agents.chat_files import (
    Candidate,
    ChatFacts,
    ChatFiles,
    files_of,
    is_written_since,
    token_counts,
)
from agentdash.model.process import Process
from agentdash.model.sanitize import clean_line
from agentdash.model.state_paths import resolve_path
from agentdash.model.tokens import ModelUsage, TokenUsage, merged_usage

_EVENTS: Final = "*/events.jsonl"
_any: Final = msgspec.json.Decoder(dict[str, Any])


class CopilotParser(ChatFacts):
    """Parses the events of a session.

    The model is asked several times in a turn: the end of one of these is the end of the turn only where its
    answer calls no tools.
    """

    def __init__(self) -> None:
        super().__init__()
        self._calls_tools = False

    def feed(self, line: bytes) -> None:
        """Add an event; others than messages, errors and usage are ignored."""
        try:
            record = _any.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return
        data = record.get("data")
        if not isinstance(data, dict):
            return
        if record.get("type") == "session.usage_record":
            self._add_usage(data.get("usage"), is_own=_is_own(record))
        elif _is_own(record):
            self._event(record, data)

    def _event(self, record: dict[str, Any], data: dict[str, Any]) -> None:
        match record.get("type"):
            case "user.message":
                self.begin(str(data.get("content") or ""), record)
            case "assistant.turn_start":
                self._calls_tools = True  # until its answer is there
                self.set_turn("open", record)
            case "assistant.message":
                self._answer(data)
            case "assistant.turn_end" if not self._calls_tools:
                self.set_turn("ended", record)
            case "session.error":
                self.set_turn("failed", record, str(data.get("message") or "an error"))
            case "abort":
                self.set_turn("interrupted", record)

    def _answer(self, data: dict[str, Any]) -> None:
        self.model = clean_line(str(data.get("model") or "")) or self.model
        requests = data.get("toolRequests")
        calls = requests if isinstance(requests, list) else []
        self._calls_tools = bool(calls)
        for call in calls:
            if isinstance(call, dict):
                self.add_tool(call.get("name"), call.get("arguments"))

    def _add_usage(self, usage: object, *, is_own: bool) -> None:
        if not isinstance(usage, dict):
            return
        counts = token_counts(usage)
        prompt = counts.get("inputTokens", 0)
        cached = min(counts.get("cacheReadTokens", 0), prompt)
        written = min(counts.get("cacheWriteTokens", 0), prompt - cached)
        tokens = TokenUsage(
            input=prompt - cached - written,
            cached=cached,
            cache_writes=written,
            output=counts.get("outputTokens", 0),
        )
        model = clean_line(str(usage.get("model") or "")) or self.model
        new = ModelUsage(model=model, usage=tokens, longest_prompt=tokens.prompt)
        self.usages = merged_usage((*self.usages, new))
        if is_own:
            self.context = tokens.prompt


def _is_own(record: dict[str, Any]) -> bool:
    """Return whether an event is of the agent itself, and not of a sub-agent."""
    data = record["data"]
    return not record.get("agentId") and not data.get("agentId") and not data.get("parentToolCallId")


class CopilotSessions(ChatFiles):
    """Reads the sessions of running Copilot CLIs."""

    def __init__(self) -> None:
        super().__init__(_sessions, _EVENTS, CopilotParser)

    def candidates(self, directory: Path, process: Process, *, is_alone: bool) -> list[Candidate]:
        """Return the sessions that a process has open.

        Raises:
            OSError: the directory or a file cannot be read.
        """
        del is_alone  # the locks name their processes
        return [
            Candidate(path, f"{_lock(path, process).name} in the directory of the session")
            for path in files_of(directory, _EVENTS)
            if _is_open(path, process)
        ]

    def session_id(self, path: Path) -> str:
        """Return the id of a session: the name of its directory."""
        return path.parent.name


def _is_open(path: Path, process: Process) -> bool:
    try:
        return is_written_since(_lock(path, process), process)
    except FileNotFoundError:
        return False


def _lock(path: Path, process: Process) -> Path:
    return path.parent / f"inuse.{process.inner_pid}.lock"


def _sessions(process: Process) -> Path | None:
    """Return the directory with the sessions of a process's user, or None if unknown."""
    if process.env is None:
        return None
    found = resolve_path("$COPILOT_HOME/session-state", process.env, process.cwd)
    return Path(found) if found else None


class CopilotAdapter(Adapter):
    """Copilot CLI."""

    session_files = CopilotSessions()


ADAPTER = CopilotAdapter
