"""What was asked for, against real Codex: each set of settings in each version, by what a command could do.

A sample runs by default; `AGENTDASH_MATRIX=all`, as `python -m tests.live` sets it, runs everything.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
from msgspec.structs import replace

from agentdash.agents.codex.config.argv import parse_options
from agentdash.agents.codex.config.files import read_layers
from agentdash.agents.codex.config.precedence import request, requested
from agentdash.agents.codex.config.reader import read_request, read_role
from agentdash.agents.codex.policy_formats import from_turn
from agentdash.model.findings import FindingKind
from agentdash.model.memory import ThreadMemory
from agentdash.model.policy import Network, Policy
from agentdash.model.requested import Requested, RequestField
from agentdash.report.audit import audit
from tests.live.codex import VERSION
from tests.live.codex_matrix import (
    ALL,
    FORCED_FULL,
    FULL,
    IN_OLDER,
    READ_ONLY,
    SAMPLE,
    WORKSPACE,
    MatrixLab,
    Settings,
    mode,
)
from tests.live.patience import command_seconds, scaled, until

EVERYTHING: Final = os.environ.get("AGENTDASH_MATRIX") == "all"
CELLS: Final = [
    pytest.param(version, settings, id=f"{version} {settings.name}")
    for version, chosen in (
        (VERSION, ALL if EVERYTHING else SAMPLE),
        *((version, IN_OLDER) for version in ("0.145.0", "0.169.0")),
    )
    for settings in chosen
]
REQUEST_KINDS: Final = {
    FindingKind.REQUESTED_NOT_CONFIGURED,
    FindingKind.RESUME_DROPPED_POLICY,
    FindingKind.ROLE_POLICY_IGNORED,
}
REFUSED_ARGUMENTS: Final = 2
"""The exit code of clap; agentdash does not predict it."""


class OpenLab(Protocol):
    """Opens a lab that is closed after the test."""

    def __call__(self, settings: Settings, version: str = VERSION, seconds: str = "0") -> MatrixLab: ...


@pytest.fixture
def matrix() -> Iterator[OpenLab]:
    with ExitStack() as labs:
        yield lambda settings, version=VERSION, seconds="0": labs.enter_context(
            MatrixLab(version, settings, seconds)
        )


def may(policy: Policy, lab: MatrixLab) -> dict[str, bool | None]:
    """Return what a policy lets a command do, as the probe tries it."""
    return {
        "home": policy.may_write(str(lab.user / "probe")),
        "workspace": policy.may_write(str(lab.workspace / "probe")),
        "elsewhere": policy.may_write("/var/tmp/probe"),
        "network": policy.network is Network.ON,
    }


def asked_for(request: Requested, lab: MatrixLab) -> dict[str, bool | None]:
    """Return what a request asks for; only what it names."""
    named = {origin.field for origin in request.origins}
    files, roots, network = RequestField.FILESYSTEM, RequestField.WRITABLE_ROOTS, RequestField.NETWORK
    by = {"home": {files}, "workspace": {files}, "elsewhere": {files, roots}, "network": {network}}
    return {name: value for name, value in may(request.policy, lab).items() if by[name] & named}


@pytest.mark.parametrize(("version", "settings"), CELLS)
def test_settings(version: str, settings: Settings, matrix: OpenLab) -> None:
    lab = matrix(settings, version)
    arguments, workspace = parse_options(settings.args), str(lab.workspace)
    layers = read_layers(str(lab.home), workspace, arguments, root=lab.rootfs)
    asked, given = request(layers, arguments, cwd=workspace)
    code, said = lab.run(*settings.args)
    truths = lab.truths()
    if code == REFUSED_ARGUMENTS:
        assert truths == []
        return
    assert (given.refusal is not None) is (code != 0), (given.refusal, said[-500:])
    if given.refusal is not None:
        assert truths == []
        return
    (truth,) = truths
    policy = from_turn(truth.context)
    assert policy is not None
    stated = Network.ON if given.policy.network is Network.MEDIATED else given.policy.network
    assert (given.policy.filesystem, stated) == (policy.filesystem, policy.network)
    assert given.policy.approval in (None, policy.approval)
    assert may(given.policy, lab) == truth.may
    is_met = asked_for(requested(asked, given), lab).items() <= truth.may.items()
    begun = replace(read_request(arguments, str(lab.home), workspace, version, lab.rootfs), since=1.0)
    (thread,) = audit(lab.files(), recall=partial(ThreadMemory, requests=(begun,))).threads
    found = {finding.kind for finding in thread.findings} & REQUEST_KINDS
    assert found == (set() if is_met else {FindingKind.REQUESTED_NOT_CONFIGURED})


async def test_choice_in_the_running_tui(matrix: OpenLab) -> None:
    """What `/permissions` was given is asked for from then on."""
    lab = matrix(Settings(f"-s {READ_ONLY} -a on-request"))
    pane = lab.pane(shlex.join(lab.argv(*lab.settings.args)))
    await until(lambda: "\n› " in pane.text(), "its prompt")
    await asyncio.sleep(scaled(2))  # in its first seconds a TUI may lose keys
    pane.submit("[[first]] go")
    await until(lambda: bool(lab.threads()) and any(each.may for each in lab.truths()), "its command")
    await pane.shows("• done")
    lab.forget()
    pane.submit("/permissions")
    await pane.answer("Update Model Permissions", "1")
    pane.submit("[[again]] go")
    await until(lambda: len([each for each in lab.truths() if each.may]) == 2, "the next command")
    (worker,) = [each for each in lab.document("status")["workers"] if each["id"] in lab.threads()]
    wanted = worker["sandbox"]["requested"]
    assert (wanted["filesystem"], wanted["network"]) == ("workspace", "off")
    assert {each["layer"] for each in wanted["origin"]} == {"thread setting"}
    assert not {each["kind"] for each in worker["sandbox"]["findings"]} & REQUEST_KINDS
    before, after = (each.may for each in lab.truths())
    assert (before["workspace"], after["workspace"], after["home"]) == (False, True, False)


_TESTER: Final = 'name = "tester"\ndescription = "tests"\ndeveloper_instructions = "test"\n'
ROLES: Final = {"narrower": (mode(READ_ONLY), True), "wider": (mode(FULL), True), "nothing": ("", False)}
"""Settings of a role, and whether a sub-agent of a thread with `workspace-write` lacks them."""


@pytest.mark.parametrize("name", list(ROLES)[: None if EVERYTHING else 1])
def test_role(name: str, matrix: OpenLab) -> None:
    wanted, is_ignored = ROLES[name]
    lab = matrix(Settings(f"exec -s {WORKSPACE}"))
    (lab.home / "agents").mkdir()
    (lab.home / "agents/tester.toml").write_text(_TESTER + wanted, "utf-8")
    args = {"message": "[[first]] go", "agent_type": "tester"}
    spawn: dict[str, Any] = {"tool": "spawn_agent", "args": args, "namespace": "multi_agent_v1"}
    lab.model.script = {**lab.model.script, "parent": [spawn, {"wait": True}, {"say": "done"}]}
    began = time.time()
    assert lab.run(*lab.settings.args, prompt="[[parent]] go")[0] == 0
    parent, child = lab.threads()
    truth = next(each for each in lab.truths() if each.may)
    assert truth.may == {"home": False, "workspace": True, "elsewhere": False, "network": False}
    where = {"home": str(lab.home), "cwd": str(lab.workspace), "root": Path("/")}
    asked = read_role("tester", **where, since=began, at=began)  # type: ignore[arg-type]
    requests = {child: (asked,)} if asked else {}
    report = audit(lab.files(), recall=lambda each: ThreadMemory(each, requests=requests.get(each, ())))
    threads = {each.id: each for each in report.threads}
    findings = [each for each in threads[child].findings if each.kind in REQUEST_KINDS]
    assert [each.kind for each in findings] == ["role-policy-ignored"] * is_ignored
    assert all("the policy of the thread that spawned it" in each.message for each in findings)
    assert not {each.kind for each in threads[parent].findings} & REQUEST_KINDS


# ---------------------------------------------------------------- as reported, seen live


async def run_observed(lab: MatrixLab, *args: str, prompt: str = "[[first]] go") -> dict[str, Any]:
    """Run Codex, and return what `agentdash status` says of its sandbox while its command runs."""
    seen: list[dict[str, Any]] = []

    def is_seen() -> bool:
        workers = [each for each in lab.document("status")["workers"] if each["id"] in lab.threads()]
        judged = [each for each in workers if each["sandbox"]["verdict"] != "unverified" and each["pids"]]
        seen[:] = [each["sandbox"] for each in judged if each["sandbox"]["requested"]]
        return bool(seen)

    with lab.start(*args, prompt=prompt) as running:
        await until(is_seen, "the thread with what was asked for", limit=30.0)
        running.communicate()
    return seen[0]


async def test_managed_settings_that_outrank_an_option(matrix: OpenLab) -> None:
    """openai/codex#47464."""
    lab = matrix(Settings(f"exec -s {READ_ONLY}", requirements=FORCED_FULL), seconds=command_seconds(6))
    sandbox = await run_observed(lab, *lab.settings.args)
    assert sandbox["verdict"] == "mismatch"
    assert sandbox["requested"]["filesystem"] == "read-only"
    assert sandbox["configured"]["filesystem"] == "unrestricted"
    assert lab.truths()[0].may["home"]
    checked = lab.agentdash("check")
    assert checked.returncode == 1
    assert "requested-not-configured (wider)" in checked.stdout
    assert '/etc/codex/requirements.toml:1: default_permissions = ":danger-full-access"' in checked.stdout


