"""Follow the statements of a script under one hypothesis about the flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from agentdash.sandbox.flags.commands import CHANGING, run_program
from agentdash.sandbox.flags.parts import (
    ANYTHING,
    STEM,
    Errors,
    Hole,
    Other,
    Part,
    Parts,
    joined,
    literal,
)
from agentdash.sandbox.flags.state import Call, Outcome, State, UnreadableError
from agentdash.sandbox.shell import syntax as shell

_MAX_OUTCOMES: Final = 24
"""Ways in which a script can run that are followed."""
_MAX_ROUNDS: Final = 30


def follow(script: shell.Script, state: State) -> list[Outcome]:
    """Return the ways in which a script can run.

    Raises:
        UnreadableError: it may change the flags, or there are too many ways.
    """
    return _continued([Outcome(state)], script)


def _continued(outcomes: list[Outcome], script: shell.Script) -> list[Outcome]:
    """Return the ways in which a script can run that is run after others."""
    for item in script.items:
        if item.background:
            raise UnreadableError
        outcomes = _bounded(after for before in outcomes for after in _then(before, item.node))
    return outcomes


def _bounded(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return outcomes, equal ones once."""
    found: list[Outcome] = []
    for outcome in outcomes:
        if outcome not in found:
            found.append(outcome)
        if len(found) > _MAX_OUTCOMES:
            raise UnreadableError
    return found


def _then(before: Outcome, node: shell.Node) -> Iterator[Outcome]:
    """Yield what a statement leads to that is run after others."""
    if before.ends:
        yield before
        return
    for outcome in _run(node, before.state):
        after = outcome.after(before.printed)
        if not after.state.errexit or after.status == 0 or after.ends or isinstance(node, shell.Not):
            yield after
            continue
        if isinstance(node, shell.AndOr):
            yield after  # only a failure of the last part ends the script
        elif after.status is None:
            yield after.changed(status=0)
        yield after.changed(status=1, ends="exit")


def _run(node: shell.Node, state: State) -> list[Outcome]:
    run = _RUNNERS.get(type(node))
    if run is None or next(state.world.steps, None) is None:
        raise UnreadableError
    found: list[Outcome] = run(node, state)
    return found


def _tested(node: shell.Node | shell.Script, state: State) -> list[Outcome]:
    """Run a condition: `set -e` does not end the script there."""
    inner = state.changed(errexit=False)
    found = follow(node, inner) if isinstance(node, shell.Script) else _run(node, inner)
    return [outcome.changed(state=outcome.state.changed(errexit=state.errexit)) for outcome in found]


def _statuses(outcome: Outcome) -> tuple[int, ...]:
    return (0, 1) if outcome.status is None else (outcome.status,)


# ---------------------------------------------------------------- lists and compound commands


def _and_or(node: shell.AndOr, state: State) -> list[Outcome]:
    found: list[Outcome] = []
    for left in _tested(node.left, state):
        for status in _statuses(left):
            if not left.ends and (status == 0) == (node.operator == "&&"):
                found += [right.after(left.printed) for right in _run(node.right, left.state)]
            else:
                found.append(left.changed(status=status))
    return _bounded(found)


def _not(node: shell.Not, state: State) -> list[Outcome]:
    found = _tested(node.body, state)
    return [o.changed(status=None if o.status is None else int(o.status == 0)) for o in found]


def _group(node: shell.Group, state: State) -> list[Outcome]:
    found = follow(node.body, state)
    return [outcome.around(state) for outcome in found] if node.subshell else found


def _compound(node: shell.Compound, state: State) -> list[Outcome]:
    return _redirected(_run(node.body, state), node.redirects)


def _if(node: shell.If, state: State) -> list[Outcome]:
    pending, found = [Outcome(state)], []
    for condition, body in node.branches:
        tested = [o.after(before.printed) for before in pending for o in _tested(condition, before.state)]
        found += [outcome for outcome in tested if outcome.ends]
        tested = [outcome for outcome in tested if not outcome.ends]
        for outcome in tested:
            if 0 in _statuses(outcome):
                found += _continued([outcome.changed(status=0)], body)
        pending = [outcome.changed(status=0) for outcome in tested if 1 in _statuses(outcome)]
    return _bounded([*found, *(_continued(pending, node.otherwise) if node.otherwise else pending)])


def _for(node: shell.For, state: State) -> list[Outcome]:
    words = [expand(word, state) for word in node.words or ()]
    values = [literal(word) for word in words if word is not None]
    if node.words is None or None in values or len(values) > _MAX_ROUNDS or any(map(is_active, node.words)):
        raise UnreadableError
    outcomes = [Outcome(state)]
    for value in values:
        entered = [o.changed(state=o.state.with_variable(node.name, (value or "",))) for o in outcomes]
        outcomes = _continued(entered, node.body)
    return outcomes


# ---------------------------------------------------------------- pipelines


