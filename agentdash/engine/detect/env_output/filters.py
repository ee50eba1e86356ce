"""Programs that read standard input, or a file, and let some of it through."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import permutations
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.builtins import not_found
from agentdash.engine.detect.env_output.dumps import ENV_STYLE, FLAG_STEM, FLAGS, Dump, LineFilter, Presence
from agentdash.engine.detect.env_output.files import file_content, is_system_file
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    ERROR_LINE,
    ONE_LINE,
    QUIET,
    Choice,
    Hole,
    Kind,
    Names,
    Part,
    Parts,
    Trimmed,
    concrete,
    errors_of,
    is_quiet,
    joined,
)
from agentdash.engine.detect.env_output.regexes import compiled
from agentdash.engine.detect.env_output.streams import Call, Result

_SAMPLES: Final = ("0", "other", "2x", "a b", "Zé-9", "none")
_MAX_SORTED: Final = 4
"""Lines of known text whose orders are all tried: `sort` depends on the locale."""
_UNKNOWN: Final = [Result(out=(ANY,), err=(ANY,), status=None)]


def _input(call: Call, files: list[Parts]) -> Parts:
    """Return what a program reads: its files, or standard input."""
    if not files:
        return call.stdin if call.stdin is not None else (QUIET,)
    parts: list[Part] = []
    for path in files:
        if concrete(path) == "-":
            parts += call.stdin if call.stdin is not None else (QUIET,)
        else:
            parts += file_content(path, call.state, call.environment)
    return joined(parts)


def _errors(call: Call, files: list[Parts]) -> Parts:
    """Return what is written where files cannot be read."""
    known = dict(call.state.files)
    safe = all(path in known or concrete(path) == "-" or _is_always_there(path) for path in files)
    return () if safe else errors_of(call.name)


def _is_always_there(path: Parts) -> bool:
    text = concrete(path)
    return text in ("/proc/self/environ", "/proc/self/status", "/dev/null") or path[:1] == ("/proc/",)


def _is_noise(content: Parts) -> bool:
    """Return whether a text is only known to name no flag; the same is true of parts of it."""
    return all(part == "\n" if isinstance(part, str) else is_quiet((part,)) for part in content)


# ---------------------------------------------------------------- cat, head, sort


def cat(call: Call) -> list[Result]:
    """Return what `cat` writes."""
    options = [
        concrete(a) or ""
        for a in call.arguments
        if (concrete(a) or "").startswith("-") and concrete(a) != "-"
    ]
    files = [a for a in call.arguments if not (concrete(a) or "").startswith("-") or concrete(a) == "-"]
    content = _input(call, files)
    if any(option not in ("-u", "--") for option in options):
        content = _numbered(content) if options == ["-n"] else (QUIET,) if _is_noise(content) else (ANY,)
    errors = _errors(call, files)
    return [Result(out=content, err=errors, status=None if errors else 0)]


def _numbered(content: Parts) -> Parts:
    dump = _single_dump(content)
    return (msgspec.structs.replace(dump, numbered=True),) if dump and not dump.nul else (ANY,)


def _single_dump(content: Parts) -> Dump | None:
    if len(content) == 1 and isinstance(content[0], Trimmed):
        content = content[0].parts
    return content[0] if len(content) == 1 and isinstance(content[0], Dump) and not content[0].flat else None


def excerpt(call: Call) -> list[Result]:
    """Return what `head`, `tail`, `uniq`, `less` … let through: some lines, unchanged."""
    takes_value = {"head": "nc", "tail": "nc"}.get(call.name, "")
    files = _operands(call.arguments, takes_value)
    content = _input(call, files)
    errors = _errors(call, files)
    by_bytes = any((concrete(a) or "").startswith(("-c", "--bytes", "-z")) for a in call.arguments)
    if _is_noise(content):
        single = any(concrete(a) in ("-1", "-n1") for a in call.arguments) or " ".join(
            concrete(a) or "?" for a in call.arguments
        ).startswith("-n 1")
        out: Parts = (Choice(((), ONE_LINE)),) if single else content
    elif by_bytes or (dump := _single_dump(content)) is None or dump.nul:
        out = (ANY,)
    else:
        out = (msgspec.structs.replace(dump, partial=True, some=False),)
    return [Result(out=out, err=errors, status=None if errors else 0)]


def pager(call: Call) -> list[Result]:
    """Return what `less` and `more` write when it is no terminal that they write to."""
    return cat(msgspec.structs.replace(call, arguments=())) if not call.arguments else list(_UNKNOWN)


def sort(call: Call) -> list[Result]:
    """Return what `sort` writes: a dump in another order is the same dump."""
    options = [concrete(a) for a in call.arguments]
    if any(o is None or o.startswith(("-o", "--output", "-c", "-C", "-m", "--check")) for o in options):
        return list(_UNKNOWN)
    nul = any(o is not None and re.fullmatch(r"-[a-zA-Z]*z[a-zA-Z]*|--zero-terminated", o) for o in options)
    files = _operands(call.arguments, "ktST")
    content = _input(call, files)
    errors = _errors(call, files)
    dump = _single_dump(content)
    out = content if dump is not None and dump.nul is nul else _sorted(content)
    return [Result(out=out, err=errors, status=None if errors else 0)]


def _sorted(content: Parts) -> Parts:
    if _is_noise(content) or (len(content) == 1 and isinstance(content[0], Names)):
        return content
    lines = _lines(content)
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


def _lines(content: Parts) -> list[Parts] | None:
    """Return text as lines, each with its line break; None where it is not known where lines end."""
    lines: list[Parts] = []
    current: list[Part] = []
    for part in content:
        if isinstance(part, str):
            for piece in part.splitlines(keepends=True) if "\r" not in part else [part]:
                current.append(piece)
                if piece.endswith("\n"):
                    lines.append(tuple(current))
                    current = []
        elif isinstance(part, Hole) and part.kind in (Kind.OTHER, Kind.DIGITS, Kind.QUIET_LINE, Kind.LINE):
            current.append(part)
        else:
            return None
    if current:
        lines.append((*current, "\n"))
    return lines


# ---------------------------------------------------------------- grep

_GREP_VALUE: Final = "eAfBCmdD"
_RG_VALUE: Final = "eAfBCmgtTrEjM"


class _Grep(msgspec.Struct):
    """A call of grep or rg, its options read."""

    pattern: re.Pattern[str] | None = None
    files: list[Parts] = []
    letters: str = ""
    longs: list[str] = []


def grep(call: Call) -> list[Result]:
    """Return what `grep` writes."""
    read = _read_grep(call, _GREP_VALUE)
    results = _grepped(call, read)
    if call.name in ("egrep", "fgrep"):
        warning: Parts = (Choice(((), (call.name, ": warning: ", Hole(Kind.QUIET_LINE), "\n"))),)
        return [msgspec.structs.replace(r, err=joined((*warning, *r.err))) for r in results]
    return results


def ripgrep(call: Call) -> list[Result]:
    """Return what `rg` writes; not every machine has it."""
    read = _read_grep(call, _RG_VALUE)
    if read is not None and not read.files and call.stdin is None:
        return [Result(out=(ANY,), err=(ANY,), status=None)]  # it searches the directory
    return [*_grepped(call, read), not_found(call.name)]


def _read_grep(call: Call, with_value: str) -> _Grep | None:
    """Return the pattern, the files and the options; None where one is known only when the script runs."""
    patterns: list[str] = []
    read = _Grep()
    words = list(call.arguments)
    has_pattern = False
    while words:
        word = words.pop(0)
        text = concrete(word)
        if text == "--":
            words, rest = [], words
            read.files += rest
        elif text is not None and text.startswith("--") and not read.files:
            name, equals, value = text.partition("=")
            if name in ("--regexp", "--file"):
                if name == "--file" or not equals:
                    return None
                patterns.append(value)
                has_pattern = True
            read.longs.append(name)
        elif text is not None and re.fullmatch(r"-[A-Za-z0-9].*", text, re.DOTALL):
            letters, value = _short_options(text, with_value)
            if value == "" and letters[-1:] in tuple(with_value) and words:
                following = concrete(words.pop(0))
                if following is None:
                    return None
                value = following
            read.letters += letters
            if letters.endswith("e"):
                patterns.append(value)
                has_pattern = True
            elif letters.endswith("f"):
                return None
        else:
            read.files.append(word)
    if not has_pattern:
        if not read.files or (first := concrete(read.files.pop(0))) is None:
            return None
        patterns.append(first)
    read.pattern = _pattern(call.name, patterns, read)
    return read


def _short_options(text: str, with_value: str) -> tuple[str, str]:
    for at, letter in enumerate(text[1:], start=1):
        if letter in with_value:
            return text[1 : at + 1], text[at + 1 :]
    return text[1:], ""


def _pattern(name: str, patterns: list[str], read: _Grep) -> re.Pattern[str] | None:
    letters, longs = read.letters, read.longs
    syntax = (
        "perl" if name == "rg" else "extended" if name == "egrep" else "fixed" if name == "fgrep" else "basic"
    )
    if ("E" in letters and name != "rg") or "--extended-regexp" in longs:
        syntax = "extended"
    if "P" in letters or "--perl-regexp" in longs:
        syntax = "perl"
    if "F" in letters or "--fixed-strings" in longs:
        syntax = "fixed"
    ignores_case = "i" in letters or "y" in letters or "--ignore-case" in longs
    if name == "rg" and ("S" in letters or "--smart-case" in longs):
        ignores_case = ignores_case or not any(c.isupper() for p in patterns for c in p)
    found = [compiled(p, syntax, ignores_case=ignores_case) for p in patterns]
    if any(f is None for f in found):
        return None
    text = "|".join(f"(?:{f.pattern})" for f in found if f is not None)
    if "x" in letters or "--line-regexp" in longs:
        text = rf"\A(?:{text})\Z"
    elif "w" in letters or "--word-regexp" in longs:
        text = rf"(?<!\w)(?:{text})(?!\w)"
    return compiled(text, "perl", ignores_case=ignores_case)


_COUNTS: Final = ("--count", "--quiet", "--silent", "--files-with-matches", "--files-without-match")
_CHANGES: Final = ("--byte-offset", "--with-filename", "--initial-tab", "--replace", "--json", "--vimgrep")


def _grepped(call: Call, read: _Grep | None) -> list[Result]:
    if read is None:
        return list(_UNKNOWN)
    letters, longs = read.letters, read.longs
    is_recursive = any(c in letters for c in "rR") and call.name != "rg"
    content = (ANY,) if is_recursive else _input(call, read.files)
    errors = _errors(call, read.files)
    if len(read.files) > 1 or any(c in letters for c in "bHTZ") or any(name in longs for name in _CHANGES):
        only_quiet = bool(read.files) and all(is_system_file(path) for path in read.files)
        return [Result(out=(QUIET,) if only_quiet else (ANY,), err=errors, status=None)]
    results = _matched(content, read)
    if "c" in letters or "--count" in longs:
        results = [Result(out=(Hole(Kind.DIGITS), "\n"), status=r.status) for r in results]
    elif any(c in letters for c in "qlL") or any(name in longs for name in _COUNTS):
        results = [Result(status=r.status) for r in results]
        if "l" in letters or "L" in letters or any(name.startswith("--files") for name in longs):
            results = [Result(out=(ANY,), status=None)]
    if errors:
        return [msgspec.structs.replace(r, err=errors, status=None) for r in results]
    return results


def _matched(content: Parts, read: _Grep) -> list[Result]:
    letters, longs = read.letters, read.longs
    inverted = "v" in letters or "--invert-match" in longs
    if _is_noise(content):
        return [Result(out=content, status=1 if content == () and not inverted else None)]
    dump = _single_dump(content)
    if dump is not None:
        return _matched_dump(dump, read, inverted=inverted)
    if len(content) == 1 and isinstance(content[0], Names):
        return _matched_names(content[0], read.pattern, inverted=inverted)
    changes = any(c in letters for c in "nomABC") or any(
        name in longs for name in ("--line-number", "--only-matching", "--max-count", "--context")
    )
    lines = _lines(content)
    if lines is None or read.pattern is None or changes:
        return [Result(out=(ANY,), status=None)]
    out: list[Part] = []
    passed: list[bool | None] = []
    for line in lines:
        passes = _passes(line, read.pattern, inverted=inverted)
        passed.append(passes)
        out += line if passes else () if passes is False else (Choice((line, ())),)
    return [Result(out=joined(out), status=0 if True in passed else None if None in passed else 1)]


def _passes(line: Parts, pattern: re.Pattern[str], *, inverted: bool) -> bool | None:
    texts = [""]
    for part in line:
        samples = (part,) if isinstance(part, str) else _SAMPLES
        texts = [text + sample for text in texts for sample in samples][:64]
    found = {(pattern.search(text.removesuffix("\n")) is None) is inverted for text in texts}
    if len(texts) > 1 and found == {False}:
        return None  # a value that was not tried may match
    return found.pop() if len(found) == 1 else None


def _matched_dump(dump: Dump, read: _Grep, *, inverted: bool) -> list[Result]:
    letters, longs = read.letters, read.longs
    if dump.nul and "z" not in letters:
        return [Result(out=(ANY,), status=None)]
    if not dump.nul and "z" in letters:
        return [Result(out=(ANY,), status=None)]
    partial = inverted or any(c in letters for c in "m") or "--max-count" in longs or read.pattern is None
    has_context = any(c in letters for c in "ABC") or any(name.endswith("context") for name in longs)
    filters = (*dump.filters, *((LineFilter(read.pattern, inverted),) if read.pattern is not None else ()))
    result = msgspec.structs.replace(dump, filters=filters, partial=dump.partial or partial)
    required = [result.required(0), result.required(1)]
    if has_context:
        result = msgspec.structs.replace(result, filters=(), partial=True)
    if "n" in letters or "--line-number" in longs:
        result = msgspec.structs.replace(result, numbered=True)
    if "o" in letters or "--only-matching" in longs:
        if not _matches_to_the_end(read.pattern):
            return [Result(out=(ANY,), status=None)]
        result = msgspec.structs.replace(result, filters=(), partial=True) if inverted else result
    if inverted:
        return [Result(out=(result,), status=None)]
    if True in required:
        return [Result(out=(result,))]
    some = msgspec.structs.replace(result, some=True)
    return [Result(out=(some,)), Result(status=1)]


def _matches_to_the_end(pattern: re.Pattern[str] | None) -> bool:
    """Return whether `grep -o` shows a flag's whole entry: from its name to the end of the line."""
    if (
        pattern is None
        or not re.fullmatch(r"(?:\(\?:)?\^.*\.[*+]\)?", pattern.pattern)
        or "|" in pattern.pattern
    ):
        return False
    for name in FLAGS:
        line = f"{name}=a b;c"
        if (match := pattern.search(line)) and match[0] != line:
            return False
    return True


