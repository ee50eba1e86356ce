"""Cleaning of foreign text. Done once, where it enters; nothing downstream needs to be afraid of a string.

Terminal escapes are removed whole, other control and direction characters are dropped, tabs become spaces,
lengths are capped.
"""

from __future__ import annotations

import re
from typing import Final

LINE_CAP: Final = 2_000
"""Characters kept of a one-line text (a command, a title, a path)."""
BLOCK_CAP: Final = 64_000
"""Characters kept of a text of many lines (output, a message); of longer ones the first and last half are
kept."""

_DIRTY = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_ASCII_CONTROLS: Final = dict.fromkeys((*range(10), *range(11, 32), 127))
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|(?:\x1b[\]P_^X]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, APC, PM, SOS and their bodies
    r"|\x1b[ -/]+[0-~]"  # charset selection and other two-part escapes
    r"|\x1b[0-~]?"
)


def clean_block(text: str, cap: int = BLOCK_CAP) -> str:
    """`text` with its line breaks kept and everything else that steers a terminal gone."""
    if len(text) > cap:
        text = f"{text[: cap // 2]}\n… {len(text) - cap} characters left out …\n{text[-(cap // 2) :]}"
    if text.isascii():  # the bulk of all output, and six times as fast
        if "\x1b" in text:
            text = _ESCAPE.sub("", text)
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text.replace("\t", "    ").translate(_ASCII_CONTROLS)
    if not _DIRTY.search(text):
        return text
    text = _ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return _DIRTY.sub("", text)


def clean_line(text: str, cap: int = LINE_CAP) -> str:
    """`text` on one line, spaces squeezed where lines were joined."""
    if len(text) > cap:
        text = text[: cap - 1] + "…"
    if not text.isprintable():
        text = " ".join(clean_block(text).split("\n"))
    return text.strip()
