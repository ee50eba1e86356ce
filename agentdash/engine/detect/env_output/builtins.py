"""Commands of the shell itself: those that change its state, and those that print its variables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.conditions import condition
from agentdash.engine.detect.env_output.dumps import (
    BASH_STYLE,
    ENV_STYLE,
    EXPORTED_STYLE,
    FLAG_STEM,
    FLAGS,
    SET_STYLE,
    SHELL_STYLE,
    Dump,
    Style,
)
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    ONE_LINE,
    QUIET,
    Choice,
    Hole,
    Kind,
    Names,
    Part,
    Parts,
    Words,
    concrete,
    errors_of,
    joined,
    unlike_quoted,
)
from agentdash.engine.detect.env_output.printing import echo, printf
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.world import Environment, State, UnreadableError, shown

Builtin = Callable[[Call], list[Result]]

_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def not_found(name: str) -> Result:
    """Return the outcome where a shell or a machine has no such command."""
    said: tuple[Parts, ...] = ((name, ": ", Hole(Kind.QUIET_LINE)), ("command not found: ", name))
    return Result(err=(Hole(Kind.QUIET_LINE), Choice(said), "\n"), status=127)


def in_shells(call: Call, results: list[Result], *shells: str) -> list[Result]:
    """Return the outcomes of a command that only some shells have."""
    if call.state.dialect in shells:
        return results
    return [*([] if call.state.dialect else results), not_found(call.name)]


def dump_of(environment: Environment, state: State, style: Style = ENV_STYLE) -> Parts:
    """Return a dump of an environment, or of the variables of a shell."""
    if _may_hide_lines(state, exported_only=style == ENV_STYLE):
        return (ANY,)
    flags = (shown(environment[FLAGS[0]]), shown(environment[FLAGS[1]]))
    return (Dump(shown=flags, style=style, whole=not state.bare),)


def _may_hide_lines(state: State, *, exported_only: bool) -> bool:
    """Return whether a variable that the script set can hold lines that look like a flag's."""
    for name, value in state.variables:
        if name in FLAGS or value is None or (exported_only and name not in state.exported):
            continue
        text = concrete(value)
        if FLAG_STEM + "=" in text or FLAG_STEM + "_N" in text if text is not None else ANY in _flat(value):
            return True
    return False


def _flat(parts: Parts) -> list[object]:
    found: list[object] = []
    for part in parts:
        if isinstance(part, Choice):
            for option in part.options:
                found += _flat(option)
        elif (isinstance(part, Hole) and part.kind is Kind.ANY and not part.key) or not isinstance(
            part, str | Hole
        ):
            found.append(ANY)
    return found


def _variables(state: State) -> Environment:
    return {name: state.value(name) for name in FLAGS}


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


def _print(call: Call) -> list[Result]:
    """Return what zsh's `print` writes."""
    arguments = list(call.arguments)
    options = ""
    while arguments and (text := concrete(arguments[0])) and re.fullmatch(r"--?|-[rnl]+", text):
        options += text
        arguments.pop(0)
        if text in ("-", "--"):
            break
    texts = [part for argument in arguments for part in argument if isinstance(part, str)]
    if any("\\" in text for text in texts) and "r" not in options:
        return [Result(out=(ANY,), err=(ANY,), status=None)]
    separator = "\n" if "l" in options else " "
    out: list[Part] = []
    for number, argument in enumerate(arguments):
        out += [separator] if number else []
        out += argument
    results = [Result(out=joined((*out, *(() if "n" in options else ("\n",)))))]
    return in_shells(call, results, "zsh")


def _export(call: Call) -> list[Result]:
    options, names = _options(call.arguments)
    if options is None:
        raise UnreadableError
    if not names:
        if options.strip("xp"):
            raise UnreadableError
        is_export = call.name == "export"
        style = SHELL_STYLE
        if call.state.dialect == "bash" and not is_export:
            style = EXPORTED_STYLE if "x" in options else BASH_STYLE
        results = [Result(out=dump_of(call.environment, call.state, style))]
        if not is_export and not options:  # `declare` alone prints all variables
            results = [Result(out=dump_of(_variables(call.state), call.state, SHELL_STYLE))]
        return results if is_export else in_shells(call, results, "bash", "zsh")
    if "p" in options and call.name != "export":
        return _declared(call, names)
    if options.strip("xgrn") or "f" in options:
        raise UnreadableError
    return [Result(state=_exported(call, options, names))]


