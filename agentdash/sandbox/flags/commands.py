"""Commands whose output is known: those of shells, programs that list an environment, filters of lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from agentdash.sandbox.flags.parts import (
    ANYTHING,
    FLAGS,
    STEM,
    Dump,
    FlagLine,
    Hole,
    Part,
    Parts,
    is_empty,
    joined,
    literal,
)
from agentdash.sandbox.flags.state import Call, Outcome, UnreadableError
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


def _echo(call: Call) -> list[Outcome]:
    parts = (*joined(call.words[1:]), "\n")
    texts = [part for part in parts if isinstance(part, str)]
    may_be_option = parts[0] is Hole.ANY or (parts[0] is texts[0] and re.fullmatch("-[neE]*", texts[0]))
    if may_be_option or any("\\" in text for text in texts):
        return call.ends(*ANYTHING)  # shells differ in options and escapes
    return call.ends(*parts)


def _printf(call: Call) -> list[Outcome]:
    layout, *values = call.words[1:] or ((),)
    text = literal(layout)
    if text is None or text.startswith("-"):
        raise UnreadableError  # `-v` sets a variable
    first, *others = text.replace("\\n", "\n").split("%s")
    if len(others) != len(values) or re.search(r"[\\%]", "".join((first, *others))):
        return call.unknown()
    found: list[Part] = [first]
    for value, between in zip(values, others, strict=True):
        found += (*value, between)
    return call.ends(*found)


# ---------------------------------------------------------------- listing the environment


def _env(call: Call) -> list[Outcome]:
    return call.unknown() if call.texts else call.ends(call.state.dump())


def _printenv(call: Call) -> list[Outcome]:
    if not call.texts:
        return _env(call)
    values = [call.state.value(name) for name in call.texts if name in FLAGS]
    if len(values) < len(call.texts):
        return call.unknown()
    printed = joined(((*value, "\n") for value in values if value is not None), "")
    return call.ends(*printed, status=int(None in values))


_STRICT: Final = re.compile(r"(?:-(?:[eu]+|[eu]*o (?:errexit|nounset|pipefail))(?: |$))+")


def _set(call: Call) -> list[Outcome]:
    if not call.texts:
        return call.unknown()  # it lists variables
    options = _arguments(call)
    if not _STRICT.fullmatch(options):
        raise UnreadableError
    if "pipefail" in options:
        call.state.require("bash", "zsh")
    return [Outcome(call.state.changed(strict=True))]


# ---------------------------------------------------------------- commands that decide or start others


def _test(call: Call) -> list[Outcome]:
    """Run `test`, `[` or `[[`."""
    if call.name == "[[":
        call.state.require("bash", "zsh")
    operator, *operands = call.words[1:] if call.name == "test" else call.words[1:-1] or ((),)
    if literal(operator) not in ("-n", "-z") or len(operands) != 1:
        return call.ends(status=None)
    empty = is_empty(operands[0])
    return call.ends(status=None if empty is None else int(empty == (literal(operator) == "-n")))


_SHELLS: Final = {"bash": "bash", "zsh": "zsh", "dash": "dash", "sh": ""}
_MAX_SHELLS: Final = 6


def _shell(call: Call) -> list[Outcome]:
    """Run `bash -c` and the like."""
    options, script = call.texts if len(call.texts) == 2 else ("", None)
    if script is None or options is None or not re.fullmatch(r"-[leiu]*c", options):
        return call.unknown()
    state = call.state
    if (tree := parse(script)) is None or state.depth >= _MAX_SHELLS:
        raise UnreadableError
    is_strict = "e" in options or "u" in options
    inner = state.changed(dialect=_SHELLS[call.name], depth=state.depth + 1, strict=is_strict)
    return [outcome.around(state) for outcome in call.follow(tree, inner)]


def _exit(call: Call) -> list[Outcome]:
    text = call.texts[0] if call.texts else None
    return [Outcome(call.state, (), None if text is None else int(text != "0"), ended=True)]


# ---------------------------------------------------------------- filters

_QUIET_TEXT: Final[Parts] = (Hole.QUIET,)
_PASSING: Final = {"sort": re.compile(r"(?:-[urf]+ ?)*"), "head": re.compile(r"(?:-n ?\d+|-\d+)?")}
"""Filters that pass lines on as they are, and their arguments."""


def _arguments(call: Call) -> str:
    """Return the arguments of a command; a question mark stands for one that is not known."""
    return " ".join(text or "?" for text in call.texts)


def _dump(parts: Parts | None) -> Dump | None:
    """Return the environment that parts are."""
    dump = parts[0] if parts is not None and len(parts) == 1 else None
    return dump if isinstance(dump, Dump) else None


def _cat(call: Call) -> list[Outcome]:
    is_stdin = all(text == "-" for text in call.texts)
    return call.ends(*call.stdin) if is_stdin and call.stdin is not None else call.unknown()


def _pass(call: Call) -> list[Outcome]:
    """Run `sort` or `head`, which may drop any line."""
    if not _PASSING[call.name].fullmatch(_arguments(call)):
        return call.unknown()
    dump = _dump(call.stdin)
    if dump is not None and call.name == "head":
        lines = tuple(msgspec.structs.replace(line, certain=False) for line in dump.lines)
        return call.ends(msgspec.structs.replace(dump, lines=lines, needed=None))
    is_kept = dump is not None or call.stdin in ((), _QUIET_TEXT)
    return call.ends(*call.stdin) if is_kept and call.stdin is not None else call.unknown()


# ---------------------------------------------------------------- grep

_PLAIN: Final = re.compile(r"\^?[\w =:;,@/-]+(?:\|\^?[\w =:;,@/-]+)*", re.ASCII)
"""Regular expressions that all these programs read alike: texts, also at the beginning of a line."""
_MAX_PATTERN: Final = 200


def _grep(call: Call) -> list[Outcome]:
    options = "E" if call.name == "egrep" else ""
    words = [text or "?" for text in call.texts if text != "--color=never"]
    while words and re.fullmatch(r"-[iE]+", words[0]):
        options += words.pop(0)
    pattern = words[0] if len(words) == 1 else "?"
    if "E" not in options:
        pattern = pattern.replace("|", "\0").replace("\\\0", "|")  # there a plain one is a character
    if len(pattern) > _MAX_PATTERN or pattern.startswith("-") or not _PLAIN.fullmatch(pattern):
        return call.unknown()
    return _kept(call, re.compile(pattern, re.IGNORECASE if "i" in options else 0))


def _kept(call: Call, pattern: re.Pattern[str]) -> list[Outcome]:
    """Return the outcomes of passing on those lines in which a pattern is found."""
    if call.stdin == _QUIET_TEXT:
        return call.ends(Hole.QUIET, status=None)
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
        if is_kept or line.value is None:  # it may be found in a value that is not known
            yield msgspec.structs.replace(line, certain=line.certain and is_kept)


COMMANDS: Final[dict[str, Command]] = {
    "echo": _echo,
    "printf": _printf,
    "env": _env,
    "printenv": _printenv,
    "set": _set,
    **dict.fromkeys(("test", "[", "[["), _test),
    **dict.fromkeys(_SHELLS, _shell),
    "exit": _exit,
    **dict.fromkeys(("true", ":"), lambda call: call.ends()),
    "false": lambda call: call.ends(status=1),
    "cat": _cat,
    **dict.fromkeys(_PASSING, _pass),
    **dict.fromkeys(("grep", "egrep"), _grep),
}