def _matched_names(names: Names, pattern: re.Pattern[str] | None, *, inverted: bool) -> list[Result]:
    if pattern is None:
        return [Result(out=(Names((None, None)),), status=None)]
    kept = [(pattern.search(name) is None) is inverted for name in FLAGS]
    present = tuple(p if keep else False for p, keep in zip(names.present, kept, strict=True))
    return [Result(out=(Names((present[0], present[1])),), status=0 if True in present else None)]


# ---------------------------------------------------------------- tr, cut, sed, awk, xargs, strings, tee, wc


def tr(call: Call) -> list[Result]:
    """Return what `tr` writes; it makes lines of NUL-terminated entries."""
    words = [concrete(a) for a in call.arguments]
    content = _input(call, [])
    dump = _single_dump(content)
    if (
        dump
        and dump.nul
        and len(words) == 2
        and words[0] in ("\\0", "\\000", "\0", "\\00")
        and words[1] in ("\\n", "\n", "\\012")
    ):
        return [Result(out=(msgspec.structs.replace(dump, nul=False),))]
    return [Result(out=content if content == () else (ANY,))]


def strings(call: Call) -> list[Result]:
    """Return what `strings` writes: it makes lines of NUL-terminated entries; not every machine has it."""
    files = _operands(call.arguments, "n")
    dump = _single_dump(_input(call, files))
    if dump and dump.nul and all(concrete(a) in ("-a", "-") or a in files for a in call.arguments):
        return [Result(out=(msgspec.structs.replace(dump, nul=False),)), not_found(call.name)]
    return list(_UNKNOWN)