def _exported(call: Call, options: str, names: list[Parts]) -> State:
    state = call.state
    exports = call.name == "export" or "x" in options
    if "n" in options and call.name != "export":
        return _with_references(state, names)
    for argument in names:
        first = argument[0] if argument else ""
        if not isinstance(first, str) or not (match := re.match(r"([A-Za-z_]\w*)(\+?=)?", first)):
            raise UnreadableError
        name = match[1]
        if name in FLAGS and (call.name == "readonly" or "r" in options):
            raise UnreadableError  # later assignments fail
        if match[2]:
            value: Parts = (first[match.end() :], *argument[1:]) if first[match.end() :] else argument[1:]
            state = state.with_variable(name, value if match[2] == "=" else (ANY,))
        elif concrete(argument) != name:
            raise UnreadableError
        elif not exports and name in FLAGS:
            raise UnreadableError  # `local`, `declare` of a flag: scopes
        if exports and name in FLAGS and state.value(name) is None:
            raise UnreadableError  # `declare -p` lists it from here on, without a value
        if exports:
            state = state.with_exported(name, exported="n" not in options)
    return state


def _with_references(state: State, names: list[Parts]) -> State:
    """Return the state after `declare -n name=other`."""
    for argument in names:
        name, _, target = (concrete(argument) or "?").partition("=")
        if not _NAME.fullmatch(name) or not _NAME.fullmatch(target) or target in state.references:
            raise UnreadableError
        state = state.with_variable(name, (target,))
        state = msgspec.structs.replace(state, references=state.references | {name}, dialect="bash")
    return state


def _declared(call: Call, names: list[Parts]) -> list[Result]:
    """Return what `declare -p NAME …` writes."""
    out: list[Parts] = []
    err: list[Parts] = []
    for argument in names:
        name = concrete(argument)
        if name not in FLAGS or name is None:
            out.append((Choice(((), (Hole(Kind.ANY), "\n"))),))
            err.append(errors_of(call.name))
        elif (value := call.state.value(name)) is None:
            err.append(
                (Hole(Kind.LINE), Choice(((f": {name}: not found",), (f"no such variable: {name}",))), "\n")
            )
        else:
            words: tuple[str, ...] = ("declare -x ", "declare -- ", "typeset -x ", "export ", "typeset ")
            quotes: tuple[str, ...] = ('"', "'", "")
            if call.state.dialect == "bash":
                words, quotes = (words[0] if name in call.state.exported else words[1],), ('"',)
            spelled: list[Parts] = []
            for quote in quotes:
                written = value if quote else unlike_quoted(value)
                spelled += [(f"{word}{name}={quote}", *written, f"{quote}\n") for word in words]
            out.append(spelled[0] if len(spelled) == 1 else (Choice(tuple(spelled)),))
    status = None if any(concrete(n) not in FLAGS for n in names) else int(bool(err))
    results = [Result(out=sum(out, ()), err=sum(err, ()), status=status)]
    return in_shells(call, results, "bash", "zsh")


def _options(arguments: tuple[Parts, ...]) -> tuple[str | None, list[Parts]]:
    """Return the option letters and the operands; None where an option is not known."""
    letters = ""
    for number, argument in enumerate(arguments):
        text = concrete(argument)
        if text == "--":
            return letters, list(arguments[number + 1 :])
        if text is None or not text.startswith(("-", "+")) or len(text) < 2:
            return letters, list(arguments[number:])
        if text[0] == "+":
            return None, []
        letters += text[1:]
    return letters, []


def _unset(call: Call) -> list[Result]:
    options, names = _options(call.arguments)
    if options is None or options.strip("vn"):
        if options == "f":
            raise UnreadableError
        raise UnreadableError
    state = call.state
    for argument in names:
        name = concrete(argument)
        if name is None:
            raise UnreadableError
        if _NAME.fullmatch(name):
            state = state.with_variable(name, None)
    return [Result(state=state)]


def _set(call: Call) -> list[Result]:
    if not call.arguments:
        return [Result(out=dump_of(_variables(call.state), call.state, SET_STYLE))]
    words = [concrete(argument) for argument in call.arguments]
    state = call.state
    number = 0
    while number < len(words):
        word = words[number]
        if word is None or not re.fullmatch(r"[-+][A-Za-z]+", word):
            return [Result(state=with_arguments(state, call.arguments[number + (word == "--") :]))]
        on = word[0] == "-"
        for letter in word[1:]:
            if letter == "o":
                number += 1
                option = words[number] if number < len(words) else None
                state = _with_option(state, option, on=on)
            else:
                state = _with_option(state, _LONG_OPTIONS.get(letter), on=on)
        number += 1
    results = [Result(state=state)]
    if state.pipefail and call.state.dialect not in ("bash", "zsh"):
        message: Parts = (Hole(Kind.QUIET_LINE), "set: ", Hole(Kind.QUIET_LINE), "\n")
        results.append(Result(err=message, status=2, leaves="exit"))
    return results


