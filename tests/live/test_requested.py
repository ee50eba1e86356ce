"""What was asked for, against real Codex: each set of settings in each version, by what a command could do.

A sample runs by default; `AGENTDASH_MATRIX=all`, as `python -m tests.live` sets it, runs everything.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from agentdash.agents.codex.config.argv import parse_options
from agentdash.agents.codex.config.files import read_layers
from agentdash.agents.codex.config.precedence import Asked, request, requested
from agentdash.agents.codex.config.reader import read_request, read_role
from agentdash.agents.codex.policy_formats import from_turn
from agentdash.model.findings import FindingKind
from agentdash.model.memory import ThreadMemory
from agentdash.model.policy import Network, Policy
from agentdash.model.requested import Requested, RequestField
from agentdash.report.audit import audit
from tests.live.codex import VERSION
from tests.live.codex_matrix import MatrixLab, matrix_lab
from tests.live.codex_settings import (
    ALL,
    ALL_PROFILES,
    FULL,
    READ_ONLY,
    WORKSPACE,
    Settings,
    mode,
    permissions,
)
from tests.live.patience import command_seconds, scaled, until

OLDER: Final = ("0.145.0", "0.169.0")
SAMPLE: Final = (
    "nothing",
    "-s read-only",
    "-s before exec",
    "add-dir with -s",
    "user mode below -c",
    "user network with -s",
    "project mode above user",
    "project mode, undecided",
    "profile file above user",
    "permissions above mode",
    "-c permissions before -c mode",
    "forced full access, -s",
    "allowed modes, -s full",
    "managed mode above -c",
)
IN_OLDER: Final = (
    "-s before exec",
    "project mode above user",
    "permissions above mode",
    "allowed modes, -s full",
)
"""What has changed between releases."""
EVERYTHING: Final = os.environ.get("AGENTDASH_MATRIX") == "all"
CELLS: Final = [
    pytest.param(version, settings, id=f"{version} {settings.name}")
    for version, names in ((VERSION, SAMPLE), *((version, IN_OLDER) for version in OLDER))
    for settings in ALL
    if settings.name in names or (EVERYTHING and version == VERSION)
]
REQUEST_KINDS: Final = {
    FindingKind.REQUESTED_NOT_CONFIGURED,
    FindingKind.RESUME_DROPPED_POLICY,
    FindingKind.ROLE_POLICY_IGNORED,
}
REFUSED_ARGUMENTS: Final = 2
"""The exit code of clap; agentdash does not predict it."""
AGENTDASH: Final = [sys.executable, "-m", "agentdash"]


def predicted(lab: MatrixLab, args: Sequence[str]) -> tuple[Asked, Asked]:
    """Return what is asked for, and what Codex is predicted to make of it."""
    arguments = parse_options(args)
    workspace = str(lab.lab.workspace)
    layers = read_layers(str(lab.lab.home), workspace, arguments, root=lab.rootfs)
    return request(layers, arguments, cwd=workspace)


def may(policy: Policy, lab: MatrixLab) -> dict[str, bool | None]:
    """Return what a policy lets a command do, as the probe tries it."""
    return {
        "home": policy.may_write(str(lab.lab.user / "probe")),
        "workspace": policy.may_write(str(lab.lab.workspace / "probe")),
        "elsewhere": policy.may_write("/var/tmp/probe"),
        "network": policy.network is Network.ON,
    }


def asked_for(request: Requested, lab: MatrixLab) -> dict[str, bool | None]:
    """Return what a request asks for; only what it names."""
    wished = may(request.policy, lab)
    named = {origin.field for origin in request.origins}
    by = {
        "home": {RequestField.FILESYSTEM},
        "workspace": {RequestField.FILESYSTEM},
        "elsewhere": {RequestField.FILESYSTEM, RequestField.WRITABLE_ROOTS},
        "network": {RequestField.NETWORK},
    }
    return {name: value for name, value in wished.items() if by[name] & named}


def kinds(lab: MatrixLab, *requests: Requested) -> set[str]:
    """Return the findings about requests that `agentdash check` has of the lab's thread."""
    files = sorted(lab.lab.home.glob("sessions/*/*/*/rollout-*.jsonl"))
    (thread,) = audit(files, recall=partial(ThreadMemory, requests=requests)).threads
    return {finding.kind for finding in thread.findings} & REQUEST_KINDS


def begun(lab: MatrixLab, args: Sequence[str], since: float) -> Requested:
    """Return the request of a process that began before its first turn."""
    found = read_request(
        parse_options(args), str(lab.lab.home), str(lab.lab.workspace), lab.version, lab.rootfs
    )
    return Requested(**{name: getattr(found, name) for name in found.__struct_fields__} | {"since": since})


