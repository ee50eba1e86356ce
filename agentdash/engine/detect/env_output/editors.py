"""cut, sed and awk: lines by pattern, names, and the bare value of a flag whose line alone is left."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dump_maps import (
    SHOWN_NUL,
    LineMap,
    by_line,
    mapped,
    mapped_lines,
)
from agentdash.engine.detect.env_output.dumps import (
    ENV_STYLE,
    FLAG_STEM,
    FLAGS,
    Dump,
    LineFilter,
    Presence,
)
from agentdash.engine.detect.env_output.inputs import (
    changed,
    errors_reading,
    filtered,
    input_of,
    is_noise,
    lines_of,
    operands,
    single_dump,
)
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Hole,
    Kind,
    Names,
    Part,
    Parts,
    Trimmed,
    concrete,
    either,
    joined,
)
from agentdash.engine.detect.env_output.regexes import compiled
from agentdash.engine.detect.env_output.sed_programs import SedProgram, numbered_lines, sed_program
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result


def cut(call: Call) -> list[Result]:
    """Return what `cut` writes: names, or the bare value where only one flag's line is left."""
    words = call.line
    match = re.fullmatch(r"(?:-d ?['\"]?=['\"]? -f ?(1|2-?)|-f ?(1|2-?) -d ?=)", words)
    is_start = re.fullmatch(r"-c ?1?-(\d+)", words)
    if re.fullmatch(r"-d ?= -f ?(?:1,2|1-)", words) or (is_start and int(is_start[1]) >= _WIDE):
        # no flag's line is longer, or has another equals sign
        return [Result(out=input_of(call, []) if not operands(call.arguments, "dfcb") else (ANY,))]
    files = operands(call.arguments, "dfcb")
    if files:
        options = tuple(argument for argument in call.arguments if argument not in files)
        read = cut(msgspec.structs.replace(call, arguments=options, stdin=input_of(call, files)))
        return [msgspec.structs.replace(result, err=errors_reading(call, files)) for result in read]
    content = input_of(call, [])
    if is_noise(content):
        return [Result(out=changed(content))]
    if match is not None:
        return fields(content, match[1] or match[2])
    change = _columns(words)
    if change is None:
        return [Result(out=(ANY,))]
    if (dump := single_dump(content)) is not None:
        return [Result(out=(ANY,) if dump.nul else mapped(dump, change, words))]
    lines = lines_of(content)
    return [Result(out=(ANY,) if lines is None else mapped_lines(lines, change, words))]


def _columns(words: str) -> LineMap | None:
    """Return what `cut -d: -f1-2` does with a line; None for other options."""
    match = re.fullmatch(
        r"(?:-d ?(?P<sign>\S| (?= ))|-f ?(?P<first>\d)(?:(?P<to>[,-])(?P<last>\d?))?| "
        r"|--output-delimiter=(?P<between>.*))*",
        words,
    )
    if match is None or match["first"] is None or (match["to"] == "," and not match["last"]):
        return None
    sign, first = match["sign"] or "\t", int(match["first"])
    last = (int(match["last"]) if match["last"] else None) if match["to"] else first

    def change(line: str) -> str:
        fields = line.split(sign)
        kept = fields[first - 1 : last]
        if match["to"] == "," and last is not None and first < last:
            kept = [*fields[first - 1 : first], *fields[last - 1 : last]]
        between = sign if match["between"] is None else match["between"]
        return line if len(fields) == 1 else between.join(kept)

    return change


_WIDE: Final = 60
"""Characters in which the line of a flag with its value has room."""


def fields(content: Parts, field: str) -> list[Result]:
    """Return the names (`1`) or the values (`2`, `2-`) of entries."""
    dump = single_dump(content)
    if dump is not None and field == "1" and not dump.nul and dump.style == ENV_STYLE:
        return [Result(out=(Names((dump.required(0), dump.required(1))),))]
    if dump is not None:
        if (pinned := pinned_line(dump)) is None:
            return [Result(out=(ANY,))]
        content = pinned
    lines = lines_of(content)
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
            out += value  # a flag's value has no `=` in it
    return [Result(out=joined(out))]