def cut(call: Call) -> list[Result]:
    """Return what `cut` writes: names, or the bare value where only one flag's line is left."""
    words = " ".join(concrete(a) or "?" for a in call.arguments)
    match = re.fullmatch(r"(?:-d ?['\"]?=['\"]? -f ?(1|2-?)|-f ?(1|2-?) -d ?=)", words)
    if _operands(call.arguments, "dfcb"):
        return list(_UNKNOWN)
    content = _input(call, [])
    if _is_noise(content):
        return [Result(out=content)]
    if match is None:
        return [Result(out=(ANY,))]
    return _fields(content, match[1] or match[2])


def _fields(content: Parts, field: str) -> list[Result]:
    """Return the names (`1`) or the values (`2`, `2-`) of entries."""
    dump = _single_dump(content)
    if dump is not None and field == "1" and not dump.nul and dump.style == ENV_STYLE:
        return [Result(out=(Names((dump.required(0), dump.required(1))),))]
    if dump is not None:
        content = _pinned(dump)
    lines = _lines(content)
    if lines is None:
        return [Result(out=(ANY,))]
    out: list[Part] = []
    for line in lines:
        first = line[0] if line else ""
        if not isinstance(first, str) or "=" not in first:
            return [Result(out=(ANY,))]
        name, _, rest = first.partition("=")
        value = joined((rest, *line[1:]))
        if field == "1":
            out += (name, "\n")
        elif field == "2" and (text := concrete(value)) is not None:
            out += (text.removesuffix("\n").split("=")[0], "\n")
        else:
            out += value if field == "2-" else (Hole(Kind.LINE), "\n")
    return [Result(out=joined(out))]


