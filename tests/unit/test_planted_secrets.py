"""Secrets planted in sessions: in prompts, commands, outputs and names. None is printed or kept."""

import json
import shlex
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from agentdash.collect.processes.env_filter import clean_arguments, filter_environment
from agentdash.engine.reduce.fleet import reduce
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.memory import PastWorker, ThreadMemory
from agentdash.model.observation import Escape
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Policy
from agentdash.model.process import Process, ProcessKey
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.replay.clock import VirtualClock
from agentdash.store.journal import Recorder
from agentdash.store.memory import Memory
from tests.unit.planted_secrets import PLANTED, leaks
from tests.unit.rollout_files import files
from tests.unit.test_cli import agentdash

pytestmark = pytest.mark.slow  # starts processes

(BOARD,) = files("0.169.0", "kanban-board")
ID = BOARD.stem[-36:]


def plant(line: dict[str, Any], secret: str) -> None:
    """Add a secret to the texts of a line."""
    payload = line["payload"]
    item = payload.get("item", {})
    for part in item.get("content", ()):  # UserMessage, AgentMessage
        part["text"] += f" {secret}"
    if "aggregated_output" in item:  # CommandExecution
        item["command"][-1] = f"{secret}\n{item['command'][-1]}"
        item["aggregated_output"] = f"{secret}\n{item['aggregated_output'] or ''}"
    for part in payload.get("content", ()) if isinstance(payload.get("content"), list) else ():
        if payload.get("role") != "developer" and not part["text"].startswith("<environment"):
            part["text"] += f"\n{secret}\n"
    match payload.get("type"):
        case "user_message" | "agent_message":
            payload["message"] += f" {secret}"
        case "task_complete":
            payload["last_agent_message"] = f"done {secret}"
        case "function_call":
            arguments = json.loads(payload["arguments"])
            arguments["cmd"] = f"{secret}\n{arguments['cmd']}"
            arguments["justification"] = secret
            payload["arguments"] = json.dumps(arguments)
        case "function_call_output":
            payload["output"] = payload["output"].replace("Output:\n", f"Output:\n{secret}\n")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("planted") / "home"
    day = home / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    names = []
    for number, secret in enumerate(PLANTED):
        thread = f"01a1fa8b-{number:04x}{ID[13:]}"
        lines = [json.loads(line) for line in BOARD.read_text().replace(ID, thread).splitlines()]
        for line in lines:
            plant(line, secret)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (day / f"rollout-2026-11-20T19-59-52-{thread}.jsonl").write_text(text)
        names.append({"id": thread, "thread_name": f"n {secret}", "updated_at": "2026-11-20T20:00:00Z"})
    (home / "session_index.jsonl").write_text("".join(json.dumps(name) + "\n" for name in names))
    (home / "config.toml").write_text('[mcp_servers.x]\nenv = { API_TOKEN = "S3cretCanary01" }\n')
    return home


def printed(home: Path, *args: str) -> str:
    """Return what a command prints, and what it writes to its debug log."""
    state, log = home.parent / "state", home.parent / "debug.log"
    environ = {"XDG_CONFIG_HOME": "/dev/null", "XDG_STATE_HOME": str(state), "CODEX_HOME": str(home)}
    done = agentdash(*args, "--debug-log", str(log), **environ)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr + log.read_text()


def threads(home: Path, step: int) -> list[str]:
    return [path.stem[-36:] for path in sorted(home.rglob("rollout-*.jsonl"))][::step]


@pytest.mark.parametrize(
    "command",
    [
        "check --json",
        "check",
        "check --denials",
        "check --denials --json",
        "check --format sarif --fail-on unverified",
        "sessions --json --limit 0",
        "sessions --limit 0",
        "status --no-tmux --all --json",
        "status --no-tmux --all",
        "doctor --json",
        "since '2026-11-19 19:00' --no-tmux",
        "metrics --no-tmux --all",
    ],
)
def test_no_secret_is_printed(home: Path, command: str) -> None:
    text = printed(home, *shlex.split(command))
    assert len(text) > 100
    assert leaks(text) == []


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["", "json"])
def test_no_secret_is_explained(home: Path, form: list[str]) -> None:
    for thread in threads(home, 90):
        text = printed(home, "explain", thread, "--no-tmux", *form)
        assert len(text) > 1_000
        assert leaks(text) == []


@pytest.mark.parametrize("redact", [[], ["--redact"]], ids=["", "redact"])
@pytest.mark.parametrize(("suffix", "step"), [("md", 24), ("html", 80)])
def test_no_secret_is_exported(home: Path, suffix: str, step: int, redact: list[str]) -> None:
    exported = home.parent / f"x.{suffix}"
    for thread in threads(home, step):
        printed(home, "replay", thread, "--export", str(exported), "--force", *redact)
        text = exported.read_text()
        assert "/board/kanban.db" in text
        assert leaks(text) == []