async def test_resume_without_the_sandbox(matrix: OpenLab) -> None:
    """openai/codex#40149."""
    lab = matrix(Settings(f"exec -s {READ_ONLY}", top=mode(FULL)), seconds=command_seconds(6))
    assert (await run_observed(lab, *lab.settings.args))["verdict"] == "match"
    (thread,) = lab.threads()
    resumed = await run_observed(lab, "exec", "resume", thread, prompt="[[again]] go")
    assert resumed["verdict"] == "mismatch"
    checked = lab.agentdash("check")
    assert checked.returncode == 1
    assert "resume-dropped-policy (wider)" in checked.stdout
    line = (lab.home / "config.toml").read_text("utf-8").splitlines().index(mode(FULL).strip()) + 1
    assert f"{lab.home}/config.toml:{line}: {mode(FULL).strip()}" in checked.stdout


_ANSWER: Final = '{"outcome": "%s", "risk_level": "low", "user_authorization": "high", "rationale": "x"}'


@pytest.mark.parametrize("outcome", ["allow", "deny"])
async def test_command_that_an_automatic_reviewer_lets_out(outcome: str, matrix: OpenLab) -> None:
    """openai/codex#36570: `-s read-only`, and a command that was allowed to leave it writes the home."""
    reviewed = "-c approvals_reviewer=auto_review -c approval_policy=on-request"
    lab = matrix(Settings(f"exec -s {READ_ONLY} {reviewed}"))
    command, answer = lab.model.script["first"]
    lab.model.script = {
        "first": [{**command, "escalate": "May I?"}, answer],
        "reviewer": [{"say": _ANSWER % outcome}],
    }
    assert lab.run(*lab.settings.args)[0] == 0
    threads = lab.document("check")["threads"]
    (thread,) = [each for each in threads if each["id"] in lab.threads() and not each["parent"]]
    is_out = outcome == "allow"
    assert any(truth.may.get("home") for truth in lab.truths()) is is_out
    assert [each["kind"] for each in thread["findings"]] == ["auto-approved-outside"] * is_out
    assert thread["policies"][0]["reviewer"] == "auto_review"
