"""Past chats of Gemini, Qwen, Copilot, OpenCode and Kilo: listed, read, searched and checked as others.

The files of tests/data/chats were written by the real CLIs with a scripted model: an answer, a command, an
error.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from agentdash.agents.chat_logs import ChatReader
from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome
from agentdash.agents.session_logs import log_of
from agentdash.agents.session_rows import open_log, sessions_in
from agentdash.model.events import FileSeen, LineSkipped
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.replay.conversation import ConversationFile
from agentdash.replay.family import find_family
from agentdash.replay.library.library import Library
from agentdash.replay.library.search import TextSearch
from agentdash.replay.whole_log import read_whole
from agentdash.report.audit import audit, find_logs
from agentdash.report.sessions import read_sessions
from tests.unit.test_chats import COMMAND, PLACES, STARTED, Stopped, changed, chat_of, prepare

IDS = {
    "gemini": "session-2026-11-22T10-20-ac212fb5",
    "qwen": "3ee37def-86c5-4f3f-8017-54c65926e69a",
    "copilot": "ee3cba9e-fc4b-4ce3-8b4e-772f58b4cf54",
    "opencode": "ses_dfd38c31fffelJ7VBa7t56uFlu",
    "kilo": "ses_dfb02dc92ffeAgyrFwvTl3DPTb",
}
AGENTS = tuple(IDS)
TURNS = {"gemini": 3, "qwen": 3, "copilot": 3, "opencode": 4, "kilo": 2}


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a chat of each CLI."""
    for variable in ("GEMINI_CLI_HOME", "QWEN_HOME", "COPILOT_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for agent in AGENTS:
        prepare(agent, tmp_path)
    return tmp_path


def log_in(agent: str, home: Path) -> Path:
    """Put a recorded session where the CLI would have it; return the path of its log."""
    path = prepare(agent, home)
    return path / IDS[agent] if path.suffix == ".db" else path


def thread_of(path: Path) -> Thread:
    """Return what the log of a thread says."""
    log = log_of(path)
    assert log is not None
    seen = FileSeen(at=0, thread=log.thread, path=str(path), size=0, modified=0)
    fleet, problem = read_whole(log, seen)
    assert problem is None
    return fleet.threads[log.thread]


@pytest.mark.parametrize(
    ("agent", "command", "exit_code"),
    [
        ("gemini", COMMAND, None),
        ("qwen", COMMAND, 0),
        ("copilot", "touch x", 0),
        ("kilo", "touch x", 0),
        ("opencode", COMMAND, 0),
    ],
)
def test_chat_is_a_thread(tmp_path: Path, agent: str, command: str, exit_code: int | None) -> None:
    thread = thread_of(log_in(agent, tmp_path))
    assert (thread.id, thread.agent, thread.cwd) == (IDS[agent], agent, "/home/dev/ws")
    assert [(call.script, call.exit_code) for call in thread.calls] == [(command, exit_code)]
    assert (thread.open_calls, thread.policies, thread.skipped) == ((), (), ())
    assert (thread.turns, thread.tokens.total) == (TURNS[agent], 3 * 1240)
    said = [each.kind for each in thread.moments if each.kind in ("prompt", "message")]
    assert said[:4] == ["prompt", "message"] * 2
    assert said.count("prompt") == TURNS[agent]


@pytest.mark.parametrize("agent", AGENTS[:3])
def test_copy_with_any_name_is_the_chat_of_its_cli(tmp_path: Path, agent: str) -> None:
    copied = log_of(Path(shutil.copy(prepare(agent, tmp_path), tmp_path / "attached.jsonl")))
    assert copied is not None
    assert (copied.agent, copied.thread[-8:]) == (agent, IDS[agent][-8:] if agent != "gemini" else "241d3126")


def test_chats_are_listed_searched_and_checked(homes: Path) -> None:
    claude = ClaudeHome(homes / "claude")
    listed = read_sessions(homes / "codex", None, homes / "claude").sessions
    assert {(each.agent, each.id) for each in listed} == set(IDS.items())
    assert all(each.prompt and each.tokens and each.started_at and not each.problem for each in listed)

    library = Library(CodexHome(homes / "codex"), Stopped(), claude)
    entries = [library.read(each) for each in library.entries()]
    assert {each.agent for each in entries} == set(AGENTS)
    assert {each.verdict for each in entries} == {"unverified"}

    search = TextSearch("touch", [each.path for each in entries])
    list(search.steps())
    assert {(hit.thread, hit.what) for hit in search.hits} >= {(each, "command") for each in IDS.values()}

    paths, unreadable = find_logs(CodexHome(homes / "codex"), claude, [])
    report = audit(paths)
    assert (len(paths), unreadable, report.exit_code) == (5, [], 0)
    assert {(each.agent, each.verdict, len(each.denials)) for each in report.threads} == {
        (agent, "unverified", 0) for agent in AGENTS
    }


@pytest.mark.parametrize("agent", AGENTS)
def test_chat_is_replayed_by_its_id(homes: Path, agent: str) -> None:
    family = find_family(CodexHome(homes / "codex"), IDS[agent])
    assert (family.thread, len(family.paths)) == (IDS[agent], 1)
    said = ConversationFile(family.paths[0]).read()
    assert said.problem is None
    assert len(said.turns) == TURNS[agent]


@pytest.mark.parametrize(
    ("agent", "last", "state"),
    [
        ("gemini", "Model stream ended", State.FAILED_PROVIDER),
        ("gemini", "Hello from the fake model", State.COMPLETED),
        ("gemini", '"toolCalls"', State.EXITED),
        ("qwen", "The command has finished", State.COMPLETED),
        ("qwen", "functionCall", State.EXITED),
        ("copilot", "Authentication failed", State.FAILED_PROVIDER),
        ("copilot", '"id":"850eecfc', State.COMPLETED),  # the end of its turn
        ("copilot", "toolRequests", State.COMPLETED),
    ],
)
def test_end_of_a_chat(homes: Path, agent: str, last: str, state: State) -> None:
    """The chat ends with the last line that has these words."""
    clock = Stopped()
    clock.time += 1e6
    library = Library(CodexHome(homes / "codex"), clock, ClaudeHome(homes / "claude"))
    entry = next(each for each in library.entries() if each.agent == agent)
    lines = entry.path.read_text().splitlines(keepends=True)
    end = max(number for number, line in enumerate(lines) if last in line)
    entry.path.write_text("".join(lines[: end + 1]))
    os.utime(entry.path, (STARTED, STARTED))
    assert library.read(entry).state is state


def test_answer_of_gemini_that_is_written_again_with_its_calls_is_one(tmp_path: Path) -> None:
    path = prepare("gemini", tmp_path)
    path.write_text(path.read_text().replace('"content":"","thoughts"', '"content":"I run it.","thoughts"'))
    thread = thread_of(path)
    assert (thread.turns, [each.text for each in thread.moments].count("I run it.")) == (3, 1)


NOT_ENDED = """
UPDATE part SET data = json_remove(json_set(data, '$.state.status', 'running'), '$.state.time.end')
    WHERE json_extract(data, '$.type') = 'tool';
DELETE FROM message WHERE id > (SELECT min(message_id) FROM part WHERE data LIKE '%callID%');
UPDATE message SET data = json_remove(data, '$.time.completed') WHERE data LIKE '%tool-calls%';
"""


def test_log_of_rows_grows_while_they_are_rewritten(tmp_path: Path) -> None:
    path = log_in("opencode", tmp_path)
    whole = open_log(path).read()
    changed(path.parent, NOT_ENDED)
    earlier = open_log(path).read()
    assert whole.startswith(earlier)
    thread = thread_of(path)
    assert [call.script for call in thread.open_calls] == [COMMAND]
    assert thread.tokens.total == 1240


def test_edits_of_chats_are_changes(tmp_path: Path) -> None:
    path = log_in("opencode", tmp_path)
    given = {"filePath": "/home/dev/ws/a.py", "oldString": "one\ntwo", "newString": "three"}
    edited = f"json_set(data, '$.tool', 'edit', '$.state.input', json('{json.dumps(given)}'))"
    changed(path.parent, f"UPDATE part SET data = {edited} WHERE json_extract(data, '$.type') = 'tool'")
    thread = thread_of(path)
    (turn,) = (turn for turn in ConversationFile(path).read().turns if turn.number == 2)
    (change,) = next(turn.calls).changes
    assert (change.path, change.diff) == ("/home/dev/ws/a.py", "@@\n-one\n-two\n+three")
    assert [edit.path for edit in thread.edits] == ["/home/dev/ws/a.py"]
    (edit,) = chat_of("opencode", tmp_path).edits  # while it runs
    assert (edit.path, edit.call, edit.at) == ("/home/dev/ws/a.py", "edit /home/dev/ws/a.py", 1795342978.683)


def test_database_is_read_without_a_trace_and_checked_whole(homes: Path) -> None:
    path = homes / PLACES["opencode"][0]
    before = path.read_bytes(), sorted(path.parent.iterdir())
    codex, claude = CodexHome(homes / "codex"), ClaudeHome(homes / "claude")
    log = path / IDS["opencode"]
    for target in (path, log, path.parent, IDS["opencode"][:12]):
        assert find_logs(codex, claude, [str(target)]) == ([log], [])
    assert (path.read_bytes(), sorted(path.parent.iterdir())) == before


@pytest.mark.parametrize("content", [b"", b"x" * 200], ids=["empty", "other"])
def test_database_that_cannot_be_read_is_told(homes: Path, content: bytes) -> None:
    path = homes / PLACES["opencode"][0]
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"table|database"):
        sessions_in(path)
    _, unreadable = find_logs(CodexHome(homes / "codex"), ClaudeHome(homes / "claude"), [])
    assert [each.path for each in unreadable] == [str(path)]
    assert audit([path / IDS["opencode"]]).threads[0].problem


