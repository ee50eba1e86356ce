"""Audits leave out calls that show nothing; what they report is what a reader of all lines reports."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentdash.agents.codex.home import open_lines
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.agents.session_logs import SessionLog
from agentdash.engine.reduce.fleet import reduce, reduce_log
from agentdash.model.events import CallEnded, CallsLeftOut, FileSeen, ThreadEvent
from agentdash.model.fleet import Fleet
from agentdash.model.memory import ThreadMemory
from agentdash.model.thread import Thread
from agentdash.replay import whole_log
from agentdash.report import file_audit
from tests.unit.rollout_files import THREAD, all_files, answer, call, event, item, line, meta, response

LOG = SessionLog(Path("rollout.jsonl"), THREAD, "codex")
POLICY = {"cwd": "/home/dev/project", "approval_policy": "on-request", "model": "m"}
WORKSPACE = {**POLICY, "sandbox_policy": {"type": "workspace-write", "network_access": False}}
FULL = {**POLICY, "sandbox_policy": {"type": "danger-full-access"}}
COMMANDS = (
    "ls -la src",
    "rg -n import src/environment.py",
    "sed -n '1,80p' board.db.md",
    "cat notes.txt; echo rc=$?",
    "cat notes.txt # of\ntouch /srv/board.db",
    "rg -n denied docs | head -5",
    "sqlite3 /srv/board.db 'insert into t values (1)'",
    "python sync.py --to /srv/board.db",
    "touch /srv/board.db",
    "cp a.txt '/srv/ä b.txt'",
    "curl https://example.com",
    "env | sort",
    "echo ${CODEX_SANDBOX_NETWORK_DISABLED:-unset}",
    "tmux new-session -d worker",
    "printf 'caf\u00e9 \u0007'",
)
OUTPUTS = (
    "",
    "main.py\nutil.py\n",
    "determine the terminal\n\x1b[32mPASSED\x1b[0m\n",
    "touch: cannot touch '/srv/board.db': Read-only file system\n",
    "Error: unable to open database file\n",
    "docs/errors.md:4: cat: /srv/board.db: Permission denied\n",
    "cp: cannot create regular file '/srv/\u00e4 b.txt': Per\x1b[0mmission denied\n",
    "curl: (6) Could not resolve host: example.com\n",
    "bwrap:\tCreating new namespace failed\n",
    "CODEX_SANDBOX_NETWORK_DISABLED=1\nHOME=/home/dev\nPWD=/home/dev\n",
    "1\n",
    "unset\n",
    "Seccomp:\t2\nNoNewPrivs:\t1\n",
    "command timed out after 10000 milliseconds\n",
    "Das Dateisystem ist nur lesbar\n",
    "x" * 65_000 + "\nPermission denied\n",
)


def seen(log: SessionLog) -> FileSeen:
    return FileSeen(at=0.0, thread=log.thread, path=str(log.path.absolute()), size=0, modified=0.0)


def full(log: SessionLog, lines: Sequence[bytes]) -> Fleet:
    """Return the fleet of all lines."""
    return reduce(Fleet(), [seen(log), *RolloutReader(log.thread).read(lines)])


def audited(fleet: Fleet) -> bytes:
    """Return what an audit keeps of a fleet."""
    fleet = reduce(fleet, file_audit._end_of_time())
    digest = file_audit._digest(fleet)
    file_audit.judge_file(digest, fleet, ThreadMemory, {})
    return msgspec.json.encode(digest)


def sparse(lines: Sequence[bytes], log: SessionLog = LOG) -> Fleet:
    return whole_log._read_rollout(log, seen(log), iter(lines))[0]


def events_of(monkeypatch: pytest.MonkeyPatch, lines: Sequence[bytes]) -> list[ThreadEvent]:
    """Return the events that an audit of lines reduces."""
    found: list[ThreadEvent] = []

    def record(thread: Thread, events: Sequence[ThreadEvent]) -> Thread:
        found.extend(events)
        return reduce_log(thread, events)

    monkeypatch.setattr(whole_log, "reduce_log", record)
    sparse(lines)
    return found


# ---------------------------------------------------------------- random sessions


class Session:
    """Random lines, as versions of Codex write them and as they do not."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._calls: list[str] = []
        self._second = 1.0

    def lines(self) -> list[bytes]:
        rng = self._rng
        head = [meta(cwd=rng.choice(("/home/dev/project", "/home/dev/project", "/srv/x")))]
        if rng.random() < 0.1:
            head.append(meta(id="01a1fa8a-0000-7501-a214-dc60155cd481"))  # copied lines follow
        parts = [part for _ in range(rng.randint(1, 60)) for part in self._part()]
        return [*head, *parts]

    def _part(self) -> Iterator[bytes]:
        rng = self._rng
        self._second += rng.choice((0.001, 1.5, -3.0))
        match rng.choices(range(9), (30, rng.choice((4, 20)), 4, 3, 3, 2, 2, 3, 3))[0]:
            case 0:
                yield from self._ran()
            case 1:
                settings = rng.choice((WORKSPACE, WORKSPACE, WORKSPACE, FULL))
                yield line("turn_context", settings, second=self._second)
            case 2:
                yield event("token_count", info=None, rate_limits={"primary": {"used_percent": 5.0}})
                yield response("reasoning", summary=[], encrypted_content="gAAAA")
            case 3:
                yield event(rng.choice(("task_started", "task_complete", "turn_aborted")), turn_id="t")
            case 4:
                yield event(rng.choice(("user_message", "agent_message")), message=rng.choice("abc"))
            case 5:
                yield rng.choice((b"", b"{", b"\xff\xfe", b'{"type":"world_state2"}', meta()))
            case 6:
                yield line("token_usage_record", {"usage": rng.choice(({}, None, 7))}, second=self._second)
            case 7:  # of a call that is open, or was ended
                yield self._end(rng.choice(self._calls or ["call_0"]))
            case 8:
                yield from self._patched()

    def _ran(self) -> Iterator[bytes]:
        rng = self._rng
        started = [self._start() for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        yield from (each for _, each in started)
        if rng.random() < 0.1:
            yield event("agent_message", message="between")
        if rng.random() < 0.05:
            return
        for id_, _ in rng.sample(started, len(started)):
            if rng.random() < 0.2:
                yield self._item(id_)
            yield self._end(id_)

    def _start(self) -> tuple[str, bytes]:
        rng = self._rng
        id_ = f"call_{len(self._calls) if rng.random() < 0.97 else 1}"
        self._calls.append(id_)
        script = rng.choice(COMMANDS)
        more: dict[str, Any] = {"workdir": "/home/dev/project"} if rng.random() < 0.5 else {}
        if rng.random() < 0.05:
            more |= {"sandbox_permissions": "require_escalated", "prefix_rule": ["ls"]}
        match rng.randrange(4):
            case 0:
                return id_, call("shell", {"command": ["bash", "-lc", script], **more}, id_=id_)
            case 1:
                return id_, call("shell_command", {"command": script, **more}, id_=id_)
            case 2:
                return id_, call("exec_command", json.dumps({"cmd": script}, ensure_ascii=False), id_=id_)
            case _:
                return id_, call(rng.choice(("exec_command", "telepathy")), {"cmd": script, **more}, id_=id_)

    def _end(self, id_: str) -> bytes:
        rng = self._rng
        text, code = rng.choice(OUTPUTS), rng.choice((0, 0, 1, -1, 126))
        forms: tuple[Any, ...] = (
            json.dumps({"output": text, "metadata": {"exit_code": code, "duration_seconds": 0.1}}),
            f"Exit code: {code}\nWall time: 0.1 seconds\nOutput:\n{text}",
            f"Chunk ID: 0a\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{text}",
            f"Chunk ID: 0a\nProcess running with session ID 7\nOutput:\n{text}",
            text,
            "exec command rejected by user",
            [{"type": "input_text", "text": text}],
            {"content": text, "success": code == 0},
        )
        return answer(rng.choices(forms, (5, 5, 5, 1, 1, 1, 1, 1))[0], id_=id_)

    def _item(self, id_: str) -> bytes:
        rng = self._rng
        fields = {
            "id": id_,
            "command": ["/bin/bash", "-lc", rng.choice(COMMANDS)],
            "status": rng.choice(("completed", "failed", "declined")),
            "aggregated_output": rng.choice(OUTPUTS),
            "exit_code": rng.choice((0, 0, 1, -1, None)),
            "source": rng.choice(("agent", "agent", "user_shell", "unified_exec_interaction")),
        }
        if rng.random() < 0.3:
            return event("exec_command_end", call_id=id_, **{k: v for k, v in fields.items() if k != "id"})
        return item(rng.choice(("CommandExecution", "CommandExecution", "Plan")), **fields)

    def _patched(self) -> Iterator[bytes]:
        id_ = f"patch_{self._second}"
        name = self._rng.choice(("a.py", "/srv/board.db"))
        patch = f"*** Begin Patch\n*** Update File: {name}\n@@\n*** End Patch"
        yield response("custom_tool_call", name="apply_patch", call_id=id_, input=patch, status="completed")
        text = self._rng.choice(("Success. Updated the following files:\nM a.py\n", *OUTPUTS))
        result = json.dumps({"output": text, "metadata": {"exit_code": 0, "duration_seconds": 0.0}})
        yield response("custom_tool_call_output", call_id=id_, output=result)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_sessions_are_audited_alike(seed: int) -> None:
    rng = random.Random(seed)
    for number in range(20):
        lines = Session(rng).lines()
        assert audited(sparse(lines)) == audited(full(LOG, lines)), f"session {number} of seed {seed}"


@pytest.mark.slow
def test_recordings_are_audited_alike() -> None:
    paths = all_files()
    assert len(paths) > 150
    for path in paths:
        log = SessionLog(path, path.stem[-36:], "codex")
        lines = list(open_lines(path))
        assert audited(sparse(lines, log)) == audited(full(log, lines)), path


# ---------------------------------------------------------------- what is left out


def plain(number: int, script: str = "ls", output: str = "a.py\n") -> list[bytes]:
    """Return the lines of a call that shows nothing."""
    id_ = f"call_{number}"
    printed = f"Chunk ID: 0a\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{output}"
    return [call("exec_command", {"cmd": script}, id_=id_), answer(printed, id_=id_)]


def test_plain_calls_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [each for number in range(150) for each in plain(number)]
    found = events_of(monkeypatch, [meta(), line("turn_context", WORKSPACE), *calls])
    assert not [each for each in found if isinstance(each, CallEnded)]
    (left_out,) = [each for each in found if isinstance(each, CallsLeftOut)]
    assert (left_out.count, left_out.line, left_out.started_line) == (150, 302, 301)


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("env | sort", "HOME=/home/dev\n"),
        ("tmux ls", "0: 1 windows\n"),
        ("touch /srv/x", "touch: cannot touch '/srv/x': Read-only file system\n"),
    ],
)
def test_calls_that_may_show_something_are_read(
    monkeypatch: pytest.MonkeyPatch, script: str, output: str
) -> None:
    found = events_of(
        monkeypatch, [meta(), line("turn_context", WORKSPACE), *plain(1), *plain(2, script, output)]
    )
    assert [each.call for each in found if isinstance(each, CallEnded)] == ["call_2"]


def test_a_call_that_names_what_was_denied_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    denied = plain(1, "touch /srv/board.db", "touch: cannot touch '/srv/board.db': Read-only file system\n")
    later = [*plain(2), *plain(3, "touch /srv/board.db", ""), *plain(4)]
    found = events_of(monkeypatch, [meta(), line("turn_context", WORKSPACE), *denied, *later])
    assert [each.call for each in found if isinstance(each, CallEnded)] == ["call_1", "call_3"]
