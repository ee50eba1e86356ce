"""The status file: who writes it, when, and what those inside a sandbox make of it."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentdash.cli.fleet_access import read_fleet
from agentdash.collect.clock import SystemClock
from agentdash.collect.processes.linux import linux_confinement
from agentdash.config import Config
from agentdash.demo.day import demo_events, demo_hub
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.events import Event, SourceSeen
from agentdash.model.fleet import Fleet
from agentdash.model.process import Kernel
from agentdash.model.states import State
from agentdash.model.worker import Snapshot
from agentdash.replay.clock import VirtualClock
from agentdash.store.line_file import line_path
from agentdash.store.status_file import (
    TOO_OLD,
    Published,
    Publisher,
    UnpublishedError,
    outdated,
    read_published,
    unreachable,
)

SANDBOXED, FREE = Kernel(seccomp=2, no_new_privs=True), Kernel(seccomp=0, no_new_privs=False)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "agentdash"


@pytest.fixture
def snapshot() -> Snapshot:
    _, events = demo_events()
    shown = events[: len(events) // 2]
    return build_snapshot(reduce(Fleet(), shown), shown[-1].at)


async def test_what_is_written_again_is_as_if_written_first(tmp_path: Path) -> None:
    hub, clock = demo_hub(at=30)
    clock.set(paused=True)
    start, publisher = clock.now(), Publisher(tmp_path / "home", clock)
    written = set()
    for second in range(0, 60, 5):
        clock.set(now=start + second)
        later = await hub.once()
        publisher.write(later)
        again = publisher.path.read_bytes()
        Publisher(tmp_path / "home", clock).write(later)
        assert again == publisher.path.read_bytes()
        written.add(again)
    assert len(written) == 12


def test_what_is_written_is_read(snapshot: Snapshot, state: Path, tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "home", VirtualClock(snapshot.at))
    publisher.write(snapshot)
    assert {path.name for path in state.iterdir()} == {publisher.path.name, line_path(publisher.path).name}
    assert (publisher.path.stat().st_mode & 0o777, state.stat().st_mode & 0o777) == (0o600, 0o700)
    published = read_published(publisher.path)
    assert (published.pid, published.home) == (os.getpid(), str(tmp_path / "home"))
    told, seen = published.snapshot.workers, snapshot.workers
    assert [(w.id, w.assessment, w.sandbox, w.policies) for w in told] == [
        (w.id, w.assessment, w.sandbox, w.policies) for w in seen
    ]
    assert not any(w.moments or (w.pane and w.pane.screen) for w in told)
    publisher.withdraw()
    assert list(state.iterdir()) == []


def test_an_old_file_is_no_news(snapshot: Snapshot) -> None:
    published = Published("agentdash.published/1", "0", 1, "/home", 1000.0, snapshot)
    assert outdated(published, 1000.0 + TOO_OLD) is None
    assert outdated(published, 998.0) is None  # clocks are corrected in small steps
    for written in (1010.0, 1e12, float("inf"), float("nan"), -1.0):
        assert "in the future" in (outdated(replace(published, written_at=written), 1000.0) or "")
    assert "written 2m ago: start `agentdash publish`" in (outdated(published, 1000.0 + 121) or "")
    (worker, *_) = (unreachable(w, "why", 1.0) for w in snapshot.workers)
    assert (worker.state, worker.assessment.why) == (State.UNREACHABLE, "why")


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b'{"schema":"agentdash.published/2"}'])
def test_a_file_that_is_not_ours_is_said_to_be(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    path.write_bytes(content)
    with pytest.raises(UnpublishedError, match="of another version"):
        read_published(path)
    with pytest.raises(UnpublishedError, match="there is no status file"):
        read_published(tmp_path / "nothing")


def test_the_file_of_another_one_is_left_alone_while_that_one_lives(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    path = Publisher(tmp_path, SystemClock()).path
    code = (
        "import sys; from pathlib import Path; from agentdash.collect.clock import SystemClock;"
        "from agentdash.store.status_file import Publisher;"
        "Publisher(Path(sys.argv[1]), SystemClock()).keeper(); print(flush=True); input()"
    )
    mine, told = Publisher(tmp_path, SystemClock()), list[Event]()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert mine.keeper() == other.pid
        mine._publish(snapshot, told.extend)
        assert not path.exists()
        other.kill()
    mine._publish(snapshot, told.extend)
    assert read_published(path).pid == os.getpid()
    health = [event.detail for event in told if isinstance(event, SourceSeen)]
    assert health == [f"pid {other.pid} writes it", "written"]


def test_a_lock_without_room_for_a_pid_is_given_up(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    mine = Publisher(tmp_path, SystemClock())
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", refuse)
        with pytest.raises(OSError, match="No space left"):
            mine.keeper()
    assert list(state.rglob("*.lock")) == []
    assert mine.keeper() is None
    mine.withdraw()


def test_a_file_that_cannot_be_written_is_shown(snapshot: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "agentdash").write_text("in the way")
    told = list[Event]()
    Publisher(tmp_path, SystemClock())._publish(snapshot, told.extend)
    (health,) = told
    assert isinstance(health, SourceSeen)
    assert (health.ok, "cannot be written" in health.detail) == (False, True)


@pytest.mark.parametrize(
    ("kernel", "first", "environ", "confined"),
    [
        (SANDBOXED, "codex-linux-sandbox", {}, True),
        (SANDBOXED, "/usr/bin/bwrap", {}, True),
        # Landlock, up to 0.114: no namespace of its own
        (SANDBOXED, "/sbin/init", {"CODEX_SANDBOX_NETWORK_DISABLED": "1"}, True),
        (SANDBOXED, "/sbin/init", {}, False),  # a container is no sandbox of an agent
        # approved: labels remain
        (FREE, "/sbin/init", {"CODEX_THREAD_ID": "1", "CODEX_SANDBOX_NETWORK_DISABLED": "1"}, False),
        # approved, in a container
        (Kernel(seccomp=2, no_new_privs=False), "/sbin/init", {"CODEX_THREAD_ID": "1"}, False),
        (None, "", {"CODEX_SANDBOX": "seatbelt"}, False),
    ],
)
def test_who_is_confined(kernel: Kernel | None, first: str, environ: dict[str, str], confined: bool) -> None:
    assert (linux_confinement(kernel, first, environ) is not None) is confined


def test_file_of_others_is_not_believed(snapshot: Snapshot, state: Path, tmp_path: Path) -> None:
    writer = Publisher(tmp_path, SystemClock())
    writer.write(snapshot)
    writer.path.chmod(0o666)
    with pytest.raises(UnpublishedError, match="other users may write"):
        read_published(writer.path)
    writer.path.chmod(0o600)
    state.chmod(0o777)
    with pytest.raises(UnpublishedError, match="other users may write"):
        read_published(writer.path)
    writer.write(snapshot)
    assert state.stat().st_mode & 0o777 == 0o700
    moved = state.rename(tmp_path / "elsewhere")
    state.symlink_to(moved)
    with pytest.raises(UnpublishedError, match="symbolic link"):
        read_published(writer.path)
    with pytest.raises(OSError, match="symbolic link"):
        writer.write(snapshot)


# ---------------------------------------------------------------- which home it is of


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A sandbox whose `shell_environment_policy` has removed CODEX_HOME."""
    monkeypatch.setattr("agentdash.cli.fleet_access._confinement", lambda config: "seccomp filter")
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return tmp_path


