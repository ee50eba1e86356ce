"""Sandbox problems that the user knows of: in one directory, until the policy there changes."""

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from agentdash.cli import app as command_line
from agentdash.demo.day import demo_hub
from agentdash.engine.judge.attention import known_findings, known_kinds
from agentdash.engine.user_attention import UserAttention
from agentdash.model.causes import causes
from agentdash.model.policy import Network
from agentdash.model.worker import Worker
from agentdash.store.attention import AttentionFile, AttentionSource

AT = 1_795_204_860.0


def worker_of(name: str, second: float = 60.0) -> Worker:
    hub, _ = demo_hub(at=second)
    return next(each for each in asyncio.run(hub.once()).workers if each.name.startswith(name))


def test_what_is_known_counts_for_all_workers_of_one_directory_and_policy() -> None:
    worker = worker_of("Compare")
    sandbox, kinds = worker.sandbox, causes(worker)[0].kinds
    known = known_findings(worker, kinds, AT)
    for change in ({}, {"id": "another", "name": "another"}):
        assert known_kinds(replace(worker, **change), known) == kinds
    policies = (
        replace(sandbox.configured, network=Network.ON),
        replace(sandbox.configured, approval="no"),
        None,
    )
    for change in (
        *({"cwd": cwd} for cwd in ("/home/dev/other", "/home/dev/project/below", None)),
        {"host": "build"},
        *({"sandbox": replace(sandbox, configured=policy)} for policy in policies),
    ):
        assert known_kinds(replace(worker, **change), known) == ()
    assert known_kinds(worker, known_findings(worker, ["tmux-escape"], AT)) == ()


def test_known_problems_do_not_count_until_they_are_withdrawn(tmp_path: Path) -> None:
    """In the header, on the screen of sandboxes and in the hub of another dashboard; the verdict stays."""
    file = AttentionFile(tmp_path, Path("/home"))
    hub, clock = demo_hub(at=60.0)
    before = asyncio.run(hub.once())
    worker = next(each for each in before.workers if each.name.startswith("Compare"))
    user = UserAttention(hub, clock, file.change)
    for cause in causes(worker):
        assert user.know(worker, cause.kinds) is None
    other, _ = demo_hub(at=60.0)
    other.take(asyncio.run(AttentionSource(file, clock).poll(other.fleet)))
    after = asyncio.run(other.once())
    now = next(each for each in after.workers if each.id == worker.id)
    assert (now.mismatch, now.sandbox.verdict) == (False, "mismatch")
    assert after.counts()["mismatch"] < before.counts()["mismatch"]
    assert user.know(now, ()) is None
    assert file.read().known == ()


def test_the_command_lists_and_undoes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    file = AttentionFile(tmp_path / "state" / "agentdash", tmp_path)
    worker = worker_of("Compare")
    file.change(
        lambda now: replace(now, known=tuple(known_findings(worker, ["tmux-escape", "network-open"], AT)))
    )

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(command_line, ["known", *arguments])
        return done.exit_code, done.output

    code, listed = run()
    assert code == 0
    assert "1  tmux-escape in /home/dev/project under workspace, no network, since" in listed
    assert run("--undo", "3")[0] == 2
    assert "network-open in /home/dev/project" in run("--undo", "2")[1]
    assert [each.kind for each in file.read().known] == ["tmux-escape"]
    assert "counts again" in run("--undo", "1")[1]
    assert "Nothing is marked" in run()[1]
