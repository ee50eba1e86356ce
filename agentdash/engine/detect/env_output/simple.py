"""Simple commands: expand their words, apply assignments and redirections, and run what they name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from agentdash.engine.detect.env_output.arithmetic import sets_flag
from agentdash.engine.detect.env_output.builtins import BUILTINS
from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.dumps import FLAGS
from agentdash.engine.detect.env_output.expansion import QUOTES, AbortedError, Expander
from agentdash.engine.detect.env_output.feeding import fed
from agentdash.engine.detect.env_output.launchers import LAUNCHERS, SHELLS, run_script_file, run_shell
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Choice,
    Hole,
    Kind,
    Parts,
    alternatives,
    concrete,
    joined,
)
from agentdash.engine.detect.env_output.programs import (
    has_usual_path,
    is_instant,
    program_name,
    run_program,
)
from agentdash.engine.detect.env_output.redirects import routed, routing
from agentdash.engine.detect.env_output.streams import (
    FAILED,
    STDERR,
    Call,
    Emit,
    Outcome,
    Stream,
    merged,
    outcome_of,
)
from agentdash.engine.detect.env_output.world import Environment, State, UnreadableError
from agentdash.engine.detect.word_sets import word_set
from agentdash.sandbox.shell import Assignment, Node, Simple

if TYPE_CHECKING:
    from agentdash.engine.detect.env_output.interpreter import Interpreter

_SEES_ASSIGNMENTS: Final = word_set("set export declare typeset compgen eval : unset readonly local")
"""Commands of the shell for which assignments in front of them count in ways that differ by shell."""
_MAX_POSITIONAL: Final = 9


def run_simple(
    interpreter: Interpreter, node: Simple, state: State, *, guarded: bool, stdin: Parts | None
) -> list[Outcome]:
    """Return the outcomes of a simple command."""
    expander = Expander(state, interpreter.substituted)
    if not interpreter.captures and _joins_errors(node):
        return [Outcome(stream=(), status=0, state=state)]
    try:
        is_test = bool(node.words) and node.words[0].text == "[["  # which does not split words
        words = [f for w in node.words for f in ([expander.word(w)] if is_test else expander.fields(w))]
        temporary: Environment = {}
        for assignment in node.assignments:
            value = _assigned(assignment, expander)
            value = (ANY,) if assignment.name in expander.state.numbers else value
            temporary[assignment.name] = value
            if not node.words:  # each assignment sees the ones before it
                expander.state = expander.state.with_variable(assignment.name, value).with_array(
                    assignment.name, _array(assignment, expander)
                )
                expander.state = _with_keys(assignment, expander)
    except AbortedError as aborted:
        return [aborted_outcome(aborted, state)]
    try:
        route = routing(node.redirects, expander)
    except AbortedError as aborted:  # where the command is a program, it is the program's process that ends
        outcome = aborted_outcome(aborted, state)
        return [outcome, msgspec.structs.replace(outcome, leaves="")]
    if words:
        given = next((text for text in (route.stdin, stdin, state.stdin) if text is not None), None)
        outcomes = _with_assignments(
            interpreter, words, temporary, expander.state, guarded=guarded, stdin=given
        )
    else:
        substitutes = any(a.value and a.value.expansions for a in node.assignments) or bool(node.words)
        status = expander.status if substitutes else 0
        outcomes = [Outcome(stream=(), status=status, state=expander.state)]
    ended = [aborted_outcome(expander.may_end, state)] if expander.may_end else []
    errors = expander.errors
    if expander.is_of_bash and state.dialect in ("zsh", "dash"):
        return bad_substitution(expander, state)
    if state.xtrace:
        errors = (*errors, *traced([*words, *(value or () for value in temporary.values())], state))
    return [*routed(outcomes, route, errors), *bad_substitution(expander, state), *ended]


def traced(words: list[Parts], state: State) -> Stream:
    """Return what `set -x` writes of a command: a line, or more where an argument has line breaks.

    In a pipeline dash may write the plus sign of a line on another one.
    """
    texts = [concrete(word) for word in words]
    key = " ".join(t for t in texts if t is not None) if state.dialect not in ("bash", "zsh") else ""
    is_long = any(
        "\n" in part
        if isinstance(part, str)
        else not (
            isinstance(part, Hole) and part.kind in (Kind.OTHER, Kind.DIGITS, Kind.QUIET_LINE, Kind.LINE)
        )
        for word in words
        for part in word
    )
    return (Emit(STDERR, (Hole(Kind.LONG_TRACE) if is_long else Hole(Kind.TRACE, key=key),)),)


def _joins_errors(node: Simple) -> bool:
    """Return whether a command is `exec 2>&1`: the output of the whole script is that of both streams."""
    joins = [(r.operator, r.fd, r.target.text if r.target else "") for r in node.redirects]
    return [word.text for word in node.words] == ["exec"] and joins == [(">&", 2, "1")]


def bad_substitution(expander: Expander, state: State) -> list[Outcome]:
    """Return the outcome in shells that end at an expansion which bash knows."""
    if not expander.bashism or state.dialect == "bash":
        return []
    message: Parts = (Hole(Kind.LINE), "ad substitution", Hole(Kind.LINE), "\n")
    return [Outcome(stream=(Emit(STDERR, message),), status=None, state=state, leaves="exit")]


def _assigned(assignment: Assignment, expander: Expander) -> Parts:
    if assignment.value is None:
        return (ANY,)
    value = expander.word(assignment.value)
    if assignment.append:
        before = expander.state.value(assignment.name) or ()
        return (ANY,) if ANY in before else joined((*before, *value))
    return value


_KEYED: Final = re.compile(r"\[(?P<key>[^\]=]*)\]=(?P<value>.*)", re.DOTALL)


def _with_keys(assignment: Assignment, expander: Expander) -> State:
    """Return the state with the elements that have a key: `name[key]=value`, `name=([key]=value)`."""
    state = expander.state
    if assignment.element is not None:
        index, word = assignment.element
        if (key := expander.key(index)) is None:
            raise UnreadableError
        name, value = f"{assignment.name}[{key}]", expander.word(word)
        if assignment.append:
            value = joined((*(dict(state.variables).get(name) or (ANY,)), *value))
        return state.with_variable(name, value)
    for word in assignment.elements or ():
        if word.raw.startswith("[") and sets_flag(word.raw.partition("]=")[0]):
            raise UnreadableError
        parts = expander.word(word)
        first = parts[0] if parts and isinstance(parts[0], str) else ""
        if match := _KEYED.match(first):
            name = f"{assignment.name}[{match['key'].strip(QUOTES)}]"
            state = state.with_variable(name, joined((match["value"], *parts[1:])))
    return state


def _array(assignment: Assignment, expander: Expander) -> tuple[Parts, ...] | None:
    """Return the elements of `name=(…)`; None for other assignments."""
    if assignment.elements is None:
        return None
    before = expander.state.array(assignment.name) if assignment.append else ()
    if before is None:
        return None
    return (*before, *(field for word in assignment.elements for field in expander.fields(word)))


def _with_assignments(
    interpreter: Interpreter,
    words: list[Parts],
    temporary: Environment,
    state: State,
    *,
    guarded: bool,
    stdin: Parts | None,
) -> list[Outcome]:
    environment = {**state.environment(), **{n: v for n, v in temporary.items() if n in FLAGS}}
    name = concrete(words[0])
    if any(flag in temporary for flag in FLAGS) and (
        name in dict(state.functions) or name in _SEES_ASSIGNMENTS
    ):
        raise UnreadableError
    _require_own_programs(name or "", _with_startup(state, temporary))
    if name == "read" and "IFS" in temporary:
        inner = state.with_variable("IFS", temporary["IFS"])
        outcomes = run_command(interpreter, words, inner, environment, guarded=guarded, stdin=stdin)
        known = dict(state.variables)
        return [msgspec.structs.replace(o, state=o.state.with_restored("IFS", known)) for o in outcomes]
    return run_command(interpreter, words, state, environment, guarded=guarded, stdin=stdin)


_STARTUP: Final = frozenset(("BASH_ENV", "ENV", "ZDOTDIR", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES"))
"""Variables of files that shells, or programs, read as they start."""
_IN_SHELL: Final = frozenset(("eval", "source", ".", "builtin", "exec", "command", "noglob", "nocorrect"))


def _with_startup(state: State, temporary: Environment) -> State:
    for name in temporary.keys() & {*_STARTUP, "PATH"}:
        state = state.with_variable(name, temporary[name])
    return state


def _require_own_programs(name: str, state: State) -> None:
    """Raise `UnreadableError` where the script has put something of its own in a program's place."""
    if name in BUILTINS or name in _IN_SHELL or "/" in name:
        return
    variables = dict(state.variables)
    if any(variables.get(variable) for variable in _STARTUP):
        raise UnreadableError
    if "PATH" in variables and not has_usual_path(variables["PATH"]):
        raise UnreadableError


