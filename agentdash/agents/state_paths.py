"""The state paths of worker CLIs: the `[state]` tables of `agents/*.toml`, and whether a living worker may write its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from functools import cache

import msgspec

from agentdash.agents.identify import agent_files, programs
from agentdash.model.mounts import Access
from agentdash.model.process import Process
from agentdash.model.sanitize import clean_line
from agentdash.model.state_paths import DEFAULTS, Installed, PathAccess, StatePath, access_of, place


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    paths: tuple[StatePath, ...]
    tested: tuple[str, ...] = ()
    """Versions in which the paths were seen to be written; empty: from what others have published."""


class _File(msgspec.Struct, frozen=True):
    state: _Table | None = None


@cache
def state_paths() -> Mapping[str, tuple[StatePath, ...]]:
    """The rows of every worker CLI that has some, by its name (`opencode`)."""
    tables = {agent: msgspec.convert(said, _File).state for agent, said in agent_files().items()}
    return {agent: table.paths for agent, table in tables.items() if table is not None}


def installed() -> Installed:
    """The worker CLIs that are on this process's PATH."""
    found = {
        agent: rows
        for agent, rows in state_paths().items()
        if any(shutil.which(name) for name in programs(agent))
    }
    env = {name: clean_line(value) for name in ("HOME", *DEFAULTS) if (value := os.environ.get(name))}
    return Installed(found, env)


def paths_of(process: Process, may_write: Callable[[str], Access]) -> tuple[PathAccess, ...]:
    """A worker's state paths, by its own environment, and whether it may write each of them."""
    rows = state_paths().get(process.agent or "", ())
    env = process.env or {}
    placed = ((row, place(row.path, env, process.cwd)) for row in rows)
    return tuple(access_of(row, path, may_write(path)) for row, path in placed if path is not None)
