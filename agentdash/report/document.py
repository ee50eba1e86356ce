"""A document as it is printed."""

from __future__ import annotations

import msgspec


def document_json(document: msgspec.Struct) -> bytes:
    """Indented JSON, without a final newline."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2)
