"""Loops: over known words they are unrolled; over an environment they print a dump in their own style."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from agentdash.engine.detect.env_output.dumps import ENV_STYLE, FLAGS, Dump, Presence, Shown, Style
from agentdash.engine.detect.env_output.expansion import AbortedError, Expander
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    QUIET,
    Choice,
    Hole,
    Kind,
    Names,
    Parts,
    concrete,
    is_quiet,
)
from agentdash.engine.detect.env_output.simple import bad_substitution
from agentdash.engine.detect.env_output.streams import (
    STDERR,
    STDOUT,
    Emit,
    Outcome,
    Stream,
    all_parts,
    behind,
    merged,
    only,
    parts_of,
    variants,
)
from agentdash.engine.detect.env_output.world import State, UnreadableError, shown
from agentdash.engine.detect.shell import For, Group, Script, Simple, Substitution, While, Word

if TYPE_CHECKING:
    from agentdash.engine.detect.env_output.interpreter import Interpreter

_MAX_ROUNDS: Final = 60
"""Words of a `for` loop that are run one by one."""
_MAX_OUTCOMES: Final = 24
_ABSENT: Final = Shown(Presence.ABSENT)
_OTHER_SHELL: Final[Parts] = (ANY, Choice((("not found",), ("ad substitution",), ("llegal option",))), ANY)
"""What other shells write where a loop uses what bash alone has."""
_MARK: Final = Hole(Kind.OTHER, key="value of the loop")


def run_loop(interpreter: Interpreter, node: For | While, state: State, *, guarded: bool) -> list[Outcome]:
    """Return the outcomes of a loop."""
    if isinstance(node, While):
        both = Script((*node.condition.items, *node.body.items))
        return blurred(interpreter.script(both, _unknown_after(both, state), guarded=True), state)
    if node.words is not None and len(node.words) == 1:
        names = _names_loop(interpreter, node, node.words[0], state)
        if names is not None:
            return names
    expander = Expander(state, interpreter.substituted)
    try:
        words = _loop_words(node, expander)
    except AbortedError:
        raise UnreadableError from None
    if len(words) > _MAX_ROUNDS or any(concrete(word) is None for word in words):
        unknown = _unknown_after(node.body, expander.state).with_variable(node.name, (ANY,))
        return blurred(interpreter.script(node.body, unknown, guarded=True), unknown, errors=expander.errors)
    outcomes = _rounds(interpreter, node, words, expander, guarded=guarded)
    return [*outcomes, *bad_substitution(expander, state)]


def _loop_words(node: For, expander: Expander) -> list[Parts]:
    if node.words is None:
        positional = expander.state.array("@")
        if positional is None:
            raise UnreadableError
        return list(positional)
    return [field for word in node.words for field in expander.fields(word)]


def _rounds(
    interpreter: Interpreter, node: For, words: list[Parts], expander: Expander, *, guarded: bool
) -> list[Outcome]:
    current = [Outcome(stream=expander.errors, status=0, state=expander.state)]
    done: list[Outcome] = []
    for word in words:
        following: list[Outcome] = []
        for before in current:
            state = before.state.with_variable(node.name, word)
            for outcome in behind(before.stream, interpreter.script(node.body, state, guarded=guarded)):
                match outcome.leaves:
                    case "" | "continue":
                        following.append(msgspec.structs.replace(outcome, leaves=""))
                    case "break":
                        done.append(msgspec.structs.replace(outcome, leaves="", status=0))
                    case _:
                        done.append(outcome)
        current = merged(following)
        if len(current) > _MAX_OUTCOMES:
            raise UnreadableError
    return merged([*done, *current])


def blurred(
    outcomes: list[Outcome], state: State, *, is_quiet_enough: bool = True, errors: Stream = ()
) -> list[Outcome]:
    """Return the outcome of something that runs an unknown number of times, or with unknown input.

    Where `is_quiet_enough` is not set, what it writes may come from its input.
    """
    for outcome in outcomes:
        for name in FLAGS:
            kept = outcome.state.value(name) == state.value(name)
            if not kept or (name in outcome.state.exported) != (name in state.exported):
                raise UnreadableError
        if outcome.state.files != state.files:
            state = msgspec.structs.replace(state, files=())
        for name, _ in outcome.state.variables:
            state = state.with_variable(name, (ANY,)) if name not in FLAGS else state
    parts = tuple(part for outcome in outcomes for part in all_parts(outcome.stream))
    stream = errors
    if parts:
        stream = (*errors, Emit(STDOUT, (QUIET if is_quiet_enough and is_quiet(parts) else ANY,)))
    result = Outcome(stream=stream, status=None, state=state)
    if any(outcome.leaves in ("exit", "return") for outcome in outcomes):
        return [result, msgspec.structs.replace(result, leaves="exit")]
    return [result]


def _unknown_after(body: Script, state: State) -> State:
    """Return a state in which variables that a loop sets are not known, since the loop may run again."""
    for name in _assigned_in(body):
        state = state.with_variable(name, (ANY,)) if name not in FLAGS else state
    return state


def _assigned_in(body: Script) -> set[str]:
    names: set[str] = set()
    for item in body.items:
        match item.node:
            case Simple(words=(), assignments=assignments):
                names.update(assignment.name for assignment in assignments)
            case Group(body=inner) | For(body=inner) | While(body=inner):
                names |= _assigned_in(inner)
            case _:
                pass
    return names


# ---------------------------------------------------------------- loops over an environment

Bind = Callable[[str, Parts], State]
"""Gives the state of a round, of a variable's name and value."""


