"""The state paths of worker CLIs: the `[state]` tables of `agents/*.toml`, and whether a running worker may
write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from agentdash.agents.registry import adapters
from agentdash.model.process import Process
from agentdash.model.state_paths import PathAccess, StatePath, WriteAccess, path_access, resolve_path


@cache
def state_paths() -> Mapping[str, tuple[StatePath, ...]]:
    """Return the state paths of every worker CLI that has a `[state]` table, by its name (`opencode`)."""
    return {name: adapter.state_paths for name, adapter in adapters().items() if adapter.state_paths}


def paths_of(process: Process, may_write: Callable[[str], WriteAccess]) -> tuple[PathAccess, ...]:
    """Return a worker's state paths, placed by its own environment, with whether it may write each of
    them."""
    rows = state_paths().get(process.agent or "", ())
    env = process.env or {}
    placed = ((row, resolve_path(row.path, env, process.cwd)) for row in rows)
    return tuple(path_access(row, path, may_write(path)) for row, path in placed if path is not None)
