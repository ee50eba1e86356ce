"""Evidence and answers that outlive processes and panes, for one-shot commands with a real Codex."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.live import claude
from tests.live.conftest import OpenLab
from tests.live.patience import command_seconds, scaled, until
from tests.live.supervisor import Supervisor, recipe, rollouts
from tests.live.tmux import ScriptedLab

ROOT = Path(__file__).parents[2]
FULL = ("-s", "danger-full-access")
LEAKED = ("-c", 'shell_environment_policy.set={CODEX_SANDBOX_NETWORK_DISABLED="1"}')
ENDED = "completed,blocked-sandbox,failed-permission,failed-provider,exited"


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("TMUX", "TMUX_PANE"):
        monkeypatch.delenv(name, raising=False)


def command(lab: ScriptedLab, *arguments: str) -> list[str]:
    return [
        *(sys.executable, "-m", "agentdash", *arguments),
        *("--codex-home", str(lab.home), "-S", str(lab.tmux)),
    ]


def agentdash(lab: ScriptedLab, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(lab, *arguments), capture_output=True, text=True, check=False, cwd=ROOT)


def worker(lab: ScriptedLab, target: str) -> dict[str, Any]:
    """Return the only worker of `agentdash status TARGET --json`."""
    done = agentdash(lab, "status", target, "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["workers"]
    return found


def check(lab: ScriptedLab, thread: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code of `agentdash check THREAD --json`, and the thread's report."""
    run = [sys.executable, "-m", "agentdash", "check", "--json", "--codex-home", str(lab.home), thread]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=ROOT)
    (report,) = json.loads(done.stdout)["threads"]
    return done.returncode, report


def kinds(worker: dict[str, Any]) -> set[str]:
    return {finding["kind"] for finding in worker["sandbox"]["findings"]}


def wait(lab: ScriptedLab, target: str, until: str = ENDED) -> subprocess.CompletedProcess[str]:
    return agentdash(lab, "wait", target, "--until", until, "--timeout", f"{scaled(60):.0f}", "--json")


def begin_to_wait(lab: ScriptedLab, target: str, until: str) -> subprocess.Popen[str]:
    arguments = command(lab, "wait", target, "--until", until, "--timeout", f"{scaled(60):.0f}", "--json")
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def begin_to_watch(lab: ScriptedLab, lines: Path) -> subprocess.Popen[bytes]:
    """Start `agentdash status --watch` with a file for its lines: a pipe that nobody reads would stop it."""
    with lines.open("wb") as output:
        return subprocess.Popen(command(lab, "status", "--watch"), stdout=output, cwd=ROOT)


