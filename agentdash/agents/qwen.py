"""The adapter of Qwen Code, which reads settings as Gemini CLI does: its chats."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from agentdash.agents.adapter import Adapter
from agentdash.agents.chats import (
    ChatFacts,
    ChatFiles,
    files_of,
    is_written_since,
    token_counts,
)
from agentdash.agents.gemini import OUTCOMES, prompt_text, tool_answers
from agentdash.agents.gemini_settings import QWEN, GeminiRequests
from agentdash.files import read_bytes
from agentdash.model.decoders import JsonDecoder, field, objects
from agentdash.model.process import Process
from agentdash.model.state_paths import resolve_path
from agentdash.model.tokens import TokenUsage

_MAX_STATUS_BYTES: Final = 1 << 14
"""Size above which an `ID.runtime.json` is malformed; one of 0.24.4 has 250 bytes."""
_STATUS_SUFFIX: Final = ".runtime.json"


class _RuntimeStatus(msgspec.Struct):
    pid: int
    """As the process itself counts."""


_status: Final = JsonDecoder(_RuntimeStatus)


class QwenFacts(ChatFacts):
    """The facts of a chat of Qwen Code."""

    def add_record(self, record: dict[str, Any]) -> None:
        """Add a record; others than messages and requests are ignored."""
        parts = field(record, "message").get("parts")
        match record.get("type"):
            case "user":
                if (prompt := prompt_text(parts)) is not None:
                    self.begin(prompt)
            case "assistant":
                self._answer(record, objects(parts))
            case "tool_result":
                status = field(record, "toolCallResult").get("status")
                outcome = OUTCOMES.get(str(status), "ended")
                for answer in tool_answers(parts):
                    self.end_call(answer.call, answer.output, outcome, answer.exit_code)
            case "system" if record.get("subtype") == "ui_telemetry":
                self._request(field(field(record, "systemPayload"), "uiEvent"))

    def _answer(self, record: dict[str, Any], parts: list[dict[str, Any]]) -> None:
        self.trouble = None
        self.set_model(record.get("model"))
        self.say(prompt_text([part for part in parts if not part.get("thought")]))
        calls = [call for part in parts if (call := field(part, "functionCall"))]
        for call in calls:
            self.set_tool(call.get("name"), call.get("args"), call.get("id"))
        self.set_turn("open" if calls else "ended")
        counts = token_counts(record.get("usageMetadata"))
        self.add_usage(
            TokenUsage.within(
                counts["promptTokenCount"],
                counts["candidatesTokenCount"],
                cached=counts["cachedContentTokenCount"],
                reasoning=counts["thoughtsTokenCount"],
            )
        )

    def _request(self, event: dict[str, Any]) -> None:
        if event.get("event.name") == "qwen-code.api_error":
            texts = (event.get(name) for name in ("error_message", "error.message", "error"))
            self.set_trouble(next(filter(None, texts), "a request failed"))
        elif event.get("event.name") == "qwen-code.api_response":
            self.trouble = None


def qwen_chats(process: Process) -> Path | None:
    """Return the directory with the chats of a Qwen Code's project."""
    home = resolve_path("$QWEN_RUNTIME_DIR", process.env or {})
    if home is None or process.cwd is None:
        return None
    return Path(home, "projects", re.sub(r"[^a-zA-Z0-9]", "-", process.cwd), "chats")


class QwenChats(ChatFiles):
    """Reads the chats of running Qwen Codes."""

    def __init__(self) -> None:
        super().__init__(qwen_chats, "*.jsonl", QwenFacts)

    def candidates(self, directory: Path, process: Process, *, is_alone: bool) -> dict[Path, str]:
        """Return the chat that names a process; where it can have named none, those that may be its own.

        Raises:
            OSError: the directory or a file cannot be read.
        """
        statuses = files_of(directory, f"*{_STATUS_SUFFIX}")
        pids = {path: pid for path in statuses if (pid := _pid_since(path, process)) is not None}
        if not pids:  # before 0.21, or not interactive
            return super().candidates(directory, process, is_alone=is_alone)
        own = (path for path, pid in pids.items() if pid == process.inner_pid)
        named = {path.with_name(path.name.replace(_STATUS_SUFFIX, ".jsonl")): path.name for path in own}
        return {path: f"{name} has its pid" for path, name in named.items() if path.exists()}


def _pid_since(path: Path, process: Process) -> int | None:
    """Return the pid in a runtime status that was written since a process began; None for older and malformed
    ones.

    Raises:
        OSError: it cannot be read.
    """
    try:
        if not is_written_since(path, process):
            return None
        return _status.decode(read_bytes(path, _MAX_STATUS_BYTES)).pid
    except (FileNotFoundError, ValueError, msgspec.DecodeError, RecursionError):
        return None


ADAPTER: Final = partial(Adapter, session_files=QwenChats(), request_reader=GeminiRequests(QWEN))