def published(snapshot: Snapshot, home: Path) -> Publisher:
    publisher = Publisher(home, SystemClock())
    publisher.write(replace(snapshot, at=SystemClock().now()))
    return publisher


def seen_inside(**config: object) -> tuple[int, str | None]:
    """Return the number of workers that one look inside shows, and what is wrong with the status file."""
    view = read_fleet(Config(**config), None)
    assert view.via is not None
    return len(view.snapshot.workers), view.via.problem


def test_the_only_current_file_is_that_of_the_home_that_was_not_passed_on(
    snapshot: Snapshot, inside: Path
) -> None:
    publisher = published(snapshot, inside / "elsewhere")
    assert seen_inside() == (len(snapshot.workers), None)
    publisher.withdraw()
    count, problem = seen_inside()
    assert count == 0
    assert "there is no status file" in (problem or "")


def test_a_home_that_was_named_is_not_replaced_by_another(
    snapshot: Snapshot, inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = published(snapshot, inside / "elsewhere")
    count, problem = seen_inside(codex_home=inside / "named")
    assert count == 0
    assert f"set CODEX_HOME to one that has a current one: {inside}/elsewhere" in (problem or "")
    monkeypatch.setenv("CODEX_HOME", str(inside / "named"))
    assert seen_inside() == (count, problem)
    monkeypatch.setenv("CODEX_HOME", str(inside / "elsewhere"))
    assert seen_inside() == (len(snapshot.workers), None)
    publisher.withdraw()
