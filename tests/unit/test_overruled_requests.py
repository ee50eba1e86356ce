"""What was asked for and not given: the setting that decides is named with file and line, in a TUI as in
`codex exec`, and no remedy is what was asked for already."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from agentdash.agents.codex.config.argv import parse_options
from agentdash.agents.codex.config.reader import read_request
from agentdash.engine.judge.findings.policies import newest_request, request_findings
from agentdash.engine.judge.findings.remedies import remedy_for
from agentdash.engine.reduce.fleet import reduce
from agentdash.model import events as e
from agentdash.model.denials import Denial, PathFacts, PathKind, Remedy
from agentdash.model.findings import Finding
from agentdash.model.fleet import Fleet
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.requested import Requested
from agentdash.model.thread import Thread

READ_ONLY = Policy(Filesystem.READ_ONLY, Network.OFF, (PolicyRule("/", "read"),), approval="on-request")
WORKSPACE = Policy(
    Filesystem.WORKSPACE,
    Network.OFF,
    (PolicyRule("/", "read"), *(PolicyRule(root, "write") for root in ("/w", "/tmp", "$TMPDIR"))),
    approval="on-request",
)
PROFILE = replace(WORKSPACE, profile=":workspace")
FULL = Policy(Filesystem.UNRESTRICTED, Network.ON, approval="on-request", enforced_by="nobody")
ONLY_READ = 'allowed_sandbox_modes = ["read-only"]\n'
NOT_FULL = 'allowed_sandbox_modes = ["read-only", "workspace-write"]\n'
ONLY_ASK = 'allowed_approval_policies = ["on-request"]\n'
MODE = 'sandbox_mode = "workspace-write"\n'
FORCED = (
    'default_permissions = "{}"\n[allowed_permission_profiles]\n":workspace" = true\n":read-only" = true\n'
)
ONE = 'default_permissions = ":read-only"\n[allowed_permission_profiles]\n":read-only" = true\n'
ALL = FORCED.format(":danger-full-access") + '":danger-full-access" = true\n'
REQUIREMENTS = "/etc/codex/requirements.toml"
FIRST = f"{REQUIREMENTS}:1"
MANAGED = "/etc/codex/managed_config.toml"


class Case(NamedTuple):
    """Something that was asked for, and what the thread was told."""

    args: str
    told: Policy
    winner: str
    """`FILE:LINE` of what decides; empty: nothing is to be found."""
    parts: tuple[str, ...] = ("files",)
    """What is not as asked for."""
    requirements: str = ""
    managed: str = ""
    user: str = ""
    project: str = ""
    profile: str = ""


OVERRULED = {
    "-s": Case("-s workspace-write", READ_ONLY, FIRST, requirements=ONLY_READ),
    "full access": Case("--yolo", READ_ONLY, FIRST, ("files", "network", "approval"),
                        requirements=NOT_FULL + ONLY_ASK),
    "project": Case("", READ_ONLY, FIRST, requirements=ONLY_READ, project=MODE),
    "profile": Case("-p x", READ_ONLY, FIRST, requirements=ONLY_READ, profile=MODE),
    "-a": Case("-a never", PROFILE, FIRST, ("approval",), requirements=ONLY_ASK),
    "managed approval": Case(
        "-a never", PROFILE, f"{MANAGED}:1", ("approval",), managed='approval_policy = "on-request"\n'
    ),
    "-c network": Case(
        "-s workspace-write -c sandbox_workspace_write.network_access=true", PROFILE, FIRST,
        ("network",), requirements=FORCED.format(":workspace"),
    ),
    "managed network": Case(
        "-s workspace-write -c sandbox_workspace_write.network_access=true", WORKSPACE, f"{MANAGED}:2",
        ("network",), managed="[sandbox_workspace_write]\nnetwork_access = false\n",
    ),
    "forced full access": Case(
        "-s read-only", replace(FULL, profile=":danger-full-access"), FIRST, ("files", "network"),
        requirements=ALL,
    ),
    "-c permissions": Case(
        "-c 'default_permissions=\":workspace\"'", replace(READ_ONLY, profile=":read-only"), FIRST,
        requirements=ONE,
    ),
}  # fmt: skip
"""Measured with a TUI of Codex 0.171.0 in a mount namespace: each of these policies was told."""
AS_ASKED = {
    "allowed": Case("-s workspace-write", WORKSPACE, "", requirements=NOT_FULL),
    "nothing is asked for": Case("", READ_ONLY, "", requirements=ONLY_READ + ONLY_ASK),
    "chosen on the screen": Case("-s workspace-write -a on-request", FULL, ""),
    "chosen on the screen, allowed": Case("-s workspace-write", READ_ONLY, "", requirements=NOT_FULL),
}  # fmt: skip
CASES = [pytest.param(case, id=name) for name, case in (OVERRULED | AS_ASKED).items()]


def asked(case: Case, root: Path, version: str = "0.171.0") -> Requested:
    """Return what a Codex with the files of a case is asked for."""
    trust = '[projects."/w"]\ntrust_level = "trusted"\n'
    for path, text in {
        "h/config.toml": case.user + trust,
        "h/x.config.toml": case.profile,
        "w/.codex/config.toml": case.project,
        "etc/codex/requirements.toml": case.requirements,
        "etc/codex/managed_config.toml": case.managed,
    }.items():
        if text:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, "utf-8")
    return replace(read_request(parse_options(shlex.split(case.args)), "/h", "/w", version, root), since=5.0)


def told(*policies: Policy) -> Thread:
    """Return a thread that states these policies one after the other."""
    events: list[e.Event] = [e.ThreadStarted(at=1.0, thread="t", cwd="/w", version="0.171.0")]
    events += [
        e.PolicySet(at=6.0 + number, thread="t", line=2 + number, policy=policy, origin="turn_context")
        for number, policy in enumerate(policies)
    ]
    return reduce(Fleet(), events).threads["t"]


def remedies(thread: Thread, request: Requested) -> list[Remedy]:
    """Return the remedies of denials in and beside the workspace, and of the network."""
    facts = PathFacts(
        kinds={"/w": PathKind.DIRECTORY, "/srv/x": PathKind.DIRECTORY},
        workspaces=("/w",),
        request=newest_request(thread, (request,)),
    )
    denials = (
        *map(unwritable, ("/w/a", "/srv/x/a")),
        Denial("network", "connect", "certain", "x", "host.org"),
    )
    found = [remedy_for(denial, thread.policies[-1].policy, facts) for denial in denials]
    return [remedy for remedy in found if remedy is not None]


def unwritable(path: str) -> Denial:
    return Denial("filesystem", "write", "certain", "x", path)


@pytest.mark.parametrize("case", CASES)
def test_the_setting_that_decides_is_named(case: Case, tmp_path: Path) -> None:
    request = asked(case, tmp_path)
    assert not request.is_fixed
    found: list[Finding] = list(request_findings(told(case.told), (request,)))
    assert [finding.kind for finding in found] == ["requested-not-configured"] * bool(case.winner)
    for finding in found:
        assert f"{case.winner}: " in finding.message
        assert {field.name for field in finding.fields} == set(case.parts)


@pytest.mark.parametrize("case", CASES)
def test_no_remedy_was_asked_for_already(case: Case, tmp_path: Path) -> None:
    for remedy in remedies(told(case.told), asked(case, tmp_path)):
        again = parse_options(shlex.split(remedy.once)[1:]) if remedy.once else None
        if again is None:
            continue
        repeated = read_request(again, "/h", "/w", "0.171.0", tmp_path)
        assert repeated.given is not None, remedy
        # what it asks for is given, and is more than the thread has
        assert repeated.policy.filesystem is repeated.given.filesystem, remedy
        assert repeated.policy.network is repeated.given.network, remedy
        parts = (case.told.filesystem, case.told.network, set(case.told.writable_roots))
        new = (repeated.given.filesystem, repeated.given.network, set(repeated.given.writable_roots))
        assert parts != new, remedy
        typed = {option.text for option in parse_options(shlex.split(case.args)).options}
        assert typed.isdisjoint(option.text for option in again.options), remedy


ADD_DIR = Case("-s workspace-write --add-dir /srv/x", WORKSPACE, "")
WRITTEN = Case("", WORKSPACE, "", user=MODE + '[sandbox_workspace_write]\nwritable_roots = ["/srv/x"]\n')


@pytest.mark.parametrize(
    ("case", "kinds", "reason"),
    [
        (ADD_DIR, {}, "argv: --add-dir /srv/x was not kept"),
        (
            ADD_DIR,
            {"/srv/x": PathKind.MISSING, "/srv": PathKind.DIRECTORY},
            "argv: --add-dir /srv/x names a directory that does not exist: create it, and start again",
        ),
        (WRITTEN, {}, 'sandbox_workspace_write.writable_roots = ["/srv/x"] was written after its start'),
    ],
)
def test_directory_that_was_asked_for_already(
    case: Case, kinds: dict[str, PathKind], reason: str, tmp_path: Path
) -> None:
    asked(case, tmp_path)
    found = read_request(parse_options(shlex.split(case.args)), "/h", "/w", "0.171.0", tmp_path, since=5.0)
    facts = PathFacts(kinds=kinds, workspaces=("/w",), request=found)
    remedy = remedy_for(unwritable("/srv/x/a"), case.told, facts)
    assert remedy is not None
    assert remedy.once is None
    assert reason in remedy.text