def _pipeline(node: shell.Pipeline, state: State) -> list[Outcome]:
    first, *others = node.parts
    outcomes = [outcome.around(state) for outcome in _run(first, state)]
    for part in others:
        if not isinstance(part, shell.Simple) or any(node.stderr):
            raise UnreadableError
        outcomes = _bounded(after for before in outcomes for after in _piped(before, part, state))
    if not state.pipefail:
        return outcomes
    return [outcome.changed(status=None if outcome.status == 0 else outcome.status) for outcome in outcomes]


def _piped(before: Outcome, node: shell.Simple, state: State) -> list[Outcome]:
    errors = tuple(part for part in before.printed if isinstance(part, Errors))
    printed = tuple(part for part in before.printed if not isinstance(part, Errors))
    if node.words and node.words[0].text in CHANGING:
        raise UnreadableError  # zsh runs the last part in the shell itself
    return [o.after(errors).around(state) for o in _simple(node, state, printed)]


# ---------------------------------------------------------------- simple commands


def _simple(node: shell.Simple, state: State, stdin: Parts | None = None) -> list[Outcome]:
    assigned = _assigned(node.assignments, state)
    expanded = [expand(word, state) for word in node.words]
    words = [value for value in expanded if value is not None]
    if state.dialect not in ("bash", "dash") and any(map(is_active, node.words)):
        raise UnreadableError  # zsh fails where no file matches
    if not words:
        values = [a.value.pieces for a in node.assignments if a.value is not None]
        runs = any(isinstance(piece, shell.Substitution) for pieces in values for piece in pieces)
        return _redirected([Outcome(assigned, status=None if runs else 0)], node.redirects)
    for redirect in node.redirects:
        if redirect.operator.startswith("<") and redirect.operator != "<&":
            stdin = _input(redirect, state)
    outcomes = run_program(Call(tuple(words), assigned, stdin, follow))
    if node.assignments:
        outcomes = [o.changed(state=o.state.changed(variables=state.variables)) for o in outcomes]
    return _redirected(outcomes, node.redirects)


def _assigned(assignments: tuple[shell.Assignment, ...], state: State) -> State:
    for assignment in assignments:
        if any(STEM in word.raw for word in assignment.elements):
            raise UnreadableError
        value: Parts = ANYTHING
        if assignment.value is not None:  # also of `x+=${FLAG:=…}`, which sets a flag
            expanded = expand(assignment.value, state, splits=False) or ()
            value = ANYTHING if assignment.append else expanded
        state = state.with_variable(assignment.name, value)
    return state


def _input(redirect: shell.Redirect, state: State) -> Parts | None:
    """Return what a command reads that is fed by a redirection; None if that is not known."""
    target = redirect.target
    if target is None or redirect.fd not in (None, 0):
        return None
    if redirect.operator in ("<<", "<<-"):
        return expand(target, state) or () if redirect.expands else (target.text,)
    if redirect.operator == "<<<":
        return (*(expand(target, state) or ()), "\n")
    return None


_RUNNERS: Final[dict[type, Any]] = {
    shell.Simple: _simple,
    shell.Pipeline: _pipeline,
    shell.AndOr: _and_or,
    shell.Not: _not,
    shell.Group: _group,
    shell.Compound: _compound,
    shell.If: _if,
    shell.For: _for,
}
"""What is missing here ends the reading: functions, `case`, `while`, arithmetic."""


# ---------------------------------------------------------------- words

_ACTIVE: Final = re.compile(r"[*?]|\[.+\]|\{[^{}]*(?:,|\.\.)[^{}]*\}|^~|^=\w")
"""Unquoted text that shells replace: globs, braces, a tilde, `=name` in zsh."""
_SPLITTING: Final = re.compile(r"[\s*?\[]")


def is_active(word: shell.Word) -> bool:
    """Return whether a shell may replace unquoted text of a word, or fail at it."""
    if word.raw in ("[", "[["):
        return False
    for piece in word.pieces:
        if isinstance(piece, shell.Text) and not piece.quoted and _ACTIVE.search(piece.text):
            return True
    return False


def expand(word: shell.Word, state: State, *, splits: bool = True) -> Parts | None:
    """Return what a word stands for; None if it vanishes.

    Args:
        word: as it is written.
        state: of the shell.
        splits: whether values without quotes become several words: not in assignments.

    Raises:
        UnreadableError: it may change a flag, or depends on one in a way that is not followed.
    """
    found: list[Part] = []
    quoted = False
    active = is_active(word)
    for piece in word.pieces:
        quoted = quoted or piece.quoted
        match piece:
            case shell.Text():
                value: Parts = (Hole.LINE,) if active and not piece.quoted else (piece.text,)
            case shell.Parameter():
                value = _parameter(piece, state)
            case shell.Substitution() if piece.raw[0] not in "<>":
                value = _substitution(piece.script, state)
            case shell.Opaque() if STEM not in piece.raw:
                value = ANYTHING
            case _:
                raise UnreadableError
        may_split = splits and not piece.quoted and not isinstance(piece, shell.Text) and _may_split(value)
        found += ANYTHING if may_split else value
    parts = tuple(found)
    return None if not quoted and word.pieces and literal(parts) == "" else parts


