"""Go on behind a part of a program that is not modelled: its value, and what it may change, are unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agentdash.engine.detect.env_output.patterns import ANY, joined
from agentdash.engine.detect.env_output.scripting.machine import Machine
from agentdash.engine.detect.env_output.scripting.values import UNKNOWABLE, FailedError
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.env_output.selections import Lines, Selection
from agentdash.engine.detect.env_output.streams import Result
from agentdash.engine.detect.env_output.unknown import UnknownError


class Effects(msgspec.Struct, frozen=True):
    """What a part of a program that is not modelled can do."""

    assigned: frozenset[str]
    """Names that it can give other values to."""
    mentioned: frozenset[str]
    """Names of what it can reach, and change in place."""
    writes: bool
    starts_children: bool = False


def reached(words: frozenset[str], functions: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the words of a part of a program, and of the functions that they name."""
    seen: set[str] = set()
    while new := (words & functions.keys()) - seen:
        seen |= new
        words = words.union(*(functions[name] for name in new))
    return words


class Recovery(Machine):
    """A run that goes on behind what is not modelled."""

    tries = 0
    """Blocks around the place where the program is that handle exceptions."""

    def pass_over(self, effects: Effects | None) -> None:
        """Do what a part of the program may do.

        Raises:
            UnknownError: it may do anything, or the program has run for too long.
        """
        if self.is_exhausted or effects is None:
            raise UnknownError
        if effects.writes:
            self.write_anything(before_all=effects.starts_children)
        self.forget(effects.assigned, effects.mentioned)
        self._may_have_written = True
        self.may_fail()

    def may_fail(self) -> None:
        """Run something that may raise an exception of any class."""
        if self.tries:
            if self.decide():
                raise FailedError("?")
        else:
            self.may_end()

    def may_end(self) -> None:
        """Note that the program may end here with an exception."""
        if self.ending is None:
            is_inside = self._looped or self._present  # the output of a round is not that of the program
            out = (ANY,) if is_inside else joined((*self.out, ANY))
            err = (ANY,) if is_inside else joined((*self.err, ANY, *self.failure))
            self.ending = Result(out=out, err=err, status=self.failed_status)

    def write_anything(self, *, before_all: bool = False) -> None:
        """Write text that is not known; a child may write before all that is not written out yet."""
        for stream in (self.out, self.err):
            if before_all:
                stream.clear()
            if stream[-1:] != [ANY]:
                stream.append(ANY)

    def forget(self, names: Iterable[str], mentioned: Iterable[str]) -> None:
        """Forget the values of names, and what others hold that can be changed in place.

        Raises:
            UnknownError: a loop is over one of them.
        """
        holders = [
            self._names,
            *(each for scope in self._known_scopes for each in (scope.before, scope.left)),
        ]
        lost: set[int] = set()
        for name in mentioned:
            for holder in holders:
                lost |= _reached(holder.get(name))
        if lost & self._looped_lists:
            raise UnknownError
        for holder in holders:
            for name, value in list(holder.items()):
                if not lost.isdisjoint(found := _reached(value)):
                    _forget_inside(value, found & lost)
                    if not isinstance(value, Instance):
                        holder[name] = UNKNOWABLE
        for name in names:
            self.declare(name, UNKNOWABLE)


def _reached(value: Any) -> set[int]:
    """Return the identities of the lists, mappings and objects in a value."""
    found: set[int] = set()
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, tuple):
            todo += each
        elif isinstance(each, Selection | Lines):
            found.add(id(Selection))  # one may be a copy, or a view, of another one
        elif isinstance(each, list | dict | Instance) and id(each) not in found:
            found.add(id(each))
            inner = each.attributes if isinstance(each, Instance) else each
            todo += inner.values() if isinstance(inner, dict) else inner
    return found


def _forget_inside(value: Any, lost: set[int]) -> None:
    """Forget the attributes of objects that can have been changed."""
    todo = [value]
    seen: set[int] = set()
    while todo:
        each = todo.pop()
        if id(each) in seen or not isinstance(each, list | dict | tuple | Instance):
            continue
        seen.add(id(each))
        inner = each.attributes if isinstance(each, Instance) else each
        todo += inner.values() if isinstance(inner, dict) else inner
        if isinstance(each, Instance):
            for name, attribute in each.attributes.items():
                if id(each) in lost or not lost.isdisjoint(_reached(attribute)):
                    each.attributes[name] = UNKNOWABLE
