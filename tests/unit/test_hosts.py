"""Workers of several hosts on the command line: real agentdash processes behind command templates."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.live.patience import scaled
from tests.unit.test_cli import BLANK, RECORDINGS, agentdash

pytestmark = pytest.mark.slow  # each test starts processes

THREAD = "01a1fa8b-4086-7a32-8c43-2abbeb466a8c"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a Codex home with one thread."""
    day = tmp_path / "home" / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    for path in (RECORDINGS / "0.169.0" / "kanban-board").glob("*.jsonl"):
        shutil.copy(path, day)
    return tmp_path / "home"


@pytest.fixture
def config(tmp_path: Path, home: Path) -> Path:
    """Return a configuration with two hosts that read this home, and one that is not there."""
    path = tmp_path / "config.toml"
    command = f"env CODEX_HOME={home} {sys.executable} -m agentdash"
    path.write_text(
        f"""
[hosts.build1]
carrier = "sh -c {{}}"
command = "{command}"
[hosts.gpu2]
carrier = "env"
command = "{command}"
[hosts.gone]
carrier = "sh -c 'echo no route to host >&2; exit 255'"
"""
    )
    return path


def status(config: Path, *args: str) -> dict[str, Any]:
    done = agentdash("status", "--json", "--no-tmux", *args, AGENTDASH_CONFIG=str(config))
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_same_ids_on_several_hosts_do_not_mix(config: Path, home: Path) -> None:
    document = status(config, "--codex-home", str(home))
    workers = {worker["id"]: worker for worker in document["workers"]}
    assert {ident: worker["host"] for ident, worker in workers.items()} == {
        THREAD: None,
        f"build1:{THREAD}": "build1",
        f"gpu2:{THREAD}": "gpu2",
    }
    own = workers.pop(THREAD)
    placed = ("id", "host", "needs_you", "group")
    for worker in workers.values():
        assert {name: value for name, value in worker.items() if name not in placed} == {
            name: value for name, value in own.items() if name not in placed
        }
    hosts = {host["name"]: host for host in document["hosts"]}
    assert {name: host["state"] for name, host in hosts.items()} == {
        "build1": "connected",
        "gpu2": "connected",
        "gone": "lost",
    }
    assert hosts["gone"]["detail"] == "sh ended with exit code 255: no route to host"


def test_hosts_are_chosen(config: Path) -> None:
    assert [host["name"] for host in status(config, "--host", "gpu2")["hosts"]] == ["gpu2"]
    assert status(config, "--no-hosts")["hosts"] == []


def test_no_process_there_outlives_a_watch(config: Path, tmp_path: Path) -> None:
    """Not even one that is killed: the agentdash there ends with its stdin."""
    environ = {**os.environ, **BLANK, "AGENTDASH_CONFIG": str(config)}
    command = [sys.executable, "-m", "agentdash", "status", "--watch", "--no-tmux"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, start_new_session=True) as watch:
        lines = (json.loads(line) for line in watch.stdout)
        next(line for line in lines if (line["worker"] or {}).get("host") == "build1")
        there = psutil.Process(watch.pid).children(recursive=True)
        assert len(there) > 1
        watch.kill()
    _, alive = psutil.wait_procs(there, timeout=scaled(20))
    assert alive == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--host", "-oProxyCommand=x"), "not a name of a host"),
        (("--host", "a b"), "expected [USER@]HOST[:PORT]"),
        (("--carrier", "x"), "expected NAME=COMMAND"),
        (("--carrier", "x='"), "cannot be parsed"),
        (("--container", "-x"), "not a name of a container"),
        (("--heartbeat", "1"), "--heartbeat needs --watch"),
    ],
)
def test_a_wrong_host_is_one_line(args: tuple[str, ...], words: str) -> None:
    done = agentdash("status", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("args", [("--host", "devbox"), ("--container", "devbox")])
def test_a_named_container_that_cannot_be_reached_is_an_error(tmp_path: Path, args: tuple[str, ...]) -> None:
    """By either option: `--host` takes names of config.toml, which may be those of containers."""
    config = tmp_path / "config.toml"
    config.write_text('[hosts.devbox]\ncontainer = "devbox"\n')
    for name in ("docker", "podman"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = agentdash("status", "--no-tmux", *args, AGENTDASH_CONFIG=str(config), PATH=path)
    assert done.returncode == 2
    assert "container devbox: " in done.stderr
