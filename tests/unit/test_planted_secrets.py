"""Secrets planted in sessions: in prompts, commands, outputs and names. None is printed or kept."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.planted_secrets import PLANTED, leaks
from tests.unit.rollout_files import files

pytestmark = pytest.mark.slow  # starts processes, writes casts

(BOARD,) = files("0.169.0", "kanban-board")
ID = BOARD.stem[-36:]


def plant(line: dict[str, Any], secret: str) -> None:
    """Add a secret to the texts of a line."""
    payload = line["payload"]
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


def agentdash(home: Path, *args: str) -> str:
    state = home.parent / "state"
    blank = {"XDG_CONFIG_HOME": "/dev/null", "XDG_STATE_HOME": str(state), "CODEX_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", "agentdash", *args],
        capture_output=True,
        text=True,
        env={**os.environ, **blank, "TMUX": "", "TMUX_TMPDIR": "/dev/null", "AGENTDASH_DEBUG": ""},
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


def threads(home: Path) -> list[str]:
    return [path.stem[-36:] for path in sorted(home.rglob("rollout-*.jsonl"))]


@pytest.mark.parametrize(
    "command",
    [
        "check --json",
        "check",
        "check --denials",
        "check --denials --json",
        "check --format sarif --fail-on unverified",
        "check --format junit",
        "check --format github",
        "sessions --json --limit 0",
        "sessions --limit 0",
        "status --no-tmux --all --json",
        "status --no-tmux --all",
        "doctor --json",
        "since 72h --no-tmux",
        "metrics --no-tmux --all",
    ],
)
def test_no_secret_is_printed(home: Path, command: str) -> None:
    log = home.parent / "debug.log"
    printed = agentdash(home, *command.split(), "--debug-log", str(log))
    assert len(printed) > 100
    assert leaks(printed) == []
    assert leaks(log.read_text()) == []


def test_no_secret_is_explained(home: Path) -> None:
    printed = "".join(
        agentdash(home, "explain", thread, "--no-tmux", *form)
        for thread in threads(home)[::90]
        for form in ((), ("--json",))
    )
    assert len(printed) > 5_000
    assert leaks(printed) == []


@pytest.mark.parametrize("redact", [[], ["--redact"]], ids=["", "redact"])
@pytest.mark.parametrize("suffix", ["md", "html"])
def test_no_secret_is_exported(home: Path, suffix: str, redact: list[str]) -> None:
    exported = home.parent / f"x.{suffix}"
    for thread in threads(home)[7 :: 24 if suffix == "md" else 80]:
        agentdash(home, "replay", thread, "--export", str(exported), "--force", *redact)
        text = exported.read_text()
        assert "/board/kanban.db" in text
        assert leaks(text) == []


def test_no_secret_is_in_a_cast(home: Path) -> None:
    exported = home.parent / "x.cast"
    agentdash(home, "replay", threads(home)[0], "--export", str(exported), "--force")
    assert "blocked" in exported.read_text()
    assert leaks(exported.read_text()) == []


def test_no_secret_is_kept(home: Path) -> None:
    """What earlier commands have written to the state directory, unpacked."""
    agentdash(home, "check", "--json")
    agentdash(home, "status", "--no-tmux", "--all", "--json")
    contents = list(kept(home.parent / "state"))
    assert contents
    for name, content in contents:
        assert leaks(content.decode("utf-8", "replace")) == [], name


def kept(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".sqlite":
            with sqlite3.connect(path) as database:
                for (body,) in database.execute("SELECT body FROM digest"):
                    yield path.name, unpacked(body)
            database.close()
        elif path.is_file():
            yield path.name, path.read_bytes()


def unpacked(body: bytes) -> bytes:
    try:
        return zlib.decompress(body)
    except zlib.error:
        return body
