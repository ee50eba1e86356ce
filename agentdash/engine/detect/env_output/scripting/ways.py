"""Parts of a program that can turn out in several ways, and what all of these have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.patterns import Choice, Parts, either, joined
from agentdash.engine.detect.env_output.placeholders import refilled
from agentdash.engine.detect.env_output.scripting.recovery import Recovery
from agentdash.engine.detect.env_output.scripting.values import (
    SURPRISES,
    UNKNOWABLE,
    ExitError,
    FailedError,
)
from agentdash.engine.detect.env_output.scripting.variables import Instance, Variables
from agentdash.engine.detect.env_output.unknown import UnknownError

_MAX_WAYS: Final = 8
"""Ways of a part of a program; where there are more, each is a run of the whole program."""


class _Way(msgspec.Struct, frozen=True):
    """One of the ways in which a part of the program turns out."""

    value: Any
    out: Parts
    err: Parts
    changes: dict[Any, Any]


class Ways(Recovery):
    """A run that goes on with what the ways of a part have in common."""

    def in_each_way(self, run: Callable[[], Any]) -> Any:
        """Run a part in each way in which its unknown conditions turn out; return what its value can be."""
        if self._looped or self._present:
            return run()
        decisions, decided, steps = self._decisions, self.decided, self._steps
        before = Variables(self._names)
        try:
            ways = self._ways(run, before)
        finally:
            self._decisions, self.decided = decisions, decided
        if ways is None:
            self._steps = steps
            return run()
        self.out += either(way.out for way in ways)
        self.err += either(way.err for way in ways)
        for place in {place: None for way in ways for place in way.changes}:
            old = before.value(place)
            before.assign(self._names, place, self._in_common([way.changes.get(place, old) for way in ways]))
        return self._in_common([way.value for way in ways])

    def _ways(self, run: Callable[[], Any], before: Variables) -> list[_Way] | None:
        """Return the ways of a part; None where they are too many, or one ends something around it."""
        found: list[_Way] = []
        pending: list[tuple[bool, ...]] = [()]
        while pending:
            self._decisions, self.decided = pending.pop(), ()
            number = len(self._decisions)
            streams, ending = (self.out, self.err), self.ending
            self.out, self.err = [], []
            try:
                value = run()
                found.append(_Way(value, joined(self.out), joined(self.err), before.changed(self._names)))
            except (ExitError, FailedError, UnknownError, *SURPRISES):
                return None
            finally:
                self.out, self.err = streams
                self.ending = ending
                before.restore(self._names)
            pending += [(*self.decided[:at], True) for at in range(number, len(self.decided))]
            if len(found) + len(pending) > _MAX_WAYS:
                return None
        return found

    def _in_common(self, values: list[Any]) -> Any:
        """Return what stands for all of some values."""
        first = values[0]
        if all(type(value) is type(first) and value == first for value in values):
            return first
        if all(isinstance(value, str) for value in values):
            options = dict.fromkeys(tuple(refilled((value,), self._holes)) for value in values)
            return self.word(Choice(tuple(options)))
        if all(isinstance(value, dict) and [*value] == [*first] for value in values) and type(first) is dict:
            return {key: self._in_common([value[key] for value in values]) for key in first}
        if all(isinstance(value, Instance) and value.of is first.of for value in values):
            return Instance(first.of, self._in_common([value.attributes for value in values]))
        return UNKNOWABLE
