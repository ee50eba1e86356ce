"""`agentdash reach`: targets, policies, the union over processes and the fleet. What a process may do with a
path is compared with real sandboxes in tests/oracle/test_reach_oracle.py."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentdash.agents.codex.policy_formats import from_sandbox_policy
from agentdash.cli import fleet_access
from agentdash.cli.fleet_access import FleetView
from agentdash.cli.reach import reach as reach_command
from agentdash.collect.processes.path_rights import PathRights
from agentdash.collect.processes.reach import reach_of, reach_targets
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Policy
from agentdash.model.reach import Reach, Reached, ReachKind, ReachTarget, union
from agentdash.model.state_paths import Mount
from agentdash.model.states import Group
from agentdash.model.worker import Sandbox, Snapshot
from agentdash.report.elements import ViaReport
from agentdash.report.reach import reach_by_policy, reach_report
from tests.unit.story import row

NOW = 1_763_000_000.0
BASHRC = ReachTarget(kind=ReachKind.TAKEOVER, path="/home/me/.bashrc", what="", action="write")
KEY = ReachTarget(kind=ReachKind.SECRET, path="/home/me/.ssh/id_rsa", what="", action="read")
DOCKER = ReachTarget(kind=ReachKind.ESCAPE, path="/run/docker.sock", what="", action="connect")


def test_targets_are_those_that_exist_and_those_that_could_be_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    for name in ("id_ed25519", "id_ed25519.pub"):
        (tmp_path / ".ssh" / name).write_text("x")
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(tmp_path / "agent"))
        targets = reach_targets({"SSH_AUTH_SOCK": str(tmp_path / "agent"), "CODEX_HOME": str(tmp_path / "c")})
    found = {(target.kind, target.action, target.path.removeprefix(str(tmp_path))) for target in targets}
    assert (ReachKind.CREDENTIALS, "connect", "/agent") in found
    assert (ReachKind.SECRET, "read", "/.ssh/id_ed25519") in found
    assert (ReachKind.SECRET, "write", "/.ssh/id_ed25519") in found
    assert (ReachKind.TAKEOVER, "write", "/.ssh/authorized_keys") in found
    assert (ReachKind.TAKEOVER, "write", "/c/config.toml") in found
    assert (ReachKind.TAKEOVER, "write", "/.local/state/agentdash") in found
    paths = [target.path for target in targets]
    assert not any(path.endswith(".pub") or ".aws" in path for path in paths)
    assert not any("$" in path or "*" in path for path in paths)


def test_nothing_is_opened(tmp_path: Path) -> None:
    """Opening a FIFO for reading would block until a writer comes; this one is only looked at."""
    os.mkfifo(tmp_path / "pipe")
    rights = PathRights(os.getpid())
    assert rights.may("read", str(tmp_path / "pipe")).granted
    assert rights.may("connect", str(tmp_path / "pipe")) == (False, "no socket", "")


def test_of_others_and_the_gone_nothing_is_known() -> None:
    assert reach_of(2**22 + 1, [BASHRC]) is None
    assert PathRights(2**22 + 1).may("write", "/tmp").granted is None
    assert PathRights(os.getpid()).may("write", "relative").granted is None
    assert PathRights(os.getpid()).may("read", "/proc/self/root/etc").granted is None


def policy(kind: str, **more: object) -> Policy:
    found = from_sandbox_policy({"type": kind, **more}, "/home/me/project")
    assert found is not None
    return found


def own() -> Reach:
    return Reach(tuple(Reached(target, "can") for target in (BASHRC, KEY, DOCKER)))


def certainties(reach: Reach) -> dict[str, str]:
    return {each.target.path: each.certainty for each in reach.targets}


def test_reach_by_policy() -> None:
    narrow = reach_by_policy(own(), policy("read-only"))
    assert certainties(narrow) == {BASHRC.path: "cannot", KEY.path: "may", DOCKER.path: "cannot"}
    wide = policy("workspace-write", writable_roots=["/home/me"], network_access=True)
    assert set(certainties(reach_by_policy(own(), wide)).values()) == {"may"}
    full = reach_by_policy(own(), policy("danger-full-access"))
    assert (set(certainties(full).values()), full.by) == ({"can"}, "policy")


def test_union_is_the_most_that_any_process_reaches() -> None:
    one = Reach((Reached(BASHRC, "cannot"), Reached(KEY, "may"), Reached(DOCKER, "unknown")), ("seccomp",))
    other = Reach((Reached(BASHRC, "can"), Reached(KEY, "cannot"), Reached(DOCKER, "cannot")))
    assert certainties(union((one, other))) == {BASHRC.path: "can", KEY.path: "may", DOCKER.path: "unknown"}
    assert [each.target for each in union((one, other)).reached()] == [BASHRC, KEY]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentdash.collect.processes.linux.mounts", lambda _: [Mount(1, 0, "/")])
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "b").chmod(0o755)
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        try:
            key = PaneKey(str(tmp_path / "tmux"), "%1")
            pane = Pane(key=key, session="s", window="w", pid=1, command="codex")
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(key.server)
                live = row("live", cwd=f"{tmp_path}/a", pids=(sleeper.pid,), pane=pane)
                idle = row("idle", cwd=f"{tmp_path}/b", sandbox=Sandbox(configured=policy("read-only")))
                blank = row("blank", cwd=f"{tmp_path}/b")
                past = row("past", cwd=f"{tmp_path}/c", standing=Group.PAST)
                away = row("away", cwd=f"{tmp_path}/c", host="build1")
                report = reach_report(Snapshot(NOW, (live, idle, blank, past, away)))
        finally:
            sleeper.kill()
    assert [(each.id, each.by) for each in report.workers] == [
        ("live", "processes"),
        ("idle", "policy"),
        ("blank", None),
    ]
    reached = {(each.kind, each.path) for each in report.workers[0].reached}
    assert ("worker", f"{tmp_path}/b") in reached
    assert ("escape", key.server) in reached
    assert not any(path in (f"{tmp_path}/a", f"{tmp_path}/c") for _, path in reached)
    assert not any(each.kind == "worker" for each in report.workers[1].reached)
    (tree,) = (entry for entry in report.fleet if entry.kind == "worker")
    assert (tree.path, tree.workers) == (f"{tmp_path}/b", ["live"])


def test_inside_of_a_sandbox_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, pids of the status file are those of other processes."""
    via = ViaReport("status.json", 1.0, 5, None)
    monkeypatch.setattr(fleet_access, "read_fleet", lambda *_: FleetView(Snapshot(NOW), via))
    done = CliRunner().invoke(reach_command, [])
    assert done.exit_code == 2
    assert "inside a sandbox" in done.output