_PIN: Final = re.compile(r"(?:\\A)?(?:\(\?:)?\^(\w+)(?:=|\\=)\)*")


def pinned_line(dump: Dump) -> Parts | None:
    """Return a dump of which a filter left one flag's line alone, as text; None for other dumps."""
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
            if dump.numbered or dump.nul or dump.style != ENV_STYLE or dump.required(number) is None:
                return None
            if not dump.required(number):
                return ()
            value: Parts = (shown.text,)
            if shown.presence is Presence.OTHER:
                value = (Hole(Kind.OTHER, exclude=shown.exclude),)
            return joined((f"{match[1]}=", *value, "\n"))
    return None


def sed(call: Call) -> list[Result]:
    """Return what `sed` writes: lines by pattern or number, names, lines of NUL-terminated entries."""
    words = call.words
    if (kept := _kept_lines(words)) is not None and (dump := single_dump(input_of(call, []))):
        return [Result(out=(filtered(dump, LineFilter(kept)),))]
    letters, scripts, files = "", [], []
    rest = list(call.arguments)
    while rest:
        word = rest.pop(0)
        text = concrete(word) or ""
        if re.fullmatch(r"-[nErsu]*e", text) and rest:
            letters += text
            scripts.append(concrete(rest.pop(0)))
        elif text.startswith("-") and len(text) > 1:
            if not re.fullmatch(r"-[nErsu]+|--(?:quiet|silent|regexp-extended|posix)", text):
                return UNKNOWN
            letters += {"--quiet": "n", "--silent": "n", "--regexp-extended": "E"}.get(text, text)
        elif scripts:
            files.append(word)
        else:
            scripts.append(concrete(word))
    if not scripts or any(script is None for script in scripts):
        return UNKNOWN
    content = input_of(call, files)
    errors = errors_reading(call, files)
    script = "\n".join(script for script in scripts if script is not None)
    results = _edited(content, script, is_extended="E" in letters or "r" in letters, is_silent="n" in letters)
    return [msgspec.structs.replace(r, err=errors, status=None if errors else 0) for r in results]


def _kept_lines(words: list[str | None]) -> re.Pattern[str] | None:
    """Return what lines have that `sed -n -e /a/p -e /b/p` writes; None for other commands."""
    scripts = [word for word in words if word not in ("-n", "-e", "-E", "-r")]
    if "-n" not in words or words.count("-e") < 2 or words.count("-e") != len(scripts):
        return None
    syntax = "extended" if {"-E", "-r"} & set(words) else "basic"
    found = [re.fullmatch(r"/([^/]*)/p", script or "") for script in scripts]
    patterns = [compiled(match[1], syntax) for match in found if match]
    if len(patterns) != len(scripts) or any(pattern is None for pattern in patterns):
        return None
    sources = [pattern.pattern for pattern in patterns if pattern is not None]
    if not all(re.fullmatch(r"\^(\w+)=", source) for source in sources) or len(set(sources)) != len(sources):
        return None  # a line that several match is written several times
    return compiled("|".join(f"(?:{source})" for source in sources), "perl")


