"""Evidence and answers that outlive processes and panes, for one-shot commands with a real Codex."""

import json
import os
import shlex
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from agentdash.model.states import State
from tests.live import claude
from tests.live.codex import Lab
from tests.live.conftest import OpenLab
from tests.live.model_server import Script
from tests.live.patience import command_seconds, scaled, until
from tests.live.tmux import ScriptedLab

FULL = ("-s", "danger-full-access")
LEAKED = ("-c", 'shell_environment_policy.set={CODEX_SANDBOX_NETWORK_DISABLED="1"}')
ENDED = "completed,blocked-sandbox,failed-permission,failed-provider,interrupted,exited"


def workers(lab: ScriptedLab, *targets: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lab.document("status", *targets)["workers"]
    return found


def kinds(worker: dict[str, Any]) -> set[str]:
    return {finding["kind"] for finding in worker["sandbox"]["findings"]}


def begin_to_wait(lab: ScriptedLab, target: str, until: str = ENDED) -> subprocess.Popen[str]:
    limit = f"{scaled(60):.0f}"
    options = ("--until", until, "--timeout", limit, "--json")
    return lab.begin("wait", target, *options, stdout=subprocess.PIPE)


def outcome(waiting: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit code, and the state in the document."""
    output, _ = waiting.communicate(timeout=scaled(120))
    return waiting.returncode, json.loads(output)["worker"]["state"]


async def test_worker_of_another_cli_whose_pane_closes_has_exited() -> None:
    with claude.ClaudeLab(claude.install(), {"work": [{"hold": "never", "say": "never"}]}) as lab:
        lab.open_pane("sleep 600")
        pane = await lab.tui()
        pane.submit("[[work]] work")
        lab.run_tmux("set-option", "-g", "remain-on-exit", "off")
        waiting = begin_to_wait(lab, pane.id, "exited")

        def is_running() -> bool:
            done = lab.agentdash("status", pane.id, "--json")
            return done.returncode == 0 and json.loads(done.stdout)["workers"][0]["state"] == "running"

        await until(is_running)
        lab.run_tmux("kill-pane", "-t", pane.id)
        assert outcome(waiting) == (0, "exited")
        (found,) = workers(lab, pane.id)
        assert (found["agent"]["name"], found["state"]) == ("claude", "exited")
        assert outcome(begin_to_wait(lab, pane.id, "exited")) == (0, "exited")
        assert "exited" in lab.agentdash("explain", pane.id).stdout
        assert [each["id"] for each in workers(lab) if each["kind"] == "pane"] == []


async def test_leaked_family_is_still_a_mismatch_after_its_end(codex: OpenLab, tmp_path: Path) -> None:
    """After the end a one-shot command says the same of each as the watch did."""
    worked = [{"run": f"sleep {command_seconds(3)}"}, {"say": "all done"}]
    lab = codex({"parent": [{"spawn": ["child", "child"]}, {"wait": True}, *worked], "child": worked})
    lab.exec("[[parent]] go", *FULL, *LEAKED)
    lines = tmp_path / "lines.jsonl"

    def last(thread: str) -> tuple[str, str] | None:
        """Return the last state of a thread, and the verdict on it, in the lines of the watch."""
        whole = lines.read_text("utf-8").split("\n")[:-1]
        shown = [json.loads(line).get("worker") or {} for line in whole]
        states = [(each["state"], each["sandbox"]["verdict"]) for each in shown if each.get("id") == thread]
        return states[-1] if states else None

    with lines.open("wb") as output:  # a pipe that nobody reads would stop it
        watch = lab.begin("status", "--watch", stdout=output)
    try:
        await until(lambda: lab.count_ended() == 3, "the end of the family")
        await until(
            lambda: all(last(thread) == ("completed", "mismatch") for thread in lab.threads()),
            "the end of each, with its verdict, in the watch",
        )
    finally:
        watch.terminate()
        watch.wait(timeout=scaled(60))
    listed = workers(lab)
    verdicts = {each["id"]: each["sandbox"]["verdict"] for each in listed}
    assert verdicts == dict.fromkeys(lab.threads(), "mismatch")
    assert {each["state"] for each in listed} == {"completed"}
    assert all("stale-network-flag" in kinds(each) for each in listed)
    for each in listed:
        done = lab.agentdash("check", "--json", each["id"])
        (audited,) = json.loads(done.stdout)["threads"]
        assert (done.returncode, audited["verdict"]) == (1, "mismatch")
        assert audited["findings"] == each["sandbox"]["findings"]


async def test_tmux_escape_is_kept_after_its_pane_has_ended(codex: OpenLab) -> None:
    lab = codex({})
    call = f"tmux -S {lab.tmux} new-window -d 'sleep {command_seconds(4)}'"
    lab.model.script = {"work": [{"run": f"{call}; sleep {command_seconds(2)}"}, {"say": "all done"}]}
    online = ("-s", "workspace-write", "-c", "sandbox_workspace_write.network_access=true")
    stays = lab.pane("sleep 600")
    pane = lab.exec("[[work]] go", *online)
    lab.run_tmux("set-option", "-g", "remain-on-exit", "off")
    assert outcome(begin_to_wait(lab, pane.id)) == (0, "completed")
    await until(lambda: lab.panes() == [stays.id])
    for _ in range(2):
        (found,) = workers(lab, *lab.threads())
        assert (found["sandbox"]["verdict"], kinds(found)) == ("mismatch", {"tmux-escape"})


async def test_pane_that_was_never_watched_is_linked_by_its_session_line(codex: OpenLab) -> None:
    lab = codex({"work": [{"say": "all done"}]})
    lab.pane("sleep 600")
    run = f"{lab.binary} exec -s workspace-write --skip-git-repo-check '[[work]] go' </dev/null"
    pane = lab.pane(f"{run}; seq 200; exec sleep 600")
    await pane.shows("200")  # other lines than the session's
    (thread,) = lab.threads()
    said = " ".join(lab.agentdash("explain", pane.id).stdout.split())
    assert f"claimed, not proven: its scrollback shows `session id: {thread}`" in said
    assert outcome(begin_to_wait(lab, pane.id)) == (0, "completed")
    assert [each["id"] for each in workers(lab, pane.id)] == [thread]


# ---------------------------------------------------------------- panes that close with their workers

HELD = {"hold": "the end"}
"""The model answers nobody before `wait` has begun."""
SHORT: Script = {
    "good": [HELD, {"say": "all done"}],
    "denied": [HELD, {"run": "touch /etc/agentdash-denied"}, {"say": "I could not."}],
    "failing": [HELD, *[{"fail": 401}] * 20],
    "stopped": [HELD, {"hold": "never"}],
    "killed": [HELD, {"hold": "never"}],
}
STATES = {
    "good": State.COMPLETED,
    "denied": State.BLOCKED_SANDBOX,
    "failing": State.FAILED_PROVIDER,
    "stopped": State.INTERRUPTED,
    "killed": State.EXITED,
}


def end(lab: Lab, pane: str, number: signal.Signals) -> None:
    """Send a signal to the Codex in a pane, or kill it with all that it started."""
    root = psutil.Process(int(lab.run_tmux("display-message", "-p", "-t", pane, "#{pane_pid}")))
    family = [root, *root.children(recursive=True)]
    for process in family if number == signal.SIGKILL else family[-1:]:
        with suppress(ProcessLookupError):  # what a command has started ends with it
            os.kill(process.pid, number)


async def test_answers_about_short_lives_are_right(codex: OpenLab) -> None:
    """`wait` has only just begun when the workers end, and their panes with them."""
    lab = codex(SHORT)
    lab.pane("sleep 600")
    lab.run_tmux("set-option", "-g", "remain-on-exit", "off")
    codex_exec = [str(lab.binary), "exec", "-s", "workspace-write", "--skip-git-repo-check"]
    where = ("-d", "-P", "-F", "#{pane_id}", "-c", str(lab.workspace))
    panes: dict[str, str] = {}
    for kind in STATES:
        command = f"{shlex.join([*codex_exec, f'[[{kind}]] go'])} </dev/null"
        panes[kind] = lab.run_tmux("new-window", *where, command).strip()
        await until(lambda kind=kind: any(f"[[{kind}]]" in json.dumps(r) for r in lab.model.requests))
    waiting = {kind: begin_to_wait(lab, pane) for kind, pane in panes.items()}

    def has_looked(process: subprocess.Popen[str]) -> bool:
        """Return whether the first look, which precedes all imports, has been taken."""
        return "msgspec" in Path(f"/proc/{process.pid}/maps").read_text("utf-8")

    await until(lambda: all(map(has_looked, waiting.values())))
    end(lab, panes["stopped"], signal.SIGINT)
    end(lab, panes["killed"], signal.SIGKILL)
    lab.model.release("the end")
    answers = {kind: outcome(process) for kind, process in waiting.items()}
    assert answers == {kind: (0, state) for kind, state in STATES.items()}
