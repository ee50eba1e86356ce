"""The variables of a program, and where in it they are seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

_MISSING: Final = object()


class _Scope:
    """A block of the program."""

    def __init__(self) -> None:
        self.is_active = True
        self.before: dict[str, Any] = {}
        """The values that the names which it declares had before it."""
        self.left: dict[str, Any] = {}
        """Of a block that does not run: the values of its own names, which functions of it still see."""


class Place(NamedTuple):
    """Where a function is defined: the variables of the program there, and the blocks around."""

    names: dict[str, Any]
    scopes: tuple[_Scope, ...] = ()


class Scoped:
    """Variables by name; blocks and functions have names of their own."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {}
        self._scopes: list[_Scope] = []
        self._known_scopes: list[_Scope] = []
        """Blocks that run or have run: functions may still see their names."""

    @property
    def place(self) -> Place:
        """Return where the program is."""
        return Place(self._names, tuple(self._scopes))

    def scoped(self, run: Callable[[], Any]) -> Any:
        """Run a block: what it declares ends with it."""
        self._scopes.append(_Scope())
        self._known_scopes.append(self._scopes[-1])
        try:
            return run()
        finally:
            self._leave([self._scopes.pop()])

    def called(self, place: Place, run: Callable[[], Any]) -> Any:
        """Run the block of a function: it sees the names of the place where it was defined, no others."""
        callers = self.place
        hidden = [scope for scope in callers.scopes if scope not in place.scopes]
        hidden = hidden if callers.names is place.names else []
        ended = [scope for scope in place.scopes if not scope.is_active]
        self._leave(hidden)
        self._names, self._scopes = place.names, list(place.scopes)
        self._enter(ended)
        try:
            return self.scoped(run)
        finally:
            self._leave(ended)
            self._names, self._scopes = callers.names, list(callers.scopes)
            self._enter(hidden)

    def _enter(self, scopes: list[_Scope]) -> None:
        for scope in scopes:
            scope.is_active = True
            for name, value in scope.left.items():
                scope.before[name] = self._names.get(name, _MISSING)
                self._reset(name, value)

    def _leave(self, scopes: list[_Scope]) -> None:
        for scope in reversed(scopes):
            scope.is_active = False
            for name, before in scope.before.items():
                scope.left[name] = self._names.get(name, _MISSING)
                self._reset(name, before)

    def _reset(self, name: str, value: Any) -> None:
        if value is _MISSING:
            self._names.pop(name, None)
        else:
            self._names[name] = value

    def declare(self, name: str, value: Any) -> None:
        """Give a value to a variable of the block that runs."""
        if self._scopes:
            self._scopes[-1].before.setdefault(name, self._names.get(name, _MISSING))
        self._names[name] = value

    def set_variables(self, variables: dict[str, Any]) -> None:
        """Set variables of the command line."""
        self._names.update(variables)
