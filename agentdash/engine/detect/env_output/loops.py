"""Loops: over known words they are unrolled; over an environment they print a dump in their own style."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Final

import msgspec

from agentdash.engine.detect.env_output.dump_maps import has_whole_words
from agentdash.engine.detect.env_output.dumps import ENV_STYLE, FLAGS, Dump, Style
from agentdash.engine.detect.env_output.environment_loops import (
    Bind,
    dumped,
)
from agentdash.engine.detect.env_output.expansion import AbortedError, Expander
from agentdash.engine.detect.env_output.feeding import reads_input
from agentdash.engine.detect.env_output.inputs import lines_of
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    QUIET,
    QUIET_TEXT,
    Choice,
    Hole,
    Kind,
    Names,
    Parts,
    Trimmed,
    Words,
    concrete,
    is_quiet,
    joined,
)
from agentdash.engine.detect.env_output.reading import split_line
from agentdash.engine.detect.env_output.repetition import (
    MAX_ROUNDS,
    sort_round,
    while_rounds,
)
from agentdash.engine.detect.env_output.simple import bad_substitution
from agentdash.engine.detect.env_output.streams import (
    STDERR,
    STDOUT,
    Emit,
    Outcome,
    Stream,
    behind,
    merged,
    only,
    parts_of,
    variants,
)
from agentdash.engine.detect.env_output.unfollowed import LOST, bounded, lost, unknown_after
from agentdash.engine.detect.env_output.world import State, UnreadableError
from agentdash.sandbox.shell import For, Group, Parameter, Script, Simple, Substitution, While, Word

if TYPE_CHECKING:
    from agentdash.engine.detect.env_output.interpreter import Interpreter

_OTHER_SHELL: Final[Parts] = (ANY, Choice((("not found",), ("ad substitution",), ("llegal option",))), ANY)
"""What other shells write where a loop uses what bash alone has."""


def run_loop(interpreter: Interpreter, node: For | While, state: State, *, guarded: bool) -> list[Outcome]:
    """Return the outcomes of a loop."""
    started = interpreter.steps
    if isinstance(node, While):
        if (outcomes := while_rounds(interpreter, node, state, guarded=guarded)) is not None:
            return outcomes
        interpreter.forget_steps(started)
        both = Script((*node.condition.items, *node.body.items))
        return blurred(interpreter.script(both, unknown_after(Group(both), state), guarded=True), state)
    expander = Expander(state, interpreter.substituted)
    if node.words is not None and len(node.words) == 1:
        names = _names_loop(interpreter, node, node.words[0], state)
        if names is not None:
            return names
        if orders := _orders_of_keys(node.words[0], state):
            ways = [_rounds(interpreter, node, list(words), expander, guarded=guarded) for words in orders]
            return merged([outcome for outcomes in ways for outcome in outcomes])
    try:
        words = _loop_words(node, expander)
    except AbortedError:
        raise UnreadableError from None
    if len(words) == 1 and len(words[0]) == 1 and isinstance(listed := words[0][0], Words):
        listing = (ANY,) if listed.is_split and not has_whole_words(listed.parts) else listed.parts
        ran = _over_lines(interpreter, node, listing, expander.state)
        failed = bad_substitution(expander, state)
        return failed if failed and state.dialect else [*ran, *failed]
    is_list = node.words is not None and all(map(expander.is_list, node.words))
    if len(words) > MAX_ROUNDS or not (is_list or all(map(_is_one_word, words))):
        unknown = unknown_after(node, expander.state)
        if all(map(is_quiet, words)):
            unknown = unknown.with_variable(node.name, (QUIET_TEXT,))
        return blurred(interpreter.script(node.body, unknown, guarded=True), unknown, errors=expander.errors)
    outcomes = _rounds(interpreter, node, words, expander, guarded=guarded)
    return [*outcomes, *bad_substitution(expander, state)]


_MAX_KEYS: Final = 3
"""Of an array with keys, of which each order is followed."""


def _orders_of_keys(word: Word, state: State) -> list[tuple[Parts, ...]]:
    """Return the lists that the keys or the values of an array with keys can become; none for others."""
    match word.pieces:
        case (Parameter(name=name, index="[@]", prefix="" | "!" as prefix, operator=""),):
            start = f"{name}["
            listed = [
                (variable[len(start) : -1],) if prefix else value or ()
                for variable, value in state.variables
                if variable.startswith(start)
            ]
            return [tuple(order) for order in permutations(listed)] if 0 < len(listed) <= _MAX_KEYS else []
        case _:
            return []


def _is_one_word(parts: Parts) -> bool:
    return all(
        isinstance(part, str) or (isinstance(part, Hole) and part.kind in (Kind.OTHER, Kind.DIGITS))
        for part in parts
    )


def _over_lines(interpreter: Interpreter, node: For, content: Parts, state: State) -> list[Outcome]:
    """Run `for line in "${lines[@]}"` over the lines of a dump."""
    after = unknown_after(node, state)
    parts: Parts = (ANY,)
    match content:
        case (Trimmed(parts=inner),):
            return _over_lines(interpreter, node, inner, state)
        case (Choice(options=options),):
            ran = [_over_lines(interpreter, node, option, state) for option in options]
            return merged([outcome for outcomes in ran for outcome in outcomes])
        case ():
            return [Outcome(stream=(), status=0, state=state)]
        case (Names() as names,):
            parts = _over_names(interpreter, node.body, node.name, names, state)
        case (Dump(style=style, separator="", numbered=False) as dump,) if style == ENV_STYLE:
            present = (dump.required(0), dump.required(1))

            def bind(name: str, value: Parts) -> State:
                return state.with_variable(node.name, (f"{name}=", *value))

            parts = dumped(interpreter, node.body, bind, present, state)
        case _:
            pass
    return [Outcome(stream=(Emit(STDOUT, parts),) if parts else (), status=None, state=after)]


def lines_loop(
    interpreter: Interpreter, node: While, stdin: Parts, state: State, *, guarded: bool
) -> list[Outcome] | None:
    """Run `while read …` over lines that are known; None for other loops."""
    lines = lines_of(stdin)
    if (
        node.until
        or lines is None
        or len(lines) > MAX_ROUNDS
        or len(node.condition.items) != 1
        or not isinstance(read := node.condition.items[0].node, Simple)
        or not read.words
        or read.words[0].text != "read"
        or any(word.text == "-d" for word in read.words)
        or reads_input(node.body, state)
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
                sort_round(ran, following, done)
        current = bounded(following)
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
                sort_round([outcome], following, done)
        current = bounded(following)
    return merged([*done, *current])


def blurred(outcomes: list[Outcome], state: State, *, errors: Stream = ()) -> list[Outcome]:
    """Return the outcome of something that runs an unknown number of times."""
    for outcome in outcomes:
        for name in FLAGS:
            kept = outcome.state.value(name) == state.value(name)
            if not kept or (name in outcome.state.exported) != (name in state.exported):
                raise UnreadableError
        if outcome.state.files != state.files:
            state = msgspec.structs.replace(state, files=())
        for name, _ in outcome.state.variables:
            state = state.with_variable(name, (ANY,)) if name not in FLAGS else state
    parts = tuple(part for outcome in outcomes for part in parts_of(outcome.stream))
    stream = errors
    if parts:
        quiet = QUIET if isinstance(parts[-1], str) and parts[-1].endswith("\n") else QUIET_TEXT
        stream = (*errors, Emit(STDOUT, (quiet if is_quiet(parts) else ANY,)))
    result = Outcome(stream=stream, status=None, state=state)
    if any(outcome.leaves == LOST for outcome in outcomes):
        return [lost(state)]
    if any(outcome.leaves in ("exit", "return") for outcome in outcomes):
        return [result, msgspec.structs.replace(result, leaves="exit")]
    return [result]


# ---------------------------------------------------------------- loops over an environment


def _names_loop(interpreter: Interpreter, node: For, word: Word, state: State) -> list[Outcome] | None:
    """Run `for n in $(compgen -e)`; None for other loops."""
    match word.pieces:
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
                    after = unknown_after(node, state)
                    stream = (*errors, *((Emit(STDOUT, printed),) if printed else ()))
                    result.append(Outcome(stream=stream, status=None, state=after))
                case ():
                    result.append(Outcome(stream=errors, status=0, state=state))
                case _:
                    return None
    return result if is_names else None


def _over_names(interpreter: Interpreter, body: Script, variable: str, names: Names, state: State) -> Parts:
    # of the others only zsh has a list of names
    bash = msgspec.structs.replace(state, dialect=state.dialect if state.dialect == "zsh" else "bash")

    def bind(name: str, value: Parts) -> State:
        return bash.with_variable(variable, (name,)).with_variable(name, value).with_exported(name)

    return dumped(interpreter, body, bind, names.present, state)


def entries_loop(interpreter: Interpreter, node: While, stdin: Parts, state: State) -> Parts | None:
    """Return what `while read …; do …; done` prints of names or entries; None for other loops."""
    if (
        node.until
        or len(node.condition.items) != 1
        or not isinstance(read := node.condition.items[0].node, Simple)
        or reads_input(node.body, state)
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
        case _ if is_nul and state.dialect == "dash":
            return _OTHER_SHELL
        case (Names() as names,), [variable]:
            return _over_names(interpreter, node.body, variable, names, state)
        case (Dump(style=style, nul=nul, separator="", numbered=False) as dump,), _ if nul is is_nul:
            present = (dump.required(0), dump.required(1))
            known = msgspec.structs.replace(state, dialect=state.dialect or "bash")
            if separator is None:
                separator = concrete(dict(state.variables).get("IFS", (" \t\n",)) or ())
            if separator is None:
                return None
            bind = _entry_binding(variables or ["REPLY"], separator, style, known)
            if bind is None:
                return None
            parts = dumped(interpreter, node.body, bind, present, state)
            return parts if state.dialect else (Choice((parts, _OTHER_SHELL)),)
        case _:
            return None


def _entry_binding(variables: list[str], separators: str, style: Style, state: State) -> Bind | None:
    """Return how `read` splits the lines of a dump; None where a part of the value is not in the last one."""
    if len(style.prefixes) != 1 or style.quoted or style.squeezed or style.closings:
        return None
    if not separators and len(variables) > 1:
        return None

    def fields(name: str, value: Parts) -> list[Parts]:
        line = joined((style.prefixes[0].replace("NAME", name), *value, style.suffix))
        return split_line(line, separators, len(variables)) if separators else [line]

    def bind(name: str, value: Parts) -> State:
        bound = state
        for variable, field in zip(variables, fields(name, value), strict=True):
            bound = bound.with_variable(variable, field)
        return bound

    marked = [field for name in FLAGS for field in fields(name, (Hole(Kind.OTHER),))[:-1]]
    return bind if all(concrete(field) is not None for field in marked) else None
