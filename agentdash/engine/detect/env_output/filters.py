"""Programs that read standard input, or a file, and let some of it through."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import permutations
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.builtins import not_found
from agentdash.engine.detect.env_output.editors import cut, sed
from agentdash.engine.detect.env_output.grep import grep, ripgrep
from agentdash.engine.detect.env_output.inputs import (
    UNKNOWN,
    changed,
    errors_reading,
    input_of,
    is_noise,
    lines_of,
    operands,
    single_dump,
)
from agentdash.engine.detect.env_output.line_maps import column, number_lines, replaced_sign, with_ends
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    ERROR_LINE,
    ONE_LINE,
    QUIET,
    Choice,
    Names,
    Parts,
    concrete,
    errors_of,
    joined,
)
from agentdash.engine.detect.env_output.streams import Call, Result

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
        if options == ["-n"]:
            content = _numbered(content)
        elif options in (["-A"], ["-E"], ["-e"]):
            content = _shown(content)
        else:
            content = changed(content) if is_noise(content) else (ANY,)
    errors = errors_reading(call, files)
    return [Result(out=content, err=errors, status=None if errors else 0)]


def _shown(content: Parts) -> Parts:
    if is_noise(content):
        return changed(content)
    dump = single_dump(content)
    return with_ends(dump) if dump and not dump.nul else (ANY,)


def _numbered(content: Parts) -> Parts:
    dump = single_dump(content)
    return (msgspec.structs.replace(dump, numbered=True),) if dump and not dump.nul else (ANY,)


def excerpt(call: Call) -> list[Result]:
    """Return what `head`, `tail`, `uniq`, `less` … let through: some lines, unchanged."""
    takes_value = {"head": "nc", "tail": "nc"}.get(call.name, "")
    files = operands(call.arguments, takes_value)
    content = input_of(call, files)
    errors = errors_reading(call, files)
    if call.name == "uniq" and not call.arguments and single_dump(content) is not None:
        return [Result(out=content)]
    by_bytes = any((concrete(a) or "").startswith(("-c", "--bytes", "-z")) for a in call.arguments)
    if is_noise(content):
        single = any(concrete(a) in ("-1", "-n1") for a in call.arguments) or " ".join(
            concrete(a) or "?" for a in call.arguments
        ).startswith("-n 1")
        out: Parts = (Choice(((), ONE_LINE)),) if single else content
    elif by_bytes or (dump := single_dump(content)) is None or dump.nul:
        out = (ANY,)
    else:
        out = (msgspec.structs.replace(dump, partial=True, some=False),)
    return [Result(out=out, err=errors, status=None if errors else 0)]


def pager(call: Call) -> list[Result]:
    """Return what `less` and `more` write when it is no terminal that they write to."""
    return cat(msgspec.structs.replace(call, arguments=())) if not call.arguments else list(UNKNOWN)


def sort(call: Call) -> list[Result]:
    """Return what `sort` writes: a dump in another order is the same dump."""
    options = [concrete(a) or "" for a in call.arguments]
    if any(o.startswith(("-o", "--output", "-c", "-C", "-m", "--check")) for o in options):
        return list(UNKNOWN)
    nul = any(re.fullmatch(r"-[a-zA-Z]*z[a-zA-Z]*|--zero-terminated", o) for o in options)
    files = operands(call.arguments, "ktST")
    content = input_of(call, files)
    errors = errors_reading(call, files)
    dump = single_dump(content)
    out = content if dump is not None and dump.nul is nul else _sorted(content)
    return [Result(out=out, err=errors, status=None if errors else 0)]


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
    words = [concrete(a) for a in call.arguments]
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
    return [Result(out=content if content == () else (ANY,))]


def strings(call: Call) -> list[Result]:
    """Return what `strings` writes: it makes lines of NUL-terminated entries; not every machine has it."""
    files = operands(call.arguments, "n")
    dump = single_dump(input_of(call, files))
    if dump and dump.nul and all(concrete(a) in ("-a", "-") or a in files for a in call.arguments):
        return [Result(out=(msgspec.structs.replace(dump, nul=False),)), not_found(call.name)]
    return list(UNKNOWN)


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
    if dump is None or not dump.nul or any(word is None for word in words):
        return None
    text = " ".join(word for word in words if word is not None)
    text = re.sub(r"^(?:-r|--no-run-if-empty) |(?<=-0) -r\b", "", text)
    by_line = r"(?:-0 ?-?(?:n ?1|L ?1)|-n ?1 -0|-0 -I ?(?P<mark>\S+))(?: echo(?: (?P=mark))?)?"
    if (match := re.fullmatch(by_line, text)) or text in ("-0 printf %s\\n", "-0 printf %s\n"):
        if match and match["mark"] and not text.endswith(f"echo {match['mark']}"):
            return None
        return [Result(out=(msgspec.structs.replace(dump, nul=False),))]
    if text in ("-0", "-0 echo", "--null", "--null echo"):
        return [Result(out=(msgspec.structs.replace(dump, nul=False, flat=True),))]
    return None


def tee(call: Call) -> list[Result]:
    """Return what `tee` writes, to standard output and to files."""
    content = input_of(call, [])
    state = call.state
    for argument in operands(call.arguments, ""):
        appends = any(concrete(a) in ("-a", "--append") for a in call.arguments)
        if concrete(argument) in ("/dev/stderr", "/dev/stdout", "/dev/tty"):
            return list(UNKNOWN)
        if concrete(argument) != "/dev/null":
            state = state.with_file(argument, (ANY,) if appends else content)
    return [Result(out=content, state=state), Result(out=content, err=ERROR_LINE, status=1)]


def count(call: Call) -> list[Result]:
    """Return what `wc` writes of standard input."""
    if all((concrete(a) or "").startswith("-") for a in call.arguments):
        return [Result(out=(QUIET,))]
    return [Result(out=(QUIET,), err=errors_of(call.name), status=None)]


FILTERS: Final[dict[str, Callable[[Call], list[Result]]]] = {
    "cat": cat,
    "head": excerpt,
    "tail": excerpt,
    "uniq": excerpt,
    "less": pager,
    "more": pager,
    "sort": sort,
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
