"""`agentdash split` in a real tmux: where it goes, what it remembers, and when it closes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Tmux = Callable[..., str]


@pytest.fixture
def tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tmux]:
    with tempfile.TemporaryDirectory(prefix="ad-") as folder:
        for name, value in {
            "TMUX_TMPDIR": folder,
            "XDG_STATE_HOME": str(tmp_path),
            "CODEX_HOME": str(tmp_path / "codex"),
        }.items():
            monkeypatch.setenv(name, value)
        for name in ("TMUX", "TMUX_PANE", "AGENTDASH_CONFIG"):
            monkeypatch.delenv(name, raising=False)

        def call(*args: str) -> str:
            env = {**os.environ, "PYTHONPATH": str(ROOT)}
            done = subprocess.run(
                ["tmux", "-u", "-f", os.devnull, *args], capture_output=True, text=True, check=True, env=env
            )
            return done.stdout.strip()

        call("new-session", "-d", "-x", "200", "-y", "50", "sleep 1000")
        yield call
        subprocess.run(["tmux", "kill-server"], check=False, capture_output=True)


def split(tmux: Tmux, *flags: str) -> subprocess.CompletedProcess[str]:
    socket, pid = tmux("display", "-p", "#{socket_path} #{pid}").split()
    env = {**os.environ, "TMUX": f"{socket},{pid},0", "TMUX_PANE": "%0", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "agentdash", "split", *flags]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def sizes(tmux: Tmux) -> list[str]:
    return tmux("list-panes", "-t", "%0", "-F", "#{pane_width}x#{pane_height}").split()[1:]


def test_it_goes_where_it_was_last(tmux: Tmux, tmp_path: Path) -> None:
    for flags, size in (
        ((), "80x50"),
        (("--size", "45"), "45x50"),
        ((), "45x50"),
        (("--below", "--size", "20%"), "200x10"),
        ((), "200x10"),
        (("--right",), "40x50"),
    ):
        done = split(tmux, *flags)
        assert (done.returncode, done.stderr) == (0, "")
        assert sizes(tmux) == [size]
        tmux("kill-pane", "-t", tmux("list-panes", "-t", "%0", "-F", "#{pane_id}").split()[1])
    assert ((tmp_path / "agentdash" / "split.json").stat().st_mode & 0o777) == 0o600
    (tmp_path / "agentdash" / "split.json").write_text("nonsense")
    assert split(tmux).returncode == 0
    refused = split(tmux, "--size", "wide")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_it_closes_with_the_pane_beside_it(tmux: Tmux) -> None:
    assert split(tmux, "--close-with-pane").returncode == 0
    tmux("new-window", "-d", "sleep 1000")  # the session goes on
    while "✓ tmux       2 panes" not in tmux("capture-pane", "-p", "-t", "%1"):
        time.sleep(0.05)
    tmux("kill-pane", "-t", "%0")
    while "%1" in tmux("list-panes", "-a", "-F", "#{pane_id}").split():
        time.sleep(0.05)


def test_it_opens_what_it_was_asked_to(tmux: Tmux, tmp_path: Path) -> None:
    config = tmp_path / "my config.toml"
    config.write_text("ascii = true\n")
    os.environ["AGENTDASH_CONFIG"] = str(config)  # removed by the fixture's monkeypatch
    assert split(tmux, "--theme", "light", "-L", "other").returncode == 0
    command = shlex.split(
        tmux("display", "-p", "-t", "%1", "#{pane_start_command}").strip('"').replace('\\"', '"')
    )
    assert command[1:] == [
        "-m",
        "agentdash",
        "--codex-home",
        str(tmp_path / "codex"),
        "-L",
        "other",
        "--theme",
        "light",
        "--ascii",
    ]
