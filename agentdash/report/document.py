"""Encode a document."""

from __future__ import annotations

import msgspec

from agentdash.model.secrets import mask_fields


def document_json(document: msgspec.Struct) -> bytes:
    """Return indented JSON without a final newline, secrets masked."""
    return msgspec.json.format(msgspec.json.encode(mask_fields(document)), indent=2)
