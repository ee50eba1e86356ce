"""Shell completion and the manual page."""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import click
import pytest

from agentdash import version
from agentdash.cli import app
from agentdash.collect.clock import SystemClock
from agentdash.demo.day import demo_hub
from agentdash.store.status_file import Publisher
from man.make import commands_of, page
from tests.unit.test_cli import agentdash

ROOT = Path(__file__).parents[2]


def test_manual_page_is_current() -> None:
    """Run `python -m man.make` when a command has changed."""
    assert (ROOT / "man" / "agentdash.1").read_text("utf-8") == page()


@pytest.mark.slow
def test_version_names_the_commit_of_a_checkout(tmp_path: Path) -> None:
    """As git names it, whatever its way of keeping branches; elsewhere there is none."""

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        done = subprocess.run(("git", *identity, *arguments), cwd=tmp_path, capture_output=True, check=True)
        return done.stdout.decode().strip()

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "x")
    head = git("rev-parse", "HEAD")
    git("worktree", "add", "--quiet", "beside")
    assert [version._commit(str(tmp_path)), version._commit(str(tmp_path / "beside"))] == [head, head]
    git("pack-refs", "--all")
    assert [version._commit(str(tmp_path)), version._commit(str(tmp_path / "beside"))] == [head, head]
    git("checkout", "--quiet", "--detach")
    assert version._commit(str(tmp_path)) == head
    with pytest.raises(OSError, match="git"):
        version._commit("/proc")


def test_every_command_has_an_example() -> None:
    commands = dict(commands_of(app, click.Context(app)))
    assert commands
    for name, command in commands.items():
        assert f"agentdash {name}" in (command.help or "").partition("\b")[2], name


def complete(*words: str, shell: str = "bash", **env: str) -> list[str]:
    request = {
        "_AGENTDASH_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(("agentdash", *words)),
        "COMP_CWORD": str(len(words)),
        **env,
    }
    return agentdash(**request).stdout.split()


@pytest.mark.slow
def test_complete_commands_and_options() -> None:
    assert complete("sta") == ["plain,status"]
    assert complete("status", "--w") == ["plain,--watch"]
    assert complete("sta", shell="zsh")[:2] == ["plain", "status"]
    assert complete("demo", "--theme", "te") == ["plain,terminal"]


@pytest.mark.slow
async def test_complete_published_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    hub, clock = demo_hub(at=60)
    clock.set(paused=True)
    running = asyncio.create_task(hub.run())
    snapshot = await anext(hub.snapshots())
    Publisher(Path("/nonexistent"), SystemClock()).write(snapshot)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert complete("wait", "%", XDG_STATE_HOME=str(tmp_path)) == [
        f"plain,{w.pane.key.id}" for w in snapshot.workers if w.pane
    ]
    assert len(complete("status", "", XDG_STATE_HOME=str(tmp_path))) == len(snapshot.workers)


@pytest.mark.slow
def test_complete_threads(tmp_path: Path) -> None:
    day = tmp_path / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    (day / "rollout-2026-11-20T20-00-00-01a1fa8b-4086-7a32-8c43-2abbeb466a8c.jsonl").touch()
    assert complete("wait", "01a1", CODEX_HOME=str(tmp_path)) == [
        "plain,01a1fa8b-4086-7a32-8c43-2abbeb466a8c"
    ]


@pytest.mark.slow
def test_bash_evaluates_the_script(tmp_path: Path) -> None:
    (tmp_path / "agentdash").write_text(f'#!/bin/sh\nexec {sys.executable} -m agentdash "$@"\n')
    (tmp_path / "agentdash").chmod(0o755)
    request = "COMP_WORDS=(agentdash wai); COMP_CWORD=1; _agentdash_completion agentdash"
    script = f'eval "$(agentdash completion bash)"; {request}; echo "${{COMPREPLY[@]}}"'
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=env, check=True)
    assert (done.stdout, done.stderr) == ("wait\n", "")