@pytest.mark.parametrize(("version", "settings"), CELLS)
def test_settings(version: str, settings: Settings) -> None:
    with matrix_lab(version, settings) as lab:
        asked, given = predicted(lab, settings.args)
        done = lab.run(*settings.args)
        truths = lab.truths()
        refused = given.refusal
        if done.returncode == REFUSED_ARGUMENTS:
            assert truths == []
            return
        assert (refused is not None) is (done.returncode != 0), (refused, done.stderr[-500:])
        if refused is not None:
            assert truths == []
            return
        (truth,) = truths
        policy = from_turn(truth.context)
        assert policy is not None
        stated = Network.ON if given.policy.network is Network.MEDIATED else given.policy.network
        assert (given.policy.filesystem, stated) == (policy.filesystem, policy.network)
        assert given.policy.approval in (None, policy.approval)
        assert may(given.policy, lab) == truth.may
        wished = asked_for(requested(asked, given), lab)
        is_met = wished.items() <= truth.may.items()
        assert kinds(lab, begun(lab, settings.args, 1.0)) == (
            set() if is_met else {FindingKind.REQUESTED_NOT_CONFIGURED}
        )


# ---------------------------------------------------------------- TUI

_TYPED: Final = ("-s", READ_ONLY, "-a", "on-request")


async def test_choice_in_the_running_tui() -> None:
    """What `/permissions` was given is asked for from then on."""
    with matrix_lab(VERSION, Settings("x", _TYPED)) as lab:
        pane = lab.lab.pane(shlex.join(lab.interactive(*_TYPED)))
        await until(lambda: "\n› " in pane.text(), "its prompt")
        await asyncio.sleep(scaled(2))  # in its first seconds a TUI may lose keys
        pane.submit("[[first]] go")
        await until(lambda: bool(lab.lab.threads()) and any(each.may for each in lab.truths()), "its command")
        await pane.shows("• done")
        lab.forget()
        pane.submit("/permissions")
        await pane.answer("Update Model Permissions", "1")
        pane.submit("[[again]] go")
        await until(lambda: len([each for each in lab.truths() if each.may]) == 2, "the next command")
        seen = agentdash(lab, "status", "--json", "-S", str(lab.lab.tmux))
        (worker,) = [each for each in json.loads(seen.stdout)["workers"] if each["id"] == lab.thread]
        requested = worker["sandbox"]["requested"]
        assert (requested["filesystem"], requested["network"]) == ("workspace", "off")
        assert {each["layer"] for each in requested["origin"]} == {"thread setting"}
        assert not {each["kind"] for each in worker["sandbox"]["findings"]} & REQUEST_KINDS
        before, after = (each.may for each in lab.truths())
        assert (before["workspace"], after["workspace"], after["home"]) == (False, True, False)


# ---------------------------------------------------------------- sub-agents

_TESTER: Final = 'name = "tester"\ndescription = "tests"\ndeveloper_instructions = "test"\n'
ROLES: Final = {
    "narrower": (mode(READ_ONLY), True),
    "wider": (mode(FULL), True),
    "nothing": ("", False),
}
"""Settings of a role, and whether a sub-agent of a thread with `workspace-write` lacks them."""
ROLE_CELLS: Final = [name for name in ROLES if EVERYTHING or name == "narrower"]


@pytest.mark.parametrize("name", ROLE_CELLS)
def test_role(name: str) -> None:
    wanted, is_ignored = ROLES[name]
    with matrix_lab(VERSION, Settings("x", ("exec", "-s", WORKSPACE))) as lab:
        (lab.lab.home / "agents").mkdir()
        (lab.lab.home / "agents/tester.toml").write_text(_TESTER + wanted, "utf-8")
        args = {"message": "[[first]] go", "agent_type": "tester"}
        spawn: dict[str, Any] = {"tool": "spawn_agent", "args": args, "namespace": "multi_agent_v1"}
        lab.lab.model.script = {**lab.lab.model.script, "parent": [spawn, {"wait": True}, {"say": "done"}]}
        began = time.time()
        assert lab.run("exec", "-s", WORKSPACE, prompt="[[parent]] go").returncode == 0
        parent, child = lab.lab.threads()
        truth = next(each for each in lab.truths() if each.may)
        assert truth.may == {"home": False, "workspace": True, "elsewhere": False, "network": False}
        asked = read_role(
            "tester",
            home=str(lab.lab.home),
            cwd=str(lab.lab.workspace),
            root=Path("/"),
            since=began,
            at=began,
        )
        files = sorted(lab.lab.home.glob("sessions/*/*/*/rollout-*.jsonl"))
        requests = {child: (asked,)} if asked else {}
        report = audit(files, recall=lambda each: ThreadMemory(each, requests=requests.get(each, ())))
        threads = {each.id: each for each in report.threads}
        findings = [each for each in threads[child].findings if each.kind in REQUEST_KINDS]
        assert [each.kind for each in findings] == ["role-policy-ignored"] * is_ignored
        assert all("the policy of the thread that spawned it" in each.message for each in findings)
        assert not {each.kind for each in threads[parent].findings} & REQUEST_KINDS


