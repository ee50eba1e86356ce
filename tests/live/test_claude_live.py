"""A real Claude Code in every case of its sandbox: what agentdash finds while it runs, and afterwards."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from agentdash.model.findings import FindingKind
from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.live.claude import VERSION, VERSIONS, ClaudeLab, install
from tests.live.conftest import Keep
from tests.live.model_server import Script
from tests.live.patience import command_seconds
from tests.live.watched import in_pane, is_observed, watching

# ---------------------------------------------------------------- cases with known truth

_SECONDS: Final = command_seconds(4)
_LOOK: Final = "grep -E 'Seccomp:|NoNewPrivs' /proc/self/status"
_WRITE: Final = {"run": f"touch $HOME/wrote && echo wrote; {_LOOK}; sleep {_SECONDS}"}
"""Writes into the home directory, which no sandbox lets be written, and prints what the kernel has of it."""
_ONCE: Final[Script] = {"go": [_WRITE, {"say": "done"}]}
ON: Final = {"sandbox": {"enabled": True}, "permissions": {"allow": ["Bash"]}}
_ROLE: Final = "---\nname: free\ndescription: may do all\npermissionMode: bypassPermissions\n---\nDo it.\n"
_CHILD: Final = {"description": "a child", "prompt": "[[child]] do your part", "subagent_type": "free"}


class Case(NamedTuple):
    """One case: what is set, and what the model does."""

    script: Script
    settings: Mapping[str, Any] = {}
    without: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    role: str | None = None


CASES: Final = {
    "off": Case(_ONCE, {"permissions": {"allow": ["Bash"]}}),
    "on": Case(_ONCE, ON),
    "on-without-bwrap": Case(_ONCE, ON, without=("bwrap",)),
    "on-cannot-start": Case({"go": [_WRITE, _WRITE, {"say": "done"}]}, ON, broken=("socat",)),
    "off-for-command": Case(
        {"go": [{**_WRITE, "unsandboxed": True}, {"say": "done"}]},
        ON,
        arguments=("--permission-mode", "bypassPermissions"),
    ),
    "excluded-command": Case(
        {"go": [{"run": f"touch $HOME/wrote && sleep {_SECONDS}"}, {"say": "done"}]},
        {**ON, "sandbox": {"enabled": True, "excludedCommands": ["touch:*", "sleep:*"]}},
    ),
    "child-mode": Case(
        {
            "go": [{"tool": "Agent", "args": _CHILD}, {"say": "done"}],
            "child": [_WRITE, {"say": "child done"}],
        },
        role=_ROLE,
    ),
}


def has_written(lab: ClaudeLab) -> bool:
    """Return whether a command of the case has written into the home directory."""
    return (lab.user / "wrote").exists()


# ---------------------------------------------------------------- what is found of them

OpenLab = Callable[..., ClaudeLab]
SILENT, COMMAND = FindingKind.SANDBOX_SILENTLY_OFF, FindingKind.SANDBOX_OFF_FOR_COMMAND


@pytest.fixture
def claude(keep: Keep[ClaudeLab]) -> OpenLab:
    """Return a function that opens a lab."""

    def open_lab(case: Case, version: str = VERSION) -> ClaudeLab:
        missing = {"without": case.without, "broken": case.broken}
        lab = keep(ClaudeLab(install(version), case.script, case.settings, **missing))
        if case.role is not None:
            (lab.claude_home / "agents").mkdir()
            (lab.claude_home / "agents" / "free.md").write_text(case.role, "utf-8")
        return lab

    return open_lab


def is_session(worker: Worker) -> bool:
    return worker.kind == "claude-session" and worker.parent is None


def kinds_of(worker: Worker) -> set[FindingKind]:
    return {finding.kind for finding in worker.sandbox.findings if finding.severity != "info"}


def afterwards(lab: ClaudeLab) -> list[dict[str, Any]]:
    """Return the sessions of a new agentdash, for which only files are left."""
    workers = lab.document("status", CLAUDE_CONFIG_DIR=str(lab.claude_home))["workers"]
    return [worker for worker in workers if worker["kind"] == "claude-session"]


@pytest.mark.parametrize(
    ("name", "verdict", "kinds"),
    [
        ("off", "match", set()),
        ("on", "match", set()),
        ("on-without-bwrap", "mismatch", {SILENT}),
        ("on-cannot-start", "mismatch", {SILENT}),
        ("off-for-command", "mismatch", {COMMAND}),
        ("excluded-command", "mismatch", {COMMAND}),
    ],
)
async def test_sandbox_of_a_running_command(
    claude: OpenLab, name: str, verdict: str, kinds: set[FindingKind]
) -> None:
    lab = claude(CASES[name])
    async with watching(lab) as watched:
        running = lab.start("[[go]] go", *CASES[name].arguments)
        worker = await watched.until(
            is_session,
            is_observed,
            lambda w: w.sandbox.requested is not None and kinds_of(w) == kinds,
            verdict=verdict,
        )
        assert worker.sandbox.got.sandboxed is (name == "on")
        await asyncio.to_thread(running.communicate)
        if name == "on-cannot-start":
            assert has_written(lab)  # the second command
    (session,) = afterwards(lab)
    found = {f["kind"] for f in session["sandbox"]["findings"] if f["severity"] != "info"}
    assert kinds <= found
    assert found - kinds <= ({"denied-filesystem"} if name == "on" else set())


def test_sub_agent_of_a_sub_agent_is_below_it(claude: OpenLab) -> None:
    def ask(child: str) -> dict[str, Any]:
        return {"tool": "Agent", "args": {"description": "nested", "prompt": f"[[{child}]] do it"}}

    done = {"say": "done"}
    script = {"go": [ask("child"), done], "child": [ask("grandchild"), done], "grandchild": [done]}
    lab = claude(Case(script, {"permissions": {"allow": ["Agent"]}}))
    lab.print("[[go]] go")
    parents = {worker["id"]: worker["parent"] for worker in afterwards(lab)}
    (session,) = [name for name, parent in parents.items() if parent is None]
    (child,) = [name for name, parent in parents.items() if parent == session]
    assert [name for name, parent in parents.items() if parent == child] != []
    assert len(parents) == 3


async def test_older_version_without_bubblewrap(claude: OpenLab) -> None:
    """Only the kernel shows it: its transcript states no sandbox."""
    lab = claude(CASES["on-without-bwrap"], VERSIONS[0])
    async with watching(lab) as watched:
        running = lab.start("[[go]] go")
        await watched.until(lambda w: is_session(w) and kinds_of(w) == {SILENT})
        await asyncio.to_thread(running.communicate)


@pytest.mark.parametrize("version", [VERSIONS[0], VERSION])
async def test_mode_of_a_sub_agent(claude: OpenLab, version: str) -> None:
    lab = claude(CASES["child-mode"], version)
    async with watching(lab) as watched:
        running = lab.start("[[go]] go")
        await asyncio.to_thread(running.communicate)
        has_escalated = has_written(lab)
        await watched.until(
            lambda w: w.parent is not None and w.state in (State.COMPLETED, State.FAILED_PERMISSION),
            lambda w: (FindingKind.CHILD_MODE_ESCALATED in kinds_of(w)) is has_escalated,
        )
    assert has_escalated is (version != VERSION)


async def test_pane_and_session_are_one_worker(claude: OpenLab) -> None:
    script = {
        "go": [{"run": f"sleep {command_seconds(3)}"}, {"hold": "answer", "say": "done"}],
        "write": [{"tool": "Write", "args": {"file_path": "/opt/outside/x", "content": "x"}}, {"say": "no"}],
    }
    lab = claude(Case(script, ON))
    async with watching(lab) as watched:
        pane = await lab.tui("--permission-mode", "default")
        pane.submit("[[go]] go on, please")
        worker = await watched.until(is_session, in_pane(pane, State.RUNNING), verdict="match")
        snapshot = watched.snapshot
        assert snapshot is not None
        assert [w.id for w in filter(in_pane(pane), snapshot.workers)] == [worker.id]
        lab.model.release("answer")
        await watched.until(id=worker.id, state=State.COMPLETED)
        pane.submit("[[write]] write it")
        # the session file may be ahead of the transcript, which has the path
        outside = await watched.until(
            in_pane(pane, State.WAITING_APPROVAL), lambda w: "/opt/outside/x" in w.assessment.why
        )
        assert outside.id == worker.id
        pane.keys("Escape")
        await watched.until(id=worker.id, state=State.INTERRUPTED)


async def test_remedies_work(claude: OpenLab, tmp_path: Path) -> None:
    """The settings that a denial names let it through, and nothing else."""
    write = "touch $HOME/state/db && echo first; touch $HOME/other/db || echo second"
    lab = claude(Case({"go": [{"run": write}, {"run": "touch $HOME/state/db"}, {"say": "done"}]}, ON))
    for name in ("state", "other"):
        (lab.user / name).mkdir()
    lab.print("[[go]] go")
    (session,) = afterwards(lab)
    (finding,) = [f for f in session["sandbox"]["findings"] if f["kind"] == "denied-filesystem"]
    wanted = json.loads(finding["remedy"])
    assert wanted == {"sandbox": {"filesystem": {"allowWrite": [f"{lab.user}/state"]}}}
    merged = {**ON, "sandbox": {**ON["sandbox"], **wanted["sandbox"]}}
    (lab.claude_home / "settings.json").write_text(json.dumps(merged))
    lab.print("[[go]] go")
    assert (lab.user / "state" / "db").exists()
    assert not (lab.user / "other" / "db").exists()
