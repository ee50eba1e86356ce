"""Sessions of Gemini CLI, Qwen Code, Copilot CLI, OpenCode and Kilo: what is read of them.

The files of tests/data/chats were written by the real CLIs with a scripted model: an answer, a command, an
error; OpenCode's goes on with an answer under way.
"""

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentdash.agents.adapter import SessionFiles
from agentdash.agents.chats import ChatFiles, is_same_place
from agentdash.agents.copilot import CopilotSessions
from agentdash.agents.gemini import GeminiFacts, gemini_chats
from agentdash.agents.kilo import DATABASE as KILO_DATABASE
from agentdash.agents.opencode import OpencodeSessions
from agentdash.agents.qwen import QwenChats
from agentdash.collect.sources.workers import SessionFileSource
from agentdash.engine.reduce.fleet import reduce
from agentdash.model import events as e
from agentdash.model.chat import Chat
from agentdash.model.fleet import Fleet
from agentdash.model.process import Kernel, Process, ProcessKey
from agentdash.model.source import Clock
from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.unit.story import PANE, in_pane, polled, worker

DATA = Path(__file__).parents[1] / "data" / "chats"
PLACES = {
    "gemini": (".gemini/tmp/ws/chats/session-2026-11-22T10-20-ac212fb5.jsonl", "gemini-0.61.0.jsonl"),
    "copilot": (
        ".copilot/session-state/ee3cba9e-fc4b-4ce3-8b4e-772f58b4cf54/events.jsonl",
        "copilot-1.0.102.jsonl",
    ),
    "qwen": (
        ".qwen/projects/-home-dev-ws/chats/3ee37def-86c5-4f3f-8017-54c65926e69a.jsonl",
        "qwen-0.15.10.jsonl",
    ),
    "opencode": (".local/share/opencode/opencode.db", "opencode-1.18.33.sql"),
    "kilo": (".local/share/kilo/kilo.db", "kilo-7.7.7.sql"),
}
STARTED = 1_795_342_700.0
"""Before the recorded sessions began."""


class Stopped(Clock):
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.time = STARTED + 100

    def now(self) -> float:
        """Return the set time."""
        self.time += 1
        return self.time


def running(
    agent: str,
    home: Path,
    pid: int = 10,
    *arguments: str,
    ppid: int = 1,
    started: float = STARTED,
    cwd: str = "/home/dev/ws",
) -> Process:
    """A worker in a workspace."""
    return Process(
        key=ProcessKey(pid, started),
        ppid=ppid,
        name="node",
        argv=(agent, *arguments),
        cwd=cwd,
        env={"HOME": str(home)},
        agent=agent,
    )


def prepare(agent: str, home: Path) -> Path:
    """Put a recorded session where the CLI would have it; return its file."""
    place, source = PLACES[agent]
    path = home / place
    path.parent.mkdir(parents=True)
    if source.endswith(".sql"):
        changed(path, (DATA / source).read_text())
    else:
        path.write_bytes((DATA / source).read_bytes())
    if agent == "gemini":
        (home / ".gemini/projects.json").write_text('{"projects": {"/home/dev/ws": "ws"}}')
    if agent == "copilot":
        lock(path)
    return path


def lock(path: Path, pid: int = 10) -> Path:
    """Write the file by which a session of Copilot CLI names a process that has it open."""
    found = path.parent / f"inuse.{pid}.lock"
    found.write_text(str(pid))
    return found


def reader_of(agent: str) -> SessionFiles:
    """Return a new reader of the sessions of one CLI."""
    if agent == "gemini":
        return ChatFiles(gemini_chats, "session-*.jsonl", GeminiFacts)
    if agent == "qwen":
        return QwenChats()
    if agent == "copilot":
        return CopilotSessions()
    return OpencodeSessions(KILO_DATABASE) if agent == "kilo" else OpencodeSessions()


