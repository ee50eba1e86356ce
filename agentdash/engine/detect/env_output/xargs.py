"""What `xargs` prints of its input, and the commands that it runs with the arguments that it reads."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dump_maps import has_whole_words, mapped, on_one_line
from agentdash.engine.detect.env_output.dumps import ENV_STYLE, Dump
from agentdash.engine.detect.env_output.inputs import input_of, single_dump
from agentdash.engine.detect.env_output.patterns import ANY, Hole, Kind, Part, Parts, concrete
from agentdash.engine.detect.env_output.placeholders import refilled, with_placeholders
from agentdash.engine.detect.env_output.streams import (
    Call,
    Result,
)

_ECHO: Final = re.compile(
    r"(?P<mark>-I ?\S+ ?|-r ?)?(?:-[nL] ?\d ?|-0 ?|-d \\n ?)*(?:echo(?: (?P<text>.*))?)?", re.DOTALL
)
"""Options of `xargs` that prints its input."""
_MAX_ITEMS: Final = 20
"""Arguments that `xargs` reads."""


def xargs(call: Call) -> list[Result] | None:
    """Return what `xargs` writes where it prints its input: entries by line, or separated by blanks."""
    arguments = list(call.arguments)
    files: list[Parts] = []
    for number, argument in enumerate(arguments[:-1]):
        if concrete(argument) in ("-a", "--arg-file"):
            files = [arguments[number + 1]]
            del arguments[number : number + 2]
            break
    words = [concrete(a) for a in arguments]
    dump = single_dump(input_of(call, files))
    text = " ".join(word or "?" for word in words)
    if call.stdin == () and not files and (match := _ECHO.fullmatch(text)):
        once = Result(
            out=(f"{match['text'] or ''}\n",)
        )  # GNU's runs it once without arguments, BSD's does not
        return [Result()] if match["mark"] else [Result(), once]
    if dump is None or any(word is None for word in words):
        return None
    if not dump.nul:
        return _xargs_lines(dump, text)
    text = re.sub(r"^(?:-r|--no-run-if-empty) |(?<=-0) -r\b", "", text)
    by_line = r"(?:-0 ?-?(?:n ?1|L ?1)|-n ?1 -0|-0 -I ?(?P<mark>\S+))(?: echo(?: (?P=mark))?)?"
    if (match := re.fullmatch(by_line, text)) or re.fullmatch(r"-0(?: -n ?1)? printf %s(?:\\n|\n)", text):
        if match and match["mark"] and not text.endswith(f"echo {match['mark']}"):
            return None
        return [Result(out=(msgspec.structs.replace(dump, nul=False),))]
    if text in ("-0", "-0 echo", "--null", "--null echo"):
        return [Result(out=(msgspec.structs.replace(dump, nul=False, separator=" "),))]
    return None


def _xargs_lines(dump: Dump, text: str) -> list[Result] | None:
    """Return what `xargs` writes of the lines of a dump; at quotes in them it may stop."""
    failed = Result(out=(ANY,), err=(Hole(Kind.QUIET_LINE), "xargs: ", ANY), status=1)
    if text in ("", "echo", "-r", "-r echo") and dump.style == ENV_STYLE and not dump.numbered:
        lines = on_one_line(dump, " ")
        return [Result(out=(*lines, "\n")), failed]
    match = re.fullmatch(
        r"(?:-I ?(?P<mark>\S+)|(?P<word>-n ?1)|-L ?1|-d \\n -n ?1) echo(?P<text>(?: .*)?)", text
    )
    if match is None or (match["word"] and not has_whole_words((dump,))):
        return None
    mark = match["mark"]
    template = match["text"][1:] if mark else f"{match['text']} {{}}"[1:]
    if template.count(mark or "{}") != 1:
        return None
    before, _, after = template.partition(mark or "{}")
    return [Result(out=mapped(dump, lambda line: f"{before}{line}{after}")), failed]


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
