"""The live sources beside a real Codex: files, panes, processes and feed become the right workers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.live import walks
from tests.live.codex import UNTIL_LET_GO, Lab
from tests.live.conftest import OpenLab
from tests.live.patience import until
from tests.live.watched import is_judged, thread_in, watching

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


async def test_tui_with_pane_command_and_flags(codex: OpenLab) -> None:
    lab = codex({"work": [HELD, {"say": "all done"}]})
    async with watching(lab) as seen:
        pane = await lab.tui()
        fresh = await seen.until(lambda w: w.kind == "pane" and w.agent.name == "codex")
        assert fresh.pane is not None
        pane.submit("[[work]] go")
        running = await seen.until(
            lambda w: (
                w.kind == "codex-thread"
                and bool(w.pids)
                and w.pane is not None
                and "is running (pid" in w.assessment.why
            )
        )
        assert running.pane is not None
        assert running.pane.key.id == pane.id
        await seen.until(is_observed)
        lab.let_go()
        done = await seen.until(thread_in(State.COMPLETED))
        assert (done.id, done.sandbox.verdict, done.sandbox.findings) == (running.id, "match", ())
        got = done.sandbox.got
        assert (got.network_flag, got.sandbox_flag, got.seccomp, got.network_namespace) == (
            "1",
            "unset",
            2,
            "own",
        )


async def test_two_tuis_of_one_daemon(codex: OpenLab) -> None:
    """Codex records the first client of its server as originator: that must not be agentdash."""
    lab = codex({"work": [{"say": "all done"}]})
    async with watching(lab) as seen:
        for name in ("first", "second"):
            pane = await lab.tui()
            pane.submit(f"[[work]] {name}")
            found = await seen.until(
                lambda w, name=name: (
                    w.state is State.COMPLETED and w.name == f"[[work]] {name}" and w.pane is not None
                )
            )
            assert found.pane is not None
            assert found.pane.key.id == pane.id
    heads = [
        json.loads(path.read_bytes().partition(b"\n")[0])["payload"]
        for path in lab.home.glob("sessions/*/*/*/*.jsonl")
    ]
    assert {head["originator"] for head in heads} == {"codex-tui"}


async def test_approval(codex: OpenLab) -> None:
    lab = codex(
        {
            "ask": [
                {"run": f"touch allowed; {UNTIL_LET_GO}", "escalate": "May I?"},
                {"say": "all done"},
            ]
        }
    )
    async with watching(lab) as seen:
        pane = await lab.tui()
        pane.submit("[[ask]] go")
        waiting = await seen.until(  # the status feed may be ahead of the rollout, which has the command
            lambda w: thread_in(State.WAITING_APPROVAL)(w) and "touch allowed" in w.assessment.why
        )
        document = json.loads(await asyncio.to_thread(status, lab))
        assert [w["state"] for w in document["workers"]] == ["waiting-approval"]
        await pane.answer(walks.MENU, "y")
        running = await seen.until(lambda w: thread_in(State.RUNNING)(w) and bool(w.pids))
        assert running.id == waiting.id
        await seen.until(is_observed)
        lab.let_go()
        done = await seen.until(thread_in(State.COMPLETED))
        # 0.169: an approved command runs on the host and still carries the policy's flag
        assert (
            done.sandbox.got.seccomp,
            done.sandbox.got.network_namespace,
            done.sandbox.got.network_flag,
        ) == (0, "host", "1")


def status(lab: Lab) -> str:
    command = [
        sys.executable,
        "-m",
        "agentdash",
        "status",
        "--json",
        "--codex-home",
        str(lab.home),
        "-S",
        str(lab.tmux),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


async def test_killed_exec_has_exited(codex: OpenLab) -> None:
    lab = codex({"work": [{"run": "sleep 60"}, {"say": "never"}]})
    async with watching(lab) as seen:
        pane = lab.exec("[[work]] go")
        running = await seen.until(lambda w: thread_in(State.RUNNING)(w) and bool(w.pids))
        await walks.kill(lab, pane)
        exited = await seen.until(lambda w: thread_in(State.EXITED)(w) and "`sleep 60`" in w.assessment.why)
        assert exited.id == running.id


async def test_children_are_below_their_parent(codex: OpenLab) -> None:
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
    ("flags", "seccomp", "namespace", "network_flag"),
    [
        (("-s", "read-only"), 2, "own", "1"),
        (("-s", "workspace-write"), 2, "own", "1"),
        (("-s", "workspace-write", "-c", "sandbox_workspace_write.network_access=true"), 2, "host", "unset"),
        (("-s", "danger-full-access"), 0, "host", "unset"),
    ],
    ids=["read-only", "workspace", "workspace-network", "full"],
)
async def test_policy_and_observation_match(
    codex: OpenLab, flags: tuple[str, ...], seccomp: int, namespace: str, network_flag: str
) -> None:
    lab = codex({"work": [HELD, {"say": "all done"}]})
    async with watching(lab) as seen:
        lab.exec("[[work]] go", *flags)
        await seen.until(is_observed)
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


async def test_leaked_flags_are_a_label_if_the_kernel_disagrees(
    codex: OpenLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = codex({"work": [HELD, {"say": "all done"}]})
    lab.run_tmux("start-server", ";", "set-option", "-g", "exit-empty", "off")
    for name, value in (("CODEX_SANDBOX", "seatbelt"), ("CODEX_SANDBOX_NETWORK_DISABLED", "1")):
        lab.run_tmux("set-environment", "-g", name, value)
    async with watching(lab) as seen:
        lab.exec("[[work]] go", "-s", "danger-full-access")
        await seen.until(lambda w: is_observed(w) and w.mismatch)
        lab.let_go()
        done = await seen.until(thread_in(State.COMPLETED))
    assert kinds(done) == ["foreign-sandbox-flag", "stale-network-flag"]
    assert {f.direction for f in done.sandbox.findings} == {"label"}


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
        assert (logged.thread, logged.call, logged.resource) == (
            *lab.threads(),
            call.id,
            "filesystem",
        )
        assert call.denial is not None
        assert call.denial.source == "log"
