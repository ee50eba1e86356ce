"""What users reported, as they typed it, with real Codex releases: live, and from the files alone."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.live import codex as codex_cli
from tests.live.conftest import OpenLab
from tests.live.watched import is_observed, kinds, thread_in, watching
from tests.live.workers import opencode_command

VERSIONS = ("0.114.0", "0.169.0", codex_cli.VERSION)
WORKSPACE = ("-s", "workspace-write")
FULL = ("-s", "danger-full-access")
LEAKED = ("-c", 'shell_environment_policy.set={CODEX_SANDBOX="seatbelt",CODEX_SANDBOX_NETWORK_DISABLED="1"}')
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
    "env | sed 's/=.*//' | grep CODEX",
)
HAND_OFF = (
    "python3 -c \"import sqlite3; sqlite3.connect('{board}/kanban.db').execute('create table t(a)')\"; "
    "echo exit=$?"
)
"""Hermes Kanban: it is denied, and its exit code is hidden."""
GIT = "git init -q . && git commit -q --allow-empty -m x 2>&1 | tail -3"
CURL = "curl -sS https://example.com; echo rc=$?"
OPENCODE = "{opencode}; echo rc=$?"
"""openai/codex#23857: it cannot write its state, and the exit code is hidden."""


class Report(NamedTuple):
    """What a worker does, and what is stated of it."""

    name: str
    flags: tuple[str, ...]
    commands: tuple[str, ...]
    state: State
    verdict: str | None
    """From the files alone; a watch may know more than `unverified`."""
    kinds: set[str]
    denied: str | None = None
    """How the target of its first denial begins."""


FLAGS, FILES = {"stale-network-flag", "foreign-sandbox-flag"}, {"denied-filesystem"}
REPORTS = (
    Report("shows-no-value", WORKSPACE, CANNOT_SHOW_A_VALUE, State.COMPLETED, "unverified", set()),
    Report("leaked", (*FULL, *LEAKED), (PROBE,), State.COMPLETED, "mismatch", FLAGS),
    Report("clean", FULL, (PROBE,), State.COMPLETED, "match", set()),
    Report("hand-off", WORKSPACE, (HAND_OFF, "ls"), State.COMPLETED, None, set(), "{board}/kanban.db"),
    Report("git", WORKSPACE, (GIT,), State.BLOCKED_SANDBOX, None, FILES),
    Report("etc", WORKSPACE, ("touch /etc/ad-x || true",), State.BLOCKED_SANDBOX, None, FILES),
    Report("network", WORKSPACE, (CURL,), State.BLOCKED_SANDBOX, None, {"denied-network"}),
    Report("opencode", WORKSPACE, (OPENCODE,), State.BLOCKED_SANDBOX, None, FILES, "{user}/.local"),
)


@pytest.mark.parametrize("version", VERSIONS)
async def test_reports(codex: OpenLab, version: str) -> None:
    lab = codex({}, version=version)
    board = lab.root / "board"
    board.mkdir()
    places = {"board": board, "user": lab.user, "opencode": opencode_command(lab, "run", "'[[hello]] go'")}

    def filled(text: str) -> str:
        for name, place in places.items():
            text = text.replace(f"{{{name}}}", str(place))
        return text

    lab.model.script = {
        report.name: [*({"run": filled(command)} for command in report.commands), {"say": "all done"}]
        for report in REPORTS
    }
    # under Landlock, until 0.114, the workspace's own .git could be written
    reports = [report for report in REPORTS if (report.name, version) != ("git", "0.114.0")]
    ended: dict[str, Worker] = {}
    async with watching(lab) as watched:
        for report in reports:
            lab.exec(f"[[{report.name}]] go", *report.flags)
            judged = {} if report.verdict in (None, "unverified") else {"verdict": report.verdict}
            ended[report.name] = await watched.until(
                thread_in(report.state), name=f"[[{report.name}]] go", **judged
            )
    threads = {thread["id"]: thread for thread in lab.document("check")["threads"]}
    for report in reports:
        worker = ended[report.name]
        thread = threads[worker.id]
        stated = {str(finding.kind): finding for finding in worker.sandbox.findings}
        assert stated.keys() == report.kinds, f"{report.name}: {stated}"
        assert {finding["kind"] for finding in thread["findings"]} == report.kinds, report.name
        if report.verdict is not None:
            assert thread["verdict"] == report.verdict, report.name
            assert worker.sandbox.verdict in (report.verdict, "match"), report.name
        if report.denied is not None:
            targets = (worker.sandbox.denials[0].target, thread["denials"][0]["target"])
            assert targets[0] == targets[1], report.name
            assert str(targets[0]).startswith(filled(report.denied)), report.name
    assert ended["hand-off"].sandbox.denials[0].got_past is False
    assert ended["opencode"].sandbox.denials[0].nested == "opencode"


async def test_opencode_at_work_in_the_sandbox_is_a_row(codex: OpenLab) -> None:
    """openai/codex#23857: the supervised worker is seen while it lives, with what its sandbox denies it."""
    lab = codex({})
    state = (".local/share/opencode", ".local/state/opencode", ".config/opencode", ".cache/opencode")
    opened = [str(lab.user / path) for path in state]
    for root in opened:
        Path(root).mkdir(parents=True, exist_ok=True)
    run = opencode_command(lab, "run", "[[inner]] go")
    warm_up = opencode_command(lab, "run", "[[warm]] go")  # it makes its directories at its first start
    lab.model.script = {
        "warm": [{"say": "warm"}],
        "work": [{"run": f"{run}; echo rc=$?"}, {"say": "all done"}],
        "inner": [{"hold": "end"}, {"say": "inner done"}],
    }
    roots = f"sandbox_workspace_write.writable_roots={json.dumps(opened[:-1])}"
    settings = ("-c", "sandbox_workspace_write.network_access=true", "-c", roots)
    await lab.pane(warm_up).shows("warm")
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "workspace-write", *settings)
        nested = await watched.until(
            is_observed, lambda w: w.parent is not None, kind="process", state=State.RUNNING
        )
        assert nested.agent.name == "opencode"
        assert nested.parent in lab.threads()
        assert nested.sandbox.got.sandboxed is True
        lab.model.release("end")
        await watched.until(thread_in(State.COMPLETED))
        await watched.until_snapshot(lambda each: "process" not in {w.kind for w in each.workers})


async def test_a_sandbox_that_cannot_start_is_found(codex: OpenLab) -> None:
    """The deprecated `use_legacy_landlock` since 0.169: every command dies in the helper."""
    lab = codex({"work": [{"run": "echo hello"}, {"say": "could not"}]})
    async with watching(lab) as watched:
        lab.exec("[[work]] go", "-s", "read-only", "-c", "features.use_legacy_landlock=true")
        found = await watched.until(thread_in(State.BLOCKED_SANDBOX, State.COMPLETED))
    assert kinds(found) == {"sandbox-cannot-start"}