_LONG_OPTIONS: Final = {
    "e": "errexit",
    "u": "nounset",
    "a": "allexport",
    "x": "xtrace",
    "v": "verbose",
    "n": "noexec",
    "f": "noglob",
    "m": "monitor",
    "h": "hashall",
    "b": "notify",
    "C": "noclobber",
    "E": "errtrace",
    "T": "functrace",
}
_HARMLESS_OPTIONS: Final = frozenset(
    ("noglob", "monitor", "hashall", "notify", "noclobber", "errtrace", "functrace", "posix", "history")
)


def _with_option(state: State, option: str | None, *, on: bool) -> State:
    match option:
        case "errexit" | "nounset" | "allexport" | "pipefail":
            return msgspec.structs.replace(state, **{option: on})
        case "xtrace":
            return msgspec.structs.replace(state, xtrace=on)
        case "verbose" | "noexec" if not on:
            return state
        case _ if option in _HARMLESS_OPTIONS:
            return state
        case _:
            raise UnreadableError


def with_arguments(state: State, arguments: tuple[Parts, ...]) -> State:
    """Return the state with other positional parameters."""
    before = len(state.array("@") or ())
    for number in range(1, max(before, len(arguments)) + 1):
        state = state.with_variable(str(number), arguments[number - 1] if number <= len(arguments) else None)
    return state.with_array("@", arguments)


def _shift(call: Call) -> list[Result]:
    arguments = call.state.array("@")
    text = concrete(call.arguments[0]) if call.arguments else "1"
    if arguments is None or text is None or not text.isdecimal() or int(text) > len(arguments):
        raise UnreadableError
    return [Result(state=with_arguments(call.state, arguments[int(text) :]))]


def _read_array(call: Call) -> list[Result]:
    """Run `mapfile`: the lines of its input, or its NUL-terminated entries, become an array."""
    words = [concrete(argument) for argument in call.arguments]
    match = re.fullmatch(
        r"(?:(?P<t1>-t) )?(?:-d ?(?P<nul>\\0|) )?(?:(?P<t2>-t) )?(?P<name>[A-Za-z_]\w*)",
        " ".join("?" if word is None else word for word in words),
    )
    if match is None or match["name"] in FLAGS:
        raise UnreadableError
    options: tuple[Parts | None, ...] = (call.stdin,)
    if call.stdin is not None and len(call.stdin) == 1 and isinstance(choice := call.stdin[0], Choice):
        options = choice.options
    results: list[Result] = []
    for content in options:
        elements = _elements_of(content, is_nul=match["nul"] is not None)
        if not (match["t1"] or match["t2"]):
            elements = None
        state = call.state.with_variable(match["name"], (ANY,)).with_array(match["name"], elements)
        state = msgspec.structs.replace(state, dialect=state.dialect or "bash")  # no other shell has it
        results.append(Result(state=state))
    return in_shells(call, results, "bash")


def _elements_of(content: Parts | None, *, is_nul: bool) -> tuple[Parts, ...] | None:
    """Return the lines of a text as elements of an array; None where they are not known."""
    if content is None:
        return None
    if len(content) == 1 and isinstance(dump := content[0], Dump):
        return ((Words(content),),) if dump.nul is is_nul and not dump.separator else None
    if is_nul or not all(
        isinstance(p, str) or (isinstance(p, Hole) and p.kind is Kind.OTHER) for p in content
    ):
        return None
    lines: list[list[Part]] = [[]]
    for part in content:
        pieces = part.split("\n") if isinstance(part, str) else [part]
        lines[-1].append(pieces[0])
        lines += [[piece] for piece in pieces[1:]]
    return tuple(joined(line) for line in (lines if joined(lines[-1]) else lines[:-1]))


def _read(call: Call) -> list[Result]:
    names = [concrete(argument) for argument in call.arguments]
    state = call.state
    if names[:1] == ["-r"] and len(names) > 1 and all(name and _NAME.fullmatch(name) for name in names[1:]):
        fields = _fields_of(call, len(names) - 1)
        if fields is not None:
            for name, value in zip(names[1:], fields, strict=True):
                state = state.with_variable(name or "", value)
            return [Result(state=state)]
    for name in names or ["REPLY"]:
        if name is None:
            raise UnreadableError
        if _NAME.fullmatch(name):
            state = state.with_variable(name, (ANY,))
    return [Result(status=None, state=state)]


