"""The settings of one Codex, by layer: arguments, profiles and configuration files.

`precedence.py` has what becomes of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from agentdash.agents.codex.config.argv import Arguments, Option
from agentdash.agents.codex.config.files import ConfigFile, look_up
from agentdash.agents.codex.config.versions import Rules
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
        honoured: whether arguments are left out that this version drops without a word.
    """

    def __init__(
        self,
        arguments: Arguments,
        files: Sequence[ConfigFile],
        rules: Rules,
        *,
        managed: ConfigFile | None = None,
        honoured: bool = False,
    ) -> None:
        self.rules = rules
        self.honoured = honoured
        self.options = [
            option
            for option in arguments.options
            if not honoured or not _is_dropped(option, arguments, rules)
        ]
        self.mode = arguments.mode
        self._files = list(files)
        self._managed = managed
        self._overrides = list(arguments.overrides())
        self._profile = self._profile_table() if rules.profile_tables else None

    def option(self, *names: str) -> Option | None:
        """Return the last option of these names."""
        return next((option for option in reversed(self.options) if option.name in names), None)

    def find(self, *keys: str) -> Setting | None:
        """Return the strongest setting of a key."""
        return next((found for layer in self._layers() if (found := layer(keys)) is not None), None)

    def look(self, *keys: str) -> Any:
        """Return the strongest value of a key."""
        found = self.find(*keys)
        return None if found is None else found.value

    def find_any(self, *either: Keys) -> tuple[Keys, Setting] | None:
        """Return the strongest value of keys that exclude each other, with its key; of one layer, the one
        that is named first here."""
        for layer in self._layers():
            for keys in either:
                found = layer(keys)
                if found is not None and not isinstance(found.value, Mapping):
                    return keys, found
        return None

    def refusal(self) -> str | None:
        """Return why this version does not start with these profiles."""
        rules, named = self.rules, self.option("profile")
        if rules.profile_tables:
            is_missing = named is not None and self._profile is None
            return f"there is no [profiles.{cap(named.value)}]" if named and is_missing else None
        if self.find("profile") is not None:
            return "`profile` selects no table any more: use -p NAME with NAME.config.toml"
        if named is not None and self.find("profiles", named.value) is not None:
            return f"-p {cap(named.value)} beside [profiles.{cap(named.value)}]: move it to a file of its own"
        return None

    def _layers(self) -> Iterator[Callable[[Keys], Setting | None]]:
        """Yield a function for each layer that looks a key up in it, the strongest first."""
        if self._managed is not None:
            yield partial(setting_of, self._managed)
        if self._profile is not None:
            file, name = self._profile
            yield lambda keys: setting_of(file, ("profiles", name, *keys), RequestLayer.PROFILE)
        yield self._of_overrides
        for file in reversed(self._files):
            yield partial(setting_of, file)

    def _of_overrides(self, keys: Keys) -> Setting | None:
        """Look a key up in all `-c`: they are one layer, and the last one that sets it counts."""
        for one in reversed(self._overrides):
            rest = keys[len(one.keys) :]
            found = look_up({"": one.value}, ("", *rest)) if keys == (*one.keys, *rest) else None
            if found is not None:
                return Setting(found, RequestLayer.ARGV, cap(one.text))
        return None

    def _profile_table(self) -> tuple[ConfigFile, str] | None:
        """Return the file and the name of the `[profiles.NAME]` table that is selected."""
        option = self.option("profile")
        named: list[Any] = [option.value] if option else []
        named += [each.value for each in reversed(self._overrides) if each.keys == ("profile",)]
        named += [file.get("profile") for file in reversed(self._files)]
        name = next((each for each in named if isinstance(each, str)), None)
        if name is None:
            return None
        tables = (file for file in reversed(self._files) if file.get("profiles", name) is not None)
        file = next(tables, None)
        return None if file is None else (file, name)


def setting_of(file: ConfigFile, keys: Keys, layer: RequestLayer | None = None) -> Setting | None:
    """Return the setting of a key in a file, as one of the file's own layer, or None."""
    value = file.get(*keys)
    if value is None:
        return None
    return Setting(value, layer or file.layer, statement(keys, value), file.path, file.line(*keys))


def statement(keys: Keys, value: Any) -> str:
    """Return a setting on one line, as in a configuration file."""
    if isinstance(value, Mapping):
        return f"[{'.'.join(keys)}]"
    return cap(f"{'.'.join(keys)} = {json.dumps(value, ensure_ascii=False, default=str)}")


def cap(text: str) -> str:
    """Return a text from a file or an argument on one line, shortened."""
    return clean_line(text, _MAX_TEXT_CHARS)


def dropped_options(arguments: Arguments, rules: Rules) -> list[Option]:
    """Return the options that a version may leave out without a word."""
    found = [option for option in arguments.options if _is_dropped(option, arguments, rules)]
    if not rules.add_dir_with_mode:
        found += [option for option in arguments.all("add-dir") if option not in found]
    return found


def _is_dropped(option: Option, arguments: Arguments, rules: Rules) -> bool:
    in_exec = arguments.mode == "exec" and option.before and not rules.root_options_reach_exec
    return in_exec and option.name in ("sandbox", "profile", "add-dir", "full-auto", "approval")
