"""Encode a document."""

from __future__ import annotations

import msgspec

from agentdash.model.secrets import mask_fields


def document_json(document: msgspec.Struct, *, indent: int | None = 2) -> bytes:
    """Return JSON without a final newline, secrets masked; without an indent on one line."""
    encoded = msgspec.json.encode(mask_fields(document))
    return encoded if indent is None else msgspec.json.format(encoded, indent=indent)
