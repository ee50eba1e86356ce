"""`agentdash line`: what it shows, from which file, and how little it imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentdash.model.states import State
from agentdash.model.worker import Sandbox, Snapshot
from agentdash.replay.clock import VirtualClock
from agentdash.report import line
from agentdash.store import line_file
from agentdash.store.status_file import Publisher
from tests.unit.story import row

NOW = 1_763_000_000.0


FLEET = Snapshot(
    NOW,
    (
        row("%1", State.WAITING_APPROVAL, since=NOW - 845),
        row("%2", State.FAILED_PROVIDER, since=NOW - 20),
        row("%3", sandbox=Sandbox("mismatch")),
        row("%4", State.COMPLETED),
    ),
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.delenv("AGENTDASH_CONFIG", raising=False)
    return tmp_path / "agentdash"


def published(home: Path, snapshot: Snapshot = FLEET) -> Publisher:
    publisher = Publisher(home, VirtualClock(snapshot.at))
    publisher.write(snapshot)
    return publisher


def text_of(home: Path, now: float = NOW, *, tmux: bool = False) -> str:
    found = line.current_line(str(home.resolve()), now)
    assert found is not None
    return found["tmux" if tmux else "plain"]


def test_line_of_a_fleet(tmp_path: Path) -> None:
    published(tmp_path / "home")
    assert text_of(tmp_path / "home") == "2 need you 14m, 1 running, 1 mismatch"
    assert text_of(tmp_path / "home", tmux=True) == (
        "#[fg=red,bold]2 need you 14m#[default], 1 running, #[fg=magenta]1 mismatch#[default]"
    )


def test_file_of_the_home_or_the_only_one(tmp_path: Path) -> None:
    published(tmp_path / "a")
    assert text_of(tmp_path / "other") == "2 need you 14m, 1 running, 1 mismatch"
    published(tmp_path / "b", Snapshot(NOW))
    assert text_of(tmp_path / "b") == "no workers"
    with pytest.raises(line.NoLineError, match=r"set CODEX_HOME to one that has one: .*/a, .*/b"):
        text_of(tmp_path / "other")
    assert line.current_line(None, NOW) is None  # the slow way knows what the config file names


def test_old_file_is_none(tmp_path: Path) -> None:
    with pytest.raises(line.NoLineError, match="there is no status file"):
        text_of(tmp_path / "home")
    published(tmp_path / "home")
    assert text_of(tmp_path / "home", NOW + line.TOO_OLD_S)
    for now, why in ((NOW + 330, "written 5m ago"), (NOW - 10, "written in the future")):
        with pytest.raises(line.NoLineError, match=why):
            text_of(tmp_path / "home", now)


def test_file_of_others_is_none(tmp_path: Path) -> None:
    path = line_file.line_path(published(tmp_path / "home").path)
    assert len(line_file.read_line_files()) == 1
    path.chmod(0o666)
    assert line_file.read_line_files() == []
    path.unlink()
    os.mkfifo(path, 0o600)
    assert line_file.read_line_files() == []


def run(*args: str, home: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "CODEX_HOME": str(home)}
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, env=environ, check=False)


def test_without_a_file_it_says_so(tmp_path: Path) -> None:
    for way in ([], ["--codex-home", str(tmp_path)]):
        done = run("-m", "agentdash", "line", *way, home=tmp_path)
        assert (done.returncode, done.stdout) == (2, "agentdash ?\n")
        assert done.stderr == (
            "agentdash: there is no status file: start `agentdash publish`, or the dashboard\n"
        )


def test_it_imports_next_to_nothing(tmp_path: Path) -> None:
    """Each of these takes longer to import than the line may take."""
    code = (
        "import sys; before = set(sys.modules); sys.argv[1:] = ['line'];"
        "import agentdash.__main__ as m\ntry: m.main()\nexcept SystemExit: pass\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = run("-c", code, home=tmp_path)
    imported = done.stdout.splitlines()[-1].split()
    assert [name for name in imported if not name.startswith("agentdash")] == ["__future__"]