def run_command(
    interpreter: Interpreter,
    words: list[Parts],
    state: State,
    environment: Environment,
    *,
    guarded: bool,
    stdin: Parts | None,
) -> list[Outcome]:
    """Return the outcomes of a command whose words are expanded."""
    for file, content in state.files:
        if file in words[1:] and (options := alternatives(content)):
            states = [state.with_file(file, option) for option in options]
            runs = [
                run_command(interpreter, words, each, environment, guarded=guarded, stdin=stdin)
                for each in states
            ]
            return merged([outcome for outcomes in runs for outcome in outcomes])
    path = concrete(words[0])
    if path is None:
        if (
            found := run_script_file(interpreter, _call(words[0], words, state, environment, stdin, guarded))
        ) is not None:
            return found
        raise UnreadableError
    interpreter.count_step()
    functions = dict(state.functions)
    if path in functions:
        return _call_function(interpreter, functions[path], words[1:], state, guarded=guarded, stdin=stdin)
    name = program_name(path)
    _require_own_programs(name, state)
    call = msgspec.structs.replace(_call(words[0], words, state, environment, stdin, guarded), name=name)
    shell = msgspec.structs.replace(call, name="sh", stdin=None)
    if name in state.missing:
        return [outcome_of(not_found(path), state)]
    call = msgspec.structs.replace(
        call,
        run_shell=lambda script: run_shell(
            interpreter, msgspec.structs.replace(shell, arguments=(("-c",), (script,)))
        ),
    )
    if name in LAUNCHERS:
        return LAUNCHERS[name](interpreter, call)
    if name in SHELLS:
        return run_shell(interpreter, call)
    if (found := run_script_file(interpreter, call)) is not None:
        return found
    interpreter.is_slow = interpreter.is_slow or (name not in BUILTINS and not is_instant(name))
    results = BUILTINS[name](call) if name in BUILTINS else run_program(call)
    return [outcome_of(result, state) for result in results]


