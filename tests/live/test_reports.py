"""What users reported, as they typed it, with real Codex releases: live, and from the files alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.live import opencode
from tests.live.codex import Lab
from tests.live.conftest import OpenLab
from tests.live.patience import scaled
from tests.live.watched import is_judged, thread_in, watching

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's marks are Linux's")

VERSIONS = ("0.114.0", "0.169.0")
FULL = ("-s", "danger-full-access")
LEAKED = (
    "-c",
    'shell_environment_policy.set={CODEX_SANDBOX="seatbelt",CODEX_SANDBOX_NETWORK_DISABLED="1"}',
)
PROBE = """\
echo "== identity"
whoami; pwd; uname -s
echo "== sandbox env"
env | grep -i '^CODEX' | sort
echo "== network"
getent hosts example.com || echo "dns failed"
curl -sS -m 5 https://example.com 2>&1 | head -n 6
"""
"""The lines of the probe in openai/codex#14357."""
CANNOT_SHOW_A_VALUE = (
    "env | grep -c CODEX_SANDBOX",
    "env | grep -q CODEX_SANDBOX && echo yes",
    "printenv | grep CODEX | wc -l",
    "env | sed 's/=.*//' | grep CODEX",
    "env | grep -o '^CODEX[A-Z_]*'",
    "env | grep -c CODEX_NONE || true",
)


def audit(lab: Lab) -> list[dict[str, object]]:
    """Return the threads of `agentdash check` over the lab's home."""
    command = [sys.executable, "-m", "agentdash", "check", "--json", "--codex-home", str(lab.home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=scaled(60))
    assert done.returncode in (0, 1), done.stderr
    threads: list[dict[str, object]] = json.loads(done.stdout)["threads"]
    return threads


def kinds(worker: Worker) -> set[str]:
    return {str(finding.kind) for finding in worker.sandbox.findings}


def audited_kinds(thread: dict[str, object]) -> set[str]:
    return {finding["kind"] for finding in thread["findings"]}


@pytest.mark.parametrize("version", VERSIONS)
async def test_output_that_shows_no_value_gives_no_alarm(codex: OpenLab, version: str) -> None:
    steps = [{"run": script} for script in CANNOT_SHOW_A_VALUE]
    lab = codex({"work": [*steps, {"say": "all done"}]}, version=version)
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "workspace-write")
        done = await watched.until(thread_in(State.COMPLETED))
    assert done.sandbox.verdict != "mismatch"
    assert kinds(done) == set()
    (thread,) = audit(lab)
    assert (thread["verdict"], audited_kinds(thread)) == ("unverified", set())


@pytest.mark.parametrize("version", VERSIONS)
async def test_probe_of_14357_shows_leaked_flags(codex: OpenLab, version: str) -> None:
    lab = codex({"work": [{"run": PROBE}, {"say": "all done"}]}, version=version)
    async with watching(lab) as watched:
        lab.exec("[[work]] go", *FULL, *LEAKED)
        done = await watched.until(thread_in(State.COMPLETED))
    expected = {"stale-network-flag", "foreign-sandbox-flag"}
    assert (done.sandbox.verdict, kinds(done) & expected) == ("mismatch", expected)
    (thread,) = audit(lab)
    assert (thread["verdict"], audited_kinds(thread) & expected) == ("mismatch", expected)


@pytest.mark.parametrize("version", VERSIONS)
async def test_probe_of_14357_matches_without_the_flags(codex: OpenLab, version: str) -> None:
    lab = codex({"work": [{"run": PROBE}, {"say": "all done"}]}, version=version)
    async with watching(lab) as watched:
        lab.exec("[[work]] go", *FULL)
        done = await watched.until(lambda w: thread_in(State.COMPLETED)(w) and is_judged(w))
    assert (done.sandbox.verdict, kinds(done)) == ("match", set())
    (thread,) = audit(lab)
    assert (thread["verdict"], audited_kinds(thread)) == ("match", set())


@pytest.mark.parametrize("version", VERSIONS)
async def test_opencode_in_the_sandbox_is_blocked_with_its_path(codex: OpenLab, version: str) -> None:
    """openai/codex#23857: the shell line ends in `; echo rc=$?`, so its exit code is 0."""
    lab = codex({}, version=version)
    run = opencode.command(lab, "run", "'[[hello]] go'")
    lab.model.script = {"work": [{"run": f"{run}; echo rc=$?"}, {"say": "it did not start"}]}
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "workspace-write")
        blocked = await watched.until(thread_in(State.BLOCKED_SANDBOX))
    assert kinds(blocked) == {"denied-filesystem"}
    (entry, *_) = blocked.sandbox.denials
    assert entry.target is not None
    assert entry.target.startswith(f"{lab.user}/.local")
    assert entry.nested == "opencode"
    (thread,) = audit(lab)
    assert audited_kinds(thread) == {"denied-filesystem"}
    assert [denial["target"] for denial in thread["denials"]][:1] == [entry.target]


