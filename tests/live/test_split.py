"""`agentdash split` in a real tmux: its place, and when it closes."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.live.conftest import Screens
from tests.live.patience import wait_until
from tests.live.programs import run
from tests.live.tmux import ROOT, default_server

Tmux = Callable[..., str]


@pytest.fixture
def tmux(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report_screens: Callable[[Screens], None]
) -> Iterator[Tmux]:
    own = {"XDG_STATE_HOME": str(tmp_path), "CODEX_HOME": str(tmp_path / "codex")}
    with default_server(monkeypatch, **own) as server:
        report_screens(server.screens)

        def call(*args: str) -> str:
            return server.run_tmux(*args).strip()

        call("new-session", "-d", "-x", "200", "-y", "50", "sleep 1000")
        yield call


def split(tmux: Tmux, *flags: str) -> subprocess.CompletedProcess[str]:
    socket, pid = tmux("display", "-p", "#{socket_path} #{pid}").split()
    env = {**os.environ, "TMUX": f"{socket},{pid},0", "TMUX_PANE": "%0", "PYTHONPATH": str(ROOT)}
    return run([sys.executable, "-m", "agentdash", "split", *flags], env=env)


def sizes(tmux: Tmux) -> list[str]:
    return tmux("list-panes", "-t", "%0", "-F", "#{pane_width}x#{pane_height}").split()[1:]


def test_split_has_its_side_and_size(tmux: Tmux) -> None:
    for flags, size in (((), "80x50"), (("--size", "45"), "45x50"), (("--below", "--size", "20%"), "200x10")):
        done = split(tmux, *flags)
        assert (done.returncode, done.stderr) == (0, "")
        assert sizes(tmux) == [size]
        tmux("kill-pane", "-t", tmux("list-panes", "-t", "%0", "-F", "#{pane_id}").split()[1])
    refused = split(tmux, "--size", "wide")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_split_closes_with_the_pane_beside_it(tmux: Tmux) -> None:
    assert split(tmux, "--close-with-pane").returncode == 0
    tmux("new-window", "-d", "sleep 1000")  # keeps the session alive
    wait_until(lambda: "tmux       2 panes" in tmux("capture-pane", "-p", "-t", "%1"), "the panes listed")
    tmux("kill-pane", "-t", "%0")
    wait_until(lambda: "%1" not in tmux("list-panes", "-a", "-F", "#{pane_id}").split(), "the split to close")


def test_split_passes_its_options_on(tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "my config.toml"
    config.write_text("ascii = true\n")
    monkeypatch.setenv("AGENTDASH_CONFIG", str(config))
    assert split(tmux, "--theme", "light", "-L", "other").returncode == 0
    command = shlex.split(
        tmux("display", "-p", "-t", "%1", "#{pane_start_command}").strip('"').replace('\\"', '"')
    )
    assert command[command.index("-m") :] == ["-m", "agentdash", "-L", "other", "--theme", "light", "--ascii"]
    pid = tmux("display", "-p", "-t", "%1", "#{pane_pid}")
    given = {f"CODEX_HOME={tmp_path / 'codex'}", f"AGENTDASH_CONFIG={config}"}
    # until it executes a program, it has the environment of its tmux server
    wait_until(lambda: given <= set(Path(f"/proc/{pid}/environ").read_text().split("\0")), f"{given}")


def test_split_stays_open_with_an_error(tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.toml"
    config.write_text("ascii = true\n")
    monkeypatch.setenv("AGENTDASH_CONFIG", str(config))
    for cause in ("none", "a signal", "a killed process"):
        assert split(tmux).returncode == 0
        pane = tmux("list-panes", "-t", "%0", "-F", "#{pane_id}").split()[1]
        wait_until(
            lambda pane=pane: "No workers yet" in tmux("capture-pane", "-p", "-t", pane), "the dashboard"
        )
        if cause == "none":
            tmux("send-keys", "-t", pane, "q")
        else:
            (program,) = psutil.Process(int(tmux("display", "-p", "-t", pane, "#{pane_pid}"))).children()
            program.send_signal(signal.SIGTERM if cause == "a signal" else signal.SIGKILL)
        if cause == "a killed process":
            wait_until(lambda pane=pane: "code 137" in tmux("capture-pane", "-p", "-t", pane), "the error")
            tmux("send-keys", "-t", pane, "Enter")
        wait_until(lambda: sizes(tmux) == [], f"the split to close after {cause}")


def test_split_stays_open_where_the_dashboard_does_not_start(tmux: Tmux) -> None:
    tmux("set-environment", "-g", "PYTHONPATH", "/nonexistent")
    tmux("set-environment", "-g", "PYTHONHOME", "/nonexistent")  # Python itself fails
    assert split(tmux).returncode == 0
    said = "agentdash has ended with code 1. Enter closes this pane."
    wait_until(lambda: said in tmux("capture-pane", "-p", "-J", "-t", "%1"), said)
