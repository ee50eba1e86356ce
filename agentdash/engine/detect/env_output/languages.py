"""Interpreters of programming languages by name; each is imported where a script has a command of it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final

from agentdash.engine.detect.env_output.streams import Call, Result

_FOLDERS: Final = {
    "awk": ("awk", "gawk", "mawk"),
    "javascript": ("node", "nodejs"),
    "jq": ("jq", "gojq"),
    "lua": ("lua", "lua5.3", "lua5.4", "luajit"),
    "perl": ("perl",),
    "php": ("php",),
    "python": ("python", "python3"),
    "ruby": ("ruby",),
}
"""Names of the commands of each folder of `scripting`."""


def _imported(folder: str) -> Callable[[Call], list[Result]]:
    def run(call: Call) -> list[Result]:
        module = import_module(f"agentdash.engine.detect.env_output.scripting.{folder}.command")
        found: list[Result] = module.command(call)
        return found

    return run


LANGUAGES: Final[dict[str, Callable[[Call], list[Result]]]] = {
    name: _imported(folder) for folder, names in _FOLDERS.items() for name in names
}