@pytest.mark.parametrize("agent", AGENTS)
def test_strange_records_cost_themselves(agent: str) -> None:
    strange: list[object] = [None, [], {}, 5, "x", [{}], [[1]], {"name": ["x"], "parts": [5, {"text": 1}]}]
    kinds = ("user", "gemini", "error", "assistant", "tool_result", "system", "session.start", "abort")
    kinds += ("assistant.message", "tool.execution_complete", "session.usage_record", "session.error")
    names = ("content", "toolCalls", "tokens", "message", "data", "timestamp", "id", "usageMetadata")
    records = [{"type": kind, name: value} for kind in kinds for name in names for value in strange]
    nested: dict[str, object] = {"id": [1], "name": {}, "args": 5, "status": ["x"], "result": [{"x": 1}]}
    records += [{"type": "gemini", "toolCalls": [nested]}, {"type": "assistant.message", "data": {}}]
    records += [{"type": "assistant.message", "data": {"toolRequests": [nested, {"toolCallId": {}}]}}]
    records += [{"type": "tool_result", "message": {"parts": [{"functionResponse": nested}]}}]
    records += [{"type": "tool.execution_complete", "data": {"toolCallId": 1, "result": [], "error": 5}}]
    lines = [*(json.dumps(record).encode() for record in records), b"{", b"[]", b"\xff", b""]
    events = ChatReader("t", agent, Path("chat.jsonl")).read(lines)
    assert [each.count for each in events if isinstance(each, LineSkipped)][-1] == 3


def test_command_that_a_file_mode_refused_is_no_denial_of_a_sandbox(tmp_path: Path) -> None:
    path = prepare("qwen", tmp_path)
    path.write_text(path.read_text().replace("Output: shell-finished", "bash: x: Read-only file system"))
    assert thread_of(path).denials == ()
