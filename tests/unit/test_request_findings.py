"""What was asked for is compared with the policy that a thread states first after that, and nothing else.

Where it was not given, the setting that decides is named with file and line, in a TUI as in `codex exec`, and
no remedy is what was asked for already.
"""

import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from agentdash.agents.codex.config.argv import parse_options
from agentdash.agents.codex.config.reader import read_request
from agentdash.engine.judge.findings.command_sandbox import auto_approved
from agentdash.engine.judge.findings.policies import ParentPolicy, newest_request, request_findings
from agentdash.engine.judge.findings.remedies import remedy_for
from agentdash.engine.reduce.fleet import reduce
from agentdash.model import events as e
from agentdash.model.denials import Denial, PathFacts, PathKind, Remedy
from agentdash.model.evidence import EvidenceSource
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.fleet import Fleet, FleetLinks, ThreadOwner, awaits_request
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Process, ProcessKey
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.thread import Thread
from tests.unit.story import begun, called, ended

READ_ONLY = Policy(Filesystem.READ_ONLY, Network.OFF, (PolicyRule("/", "read"),), approval="on-request")
WORKSPACE = Policy(
    Filesystem.WORKSPACE,
    Network.OFF,
    (PolicyRule("/", "read"), *(PolicyRule(root, "write") for root in ("/w", "/tmp", "$TMPDIR"))),
    approval="on-request",
)
REQUIREMENTS = "/etc/codex/requirements.toml"
FULL = Policy(Filesystem.UNRESTRICTED, Network.ON, approval="on-request", enforced_by="nobody")


def thread(*policies: tuple[float, Policy]) -> Thread:
    """Return a thread that states these policies at these times."""
    events: list[e.Event] = [e.ThreadStarted(at=1.0, thread="t", cwd="/w", version="0.171.0")]
    events += [
        e.PolicySet(at=at, thread="t", line=number, policy=policy, origin="turn_context")
        for number, (at, policy) in enumerate(policies, 2)
    ]
    return reduce(Fleet(), events).threads["t"]


def asked(
    policy: Policy, layer: RequestLayer = RequestLayer.ARGV, since: float = 5.0, file: str | None = None
) -> Requested:
    fields = (RequestField.FILESYSTEM, RequestField.NETWORK)
    origins = tuple(RequestOrigin(field, layer, "-s x", file, 3 if file else None) for field in fields)
    return Requested(policy=policy, origins=origins, since=since)


def given(request: Requested, policy: Policy, layer: RequestLayer, file: str | None) -> Requested:
    return replace(request, given=policy, given_origins=asked(policy, layer, file=file).origins)


def kinds(found: Thread, *requests: Requested) -> list[str]:
    return [finding.kind for finding in request_findings(found, requests)]


def only(found: Thread, *requests: Requested) -> Finding:
    (finding,) = request_findings(found, requests)
    return finding


SCREEN = replace(asked(READ_ONLY), is_fixed=False)
EXPLAINED = given(SCREEN, FULL, RequestLayer.MANAGED, REQUIREMENTS)
TYPED = replace(asked(READ_ONLY), changed_files=("/c",))
WIDER = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/srv", "write")))
ADDED = RequestOrigin(RequestField.WRITABLE_ROOTS, RequestLayer.ARGV, "--add-dir /srv")
ADD_DIR = replace(asked(WIDER), origins=(ADDED,))
ASKED_FOR, NOT_GIVEN = list[str](), ["requested-not-configured"]


@pytest.mark.parametrize(
    ("told", "request_", "expected"),
    [
        ([(6.0, READ_ONLY)], asked(READ_ONLY), ASKED_FOR),
        ([(6.0, FULL)], asked(READ_ONLY), NOT_GIVEN),
        pytest.param([(2.0, FULL)], asked(READ_ONLY), ASKED_FOR, id="stated before the process"),
        pytest.param([(2.0, FULL), (6.0, FULL)], asked(READ_ONLY), NOT_GIVEN, id="stated again"),
        pytest.param([(6.0, FULL)], Requested(policy=READ_ONLY, since=5.0), ASKED_FOR, id="from nowhere"),
        pytest.param([(6.0, Policy())], asked(READ_ONLY), ASKED_FOR, id="unknown"),
        pytest.param([(6.0, FULL)], SCREEN, ASKED_FOR, id="perhaps chosen on the screen"),
        pytest.param([(6.0, FULL)], EXPLAINED, NOT_GIVEN, id="and explained by a setting"),
        pytest.param([(6.0, FULL)], TYPED, NOT_GIVEN, id="typed, whatever was written since"),
        pytest.param(
            [(6.0, FULL)],
            replace(asked(READ_ONLY, RequestLayer.USER, file="/c"), changed_files=("/c",)),
            ASKED_FOR,
            id="in a file that was written since",
        ),
        ([(6.0, WORKSPACE)], ADD_DIR, NOT_GIVEN),
        ([(6.0, WIDER)], ADD_DIR, ASKED_FOR),
    ],
)
def test_what_is_compared(told: list[tuple[float, Policy]], request_: Requested, expected: list[str]) -> None:
    assert kinds(thread(*told), request_) == expected


