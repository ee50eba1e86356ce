"""Clean foreign text, once, where it enters: everything behind that may print any string.

Terminal escapes are removed whole, other control and direction characters are dropped, tabs become spaces,
lengths are capped.
"""

from __future__ import annotations

import re
from typing import Final

from agentdash.model.secrets import mask_beginning, mask_secrets

MAX_LINE_CHARS: Final = 2_000
"""Characters kept of a one-line text (a command, a title, a path)."""
MAX_BLOCK_CHARS: Final = 64_000
"""Characters kept of a text of many lines (output, a message); of longer ones the first and last half are
kept."""

_CONTROL_CHARACTERS = re.compile(
    "["
    "\x00-\x09\x0b-\x1f\x7f-\x9f"  # C0 except newline, DEL, C1
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # direction, line separators, width 0
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # invisible letters, Hangul fillers
    "\ufeff\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"  # format, surrogates, tags
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"  # format and null letters
    "]"
)
_INVISIBLE_LETTERS: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\U00013430-\U0001343f\U0001d159]"
)
"""Characters that show nothing, and that `str.isprintable` accepts."""
_CUT_AT: Final = ("\n", " ")
"""Where a text is cut, the preferred place first."""
_LEFT_OUT: Final = "characters left out …"
_CUT_MARKS: Final = (_LEFT_OUT, "tokens truncated…", "chars truncated…", "... command output truncated")
"""What stands where a text was cut before: by agentdash, by Codex (0.98 to 0.169)."""
_ASCII_CONTROLS: Final = bytes((*range(10), *range(11, 32), 127))
_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|(?:\x1b[\]P_^X]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, APC, PM, SOS
    r"|\x1b[ -/]+[0-~]"  # charset selection and other two-part escapes
    r"|\x1b[0-~]?"
)

_ASCII_ESCAPE_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P_^X][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-~])?"
)
"""The same in ASCII text: beginning with a character, it is found three times as fast."""


_CONTROL_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[bfrtu]")
"""JSON escapes of control characters, except a line break."""


def is_clean_json(content: bytes) -> bool:
    """Return whether all texts in JSON that agentdash wrote are clean: else others have changed it.

    Raises:
        UnicodeDecodeError: it is not valid UTF-8.
    """
    text = content.decode()
    return _CONTROL_ESCAPE.search(text) is None and clean_block(text, len(text)) == text


def clean_block(text: str, cap: int = MAX_BLOCK_CHARS) -> str:
    """Return `text` with its line breaks, and without everything else that controls a terminal."""
    if len(text) > cap:
        text = both_ends(text, cap)
    if text.isascii():  # the bulk of all output, and six times as fast
        if "\x1b" in text:
            text = _ASCII_ESCAPE_SEQUENCE.sub("", text)
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        # bytes lose characters ten times as fast as texts
        cleaned = text.replace("\t", "    ").encode("ascii").translate(None, _ASCII_CONTROLS).decode("ascii")
        return text if cleaned == text else cleaned  # one object, where both are kept
    text = text.replace("\u2800", " ")  # the braille blank
    if not _CONTROL_CHARACTERS.search(text):
        return text
    text = _ESCAPE_SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return _CONTROL_CHARACTERS.sub("", text)


def clean_line(text: str, cap: int = MAX_LINE_CHARS) -> str:
    """Return `text` on one line, stripped.

    One that is cut, or had more lines, has no secrets then: the rest of one that is cut in two, or that no
    line break ends any more, has no shape by which it could be masked later.
    """
    if len(text) > cap:
        text = mask_beginning(text, cap - 1) + "…"
    if not text.isprintable() or (not text.isascii() and _INVISIBLE_LETTERS.search(text)):
        text = clean_block(text)
        if "\n" in text:
            text = mask_secrets(text).replace("\n", " ")
    return text.strip()


def both_ends(text: str, cap: int) -> str:
    """Return the first and the last half of `cap` characters of a longer text, and how much is left out.

    It is cut as `last_part` does.
    """
    if len(text) <= cap:
        return text
    half = cap // 2
    head, tail = text[:half], last_part(text, half)
    at = next((at for blank in _CUT_AT if (at := head.rfind(blank)) >= half // 2), half)
    left_out = text[at : len(text) - len(tail)]
    more = "more than " if any(mark in left_out for mark in _CUT_MARKS) else ""
    return f"{head[:at]}\n… {more}{len(left_out)} {_LEFT_OUT}\n{tail}"


def last_part(text: str, cap: int) -> str:
    """Return the last `cap` characters of a text, at most.

    It is cut between lines, or else words, if any are nearby: the rest of a secret that is cut in two has no
    shape by which it could be masked.
    """
    if len(text) <= cap:
        return text
    tail = text[-cap:]
    at = next((at for blank in _CUT_AT if 0 <= (at := tail.find(blank)) <= cap // 2), -1)
    return tail[at + 1 :]
