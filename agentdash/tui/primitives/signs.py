"""Signs of foreign text in ASCII: box drawing, blocks, arrows and symbols; letters of any script stay."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from rich.cells import cell_len

_SIGNS: Final = {
    "─━┄┅┈┉╌╍═╴╶╸╺╼╾‾": "-",
    "│┃┆┇┊┋╎╏║╵╷╹╻▌▐▏▎▍▕❘": "|",
    "▁▂▃▔": "_",
    "█▉▊▋▓▆▇▅▄▀■▪◼◾▣": "#",
    "░▒□▢◻◽☐": ":",
    "●•◉◦○◌⬤∙·⋅▫⬝⏺◯": ".",
    "▶►▸▹❯›»→⏵➜➤⇒⟶": ">",
    "◀◄◂❮‹«←⏴⇐": "<",
    "▲△▴▵↑⇧": "^",
    "▼▽▾▿↓⇩": "v",
    "✓✔☑": "+",
    "✗✘✕✖×☒": "x",
    "“”„″": '"',
    "‘’‚′`": "'",
    "–—−‐‑": "-",
    "…⋯": ".",
    "★☆✦✧✱✳✶✻✽✢⁕⚹∗": "*",
    "⚠⚡❗": "!",
    "⊘": "#",
    "↯": "E",
    "≠": "/",
}
_BY_CHARACTER: Final = {character: sign for characters, sign in _SIGNS.items() for character in characters}
_BOX_FIRST: Final = "\u2500"
_BOX_LAST: Final = "\u257f"
_OTHER_SIGN: Final = "*"


def ascii_signs(text: str) -> str:
    """Return the text with its signs in ASCII, each as wide as before."""
    return text if text.isascii() else "".join(map(_ascii, text))


@lru_cache(maxsize=4096)
def _ascii(character: str) -> str:
    if character.isascii():
        return character
    if (known := _BY_CHARACTER.get(character)) is not None:
        return known * cell_len(character)
    if _BOX_FIRST <= character <= _BOX_LAST:
        return "+"
    if unicodedata.category(character)[0] not in "SPZC":
        return character
    width = cell_len(character)
    return " " * width if unicodedata.category(character)[0] == "Z" else _OTHER_SIGN * width
