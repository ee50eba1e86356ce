"""The texts of a transcript line as they were written, whole: what a search reads beside its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from agentdash.agents.codex.rollout.texts import LogText, strings

_EDITS: Final = ("Edit", "MultiEdit", "Write", "NotebookEdit")


def line_texts(line: bytes) -> Iterator[tuple[LogText, str]]:
    """Yield kind and text of calls with all arguments, of outputs, and of the reasoning."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    message = record.get("message") if isinstance(record, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield from _block_texts(block)


def _block_texts(block: dict[str, Any]) -> Iterator[tuple[LogText, str]]:
    match block.get("type"):
        case "thinking":
            yield from (("reasoning", text) for text in strings(block.get("thinking")))
        case "tool_use":
            kind: LogText = "patch" if block.get("name") in _EDITS else "command"
            yield from ((kind, text) for text in strings(block.get("input")))
        case "tool_result":
            yield from (("output", text) for text in strings(block.get("content")))
