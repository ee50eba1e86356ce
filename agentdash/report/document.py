"""Encode a document."""

from __future__ import annotations

import msgspec


def document_json(document: msgspec.Struct) -> bytes:
    """Return indented JSON without a final newline."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2)
