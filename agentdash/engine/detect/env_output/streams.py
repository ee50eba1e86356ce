"""What commands emit, by file descriptor, and the outcomes of running them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.patterns import (
    ANY,
    QUIET,
    Choice,
    Hole,
    Kind,
    Part,
    Parts,
    concrete,
    either,
    is_quiet,
    joined,
)
from agentdash.engine.detect.env_output.world import Environment, State

STDOUT: Final = 1
STDERR: Final = 2

_TIME_OF_ZSH: Final[Parts] = (Hole(Kind.LINE), "% cpu ", Hole(Kind.LINE), " total\n")
TIMES: Final[Parts] = (QUIET, *((Choice(((), _TIME_OF_ZSH)),) * 4))
"""What `time` writes: three lines in bash, one line with the command in zsh for each part of a pipeline."""

FAILED: Final = -1
"""An exit code that is not known, but for that it is not 0."""


class Emit(msgspec.Struct, frozen=True):
    """Text written to a descriptor."""

    fd: int
    parts: Parts


class Fork(msgspec.Struct, frozen=True):
    """One of several streams."""

    options: tuple[Stream, ...]


Stream = tuple[Emit | Fork, ...]


class Outcome(msgspec.Struct, frozen=True):
    """One way in which a statement can end; `leaves` is exit, return, break or continue."""

    stream: Stream
    status: int | None
    state: State
    leaves: str = ""


class Result(msgspec.Struct, frozen=True):
    """One way in which a program can end; `status` None is not known, `state` is the shell's if changed."""

    out: Parts = ()
    err: Parts = ()
    status: int | None = 0
    state: State | None = None
    leaves: str = ""


UNKNOWN: Final = [Result(out=(ANY,), err=(ANY,), status=None)]
"""What is known of a program that is not understood."""


class Call(msgspec.Struct, frozen=True):
    """A command that is about to run: arguments behind its name, what it reads, and what it inherits."""

    name: str
    path: Parts
    """The word that names the program."""
    arguments: tuple[Parts, ...]
    state: State
    environment: Environment
    stdin: Parts | None = None
    guarded: bool = False
    """Its failure does not end a script that runs with `set -e`."""
    run_shell: Callable[[str], list[Outcome]] | None = None
    """Runs a script as `sh -c` does, in the environment of the command."""

    @property
    def words(self) -> list[str | None]:
        """The arguments, None for those that are not known."""
        return [concrete(argument) for argument in self.arguments]

    @property
    def line(self) -> str:
        """The arguments with blanks between them, `?` for those that are empty or not known."""
        return " ".join(word or "?" for word in self.words)


def parts_of(stream: Stream, *fds: int) -> Parts:
    """Return what a stream writes to some descriptors, in order; without them, to all."""
    result: list[Part] = []
    for entry in stream:
        if isinstance(entry, Fork):
            result += either(parts_of(option, *fds) for option in entry.options)
        elif not fds or entry.fd in fds:
            result += entry.parts
    return joined(result)


_MAX_VARIANTS: Final = 32
"""Combinations of a stream's branches that are distinguished."""


def variants(stream: Stream) -> list[Stream] | None:
    """Return streams without branches that together are a stream; None where they are too many."""
    found: list[Stream] = [()]
    for entry in stream:
        if isinstance(entry, Emit):
            found = [(*before, entry) for before in found]
            continue
        inner: list[Stream] = []
        for option in entry.options:
            branch = variants(option)
            if branch is None:
                return None
            inner += branch
        found = [(*before, *branch) for before in found for branch in dict.fromkeys(inner)]
        if len(found) > _MAX_VARIANTS:
            return None
    return list(dict.fromkeys(found))


def only(stream: Stream, fd: int) -> Stream:
    """Return the part of a stream that goes to one descriptor."""
    parts = parts_of(stream, fd)
    return (Emit(fd, parts),) if parts else ()


def merged(outcomes: list[Outcome]) -> list[Outcome]:
    """Return outcomes with those of the same state and status made one."""
    groups: list[tuple[Outcome, list[Stream]]] = []
    for outcome in outcomes:
        # `$?` of the next command is set from the outcome
        settled = msgspec.structs.replace(outcome, state=msgspec.structs.replace(outcome.state, status=0))
        for first, streams in groups:
            if (first.status, first.leaves, first.state) == (settled.status, settled.leaves, settled.state):
                if settled.stream not in streams:
                    streams.append(settled.stream)
                break
        else:
            groups.append((settled, [settled.stream]))
    return [
        first if len(streams) == 1 else msgspec.structs.replace(first, stream=(Fork(tuple(streams)),))
        for first, streams in groups
    ]


def with_status(outcome: Outcome) -> State:
    """Return the state in which the next command runs."""
    return msgspec.structs.replace(outcome.state, status=outcome.status)


def behind(stream: Stream, outcomes: list[Outcome]) -> list[Outcome]:
    """Return outcomes that come after something was written."""
    if not stream:
        return outcomes
    return [msgspec.structs.replace(outcome, stream=(*stream, *outcome.stream)) for outcome in outcomes]


def outcome_of(result: Result, state: State) -> Outcome:
    """Return a program's result as an outcome."""
    out = (Emit(STDOUT, result.out),) if result.out else ()
    err = (Emit(STDERR, result.err),) if result.err else ()
    stream = (*out, *err) if is_quiet(result.err) and not _has_text(result.err) else interleaved(out, err)
    return Outcome(stream=stream, status=result.status, state=result.state or state, leaves=result.leaves)


def _has_text(parts: Parts) -> bool:
    """Return whether words that are known are written, as by a program to its standard error."""
    return any(isinstance(part, str) and part.strip(": \n") != "" for part in parts)


def interleaved(first: Stream, second: Stream) -> Stream:
    """Return two streams that are written at the same time."""
    if not first or not second:
        return (*first, *second)
    return (Fork(((*first, *second), (*second, *first))),)
