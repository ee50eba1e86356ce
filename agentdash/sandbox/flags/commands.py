"""Commands whose output is known: those of shells, programs that list an environment, filters of lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from agentdash.sandbox.flags.parts import (
    ANYTHING,
    FLAGS,
    MAX_SEARCHED,
    STEM,
    Dump,
    FlagLine,
    Hole,
    Part,
    Parts,
    are_equal,
    joined,
    literal,
)
from agentdash.sandbox.flags.state import PROTECTED, Call, Outcome, State, UnreadableError
from agentdash.sandbox.shell import parse
from agentdash.sandbox.word_sets import word_set

Command = Callable[[Call], list[Outcome]]


CHANGING: Final = word_set(
    ". alias break builtin command continue coproc declare emulate enable eval exec exit export function "
    "getopts hash let local mapfile noglob popd pushd read readarray readonly return set setopt shift shopt "
    "source time trap typeset unalias unset unsetopt wait"
)
"""Commands that may change variables, what other commands mean, or whether the script goes on."""
_QUIET: Final = word_set(
    "arch basename cd chgrp chmod chown cksum cp curl date df dig dirname du file free getconf getent groups "
    "host hostname id ifconfig install ip last ldd ln locale ls lsb_release lsof md5sum mkdir mktemp mount "
    "mv nc netstat nproc nslookup pgrep ping ps pwd readlink realpath rm rmdir seq sha256sum sleep ss stat "
    "stty sw_vers sync sysctl touch traceroute tty ulimit umask uname uptime wget which who whoami"
)
"""Programs whose output has no line of an environment."""
_SHOWING: Final = re.compile(r"-exec|-printf|file:|^-?[a-z]*[eE][a-z]*$")
"""Arguments with which `curl` and `ps` print the content of a file, or an environment."""


def run_program(call: Call) -> list[Outcome]:
    """Return what a command leads to; programs that are not known print anything.

    Raises:
        UnreadableError: it may change the flags or what other commands mean.
    """
    name = call.name
    if (command := COMMANDS.get(name)) is not None:
        return command(call)
    if not name or name in CHANGING:
        raise UnreadableError
    if name not in _QUIET or any(isinstance(p, str) and STEM in p for word in call.words for p in word):
        return call.unknown()
    if name in ("curl", "ps") and any(text is None or _SHOWING.search(text) for text in call.texts):
        return call.unknown()
    return call.ends(Hole.QUIET, status=None)


# ---------------------------------------------------------------- printing


def _unescaped(parts: Parts) -> Parts | None:
    """Return text with its escapes replaced; None if there are rare ones."""
    if any(isinstance(part, str) and re.search(r"\\(?![nt\\])", part) for part in parts):
        return None
    escapes = {"n": "\n", "t": "\t", "\\": "\\"}
    return tuple(
        re.sub(r"\\(.)", lambda match: escapes[match[1]], part) if isinstance(part, str) else part
        for part in parts
    )


def _echo(call: Call) -> list[Outcome]:
    words, newline, escapes = call.words[1:], "\n", False
    while words and re.fullmatch(r"-[neE]+", option := literal(words[0]) or ""):
        newline = "" if "n" in option else newline
        escapes = escapes or "e" in option
        words = words[1:]
    parts = (*joined(words), newline)
    if words and literal(words[0]) == "-":
        return call.ends(*ANYTHING)  # zsh drops it
    if "\\" not in "".join([part for part in parts if isinstance(part, str)]):
        return call.ends(*parts)
    if (unescaped := _unescaped(parts)) is None:
        return call.ends(*ANYTHING)
    return call.ends(*unescaped) + ([] if escapes else call.ends(*parts))  # bash leaves them, others do not


_DIRECTIVE: Final = re.compile(r"%%|%-?\d{0,3}s|%|[^%]+")


def _printf(call: Call) -> list[Outcome]:
    layout, *given = call.words[1:] or ((),)
    if literal(layout) == "--" and given:
        layout, *given = given
    text = literal(layout)
    if text == "-v":
        raise UnreadableError
    pieces = [(piece, _unescaped((piece,))) for piece in _DIRECTIVE.findall(text or "%")]
    if any(piece == "%" or unescaped is None for piece, unescaped in pieces):
        return call.unknown()
    takes = any(piece != "%%" and piece[0] == "%" for piece, _ in pieces)
    found: list[Part] = []
    while True:
        for piece, unescaped in pieces:
            if piece == "%%":
                found.append("%")
            elif piece[0] == "%":
                found += _padded(piece, given.pop(0) if given else ())
            else:
                found += unescaped or ()
        if not given or not takes:
            return call.ends(*found)


def _padded(directive: str, value: Parts) -> Parts:
    text = literal(value)
    if directive == "%s" or text is not None:
        return value if text is None else (directive % text,)
    return (*value, Hole.LINE) if directive[1] == "-" else (Hole.LINE, *value)


# ---------------------------------------------------------------- listing the environment


def _env(call: Call) -> list[Outcome]:
    return call.unknown() if call.texts else call.ends(call.state.dump())


def _printenv(call: Call) -> list[Outcome]:
    if not call.texts:
        return call.ends(call.state.dump())
    printed: Parts = ()
    status: int | None = 0
    for name in call.texts:
        if name not in FLAGS:
            return call.unknown()
        if (value := call.state.world.value(name)) is None:
            status = 1
        else:
            printed += (*value, "\n")
    return call.ends(*printed, status=status)


def _set(call: Call) -> list[Outcome]:
    state, words = call.state, call.texts
    if not words:
        return call.unknown()
    while words:
        option = words.pop(0) or ""
        named = words.pop(0) if re.fullmatch(r"[-+][eu]*o", option) and words else None
        if not re.fullmatch(r"[-+](?:[eu]+|[eu]*o)", option) or named not in (None, *_OPTIONS):
            raise UnreadableError
        chosen = [name for name, letter in _OPTIONS.items() if letter in option or name == named]
        state = state.changed(**dict.fromkeys(chosen, option[0] == "-"))
    if state.pipefail:
        state.require("bash", "zsh")
    return [Outcome(state)]


_OPTIONS: Final = {"errexit": "e", "nounset": "u", "pipefail": "|"}
"""Options of the shell that are followed, and their letters: `pipefail` has none."""


def _declare(call: Call) -> list[Outcome]:
    """Run `export`, `declare`, `typeset` or `readonly`."""
    state = call.state
    if not call.texts or call.texts[0] in ("-p", "-x", "-px", "-xp"):
        return call.unknown()  # they list variables
    if call.name in ("declare", "typeset"):
        state.require("bash", "zsh")
    for word in call.words[1:]:
        first = word[0] if word else ""
        name, equals, value = first.partition("=") if isinstance(first, str) else ("", "", "")
        if (
            not re.fullmatch(r"[A-Za-z_]\w*", name)
            or (len(word) > 1 and not equals)
            or PROTECTED.fullmatch(name)
        ):
            raise UnreadableError
        if equals:
            state = state.with_variable(name, (value, *word[1:]))
    return [Outcome(state)]


# ---------------------------------------------------------------- conditions


def _test(call: Call) -> list[Outcome]:
    """Run `test`, `[` or `[[`."""
    words = call.words[1:] if call.name == "test" else call.words[1:-1]
    if call.name == "[[":
        call.state.require("bash", "zsh")
    elif any(literal(word) == "==" for word in words):
        call.state.require("bash")
    result = _holds(call, words)
    return call.ends(status=None if result is None else int(not result))


def _holds(call: Call, words: tuple[Parts, ...]) -> bool | None:
    """Return whether a condition is true; None if that is not known."""
    texts = [literal(word) for word in words]
    match texts:
        case ["!", _, *_]:
            result = _holds(call, words[1:])
        case [_]:
            result = are_equal(words[0], "")
        case ["-z" | "-n" as operator, _]:
            result = are_equal(words[1], "")
            return None if result is None else result == (operator == "-z")
        case ["-v", str() as name] if name in FLAGS:
            return call.state.world.value(name) is not None
        case [_, "=" | "==" | "!=" as operator, str() as wanted]:
            if call.name == "[[" and re.search(r"[*?\[(]", wanted):
                return None
            result = are_equal(words[0], wanted)
            return None if result is None else result == (operator != "!=")
        case _:
            return None
    return None if result is None else not result


# ---------------------------------------------------------------- commands that start others


def _command(call: Call) -> list[Outcome]:
    """Run `command -v`; without the option it runs any other."""
    if call.texts[:1] != ["-v"]:
        raise UnreadableError
    return call.ends(Hole.QUIET, status=None)


_SHELLS: Final = {"bash": "bash", "zsh": "zsh", "dash": "dash", "sh": ""}
_MAX_SHELLS: Final = 6


def _shell(call: Call) -> list[Outcome]:
    """Run `bash -c` and the like."""
    options, script = call.texts if len(call.texts) == 2 else ("", None)
    if script is None or not re.fullmatch(r"-[leiu]*c", options or ""):
        return call.unknown()
    state = call.state
    if (tree := parse(script)) is None or state.depth >= _MAX_SHELLS:
        raise UnreadableError
    state.require_short_variables()  # they may be exported: the inner state does not know them
    inner = State(state.world, _SHELLS[call.name], state.source, depth=state.depth + 1)
    inner = inner.changed(errexit="e" in (options or ""), nounset="u" in (options or ""))
    return [outcome.around(state) for outcome in call.follow(tree, inner)]


def _exit(call: Call) -> list[Outcome]:
    text = call.texts[0] if call.texts else None
    return [Outcome(call.state, (), None if text is None else int(text != "0"), "exit")]


# ---------------------------------------------------------------- filters

_QUIET_TEXT: Final[Parts] = (Hole.QUIET,)
_PASSING: Final = {
    "sort": re.compile(r"(?:-[urf]+ ?)*"),
    "uniq": re.compile(r""),
    "tee": re.compile(r"(?:[^-\s]\S*(?: |$))*"),
    "head": re.compile(r"(?:-n ?\d+|-\d+)?"),
    "tail": re.compile(r"(?:-n ?\d+|-\d+)?"),
}
"""Filters that pass lines on as they are, and their arguments."""


def _arguments(call: Call) -> str:
    """Return the arguments of a filter; a question mark stands for one that is not known."""
    return " ".join(text or "?" for text in call.texts)


def _dump(parts: Parts | None) -> Dump | None:
    """Return the environment that parts are."""
    dump = parts[0] if parts is not None and len(parts) == 1 else None
    return dump if isinstance(dump, Dump) else None


def _thinned(dump: Dump) -> Dump:
    """Return a dump each of whose lines may be missing."""
    lines = tuple(msgspec.structs.replace(line, certain=False) for line in dump.lines)
    return msgspec.structs.replace(dump, lines=lines, needed=None)


def _cat(call: Call) -> list[Outcome]:
    is_stdin = all(text == "-" for text in call.texts)
    return call.ends(*call.stdin) if is_stdin and call.stdin is not None else call.unknown()


def _pass(call: Call) -> list[Outcome]:
    """Run `sort`, `uniq`, `tee`, `head` or `tail`; of the last two each line of a flag may be missing."""
    if call.stdin is None or not _PASSING[call.name].fullmatch(_arguments(call)):
        return call.unknown()
    if call.name == "tee":
        return call.ends(*call.stdin)
    if (dump := _dump(call.stdin)) is not None:
        return call.ends(_thinned(dump) if call.name in ("head", "tail") else dump)
    is_kept = call.stdin in ((), _QUIET_TEXT)
    return call.ends(*call.stdin) if is_kept else call.unknown()


# ---------------------------------------------------------------- grep


def _grep(call: Call) -> list[Outcome]:
    options = {"fgrep": "F", "egrep": "E"}.get(call.name, "")
    operands: list[str | None] = []
    words = iter(call.texts)
    for text in words:
        if text in ("-e", "--"):
            operands.append(next(words, None))
        elif text is not None and re.fullmatch(r"-[iEFqchas]+", text):
            options += text[1:]
        elif text is None or (text.startswith("-") and not text.startswith("--color")):
            return call.unknown()
        elif not text.startswith("-"):
            operands.append(text)
    if len(operands) != 1 or operands[0] is None:
        return call.unknown()
    if "\n" in operands[0] or (pattern := _translated(operands[0], options)) is None:
        return call.unknown()
    found = _kept(call, pattern)
    if "q" in options:
        return [outcome.changed(printed=()) for outcome in found]
    if "c" in options:
        return [outcome.changed(printed=(Hole.LINE, "\n")) for outcome in found]
    return found


_CHARACTER: Final = r"(?:[\w =:;,@#%&<>~\"'!/-]|\\[.^$*/=_-]|\.|\[\^?[\w.=:,/ -]+\])"
_PLAIN: Final = re.compile(rf"\^?(?:{_CHARACTER}\*?|\((?!\?)|[|^$]|\)\??)*", re.ASCII)
"""Regular expressions that all these programs read alike; no group is repeated, so no search takes long."""


def _translated(pattern: str, options: str) -> re.Pattern[str] | None:
    """Return a pattern of grep as one of Python; None if it is not understood."""
    flags = re.IGNORECASE if "i" in options else 0
    if "F" in options:
        return re.compile(re.escape(pattern), flags)
    if "E" not in options:
        if re.search(r"[|?+{}()]", re.sub(r"\\.", "", pattern)):
            return None  # there they are plain characters
        pattern = re.sub(r"\\([|()?])", r"\1", pattern)
    if not _PLAIN.fullmatch(pattern) or pattern.count("*") > 1 or re.search(r"\.\*.*\(|[(|]\*", pattern):
        return None
    try:
        return re.compile(pattern, flags)
    except re.error:
        return None


def _kept(call: Call, pattern: re.Pattern[str]) -> list[Outcome]:
    """Return the outcomes of passing on those lines in which a pattern is found."""
    if call.stdin == _QUIET_TEXT:
        return call.ends(Hole.QUIET, status=None)
    if (text := literal(call.stdin)) is not None:
        if any(len(line) > MAX_SEARCHED for line in text.splitlines()):
            return call.unknown()
        kept = [line for line in text.splitlines() if pattern.search(line)]
        return call.ends("".join(f"{line}\n" for line in kept), status=int(not kept))
    if (dump := _dump(call.stdin)) is None:
        return call.unknown()
    lines = tuple(_lines_kept(dump, pattern))
    left = msgspec.structs.replace(dump, lines=lines, required=(*dump.required, pattern), needed=None)
    if lines:
        return call.ends(left, status=0 if any(line.certain for line in lines) else None)
    return call.ends(msgspec.structs.replace(left, needed=re.compile("")), status=0) + call.ends(status=1)


def _lines_kept(dump: Dump, pattern: re.Pattern[str]) -> Iterator[FlagLine]:
    """Yield the lines of flags that may be passed on."""
    for line in dump.lines:
        is_kept = pattern.search(f"{line.name}={line.value or ''}") is not None
        is_open = line.value is None and (not is_kept or any(mark in pattern.pattern for mark in "$[."))
        if is_kept or is_open:  # it depends on a value that is not known
            yield msgspec.structs.replace(line, certain=line.certain and not is_open)


COMMANDS: Final[dict[str, Command]] = {
    "echo": _echo,
    "printf": _printf,
    "env": _env,
    "printenv": _printenv,
    "set": _set,
    **dict.fromkeys(("export", "declare", "typeset", "readonly"), _declare),
    **dict.fromkeys(("test", "[", "[["), _test),
    "command": _command,
    **dict.fromkeys(_SHELLS, _shell),
    "exit": _exit,
    **dict.fromkeys(("true", ":"), lambda call: call.ends()),
    "false": lambda call: call.ends(status=1),
    "cat": _cat,
    **dict.fromkeys(_PASSING, _pass),
    **dict.fromkeys(("grep", "egrep", "fgrep"), _grep),
}