def session_of(process: Process, *, is_alone: bool = True) -> tuple[str | None, str] | None:
    """Return the session of a process, and the evidence; None without one."""
    seen = reader_of(process.agent or "").read(process, STARTED + 100, is_alone=is_alone)
    return (seen.session, seen.chat.by if seen.chat else "") if seen else None


def chat_of(agent: str, home: Path, reader: SessionFiles | None = None, at: float = 100) -> Chat:
    """Return the chat of the only worker of a home."""
    seen = (reader or reader_of(agent)).read(running(agent, home), STARTED + at)
    assert seen is not None
    assert seen.chat is not None
    return seen.chat


COMMAND = "touch shell-ran.txt; sleep 12; echo shell-finished"


@pytest.mark.parametrize(
    ("agent", "name", "model", "tool", "turn", "error"),
    [
        (
            *("gemini", "[[hello]] go hello", "gemini-2.5-flash", f"run_shell_command: {COMMAND}"),
            *("failed", "Model stream ended without a finish reason."),
        ),
        (
            *("qwen", "[[hello]] go hello", "fake-model", f"run_shell_command: {COMMAND}"),
            *("open", "429 Rate limit reached for requests. (scripted 429)"),
        ),
        ("copilot", "[[think]] think", "gpt-4.1", "bash: touch x", "failed", "Authentication failed"),
        ("kilo", "A title", "mock", "bash: touch x", "ended", ""),
        ("opencode", "Fake title", "fake-model", f"bash: {COMMAND}", "interrupted", ""),
    ],
)
def test_recorded_sessions(
    tmp_path: Path, agent: str, name: str, model: str, tool: str, turn: str, error: str
) -> None:
    prepare(agent, tmp_path)
    found = chat_of(agent, tmp_path)
    assert (found.name, found.model, found.tool, found.turn) == (name, model, tool, turn)
    assert (found.total, found.context) == (3720, 1200)
    assert (found.trouble or found.why).startswith(error)


@pytest.mark.parametrize("agent", ["gemini", "qwen", "copilot"])
def test_chat_is_read_as_it_grows_as_it_is_read_at_once(tmp_path: Path, agent: str) -> None:
    path = prepare(agent, tmp_path)
    whole = path.read_bytes()
    at_once = chat_of(agent, tmp_path)
    reader, turns = reader_of(agent), []
    for number, size in enumerate([*range(0, len(whole), 700), len(whole)]):
        path.write_bytes(whole[:size])
        seen = reader.read(running(agent, tmp_path), STARTED + 100 + number)
        turns.append(seen.chat.turn if seen and seen.chat else None)
    assert (chat_of(agent, tmp_path, reader, 499), "open" in turns) == (at_once, True)
    path.write_bytes(b"")  # begun anew
    anew = chat_of(agent, tmp_path, reader, 500)
    assert (anew.total, anew.tool) == (None, None)


@pytest.mark.parametrize("agent", ["gemini", "qwen", "opencode", "kilo"])
def test_session_of_another_time_or_directory_is_none_of_a_process(tmp_path: Path, agent: str) -> None:
    path = prepare(agent, tmp_path)
    os.utime(path, (STARTED + 50, STARTED + 50))
    later = running(agent, tmp_path, started=STARTED + 100_000)
    assert reader_of(agent).read(later, STARTED + 100_001) is None
    assert session_of(running(agent, tmp_path, cwd="/home/dev")) is None


def test_interrupted_turn_and_sub_agent_of_copilot(tmp_path: Path) -> None:
    path = prepare("copilot", tmp_path)
    before = chat_of("copilot", tmp_path)
    usage = b'{"inputTokens":500,"outputTokens":20,"model":"small"}'
    with path.open("ab") as file:
        file.write(b'{"type":"assistant.turn_start","data":{"turnId":"0"},"agentId":"a1"}\n')
        file.write(b'{"type":"session.usage_record","data":{"usage":' + usage + b'},"agentId":"a1"}\n')
    after = chat_of("copilot", tmp_path)
    assert (after.turn, after.context, after.total) == (before.turn, 1200, 3720 + 520)
    with path.open("ab") as file:
        file.write(b'{"type":"abort","data":{"reason":"user_initiated"}}\n')
    assert chat_of("copilot", tmp_path).turn == "interrupted"


