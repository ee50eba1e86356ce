"""Dumps in another form: their lines changed by a filter, or put on one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Presence, Shown, Style
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    QUIET,
    QUIET_TEXT,
    Choice,
    Hole,
    Kind,
    Part,
    Parts,
    Trimmed,
    is_quiet,
    joined,
)

LineMap = Callable[[str], str | None]
"""Gives what a filter writes of a line, without its line break; None where it writes nothing."""

_MARK: Final = "Zmark0Z"
_PUNCTUATED: Final = "A-b.c:d/e,f;g|h+i%j@k~l#m!n&o(p)q[r]s{t}u<v>w?x*y^z_$0"
_SAMPLES: Final = (_MARK, "0", "other", "2x", "docker", _PUNCTUATED)
"""Values on which a filter is tried that may change some values only."""
_WORD: Final = re.compile(r"\w+")


def mapped(dump: Dump, change: LineMap, program: str = "") -> Parts:
    """Return what a filter makes of a dump; any text where that is no dump of another style.

    `program` is its text: it may change values with words of it.
    """
    samples = (*_SAMPLES, *_WORD.findall(program))
    styles: set[Style] = set()
    flags: list[Shown] = []
    is_partial = dump.partial
    for number, name in enumerate(FLAGS):
        shown = dump.shown[number]
        required = dump.required(number)
        is_partial = is_partial or required is None
        style = _changed_style(change, dump.style, name, (*samples, *shown.samples))
        if style is None:
            return (ANY,)
        if style == _NOTHING:
            flags.append(Shown(Presence.ABSENT))
            continue
        styles.add(style)
        flags.append(Shown(Presence.ABSENT) if required is False else shown)
    if not styles:
        return (QUIET,)
    if (style := common_style(list(styles))) is None:
        return (ANY,)
    return (
        msgspec.structs.replace(
            dump, shown=(flags[0], flags[1]), style=style, filters=(), partial=is_partial, whole=False
        ),
    )


def common_style(styles: list[Style]) -> Style | None:
    """Return the style of lines in which names may be padded; None where they differ otherwise."""
    if styles and any(style != styles[0] for style in styles):
        styles = [squeezed(style) for style in styles]
    return None if not styles or any(style != styles[0] for style in styles) else styles[0]


def squeezed(style: Style) -> Style:
    """Return the style of lines in which there may be more blanks than one."""
    prefixes = tuple(" ".join(p.split()) + " " * p.endswith((" ", "\t")) for p in style.prefixes)
    return msgspec.structs.replace(style, prefixes=prefixes, squeezed=True)


_NOTHING: Final = Style(prefixes=())
"""Of a filter that writes nothing of a flag's line."""


def _changed_style(change: LineMap, style: Style, name: str, values: tuple[str, ...]) -> Style | None:
    """Return the style of a flag's line behind a filter; None where that depends on its value."""
    prefixes: list[str] = []
    suffixes: set[str] = set()
    dropped: set[bool] = set()
    for prefix in style.prefixes:
        for quote in ("", "'", '"') if style.quoted else ("",):
            quoted = {value: f"{quote}{value}{quote}" for value in values}
            lines = {
                value: change(prefix.replace("NAME", name) + text + style.suffix)
                for value, text in quoted.items()
            }
            dropped.add(all(line is None or "\n" in line for line in lines.values()))
            if dropped == {True}:
                continue
            before, _, after = (lines[_MARK] or "").partition(quoted[_MARK])
            spelled = {value: before + text + after for value, text in quoted.items()}
            if style.squeezed:
                spelled = {value: line.rstrip() for value, line in spelled.items()}
            if name not in before or lines != spelled or len(dropped) > 1:
                return None
            prefixes.append(before.replace(name, "NAME"))
            suffixes.add(after)
    if dropped == {True}:
        return _NOTHING
    if len(suffixes) != 1:
        return None
    return Style(
        prefixes=tuple(dict.fromkeys(prefixes)),
        suffix=suffixes.pop(),
        quoted=style.quoted,
        squeezed=style.squeezed,
    )


_LINE_SAMPLES: Final = (_MARK, "a=b: c", "declare -x q=1", "7 eight", f"{_PUNCTUATED} ='\"")
"""Texts on which a filter is tried that stand for a whole line."""


def mapped_lines(lines: list[Parts], change: LineMap, program: str = "") -> Parts:
    """Return what a filter makes of lines that are known but for holes; any text where it changes those."""
    out: list[Part] = []
    for line in lines:
        changed = _mapped_line(line, change, program)
        if changed is None:
            return (ANY,)
        out += changed
    return joined(out)


def by_line(content: Parts, change: LineMap, program: str, *, keeps_names: bool) -> Parts:
    """Return what a filter makes of text among which there may be dumps, and lines that name no flag.

    `keeps_names`: of a dump's lines it leaves the names; else only lines without a dump are known behind it.
    """
    out: list[Part] = []
    line: list[Part] = []
    is_blurred = False
    for part in (*content, None):
        if is_blurred and isinstance(part, str):
            end, line_break, part = part.partition("\n")  # noqa: PLW2901
            out += [QUIET_TEXT if is_quiet((end,)) else ANY, line_break]
            is_blurred = not line_break
        is_piece = isinstance(part, str | Hole) and is_piece_of_line(part)
        if is_blurred:
            out.append(QUIET_TEXT if part is not None and is_quiet((part,)) else ANY)
        elif is_piece and isinstance(part, str):
            *whole, rest = part.split("\n")
            for text in whole:
                out += mapped_lines([(*line, text, "\n")], change, program)
                line = []
            line += [rest] if rest else []
        elif is_piece and part is not None:
            line.append(part)
        elif line and part is None:
            out += mapped_lines([(*line, "\n")], change, program)
        elif line:  # it goes on with text of which no more is known
            out.append(QUIET_TEXT if part is not None and is_quiet((*line, part)) else ANY)
            line = []
            is_blurred = True
        elif isinstance(part, Dump) and keeps_names and not part.nul and not part.separator:
            out += mapped(part, change, program)
        elif part is not None:
            out.append(QUIET if is_quiet((part,)) else ANY)
    return joined(out)


