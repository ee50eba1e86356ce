"""The texts of a rollout line as they were written, whole: what a search reads beside its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

LogText = Literal["command", "message", "patch", "reasoning", "output", "search"]
_PATCH_TOOL: Final = "apply_patch"
_PATCH_MARK: Final = "*** Begin Patch"


def line_texts(line: bytes) -> Iterator[tuple[LogText, str]]:
    """Yield kind and text of what a line of a rollout has that its events shorten or leave out.

    These are calls with all arguments, patches, outputs, summaries of the reasoning, web searches, and what
    a compaction left of the conversation: by the items of the model's response, which the events of the same
    things repeat.
    """
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if not isinstance(record, dict):
        return
    payload = record.get("payload", record)  # the lines of 0.20 have no envelope
    if not isinstance(payload, dict):
        return
    if record.get("type") == "compacted":
        yield from (("message", text) for text in strings(payload.get("message")))
    else:
        yield from _texts(payload)


def _texts(payload: dict[str, Any]) -> Iterator[tuple[LogText, str]]:
    match payload.get("type"):
        case "function_call" | "custom_tool_call" | "local_shell_call":
            yield from _call(payload)
        case "function_call_output" | "custom_tool_call_output":
            yield from (("output", text) for text in strings(payload.get("output")))
        case "reasoning":
            for field in ("summary", "content"):
                yield from (("reasoning", text) for text in strings(payload.get(field)))
        case "web_search_call":
            yield from (("search", text) for text in strings(payload.get("action")))


def _call(payload: dict[str, Any]) -> Iterator[tuple[LogText, str]]:
    written = payload.get("arguments") or payload.get("input") or payload.get("action")
    for text in strings(_decoded(written)):
        is_patch = payload.get("name") == _PATCH_TOOL or _PATCH_MARK in text
        yield "patch" if is_patch else "command", text


def _decoded(written: Any) -> Any:
    """Return arguments that are JSON within a string as what they are."""
    if isinstance(written, str) and written.startswith("{"):
        try:
            return msgspec.json.decode(written)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return written
    return written


def strings(value: Any) -> Iterator[str]:
    """Yield all strings in a JSON value; of lists of words the words together. Types are left out."""
    match value:
        case str():
            yield value
        case list() if value and all(isinstance(item, str) for item in value):
            yield " ".join(value)
        case list():
            for item in value:
                yield from strings(item)
        case dict():
            for name, item in value.items():
                if name != "type":
                    yield from strings(item)
