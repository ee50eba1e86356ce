"""The live sources beside a real Codex: files, panes, processes and feed become the right workers, with what
was configured, applied and observed."""

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from agentdash.model.states import State
from tests.live.codex import MENU, UNTIL_LET_GO, VERSION
from tests.live.conftest import OpenLab
from tests.live.patience import command_seconds, until, wait_until
from tests.live.watched import in_pane, is_judged, is_observed, kinds, thread_in, watching

FULL = ("-s", "danger-full-access")
ONLINE = ("-c", "sandbox_workspace_write.network_access=true")
HELD = {
    "run": 'echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; echo "sandbox=${CODEX_SANDBOX:-}"; '
    + UNTIL_LET_GO
}
"""A command that prints its flags, and runs until it was observed."""


async def test_two_tuis_of_one_daemon(codex: OpenLab) -> None:
    """Codex records the first client of its server as originator: that must not be agentdash."""
    lab = codex({"work": [HELD, {"say": "all done"}]})
    async with watching(lab) as seen:
        for name in ("first", "second"):
            pane = await lab.tui()
            fresh = await seen.until(in_pane(pane), kind="pane")
            assert fresh.agent.name == "codex"
            pane.submit(f"[[work]] {name}")
            await seen.until(
                in_pane(pane), lambda w: "is running (pid" in w.assessment.why, kind="codex-thread"
            )
            lab.let_go()
            await seen.until(in_pane(pane, State.COMPLETED), name=f"[[work]] {name}")
            (lab.workspace / "go").unlink()
    heads = [json.loads(path.read_bytes().partition(b"\n")[0])["payload"] for path in lab.rollouts()]
    assert {head["originator"] for head in heads} == {"codex-tui"}


async def test_approved_command_runs_on_the_host_and_keeps_its_flag(codex: OpenLab) -> None:
    run = {"run": f"touch allowed; env | grep CODEX_SANDBOX; {UNTIL_LET_GO}", "escalate": "May I?"}
    lab = codex({"ask": [run, {"say": "all done"}]})
    async with watching(lab) as seen:
        pane = await lab.tui()
        pane.submit("[[ask]] go")
        # the status feed may be ahead of the rollout, which has the command
        waiting = await seen.until(
            thread_in(State.WAITING_APPROVAL), lambda w: "touch allowed" in w.assessment.why
        )
        document = await asyncio.to_thread(lab.document, "status")
        assert [w["state"] for w in document["workers"]] == ["waiting-approval"]
        await pane.answer(MENU, "y")
        running = await seen.until(thread_in(State.RUNNING), lambda w: bool(w.pids), is_observed, is_judged)
        assert running.id == waiting.id
        assert (kinds(running), running.sandbox.findings[0].direction) == ({"escalated-flag-left"}, "label")
        lab.let_go()
        done = await seen.until(thread_in(State.COMPLETED))
    got = done.sandbox.got
    assert (got.seccomp, got.network_namespace, got.network_flag) == (0, "host", "1")
    assert kinds(done) == {"escalated-flag-left"}
    assert (done.sandbox.applied or "").startswith(
        "no sandbox launcher above it; asked to leave the sandbox (ended)"
    )