_PIN: Final = re.compile(r"(?:\\A)?(?:\(\?:)?\^(\w+)(?:=|\\=)\)*")


def _pinned(dump: Dump) -> Parts:
    """Return a dump of which a filter left one flag's line alone, as text; any text for other dumps."""
    for line_filter in dump.filters:
        match = _PIN.match(line_filter.pattern.pattern)
        if (
            match
            and match[1] in FLAGS
            and not line_filter.inverted
            and "|" not in line_filter.pattern.pattern
        ):
            number = FLAGS.index(match[1])
            shown = dump.shown[number]
            if dump.numbered or dump.style != ENV_STYLE or dump.required(number) is None:
                return (ANY,)
            if not dump.required(number):
                return ()
            value: Parts = (shown.text,)
            if shown.presence is Presence.OTHER:
                value = (Hole(Kind.OTHER, exclude=shown.exclude),)
            return joined((f"{match[1]}=", *value, "\n"))
    return (ANY,)


def sed(call: Call) -> list[Result]:
    """Return what `sed` writes: lines by pattern or number, names, lines of NUL-terminated entries."""
    words = [concrete(a) for a in call.arguments]
    options = [w for w in words if w in ("-n", "-E", "-r", "-e", "-s", "-u")]
    rest = [a for a, w in zip(call.arguments, words, strict=True) if w not in options]
    if not rest or (script := concrete(rest[0])) is None or script.startswith("-"):
        return list(_UNKNOWN)
    content = _input(call, rest[1:])
    errors = _errors(call, rest[1:])
    results = _edited(content, " ".join([*(o for o in options if o != "-e"), script]))
    return [msgspec.structs.replace(r, err=errors, status=None if errors else 0) for r in results]