def _fields_of(call: Call, number: int) -> list[Parts] | None:
    """Return what `read -r` gives to each of its variables; None where that is not known."""
    separators = concrete(dict(call.state.variables).get("IFS", (" \t\n",)) or ())
    line: list[Part] = []
    for part in call.stdin or ():
        if isinstance(part, str) and "\n" in part:
            line.append(part.partition("\n")[0])
            break
        if not isinstance(part, str) and not (
            isinstance(part, Hole) and part.kind in (Kind.OTHER, Kind.DIGITS)
        ):
            return None
        line.append(part)
    else:
        return None  # its status is not 0
    if separators == "":
        return [joined(line), *[()] * (number - 1)] if number == 1 else None
    if separators is None or len(separators.strip(" \t\n")) > 1:
        return None
    return _split_line(joined(line), separators, number)


def _split_line(line: Parts, separators: str, number: int) -> list[Parts]:
    """Return the fields of a line; the last one takes the rest of it."""
    blanks = separators if not separators.strip(" \t\n") else ""
    separator = re.compile(f"[{re.escape(blanks)}]+" if blanks else re.escape(separators.strip(" \t\n")))
    fields: list[Parts] = []
    current: list[Part] = []
    for part in line:
        rest = part
        while isinstance(rest, str) and len(fields) < number - 1 and (match := separator.search(rest)):
            if match.start() or current or not blanks:
                fields.append(joined((*current, rest[: match.start()])))
                current = []
            rest = rest[match.end() :]
        current.append(rest)
    last = joined(current)
    if blanks and last and isinstance(last[-1], str):
        last = joined((*last[:-1], last[-1].rstrip(blanks)))
    if blanks and last and isinstance(last[0], str):
        last = joined((last[0].lstrip(blanks), *last[1:]))
    return [*fields, last, *[()] * (number - len(fields) - 1)]


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
    words = [concrete(argument) for argument in call.arguments]
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


def _is_quiet_action(action: str) -> bool:
    """Return whether a trap writes a line without a flag, or nothing, and does not leave the script."""
    return re.fullmatch(r"(?:|-|(?:echo|printf) [^;&|<>`()]*)", action) is not None and not re.search(
        r"SANDBOX|\$(?!LINENO|\?|BASH_COMMAND)\W?\w|\$[@*]", action
    )


def _quiet_lines(call: Call) -> list[Result]:
    return [Result(out=(QUIET,), err=errors_of(call.name), status=None)]


def _unknown_status(call: Call) -> list[Result]:
    return [Result(err=errors_of(call.name), status=None)]


def _complete(call: Call) -> list[Result]:
    """Return what `compgen -e` and `compgen -v` write: the names of variables."""
    letters, operands = _options(call.arguments)
    if letters in ("e", "v") and len(operands) <= 1:
        prefix = concrete(operands[0]) if operands else ""
        values = call.environment if letters == "e" else _variables(call.state)
        if prefix is not None and not _may_hide_lines(call.state, exported_only=False):
            present = tuple(values[name] is not None and name.startswith(prefix) for name in FLAGS)
            results = [Result(out=(Names((present[0], present[1])),), status=0 if any(present) else None)]
            return in_shells(call, results, "bash")
    return [Result(out=(ANY,), err=(ANY,), status=None)]


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
    "export": _export,
    "declare": _export,
    "typeset": _export,
    "local": _export,
    "readonly": _export,
    "unset": _unset,
    "set": _set,
    "shopt": _unknown_status,
    "setopt": _unknown_status,
    "unsetopt": _unknown_status,
    "read": _read,
    "mapfile": _read_array,
    "readarray": _read_array,
    "exit": _leave,
    "return": _leave,
    "break": _leave,
    "continue": _leave,
    "shift": _shift,
    "getopts": _unreadable,
    "alias": _unreadable,
    "unalias": _unreadable,
    "enable": _unreadable,
    "source": _unreadable,
    ".": _unreadable,
    "coproc": _unreadable,
    "let": _unreadable,
    "fc": _unreadable,
    "history": _unreadable,
    "trap": _trap,
    "wait": _unknown_status,
    "umask": _quiet_lines,
    "ulimit": _quiet_lines,
    "type": _quiet_lines,
    "which": _quiet_lines,
    "whence": _quiet_lines,
    "where": _quiet_lines,
    "hash": _unknown_status,
    "jobs": _quiet_lines,
    "times": _quiet_lines,
    "kill": _unknown_status,
    "compgen": _complete,
}