def _may_split(value: Parts) -> bool:
    """Return whether a value without quotes around it may become several words, or other ones."""
    return any(isinstance(part, str) and _SPLITTING.search(part) for part in value)


def _parameter(parameter: shell.Parameter, state: State) -> Parts:
    name, operator = parameter.name, parameter.operator
    if operator in (":=", "=", ":?", "?") or STEM in (parameter.index or ""):
        raise UnreadableError
    if parameter.prefix == "!" or parameter.index or not re.fullmatch(r"[A-Za-z_]\w*|[\d@*#?$!-]", name):
        return ANYTHING
    value = state.value(name)
    if value is None and state.nounset and operator not in (":-", "-", ":+", "+"):
        raise UnreadableError  # it ends the script
    if parameter.prefix == "#":
        return (Hole.LINE,)
    if not operator:
        return value or ()
    present = value is not None and _is_present(value, operator)
    if operator not in (":-", "-", ":+", "+") or present is None:
        return ANYTHING
    if present != ("-" in operator):
        return _argument(parameter, state)
    return (value or ()) if present else ()


def _is_present(value: Parts, operator: str) -> bool | None:
    """Return whether a value that is set counts as there for an operator; None if that is not known."""
    if (text := literal(value)) is not None:
        return bool(text) or ":" not in operator
    if any(isinstance(part, Other) or (isinstance(part, str) and part) for part in value):
        return True
    return None


def _argument(parameter: shell.Parameter, state: State) -> Parts:
    if parameter.argument is None:
        return () if parameter.raw.endswith(parameter.operator + "}") else ANYTHING
    return expand(parameter.argument, state) or ()


def _substitution(script: shell.Script, state: State) -> Parts:
    """Return the output of `$(…)`, without the newlines at its end."""
    outputs = list(dict.fromkeys(outcome.printed for outcome in follow(script, state)))
    if any(isinstance(part, Errors) for output in outputs for part in output):
        raise UnreadableError
    if len(outputs) == 1 and all(isinstance(part, str | Other) for part in outputs[0]):
        return _stripped(outputs[0])
    if all(map(_is_one_line, outputs)):
        return (Hole.LINE,)
    return ANYTHING


def _stripped(output: Parts) -> Parts:
    """Return an output without the newlines at its end."""
    for number, part in reversed(list(enumerate(output))):
        if not isinstance(part, str):
            return output[: number + 1]
        if text := part.rstrip("\n"):
            return (*output[:number], text)
    return ()


def _is_one_line(output: Parts) -> bool:
    text = literal(output)
    return text is not None and "\n" not in text.rstrip("\n")


# ---------------------------------------------------------------- redirections

_OUT, _ERR, _FILE, _NOWHERE = "out", "err", "file", "/dev/null"
_WRITING: Final = (">", ">>", ">|", "&>", "&>>", ">&")


def _redirected(outcomes: list[Outcome], redirects: tuple[shell.Redirect, ...]) -> list[Outcome]:
    return [_sent_elsewhere(outcome, redirects) for outcome in outcomes] if redirects else outcomes


def _sent_elsewhere(outcome: Outcome, redirects: tuple[shell.Redirect, ...]) -> Outcome:
    """Return the outcome of a command with its output sent elsewhere.

    Raises:
        UnreadableError: more than the two streams are used.
    """
    to = {1: _OUT, 2: _ERR}
    for redirect in redirects:
        operator, fd = redirect.operator, redirect.fd
        if operator.startswith("<") and fd in (None, 0):
            continue
        if redirect.target is None or operator not in _WRITING or fd not in (None, 1, 2):
            raise UnreadableError
        target = literal(expand(redirect.target, outcome.state)) or ""
        if operator == ">&" and target in ("1", "2"):
            to[fd or 1] = to[int(target)]
            continue
        if target == "-" or (target.startswith("/dev/") and target != _NOWHERE):
            raise UnreadableError
        place = _NOWHERE if target == _NOWHERE else _FILE
        to |= {1: place, 2: place} if "&" in operator else {fd or 1: place}
    printed = joined((_sent(part, to[1], to[2]) for part in outcome.printed), "")
    if _FILE not in to.values():
        return outcome.changed(printed=printed)
    # a file that cannot be opened keeps the command from running
    return outcome.changed(printed=(Errors((Hole.QUIET,)), *printed), status=None)


def _sent(part: Part, output: str, errors: str) -> Parts:
    """Return what is still seen of a part of an output; what is not known may be of both streams."""
    inner = part.parts if isinstance(part, Errors) else (part,)
    places = {errors} if isinstance(part, Errors) else {output}
    if part in (Hole.ANY, Hole.QUIET):
        places.add(errors)
    if _OUT in places:
        return inner
    return (Errors(inner),) if _ERR in places else ()
