"""Short forms of numbers, times and long texts. Widths are terminal cells, not characters."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Final

from rich.cells import cell_len, chop_cells, set_cell_size

from agentdash.model.fact import ObjectForm

_PATH_PARTS: Final = re.compile(r"/*[^/]+/*|/+")
_UNITS = ((86_400 * 365, "y"), (86_400, "d"), (3_600, "h"), (60, "m"))


def age(seconds: float | None) -> str:
    """Return `2s`, `14s`, `3m`, `2h`, `5d`, `2y` in at most four cells; empty for None, `0s` if negative."""
    if seconds is None:
        return ""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def duration(seconds: float) -> str:
    """Return a duration: `0.2s`, `14s`, then as `age`."""
    return f"{max(0.0, seconds):.1f}s" if seconds < 10 else age(seconds)


def count(number: int | None) -> str:
    """Return `980`, `12.4k`, `272k`, `1.2M` in at most five cells; empty for None."""
    if number is None:
        return ""
    value, unit = float(number), ""
    for unit in ("", "k", "M", "G"):
        if value < 999.5 or unit == "G":
            break
        value /= 1_000
    return f"{value:.1f}{unit}" if unit and value < 99.95 else f"{value:.0f}{unit}"


def clock(at: float) -> str:
    """Return the local time of day, `20:14:07`."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def date(at: float) -> str:
    """Return the local date, `2026-03-11`."""
    return time.strftime("%Y-%m-%d", time.localtime(at))


def stamp(at: float, now: float) -> str:
    """Return a time: `20:14:07` if it is today, else `11 Mar 20:14`, and after 300 days `11 Mar 2025`."""
    then, today = time.localtime(at), time.localtime(now)
    if then[:3] == today[:3]:
        return clock(at)
    day = f"{then.tm_mday:2} {time.strftime('%b', then)}"
    return f"{day} {time.strftime('%H:%M' if abs(now - at) < 300 * 86_400 else '%Y', then)}"


def stamp_cells(times: Iterable[float], now: float) -> int:
    """Return the cells of the widest stamp of these times, at least those of a time of day."""
    return max([8, *(len(stamp(at, now)) for at in times)])


def pad(text: str, width: int, mark: str = "", *, right: bool = False) -> str:
    """Return `text` in exactly `width` cells: filled with spaces, or cut and ended with `mark`."""
    text = elide(text, width, mark)
    fill = " " * (width - cell_len(text))
    return fill + text if right else text + fill


def elide(text: str, width: int, mark: str) -> str:
    """Return `text` in at most `width` cells; where its end is cut off, it ends with `mark`."""
    if cell_len(text) <= width:
        return text
    room = width - cell_len(mark)
    return set_cell_size(text, room).rstrip() + mark if room >= 0 else set_cell_size(text, max(0, width))


def elide_middle(text: str, width: int, mark: str, *, keeps_head: bool = False) -> str:
    """Return `text` in at most `width` cells, cut in the middle: of paths and ids both ends matter.

    Args:
        keeps_head: two thirds of what is kept stand before the cut, else one.
    """
    if cell_len(text) <= width:
        return text
    room = width - cell_len(mark)
    if room < 2:
        return elide(text, width, mark)
    tail = room // 3 if keeps_head else room - room // 3
    return set_cell_size(text, room - tail).rstrip() + mark + set_cell_size(text[::-1], tail)[::-1].lstrip()


def elide_object(text: str, width: int, mark: str, form: ObjectForm) -> str:
    """Return the object of a fact in at most `width` cells, cut where that costs least: of a text at its end,
    of paths and commands in their middle."""
    if form is ObjectForm.TEXT:
        return elide(text, width, mark)
    return elide_middle(text, width, mark, keeps_head=form is ObjectForm.COMMAND)


def wrap(text: str, width: int) -> list[str]:
    """Return `text` in lines of at most `width` cells, broken at line breaks and spaces, and words that are
    longer than a line behind a `/`; a line that continues another is indented like it."""
    return [line for block in text.split("\n") for line in _indented(block, max(1, width))] if text else []


def _indented(text: str, width: int) -> list[str]:
    stripped = text.lstrip(" ")
    indent = min(len(text) - len(stripped), width // 2) if stripped else 0
    return [" " * indent + line for line in _wrapped(stripped, width - indent)]


def _wrapped(text: str, width: int) -> list[str]:
    lines, line = [], ""
    for word in text.split(" "):
        candidate = f"{line} {word}" if line else word
        if cell_len(candidate) <= width:
            line = candidate
        elif cell_len(word) <= width:
            lines.append(line)
            line = word
        else:
            first, *full, rest = _torn(word, width, width - cell_len(line) - 1 if line else width)
            lines += [" ".join(filter(None, (line, first))), *full] if line or first else full
            line = rest
    return [*lines, line]


def _torn(word: str, width: int, room: int) -> list[str]:
    """Return a word that is too long in pieces of at most `width` cells, the first of at most `room`, perhaps
    none: broken behind a `/` where one is in reach."""
    pieces: list[str] = []
    piece = ""
    for part in _PATH_PARTS.findall(word):
        if cell_len(piece + part) <= (width if pieces else room):
            piece += part
            continue
        pieces.append(piece)
        *full, piece = chop_cells(part, width)
        pieces += full
    return [*pieces, piece]
