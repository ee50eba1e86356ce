"""Commands of the shell itself: those that change its state, and those that print its variables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.arithmetic import evaluated
from agentdash.engine.detect.env_output.conditions import condition
from agentdash.engine.detect.env_output.declarations import (
    NAME,
    export,
    in_shells,
    may_hide_lines,
    split_options,
    variables,
)
from agentdash.engine.detect.env_output.dumps import (
    FLAGS,
)
from agentdash.engine.detect.env_output.options import set_options, set_options_of_zsh, with_arguments
from agentdash.engine.detect.env_output.patterns import (
    ONE_LINE,
    QUIET,
    Hole,
    Kind,
    Names,
    Part,
    Parts,
    Words,
    concrete,
    errors_of,
    joined,
)
from agentdash.engine.detect.env_output.printing import echo, printf
from agentdash.engine.detect.env_output.reading import (
    read,
    read_array,
)
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result
from agentdash.engine.detect.env_output.world import UnreadableError
from agentdash.engine.detect.env_output.zsh import LINES
from agentdash.sandbox.shell import Unsupported

Builtin = Callable[[Call], list[Result]]


# ---------------------------------------------------------------- state


def _nothing(_call: Call) -> list[Result]:
    return [Result()]


def _false(_call: Call) -> list[Result]:
    return [Result(status=1)]


def _test(call: Call) -> list[Result]:
    words = list(call.arguments)
    glob = call.name == "[["
    if call.name in ("[", "[["):
        words = words[:-1]
    truth = condition(words, call.state, glob=glob)
    results = [Result(status=None if truth is None else int(not truth))]
    other_shells = glob or any(concrete(word) in ("==", "-v", "=~") for word in words)
    if other_shells and call.state.dialect not in (("bash", "zsh") if glob else ("bash",)):
        results.append(
            Result(err=(Hole(Kind.QUIET_LINE), call.name, ": ", Hole(Kind.QUIET_LINE), "\n"), status=2)
        )
    return results


def _change_directory(call: Call) -> list[Result]:
    prints = bool(call.arguments) and concrete(call.arguments[0]) == "-"
    message: Parts = (Hole(Kind.QUIET_LINE), "cd:", Hole(Kind.QUIET_LINE), "\n")
    return [Result(out=ONE_LINE if prints else ()), Result(err=message, status=None)]


def _lines_of_words(call: Call, words: Parts) -> Result:
    """Return what `print -l` writes of arguments, which is what `printf '%s\n'` writes."""
    return printf(msgspec.structs.replace(call, arguments=(("%s\\n",), words)))[0]


def _print(call: Call) -> list[Result]:
    """Return what zsh's `print` writes."""
    arguments = list(call.arguments)
    options = ""
    while arguments and (text := concrete(arguments[0])) and re.fullmatch(r"--?|-[rnl]+", text):
        options += text
        arguments.pop(0)
        if text in ("-", "--"):
            break
    match arguments:
        case [(Words(),) as lines] if "l" in options and "n" not in options:
            return in_shells(call, [_lines_of_words(call, lines)], "zsh")
        case _:
            pass
    texts = [part for argument in arguments for part in argument if isinstance(part, str)]
    if any("\\" in text for text in texts) and "r" not in options:
        return UNKNOWN
    first = arguments[0][:1] if arguments else ()
    if first and (concrete(first) or "-").startswith("-") and not options.endswith("--"):
        return UNKNOWN
    separator = "\n" if "l" in options else " "
    out: list[Part] = []
    for number, argument in enumerate(arguments):
        out += [separator] if number else []
        out += argument
    results = [Result(out=joined((*out, *(() if "n" in options else ("\n",)))))]
    return in_shells(call, results, "zsh")


def _unset(call: Call) -> list[Result]:
    options, names = split_options(call.arguments)
    if options is None or options.strip("vn"):
        raise UnreadableError
    state = call.state
    for argument in names:
        name = concrete(argument)
        if name is None:
            raise UnreadableError
        if NAME.fullmatch(name):
            state = state.with_variable(name, None)
    return [Result(state=state)]


def _shift(call: Call) -> list[Result]:
    arguments = call.state.array("@")
    text = concrete(call.arguments[0]) if call.arguments else "1"
    if arguments is None or text is None or not text.isdecimal() or int(text) > len(arguments):
        raise UnreadableError
    return [Result(state=with_arguments(call.state, arguments[int(text) :]))]


def _leave(call: Call) -> list[Result]:
    status = call.state.status
    if call.arguments:
        text = concrete(call.arguments[0])
        status = int(text) & 0xFF if text and text.isdecimal() else None
    return [Result(status=status, leaves=call.name)]


def _unreadable(_call: Call) -> list[Result]:
    raise UnreadableError


