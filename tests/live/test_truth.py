"""Configured, applied and got beside a real Codex: each way in which they differ, brought about by doing it."""

from __future__ import annotations

import shlex
import sys

import pytest

from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.live.codex import install
from tests.live.conftest import OpenLab
from tests.live.watched import Watched, watching

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's marks are Linux's")

ONLINE = ("-s", "workspace-write", "-c", "sandbox_workspace_write.network_access=true")
FULL = ("-s", "danger-full-access")


def kinds(worker: Worker) -> list[str]:
    return sorted(f.kind for f in worker.sandbox.findings)


async def seen_live(watched: Watched) -> Worker:
    """The thread, when the kernel has been asked about a command of it."""
    return await watched.until(lambda w: w.kind == "codex-thread" and w.sandbox.got.sandboxed is not None)


async def test_what_was_applied_is_what_was_configured(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": "sleep 3"}, {"say": "all done"}]})
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "workspace-write")
        found = (await seen_live(watched)).sandbox
    assert found.configured is not None
    assert found.applied_policy is not None
    assert found.applied is not None
    assert found.applied.startswith("codex-linux-sandbox: files workspace, network off")
    assert set(found.applied_policy.writable_roots) == set(found.configured.writable_roots)
    assert (found.verdict, found.findings, found.got.sandboxed, found.got.no_new_privs) == (
        "match",
        (),
        True,
        True,
    )


async def test_an_approved_escalation_runs_on_the_host_and_keeps_its_flag(codex: OpenLab) -> None:
    lab = codex(
        {"ask": [{"run": "env | grep CODEX_SANDBOX; sleep 4", "escalate": "May I?"}, {"say": "all done"}]}
    )
    async with watching(lab) as watched:
        pane = await lab.tui()
        pane.submit("[[ask]] go")
        await pane.answer("Would you like to run the following command?", "y")
        worker = await seen_live(watched)
        assert (kinds(worker), worker.sandbox.findings[0].direction) == (["escalated-flag-left"], "label")
        done = await watched.until(lambda w: w.state is State.COMPLETED)
    assert kinds(done) == ["escalated-flag-left"]
    assert done.sandbox.applied is not None
    assert done.sandbox.applied.startswith(
        "no sandbox launcher above it; asked to run outside of the sandbox: ended"
    )


async def test_a_command_that_outlives_its_turn(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": "sleep 20", "yield_ms": 300}, {"say": "it goes on"}]})
    async with watching(lab) as watched:
        (await lab.tui()).submit("[[work]] go")
        done = await watched.until(
            lambda w: w.state is State.COMPLETED and bool(w.pids) and w.sandbox.got.sandboxed is not None
        )
    assert (done.sandbox.verdict, done.sandbox.findings) == ("match", ())
    assert "goes on in the background" in done.assessment.why


async def test_a_short_command_is_caught_from_its_output(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": "env; sleep 0.2"}, {"say": "all done"}]})
    async with watching(lab) as watched:
        lab.exec("[[work]] go", *FULL, "-c", 'shell_environment_policy.set={CODEX_SANDBOX="seatbelt"}')
        done = await watched.until(lambda w: w.state is State.COMPLETED)
    assert kinds(done) == ["foreign-sandbox-flag"]


async def test_a_pane_that_a_sandboxed_command_opens_outside(codex: OpenLab) -> None:
    lab = codex({})
    lab.model.script = {
        "work": [{"run": f"tmux -S {lab.tmux} new-window -d 'sleep 30'; sleep 2"}, {"say": "all done"}]
    }
    async with watching(lab) as watched:
        lab.exec("[[work]] go", *ONLINE)
        escaped = await watched.until(lambda w: "tmux-escape" in kinds(w))
    (finding,) = escaped.sandbox.findings
    assert (finding.direction, finding.severity, escaped.sandbox.verdict) == ("looser", "danger", "mismatch")
    assert "in no sandbox" in finding.got


async def test_a_codex_inside_of_another_ones_sandbox(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": "sleep 4"}, {"say": "all done"}]})
    inner = shlex.join([str(install()), "exec", *FULL, "--skip-git-repo-check", "[[work]] go"])
    roots = f'sandbox_workspace_write.writable_roots=["{lab.home}"]'
    outer = [
        "-c",
        "sandbox_mode=workspace-write",
        "-c",
        "sandbox_workspace_write.network_access=true",
        "-c",
        roots,
    ]
    async with watching(lab) as watched:
        command = shlex.join([str(install()), "sandbox", *outer, "--", "sh", "-c", f"{inner} </dev/null"])
        lab.run_tmux(
            "new-session",
            "-d",
            "-c",
            str(lab.workspace),
            command,
            ";",
            "set-option",
            "-g",
            "remain-on-exit",
            "on",
        )
        nested = await watched.until(lambda w: "nested-sandbox" in kinds(w))
    assert (nested.sandbox.verdict, kinds(nested)) == ("mismatch", ["nested-sandbox"])


async def test_a_denial_names_its_directory_and_the_one_remedy(codex: OpenLab) -> None:
    lab = codex({})
    board = lab.root / "board"
    board.mkdir()
    lab.model.script = {"work": [{"run": f"echo x > {board}/kanban.db"}, {"say": "could not hand it over"}]}
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "workspace-write")
        blocked = await watched.until(lambda w: w.state is State.BLOCKED_SANDBOX)
    (finding,) = blocked.sandbox.findings
    assert (finding.kind, finding.remedy) == (
        "denied-filesystem",
        f'sandbox_workspace_write.writable_roots = ["{board}"]',
    )


async def test_a_child_inherits_and_gets_what_its_parent_has(codex: OpenLab) -> None:
    held = {"run": 'echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; sleep 3'}
    lab = codex(
        {
            "parent": [held, {"spawn": ["child"]}, {"wait": True}, {"say": "done"}],
            "child": [held, {"say": "child done"}],
        }
    )
    async with watching(lab) as watched:
        lab.exec("[[parent]] go", *FULL)
        child = await watched.until(lambda w: w.depth == 1 and w.sandbox.got.sandboxed is not None)
        parent = await watched.until(lambda w: child.id in w.children)
    for worker in (parent, child):
        assert (worker.sandbox.verdict, worker.sandbox.findings, worker.sandbox.got.sandboxed) == (
            "match",
            (),
            False,
        )


async def test_a_violation_is_joined_to_its_call(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": "touch /usr/local/agentdash-denied"}, {"say": "all done"}]})
    async with watching(lab) as watched:
        (await lab.tui()).submit("[[work]] go")
        blocked = await watched.until(lambda w: w.state is State.BLOCKED_SANDBOX)
    assert kinds(blocked) == ["denied-filesystem"]
    assert "Read-only file system" in blocked.sandbox.findings[0].got