def test_wider_and_narrower() -> None:
    wider = only(thread((6.0, FULL)), asked(READ_ONLY))
    narrower = only(thread((6.0, READ_ONLY)), asked(FULL))
    assert (wider.direction, wider.severity) == ("wider", "danger")
    assert (narrower.direction, narrower.severity) == ("narrower", "warning")
    assert [(field.name, field.expected, field.actual) for field in wider.fields] == [
        ("files", "read-only", "unrestricted"),
        ("network", "off", "on"),
    ]
    assert only(thread((6.0, WORKSPACE)), ADD_DIR).fields[0].actual == "workspace, not /srv"


# ---------------------------------------------------------------- resumed threads, and roles


def resumed(policy: Policy, **changes: object) -> Requested:
    request = asked(policy, RequestLayer.USER, since=20.0, file="/h/config.toml")
    return replace(request, **({"resumes": True, "files_written": 0.5} | changes))


TYPED_AGAIN = replace(asked(FULL, since=20.0), resumes=True)
CONFIGURED = asked(READ_ONLY, RequestLayer.USER, file="/h/config.toml")


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param((asked(READ_ONLY), resumed(FULL)), ["resume-dropped-policy"], id="typed, and lost"),
        pytest.param((resumed(FULL),), ["resume-dropped-policy"], id="of a process that was not seen"),
        pytest.param((resumed(FULL, files_written=10.0),), [], id="perhaps of the configuration"),
        pytest.param((asked(READ_ONLY), TYPED_AGAIN), [], id="asked for again"),
        pytest.param((CONFIGURED, resumed(FULL)), [], id="the configuration was changed"),
    ],
)
def test_resumed_thread_that_loses_its_policy(requests: tuple[Requested, ...], expected: list[str]) -> None:
    found = list(request_findings(thread((6.0, READ_ONLY), (21.0, FULL)), requests))
    assert [finding.kind.value for finding in found] == expected
    for finding in found:
        assert (finding.direction, "/h/config.toml:3" in finding.message) == ("wider", True)
        assert {field.reference for field in finding.fields} == {"before"}


def test_role_that_has_the_policy_of_its_parent() -> None:
    above = thread((2.0, WORKSPACE))
    parent = ParentPolicy(policies=above.policies, observations=())
    request = asked(READ_ONLY, RequestLayer.ROLE, file="/h/agents/tester.toml")
    (finding,) = request_findings(thread((6.0, WORKSPACE)), (request,), parent)
    assert finding.kind == FindingKind.ROLE_POLICY_IGNORED
    assert "Decided by the policy of the thread that spawned it." in finding.message


@pytest.mark.parametrize(
    ("policy", "reviewer", "outcome", "is_found"),
    [
        (READ_ONLY, "auto_review", "ended", True),
        (READ_ONLY, "auto_review", "refused-by-user", False),
        (READ_ONLY, "user", "ended", False),
        (WORKSPACE, "auto_review", "ended", False),
    ],
)
def test_reviewer_that_lets_a_command_out(
    policy: Policy, reviewer: str, outcome: e.Outcome, *, is_found: bool
) -> None:
    reviewed = replace(policy, reviewer=reviewer, approval="on-request")
    events = [
        *begun(policy=reviewed),
        called(text="gh pr list", ask=True),
        ended(outcome=outcome, exit_code=0 if outcome == "ended" else None),
    ]
    (found,) = reduce(Fleet(), events).threads.values()
    assert [each.kind for each in auto_approved(found)] == ["auto-approved-outside"] * is_found


# ---------------------------------------------------------------- before the request is read


def live_fleet(*requests: Requested, started: float = 5.0, now: float = 7.0) -> Fleet:
    """Return a fleet with a thread that a process runs."""
    key = ProcessKey(7, started)
    owner = ThreadOwner(pid=7, by="x", source=EvidenceSource.PROCESS, key=key)
    return Fleet(
        threads={"t": thread((6.0, READ_ONLY))},
        processes={key: Process(key, 1, "codex", agent="codex")},
        links=FleetLinks(owners={"t": owner}),
        processes_at=now,
        requests={"t": requests} if requests else {},
    )


