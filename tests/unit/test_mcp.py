"""`agentdash mcp`: what the official SDK's client gets from it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from agentdash.cli.mcp_tools import MAX_ANSWER_CHARACTERS, _short
from tests.unit.rollout_files import RECORDINGS

pytestmark = pytest.mark.slow

BOARD = "01a1fa8b-4086-7a32-8c43-2abbeb466a8c"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for scenario in ("spawn-leaked-flags", "kanban-board"):
        shutil.copytree(RECORDINGS / "0.169.0" / scenario, tmp_path / "home/sessions/2026/11" / scenario)
    return tmp_path / "home"


def environment(home: Path) -> dict[str, str]:
    state = {"XDG_STATE_HOME": str(home.parent), "XDG_CONFIG_HOME": str(home.parent), "CODEX_HOME": str(home)}
    return {"PATH": os.environ["PATH"], "HOME": str(home.parent), "TMUX_TMPDIR": "/nonexistent", **state}


@asynccontextmanager
async def session(home: Path) -> AsyncIterator[ClientSession]:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "agentdash", "mcp", "--no-tmux"], env=environment(home)
    )
    with (home.parent / "stderr").open("w") as errors:
        async with stdio_client(server, errlog=errors) as streams, ClientSession(*streams) as client:
            await client.initialize()
            yield client


async def ask(client: ClientSession, tool: str, **arguments: Any) -> tuple[bool, str]:
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    return bool(result.is_error), content.text


async def test_a_model_chooses_no_tmux_server(home: Path, tmp_path: Path) -> None:
    async with session(home) as client:
        unwatched = (f"{tmp_path}/socket", "-L other", "other")
        for tool, server in product(("status", "wait", "explain"), unwatched):
            is_error, text = await ask(client, tool, target=f"{server}:%0")
            assert is_error
            assert "is on a tmux server that is not watched" in text


async def test_tools_are_read_only_and_described(home: Path) -> None:
    async with session(home) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == ["status", "wait", "explain"]
    for tool in tools:
        assert tool.annotations
        assert tool.annotations.read_only_hint
        assert tool.description
    assert len(json.dumps([tool.model_dump(mode="json") for tool in tools])) < 6_000  # each request has it


async def test_answers(home: Path) -> None:
    async with session(home) as client:
        is_error, text = await ask(client, "status", target=BOARD)
        (worker,) = json.loads(text)["workers"]
        assert not is_error
        assert (worker["state"], worker["findings"]) == ("blocked-sandbox", ["denied-filesystem"])
        _, text = await ask(client, "explain", target=BOARD)
        assert "writable_roots" in text
        assert "unable to open database file" in text
        _, text = await ask(client, "wait", target=BOARD, until=["blocked-sandbox"], timeout_seconds=5)
        assert text.startswith("blocked-sandbox")
        _, text = await ask(client, "wait", target=BOARD, until=["running"], timeout_seconds=0)
        assert "timed-out" in text


async def test_wrong_arguments_are_errors_that_help(home: Path) -> None:
    async with session(home) as client:
        for tool, arguments, message in (
            ("status", {"target": "nosuch"}, "no worker matches 'nosuch'"),
            ("wait", {"target": BOARD, "until": ["asleep"]}, "choose from running"),
            ("status", {"limit": 0}, "greater than or equal to 1"),
        ):
            is_error, text = await ask(client, tool, **arguments)
            assert is_error
            assert message in text


def test_long_answers_are_cut() -> None:
    text = _short("x" * 20_000)
    assert len(text) < MAX_ANSWER_CHARACTERS + 100
    assert "12000 characters more" in text
    assert _short("short") == "short"


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError('No module named mcp', name='mcp')")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "agentdash", "mcp"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install '.[mcp]'" in done.stderr
    assert done.stderr.count("\n") == 1
