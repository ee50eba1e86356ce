"""The adapters of all worker CLIs, discovered from the files of this package: `NAME.toml`, and where there is
code `NAME.py`, or `NAME/adapter.py` if it is more than one module."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from agentdash.agents.adapter import Adapter, IdentifyTable

_PACKAGE = "agentdash.agents"
_FOLDER = Path(__file__).parent
_SHARED = "any.toml"
"""Screen rules that hold for every worker CLI; no CLI of its own."""


class _Adapters(Mapping[str, Adapter]):
    """The adapters by name. The code of one is imported when it is looked up: most commands need few."""

    def __init__(self) -> None:
        toml_files = sorted(path.name for path in _FOLDER.iterdir() if path.suffix == ".toml")
        self._names = dict.fromkeys(name.removesuffix(".toml") for name in toml_files if name != _SHARED)

    def __getitem__(self, name: str) -> Adapter:
        if name not in self._names:
            raise KeyError(name)
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@cache
def adapters() -> Mapping[str, Adapter]:
    """Return the adapters by name."""
    return _Adapters()


@cache
def tables(agent: str) -> Mapping[str, Any]:
    """Return the tables of an adapter's TOML file."""
    return tomllib.loads((_FOLDER / f"{agent}.toml").read_text("utf-8"))


@cache
def identify_table(agent: str) -> IdentifyTable:
    """Return the `[identify]` table of an adapter, without importing its code."""
    return msgspec.convert(tables(agent)["identify"], IdentifyTable)


@cache
def _load(name: str) -> Adapter:
    new: Callable[..., Adapter] = Adapter
    for file, module in ((f"{name}.py", name), (f"{name}/adapter.py", f"{name}.adapter")):
        if (_FOLDER / file).is_file():
            new = import_module(f"{_PACKAGE}.{module}").ADAPTER
    return new(name, tables(name))
