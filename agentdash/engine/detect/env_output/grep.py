"""grep and rg: which lines they let through."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.dumps import (
    FLAGS,
    Dump,
    LineFilter,
)
from agentdash.engine.detect.env_output.files import OTHER_STATUS, is_system_file
from agentdash.engine.detect.env_output.inputs import (
    errors_reading,
    input_of,
    is_noise,
    lines_of,
    single_dump,
)
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    QUIET,
    Choice,
    Hole,
    Kind,
    Names,
    Part,
    Parts,
    concrete,
    is_quiet,
    joined,
)
from agentdash.engine.detect.env_output.regexes import compiled
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result

_SAMPLES: Final = ("0", "other", "2x", "a b", "Zé-9", "none")
_FLAG_LINE: Final = re.compile(rf"(?:\(\?:)*(?:\^|\\A)(?:\(\?:|\^)*(?:{'|'.join(FLAGS)})=")
"""The beginning of a pattern that matches lines of one flag alone: `^NAME=`."""
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
        return UNKNOWN  # it searches the directory
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
                if (following := concrete(words.pop(0))) is None:
                    return None
                value = following
            if letters[-1:] in tuple("ABC") and value == "0":
                letters = letters[:-1]  # no line of context
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


_SILENT: Final = ("--quiet", "--silent")
_CHANGES: Final = ("--byte-offset", "--with-filename", "--initial-tab", "--replace", "--json", "--vimgrep")


def _grepped(call: Call, read: _Grep | None) -> list[Result]:
    if read is None:
        return UNKNOWN
    letters, longs = read.letters, read.longs
    is_recursive = any(c in letters for c in "rR") and call.name != "rg"
    content = (ANY,) if is_recursive else input_of(call, read.files)
    errors = errors_reading(call, read.files)
    if len(read.files) > 1 or any(c in letters for c in "bHTZ") or any(name in longs for name in _CHANGES):
        only_quiet = bool(read.files) and all(is_system_file(path) for path in read.files)
        return [Result(out=(OTHER_STATUS,) if only_quiet else (ANY,), err=errors, status=None)]
    results = _matched(content, read)
    if "c" in letters or "--count" in longs:  # a count or a status is no dump: it proves no absence
        return [Result(out=(Hole(Kind.DIGITS), "\n"), err=errors, status=None)]
    if any(c in letters for c in "lL") or any(name.startswith("--files") for name in longs):
        return [Result(out=(ANY,), err=errors, status=None)]
    if "q" in letters or any(name in longs for name in _SILENT):
        # under `pipefail` the end of `grep -q` can stop the dumper before it
        found = {r.status for r in results} if not errors and not call.state.pipefail else set()
        return [Result(err=errors, status=found.pop() if len(found) == 1 else None)]
    if errors:
        return [msgspec.structs.replace(r, err=errors, status=None) for r in results]
    return results


def _matched(content: Parts, read: _Grep) -> list[Result]:
    letters, longs = read.letters, read.longs
    inverted = "v" in letters or "--invert-match" in longs
    if is_noise(content):
        return [Result(out=content, status=1 if content == () and not inverted else None)]
    match content:
        case (Hole(kind=Kind.MARKED),) if not letters.strip("ivEFPwx") and not longs:
            return [Result(out=content, status=None)]
        case _:
            dump = single_dump(content)
    if dump is not None:
        return _matched_dump(dump, read, inverted=inverted)
    if len(content) == 1 and isinstance(content[0], Names):
        return _matched_names(content[0], read.pattern, inverted=inverted)
    changes = any(c in letters for c in "nomABC") or any(
        name in longs for name in ("--line-number", "--only-matching", "--max-count", "--context")
    )
    lines = lines_of(content)
    if lines is None and not changes and not inverted:
        return _matched_segments(content, read)
    if lines is None or read.pattern is None or changes:
        return [Result(out=(ANY,), status=None)]
    out: list[Part] = []
    passed: list[bool | None] = []
    for line in lines:
        passes = _passes(line, read.pattern, inverted=inverted)
        passed.append(passes)
        out += line if passes else () if passes is False else (Choice((line, ())),)
    return [Result(out=joined(out), status=0 if True in passed else None if None in passed else 1)]


def _matched_segments(content: Parts, read: _Grep) -> list[Result]:
    """Return what `grep` passes of a dump among other output: `(env; id) | grep …`."""
    out: list[Part] = []
    is_found = False
    others: list[Part] = []
    for part in (*content, None):
        if part is not None and not isinstance(part, Dump):
            others.append(part)
            continue
        if not is_quiet(tuple(others)) or not _ends_line(tuple(others)):
            return [Result(out=(ANY,), status=None)]
        out += [QUIET] if others else []
        others = []
        if part is not None:
            if part.separator:
                return [Result(out=(ANY,), status=None)]
            results = _matched_dump(part, read, inverted=False)
            is_found = is_found or all(result.status == 0 for result in results)
            out.append(Choice(tuple(result.out for result in results)))
    return [Result(out=joined(out), status=0 if is_found else None)]


def _ends_line(parts: Parts) -> bool:
    """Return whether text is empty, or ends with a line break."""
    if not parts:
        return True
    match parts[-1]:
        case str() as text:
            return text.endswith("\n")
        case Hole(kind=Kind.QUIET | Kind.ERRORS):
            return True
        case Choice(options=options):
            return all(_ends_line((*parts[:-1], *option)) for option in options)
        case _:
            return False


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
    partial = any(c in letters for c in "m") or "--max-count" in longs or read.pattern is None
    has_context = any(c in letters for c in "ABC") or any(name.endswith("context") for name in longs)
    filters = (*dump.filters, *((LineFilter(read.pattern, inverted),) if read.pattern is not None else ()))
    result = msgspec.structs.replace(dump, filters=filters, partial=dump.partial or partial)
    required = [result.required(0), result.required(1)]
    if has_context:
        result = msgspec.structs.replace(result, filters=(), partial=True, some=True in required)
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
    if required == [False, False] and _is_of_flags(read.pattern):
        return [Result(status=1)]
    some = msgspec.structs.replace(result, some=True)
    return [Result(out=(some,)), Result(status=1)]


def _is_of_flags(pattern: re.Pattern[str] | None) -> bool:
    """Return whether only lines of the flags can match: it begins with the name of one and `=`."""
    if pattern is None or "|" in pattern.pattern or pattern.flags & re.IGNORECASE:
        return False
    return bool(_FLAG_LINE.match(pattern.pattern))


def _matches_to_the_end(pattern: re.Pattern[str] | None) -> bool:
    """Return whether `grep -o` shows whole entries: the pattern begins with them and takes all behind."""
    if (
        pattern is None
        or not re.fullmatch(r"(?:\(\?:)?\^.*\.[*+]\$?\)?", pattern.pattern)
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