def _names_loop(interpreter: Interpreter, node: For, word: Word, state: State) -> list[Outcome] | None:
    """Run `for n in $(compgen -e)`; None for other loops."""
    if len(word.pieces) != 1 or not isinstance(piece := word.pieces[0], Substitution):
        return None
    result: list[Outcome] = []
    is_names = False
    for listed in interpreter.script(piece.script, state, guarded=True):
        for listing in variants(listed.stream) or [listed.stream]:
            errors = only(listing, STDERR)
            match parts_of(listing, STDOUT):
                case (Names() as names,):
                    is_names = True
                    printed = _over_names(interpreter, node.body, node.name, names, state)
                    after = _unknown_after(node.body, state).with_variable(node.name, (ANY,))
                    stream = (*errors, *((Emit(STDOUT, printed),) if printed else ()))
                    result.append(Outcome(stream=stream, status=None, state=after))
                case ():
                    result.append(Outcome(stream=errors, status=0, state=state))
                case _:
                    return None
    return result if is_names else None


def _over_names(interpreter: Interpreter, body: Script, variable: str, names: Names, state: State) -> Parts:
    bash = msgspec.structs.replace(state, dialect="bash")  # no other shell has compgen

    def bind(name: str, value: Parts) -> State:
        return bash.with_variable(variable, (name,)).with_variable(name, value).with_exported(name)

    return _dumped(interpreter, body, bind, names.present, state)


def entries_loop(interpreter: Interpreter, node: While, stdin: Parts, state: State) -> Parts | None:
    """Return what `while read …; do …; done` prints of names or entries; None for other loops."""
    if (
        node.until
        or len(node.condition.items) != 1
        or not isinstance(read := node.condition.items[0].node, Simple)
    ):
        return None
    words = [word.text for word in read.words]
    is_nul = words[1:4] in (["-r", "-d", ""], ["-d", "", "-r"]) or words[1:3] == ["-d", ""]
    if is_nul:
        words = [word for word in words if word not in ("-d", "")]
    variables = [word for word in words[1:] if not word.startswith("-")]
    separator = {a.name: a.value.text for a in read.assignments if a.value is not None}.get("IFS")
    if words[:1] != ["read"] or any(word.startswith("-") and word != "-r" for word in words):
        return None
    match stdin, variables:
        case (), _:
            return ()
        case (Names() as names,), [variable]:
            return _over_names(interpreter, node.body, variable, names, state)
        case (Dump(style=style, nul=nul, flat=False, numbered=False) as dump,), _ if (
            style == ENV_STYLE and nul is is_nul
        ):
            present = (dump.required(0), dump.required(1))
            known = msgspec.structs.replace(state, dialect=state.dialect or "bash")
            bind = _entry_binding(variables, separator, known)
            if bind is None:
                return None
            parts = _dumped(interpreter, node.body, bind, present, state)
            return parts if state.dialect else (Choice((parts, _OTHER_SHELL)),)
        case _:
            return None


def _entry_binding(variables: list[str], separator: str | None, state: State) -> Bind | None:
    """Return how `read` splits `NAME=value`."""
    match variables:
        case [line]:
            return lambda name, value: state.with_variable(line, (f"{name}=", *value))
        case [key, rest] if separator == "=":
            return lambda name, value: state.with_variable(key, (name,)).with_variable(rest, value)
        case _:
            return None


def _dumped(
    interpreter: Interpreter,
    body: Script,
    bind: Bind,
    present: tuple[bool | None, bool | None],
    state: State,
) -> Parts:
    """Return what the body of a loop prints for all variables: a dump, or any text."""
    styles: set[Style] = set()
    flags: list[Shown] = []
    for name, is_present in zip(FLAGS, present, strict=True):
        marked = _line(interpreter, body, bind(name, (_MARK,)))
        style = None if marked is None else _style(marked, name)
        if style is None:
            return (ANY,)
        styles.add(style)
        value = state.value(name)
        if is_present is False or value is None:
            flags.append(_ABSENT)
        elif (printed := _printed(_line(interpreter, body, bind(name, value)), style, name)) is not None:
            flags.append(printed)
        else:
            return (ANY,)
    if len(styles) != 1:
        return (ANY,)
    return (Dump(shown=(flags[0], flags[1]), style=styles.pop(), partial=None in present),)


def _style(line: Parts, name: str) -> Style | None:
    """Return the style of a line with the mark in the place of the value."""
    match line:
        case (str() as before, Hole(key=_MARK.key), str() as after):
            if name in before and "\n" not in before and after.find("\n") == len(after) - 1:
                return Style(prefixes=(before.replace(name, "NAME"),), suffix=after[:-1])
            return None
        case _:
            return None


def _printed(line: Parts | None, style: Style, name: str) -> Shown | None:
    """Return what a round prints of a flag; None for something else than a line of the style."""
    before, after = style.prefixes[0].replace("NAME", name), style.suffix + "\n"
    match line:
        case None:
            return None
        case ():
            return _ABSENT
        case (str() as first, Hole(kind=Kind.OTHER) as value, str() as last) if (first, last) == (
            before,
            after,
        ):
            return shown((value,))
        case _:
            text = concrete(line)
            if text is None or not text.startswith(before) or not text.endswith(after):
                return None
            return Shown(Presence.EXACT, text=text[len(before) : len(text) - len(after)])


def _line(interpreter: Interpreter, body: Script, state: State) -> Parts | None:
    """Return what one round prints; None where that depends on something unknown."""
    outcomes = [o for o in interpreter.script(body, state, guarded=True) if o.leaves in ("", "continue")]
    return all_parts(outcomes[0].stream) if len(outcomes) == 1 else None