def test_session_of_copilot_is_that_of_the_process_which_its_lock_names(tmp_path: Path) -> None:
    path = prepare("copilot", tmp_path)
    evidence = "inuse.10.lock in the directory of the session"
    assert session_of(running("copilot", tmp_path, cwd="/elsewhere")) == (path.parent.name, evidence)
    assert session_of(running("copilot", tmp_path, 11)) is None
    os.utime(lock(path), (STARTED - 50, STARTED - 50))  # of an earlier process with this number
    assert session_of(running("copilot", tmp_path)) is None
    lock(path)
    (path.parent.parent / "other").mkdir()
    other = path.parent.parent / "other" / path.name
    other.write_bytes(path.read_bytes())
    lock(other)
    assert session_of(running("copilot", tmp_path)) is None


@pytest.mark.parametrize("agent", ["gemini", "qwen"])
def test_of_two_chats_none_is_certain(tmp_path: Path, agent: str) -> None:
    path = prepare(agent, tmp_path)
    path.with_name(f"session-1{path.name}").write_bytes(path.read_bytes())
    assert session_of(running(agent, tmp_path)) is None


def test_of_two_sessions_the_named_one_counts(tmp_path: Path) -> None:
    path = prepare("opencode", tmp_path)
    changed(path, "CREATE TABLE other AS SELECT * FROM session; UPDATE other SET id = 'ses_other'")
    changed(path, "INSERT INTO session SELECT * FROM other")
    assert session_of(running("opencode", tmp_path)) is None
    named = running("opencode", tmp_path, 10, "-s", "ses_other")
    assert session_of(named) == ("ses_other", "its arguments name ses_other")


def listing(directory: Path) -> dict[str, tuple[int, str]]:
    """The files of a directory with time and content."""
    return {
        path.name: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in directory.iterdir()
    }


WRITER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA journal_mode = wal")
database.execute("UPDATE session SET title = 'written'")
database.commit()
print("written", flush=True)
sys.stdin.readline()
database.execute("UPDATE session SET title = 'free'")
database.commit()
"""


def test_database_that_is_being_written_is_read_without_a_trace(tmp_path: Path) -> None:
    path = prepare("opencode", tmp_path)
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        before = listing(path.parent)
        assert chat_of("opencode", tmp_path).name == "written"
        assert (listing(path.parent), len(before)) == (before, 3)
        writer.communicate("\n")
    assert writer.returncode == 0  # no lock was left behind


ENDLESS = """
DROP TABLE session;
CREATE VIEW session AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
    SELECT 'ses' AS id, x AS title, 'x' || x AS directory, NULL AS parent_id, x AS time_updated FROM n;
