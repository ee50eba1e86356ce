"""Session logs of all worker CLIs: which thread, which reader, when it began, and the texts of its lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, Final, Literal, NamedTuple

import msgspec

from agentdash.agents import session_rows
from agentdash.agents.claude import home as claude
from agentdash.agents.claude.home import ClaudeHome, last_record_at, logs_below
from agentdash.agents.codex import home as codex
from agentdash.agents.codex.rollout.lineage import uuid_time
from agentdash.agents.line_events import LineEvents
from agentdash.files import OnError
from agentdash.model.decoders import JsonDecoder
from agentdash.model.limits import MIN_PREFIX_CHARS
from agentdash.model.sanitize import clean_line
from agentdash.model.state_paths import resolve_path
from agentdash.model.times import parse_iso, possible_time

_TIMESTAMP: Final = re.compile(rb'"timestamp":"([0-9T:.Z+-]{10,40})"')
_HEAD_LINES: Final = 10
"""Lines that are looked at: those of a log say what it is, and have times."""
_MAX_ID_CHARS: Final = 100
_CHATS: Final = {
    "gemini": re.compile(r"(?:.*/)?chats/(session-[^/]+)\.jsonl"),
    "qwen": re.compile(r"(?:.*/)?chats/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl"),
    "copilot": re.compile(r"(?:.*/)?session-state/([^/]+)/events\.jsonl"),
    **session_rows.LOGS,
}
"""The ends of the paths of chats, by worker CLI, with what the live dashboard names their sessions."""
_CHAT_NAMES: Final = ("chats", "events.jsonl", *session_rows.DATABASES)
"""Of the directory or the file: most other logs need no pattern."""
_CHAT_PLACES: Final = (
    "$GEMINI_CLI_HOME/.gemini/tmp",
    "$QWEN_RUNTIME_DIR/projects",
    "$COPILOT_HOME/session-state",
)
_CHAT_DEPTH: Final = 2
"""Levels of directories below the places of chats."""


class _Head(msgspec.Struct, rename="camel", gc=False):
    """What lines of all session logs have in common, or not."""

    type: str | None = None
    timestamp: str | None = None
    id: str | None = None
    payload: Any = None
    session_id: str | None = None
    """Claude Code."""
    agent_id: str | None = None
    is_sidechain: bool | None = None
    project_hash: str | None = None
    """Gemini CLI."""
    message: Any = None
    """With `parts`: Qwen Code."""
    data: Any = None
    """Copilot CLI."""


_head: Final = JsonDecoder(_Head)


def thread_of_log(path: PurePath) -> str | None:
    """Return the thread whose log a file is, by its name, or None."""
    return codex.thread_id(path) or (_chat_of(path) or (claude.thread_id(path), ""))[0]


def agent_of_log(path: PurePath) -> str:
    """Return the worker CLI whose log a file is, by its name; `codex` for any other name."""
    if (chat := _chat_of(path)) is not None:
        return chat[1]
    return "codex" if claude.thread_id(path) is None else "claude"


def _chat_of(path: PurePath) -> tuple[str, str] | None:
    """Return thread and worker CLI of a chat, by its path; None for other files."""
    if path.name in _CHAT_NAMES or path.parent.name in _CHAT_NAMES:
        for agent, pattern in _CHATS.items():
            if (match := pattern.fullmatch(str(path))) is not None:
                return match[1], agent
    return None


def other_logs(home: ClaudeHome, on_error: OnError = lambda _: None) -> list[tuple[float, Path]]:
    """Return when the last record of each log of other CLIs than Codex was written (unix seconds), and its
    path; the newest first.

    Copied and restored files have other times of change; these count only where no record shows a time.

    Args:
        home: of Claude Code.
    """
    logs = chain(home.transcripts(on_error), _chats(on_error))
    timed = ((last_record_at(str(path)) or possible_time(changed) or 0.0, path) for changed, path in logs)
    return sorted(timed, reverse=True)


def _chats(on_error: OnError) -> Iterator[tuple[float, Path]]:
    """Yield when each log of other CLIs than Codex and Claude Code was changed (unix seconds), and its
    path."""
    for place in _CHAT_PLACES:
        if (root := resolve_path(place, os.environ)) is not None:
            yield from logs_below(root, _CHAT_DEPTH, _is_chat, on_error)
    yield from session_rows.own_sessions(on_error)


def _is_chat(path: str) -> bool:
    return _chat_of(PurePath(path)) is not None


def unsorted_logs(home: ClaudeHome, on_error: OnError) -> list[Path]:
    """Return the logs of other CLIs than Codex without looking at their times."""
    return [path for _, path in chain(home.transcripts(on_error), _chats(on_error))]


def logs_of_thread(
    home: codex.CodexHome, claude_home: ClaudeHome, prefix: str, on_error: OnError
) -> list[Path]:
    """Return the logs of threads whose ids begin so, by their names: rollouts, or else logs of other CLIs."""
    if len(prefix) < MIN_PREFIX_CHARS:
        return []

    def named(paths: Iterable[Path]) -> list[Path]:
        return [path for path in paths if (thread_of_log(path) or "").startswith(prefix)]

    return named(home.rollouts(on_error)) or named(unsorted_logs(claude_home, on_error))


class SessionLog(NamedTuple):
    """A file that is a session log."""

    path: Path
    thread: str
    agent: str
    """The worker CLI: `codex`, `claude`, `gemini`, `qwen`, `copilot`, `opencode`, `kilo`."""

    @property
    def is_chat(self) -> bool:
        """Whether its lines are neither those of Codex nor of Claude Code."""
        return self.agent in _CHATS

    def reader(self) -> LineEvents:
        """Return a reader for its lines; of a rollout with the rules of the Codex home that it lies in.

        The readers are imported here: audits of files that have not changed read none.
        """
        if self.agent == "claude":
            from agentdash.agents.claude.transcript.reader import TranscriptReader  # noqa: PLC0415

            return TranscriptReader(self.thread, self.path)
        if self.is_chat:
            from agentdash.agents.chat_logs import ChatReader  # noqa: PLC0415

            return ChatReader(self.thread, self.agent, self.path)
        from agentdash.agents.codex.command_rules import rules_beside  # noqa: PLC0415
        from agentdash.agents.codex.rollout.reader import RolloutReader  # noqa: PLC0415

        return RolloutReader(self.thread, rules=rules_beside(self.path))


def log_of(path: Path) -> SessionLog | None:
    """Return the session log that a file is, by its name, or else by its first lines: attached and downloaded
    files have other names. None: it is none, or cannot be read."""
    if (thread := thread_of_log(path)) is not None:
        return SessionLog(path, thread, agent_of_log(path))
    for line in _first_lines(path):
        if (found := _thread_of_line(line, path)) is not None:
            return SessionLog(path, *found)
    return None


def _thread_of_line(line: bytes, path: Path) -> tuple[str, str] | None:
    """Return thread and worker CLI of a line; None for a line of no session log."""
    try:
        head = _head.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if head.session_id and head.project_hash:
        return clean_line(head.session_id, _MAX_ID_CHARS), "gemini"
    if head.session_id and isinstance(head.message, dict) and "parts" in head.message:
        return clean_line(head.session_id, _MAX_ID_CHARS), "qwen"
    if head.type == "session.start" and isinstance(head.data, dict):
        return clean_line(str(head.data.get("sessionId")), _MAX_ID_CHARS), "copilot"
    if head.session_id and head.agent_id and head.is_sidechain:
        return claude.subagent_thread(clean_line(head.agent_id, _MAX_ID_CHARS)), "claude"
    if head.session_id:
        return clean_line(head.session_id, _MAX_ID_CHARS), "claude"
    if head.type == "session_meta" and isinstance(head.payload, dict):
        named = head.payload.get("id")
    elif head.timestamp and head.type is None and head.id:  # the bare header of 0.20
        named = head.id
    elif head.timestamp and head.type and isinstance(head.payload, dict):  # its beginning was cut off
        named = None
    else:
        return None
    thread = clean_line(named, _MAX_ID_CHARS) if isinstance(named, str) else ""
    return thread or clean_line(path.name), "codex"


def _first_lines(path: Path) -> list[bytes]:
    """Return the first lines of a file, as far as they are in its first block."""
    try:
        block = next(codex.blocks(path), b"")
    except OSError:
        return []
    return block.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]


def reader_of_log(path: Path, thread: str) -> LineEvents:
    """Return a reader for a log; files of any other name are read as rollouts."""
    return SessionLog(path, thread, agent_of_log(path)).reader()


def log_begun_at(path: Path) -> float | None:
    """Return when a thread began (unix seconds).

    By the id in the name of a rollout, else by the first lines of the file, else by the local time in its
    name.
    """
    if (thread := codex.thread_id(path)) is not None and (made := uuid_time(thread)) is not None:
        return made
    for line in _first_lines(path):
        if (found := _TIMESTAMP.search(line)) is not None:
            return parse_iso(found[1].decode())
    return codex.begun_at(path)


# ---------------------------------------------------------------- texts as they were written, for a search

LogText = Literal["command", "message", "patch", "reasoning", "output", "search"]
_KINDS: Final[dict[Any, LogText]] = {
    **dict.fromkeys(("function_call", "custom_tool_call", "local_shell_call", "tool_use"), "command"),
    **dict.fromkeys(("function_call_output", "custom_tool_call_output", "tool_result"), "output"),
    **dict.fromkeys(("reasoning", "thinking"), "reasoning"),
    "web_search_call": "search",
}
"""By the type of a response item of Codex, or of a content block of Claude Code."""
_PATCH_TOOLS: Final = ("apply_patch", "Edit", "MultiEdit", "Write", "NotebookEdit")
_PATCH_MARK: Final = "*** Begin Patch"
_NO_TEXTS: Final = (
    *("type", "id", "call_id", "tool_use_id", "name", "namespace", "status"),
    *("encrypted_content", "signature"),
)
"""Fields of these that nobody has written."""


def line_texts(line: bytes) -> Iterator[tuple[LogText, str]]:
    """Yield kind and text of what a line has that its events shorten or leave out: calls with all arguments,
    patches, outputs, the reasoning, web searches, and what a compaction left of the conversation."""
    record = _decoded(line)
    if not isinstance(record, dict):
        return
    payload = record.get("payload", record)  # the lines of 0.20 have no envelope
    if record.get("type") == "compacted":
        yield from (("message", text) for text in _strings(payload))
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in (payload, *(content if isinstance(content, list) else ())):
        if isinstance(block, dict) and (kind := _KINDS.get(block.get("type"))) is not None:
            is_patch = block.get("name") in _PATCH_TOOLS
            written = [_decoded(value) for name, value in block.items() if name not in _NO_TEXTS]
            for text in (text for value in written for text in _strings(value)):
                is_patch = is_patch or (kind == "command" and _PATCH_MARK in text)
                yield "patch" if is_patch else kind, text


def _decoded(written: Any) -> Any:
    """Return an object that is written as JSON, and anything else as it is."""
    if isinstance(written, bytes) or (isinstance(written, str) and written.startswith("{")):
        try:
            return msgspec.json.decode(written)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    return written


def _strings(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value; of lists of words the words together."""
    match value:
        case str():
            yield value
        case list() if value and all(isinstance(item, str) for item in value):
            yield " ".join(value)
        case list():
            for item in value:
                yield from _strings(item)
        case dict():
            for name, item in value.items():
                if name != "type":
                    yield from _strings(item)