def awaits(fleet: Fleet) -> bool:
    return awaits_request(fleet, fleet.threads["t"])


def test_the_request_of_a_process_that_has_just_started_is_awaited() -> None:
    assert awaits(live_fleet())
    assert not awaits(live_fleet(asked(READ_ONLY, since=5.0)))
    assert awaits(live_fleet(asked(READ_ONLY, since=2.0)))  # of the process before
    assert not awaits(live_fleet(now=60.0))  # it cannot be read
    assert not awaits(Fleet(threads={"t": thread((6.0, READ_ONLY))}))  # there are files only


def test_the_request_of_a_process_that_has_ended_at_once_is_not_awaited() -> None:
    young = {"t": replace(thread((6.0, READ_ONLY)), created_at=6.0)}
    left = replace(live_fleet(asked(READ_ONLY, since=5.0)), threads=young, links=FleetLinks())
    assert not awaits(left)
    assert awaits(replace(left, requests={}))


# ---------------------------------------------------------------- the setting that decides, and remedies

PROFILE = replace(WORKSPACE, profile=":workspace")
ONLY_READ = 'allowed_sandbox_modes = ["read-only"]\n'
NOT_FULL = 'allowed_sandbox_modes = ["read-only", "workspace-write"]\n'
ONLY_ASK = 'allowed_approval_policies = ["on-request"]\n'
MODE = 'sandbox_mode = "workspace-write"\n'
FORCED = (
    'default_permissions = "{}"\n[allowed_permission_profiles]\n":workspace" = true\n":read-only" = true\n'
)
ONE = 'default_permissions = ":read-only"\n[allowed_permission_profiles]\n":read-only" = true\n'
ALL = FORCED.format(":danger-full-access") + '":danger-full-access" = true\n'
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


def asked_by(case: Case, root: Path, version: str = "0.171.0") -> Requested:
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


def remedies(found: Thread, request: Requested) -> list[Remedy]:
    """Return the remedies of denials in and beside the workspace, and of the network."""
    facts = PathFacts(
        kinds={"/w": PathKind.DIRECTORY, "/srv/x": PathKind.DIRECTORY},
        workspaces=("/w",),
        request=newest_request(found, (request,)),
    )
    denials = (
        *map(unwritable, ("/w/a", "/srv/x/a")),
        Denial("network", "connect", "certain", "x", "host.org"),
    )
    known = (remedy_for(denial, found.policies[-1].policy, facts) for denial in denials)
    return [remedy for remedy in known if remedy is not None]


def unwritable(path: str) -> Denial:
    return Denial("filesystem", "write", "certain", "x", path)


@pytest.mark.parametrize("case", CASES)
def test_the_setting_that_decides_is_named(case: Case, tmp_path: Path) -> None:
    request = asked_by(case, tmp_path)
    assert not request.is_fixed
    found: list[Finding] = list(request_findings(thread((6.0, case.told)), (request,)))
    assert [finding.kind for finding in found] == ["requested-not-configured"] * bool(case.winner)
    for finding in found:
        assert f"{case.winner}: " in finding.message
        assert {field.name for field in finding.fields} == set(case.parts)


@pytest.mark.parametrize("case", CASES)
def test_no_remedy_was_asked_for_already(case: Case, tmp_path: Path) -> None:
    for remedy in remedies(thread((6.0, case.told)), asked_by(case, tmp_path)):
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


NEW_DIR = Case("-s workspace-write --add-dir /srv/x", WORKSPACE, "")
WRITTEN = Case("", WORKSPACE, "", user=MODE + '[sandbox_workspace_write]\nwritable_roots = ["/srv/x"]\n')


@pytest.mark.parametrize(
    ("case", "kinds", "reason"),
    [
        (NEW_DIR, {}, "argv: --add-dir /srv/x was not kept"),
        (
            NEW_DIR,
            {"/srv/x": PathKind.MISSING, "/srv": PathKind.DIRECTORY},
            "argv: --add-dir /srv/x names a directory that does not exist: create it, and start again",
        ),
        (WRITTEN, {}, 'sandbox_workspace_write.writable_roots = ["/srv/x"] was written after its start'),
    ],
)
def test_directory_that_was_asked_for_already(
    case: Case, kinds: dict[str, PathKind], reason: str, tmp_path: Path
) -> None:
    asked_by(case, tmp_path)
    found = read_request(parse_options(shlex.split(case.args)), "/h", "/w", "0.171.0", tmp_path, since=5.0)
    facts = PathFacts(kinds=kinds, workspaces=("/w",), request=found)
    remedy = remedy_for(unwritable("/srv/x/a"), case.told, facts)
    assert remedy.once is None
    assert reason in remedy.text