def test_no_secret_is_kept(home: Path) -> None:
    """What commands have written to the state directory, unpacked."""
    printed(home, "check", "--json")
    printed(home, "status", "--no-tmux", "--all", "--json")
    contents = list(kept(home.parent / "state"))
    assert contents
    for name, content in contents:
        assert leaks(content.decode("utf-8", "replace")) == [], name


def kept(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".sqlite":
            with closing(sqlite3.connect(path)) as database:
                for (body,) in database.execute("SELECT body FROM digest"):
                    with suppress(zlib.error):
                        body = zlib.decompress(body)  # noqa: PLW2901 - short ones are not packed
                    yield path.name, body
        elif path.is_file():
            yield path.name, path.read_bytes()


# ---------------------------------------------------------------- recordings

COLUMNS = 60


def screen_of(secret: str) -> tuple[str, ...]:
    """Return a screen of a narrow pane with a secret, whose beginning is in sight on the line."""
    rows = ["$ ls", *secret.split("\n"), "$"]
    return tuple(row[at : at + COLUMNS] for row in rows for at in range(0, max(1, len(row)), COLUMNS))


def arguments(text: str) -> list[str]:
    """Return the words of a command as a shell passes them; a text that is none is one argument."""
    is_command = not ({*"|({\n"} & {*text} or text.startswith(('"', "h:")) or '"] = ' in text)
    try:
        return shlex.split(text) if is_command else [text]
    except ValueError:
        return [text]


def recorded(number: int, secret: str) -> list[e.Event]:
    """Return the events of a process and a pane with a secret in all their texts."""
    at = 1_000.0 + number
    key = PaneKey("default", f"%{number}")
    words = clean_arguments(["codex", *arguments(secret)])
    script = clean_arguments(["bash", "-lc", secret])
    env = filter_environment([("HOME", "/root"), ("API_TOKEN", secret), ("PWD", f"/x {secret}")])
    pane = Pane(key=key, session="s", window=f"1: {secret}", pid=1, command="codex", title=f"t {secret}")
    screen = screen_of(secret)
    is_known_by_its_end = "-----END" in secret and "-----BEGIN" not in secret
    steps = [len(screen)] if is_known_by_its_end else range(len(screen) + 1)
    return [
        e.ProcessSeen(
            at=at, process=Process(ProcessKey(number * 2 + 2, at), 1, "codex", argv=words, env=env)
        ),
        e.ProcessSeen(at=at, process=Process(ProcessKey(number * 2 + 3, at), 1, "bash", argv=script)),
        e.PaneSeen(at=at, pane=pane),
        e.PaneDrawn(at=at, key=key, screen=("$ ls", *[""] * 30)),
        *(e.PaneDrawn(at=at + i, key=key, screen=(*screen[:i], *[""] * 30)) for i in steps),
        e.ScreenRead(at=at, key=key, agent="codex", state="running", rule="r", text=secret, object=secret),
        e.TroubleLogged(at=at, thread="t", text=secret),
        e.SourceSeen(at=at, name="log", ok=False, detail=secret),
    ]


def test_no_secret_is_in_a_journal(tmp_path: Path) -> None:
    """Arguments, environments, titles, screens as they are drawn; and what is known at a new part."""
    events = [event for number, secret in enumerate(PLANTED) for event in recorded(number, secret)]
    recorder = Recorder(tmp_path, VirtualClock(1.0))
    recorder._begin_part(Fleet())
    recorder._write_events(events)
    recorder._begin_part(reduce(Fleet(), events))
    recorder._close_file()
    texts = [path.read_text() for path in sorted(tmp_path.iterdir())]
    assert len(texts) == 2
    assert min(map(len, texts)) > 50_000
    for text in texts:
        assert text.count("…") > 300
        assert leaks(text) == []


def test_no_secret_is_in_the_memory(tmp_path: Path) -> None:
    """Panes of the past, what processes were asked for, and commands that got out of a sandbox."""
    memory = Memory(tmp_path / "state", tmp_path)
    for number, secret in enumerate(PLANTED):
        key = PaneKey("default", f"%{number}")
        past = PastWorker(pane=key, worker="w", agent="codex", seen=5.0, name=f"n {secret}", words=secret)
        origin = RequestOrigin(RequestField.PROFILE, RequestLayer.ARGV, text=f"codex -c {secret}")
        asked = Requested(policy=Policy(profile=secret), origins=(origin,), since=1.0 + number)
        escape = Escape(at=1.0 + number, call=f"c{number}", pane="%1", pid=None, quote=secret)
        known = ThreadMemory(thread=f"t{number}", requests=(asked,), escapes=(escape,))
        memory.save([known], [past], 10.0)
    assert len(memory.past_workers()) > 50
    contents = [path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()]
    text = b"".join(contents).decode("utf-8", "replace")
    assert text.count("codex -c") > 50
    assert leaks(text) == []
