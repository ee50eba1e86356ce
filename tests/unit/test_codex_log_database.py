"""Codex's log database, with the schema and the texts of 0.138 and 0.169."""

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentdash.agents.codex.home import CodexHome
from agentdash.agents.codex.log_database import CodexLog, log_file
from agentdash.collect.clock import SystemClock
from agentdash.collect.scheduler import PollScheduler
from agentdash.collect.sources.codex import CodexLogSource
from agentdash.model.events import Event, SourceSeen, TroubleLogged, ViolationLogged
from agentdash.model.fleet import Fleet
from tests.unit.story import T, begun, called, ended, fleet

SCHEMA = """CREATE TABLE logs (id INTEGER PRIMARY KEY AUTOINCREMENT, ts INTEGER NOT NULL,
ts_nanos INTEGER NOT NULL, level TEXT NOT NULL,
target TEXT NOT NULL, feedback_log_body TEXT, module_path TEXT, file TEXT,
line INTEGER, thread_id TEXT, process_uuid TEXT,
estimated_bytes INTEGER NOT NULL DEFAULT 0)"""
SPANS = (
    f'session_loop{{thread_id={T}}}:turn{{otel.name="session_task.turn" model=mock-model}}:'
    f'handle_responses{{tool_name="exec_command"}}'
    ':dispatch_tool_call_with_code_mode_result{otel.name=exec_command tool_source="direct" '
    'call_id="call_2875" aborted=false}'
    ":dispatch_tool_call_with_state:unified_exec.open_session: "
)
RECORDED = "recorded sandbox violation: resource="
VIOLATION = f"{SPANS}{RECORDED}filesystem backend=linux_sandbox reason=read_only_file_system path=unknown"
RETRY = (
    f"session_loop{{thread_id={T}}}:handle_response_stream_error{{request=Sampling}}: stream disconnected"
    " - retrying sampling request (1/2 in 193ms)... turn_id=01a1 retries=1 max_retries=2 "
    "sampling_error=stream disconnected"
)


class Writer:
    """Writes a log as Codex does, and holds it open with a write-ahead log."""

    def __init__(self, path: Path, schema: str = SCHEMA) -> None:
        self.path = path
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute(schema)

    def write(
        self, body: object, target: str = "codex_sandboxing::violation", thread: object = T, at: int = 1_000
    ) -> None:
        row = (at, 500_000_000, "WARN", target, body, thread)
        columns = "ts, ts_nanos, level, target, feedback_log_body, thread_id"
        self.database.execute(f"INSERT INTO logs ({columns}) VALUES (?, ?, ?, ?, ?, ?)", row)


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path / "logs_2.sqlite")
    yield writer
    writer.database.close()


def test_new_rows_are_emitted_once(codex: Writer, tmp_path: Path) -> None:
    log = CodexLog(tmp_path)
    assert log.poll(5.0) == []
    codex.write(VIOLATION)
    codex.write("noise", target="codex_app_server::outgoing_message")
    codex.write(RETRY, target="codex_core::responses_retry", at=1_001)
    said, tried = log.poll(5.0)
    assert said == ViolationLogged(
        at=1_000.5, thread=T, call="call_2875", resource="filesystem", reason="read_only_file_system"
    )
    assert isinstance(said, ViolationLogged)
    assert isinstance(tried, TroubleLogged)
    assert tried.text.startswith("stream disconnected - retrying sampling request (1/2 in 193ms)... turn_id=")
    assert log.poll(6.0) == []
    # without a thread the id is taken from the spans
    codex.write(VIOLATION.replace("call_2875", "call_2876"), thread=None)
    (spoken,) = log.poll(6.0)
    assert isinstance(spoken, ViolationLogged)
    assert (spoken.thread, spoken.call) == (T, "call_2876")
    codex.write(f'{RECORDED}network backend=proxy reason=not_allowed host="api.example.com" path=/a b/c')
    refused = replace(said, call=None, resource="network", reason="not_allowed")
    assert log.poll(7.0) == [replace(refused, host="api.example.com", path="/a b/c")]


