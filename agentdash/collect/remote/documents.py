"""Parse the lines that `agentdash status --watch` of another host writes: foreign text, sanitized and bounded
here."""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

import msgspec

from agentdash.documents.worker import ChangeReport
from agentdash.model.decoders import JsonDecoder
from agentdash.model.sanitize import MAX_LINE_CHARS, clean_block, clean_line

SCHEMA: Final = "agentdash.change/2"
"""The only schema that is understood."""
MAX_LINE_BYTES: Final = 1 << 20
"""Longest line that is parsed: workers with a full ledger of denials take some 100 kB."""
_MAX_ITEMS: Final = 2_000
"""Entries of one list of a change that are kept."""
_MAX_NUMBER: Final = 1 << 53
"""Counts are smaller."""
_MAX_BLOCK_CHARS: Final = 8_000
"""Characters kept of a text of several lines."""
_BLOCKS: Final = frozenset(("remedy", "quote", "object", "text"))
"""Fields that may have several lines."""
_SCHEMA: Final = re.compile(r"agentdash\.change/(\d{1,6})", re.ASCII)
_T = TypeVar("_T", bound=msgspec.Struct)


class SchemaError(Exception):
    """The agentdash there writes another schema. The message is one line, with what to do."""


class _Head(msgspec.Struct):
    schema: str


_decoder: Final = JsonDecoder(ChangeReport)
_heads: Final = JsonDecoder(_Head)


def parse_change(line: bytes) -> ChangeReport:
    """Return the document of one line.

    Raises:
        ValueError: it is not a document.
        SchemaError: it has another schema.
    """
    try:
        _check_schema(_heads.decode(line).schema)
        change = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(clean_line(str(error))) from error
    if change.worker is not None and not change.worker.id:
        raise ValueError("a worker without an id")
    return _cleaned_struct(change)


def _check_schema(schema: str) -> None:
    if schema == SCHEMA:
        return
    known = _SCHEMA.fullmatch(schema)
    if known is None:
        raise ValueError(f"a document of schema {clean_line(schema, 60)!r}")
    where = "here" if int(known[1]) > 1 else "there"
    raise SchemaError(f"agentdash there writes {known[0]}, and this one reads {SCHEMA}: update it {where}")


def _cleaned_struct(value: _T) -> _T:
    """Return a struct with its texts sanitized, its numbers bounded, and its lists cut."""
    changes = {
        name: cleaned
        for name in value.__struct_fields__
        if (cleaned := _cleaned(old := getattr(value, name), is_block=name in _BLOCKS)) is not old
    }
    return msgspec.structs.replace(value, **changes) if changes else value


def _cleaned(value: Any, *, is_block: bool = False) -> Any:
    match value:
        case str():
            if value.isascii() and value.isprintable() and len(value) <= MAX_LINE_CHARS:
                return value
            return clean_block(value, _MAX_BLOCK_CHARS) if is_block else clean_line(value)
        case bool() | float() | None:
            return value
        case int():
            return max(-_MAX_NUMBER, min(value, _MAX_NUMBER))
        case list():
            return [_cleaned(item) for item in value[:_MAX_ITEMS]]
        case dict():
            return {clean_line(str(key)): _cleaned(item) for key, item in value.items()}
        case _:
            return _cleaned_struct(value)
