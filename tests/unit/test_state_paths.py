"""Where worker CLIs keep their state, and which of it a policy or a sandbox denies."""

import os
from pathlib import Path

import pytest

from agentdash.agents.state_paths import paths_of, state_paths
from agentdash.collect.processes.env_filter import filter_environment
from agentdash.model.denials import PathFacts, PathKind
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Process, ProcessKey
from agentdash.model.state_paths import StatePath, WriteAccess, resolve_path
from agentdash.report.predictions import PathReport, paths_under_policy

HOME = {"HOME": "/home/dev"}
WORKSPACE = Policy(
    Filesystem.WORKSPACE,
    Network.OFF,
    (PolicyRule("/", "read"), PolicyRule("/home/dev/ws", "write"), PolicyRule("$TMPDIR", "write")),
)


@pytest.mark.parametrize(
    ("path", "env", "placed"),
    [
        ("$XDG_DATA_HOME/opencode", HOME | {"XDG_DATA_HOME": "/data/"}, "/data/opencode"),
        ("$XDG_STATE_HOME/x", HOME | {"XDG_STATE_HOME": "relative"}, "/home/dev/.local/state/x"),
        ("$XDG_CACHE_HOME/x", HOME | {"XDG_CACHE_HOME": ""}, "/home/dev/.cache/x"),
        ("$CURSOR_CONFIG_DIR", HOME, "/home/dev/.config/cursor"),
        ("$CODEX_HOME", {"CODEX_HOME": "/h"}, "/h"),
        ("$PWD/.crush", {}, "/ws/.crush"),
        ("$UNKNOWN/x", HOME, None),
        ("$HOME/x", {"HOME": "$HOME"}, None),
        ("/a/../b", {}, "/b"),
    ],
)
def test_places(path: str, env: dict[str, str], placed: str | None) -> None:
    assert resolve_path(path, env, "/ws") == placed


def test_every_row_can_be_placed_by_what_is_kept_of_an_environment() -> None:
    assert {"opencode", "claude", "gemini", "qwen", "aider", "codex"} <= state_paths().keys()
    env = filter_environment(
        (*HOME.items(), ("XDG_DATA_HOME", "/data"), ("XDG_CURRENT_DESKTOP", "x"), ("XDG_SESSION_COOKIE", "x"))
    )
    assert env == HOME | {"XDG_DATA_HOME": "/data"}
    for agent, rows in state_paths().items():
        assert all(resolve_path(row.path, env, "/ws") for row in rows), agent
    assert [row.path for row in state_paths()["opencode"] if row.needed == "always"] == [
        "$XDG_DATA_HOME/opencode"
    ]


def denied_paths(
    policy: Policy, rows: tuple[StatePath, ...], env: dict[str, str], *missing: str
) -> list[PathReport]:
    """Return the paths that a policy denies a worker."""
    places = PathFacts(kinds=dict.fromkeys(missing, PathKind.MISSING))
    found = paths_under_policy(policy, rows, env, "/home/dev/ws", places)
    return [path for path in found if path.allowed is False]


def test_what_a_policy_denies_of_opencode() -> None:
    rows, data = state_paths()["opencode"], "/home/dev/.local/share/opencode"
    first, *others = denied_paths(WORKSPACE, rows, HOME)
    assert (first.path, first.needed) == (data, True)
    assert [path.needed for path in others] == [False] * 3  # each of them must only be there
    fresh = denied_paths(WORKSPACE, rows, HOME, "/home/dev/.cache/opencode")
    assert [path.path for path in fresh if path.needed] == [data, "/home/dev/.cache/opencode"]
    inside = {"HOME": "/home/dev/ws/.home"}
    assert denied_paths(WORKSPACE, rows, inside) == []
    assert denied_paths(Policy(Filesystem.UNRESTRICTED, Network.ON), rows, HOME) == []
    assert {path.allowed for path in paths_under_policy(Policy(), rows, HOME, None, PathFacts())} == {None}


def test_tmpdir_is_the_commands_own() -> None:
    row = (StatePath("$TMPDIR/x", "scratch"),)
    assert denied_paths(WORKSPACE, row, {"TMPDIR": "/var/tmp"}) == []
    assert [path.path for path in denied_paths(WORKSPACE, row, {})] == ["/tmp/x"]


def test_a_living_worker_by_its_own_environment(tmp_path: Path) -> None:
    env = HOME | {"XDG_DATA_HOME": str(tmp_path)}
    worker = Process(ProcessKey(os.getpid(), 1.0), 1, "crush", agent="crush", cwd="/ws", env=env)
    asked: list[str] = []

    def may_write(path: str) -> WriteAccess:
        asked.append(path)
        return WriteAccess("mode", missing=path.endswith("/crush"))

    found = paths_of(worker, may_write)
    assert asked == ["/ws/.crush", f"{tmp_path}/crush", "/home/dev/.config/crush"]
    assert [path.denied for path in found] == [True, True, True]
    assert paths_of(Process(ProcessKey(1, 1.0), 0, "x", agent="nobody"), may_write) == ()
