"""The adapters of all worker CLIs, discovered from the files of this package: `NAME.toml`, and
`NAME/adapter.py` where there is code."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files

from agentdash.agents.adapter import Adapter

_PACKAGE = "agentdash.agents"
_SHARED = "any.toml"
"""Screen rules that hold for every worker CLI; no CLI of its own."""


@cache
def adapters() -> Mapping[str, Adapter]:
    """Return the adapters by name. Cached: parsing all TOML files takes as long as one poll of all
    processes."""
    folder = files(_PACKAGE)
    return {
        path.name.removesuffix(".toml"): _load(path.name.removesuffix(".toml"), path.read_text("utf-8"))
        for path in sorted(folder.iterdir(), key=lambda path: path.name)
        if path.name.endswith(".toml") and path.name != _SHARED
    }


@cache
def shared_rules_text() -> str:
    """Return the text of `any.toml`: the screen rules of every worker CLI."""
    return (files(_PACKAGE) / _SHARED).read_text("utf-8")


def _load(name: str, toml_text: str) -> Adapter:
    has_code = (files(_PACKAGE) / name / "adapter.py").is_file()
    adapter: type[Adapter] = import_module(f"{_PACKAGE}.{name}.adapter").ADAPTER if has_code else Adapter
    return adapter(name, toml_text, tomllib.loads(toml_text))