def _edited(content: Parts, script: str, *, is_extended: bool, is_silent: bool) -> list[Result]:
    """Return what `sed` makes of its input."""
    text = f"{'-n ' if is_silent else ''}{'-E ' if is_extended else ''}{script}"
    if is_noise(content):
        return [Result(out=changed(content) if FLAG_STEM not in text else (ANY,))]
    dump = single_dump(content)
    if re.fullmatch(r"s([/,|])\\(?:x0|x00|o000|0)\1\\n\1g", text) and dump and dump.nul:
        return [Result(out=(msgspec.structs.replace(dump, nul=False),))]
    match content:
        case (Trimmed(parts=(Dump(separator=mark) as flat,)),) if mark == SHOWN_NUL:
            is_broken = re.fullmatch(r"s([/,|#])\\\^@\1\\n\1g", text) is not None
            return [Result(out=(msgspec.structs.replace(flat, separator=""),) if is_broken else (ANY,))]
        case _:
            pass
    if (lines := lines_of(content)) is not None and (numbers := numbered_lines(text, len(lines))) is not None:
        return [Result(out=joined(part for number in numbers for part in lines[number]))]
    program = sed_program(script, is_extended=is_extended, is_silent=is_silent)
    if len(content) == 1 and isinstance(content[0], Names):
        return [Result(out=(Names((None, None)),))]
    if dump is None and program is not None and not re.search("SANDBOX|CODEX", _written_by(program)):
        return [Result(out=by_line(content, program.change, script, keeps_names=program.keeps_names))]
    if dump is None or dump.nul:
        return [Result(out=(ANY,))]
    if is_silent and program is not None and program.names() <= set(FLAGS):
        return [Result(out=_written_lines(dump, program, script))]
    if re.fullmatch(r"s([/,|])=\.\*\$?\1\1", text):
        return fields(content, "1")
    if match := re.fullmatch(
        r"(?:-n (-E )?/(?P<kept>[^/]*)/p|(-E )?/(?P<only>[^/]*)/!d|(-E )?/(?P<dropped>[^/]*)/d)", text
    ):
        pattern = compiled(
            match["kept"] or match["only"] or match["dropped"] or "", "extended" if is_extended else "basic"
        )
        if pattern is not None:
            kept = LineFilter(pattern, inverted=match["dropped"] is not None)
            return [Result(out=(filtered(dump, kept),))]
    if program is not None and program.keeps_names and not _writes_twice(program):
        return [Result(out=mapped(dump, program.change, script))]
    if re.fullmatch(r"-n (?:\d+|\$)(?:,(?:\d+|\$))?p|\d+q", text):
        return [Result(out=(msgspec.structs.replace(dump, partial=True, some=False),))]
    return [Result(out=(ANY,))]


def _written_lines(dump: Dump, program: SedProgram, script: str) -> Parts:
    """Return what a silent program writes of a dump of which it reads the lines of flags alone."""
    lines = [pinned_line(filtered(dump, LineFilter(re.compile(f"^{name}=")))) for name in FLAGS]
    if None in lines:
        return (ANY,)
    first, second = (by_line(line or (), program.change, script, keeps_names=False) for line in lines)
    return either((joined((*first, *second)), joined((*second, *first))))


def _written_by(program: SedProgram) -> str:
    """Return the texts that a program puts into lines."""
    return " ".join(step.text for step in program.steps)


def _writes_twice(program: SedProgram) -> bool:
    """Return whether a program writes some line with a flag more than once."""
    return any(
        "\n" in (program.change(f"{name}={value}") or "") for name in FLAGS for value in ("1", "seatbelt", "")
    )


def awk_filter(call: Call, program: str, *, separator: str) -> list[Result] | None:
    """Return what awk writes with a program that is a pattern alone, or a pattern that prints the line."""
    content = input_of(call, [])
    if is_noise(content) and FLAG_STEM not in program:
        return [Result(out=changed(content))]
    dump = single_dump(content)
    if dump is None or dump.nul:
        return None
    match = re.fullmatch(r"\s*/(?P<pattern>[^/]*)/\s*(?:\{\s*print(?:\s+\$0)?;?\s*\})?\s*", program)
    if match and (pattern := compiled(match["pattern"], "extended")) is not None:
        return [Result(out=(filtered(dump, LineFilter(pattern)),))]
    if separator == "=" and re.fullmatch(r"\s*\{\s*print\s+\$1;?\s*\}\s*", program):
        return fields(content, "1")
    match = re.fullmatch(
        r"""\s*(?:\$1\s*==\s*"(?P<name>\w+)"|/\^(?P<start>\w+)=/)\s*"""
        r"""\{\s*print\s+(?:"(?P<label>[^"\\]*)"\s*)?\$2;?\s*\}\s*""",
        program,
    )
    if separator == "=" and match and (name := match["name"] or match["start"]) in FLAGS:
        results = fields((filtered(dump, LineFilter(re.compile(rf"^{name}="))),), "2")
        label = match["label"] or ""
        return [msgspec.structs.replace(r, out=joined((label, *r.out)) if r.out else ()) for r in results]
    return None
