"""Commands that `xargs` runs, with the arguments that it reads."""

from __future__ import annotations

import re
from typing import Final

from agentdash.engine.detect.env_output.patterns import Part, Parts, concrete
from agentdash.engine.detect.env_output.placeholders import refilled, with_placeholders
from agentdash.engine.detect.env_output.streams import (
    Call,
)

_MAX_ITEMS: Final = 20
"""Arguments that `xargs` reads."""


def xargs_commands(call: Call) -> list[tuple[Parts, ...]] | None:
    """Return the commands that `xargs` runs; None where they are not known."""
    words = list(call.arguments)
    options = ""
    while words and (text := concrete(words[0])) is not None and text.startswith("-"):
        words.pop(0)
        if text in ("-n", "-L", "-I", "-d", "-P") and words:
            text += concrete(words.pop(0)) or "?"
        options += f" {text}"
    match = re.fullmatch(
        r"(?: -r| --no-run-if-empty| -P1| (?P<nul>-0|--null)| -d(?P<line>\\n|\n)|"
        r" (?:-n|-L)(?P<count>\d)| -I(?P<mark>\S+))*",
        options,
    )
    if match is None or not words:
        return None
    items = _xargs_items(call, by="\0" if match["nul"] else "\n" if match["line"] or match["mark"] else "")
    if items is None or not 0 < len(items) <= _MAX_ITEMS:
        return None
    if mark := match["mark"]:
        texts = [concrete(item) for item in items]
        if None in texts or any(concrete(word) is None for word in words):
            return None
        return [tuple((_put(word, mark, text or ""),) for word in words) for text in texts]
    size = int(match["count"] or len(items))
    batches = [items[at : at + size] for at in range(0, len(items), size or 1)]
    return [(*words, *batch) for batch in batches]


def _put(word: Parts, mark: str, text: str) -> str:
    return (concrete(word) or "").replace(mark, text)


def _xargs_items(call: Call, *, by: str) -> list[Parts] | None:
    """Return the arguments that `xargs` reads; without `by`, words."""
    holes: dict[str, Part] = {}
    text = with_placeholders(call.stdin, holes) if call.stdin is not None else None
    if text is None or (not by and re.search(r"[\"'\\]", text)):
        return None
    items = text.removesuffix(by).split(by) if by else text.split()
    if by == "\n":
        items = [item.strip() for item in items if item.strip()]
    return [refilled((item,), holes) for item in items]
