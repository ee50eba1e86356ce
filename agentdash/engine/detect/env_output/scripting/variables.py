"""The variables of a program, and what a part of it changes in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from agentdash.engine.detect.env_output.unknown import UnknownError


class Class(msgspec.Struct, frozen=True):
    """A class of the program: its functions as the grammar gives them, and values, by name."""

    name: str
    members: dict[str, Any]


class Instance(msgspec.Struct, frozen=True):
    """An object of a class of the program."""

    of: Any
    """The class."""
    attributes: dict[str, Any]


class Variables:
    """The variables of a program as they are before a round of a loop.

    A place is a variable, or the identity of a list or a mapping, which several variables may stand for.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = dict(names)
        self._objects: dict[int, Any] = {}
        for value in names.values():
            self._add(value)
        self._contents = {place: _copied(value) for place, value in self._objects.items()}

    def _add(self, value: Any) -> None:
        value = value.attributes if isinstance(value, Instance) else value
        if isinstance(value, list | dict) and id(value) not in self._objects:
            self._objects[id(value)] = value
            for inner in _items(value):
                self._add(inner)

    def changed(self, names: dict[str, Any]) -> dict[Any, Any]:
        """Return new values by place."""
        found: dict[Any, Any] = {}
        for place, value in self._objects.items():
            if value != self._contents[place]:
                found[place] = _copied(value)
        for name, value in names.items():
            before = self._names.get(name)
            if value is not before and value != before and id(value) not in self._objects:
                found[name] = _copied(value) if isinstance(value, list | dict) else value
        return found

    def restore(self, names: dict[str, Any]) -> None:
        """Put all variables back."""
        for place, value in self._objects.items():
            _fill(value, self._contents[place])
        names.clear()
        names.update(self._names)

    def value(self, place: Any) -> Any:
        """Return the value before; None for a new variable."""
        return self._names.get(place) if isinstance(place, str) else self._contents[place]

    def forget(self, names: dict[str, Any], place: Any) -> None:
        """Take away a variable, or all that stand for a list or mapping."""
        if isinstance(place, str):
            names.pop(place, None)
            return
        for name, before in self._names.items():
            if before is self._objects[place]:
                names.pop(name, None)

    def assign(self, names: dict[str, Any], place: Any, value: Any) -> None:
        """Give another value to a variable, or to all that stand for a list or mapping.

        Raises:
            UnknownError: the attributes of an object have become something else.
        """
        if isinstance(place, str):
            names[place] = value
            return
        changed = self._objects[place]
        if type(value) is type(changed):
            _fill(changed, value)
            return
        is_held = False
        for holder in (names, *self._objects.values()):
            for key, inner in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
                if inner is changed:
                    holder[key] = value
                    is_held = True
        if not is_held:
            raise UnknownError


def _items(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value


def _fill(value: Any, content: Any) -> None:
    """Replace the content of a list or a mapping."""
    content = _copied(content)
    value.clear()
    if isinstance(value, list):
        value.extend(content)
    else:
        value.update(content)


def _copied(value: Any) -> Any:
    return list(value) if isinstance(value, list) else dict(value)