def outcome(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    document = json.loads(done.stdout)
    return done.returncode, document["worker"]["state"]


def worker_or_none(lab: ScriptedLab, target: str) -> dict[str, Any] | None:
    done = agentdash(lab, "status", target, "--json")
    return json.loads(done.stdout)["workers"][0] if done.returncode == 0 else None


WORKING = [{"hold": "never", "say": "never"}]


async def test_worker_of_another_cli_whose_pane_closes_has_exited() -> None:
    with closing(claude.ClaudeLab(claude.install(), {"work": WORKING})) as lab:
        lab.open_pane("sleep 600", (120, 40))
        pane = await lab.tui()
        pane.submit("[[work]] work")
        lab.run_tmux("set-option", "-g", "remain-on-exit", "off")
        watching = begin_to_wait(lab, pane.id, "exited")
        await until(lambda: (worker_or_none(lab, pane.id) or {}).get("state") == "running")
        lab.run_tmux("kill-pane", "-t", pane.id)
        output, _ = watching.communicate(timeout=scaled(90))
        assert (watching.returncode, json.loads(output)["worker"]["state"]) == (0, "exited")
        found = worker(lab, pane.id)
        assert (found["agent"]["name"], found["state"]) == ("claude", "exited")
        assert outcome(wait(lab, pane.id, "exited")) == (0, "exited")
        assert "exited" in agentdash(lab, "explain", pane.id).stdout
        listed = json.loads(agentdash(lab, "status", "--json").stdout)["workers"]
        assert [each["id"] for each in listed if each["kind"] == "pane"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="the environment of processes is Linux's")
async def test_leaked_family_is_still_a_mismatch_after_its_end(codex: OpenLab, tmp_path: Path) -> None:
    """Finding B5: after the end a one-shot command says the same of each as the watch did."""
    script = {
        "parent": [{"spawn": ["child", "child"]}, {"wait": True}, *WORKED],
        "child": WORKED,
    }
    lab = codex(script)
    lab.exec("[[parent]] go", *FULL, *LEAKED)
    lines = tmp_path / "lines.jsonl"
    watch = begin_to_watch(lab, lines)
    try:
        await until(lambda: rollouts(lab).count('"task_complete"') == 3, "the end of the family")
        await until(
            lambda: all(last_line(lines, thread) == ("completed", "mismatch") for thread in lab.threads()),
            "the end of each, with its verdict, in the watch",
        )
    finally:
        watch.terminate()
        watch.wait(timeout=scaled(60))
    listed = json.loads(agentdash(lab, "status", "--json").stdout)["workers"]
    verdicts = {each["id"]: each["sandbox"]["verdict"] for each in listed}
    assert verdicts == dict.fromkeys(lab.threads(), "mismatch")
    assert {each["state"] for each in listed} == {"completed"}
    assert all("stale-network-flag" in kinds(each) for each in listed)
    for each in listed:
        done, audited = check(lab, each["id"])
        assert (done, audited["verdict"]) == (1, "mismatch")
        assert audited["findings"] == each["sandbox"]["findings"]


WORKED = [{"run": f"sleep {command_seconds(3)}"}, {"say": "all done"}]


def last_line(lines: Path, thread: str) -> tuple[str, str] | None:
    """Return the last state of a thread, and the verdict on it, in the lines of a watch."""
    found = None
    for line in lines.read_text("utf-8").split("\n")[:-1]:  # the last one may not be whole
        shown = json.loads(line).get("worker") or {}
        if shown.get("id") == thread:
            found = shown["state"], shown["sandbox"]["verdict"]
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's marks are Linux's")
async def test_tmux_escape_is_kept_after_its_pane_has_ended(codex: OpenLab) -> None:
    lab = codex({})
    call = f"tmux -S {lab.tmux} new-window -d 'sleep {command_seconds(4)}'"
    lab.model.script = {"work": [{"run": f"{call}; sleep {command_seconds(2)}"}, {"say": "all done"}]}
    online = ("-s", "workspace-write", "-c", "sandbox_workspace_write.network_access=true")
    stays = lab.pane("sleep 600")
    pane = lab.exec("[[work]] go", *online)
    lab.run_tmux("set-option", "-g", "remain-on-exit", "off")
    assert outcome(wait(lab, pane.id)) == (0, "completed")
    await until(lambda: lab.run_tmux("list-panes", "-a", "-F", "#{pane_id}").split() == [stays.id])
    (thread,) = lab.threads()
    for _ in range(2):
        found = worker(lab, thread)
        assert (found["sandbox"]["verdict"], kinds(found)) == ("mismatch", {"tmux-escape"})


async def test_pane_that_was_never_watched_is_linked_by_its_session_line(codex: OpenLab) -> None:
    lab = codex({"work": [{"say": "all done"}]})
    lab.pane("sleep 600")
    run = f"{lab.binary} exec -s workspace-write --skip-git-repo-check '[[work]] go' </dev/null"
    pane = lab.pane(f"{run}; seq 200; exec sleep 600")
    await pane.shows("200")  # other lines than the session's
    (thread,) = lab.threads()
    said = " ".join(agentdash(lab, "explain", pane.id).stdout.split())
    assert f"claimed, not proven: its scrollback shows `session id: {thread}`" in said
    assert outcome(wait(lab, pane.id)) == (0, "completed")
    assert worker(lab, pane.id)["id"] == thread


async def test_same_pane_id_on_two_servers(codex: OpenLab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab, other = codex({"a": [{"say": "done a"}]}), codex({"b": [{"say": "done b"}]})
    panes = [lab.exec("[[a]] go"), other.exec("[[b]] go")]
    assert {pane.id for pane in panes} == {"%0"}
    both = ("-S", str(other.tmux))
    for each in (lab, other):
        assert outcome(wait(each, f"{each.tmux}:%0")) == (0, "completed")
    await until(lambda: other.threads() != {})
    ambiguous = agentdash(lab, "status", "%0", *both)
    assert (ambiguous.returncode, ambiguous.stdout) == (2, "")
    assert f"{lab.tmux}:%0" in ambiguous.stderr
    assert ambiguous.stderr.count("\n") == 1
    monkeypatch.setenv("TMUX", f"{lab.tmux},1,0")
    own = agentdash(lab, "status", "%0", "--json", *both)
    assert [each["id"] for each in json.loads(own.stdout)["workers"]] == [*lab.threads()]


# ---------------------------------------------------------------- the recipe of the README


@pytest.fixture
def supervisor(codex: OpenLab, tmp_path: Path) -> Supervisor:
    return Supervisor(codex, tmp_path)


TASKS = {"good": "completed", "denied": "blocked-sandbox", "failing": "failed-provider"}


@pytest.mark.parametrize("has_ended", [True, False], ids=["ended before", "waited for"])
async def test_recipe(supervisor: Supervisor, has_ended: bool) -> None:
    """The workers of a supervisor have ended before it asks, or are waited for."""
    panes = {task: supervisor.start(task) for task in TASKS}
    if has_ended:
        await until(lambda: rollouts(supervisor.lab).count('"task_complete"') == len(TASKS))
    for task, pane in panes.items():
        waited = supervisor.run(recipe()["agentdash wait"].replace("%4", pane))
        assert (waited.returncode, waited.stdout.split()[:1]) == (0, [TASKS[task]]), waited.stderr
    for killed in (False, True):
        for task, pane in panes.items():
            if killed:
                assert supervisor.run(recipe()["tmux kill-pane"].replace("%4", pane)).returncode == 0
            asked = supervisor.run(recipe()["agentdash status"].replace("%4", pane))
            assert [each["state"] for each in json.loads(asked.stdout)["workers"]] == [TASKS[task]]
