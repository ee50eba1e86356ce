"""Commands of the shell that declare and print variables: `export`, `declare`, `typeset`."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dumps import (
    BASH_STYLE,
    ENV_STYLE,
    EXPORTED_STYLE,
    FLAG_STEM,
    FLAGS,
    SHELL_STYLE,
    Dump,
    Style,
)
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Choice,
    Hole,
    Kind,
    Parts,
    concrete,
    errors_of,
    unlike_quoted,
)
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.world import Environment, State, UnreadableError, shown

NAME: Final = re.compile(r"[A-Za-z_]\w*")


def not_found(name: str) -> Result:
    """Return the outcome where a shell or a machine has no such command."""
    said: tuple[Parts, ...] = (
        (name, ": ", Hole(Kind.QUIET_LINE)),
        ("command not found: ", name),
        ("no such file or directory: ", name),
    )
    return Result(err=(Hole(Kind.QUIET_LINE), Choice(said), "\n"), status=127)


def in_shells(call: Call, results: list[Result], *shells: str) -> list[Result]:
    """Return the outcomes of a command that only some shells have."""
    if call.state.dialect in shells:
        return results
    return [*([] if call.state.dialect else results), not_found(call.name)]


def dump_of(environment: Environment, state: State, style: Style = ENV_STYLE) -> Parts:
    """Return a dump of an environment, or of the variables of a shell."""
    if may_hide_lines(state, exported_only=style == ENV_STYLE):
        return (ANY,)
    flags = (shown(environment[FLAGS[0]]), shown(environment[FLAGS[1]]))
    return (Dump(shown=flags, style=style, whole=not state.bare),)


def may_hide_lines(state: State, *, exported_only: bool) -> bool:
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


def variables(state: State) -> Environment:
    """Return the flags as variables of the shell."""
    return {name: state.value(name) for name in FLAGS}


def export(call: Call) -> list[Result]:
    """Run `export`, `declare`, `typeset`, `local` or `readonly`."""
    options, names = split_options(call.arguments)
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
            results = [Result(out=dump_of(variables(call.state), call.state, SHELL_STYLE))]
        return results if is_export else in_shells(call, results, "bash", "zsh")
    if "p" in options and call.name != "export":
        return _declared(call, names)
    if call.name not in ("export", "readonly"):
        for argument in names:
            if isinstance(first := argument[0] if argument else "", str) and (match := NAME.match(first)):
                call = msgspec.structs.replace(call, state=call.state.with_own(match[0]))
    if options in ("A", "a") and call.name != "export":
        return [Result(state=call.state)]  # an array to come
    if options.strip("gxr") == "i":
        return [Result(state=_with_numbers(call.state, names))]
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


def _with_numbers(state: State, names: list[Parts]) -> State:
    """Return the state after `declare -i name=…`: the values of such variables are not followed."""
    for argument in names:
        first = argument[0] if argument else ""
        if not isinstance(first, str) or not (match := NAME.match(first)) or match[0] in FLAGS:
            raise UnreadableError
        state = state.with_variable(match[0], (ANY,))
        state = msgspec.structs.replace(state, numbers=state.numbers | {match[0]})
    return state


def _with_references(state: State, names: list[Parts]) -> State:
    """Return the state after `declare -n name=other`."""
    for argument in names:
        name, _, target = (concrete(argument) or "?").partition("=")
        if not NAME.fullmatch(name) or not NAME.fullmatch(target) or target in state.references:
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


def split_options(arguments: tuple[Parts, ...]) -> tuple[str | None, list[Parts]]:
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