def _trap(call: Call) -> list[Result]:
    """Run `trap`: actions at the end of the shell are kept, those at signals write nothing by then."""
    words = call.words
    if len(words) < 2 or (action := words[0]) is None:
        raise UnreadableError
    state = call.state
    results: list[Result] = []
    for signal in words[1:]:
        match (signal or "?").removeprefix("SIG"):
            case "EXIT" | "0":
                state = msgspec.structs.replace(state, on_exit="" if action == "-" else action)
            case "HUP" | "INT" | "TERM" | "PIPE" | "QUIT" | "1" | "2" | "3" | "13" | "15":
                pass
            case "ERR" if _is_quiet_action(action):
                state = msgspec.structs.replace(state, reports_errors=action not in ("", "-"))
                if state.dialect not in ("bash", "zsh"):
                    message: Parts = (Hole(Kind.QUIET_LINE), "bad trap", "\n")
                    results = [Result(err=message, status=None), Result(err=message, status=2, leaves="exit")]
            case _:
                raise UnreadableError
    return [Result(state=state), *results]


def _hash(call: Call) -> list[Result]:
    """Run `hash`; with `-p`, or an equals sign in zsh, a name stands for another program."""
    if any(not re.fullmatch(r"-r|\w+", concrete(argument) or "?") for argument in call.arguments):
        raise UnreadableError
    return _unknown_status(call)


def _alias(call: Call) -> list[Result]:
    """Run `alias name=…`: commands of the name are not followed from here on."""
    functions = dict(call.state.functions)
    for argument in call.arguments:
        name, sign, _ = (concrete(argument) or "").partition("=")
        if not sign:
            raise UnreadableError
        functions[name] = Unsupported("alias")
    listed = tuple(sorted(functions.items(), key=lambda entry: entry[0]))
    return [Result(state=msgspec.structs.replace(call.state, functions=listed))]


def _let(call: Call) -> list[Result]:
    """Run `let`."""
    state = call.state
    number: int | None = None
    for argument in call.arguments:
        if (text := concrete(argument)) is None:
            raise UnreadableError
        number, state = evaluated(text, state)
    return [Result(status=None if number is None else int(number == 0), state=state)]


def _is_quiet_action(action: str) -> bool:
    """Return whether a trap writes a line without a flag, or nothing, and does not leave the script."""
    is_line = re.fullmatch(r"(?:|-|(?:echo|printf) [^;&|<>`()]*(?:1?>&2)?\s*)", action)
    names_more = re.search(r"SANDBOX|\$(?!LINENO|\?|BASH_COMMAND)\W?\w|\$[@*]", action)
    return is_line is not None and names_more is None


def _quiet_lines(call: Call) -> list[Result]:
    return [Result(out=(QUIET,), err=errors_of(call.name), status=None)]


def _mask(call: Call) -> list[Result]:
    """Return what `umask` writes: the mask, unless it sets it."""
    if not call.arguments or (len(call.arguments) == 1 and concrete(call.arguments[0]) in ("-S", "-p")):
        return [Result(out=ONE_LINE)]
    return [Result(err=errors_of(call.name), status=None)]


def _unknown_status(call: Call) -> list[Result]:
    return [Result(err=errors_of(call.name), status=None)]


def _wait(call: Call) -> list[Result]:
    if "p" in (split_options(call.arguments)[0] or ""):
        raise UnreadableError  # sets a variable
    return _unknown_status(call)


def _complete(call: Call) -> list[Result]:
    """Return what `compgen -e` and `compgen -v` write: the names of variables."""
    letters, operands = split_options(call.arguments)
    if letters == "A" and operands and concrete(operands[0]) in ("export", "variable"):
        letters = (concrete(operands.pop(0)) or "")[0]
    if letters in ("e", "v") and len(operands) <= 1:
        prefix = concrete(operands[0]) if operands else ""
        values = call.environment if letters == "e" else variables(call.state)
        if prefix is not None and not may_hide_lines(call.state, exported_only=False):
            present = tuple(values[name] is not None and name.startswith(prefix) for name in FLAGS)
            results = [Result(out=(Names((present[0], present[1])),), status=0 if any(present) else None)]
            return in_shells(call, results, "bash")
    return UNKNOWN


BUILTINS: Final[dict[str, Builtin]] = {
    ":": _nothing,
    "true": _nothing,
    "false": _false,
    "test": _test,
    "[": _test,
    "[[": _test,
    "echo": echo,
    "printf": printf,
    "print": _print,
    "cd": _change_directory,
    "pushd": _quiet_lines,
    "popd": _quiet_lines,
    "export": export,
    "declare": export,
    "typeset": export,
    "local": export,
    "readonly": export,
    "unset": _unset,
    "set": set_options,
    "shopt": _unknown_status,
    "setopt": set_options_of_zsh,
    "unsetopt": set_options_of_zsh,
    "zmodload": _unknown_status,
    "read": read,
    "mapfile": read_array,
    "readarray": read_array,
    "exit": _leave,
    "return": _leave,
    "break": _leave,
    "continue": _leave,
    "shift": _shift,
    "getopts": _unreadable,
    "alias": _alias,
    "unalias": _nothing,
    "enable": _unreadable,
    "coproc": _unreadable,
    "let": _let,
    "fc": _unreadable,
    "history": _unreadable,
    "trap": _trap,
    "wait": _wait,
    "umask": _mask,
    "ulimit": _quiet_lines,
    "type": _quiet_lines,
    "which": _quiet_lines,
    "whence": _quiet_lines,
    "where": _quiet_lines,
    "hash": _hash,
    "jobs": _quiet_lines,
    "times": _quiet_lines,
    "kill": _unknown_status,
    "compgen": _complete,
    LINES: _nothing,
}