# ---------------------------------------------------------------- as reported, seen live


async def run_observed(lab: MatrixLab, *args: str, prompt: str = "[[first]] go") -> dict[str, Any]:
    """Run Codex, and return the worker as `agentdash status` has it while its command runs."""
    process = lab.start(*args, prompt=prompt)
    seen: list[dict[str, Any]] = []

    def is_seen() -> bool:
        document = json.loads(agentdash(lab, "status", "--json").stdout)
        workers = [each for each in document["workers"] if each["id"] in lab.lab.threads()]
        judged = [each for each in workers if each["sandbox"]["verdict"] != "unverified"]
        seen[:] = [each for each in judged if each["sandbox"]["requested"] and each["pids"]]
        return bool(seen)

    try:
        await until(is_seen, "the thread with what was asked for", limit=30.0)
    finally:
        process.wait()
    return seen[0]


def agentdash(lab: MatrixLab, *args: str) -> subprocess.CompletedProcess[str]:
    """Run agentdash on the lab's home, with a state directory of its own."""
    return subprocess.run(
        [*AGENTDASH, *args, "--codex-home", str(lab.lab.home)],
        env=lab.environment | {"XDG_STATE_HOME": str(lab.lab.root / "state")},
        capture_output=True,
        text=True,
        check=False,
    )


def slow(lab: MatrixLab) -> MatrixLab:
    """Let the lab's commands take long enough to be seen."""
    for steps in lab.lab.model.script.values():
        steps[0]["run"] = f"sleep {command_seconds(6)}; {steps[0]['run']}"
        break  # both scripts have the same steps
    return lab


_ASKED: Final = ("exec", "-s", READ_ONLY)


async def test_managed_settings_that_outrank_an_option() -> None:
    """openai/codex#47464."""
    settings = Settings("x", _ASKED, requirements=permissions(":danger-full-access") + ALL_PROFILES)
    with matrix_lab(VERSION, settings) as plain:
        lab = slow(plain)
        worker = await run_observed(lab, *settings.args)
        assert worker["sandbox"]["verdict"] == "mismatch"
        assert worker["sandbox"]["requested"]["filesystem"] == "read-only"
        assert worker["sandbox"]["configured"]["filesystem"] == "unrestricted"
        assert lab.truths()[0].may["home"]
        checked = agentdash(lab, "check")
        assert checked.returncode == 1
        assert "requested-not-configured (wider)" in checked.stdout
        assert '/etc/codex/requirements.toml:1: default_permissions = ":danger-full-access"' in checked.stdout


async def test_resume_without_the_sandbox() -> None:
    """openai/codex#40149."""
    settings = Settings("x", _ASKED, top=mode(FULL))
    with matrix_lab(VERSION, settings) as plain:
        lab = slow(plain)
        first = await run_observed(lab, *settings.args)
        assert first["sandbox"]["verdict"] == "match"
        worker = await run_observed(lab, "exec", "resume", lab.thread, prompt="[[again]] go")
        assert worker["sandbox"]["verdict"] == "mismatch"
        checked = agentdash(lab, "check")
        assert checked.returncode == 1
        assert "resume-dropped-policy (wider)" in checked.stdout
        line = (lab.lab.home / "config.toml").read_text("utf-8").splitlines().index(mode(FULL).strip()) + 1
        assert f"{lab.lab.home}/config.toml:{line}: {mode(FULL).strip()}" in checked.stdout


_REVIEWED: Final = ("-c", "approvals_reviewer=auto_review", "-c", "approval_policy=on-request")
_ANSWER: Final = '{"outcome": "%s", "risk_level": "low", "user_authorization": "high", "rationale": "x"}'


@pytest.mark.parametrize("outcome", ["allow", "deny"])
async def test_command_that_an_automatic_reviewer_lets_out(outcome: str) -> None:
    """openai/codex#36570: `-s read-only`, and a command that was allowed to leave it writes the home."""
    args = ("exec", "-s", READ_ONLY, *_REVIEWED)
    with matrix_lab(VERSION, Settings("x", args)) as lab:
        (command, answer) = lab.lab.model.script["first"]
        lab.lab.model.script = {
            "first": [{**command, "escalate": "May I?"}, answer],
            "reviewer": [{"say": _ANSWER % outcome}],
        }
        assert lab.run(*args).returncode == 0
        checked = json.loads(agentdash(lab, "check", "--json").stdout)
        (thread,) = [
            each for each in checked["threads"] if each["id"] in lab.lab.threads() and not each["parent"]
        ]
        is_out = outcome == "allow"
        assert any(truth.may.get("home") for truth in lab.truths()) is is_out
        kinds_found = [each["kind"] for each in thread["findings"]]
        assert kinds_found == ["auto-approved-outside"] * is_out
        assert thread["policies"][0]["reviewer"] == "auto_review"


def test_the_sample_names_settings() -> None:
    assert {*SAMPLE, *IN_OLDER} <= {settings.name for settings in ALL}