def _edited(content: Parts, text: str) -> list[Result]:
    """Return what `sed` makes of its input; `text` is its options and its script."""
    if _is_noise(content):
        return [Result(out=content if FLAG_STEM not in text else (ANY,))]
    dump = _single_dump(content)
    if re.fullmatch(r"s([/,|])\\(?:x0|x00|o000|0)\1\\n\1g", text) and dump and dump.nul:
        return [Result(out=(msgspec.structs.replace(dump, nul=False),))]
    if dump is None or dump.nul:
        names = len(content) == 1 and isinstance(content[0], Names)
        return [Result(out=(Names((None, None)),) if names else (ANY,))]
    if re.fullmatch(r"s([/,|])=\.\*\$?\1\1", text):
        return _fields(content, "1")
    if match := re.fullmatch(
        r"(-E |-r )?(?:-n /(?P<kept>[^/]*)/p|/(?P<only>[^/]*)/!d|/(?P<dropped>[^/]*)/d)", text
    ):
        pattern = compiled(
            match["kept"] or match["only"] or match["dropped"] or "", "extended" if match[1] else "basic"
        )
        if pattern is not None:
            kept = LineFilter(pattern, inverted=match["dropped"] is not None)
            return [Result(out=(_filtered(dump, kept, partial=kept.inverted),))]
    if re.fullmatch(r"-n (?:\d+|\$)(?:,(?:\d+|\$))?p|\d+q", text):
        return [Result(out=(msgspec.structs.replace(dump, partial=True, some=False),))]
    return [Result(out=(ANY,))]


