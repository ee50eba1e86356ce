"""The adapter of Copilot CLI: its sessions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

from agentdash.agents.adapter import Adapter
from agentdash.agents.chats import ChatFacts, ChatFiles, files_of, is_written_since, token_counts
from agentdash.model.decoders import field, objects
from agentdash.model.process import Process
from agentdash.model.sanitize import clean_line
from agentdash.model.state_paths import resolve_path
from agentdash.model.tokens import TokenUsage

_EVENTS: Final = "*/events.jsonl"


class CopilotFacts(ChatFacts):
    """The facts of a session, by its events.

    The model is asked several times in a turn: the end of one of these is the end of the turn only where its
    answer calls no tools.
    """

    def __init__(self) -> None:
        super().__init__()
        self._calls_tools = False

    def place(self, record: dict[str, Any], path: Path) -> tuple[object, object, object]:
        """Return working directory and version, as `session.start` states them."""
        del path
        data = field(record, "data")
        return field(data, "context").get("cwd"), data.get("copilotVersion"), None

    def add_record(self, record: dict[str, Any]) -> None:
        """Add an event; others than messages, errors and usage are ignored."""
        data = field(record, "data")
        is_own = not (record.get("agentId") or data.get("agentId") or data.get("parentToolCallId"))
        if record.get("type") == "session.usage_record":
            self._count(field(data, "usage"), is_own=is_own)
        elif is_own:  # and not of a sub-agent
            self._add_own(str(record.get("type")), data)

    def _add_own(self, kind: str, data: dict[str, Any]) -> None:
        match kind:
            case "user.message":
                self.begin(str(data.get("content") or ""))
            case "assistant.turn_start":
                self._calls_tools = True  # until its answer is there
                self.set_turn("open")
            case "assistant.message":
                self._answer(data)
            case "tool.execution_complete":
                self._end(data)
            case "assistant.turn_end" if not self._calls_tools:
                self.set_turn("ended")
            case "session.error":
                self.set_turn("failed", data.get("message") or "an error")
            case "abort":
                self.set_turn("interrupted")

    def _answer(self, data: dict[str, Any]) -> None:
        self.set_model(data.get("model"))
        self.say(data.get("content"))
        calls = objects(data.get("toolRequests"))
        self._calls_tools = bool(calls)
        for call in calls:
            self.set_tool(call.get("name"), call.get("arguments"), call.get("toolCallId"))

    def _end(self, data: dict[str, Any]) -> None:
        code = field(data, "shellExecution").get("exitCode")
        exit_code = code if isinstance(code, int) else None
        result = field(data, "result") or field(data, "error")
        output = result.get("content") or result.get("message")
        has_run = data.get("success") is not False or exit_code is not None
        self.end_call(data.get("toolCallId"), output, "ended" if has_run else "failed", exit_code)

    def _count(self, usage: dict[str, Any], *, is_own: bool) -> None:
        counts = token_counts(usage)
        tokens = TokenUsage.within(
            counts["inputTokens"],
            counts["outputTokens"],
            cached=counts["cacheReadTokens"],
            written=counts["cacheWriteTokens"],
        )
        self.add_usage(tokens, clean_line(str(usage.get("model") or "")), is_own=is_own)


class CopilotSessions(ChatFiles):
    """Reads the sessions of running Copilot CLIs."""

    def __init__(self) -> None:
        super().__init__(_sessions, _EVENTS, CopilotFacts)

    def candidates(self, directory: Path, process: Process, *, is_alone: bool) -> dict[Path, str]:
        """Return the sessions that a process has open.

        Raises:
            OSError: the directory or a file cannot be read.
        """
        del is_alone  # the locks name their processes
        lock = f"inuse.{process.inner_pid}.lock"
        return {
            path: f"{lock} in the directory of the session"
            for path in files_of(directory, _EVENTS)
            if path.with_name(lock).exists() and is_written_since(path.with_name(lock), process)
        }

    def session_id(self, path: Path) -> str:
        """Return the id of a session: the name of its directory."""
        return path.parent.name


def _sessions(process: Process) -> Path | None:
    """Return the directory with the sessions of a process's user, or None if unknown."""
    found = resolve_path("$COPILOT_HOME/session-state", process.env or {})
    return Path(found) if found else None


ADAPTER: Final = partial(Adapter, session_files=CopilotSessions())
