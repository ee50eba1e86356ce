"""The settings of one Codex, by layer: arguments, profiles and configuration files.

`precedence.py` has what becomes of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from agentdash.agents.codex.config.argv import Arguments
from agentdash.agents.codex.config.files import ConfigFile, look_up
from agentdash.model.requested import RequestField, RequestLayer, RequestOrigin
from agentdash.model.sanitize import clean_line

_MAX_TEXT_CHARS: Final = 200
Keys = tuple[str, ...]


class Setting(msgspec.Struct, frozen=True):
    """A value, and where it is set."""

    value: Any
    layer: RequestLayer
    text: str
    file: str | None = None
    line: int | None = None

    def origin(self, field: RequestField) -> RequestOrigin:
        """Return it as the origin of a part of a policy."""
        return RequestOrigin(field=field, layer=self.layer, text=self.text, file=self.file, line=self.line)


class Stack:
    """The settings of one Codex, by layer, the weakest first.

    Args:
        files: its configuration files, the weakest first; managed ones are left out here.
        managed: `managed_config.toml`, if it is to count.
    """

    def __init__(
        self, arguments: Arguments, files: Sequence[ConfigFile], managed: ConfigFile | None = None
    ) -> None:
        self.arguments = arguments
        self._overrides = list(arguments.overrides())
        self._layers: list[Callable[[Keys], Setting | None]] = [self._of_overrides]
        """Look a key up in one layer; the strongest first."""
        self._layers += [partial(setting_of, file) for file in reversed(files)]
        if managed is not None:
            self._layers.insert(0, partial(setting_of, managed))

    def find(self, *keys: str) -> Setting | None:
        """Return the strongest setting of a key."""
        return next((found for layer in self._layers if (found := layer(keys)) is not None), None)

    def look(self, *keys: str) -> Any:
        """Return the strongest value of a key."""
        found = self.find(*keys)
        return None if found is None else found.value

    def find_any(self, *either: Keys) -> tuple[Keys, Setting] | None:
        """Return the strongest value of keys that exclude each other, with its key; of one layer, the one
        that is named first here."""
        for layer in self._layers:
            for keys in either:
                found = layer(keys)
                if found is not None and not isinstance(found.value, Mapping):
                    return keys, found
        return None

    def refusal(self) -> str | None:
        """Return why Codex does not start with these profiles: `[profiles.NAME]` counted through 0.133."""
        if self.find("profile") is not None:
            return "`profile` selects no table any more: use -p NAME with NAME.config.toml"
        named = self.arguments.last("profile")
        if named is not None and self.find("profiles", named.value) is not None:
            return f"-p {cap(named.value)} beside [profiles.{cap(named.value)}]: move it to a file of its own"
        return None

    def _of_overrides(self, keys: Keys) -> Setting | None:
        """Look a key up in all `-c`: they are one layer, and the last one that sets it counts."""
        for one in reversed(self._overrides):
            rest = keys[len(one.keys) :]
            found = look_up({"": one.value}, ("", *rest)) if keys == (*one.keys, *rest) else None
            if found is not None:
                return Setting(found, RequestLayer.ARGV, cap(one.text))
        return None


def setting_of(file: ConfigFile, keys: Keys) -> Setting | None:
    """Return the setting of a key in a file, or None."""
    value = file.get(*keys)
    if value is None:
        return None
    return Setting(value, file.layer, statement(keys, value), file.path, file.line(*keys))


def statement(keys: Keys, value: Any) -> str:
    """Return a setting on one line, as in a configuration file."""
    if isinstance(value, Mapping):
        return f"[{'.'.join(keys)}]"
    return cap(f"{'.'.join(keys)} = {json.dumps(value, ensure_ascii=False, default=str)}")


def cap(text: str) -> str:
    """Return a text from a file or an argument on one line, shortened."""
    return clean_line(text, _MAX_TEXT_CHARS)