@pytest.mark.parametrize(
    ("flags", "applied", "seccomp", "namespace", "network_flag"),
    [
        (("-s", "read-only"), "files read-only, network off", 2, "own", "1"),
        (("-s", "workspace-write"), "files workspace, network off", 2, "own", "1"),
        (("-s", "workspace-write", *ONLINE), "files workspace, network on", 2, "host", "unset"),
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
        running = (await seen.until(is_observed, is_judged, kind="codex-thread")).sandbox
        if applied is not None:
            assert running.applied_policy is not None
            assert running.configured is not None
            assert (running.applied or "").startswith(f"codex-linux-sandbox: {applied}")
            assert set(running.applied_policy.writable_roots) == set(running.configured.writable_roots)
        lab.let_go()
        done = await seen.until(thread_in(State.COMPLETED))
    got = done.sandbox.got
    assert (done.sandbox.verdict, kinds(done)) == ("match", set())
    assert (got.seccomp, got.network_namespace) == (seccomp, namespace)
    assert (got.network_flag, got.sandbox_flag) == (network_flag, "unset")


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
    roots = ("-c", f'sandbox_workspace_write.writable_roots=["{lab.home}"]')
    options = ("-c", "sandbox_mode=workspace-write", *ONLINE, *roots)
    async with watching(lab) as seen:
        lab.pane(shlex.join([str(lab.binary), "sandbox", *options, "--", "sh", "-c", f"{inner} </dev/null"]))
        nested = await seen.until(lambda w: "nested-sandbox" in kinds(w))
    assert (nested.sandbox.verdict, kinds(nested)) == ("mismatch", {"nested-sandbox"})


FORGE = "CODEX_SANDBOX=seatbelt CODEX_THREAD_ID={} sh -c '{}'"


@pytest.mark.parametrize(("how", "version"), [("exec", "0.169.0"), ("exec", VERSION), ("tui", VERSION)])
async def test_a_worker_names_the_thread_of_another(how: str, version: str, codex: OpenLab) -> None:
    """Both run in one home: where these are TUIs, a daemon is the parent of the commands of both."""
    script = {"victim": [{"run": UNTIL_LET_GO}, {"say": "all done"}]}
    lab = codex(script, version=version)
    async with watching(lab) as watched:
        if how == "tui":
            (await lab.tui()).submit("[[victim]] go")
        else:
            lab.exec("[[victim]] go")
        found = await watched.until(is_observed, is_judged, lambda w: bool(w.pids), kind="codex-thread")
        assert (found.sandbox.verdict, found.sandbox.findings) == ("match", ())
        forged = FORGE.format(found.id, UNTIL_LET_GO)
        lab.model.script = {**script, "forger": [{"run": forged}, {"say": "all done"}]}
        if how == "tui":
            (await lab.tui()).submit("[[forger]] go")
        else:
            lab.exec("[[forger]] go", "-s", "danger-full-access")
        named = await watched.until(lambda w: any("not counted" in t.by for t in w.links), id=found.id)
        assert (named.sandbox.verdict, named.sandbox.findings) == ("match", ())
        lab.let_go()


async def test_a_side_chat_asks_beside_its_conversation(codex: OpenLab) -> None:
    script = {
        "main": [{"say": "main done"}],
        "side": [{"run": "touch $HOME/side.txt", "escalate": "must write outside"}, {"say": "side done"}],
    }
    lab = codex(script, version="0.171.0")
    async with watching(lab) as watched:
        pane = await lab.tui("-s", "workspace-write", "-a", "on-request", size=(140, 40))
        pane.submit("[[main]] the conversation")
        await watched.until(lambda w: w.state is State.COMPLETED and w.pane is not None)
        pane.keys("C-x")
        await pane.shows("Open in sidebar")
        pane.keys("s")
        await pane.shows("New side chat")
        pane.keys("Enter")
        await pane.shows("Ask a follow-up question")
        pane.submit("[[side]] the side chat")
        asking = await watched.until(state=State.WAITING_APPROVAL, part="side chat, in front")
        assert asking.name == "[[side]] the side chat"
        found = await watched.until(part="main conversation, not in front")
        assert (found.state, found.pane) == (State.COMPLETED, asking.pane)
        both = {asking.id, found.id}
        await watched.until_snapshot(lambda each: {worker.id for worker in each.workers} == both)
        await pane.answer("Would you like to run", "y")
        await watched.until(id=asking.id, state=State.COMPLETED)


def test_reach_of_a_sandboxed_and_of_a_free_worker(codex: OpenLab) -> None:
    """A sandboxed command reaches less than one without a sandbox, and the other's directory is a target."""
    step = {"run": "sleep 1000", "yield_ms": 500}
    script = {name: [step, {"hold": "end"}, {"say": "done"}] for name in ("boxed", "free")}
    lab = codex(script)
    other = lab.root / "other"
    other.mkdir()
    lab.exec("[[boxed]] go")
    lab.exec("[[free]] go", "-s", "danger-full-access", "-C", str(other))

    def reaches() -> dict[str, dict[str, Any]]:
        workers = lab.document("reach")["workers"]
        return {each["name"].split("]]")[0].strip("["): each for each in workers if each["agent"] == "codex"}

    found: dict[str, dict[str, Any]] = {}
    wait_until(
        lambda: (
            found.update(reaches()) or all(found.get(name, {}).get("by") == "processes" for name in script)
        ),
        "a command of both workers",
    )
    reached = {
        name: {
            (each["kind"], each["action"], each["path"]): each["certainty"] for each in found[name]["reached"]
        }
        for name in script
    }
    tmux = ("escape", "connect", str(lab.tmux))
    assert reached["free"][tmux] == "can"
    assert reached["boxed"][tmux] == "may"
    assert "a seccomp filter" in found["boxed"]["limits"]
    assert reached["free"]["network", "connect", "network"] == "can"
    assert ("network", "connect", "network") not in reached["boxed"]
    assert reached["free"]["worker", "write", str(lab.workspace)] == "can"
    assert ("worker", "write", str(other)) not in reached["boxed"]
    bashrc = ("takeover", "write", str(Path.home() / ".bashrc"))
    assert bashrc in reached["free"]
    assert bashrc not in reached["boxed"]
    lab.model.release("end")
