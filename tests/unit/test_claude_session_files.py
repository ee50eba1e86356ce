"""Claude Code's session files: reading, reused pids, and precedence over the screen."""

import json
import os
from pathlib import Path

import pytest

from agentdash.agents.adapter import UnreadableSessionError
from agentdash.agents.claude.adapter import ClaudeSessionFiles
from agentdash.model import events as e
from agentdash.model.process import Process, ProcessKey
from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.unit.story import PANE, in_pane, polled, worker

PID, START = 15241, "377798"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "proc" / str(PID)).mkdir(parents=True)
    fields = ["S", *["0"] * 18, START, "0"]
    (tmp_path / "proc" / str(PID) / "stat").write_text(f"{PID} (claude (x) y) {' '.join(fields)}\n")
    (tmp_path / ".claude" / "sessions").mkdir(parents=True)
    return tmp_path


def write(home: Path, **changes: object) -> None:
    # as 2.1.197 wrote it
    content = {
        "pid": PID,
        "sessionId": "4b0a2719-9f09-4aac-a1b4-90b74a4217b0",
        "cwd": "/home/dev/ws",
        "startedAt": 1795207885607,
        "procStart": START,
        "version": "2.1.197",
        "kind": "interactive",
        "status": "busy",
        "updatedAt": 1795207888454,
        "statusUpdatedAt": 1795207888454,
        **changes,
    }
    text = json.dumps({name: value for name, value in content.items() if value is not None})
    (home / ".claude" / "sessions" / f"{PID}.json").write_text(text)


def read(home: Path, *, proc: str = "proc", started: float = 1795207885.0) -> e.SessionSeen | None:
    claude = Process(ProcessKey(PID, started), 1, "claude", env={"HOME": str(home)}, agent="claude")
    return ClaudeSessionFiles(proc=home / proc).read(claude, 5.0)


def test_session_file_is_read(home: Path) -> None:
    write(home, status="waiting", waitingFor="permission prompt")
    assert read(home) == e.SessionSeen(
        at=5.0,
        key=ProcessKey(PID, 1795207885.0),
        agent="claude",
        status="waiting",
        waiting_for="permission prompt",
        since=1795207888.454,
        session="4b0a2719-9f09-4aac-a1b4-90b74a4217b0",
    )


@pytest.mark.parametrize("changes", [{"procStart": "1"}, {"pid": 7}, {"status": 7}])
def test_file_of_another_process_or_format_is_ignored(home: Path, changes: dict[str, object]) -> None:
    write(home, **changes)
    assert read(home) is None


@pytest.mark.parametrize(("status", "known"), [("shell", "idle"), ("new-word", None), (None, None)])
def test_other_status_leaves_the_session_known(home: Path, status: str | None, known: str | None) -> None:
    """`shell`: a command in the background outlives the turn (2.1.240, 2.1.330)."""
    write(home, status=status)
    seen = read(home)
    assert seen is not None
    assert (seen.status, seen.session) == (known, "4b0a2719-9f09-4aac-a1b4-90b74a4217b0")


@pytest.mark.parametrize(("written", "since"), [(None, 1795207888.0), (1e18, 5.0), (1e300, 5.0), (-1.0, 5.0)])
def test_time_of_the_status(home: Path, written: float | None, since: float) -> None:
    """Without one the file has one (2.1.120); an impossible one is that of the reading."""
    write(home, statusUpdatedAt=written, updatedAt=1795207888000)
    seen = read(home)
    assert seen is not None
    assert seen.since == since


def test_start_time_is_compared_without_proc(home: Path) -> None:
    write(home)
    assert read(home, proc="missing") is not None
    assert read(home, proc="missing", started=1795207999.0) is None


@pytest.mark.parametrize("content", [None, b'{"pid": 15', b'{"waitingFor": "\xe9"}', b"[" * 30_000, b"\xff"])
def test_missing_and_malformed_files_are_none(home: Path, content: bytes | None) -> None:
    if content is not None:
        (home / ".claude" / "sessions" / f"{PID}.json").write_bytes(content)
    assert read(home) is None


def test_what_is_no_file_of_its_size_is_stated(home: Path) -> None:
    place = home / ".claude" / "sessions" / f"{PID}.json"
    os.mkfifo(place)
    with pytest.raises(UnreadableSessionError, match="not a regular file"):
        read(home)
    place.unlink()
    place.write_bytes(b" " * 70_000)
    with pytest.raises(UnreadableSessionError, match=f"{PID}.json: larger than"):
        read(home)


# ---------------------------------------------------------------- session file and screen together


def claude(status: str | None, shows: str | None) -> Worker:
    seen = e.SessionSeen(at=112, key=ProcessKey(11, 85.0), agent="claude", status=status, since=111.0)
    drawn = e.ScreenRead(at=113, key=PANE, agent="claude", state=shows, rule="claude.rule", text="words")
    return worker(in_pane("claude"), polled(110), [seen] if status else [], [drawn] if shows else [])


@pytest.mark.parametrize(
    ("status", "shows", "state"),
    [
        ("busy", None, State.RUNNING),
        ("busy", "completed", State.RUNNING),  # while an answer streams its screen may look idle
        ("busy", "failed-provider", State.RUNNING),  # no screen ends a turn that the file says is open
        ("waiting", None, State.WAITING_APPROVAL),
        ("waiting", "running", State.WAITING_APPROVAL),
        # the file records questions as permission prompts
        ("waiting", "waiting-input", State.WAITING_INPUT),
        ("idle", "waiting-approval", State.COMPLETED),  # an old dialog above the prompt
        ("idle", "interrupted", State.INTERRUPTED),
        ("idle", "waiting-input", State.WAITING_INPUT),
        (None, "running", State.RUNNING),  # `claude -p`
    ],
)
def test_session_file_decides_and_screen_refines(status: str | None, shows: str | None, state: State) -> None:
    assert claude(status, shows).state is state