"""


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(b"no database, but long enough" * 40), "not a database"),
        (lambda path: os.truncate(path, 6_000), "malformed"),
        (lambda path: changed(path, "DROP TABLE message"), "no such table: message"),
        (lambda path: changed(path, "ALTER TABLE session DROP COLUMN title"), "No item with that key"),
        (lambda path: changed(path, ENDLESS), "interrupted"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "not a regular file"),
    ],
)
async def test_database_that_cannot_be_read_is_stated(
    tmp_path: Path, damage: Callable[[Path], object], reason: str
) -> None:
    """It costs its own session only, and is read again when it can be."""
    other = prepare("gemini", tmp_path)
    path = prepare("opencode", tmp_path)
    whole = path.read_bytes()
    damage(path)
    workers = [running("opencode", tmp_path), running("gemini", tmp_path, 11, cwd="/home/dev/ws")]
    fleet = Fleet(processes={each.key: each for each in workers})
    source = SessionFileSource(Stopped(), {"opencode": OpencodeSessions(), "gemini": reader_of("gemini")})
    session, health = await source.poll(fleet)
    assert isinstance(session, e.SessionSeen)
    assert (session.agent, session.session) == ("gemini", other.stem)
    assert isinstance(health, e.SourceSeen)
    assert (health.ok, str(path) in health.detail, reason in health.detail) == (False, True, True)
    assert await source.poll(fleet) == []
    path.unlink()
    path.write_bytes(whole)
    session, health = await source.poll(fleet)
    assert isinstance(session, e.SessionSeen)
    assert isinstance(health, e.SourceSeen)
    assert (session.agent, health.ok) == ("opencode", True)


def changed(path: Path, script: str) -> None:
    """Run a script on a database that has no views."""
    with closing(sqlite3.connect(path)) as database:
        for index in database.execute("SELECT name FROM sqlite_schema WHERE type = 'index'").fetchall():
            if not index[0].startswith("sqlite_"):
                database.execute(f"DROP INDEX {index[0]}")
        database.executescript(script)


@pytest.mark.parametrize(
    "message",
    ['{"role":"assistant","tokens":{"input":5,"cache":[1]}}', '{"role":["x"],"time":[],"error":[]}', "[]"],
)
def test_strange_messages_cost_themselves(tmp_path: Path, message: str) -> None:
    path = prepare("opencode", tmp_path)
    changed(path, f"UPDATE message SET data = '{message}'")
    assert chat_of("opencode", tmp_path).name == "Fake title"


SAYS: dict[str, Callable[[str], dict[str, object]]] = {
    "gemini": lambda text: {"type": "gemini", "content": text},
    "qwen": lambda text: {"type": "assistant", "message": {"parts": [{"text": text}]}},
    "copilot": lambda text: {"type": "assistant.message", "data": {"content": text}},
}
PROMPTS: dict[str, dict[str, object]] = {
    "gemini": {"type": "user", "content": [{"text": "yes"}]},
    "qwen": {"type": "user", "message": {"parts": [{"text": "yes"}]}},
    "copilot": {"type": "user.message", "data": {"content": "yes"}},
}


@pytest.mark.parametrize("agent", SAYS)
def test_question_in_the_last_message(tmp_path: Path, agent: str) -> None:
    path = prepare(agent, tmp_path)
    asked = []
    for record in (SAYS[agent]("Fixed.\n\nCommit *it*?"), PROMPTS[agent], SAYS[agent]("Why? So.")):
        with path.open("a") as log:
            log.write(json.dumps(record) + "\n")
        asked.append(chat_of(agent, tmp_path).asks)
    assert asked == ["Commit *it*?", "", ""]


# ---------------------------------------------------------------- which process


def test_place_of_a_process_in_a_container_is_another_one(tmp_path: Path) -> None:
    one = running("gemini", tmp_path, 10)
    place = tmp_path / "chats"
    place.mkdir()
    proc = tmp_path / "proc"
    assert is_same_place(one, place, proc)  # it has ended
    (proc / "10").mkdir(parents=True)
    (proc / "10" / "root").symlink_to("/")
    assert is_same_place(one, place, proc)
    (proc / "10" / "root").unlink()
    (proc / "10" / "root").symlink_to(tmp_path / "container")
    assert not is_same_place(one, place, proc)
    (tmp_path / "container" / str(place).lstrip("/")).mkdir(parents=True)
    assert not is_same_place(one, place, proc)


async def found_by(home: Path, *processes: Process) -> list[int]:
    """Return the pids that a session was found for."""
    source = SessionFileSource(Stopped(), {"gemini": reader_of("gemini")})
    events = await source.poll(Fleet(processes={each.key: each for each in processes}))
    return [event.key.pid for event in events if isinstance(event, e.SessionSeen)]


async def test_two_workers_in_one_directory_have_no_certain_session(tmp_path: Path) -> None:
    prepare("gemini", tmp_path)
    outer = running("gemini", tmp_path, 10)
    again = running("gemini", tmp_path, 11, ppid=10)
    assert await found_by(tmp_path, outer) == [10]
    assert await found_by(tmp_path, outer, again) == [10, 11]  # it starts itself a second time
    other = running("gemini", tmp_path, 20)
    assert await found_by(tmp_path, outer, again, other) == []
    assert await found_by(tmp_path, outer, running("gemini", tmp_path, 20, cwd="/elsewhere")) == [10]


async def test_session_that_is_not_certain_any_more_is_none(tmp_path: Path) -> None:
    prepare("gemini", tmp_path)
    one, other = running("gemini", tmp_path, 10), running("gemini", tmp_path, 20)
    source = SessionFileSource(Stopped(), {"gemini": reader_of("gemini")})
    fleet = Fleet()
    known = []
    for processes in ([one], [one, other], [one, other], [one]):
        events = await source.poll(Fleet(processes={each.key: each for each in processes}))
        fleet = reduce(fleet, events)
        known.append((len(events), set(fleet.sessions)))
    assert known == [(1, {one.key}), (1, set()), (0, set()), (1, {one.key})]


def name_process(chat: Path, pid: int) -> Path:
    """Write the file by which a Qwen Code names itself as the one that has a chat open."""
    path = chat.with_suffix(".runtime.json")
    path.write_text(f'{{"schema_version": 1, "pid": {pid}, "session_id": "{chat.stem}"}}')
    return path


def test_session_of_qwen_is_that_of_the_process_which_its_file_names(tmp_path: Path) -> None:
    first = prepare("qwen", tmp_path)
    second = first.with_name("second.jsonl")
    second.write_bytes(first.read_bytes())
    one, other = running("qwen", tmp_path, 10), running("qwen", tmp_path, 20)
    name_process(first, 10)
    name_process(second, 20)
    assert session_of(one, is_alone=False) == (first.stem, f"{first.stem}.runtime.json has its pid")
    assert session_of(other, is_alone=False) == ("second", "second.runtime.json has its pid")
    assert session_of(running("qwen", tmp_path, 30)) is None  # the launcher of one of them
    numbered = replace(other, kernel=Kernel(ns_pids=(20, 10)))  # has a pid namespace of its own
    assert session_of(numbered) == (first.stem, f"{first.stem}.runtime.json has its pid")


# ---------------------------------------------------------------- what it is for


def shown(chat: Chat, state: str | None) -> Worker:
    """A worker with this session, and perhaps a screen that is read as a state."""
    key = ProcessKey(11, 85.0)
    seen = e.SessionSeen(at=90, key=key, agent="qwen", status=None, since=88.0, session="s1", chat=chat)
    reading = e.ScreenRead(at=95, key=PANE, agent="qwen", state=state, rule="qwen.working", text="…")
    return worker(in_pane("qwen"), seen, [reading] if state else [], polled(110))


@pytest.mark.parametrize(
    ("chat", "screen", "expected"),
    [
        (Chat(by="x", turn="ended"), None, State.COMPLETED),
        (Chat(by="x", turn="failed", why="no answer"), None, State.FAILED_PROVIDER),
        (Chat(by="x", turn="interrupted"), None, State.INTERRUPTED),
        (Chat(by="x", turn="open"), None, State.UNKNOWN),  # it may wait for an approval
        (Chat(by="x", turn="ended"), "waiting-approval", State.WAITING_APPROVAL),
        (Chat(by="x", turn="ended", asks="Go on?"), "waiting-approval", State.WAITING_APPROVAL),
        (Chat(by="x", turn="ended", asks="Go on?"), "completed", State.WAITING_INPUT),
        (Chat(by="x", turn="ended", asks="Go on?"), None, State.WAITING_INPUT),
        (Chat(by="x", turn="open", trouble="429"), "running", State.RUNNING),
        (Chat(by="x", turn="open", trouble="429"), "waiting-approval", State.WAITING_APPROVAL),
    ],
)
def test_log_decides_what_the_screen_leaves_open(chat: Chat, screen: str | None, expected: State) -> None:
    assert shown(chat, screen).state is expected
