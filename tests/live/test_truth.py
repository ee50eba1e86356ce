"""Configured, applied and observed sandboxes of a real Codex, and each way in which they differ."""

from __future__ import annotations

import shlex
import sys

import pytest

from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.live.codex import UNTIL_LET_GO, install
from tests.live.conftest import OpenLab
from tests.live.patience import command_seconds, scaled
from tests.live.watched import Watched, is_judged, thread_in, watching

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's marks are Linux's")

ONLINE = ("-s", "workspace-write", "-c", "sandbox_workspace_write.network_access=true")
FULL = ("-s", "danger-full-access")


def kinds(worker: Worker) -> list[str]:
    return sorted(f.kind for f in worker.sandbox.findings)


async def observed_thread(watched: Watched) -> Worker:
    """Wait for a judged thread with a kernel observation of a command, and return it."""
    return await watched.until(
        lambda w: w.kind == "codex-thread" and w.sandbox.got.sandboxed is not None and is_judged(w)
    )


async def test_applied_policy_equals_configured_policy(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": f"sleep {command_seconds(3)}"}, {"say": "all done"}]})
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "workspace-write")
        found = (await observed_thread(watched)).sandbox
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


async def test_approved_escalation_runs_on_the_host_and_keeps_its_flag(codex: OpenLab) -> None:
    lab = codex(
        {
            "ask": [
                {"run": f"env | grep CODEX_SANDBOX; {UNTIL_LET_GO}", "escalate": "May I?"},
                {"say": "all done"},
            ]
        }
    )
    async with watching(lab) as watched:
        pane = await lab.tui()
        pane.submit("[[ask]] go")
        await pane.answer("Would you like to run the following command?", "y")
        worker = await observed_thread(watched)
        assert (kinds(worker), worker.sandbox.findings[0].direction) == (["escalated-flag-left"], "label")
        lab.let_go()
        done = await watched.until(thread_in(State.COMPLETED))
    assert kinds(done) == ["escalated-flag-left"]
    assert done.sandbox.applied is not None
    assert done.sandbox.applied.startswith(
        "no sandbox launcher above it; asked to run outside of the sandbox: ended"
    )


async def test_command_that_outlives_its_turn(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": f"sleep {scaled(20):.0f}", "yield_ms": 300}, {"say": "it goes on"}]})
    async with watching(lab) as watched:
        (await lab.tui()).submit("[[work]] go")
        done = await watched.until(
            lambda w: (
                w.state is State.COMPLETED
                and bool(w.pids)
                and w.sandbox.got.sandboxed is not None
                and is_judged(w)
            )
        )
    assert (done.sandbox.verdict, done.sandbox.findings) == ("match", ())
    assert "goes on in the background" in done.assessment.why


async def test_short_command_is_observed_by_its_output(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": "env; sleep 0.2"}, {"say": "all done"}]})
    async with watching(lab) as watched:
        lab.exec("[[work]] go", *FULL, "-c", 'shell_environment_policy.set={CODEX_SANDBOX="seatbelt"}')
        done = await watched.until(thread_in(State.COMPLETED))
    assert kinds(done) == ["foreign-sandbox-flag"]


async def test_pane_opened_outside_by_a_sandboxed_command(codex: OpenLab) -> None:
    lab = codex({})
    lab.model.script = {
        "work": [
            {"run": f"tmux -S {lab.tmux} new-window -d 'sleep {scaled(30):.0f}'; sleep {command_seconds(2)}"},
            {"say": "all done"},
        ]
    }
    async with watching(lab) as watched:
        lab.exec("[[work]] go", *ONLINE)
        escaped = await watched.until(lambda w: "tmux-escape" in kinds(w))
    (finding,) = escaped.sandbox.findings
    assert (finding.direction, finding.severity, escaped.sandbox.verdict) == ("wider", "danger", "mismatch")
    assert "in no sandbox" in finding.got


async def test_codex_inside_a_sandbox(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": f"sleep {command_seconds(4)}"}, {"say": "all done"}]})
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


def is_looked_at(worker: Worker) -> bool:
    """Return whether the disk was looked at since the denial."""
    remedies = [finding.remedy for finding in worker.sandbox.findings if finding.remedy]
    return bool(remedies) and "if that directory exists" not in (remedies[0].where or "")


async def test_denial_has_directory_and_remedy(codex: OpenLab) -> None:
    lab = codex({})
    board = lab.root / "board"
    board.mkdir()
    lab.model.script = {"work": [{"run": f"echo x > {board}/kanban.db"}, {"say": "could not hand it over"}]}
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "workspace-write")
        blocked = await watched.until(lambda w: thread_in(State.BLOCKED_SANDBOX)(w) and is_looked_at(w))
    (finding,) = blocked.sandbox.findings
    assert finding.kind == "denied-filesystem"
    assert finding.remedy is not None
    assert finding.remedy.text == f'[sandbox_workspace_write]\nwritable_roots = ["{board}"]'
    (entry,) = blocked.sandbox.denials
    assert entry.remedy == finding.remedy


async def test_child_has_the_sandbox_of_its_parent(codex: OpenLab) -> None:
    held = {"run": 'echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; sleep ' + f"{command_seconds(3)}"}
    lab = codex(
        {
            "parent": [held, {"spawn": ["child"]}, {"wait": True}, {"say": "done"}],
            "child": [held, {"say": "child done"}],
        }
    )
    async with watching(lab) as watched:
        lab.exec("[[parent]] go", *FULL)
        child = await watched.until(
            lambda w: w.depth == 1 and w.sandbox.got.sandboxed is not None and is_judged(w)
        )
        parent = await watched.until(
            lambda w: child.id in w.children and w.sandbox.got.sandboxed is not None and is_judged(w)
        )
    for worker in (parent, child):
        assert (worker.sandbox.verdict, worker.sandbox.findings, worker.sandbox.got.sandboxed) == (
            "match",
            (),
            False,
        )


async def test_violation_is_joined_to_its_call(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": "touch /usr/local/agentdash-denied"}, {"say": "all done"}]})
    async with watching(lab) as watched:
        (await lab.tui()).submit("[[work]] go")
        blocked = await watched.until(thread_in(State.BLOCKED_SANDBOX))
    assert kinds(blocked) == ["denied-filesystem"]
    assert "Read-only file system" in blocked.sandbox.findings[0].got