def test_reading_creates_no_file_and_holds_no_lock(codex: Writer, tmp_path: Path) -> None:
    codex.write(VIOLATION)
    log = CodexLog(tmp_path)
    assert len(log.poll(5.0)) == 1
    codex.database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    codex.database.close()  # the last connection checkpoints and removes the write-ahead log
    assert [path.name for path in tmp_path.iterdir()] == ["logs_2.sqlite"]
    assert len(CodexLog(tmp_path).poll(6.0)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["logs_2.sqlite"]


def troubles(events: list[Event]) -> list[tuple[bool, str]]:
    return [(e.ok, e.detail) for e in events if isinstance(e, SourceSeen)]


def test_unreadable_log_is_reported_and_retried(tmp_path: Path) -> None:
    path = tmp_path / "logs_2.sqlite"
    log = CodexLog(tmp_path)
    path.write_bytes(b"not a database, but as long as one has to be at least" * 100)
    assert troubles(log.poll(5.0)) == [(False, "logs_2.sqlite: file is not a database")]
    path.unlink()
    other = Writer(path, "CREATE TABLE entries (id INTEGER PRIMARY KEY)")
    assert troubles(log.poll(5.0)) == [(False, "logs_2.sqlite: no such table: logs")]
    other.database.execute(SCHEMA)
    other.write(VIOLATION)
    events = log.poll(5.0)
    assert (len(events), troubles(events)) == (2, [(True, "logs_2.sqlite")])
    other.database.close()


def test_newest_generation_and_configured_folder(tmp_path: Path) -> None:
    home, named = tmp_path / "home", tmp_path / "named"
    for folder, names in (
        (home, ("logs_2.sqlite", "logs_10.sqlite", "logs_11.sqlite-wal", "logs_x.sqlite")),
        (named, ("logs_1.sqlite", "logs_3.sqlite")),
    ):
        folder.mkdir()
        for name in names:
            (folder / name).touch()
    assert log_file(home, {}) == home / "logs_10.sqlite"
    assert log_file(home, {"CODEX_SQLITE_HOME": str(named)}) == named / "logs_3.sqlite"
    assert log_file(home, {"CODEX_SQLITE_HOME": str(tmp_path / "missing")}) == home / "logs_10.sqlite"
    assert log_file(tmp_path / "missing", {}) is None
    assert CodexLog(tmp_path / "missing").poll(time.time()) == []


# ---------------------------------------------------------------- effects


async def test_rows_wait_until_their_thread_is_known(codex: Writer, tmp_path: Path) -> None:
    clock = SystemClock()
    log = CodexLogSource(CodexHome(tmp_path), clock, PollScheduler(clock))
    codex.write(VIOLATION)
    assert await log.poll(Fleet()) == []  # helper threads of Codex have no rollout: never known
    (noted,) = await log.poll(fleet(begun()))
    assert isinstance(noted, ViolationLogged)
    assert await log.poll(fleet(begun())) == []


LOGGED = ViolationLogged(
    at=112.0, thread=T, call="c1", resource="filesystem", reason="read_only_file_system", path="/srv/board"
)
SILENT = (called(text="./deploy >/dev/null 2>&1"), ended(output="failed", exit_code=1))


@pytest.mark.parametrize(
    "story",
    [(*SILENT, LOGGED), (SILENT[0], LOGGED, SILENT[1]), (LOGGED, *SILENT)],
    ids=["after", "between", "before"],
)
def test_log_denies_a_call_without_output(story: tuple[Event, ...]) -> None:
    thread = fleet(begun(), *story).threads[T]
    (call,) = thread.calls
    assert call.denial is not None
    assert (call.denial.source, call.denial.path, call.denial.is_certain) == ("log", "/srv/board", True)
    assert "reason=read_only_file_system" in call.denial.quote
    assert thread.violations == (LOGGED,)
    assert thread.last_at == 102.0  # a row of the log is not activity


@pytest.mark.parametrize(
    ("resource", "reason", "certain"),
    [
        ("filesystem", "read_only_file_system", True),
        ("filesystem", "operation_not_permitted", False),
        ("filesystem", "permission_denied", False),
        ("network", "not_allowed", True),
    ],
)
def test_ambiguous_words_in_the_log(resource: Any, reason: str, certain: bool) -> None:
    (call,) = fleet(begun(), *SILENT, replace(LOGGED, resource=resource, reason=reason)).threads[T].calls
    assert call.denial is not None
    assert (call.denial.what, call.denial.is_certain) == (resource, certain)
