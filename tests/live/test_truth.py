"""The live sources beside a real Codex: files, panes, processes and feed become the right workers, with what
was configured, applied and observed."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys

import pytest

from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.live import walks
from tests.live.codex import MENU, UNTIL_LET_GO
from tests.live.conftest import OpenLab
from tests.live.patience import command_seconds, until
from tests.live.watched import is_judged, thread_in, watching

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's marks are Linux's")

FULL = ("-s", "danger-full-access")
HELD = {
    "run": 'echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; echo "sandbox=${CODEX_SANDBOX:-}"; '
    + UNTIL_LET_GO
}
"""A command that prints its flags, and runs until it was observed."""


def is_observed(worker: Worker) -> bool:
    """Return whether a command of a thread was seen while it ran, and judged."""
    return worker.kind == "codex-thread" and worker.sandbox.got.seccomp is not None and is_judged(worker)


def kinds(worker: Worker) -> list[str]:
    return sorted(f.kind for f in worker.sandbox.findings)


async def test_two_tuis_of_one_daemon(codex: OpenLab) -> None:
    """Codex records the first client of its server as originator: that must not be agentdash."""
    lab = codex({"work": [HELD, {"say": "all done"}]})
    async with watching(lab) as seen:
        for name in ("first", "second"):
            pane = await lab.tui()
            fresh = await seen.until(lambda w, pane=pane: w.kind == "pane" and walks.is_in(w, pane))
            assert fresh.agent.name == "codex"
            pane.submit(f"[[work]] {name}")
            await seen.until(
                lambda w, pane=pane: (
                    w.kind == "codex-thread"
                    and walks.is_in(w, pane)
                    and "is running (pid" in w.assessment.why
                )
            )
            lab.let_go()
            found = await seen.until(
                lambda w, name=name: w.state is State.COMPLETED and w.name == f"[[work]] {name}"
            )
            assert walks.is_in(found, pane)
            (lab.workspace / "go").unlink()
    heads = [
        json.loads(path.read_bytes().partition(b"\n")[0])["payload"]
        for path in lab.home.glob("sessions/*/*/*/*.jsonl")
    ]
    assert {head["originator"] for head in heads} == {"codex-tui"}


async def test_approved_command_runs_on_the_host_and_keeps_its_flag(codex: OpenLab) -> None:
    run = {"run": f"touch allowed; env | grep CODEX_SANDBOX; {UNTIL_LET_GO}", "escalate": "May I?"}
    lab = codex({"ask": [run, {"say": "all done"}]})
    async with watching(lab) as seen:
        pane = await lab.tui()
        pane.submit("[[ask]] go")
        waiting = await seen.until(  # the status feed may be ahead of the rollout, which has the command
            lambda w: thread_in(State.WAITING_APPROVAL)(w) and "touch allowed" in w.assessment.why
        )
        document = await asyncio.to_thread(lab.document, "status")
        assert [w["state"] for w in document["workers"]] == ["waiting-approval"]
        await pane.answer(MENU, "y")
        running = await seen.until(lambda w: thread_in(State.RUNNING)(w) and bool(w.pids) and is_observed(w))
        assert running.id == waiting.id
        assert (kinds(running), running.sandbox.findings[0].direction) == (["escalated-flag-left"], "label")
        lab.let_go()
        done = await seen.until(thread_in(State.COMPLETED))
    got = done.sandbox.got
    assert (got.seccomp, got.network_namespace, got.network_flag) == (0, "host", "1")
    assert kinds(done) == ["escalated-flag-left"]
    assert (done.sandbox.applied or "").startswith(
        "no sandbox launcher above it; asked to leave the sandbox (ended)"
    )


async def test_child_is_below_its_parent_and_has_its_sandbox(codex: OpenLab) -> None:
    lab = codex(
        {
            "parent": [{"spawn": ["child"]}, {"wait": True}, {"say": "both done"}],
            "child": [HELD, {"say": "child done"}],
        }
    )
    async with watching(lab) as seen:
        (await lab.tui()).submit("[[parent]] go")
        child = await seen.until(lambda w: w.depth == 1 and bool(w.pids))
        parent = await seen.until(lambda w: child.id in w.children and w.pane is not None)
        assert child.parent == parent.id
        await seen.until(lambda w: w.id == child.id and is_observed(w))
        lab.let_go()
        await seen.until(
            lambda w: w.id == child.id and w.state is State.COMPLETED and w.sandbox.verdict == "match"
        )


@pytest.mark.parametrize(
    ("flags", "applied", "seccomp", "namespace", "network_flag"),
    [
        (("-s", "read-only"), "files read-only, network off", 2, "own", "1"),
        (("-s", "workspace-write"), "files workspace, network off", 2, "own", "1"),
        (
            ("-s", "workspace-write", "-c", "sandbox_workspace_write.network_access=true"),
            "files workspace, network on",
            2,
            "host",
            "unset",
        ),
        (FULL, None, 0, "host", "unset"),
    ],
    ids=["read-only", "workspace", "workspace-network", "full"],
)
async def test_policy_and_observation_match(
    codex: OpenLab,
    flags: tuple[str, ...],
    applied: str | None,
    seccomp: int,
    namespace: str,
    network_flag: str,
) -> None:
    lab = codex({"work": [HELD, {"say": "all done"}]})
    async with watching(lab) as seen:
        lab.exec("[[work]] go", *flags)
        running = (await seen.until(is_observed)).sandbox
        if applied is not None:
            assert running.applied_policy is not None
            assert running.configured is not None
            assert (running.applied or "").startswith(f"codex-linux-sandbox: {applied}")
            assert set(running.applied_policy.writable_roots) == set(running.configured.writable_roots)
        lab.let_go()
        done = await seen.until(thread_in(State.COMPLETED))
    got = done.sandbox.got
    assert (done.sandbox.verdict, kinds(done)) == ("match", [])
    assert (got.seccomp, got.network_namespace, got.network_flag, got.sandbox_flag) == (
        seccomp,
        namespace,
        network_flag,
        "unset",
    )


async def test_denial_from_codex_log_only(codex: OpenLab) -> None:
    # the output names no path, but has a word that Codex takes for a denial
    silent = {"run": "touch /usr/local/agentdash-denied 2>/dev/null || { echo seccomp; exit 3; }"}
    lab = codex({"work": [silent, {"say": "all done"}]})
    async with watching(lab) as seen:
        (await lab.tui()).submit("[[work]] go")
        await until(  # Codex's log may be ahead of the rollout, which has the call
            lambda: any(
                t.violations and any(call.denial for call in t.calls) for t in seen.fleet.threads.values()
            ),
            "a call with a row in Codex's log",
        )
        (thread,) = seen.fleet.threads.values()
        ((call,), (logged,)) = thread.calls, thread.violations
        assert (logged.thread, logged.call, logged.resource) == (*lab.threads(), call.id, "filesystem")
        assert call.denial is not None
        assert call.denial.source == "log"


async def test_codex_inside_a_sandbox(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": f"sleep {command_seconds(4)}"}, {"say": "all done"}]})
    inner = shlex.join([str(lab.binary), "exec", *FULL, "--skip-git-repo-check", "[[work]] go"])
    settings = (
        "sandbox_mode=workspace-write",
        "sandbox_workspace_write.network_access=true",
        f'sandbox_workspace_write.writable_roots=["{lab.home}"]',
    )
    options = [word for setting in settings for word in ("-c", setting)]
    async with watching(lab) as seen:
        lab.pane(shlex.join([str(lab.binary), "sandbox", *options, "--", "sh", "-c", f"{inner} </dev/null"]))
        nested = await seen.until(lambda w: "nested-sandbox" in kinds(w))
    assert (nested.sandbox.verdict, kinds(nested)) == ("mismatch", ["nested-sandbox"])