async def test_opencode_at_work_in_the_sandbox_is_a_row(codex: OpenLab) -> None:
    """openai/codex#23857: the supervised worker is seen while it lives, with what its sandbox denies it."""
    state = [".local/share/opencode", ".local/state/opencode", ".config/opencode", ".cache/opencode"]
    roots = [f"{{user}}/{path}" for path in state]
    lab = codex({})
    for root in (opened := [root.format(user=lab.user) for root in roots]):
        Path(root).mkdir(parents=True, exist_ok=True)
    run = opencode.command(lab, "run", "[[inner]] go")
    warm_up = opencode.command(lab, "run", "[[warm]] go")  # it makes its directories at its first start
    lab.model.script = {
        "warm": [{"say": "warm"}],
        "work": [{"run": f"{run}; echo rc=$?"}, {"say": "all done"}],
        "inner": [{"hold": "end"}, {"say": "inner done"}],
    }
    settings = (
        "-c",
        "sandbox_workspace_write.network_access=true",
        "-c",
        f"sandbox_workspace_write.writable_roots={json.dumps(opened[:-1])}",
    )
    await lab.pane(warm_up).shows("warm")
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "workspace-write", *settings)
        nested = await watched.until(
            lambda w: (
                w.kind == "process"
                and w.state is State.RUNNING
                and w.parent is not None
                and w.sandbox.got.sandboxed is not None
                and bool(w.sandbox.predicted_denials)
            )
        )
        assert nested.agent.name == "opencode"
        assert nested.parent in lab.threads()
        assert nested.sandbox.got.sandboxed is True
        denied = {path.path for denials in nested.sandbox.predicted_denials for path in denials.paths}
        assert opened[-1] in denied
        assert not denied & set(opened[:-1])
        lab.model.release("end")
        await watched.until(thread_in(State.COMPLETED))
        await watched.until_snapshot(lambda each: "process" not in {w.kind for w in each.workers})


@pytest.mark.parametrize("version", VERSIONS)
async def test_hand_off_stays_on_record(codex: OpenLab, version: str) -> None:
    """Hermes Kanban: the hand-off is denied, the exit code is hidden, and the worker goes on."""
    lab = codex({}, version=version)
    board = lab.root / "board"
    board.mkdir()
    write = f"sqlite3.connect('{board}/kanban.db').execute('create table t(a)')"
    lab.model.script = {
        "work": [
            {"run": f'python3 -c "import sqlite3; {write}"; echo exit=$?'},
            {"run": "ls"},
            {"say": "done but for the board"},
        ]
    }
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "workspace-write")
        done = await watched.until(thread_in(State.COMPLETED))
    (entry,) = done.sandbox.denials
    assert (entry.what, entry.target, entry.got_past) == ("filesystem", f"{board}/kanban.db", False)
    (thread,) = audit(lab)
    assert [denial["target"] for denial in thread["denials"]] == [f"{board}/kanban.db"]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("git init -q . && git commit -q --allow-empty -m x 2>&1 | tail -3", "denied-filesystem"),
        ("touch /etc/agentdash-x || true", "denied-filesystem"),
        ("curl -sS https://example.com; echo rc=$?", "denied-network"),
    ],
)
async def test_hidden_exit_codes_do_not_hide_denials(codex: OpenLab, script: str, kind: str) -> None:
    lab = codex({"work": [{"run": script}, {"say": "could not"}]})
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "workspace-write")
        blocked = await watched.until(thread_in(State.BLOCKED_SANDBOX))
    assert kinds(blocked) == {kind}


async def test_a_sandbox_that_cannot_start_is_found(codex: OpenLab) -> None:
    """0.169 with the deprecated `use_legacy_landlock`: every command dies in the helper."""
    lab = codex({"work": [{"run": "echo hello"}, {"say": "could not"}]})
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "read-only", "-c", "features.use_legacy_landlock=true")
        found = await watched.until(thread_in(State.BLOCKED_SANDBOX, State.COMPLETED))
    assert kinds(found) == {"sandbox-cannot-start"}