def _filtered(dump: Dump, line_filter: LineFilter, *, partial: bool = False) -> Dump:
    return msgspec.structs.replace(
        dump, filters=(*dump.filters, line_filter), partial=dump.partial or partial
    )


def awk_filter(call: Call, program: str, *, separator: str) -> list[Result] | None:
    """Return what awk writes with a program that is a pattern alone, or a pattern that prints the line."""
    content = _input(call, [])
    if _is_noise(content) and FLAG_STEM not in program:
        return [Result(out=content)]
    dump = _single_dump(content)
    if dump is None or dump.nul:
        return None
    match = re.fullmatch(r"\s*/(?P<pattern>[^/]*)/\s*(?:\{\s*print(?:\s+\$0)?;?\s*\})?\s*", program)
    if match and (pattern := compiled(match["pattern"], "extended")) is not None:
        return [Result(out=(_filtered(dump, LineFilter(pattern)),))]
    if separator == "=" and re.fullmatch(r"\s*\{\s*print\s+\$1;?\s*\}\s*", program):
        return _fields(content, "1")
    match = re.fullmatch(
        r"""\s*(?:\$1\s*==\s*"(?P<name>\w+)"|/\^(?P<start>\w+)=/)\s*\{\s*print\s+\$2;?\s*\}\s*""", program
    )
    if separator == "=" and match and (name := match["name"] or match["start"]) in FLAGS:
        pinned = re.compile(rf"^{name}=")
        return _fields((_filtered(dump, LineFilter(pinned)),), "2")
    return None


def xargs(call: Call) -> list[Result] | None:
    """Return what `xargs` writes where it prints its input: entries by line, or separated by blanks."""
    words = [concrete(a) for a in call.arguments]
    dump = _single_dump(_input(call, []))
    if dump is None or not dump.nul or any(word is None for word in words):
        return None
    text = " ".join(word for word in words if word is not None)
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
    content = _input(call, [])
    state = call.state
    for argument in _operands(call.arguments, ""):
        appends = any(concrete(a) in ("-a", "--append") for a in call.arguments)
        if concrete(argument) in ("/dev/stderr", "/dev/stdout", "/dev/tty"):
            return list(_UNKNOWN)
        if concrete(argument) != "/dev/null":
            state = state.with_file(argument, (ANY,) if appends else content)
    return [Result(out=content, state=state), Result(out=content, err=ERROR_LINE, status=1)]


def count(call: Call) -> list[Result]:
    """Return what `wc` writes of standard input."""
    if all((concrete(a) or "").startswith("-") for a in call.arguments):
        return [Result(out=(QUIET,))]
    return [Result(out=(QUIET,), err=errors_of(call.name), status=None)]


def _operands(arguments: tuple[Parts, ...], with_value: str) -> list[Parts]:
    """Return the arguments that are no options, and no values of options."""
    found: list[Parts] = []
    skips = False
    for argument in arguments:
        text = concrete(argument)
        if skips:
            skips = False
        elif text is not None and text.startswith("-") and len(text) > 1:
            skips = len(text) == 2 and text[1] in with_value
        else:
            found.append(argument)
    return found


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
    "strings": strings,
    "cut": cut,
    "sed": sed,
    "tee": tee,
    "wc": count,
}
