"""Claude Code's session file: read, checked against reused pids, and heard before its screen."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentdash.agents.claude.session_files import ClaudeSensor
from agentdash.model import events as e
from agentdash.model.process import Process, ProcessKey
from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.unit.story import PANE, pane, polled, process, worker

PID, START = 15241, "377798"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "proc" / str(PID)).mkdir(parents=True)
    fields = ["S", *["0"] * 18, START, "0"]
    (tmp_path / "proc" / str(PID) / "stat").write_text(f"{PID} (claude (x) y) {' '.join(fields)}\n")
    (tmp_path / ".claude" / "sessions").mkdir(parents=True)
    return tmp_path


def write(home: Path, **changes: object) -> None:
    # 2.1.197, as it wrote it
    said = {
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
    text = json.dumps({name: value for name, value in said.items() if value is not None})
    (home / ".claude" / "sessions" / f"{PID}.json").write_text(text)


def poll(
    home: Path,
    sensor: ClaudeSensor | None = None,
    *,
    agent: str | None = "claude",
    started: float = 1795207885.0,
) -> list[e.Event]:
    claude = Process(ProcessKey(PID, started), 1, "claude", env={"HOME": str(home)}, agent=agent)
    return (sensor or ClaudeSensor(proc=home / "proc")).poll(5.0, [claude])


def test_what_it_says(home: Path) -> None:
    write(home, status="waiting", waitingFor="permission prompt")
    key = ProcessKey(PID, 1795207885.0)
    assert poll(home) == [
        e.SessionSeen(
            at=5.0,
            key=key,
            agent="claude",
            status="waiting",
            waiting_for="permission prompt",
            since=1795207888.454,
        )
    ]


def test_only_changes_are_told(home: Path) -> None:
    sensor = ClaudeSensor(proc=home / "proc")
    write(home)
    assert len(poll(home, sensor)) == 1
    assert poll(home, sensor) == []
    write(home, status="idle")
    assert len(poll(home, sensor)) == 1


@pytest.mark.parametrize(
    "changes",
    [{"procStart": "1"}, {"pid": 7}, {"status": "new-word"}],
    ids=["reused", "other-pid", "unknown-status"],
)
def test_what_is_not_of_this_process_or_not_understood_is_left_out(
    home: Path, changes: dict[str, object]
) -> None:
    write(home, **changes)
    assert poll(home) == []


def test_without_proc_the_time_of_the_start_must_do(home: Path) -> None:
    write(home)
    nowhere = ClaudeSensor(proc=home / "nowhere")
    assert len(poll(home, nowhere)) == 1
    assert poll(home, ClaudeSensor(proc=home / "nowhere"), started=1795207999.0) == []


def test_no_file_a_torn_file_and_other_programs(home: Path) -> None:
    assert poll(home) == []
    (home / ".claude" / "sessions" / f"{PID}.json").write_text('{"pid": 15')
    assert poll(home) == []
    write(home)
    assert poll(home, agent="gemini") == []


def test_a_pipe_in_its_place_keeps_nobody_waiting(home: Path) -> None:
    os.mkfifo(home / ".claude" / "sessions" / f"{PID}.json")
    assert poll(home) == []


# ---------------------------------------------------------------- fusion


def claude(status: str | None, shows: str | None) -> Worker:
    story = [pane(), process(10, started=80.0), process(11, 10, started=85.0, agent="claude"), *polled(110)]
    if status:
        key = ProcessKey(11, 85.0)
        story.append(e.SessionSeen(at=112, key=key, agent="claude", status=status, since=111.0))  # type: ignore[arg-type]
    if shows:
        story.append(
            e.ScreenRead(at=113, key=PANE, agent="claude", state=shows, rule="claude.rule", text="words")
        )
    return worker(story)


@pytest.mark.parametrize(
    ("status", "shows", "state"),
    [
        ("busy", None, State.RUNNING),
        ("busy", "completed", State.RUNNING),  # while an answer streams its screen may look idle
        ("busy", "failed-provider", State.FAILED_PROVIDER),  # it retries
        ("waiting", None, State.WAITING_APPROVAL),
        ("waiting", "running", State.WAITING_APPROVAL),
        (
            "waiting",
            "waiting-input",
            State.WAITING_INPUT,
        ),  # of questions the file says the same as of permissions
        ("idle", "waiting-approval", State.COMPLETED),  # an old dialog above the prompt
        ("idle", "interrupted", State.INTERRUPTED),
        ("idle", "waiting-input", State.WAITING_INPUT),
        (None, "running", State.RUNNING),  # `claude -p`
    ],
)
def test_the_file_decides_and_the_screen_says_more(
    status: str | None, shows: str | None, state: State
) -> None:
    assert claude(status, shows).state is state


def test_who_disagrees_is_quoted() -> None:
    against = [x for x in claude("busy", "completed").assessment.evidence if not x.agrees]
    assert [(x.source, x.rule) for x in against] == [("screen", "claude.rule")]
    agreeing = claude("busy", "running").assessment.evidence
    assert {(x.source, x.agrees) for x in agreeing} == {("screen", True), ("session file", True)}


def test_it_goes_with_its_process() -> None:
    story = [pane(), process(10, started=80.0), process(11, 10, started=85.0, agent="claude"), *polled(110)]
    key = ProcessKey(11, 85.0)
    said = e.SessionSeen(at=112, key=key, agent="claude", status="busy", since=111.0)
    assert worker(story, said, e.ProcessGone(at=120, key=key), polled(121)).state is State.EXITED
