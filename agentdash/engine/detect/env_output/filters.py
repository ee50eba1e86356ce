"""Programs that read standard input, or a file, and let some of it through."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import permutations
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.columns import column, lines_on_one, paste
from agentdash.engine.detect.env_output.comparison import comm, diff
from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.dump_maps import (
    SHOWN_NUL,
    LineMap,
    by_line,
    is_piece_of_line,
    mapped_lines,
    on_one_line,
)
from agentdash.engine.detect.env_output.dumps import PYTHON_STYLE, Dump, Presence, Shown
from agentdash.engine.detect.env_output.editors import cut, pinned_line, sed
from agentdash.engine.detect.env_output.grep import grep, ripgrep
from agentdash.engine.detect.env_output.inputs import (
    changed,
    input_of,
    is_noise,
    lines_of,
    operands,
    read_results,
    single_dump,
)
from agentdash.engine.detect.env_output.line_maps import number_lines, numbered, replaced_sign, with_ends
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    ERROR_LINE,
    ONE_LINE,
    QUIET,
    Choice,
    Excerpt,
    Hole,
    Kind,
    Names,
    Part,
    Parts,
    concrete,
    errors_of,
    joined,
)
from agentdash.engine.detect.env_output.records import Record
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result

_LOWER: Final = "abcdefghijklmnopqrstuvwxyz"
_CLASSES: Final = {
    "[:upper:]": _LOWER.upper(),
    "[:lower:]": _LOWER,
    "A-Z": _LOWER.upper(),
    "a-z": _LOWER,
    "[:digit:]": "0123456789",
    "0-9": "0123456789",
}
_MAX_SORTED: Final = 4
"""Lines of known text whose orders are all tried: `sort` depends on the locale."""


# ---------------------------------------------------------------- cat, head, sort


def cat(call: Call) -> list[Result]:
    """Return what `cat` writes."""
    options = [
        concrete(a) or ""
        for a in call.arguments
        if (concrete(a) or "").startswith("-") and concrete(a) != "-"
    ]
    files = [a for a in call.arguments if not (concrete(a) or "").startswith("-") or concrete(a) == "-"]
    content = input_of(call, files)
    if any(option not in ("-u", "--") for option in options):
        if options in (["-n"], ["-b"]):
            content = numbered(content)
        elif options in (["-A"], ["-E"], ["-e"], ["-v"]):
            content = _shown(content, options[0][1])
        else:
            content = changed(content) if is_noise(content) else (ANY,)
    return read_results(call, files, content)


def _shown(content: Parts, option: str) -> Parts:
    """Return text in which `cat -A` marks line ends, and `cat -v` control characters alone."""
    if is_noise(content):
        return changed(content)
    dump = single_dump(content)
    if dump and dump.nul:
        return on_one_line(msgspec.structs.replace(dump, nul=False), SHOWN_NUL) if option in "Aev" else (ANY,)
    if option == "v":
        return content if dump else (ANY,)
    return with_ends(dump) if dump else (ANY,)


def excerpt(call: Call) -> list[Result]:
    """Return what `head`, `tail`, `uniq`, `less` … let through: some lines, unchanged."""
    takes_value = {"head": "nc", "tail": "nc"}.get(call.name, "")
    files = operands(call.arguments, takes_value)
    if call.name == "uniq" and len(files) > 1:  # it writes the second
        return UNKNOWN
    content = input_of(call, files)
    if call.name == "uniq" and (dump := single_dump(content)) is not None:
        words = call.words
        if words in ([], ["-c"]) and not dump.nul:
            return [Result(out=(msgspec.structs.replace(dump, numbered=bool(words)),))]
    by_bytes = any((concrete(a) or "").startswith(("-c", "--bytes", "-z")) for a in call.arguments)
    limit = _limit(call)
    if call.name == "tail" and (rest := _from_line(call, content)) is not None:
        return read_results(call, files, rest)
    if (dump := single_dump(content)) is not None and (pinned := pinned_line(dump)) is not None:
        content = pinned
    if content == ():
        out: Parts = ()
    elif is_noise(content):
        single = any(concrete(a) in ("-1", "-n1") for a in call.arguments) or call.line.startswith("-n 1")
        out = (Choice(((), ONE_LINE)),) if single else content
    elif limit and _is_short_form(content, limit):
        out = content
    elif limit and (lines := lines_of(content)) is not None:
        kept = lines[:limit] if call.name == "head" else lines[-limit:]
        out = joined(part for line in kept for part in line)
    elif limit and not any(isinstance(part, Dump) and (part.nul or not part.filters) for part in content):
        out = (Excerpt(content, limit, is_start=call.name == "head"),)
    elif by_bytes or (dump := single_dump(content)) is None or dump.nul:
        out = (ANY,)
    else:
        out = (msgspec.structs.replace(dump, partial=True, some=False),)
    return read_results(call, files, out)


def _from_line(call: Call, content: Parts) -> Parts | None:
    """Return what `tail -n +2` writes of text that begins with lines that are known; None for others."""
    words = call.line
    match = re.fullmatch(r"(?:-n ?|--lines=)?\+(?P<first>\d{1,3})", words)
    skipped = int(match["first"]) - 1 if match else -1
    for number, part in enumerate(content):
        if skipped <= 0 or not is_piece_of_line(part):
            break
        if isinstance(part, str) and part.count("\n") >= skipped:
            return joined((part.split("\n", skipped)[skipped], *content[number + 1 :]))
        skipped -= part.count("\n") if isinstance(part, str) else 0
    return content if skipped == 0 else None


def _is_short_form(content: Parts, lines: int) -> bool:
    """Return whether text in another form is told from the forms that it is not by so many lines."""
    match content:
        case (Hole(kind=Kind.ENCODED, exclude=exclude),):
            return all(form.count("\n") <= lines for form in exclude)
        case _:
            return False


def _limit(call: Call) -> int | None:
    """Return how many lines `head` or `tail` lets through; None where that is not known."""
    words = [concrete(a) or "?" for a in call.arguments if concrete(a) not in ("-q", "--quiet")]
    if call.name not in ("head", "tail"):
        return None
    if not words or not words[0].startswith("-"):
        return 10
    match = re.match(r"(?:-n ?|--lines[= ]|-)([1-9]\d{0,5})(?: |$)", " ".join(words))
    return int(match[1]) if match else None


def pager(call: Call) -> list[Result]:
    """Return what `less` and `more` write when it is no terminal that they write to."""
    return cat(msgspec.structs.replace(call, arguments=())) if not call.arguments else UNKNOWN


def sort(call: Call) -> list[Result]:
    """Return what `sort` writes: a dump in another order is the same dump."""
    options = [concrete(a) or "" for a in call.arguments]
    if any(o.startswith(("-o", "--output", "-c", "-C", "-m", "--check")) for o in options):
        return UNKNOWN
    nul = any(re.fullmatch(r"-[a-zA-Z]*z[a-zA-Z]*|--zero-terminated", o) for o in options)
    files = operands(call.arguments, "ktST")
    content = input_of(call, files)
    dump = single_dump(content)
    out = content if dump is not None and dump.nul is nul else _sorted(content)
    return read_results(call, files, out)


def _sorted(content: Parts) -> Parts:
    if is_noise(content) or (len(content) == 1 and isinstance(content[0], Names)):
        return content
    lines = lines_of(content)
    if lines is None or len(lines) > _MAX_SORTED:
        return (ANY,)
    orders = tuple(
        dict.fromkeys(joined(part for line in order for part in line) for order in permutations(lines))
    )
    unique = tuple(
        dict.fromkeys(
            joined(part for line in order for part in line) for order in permutations(dict.fromkeys(lines))
        )
    )
    return orders[0] if len(orders) == 1 else (Choice((*orders, *unique)),)


# ---------------------------------------------------------------- tr, xargs, strings, tee, wc


def tr(call: Call) -> list[Result]:
    """Return what `tr` writes; it makes lines of NUL-terminated entries."""
    words = call.words
    content = input_of(call, [])
    dump = single_dump(content)
    if (
        dump
        and dump.nul
        and len(words) == 2
        and words[0] in ("\\0", "\\000", "\0", "\\00")
        and words[1] in ("\\n", "\n", "\\012")
    ):
        return [Result(out=(msgspec.structs.replace(dump, nul=False),))]
    if dump and not dump.nul and words in (["-d", "\\r"], ["-d", "\r"]):
        return [Result(out=content)]  # no flag's value has one
    if dump and not dump.nul and words[0] == "=" and words[1:] in ([" "], [":"], ["\\t"]):
        return [Result(out=replaced_sign(dump, (words[1] or "").replace("\\t", "\t")))]
    if words in (["-d", "\\n"], ["-d", "\n"]) and lines_of(content) is not None:
        return [Result(out=joined(p.replace("\n", "") if isinstance(p, str) else p for p in content))]
    if words[:1] in (["\\n"], ["\n"], ["\\012"]) and len(words) == 2 and words[1] and len(words[1]) == 1:
        if lines_of(content) is not None:
            replaced = (p.replace("\n", words[1]) if isinstance(p, str) else p for p in content)
            return [Result(out=joined(replaced))]
        return [Result(out=lines_on_one(content, words[1]))]
    if len(words) == 2 and words[0] == " " and words[1] in ("\\n", "\n") and lines_of(content) is not None:
        # no flag's value has a blank in it
        known = all(not isinstance(p, Hole) or p.kind in (Kind.OTHER, Kind.DIGITS) for p in content)
        out = joined(p.replace(" ", "\n") if isinstance(p, str) else p for p in content)
        return [Result(out=out if known else (ANY,))]
    if words in ([",", "\\n"], [",", "\n"]) and (entries := _entries(content)) is not None:
        return [Result(out=entries)]
    lines = lines_of(content)
    if (
        len(words) == 2
        and words[1] in ("\\n", "\n")
        and re.fullmatch(r"[^\w\s\\[-]", words[0] or "")
        and lines
    ):
        return [Result(out=_broken(content, words[0] or ""))]
    change = _translation(words)
    if change is None or lines is None:
        return [Result(out=content if content == () else (ANY,))]
    return [Result(out=mapped_lines(lines, change))]


def _broken(content: Parts, mark: str) -> Parts:
    """Return lines with line breaks in place of a mark, which may stand in values that are not known."""
    line = Hole(Kind.LINE)
    out: list[Part] = []
    for part in content:
        if isinstance(part, str):
            out.append(part.replace(mark, "\n"))
        elif isinstance(part, Hole) and part.kind is Kind.OTHER:
            out.append(Choice(((part,), (line, "\n", line), (line, "\n", line, "\n", ANY))))
        else:
            out.append(part if isinstance(part, Hole) and part.kind is Kind.DIGITS else ANY)
    return joined(out)


def _translation(words: list[str | None]) -> LineMap | None:
    """Return what `tr` does with a line where it replaces or deletes single characters; None for others."""
    texts = [_CLASSES.get(word or "", word or "\\") for word in words]
    if any("\\" in text or "\n" in text or "[" in text for text in texts) or len(texts) != len(
        ("set", "set")
    ):
        return None
    first, second = texts
    if first in ("-d", "--delete"):
        return lambda line: line.translate(dict.fromkeys(map(ord, second)))
    if first.startswith("-") or not second or any("-" in text[1:-1] for text in texts):
        return None
    padded = second.ljust(len(first), second[-1])
    return lambda line: line.translate({ord(a): b for a, b in reversed([*zip(first, padded, strict=False)])})


def _entries(content: Parts) -> Parts | None:
    """Return the entries of a dictionary of Python on lines of their own; None for other texts."""
    match content:
        case (Record(indent=0, is_python=False) as record, "\n"):
            absent = Shown(Presence.ABSENT)
            first, second = (
                shown if required is not False else absent
                for shown, required in zip(record.shown, record.required, strict=True)
            )
            is_partial = None in record.required
            return (Dump(shown=(first, second), style=PYTHON_STYLE, partial=is_partial),)
        case _:
            return None


def strings(call: Call) -> list[Result]:
    """Return what `strings` writes: it makes lines of NUL-terminated entries; not every machine has it."""
    files = operands(call.arguments, "n")
    dump = single_dump(input_of(call, files))
    if dump and dump.nul and all(concrete(a) in ("-a", "-") or a in files for a in call.arguments):
        return [Result(out=(msgspec.structs.replace(dump, nul=False),)), not_found(call.name)]
    return UNKNOWN


def tee(call: Call) -> list[Result]:
    """Return what `tee` writes, to standard output and to files."""
    content = input_of(call, [])
    state = call.state
    for argument in operands(call.arguments, ""):
        appends = any(concrete(a) in ("-a", "--append") for a in call.arguments)
        if concrete(argument) == "/dev/stderr":
            return [Result(out=content, err=content, state=state)]
        if concrete(argument) in ("/dev/stdout", "/dev/tty"):
            return UNKNOWN
        if concrete(argument) != "/dev/null":
            state = state.with_file(argument, (ANY,) if appends else content)
    return [Result(out=content, state=state), Result(out=content, err=ERROR_LINE, status=1)]


def count(call: Call) -> list[Result]:
    """Return what `wc` writes of standard input."""
    if all((concrete(a) or "").startswith("-") for a in call.arguments):
        return [Result(out=(QUIET,))]
    return [Result(out=(QUIET,), err=errors_of(call.name), status=None)]


def reversed_lines(call: Call) -> list[Result]:
    """Return what `tac` writes: a dump in another order is the same dump."""
    if call.arguments:
        return UNKNOWN
    content = input_of(call, [])
    if is_noise(content) or single_dump(content) is not None:
        return [Result(out=content)]
    lines = lines_of(content)
    return [Result(out=(ANY,) if lines is None else joined(part for line in lines[::-1] for part in line))]


def expand(call: Call) -> list[Result]:
    """Return what `expand` writes: blanks for tabs."""
    options = re.fullmatch(r"(?:(?:-t ?|--tabs=)?(?P<size>[1-9]\d?))?", call.line)
    if options is None:
        return UNKNOWN
    size = int(options["size"] or 8)
    return [Result(out=by_line(input_of(call, []), lambda line: line.expandtabs(size), "", keeps_names=True))]


FILTERS: Final[dict[str, Callable[[Call], list[Result]]]] = {
    "cat": cat,
    "head": excerpt,
    "tail": excerpt,
    "uniq": excerpt,
    "paste": paste,
    "less": pager,
    "more": pager,
    "sort": sort,
    "tac": reversed_lines,
    "expand": expand,
    "diff": diff,
    "comm": comm,
    "grep": grep,
    "egrep": grep,
    "fgrep": grep,
    "rg": ripgrep,
    "tr": tr,
    "column": column,
    "nl": number_lines,
    "strings": strings,
    "cut": cut,
    "sed": sed,
    "tee": tee,
    "wc": count,
}