def _call(
    path: Parts,
    words: list[Parts],
    state: State,
    environment: Environment,
    stdin: Parts | None,
    guarded: bool,
) -> Call:
    return Call(
        name="",
        path=path,
        arguments=tuple(words[1:]),
        state=state,
        environment=environment,
        stdin=stdin,
        guarded=guarded,
    )


def _call_function(
    interpreter: Interpreter,
    body: Node,
    arguments: list[Parts],
    state: State,
    *,
    guarded: bool,
    stdin: Parts | None,
) -> list[Outcome]:
    inner = state if stdin is None else fed(state, body, stdin)
    for number in range(1, _MAX_POSITIONAL + 1):
        inner = inner.with_variable(str(number), arguments[number - 1] if number <= len(arguments) else None)
    inner = inner.with_array("@", tuple(arguments))
    inner = msgspec.structs.replace(inner, scopes=(*state.scopes, frozenset()))
    result: list[Outcome] = []
    for outcome in interpreter.node(body, inner, guarded=guarded):
        after = outcome.state.without_own(state).with_positional_of(state)
        after = msgspec.structs.replace(after, references=state.references, stdin=state.stdin)
        leaves = "" if outcome.leaves == "return" else outcome.leaves
        result.append(msgspec.structs.replace(outcome, state=after, leaves=leaves))
    return result


def aborted_outcome(aborted: AbortedError, state: State) -> Outcome:
    """Return the outcome of an expansion at which the shell ends."""
    message: Parts = (Hole(Kind.LINE), ": ", Choice(aborted.messages), "\n")
    return Outcome(stream=(Emit(STDERR, message),), status=FAILED, state=state, leaves="exit")
