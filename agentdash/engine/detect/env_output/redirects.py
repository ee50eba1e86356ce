"""Redirections: where the output of a command goes, and what it reads."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.expansion import Expander
from agentdash.engine.detect.env_output.files import opened_content
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Choice,
    Hole,
    Kind,
    Parts,
    concrete,
    errors_of,
    joined,
)
from agentdash.engine.detect.env_output.streams import STDERR, STDOUT, Emit, Fork, Outcome, Stream, parts_of
from agentdash.engine.detect.env_output.world import State, UnreadableError
from agentdash.engine.detect.shell import ProcessSubstitution, Redirect, Script, Word

_TERMINAL: Final[dict[str, int]] = {
    "/dev/stdout": STDOUT,
    "/dev/fd/1": STDOUT,
    "/proc/self/fd/1": STDOUT,
    "/dev/stderr": STDERR,
    "/dev/fd/2": STDERR,
    "/proc/self/fd/2": STDERR,
}


class Nowhere(Enum):
    """A destination that keeps nothing."""

    NULL = "/dev/null"


class File(msgspec.Struct, frozen=True):
    """A file that is written."""

    path: Parts
    append: bool


Destination = int | Nowhere | File
"""A descriptor of the shell, nowhere, or a file."""


class Routing(msgspec.Struct, frozen=True):
    """Where a command's two outputs go, and its standard input where it is redirected."""

    out: Destination = STDOUT
    err: Destination = STDERR
    stdin: Parts | None = None
    may_fail: bool = False
    """A file that is read may be missing: the command does not run then."""

    @property
    def files(self) -> tuple[File, ...]:
        """The files that are opened for writing."""
        return tuple(dict.fromkeys(d for d in (self.out, self.err) if isinstance(d, File)))

    def route(self, stream: Stream, state: State) -> tuple[Stream, State]:
        """Return what of a stream goes to the shell's descriptors, and the state with the files written."""
        for file in self.files:
            fds = [fd for fd, destination in ((STDOUT, self.out), (STDERR, self.err)) if destination == file]
            content = parts_of(stream, fds[0]) if len(fds) == 1 else _both(stream)
            if file.append:
                before = dict(state.files).get(file.path)
                content = joined((*before, *content)) if before is not None else (ANY,)
            state = state.with_file(file.path, content)
        return self._terminal(stream), state

    def _terminal(self, stream: Stream) -> Stream:
        if (self.out, self.err) == (STDOUT, STDERR):
            return stream
        result: list[Emit | Fork] = []
        for entry in stream:
            if isinstance(entry, Fork):
                result.append(Fork(tuple(self._terminal(option) for option in entry.options)))
            elif isinstance(destination := self.out if entry.fd == STDOUT else self.err, int):
                result.append(Emit(destination, entry.parts))
        return tuple(result)


def _both(stream: Stream) -> Parts:
    return tuple(part for entry in stream for part in (entry.parts if isinstance(entry, Emit) else (ANY,)))


def routing(redirects: tuple[Redirect, ...], expander: Expander) -> Routing:
    """Return where redirections, applied from left to right, lead."""
    result = Routing()
    for redirect in redirects:
        result = _applied(result, redirect, expander)
    return result


def _applied(routing: Routing, redirect: Redirect, expander: Expander) -> Routing:
    replace = msgspec.structs.replace
    target = () if redirect.target is None else expander.word(redirect.target)
    match redirect.operator:
        case "<<" | "<<-":
            return replace(routing, stdin=target)
        case "<<<":
            return replace(routing, stdin=joined((*target, "\n")))
        case "<" if (script := _process(redirect)) is not None:
            parts, errors = expander.substitute_untrimmed(script)
            expander.errors += errors
            return replace(routing, stdin=parts)
        case "<":
            if target not in dict(expander.state.files):
                expander.errors += (Emit(STDERR, errors_of(": ")),)
                routing = replace(routing, may_fail=True)
            content = opened_content(target, expander.state)
            return replace(routing, stdin=content) if redirect.fd in (None, 0) else routing
        case ">" | ">>" | ">|" | "&>" | "&>>":
            destination = _destination(target, append=redirect.operator.endswith(">>"), routing=routing)
            if redirect.operator.startswith("&"):
                return replace(routing, out=destination, err=destination)
        case ">&":
            destination = _duplicate(target, routing)
            if redirect.fd is None and not isinstance(destination, int):
                return replace(routing, out=destination, err=destination)
        case _:
            raise UnreadableError
    match redirect.fd:
        case None | 1:
            return replace(routing, out=destination)
        case 2:
            return replace(routing, err=destination)
        case _:
            raise UnreadableError


def _process(redirect: Redirect) -> Script | None:
    """Return the script of `< <(…)`."""
    match redirect.target:
        case Word(pieces=(ProcessSubstitution(script=script, direction="<"),)):
            return script
        case _:
            return None


def _destination(target: Parts, *, append: bool, routing: Routing) -> Destination:
    path = concrete(target)
    if path == "/dev/null":
        return Nowhere.NULL
    if path in _TERMINAL:
        return routing.out if _TERMINAL[path] == STDOUT else routing.err
    if path is not None and path.startswith("/dev/"):
        raise UnreadableError
    return File(target, append)


def _duplicate(target: Parts, routing: Routing) -> Destination:
    match concrete(target):
        case "1":
            return routing.out
        case "2":
            return routing.err
        case "-":
            return Nowhere.NULL
        case text if text is not None and not text.isdecimal():
            return _destination(target, append=False, routing=routing)
        case _:
            raise UnreadableError


def routed(outcomes: list[Outcome], route: Routing, errors: Stream) -> list[Outcome]:
    """Return outcomes with what they write redirected; `errors` was written by expansions before."""
    result: list[Outcome] = []
    for outcome in outcomes:
        stream, state = route.route(outcome.stream, outcome.state)
        status = None if route.may_fail else outcome.status
        result.append(msgspec.structs.replace(outcome, stream=(*errors, *stream), state=state, status=status))
    if route.files and result:  # the file cannot be written: what the script does then is not followed
        failed: Stream = (*errors, Emit(STDERR, (*_cannot_write(route.files[0].path), ANY)))
        result.append(Outcome(stream=failed, status=None, state=result[0].state, leaves="exit"))
    return result


def _cannot_write(path: Parts) -> Parts:
    """Return what shells write where a file cannot be opened."""
    start, rest = Hole(Kind.QUIET_LINE), Hole(Kind.QUIET_LINE)
    forms: tuple[Parts, ...] = (
        (start, ": ", *path, ": ", rest, "\n"),
        (start, ": ", *path, "\n"),
        (start, "cannot create ", *path, ": ", rest, "\n"),
    )
    return (Choice(tuple(joined(form) for form in forms)),)