def is_piece_of_line(part: Part) -> bool:
    """Return whether a part is literal, or text without a line break."""
    kinds = (Kind.OTHER, Kind.DIGITS, Kind.QUIET_LINE, Kind.LINE)
    return isinstance(part, str) or (isinstance(part, Hole) and part.kind in kinds)


def _mapped_line(line: Parts, change: LineMap, program: str) -> Parts | None:
    """Return what a filter makes of a line; None where that depends on text that is not known."""
    match line:
        case (*before, str() as last):
            line = joined((*before, last.removesuffix("\n")))
        case _:
            pass
    found = _changed(line, change, program)
    return None if found is None else () if found == _DROPPED else joined((*found, "\n"))


def mapped_text(text: Parts, change: Callable[[str], str], program: str) -> Parts | None:
    """Return what a function makes of a text; None where that depends on what is not known."""
    return _changed(text, change, program) if all(map(is_piece_of_line, text)) else None


_DROPPED: Final[Parts] = ("\0",)
"""Of a line that a filter does not write."""


def _changed(line: Parts, change: LineMap, program: str) -> Parts | None:
    """Return what a filter makes of text with holes, of which it may leave some out."""
    holes = [part for part in line if not isinstance(part, str)]
    kinds = {part.kind for part in holes if isinstance(part, Hole)}
    samples = _LINE_SAMPLES if kinds - {Kind.OTHER, Kind.DIGITS} else _SAMPLES
    written = {_around(line, sample, change) for sample in (samples if holes else ("",))}
    if len(written) != 1:
        return None
    if (texts := written.pop()) is None:
        return _DROPPED
    result: list[Part] = [texts[0] or ""]
    for hole, text in zip(holes, texts[1:], strict=True):
        result += [] if text is None else [hole, text]
    for word in {*_WORD.findall(program), "0", "other", "docker"} if holes else ():
        spelled = "".join(part if isinstance(part, str) else word for part in result)
        if change("".join(part if isinstance(part, str) else word for part in line)) != spelled:
            return None
    return joined(result)


def _around(line: Parts, sample: str, change: LineMap) -> tuple[str | None, ...] | None:
    """Return the text before a line's first hole and behind each of them, None for one that is left out."""
    holes = sum(not isinstance(part, str) for part in line)
    marks = [f"{sample}{_MARK}{number}Q{sample}" for number in range(holes)]
    following = iter(marks)
    rest = change("".join(part if isinstance(part, str) else next(following) for part in line))
    if rest is None:
        return None
    texts: list[str | None] = ["", *[None] * holes]
    owner = 0
    for number, mark in enumerate(marks, start=1):
        before, is_there, behind = rest.partition(mark)
        if is_there:
            texts[owner] = before
            owner = number
            rest = behind
    texts[owner] = rest
    return tuple(texts)


_OF_CODEX: Final = re.compile(r"(?:\\A)?(?:\(\?:)*\^CODEX_")


def has_whole_words(parts: Parts) -> bool:
    """Return whether the words of a text that name a flag are its lines: other values may hold such words.

    It is so of text without a dump, and of a dump in which variables of Codex are left alone.
    """
    for part in parts:
        match part:
            case Trimmed(parts=inner):
                if not has_whole_words(inner):
                    return False
            case Dump(filters=filters):
                patterns = [f.pattern.pattern for f in filters if not f.inverted]
                if not any(_OF_CODEX.match(p) and "|" not in p for p in patterns):
                    return False
            case _:
                pass
    return True


def spread(parts: Parts) -> Parts:
    """Return the words of a text with a blank between them, as `echo $(…)` writes them."""
    match parts:
        case () | ("\n",):
            return ()
        case (Trimmed(parts=inner),):
            return spread(inner)
        case (Choice(options=options),):
            return (Choice(tuple(spread(option) for option in options)),)
        case (Dump(style=style, nul=False, separator="", numbered=False) as dump,) if (
            style.prefixes == ("NAME=",) and style.suffix == ""
        ):
            return on_one_line(dump, " ")
        case _:
            return (ANY,)


SHOWN_NUL: Final = "^@"
"""How `cat -v` writes NUL."""


def on_one_line(dump: Dump, separator: str) -> Parts:
    """Return a dump with a separator in place of its line breaks."""
    required = (dump.required(0), dump.required(1))
    absent = Shown(Presence.ABSENT)
    first, second = (absent if r is False else s for r, s in zip(required, dump.shown, strict=True))
    flat = msgspec.structs.replace(
        dump,
        shown=(first, second),
        separator=separator,
        partial=dump.partial or None in required,
        filters=(),
        whole=False,
    )
    return (Trimmed((flat,)),)
