"""Redirections: where the output of a command goes, and what it reads."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dumps import Dump
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
from agentdash.sandbox.shell import Item, ProcessSubstitution, Redirect, Script, Simple, Word

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
    """Where what a command writes goes, by descriptor, and its standard input where it is redirected."""

    table: tuple[tuple[int, Destination], ...] = ()
    """Descriptors that do not lead where they lead outside of the command."""
    stdin: Parts | None = None
    may_fail: bool = False
    """A file that is read may be missing: the command does not run then."""

    def leads(self, fd: int) -> Destination:
        """Return where a descriptor leads."""
        return dict(self.table).get(fd, fd)

    def leading(self, fd: int, destination: Destination) -> Routing:
        """Return the routing after a descriptor was opened, or made a copy of another one."""
        table = {**dict(self.table), fd: destination}
        return msgspec.structs.replace(self, table=tuple(table.items()))

    @property
    def files(self) -> tuple[File, ...]:
        """The files that are opened for writing."""
        return tuple(dict.fromkeys(d for _, d in self.table if isinstance(d, File)))

    def route(self, stream: Stream, state: State) -> tuple[Stream, State]:
        """Return what of a stream goes to the shell's descriptors, and the state with the files written."""
        for file in self.files:
            fds = [fd for fd, destination in self.table if destination == file]
            content = parts_of(stream, *fds)
            if file.append:
                before = dict(state.files).get(file.path)
                content = joined((*before, *content)) if before is not None else (ANY,)
            state = state.with_file(file.path, content)
        return self._terminal(stream), state

    def _terminal(self, stream: Stream) -> Stream:
        if not self.table:
            return stream
        result: list[Emit | Fork] = []
        for entry in stream:
            if isinstance(entry, Fork):
                result.append(Fork(tuple(self._terminal(option) for option in entry.options)))
            elif isinstance(destination := self.leads(entry.fd), int):
                result.append(Emit(destination, entry.parts))
        return tuple(result)


def routing(redirects: tuple[Redirect, ...], expander: Expander) -> Routing:
    """Return where redirections, applied from left to right, lead."""
    result = Routing()
    for redirect in redirects:
        result = _applied(result, redirect, expander)
    return result


def _applied(routing: Routing, redirect: Redirect, expander: Expander) -> Routing:
    replace = msgspec.structs.replace
    destination: Destination
    script = _process(redirect)
    target = () if redirect.target is None or script is not None else expander.word(redirect.target)
    match redirect.operator:
        case "<" | "<<" | "<<-" | "<<<" | "<&" | "<&-" if redirect.fd not in (None, 0):
            return _opened(routing, redirect, expander)
        case "<<" | "<<-":
            return replace(routing, stdin=target)
        case "<<<":
            return replace(routing, stdin=joined((*target, "\n")))
        case "<" if script is not None:
            parts, errors = expander.substitute_untrimmed(script)
            expander.errors += errors
            return replace(routing, stdin=parts)
        case "<":
            if target not in dict(expander.state.files):
                expander.errors += (Emit(STDERR, errors_of(": ")),)
                routing = replace(routing, may_fail=True)
            return replace(routing, stdin=opened_content(target, expander.state))
        case "<&-":
            return replace(routing, stdin=())
        case "<&":
            return replace(routing, stdin=(ANY,))
        case ">&-":
            destination = Nowhere.NULL
        case ">" | ">>" | "&>" | "&>>" if script is not None:
            return _through(script, routing, joins=redirect.operator.startswith("&"))
        case ">" | ">>" | ">|" | "&>" | "&>>":
            destination = _destination(target, append=redirect.operator.endswith(">>"), routing=routing)
            if redirect.operator.startswith("&"):
                return routing.leading(STDOUT, destination).leading(STDERR, destination)
        case ">&":
            destination = _duplicate(target, routing)
            if redirect.fd is None and not isinstance(destination, int):
                return routing.leading(STDOUT, destination).leading(STDERR, destination)
        case _:
            raise UnreadableError
    return routing.leading(STDOUT if redirect.fd is None else redirect.fd, destination)


def _opened(routing: Routing, redirect: Redirect, expander: Expander) -> Routing:
    """Return the routing after a descriptor was opened for reading, or closed."""
    if redirect.operator == "<&-":
        return routing.leading(redirect.fd or 0, Nowhere.NULL)
    if redirect.operator != "<":
        return routing
    expander.errors += (Emit(STDERR, errors_of(": ")),)
    return msgspec.structs.replace(routing, may_fail=True)


def _through(script: Script, routing: Routing, *, joins: bool) -> Routing:
    """Return the routing through `> >(tee …)`, which writes what it reads; others are not followed."""
    match script.items:
        case (Item(node=Simple(words=(Word() as name, *_) as words, redirects=())),) if (
            name.text == "tee" and all(word.literal for word in words)
        ):
            return routing.leading(STDERR, routing.leads(STDOUT)) if joins else routing
        case _:
            raise UnreadableError


def _process(redirect: Redirect) -> Script | None:
    """Return the script of `< <(…)` or `> >(…)`, whose target is no path; None for other redirections."""
    match redirect.operator, redirect.target:
        case "<", Word(pieces=(ProcessSubstitution(script=script, direction="<"),)) if not redirect.fd:
            return script
        case ">" | ">>" | "&>" | "&>>", Word(pieces=(ProcessSubstitution(script=script, direction=">"),)):
            return script
        case _:
            return None


def _destination(target: Parts, *, append: bool, routing: Routing) -> Destination:
    path = concrete(target)
    if path == "/dev/null":
        return Nowhere.NULL
    if path in _TERMINAL:
        return routing.leads(_TERMINAL[path])
    if path is not None and path.startswith("/dev/"):
        raise UnreadableError
    return File(target, append)


def _duplicate(target: Parts, routing: Routing) -> Destination:
    match concrete(target):
        case "-":
            return Nowhere.NULL
        case text if text is not None and text.isdecimal():
            return routing.leads(int(text))
        case text if text is not None:
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


def of_shell(route: Routing) -> Routing:
    """Return the routing of a loop, which the shell that opened its file runs itself: it is still there."""
    match route.stdin:
        case (Dump(nul=True) as dump,):
            return msgspec.structs.replace(route, stdin=(msgspec.structs.replace(dump, partial=False),))
        case _:
            return route


def forgetting(route: Routing, state: State) -> State:
    """Return the state in which a compound command runs: what it writes to a file is not known there yet."""
    for file in route.files:
        if not file.append:
            state = state.with_file(file.path, (ANY,))
    return state


def _cannot_write(path: Parts) -> Parts:
    """Return what shells write where a file cannot be opened."""
    start, rest = Hole(Kind.QUIET_LINE), Hole(Kind.QUIET_LINE)
    forms: tuple[Parts, ...] = (
        (start, ": ", *path, ": ", rest, "\n"),
        (start, ": ", *path, "\n"),
        (start, "cannot create ", *path, ": ", rest, "\n"),
    )
    return (Choice(tuple(joined(form) for form in forms)),)
