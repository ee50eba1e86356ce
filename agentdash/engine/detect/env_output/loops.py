"""Loops: over known words they are unrolled; over an environment they print a dump in their own style."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from agentdash.engine.detect.env_output.arithmetic import evaluated
from agentdash.engine.detect.env_output.dumps import ENV_STYLE, FLAG_STEM, FLAGS, Dump, Presence, Shown, Style
from agentdash.engine.detect.env_output.expansion import AbortedError, Expander
from agentdash.engine.detect.env_output.inputs import lines_of
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    QUIET,
    Choice,
    Hole,
    Kind,
    Names,
    Parts,
    Trimmed,
    Words,
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
from agentdash.engine.detect.env_output.zsh import ALL_NAMES
from agentdash.engine.detect.shell import For, Group, Parameter, Script, Simple, Substitution, While, Word

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
    started = interpreter.steps
    if isinstance(node, While):
        if (outcomes := _while_rounds(interpreter, node, state, guarded=guarded)) is not None:
            return outcomes
        interpreter.forget_steps(started)
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
    if len(words) == 1 and len(words[0]) == 1 and isinstance(listed := words[0][0], Words):
        return _over_lines(interpreter, node, listed.parts, expander.state)
    if len(words) > _MAX_ROUNDS or not all(map(_is_one_word, words)):
        unknown = _unknown_after(node.body, expander.state).with_variable(node.name, (ANY,))
        return blurred(interpreter.script(node.body, unknown, guarded=True), unknown, errors=expander.errors)
    outcomes = _rounds(interpreter, node, words, expander, guarded=guarded)
    return [*outcomes, *bad_substitution(expander, state)]


def _is_one_word(parts: Parts) -> bool:
    return all(
        isinstance(part, str) or (isinstance(part, Hole) and part.kind in (Kind.OTHER, Kind.DIGITS))
        for part in parts
    )


def _over_lines(interpreter: Interpreter, node: For, content: Parts, state: State) -> list[Outcome]:
    """Run `for line in "${lines[@]}"` over the lines of a dump."""
    after = _unknown_after(node.body, state).with_variable(node.name, (ANY,))
    parts: Parts = (ANY,)
    match content:
        case (Trimmed(parts=inner),):
            return _over_lines(interpreter, node, inner, state)
        case (Dump(style=style, separator="", numbered=False) as dump,) if style == ENV_STYLE:
            present = (dump.required(0), dump.required(1))

            def bind(name: str, value: Parts) -> State:
                return state.with_variable(node.name, (f"{name}=", *value))

            parts = _dumped(interpreter, node.body, bind, present, state)
        case _:
            pass
    return [Outcome(stream=(Emit(STDOUT, parts),), status=None, state=after)]


def counted_loop(interpreter: Interpreter, raw: str, body: Script, state: State) -> list[Outcome] | None:
    """Run `for ((…; …; …))`; None where its rounds are not known."""
    header = re.match(r"for\s*\(\(([^;]*);([^;]*);([^;]*?)\)\)", raw)
    if header is None:
        return None
    first, test, step = header.groups()
    _, state = evaluated(first, state) if first.strip() else (0, state)

    def goes_on(current: State) -> list[Outcome]:
        value, after = evaluated(test, current)
        return [Outcome(stream=(), status=None if value is None else int(not value), state=after)]

    def after_round(current: State) -> State:
        return evaluated(step, current)[1] if step.strip() else current

    return _repeated(interpreter, goes_on, body, state, after_round=after_round)


def _while_rounds(
    interpreter: Interpreter, node: While, state: State, *, guarded: bool
) -> list[Outcome] | None:
    """Run `while` or `until` round by round; None where its rounds are not known."""

    def goes_on(current: State) -> list[Outcome]:
        tested = interpreter.script(node.condition, current, guarded=True)
        return [_inverted(outcome) for outcome in tested] if node.until else tested

    return _repeated(interpreter, goes_on, node.body, state, guarded=guarded)


def _inverted(outcome: Outcome) -> Outcome:
    status = None if outcome.status is None else int(outcome.status == 0)
    return msgspec.structs.replace(outcome, status=status)


def _repeated(
    interpreter: Interpreter,
    goes_on: Callable[[State], list[Outcome]],
    body: Script,
    state: State,
    *,
    guarded: bool = True,
    after_round: Callable[[State], State] = lambda state: state,
) -> list[Outcome] | None:
    """Run a body as long as a condition holds; None where that is not known, or takes too many rounds."""
    current = [Outcome(stream=(), status=0, state=state)]
    done: list[Outcome] = []
    for _ in range(_MAX_ROUNDS):
        following: list[Outcome] = []
        for before in current:
            for tested in behind(before.stream, goes_on(before.state)):
                if tested.status is None or tested.leaves:
                    return None
                if tested.status != 0:
                    done.append(msgspec.structs.replace(tested, status=0))
                    continue
                ran = behind(tested.stream, interpreter.script(body, tested.state, guarded=guarded))
                _sort_round(ran, following, done, after_round)
        current = merged(following)
        if not current:
            return merged(done)
        if len(current) > _MAX_OUTCOMES:
            break
    return None


def _sort_round(
    ran: list[Outcome],
    following: list[Outcome],
    done: list[Outcome],
    after_round: Callable[[State], State] = lambda state: state,
) -> None:
    """Add the outcomes of a round to those that another round follows, or to those that end the loop."""
    for outcome in ran:
        match outcome.leaves:
            case "" | "continue":
                state = after_round(outcome.state)
                following.append(msgspec.structs.replace(outcome, leaves="", state=state))
            case "break":
                done.append(msgspec.structs.replace(outcome, leaves="", status=0))
            case _:
                done.append(outcome)


def lines_loop(
    interpreter: Interpreter, node: While, stdin: Parts, state: State, *, guarded: bool
) -> list[Outcome] | None:
    """Run `while read …` over lines that are known; None for other loops."""
    lines = lines_of(stdin)
    if (
        node.until
        or lines is None
        or len(lines) > _MAX_ROUNDS
        or len(node.condition.items) != 1
        or not isinstance(read := node.condition.items[0].node, Simple)
        or not read.words
        or read.words[0].text != "read"
        or any(word.text == "-d" for word in read.words)
        or not all(map(_is_one_word, lines))
        or (stdin and not (isinstance(stdin[-1], str) and stdin[-1].endswith("\n")))
    ):
        return None
    current = [Outcome(stream=(), status=0, state=state)]
    done: list[Outcome] = []
    for line in lines:
        following: list[Outcome] = []
        for before in current:
            for bound in interpreter.node(read, before.state, guarded=True, stdin=line):
                if bound.status != 0 or bound.leaves:
                    return None
                ran = behind(before.stream, interpreter.script(node.body, bound.state, guarded=guarded))
                _sort_round(ran, following, done)
        current = merged(following)
        if len(current) > _MAX_OUTCOMES:
            raise UnreadableError
    names = [word.text for word in read.words[1:] if not word.text.startswith("-")] or ["REPLY"]
    ended = [msgspec.structs.replace(o, status=0, state=_without_values(o.state, names)) for o in current]
    return merged([*done, *ended])


def _without_values(state: State, names: list[str]) -> State:
    """Return the state after `read` has found the end of its input."""
    for name in names:
        state = state.with_variable(name, ())
    return state


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
                _sort_round([outcome], following, done)
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
    match word.pieces:
        case (Parameter(name=name, index=None, prefix="!", operator="@" | "*"),):
            return _prefixed_loop(interpreter, node, name, state)
        case (Substitution() as piece,):
            pass
        case _:
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


def _prefixed_loop(interpreter: Interpreter, node: For, prefix: str, state: State) -> list[Outcome] | None:
    """Run `for n in ${!CODEX_@}`, over names with a beginning; None for those of flags alone."""
    if prefix != ALL_NAMES and (len(prefix) >= len(FLAG_STEM) or not FLAG_STEM.startswith(prefix)):
        return None
    present = tuple(state.value(name) is not None for name in FLAGS)
    printed = _over_names(interpreter, node.body, node.name, Names((present[0], present[1])), state)
    after = _unknown_after(node.body, state).with_variable(node.name, (ANY,))
    stream = (Emit(STDOUT, printed),) if printed else ()
    ran = [Outcome(stream=stream, status=None, state=after)]
    expander = Expander(state, interpreter.substituted)
    expander.bashism = prefix != ALL_NAMES
    failed = bad_substitution(expander, state)
    return failed if failed and state.dialect else [*ran, *failed]


def _over_names(interpreter: Interpreter, body: Script, variable: str, names: Names, state: State) -> Parts:
    # of the others only zsh has a list of names
    bash = msgspec.structs.replace(state, dialect=state.dialect if state.dialect == "zsh" else "bash")

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
        case (Dump(style=style, nul=nul, separator="", numbered=False) as dump,), _ if (
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
