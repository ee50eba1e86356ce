"""The texts of a line of a session log as they were written, whole: what a search reads beside its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

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
