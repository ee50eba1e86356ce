"""What was asked for is compared with the policy that a thread states first after that, and nothing else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentdash.engine.judge.findings.command_sandbox import auto_approved
from agentdash.engine.judge.findings.policies import ParentPolicy, request_findings
from agentdash.engine.reduce.fleet import reduce
from agentdash.model import events as e
from agentdash.model.evidence import EvidenceSource
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.fleet import Fleet, FleetLinks, ThreadOwner, awaits_request
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Process, ProcessKey
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.thread import Thread
from tests.unit.story import begun, called, ended

READ_ONLY = Policy(Filesystem.READ_ONLY, Network.OFF, (PolicyRule("/", "read"),), approval="never")
WORKSPACE = Policy(
    Filesystem.WORKSPACE,
    Network.OFF,
    (PolicyRule("/", "read"), PolicyRule("/w", "write")),
    approval="never",
)
FULL = Policy(Filesystem.UNRESTRICTED, Network.ON, approval="never", enforced_by="nobody")


def thread(*policies: tuple[float, Policy]) -> Thread:
    """Return a thread that states these policies at these times."""
    events: list[e.Event] = [e.ThreadStarted(at=1.0, thread="t", cwd="/w", version="0.169.0")]
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


MANAGED = "/etc/codex/requirements.toml"
SCREEN = replace(asked(READ_ONLY), is_fixed=False)
EXPLAINED = given(SCREEN, FULL, RequestLayer.MANAGED, MANAGED)
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
