"""Findings of threads: observations against policies, parents and mounts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.denials import PathKind
from agentdash.model.layers import DifferingField
from agentdash.model.policy import Network, Policy, PolicyRule
from agentdash.model.process import Kernel
from agentdash.model.state_paths import Mount
from agentdash.model.worker import Sandbox, Worker
from tests.unit.story import (
    CHILD,
    CWD,
    FULL,
    HOST,
    SANDBOXED,
    WORKSPACE,
    T,
    begun,
    called,
    done,
    ended,
    held,
    polled,
    process,
    snapshot_after,
    worker,
)

ONLINE = replace(WORKSPACE, network=Network.ON)
PROBE = 'echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; echo "sandbox=${CODEX_SANDBOX:-}"'
NETWORK = {"CODEX_SANDBOX_NETWORK_DISABLED": "1"}
CUT, OPEN_NET = SANDBOXED, replace(SANDBOXED, net=HOST.net)
CODEX = process(50, started=90.0, agent="codex")


def printed(flag: str, sandbox: str = "", call: str = "c1", at: float = 102.0) -> list[e.Event]:
    return [called(call, PROBE, at=at), ended(call, f"flag={flag}\nsandbox={sandbox}\n", at=at)]


def live(
    kernel: Kernel, *above: e.Event, parent: int = 50, call: str | None = "c1", **env: str
) -> list[e.Event]:
    """A process of a command, below a Codex or below what stands between them."""
    env |= {"CODEX_THREAD_ID": T} | ({"CODEX_TOOL_CALL_ID": call} if call else {})
    host = e.HostSeen(at=90, platform="linux", kernel=HOST)
    return [
        host,
        *(above or (CODEX,)),
        process(77, parent, started=104.0, kernel=kernel, env=env),
        *held(110),
    ]


def set_later(policy: Policy, at: float = 105.0, line: int = 8, origin: str = "turn_context") -> e.Event:
    return e.PolicySet(thread=T, at=at, line=line, policy=policy, origin=origin, cwd=CWD)


def kinds(sandbox: Sandbox) -> list[str]:
    return [finding.kind.value for finding in sandbox.findings]


def differing_fields(sandbox: Sandbox) -> list[DifferingField]:
    """Return the cells that findings name which are more than information."""
    return [field for found in sandbox.findings if found.severity != "info" for field in found.fields]


def test_seatbelt_on_macos_is_no_finding() -> None:
    story = begun()
    story[0] = replace(story[0], cwd="/Users/dev/project")
    story[2] = replace(story[2], cwd="/Users/dev/project")
    assert worker(story, printed("1", "seatbelt"), done(), polled(110)).sandbox.verdict == "match"


@pytest.mark.parametrize(
    ("policy", "kernel", "env", "expected", "direction"),
    [
        (WORKSPACE, CUT, NETWORK, [], None),
        (WORKSPACE, OPEN_NET, NETWORK, [], None),
        (FULL, HOST, NETWORK, ["stale-network-flag"], "label"),
        (FULL, Kernel(), NETWORK, ["stale-network-flag"], "narrower"),
        (ONLINE, CUT, NETWORK, ["network-cut"], "narrower"),
        (FULL, OPEN_NET, {}, ["nested-sandbox"], "narrower"),
        (WORKSPACE, HOST, NETWORK, ["network-open", "filesystem-wider"], "wider"),
        (ONLINE, CUT, {"CODEX_NETWORK_PROXY_ACTIVE": "1"}, [], None),
        (replace(WORKSPACE, network=Network.MEDIATED), CUT, {}, [], None),
    ],
)
def test_live_processes(
    policy: Policy, kernel: Kernel, env: dict[str, str], expected: list[str], direction: str | None
) -> None:
    found = worker(begun(policy=policy), called(), live(kernel, **env)).sandbox
    assert kinds(found) == expected
    assert direction is None or found.findings[0].direction == direction


# ---------------------------------------------------------------- what is compared, and with what


def test_observations_of_one_cause_are_one_finding_that_quotes_both_sides() -> None:
    many = [x for i in range(9) for x in printed("1", call=f"c{i}", at=102.0 + i)]
    (finding,) = worker(begun(policy=FULL), many, done(at=120), polled(130)).sandbox.findings
    assert (finding.count, finding.since, finding.last) == (9, 102.0, 110.0)
    assert finding.configured == "files unrestricted, network on, approval never"
    assert "flag=1" in finding.got
    assert "turn_context, line 3" in finding.evidence[0].text
    assert finding.remedy is not None
    assert finding.remedy.text == '[shell_environment_policy]\nexclude = ["CODEX_SANDBOX*"]'
    (finding,) = worker(begun(policy=FULL), printed("1"), live(HOST, **NETWORK)).sandbox.findings
    assert (finding.kind, finding.direction, finding.count) == ("stale-network-flag", "label", 2)
    assert {x.source for x in finding.evidence} == {"rollout", "output", "environment", "process", "kernel"}


def test_observation_is_compared_with_the_policy_then() -> None:
    """Network was off when the flag was seen, and is on now: of that nothing was observed yet."""
    later = set_later(ONLINE, origin="thread_settings_applied")
    sandbox = worker(begun(), printed("1"), done(at=104), later, polled(110)).sandbox
    assert (sandbox.verdict, differing_fields(sandbox)) == ("unverified", [])
    again = set_later(WORKSPACE, at=106, line=9)
    assert worker(begun(), printed("1"), done(at=104), later, again, polled(110)).sandbox.verdict == "match"
    sandbox = worker(begun(), printed(""), done(at=104), later, polled(110)).sandbox
    (field,) = differing_fields(sandbox)
    assert (field.expected, field.actual, field.reference) == ("1", "unset", "earlier")
    assert (field.expected_at, field.actual_at) == (100.0, 102.0)
    assert sandbox.got.under_earlier_policy


def test_a_choice_during_a_turn_counts_from_its_end() -> None:
    """`/permissions` of 0.169: the commands of the turn that runs keep their sandbox, whenever they start."""
    chosen = set_later(FULL, at=100.5, line=4, origin="thread_settings_applied")
    turn = (begun(), chosen, printed("1"))
    during = worker(*turn, polled(103)).sandbox
    assert (during.verdict, during.findings, during.configured) == ("match", (), WORKSPACE)
    after = worker(*turn, done(at=104), polled(110)).sandbox
    assert (after.verdict, differing_fields(after), after.configured) == ("unverified", [], FULL)
    next_turn = e.TurnStarted(thread=T, at=105, line=10)
    assert worker(*turn, next_turn, polled(110)).sandbox.configured == FULL  # the end of the turn is lost


@pytest.mark.parametrize("call", ["u9", None])
def test_commands_of_the_user_and_without_a_call_are_not_compared(call: str | None) -> None:
    assert worker(begun(), live(HOST, call=call)).sandbox.findings == ()
    own = replace(called("u1", PROBE, at=102.0), by_user=True)
    sandbox = worker(begun(), own, ended("u1", "flag=\nsandbox=\n"), polled(110)).sandbox
    assert (sandbox.findings, sandbox.verdict) == ((), "unverified")


def test_possible_retry_is_information() -> None:
    story = (begun(policy=replace(WORKSPACE, approval="on-failure")), called(), live(HOST, **NETWORK))
    found = worker(*story).sandbox
    assert (found.verdict, {f.severity for f in found.findings}) == ("match", {"info"})


# ---------------------------------------------------------------- escalations


@pytest.mark.parametrize(
    ("policy", "kernel", "env", "expected"),
    [
        (WORKSPACE, HOST, NETWORK, ["escalated-flag-left"]),
        (WORKSPACE, SANDBOXED, NETWORK, ["escalated-not-host"]),
        (ONLINE, HOST, NETWORK, ["stale-network-flag"]),
    ],
)
def test_allowed_escalation(policy: Policy, kernel: Kernel, env: dict[str, str], expected: list[str]) -> None:
    assert kinds(worker(begun(policy=policy), called(ask=True), live(kernel, **env)).sandbox) == expected


def test_prefix_rule_of_an_escalation_covers_later_commands() -> None:
    wish = e.Escalation("escalated", "to push", ("git", "push"))
    first = replace(called("c0", "git push", at=101.0), escalation=wish)
    later = called("c1", "git push --tags", at=103)
    found = worker(begun(), first, ended("c0", at=102), later, live(HOST, **NETWORK)).sandbox
    assert (found.verdict, found.findings) == ("unverified", ())
    assert "the prefix_rule of call c0 may have let out" in found.unread[-1]


# ---------------------------------------------------------------- launchers, mounts, and what is around


def launched(
    policy: Policy,
    *argv: str,
    kernel: Kernel = SANDBOXED,
    before: tuple[e.Event, ...] = (),
    **env: str,
) -> list[str]:
    """The kinds of a command below a launcher."""
    above = (CODEX, process(60, 50, started=100.0, argv=argv))
    env = env or NETWORK
    return kinds(
        worker(begun(policy=policy), *before, called(), live(kernel, *above, parent=60, **env)).sandbox
    )


def bwrap(*more: str) -> tuple[str, ...]:
    return ("bwrap", "--ro-bind", "/", "/", "--bind", CWD, CWD, "--bind", "/tmp", "/tmp", *more, "--", "make")


def test_launcher_applies_the_policy_or_less_or_more() -> None:
    """Less: as when a child's split policies are those of its parent before it was given more (0.114)."""
    bigger = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/srv", "write")))
    assert launched(WORKSPACE, *bwrap("--unshare-net")) == []
    assert launched(ONLINE, *bwrap(), kernel=OPEN_NET, PATH="/bin") == []
    assert launched(FULL, *bwrap("--unshare-net"), kernel=Kernel()) == ["network-cut", "filesystem-narrower"]
    assert launched(bigger, *bwrap("--unshare-net")) == ["filesystem-narrower"]
    assert launched(WORKSPACE, *bwrap("--bind", "/srv", "/srv", "--unshare-net")) == ["filesystem-wider"]
    assert launched(WORKSPACE, *bwrap(), kernel=OPEN_NET) == ["network-open"]


def test_what_codex_tries_before_a_command_is_none() -> None:
    """As a shell's command `true` has: Codex's helper stands between it and bubblewrap."""
    mounts = ("bwrap", "--as-pid-1", "--tmpfs", "/", "--ro-bind", "/usr", "/usr", "--unshare-net")
    assert launched(WORKSPACE, *mounts, "--", "/usr/bin/true") == []
    helper = ("--", "/h/codex-linux-sandbox", "--apply-seccomp-then-exec", "--", "true")
    assert launched(WORKSPACE, *mounts, *helper) == ["filesystem-narrower"]


def test_temporary_directory_by_its_path_is_that_of_the_policy() -> None:
    """Codex 0.145 gives bubblewrap the path, the policy has `$TMPDIR`."""
    own = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("$TMPDIR", "write")))
    scratch = bwrap("--bind", "/scratch/me", "/scratch/me", "--unshare-net")
    for tmpdir in ("/scratch/me", "/scratch/me/", "/scratch/a-link"):
        assert launched(own, *scratch, **NETWORK, TMPDIR=tmpdir) == []
        assert launched(WORKSPACE, *scratch, **NETWORK, TMPDIR=tmpdir) == ["filesystem-wider"]
    more = (*scratch[:-2], "--bind", "/srv", "/srv", *scratch[-2:])
    assert launched(own, *more, **NETWORK, TMPDIR="/scratch/me") == ["filesystem-wider"]


@pytest.mark.parametrize(
    ("link", "is_one"), [("/home/dev/board", True), ("/home", True), ("/home/dev/boa", False)]
)
def test_root_that_is_a_symbolic_link_is_bound_at_its_target(link: str, is_one: bool) -> None:
    linked = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/home/dev/board", "write")))
    argv = bwrap("--bind", "/data/board", "/data/board", "--unshare-net")
    seen = e.PathsSeen(at=99, paths=((link, PathKind.LINK),))
    found = launched(linked, *argv, before=(seen,))
    assert found == ([] if is_one else ["filesystem-narrower", "filesystem-wider"])


def test_codex_inside_a_sandbox_and_a_container_around_both() -> None:
    around = process(40, started=80.0, argv=bwrap("--unshare-net"))
    inside = process(50, 40, started=90.0, agent="codex", kernel=SANDBOXED)
    assert kinds(worker(begun(policy=FULL), called(), live(SANDBOXED, around, inside)).sandbox) == [
        "nested-sandbox"
    ]
    container = replace(SANDBOXED, no_new_privs=False)
    codex = process(50, started=90.0, agent="codex", kernel=container)
    assert worker(begun(policy=FULL), called(), live(container, codex)).sandbox.verdict == "match"


BOUND = (
    Mount(1, 0, "/", read_only=True),
    Mount(2, 1, CWD),
    Mount(3, 1, "/tmp"),
    Mount(4, 1, "/dev", fstype="tmpfs"),
)
DATA = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/srv/data", "write")))


@pytest.mark.parametrize(
    ("policy", "mounts", "expected"),
    [
        (WORKSPACE, BOUND, []),
        (DATA, BOUND, ["filesystem-narrower"]),
        pytest.param(DATA, (*BOUND, Mount(5, 1, "/mnt/disk/data")), [], id="perhaps a link to it"),
        (WORKSPACE, (Mount(1, 0, "/"), *BOUND[1:]), ["filesystem-wider"]),
    ],
)
def test_mounts(policy: Policy, mounts: tuple[Mount, ...], expected: list[str]) -> None:
    seen = e.MountsSeen(at=103, namespace=2, mounts=mounts)
    story = (begun(policy=policy), called(), seen, live(SANDBOXED, HOME="/home/dev", **NETWORK))
    assert kinds(worker(*story).sandbox) == expected


# ---------------------------------------------------------------- parents and children, before and after


def family(parent: Policy, child: Policy, *more: e.Event) -> Worker:
    """The child of a family."""
    return snapshot_after(
        begun(policy=parent), begun(CHILD, at=104.0, policy=child, parent=T), *more, polled(110)
    ).workers[1]


@pytest.mark.parametrize(
    ("parent", "child", "direction"),
    [
        (WORKSPACE, replace(WORKSPACE, approval="never"), None),
        (FULL, WORKSPACE, "narrower"),
        (WORKSPACE, ONLINE, "wider"),
        (WORKSPACE, DATA, "wider"),
    ],
)
def test_child_policy_drift(parent: Policy, child: Policy, direction: str | None) -> None:
    drift = [f.direction for f in family(parent, child).sandbox.findings if f.kind == "child-policy-drift"]
    assert drift == ([direction] if direction else [])


def test_child_is_not_compared_with_a_later_policy_or_the_directory_of_its_parent() -> None:
    later = [replace(event, at=106.0) if isinstance(event, e.PolicySet) else event for event in begun()]
    child = begun(CHILD, at=104.0, policy=FULL, parent=T)
    assert snapshot_after(later, child, polled(110)).workers[1].sandbox.findings == ()
    rules = (PolicyRule("/", "read"), PolicyRule("/home/dev/tree", "write"), PolicyRule("/tmp", "write"))
    story = begun(CHILD, at=104.0, policy=replace(WORKSPACE, rules=rules), parent=T)
    story[0], story[2] = replace(story[0], cwd="/home/dev/tree"), replace(story[2], cwd="/home/dev/tree")
    assert snapshot_after(begun(), story, polled(110)).workers[1].sandbox.findings == ()


@pytest.mark.parametrize("online_first", [True, False])
def test_child_got_less_is_of_commands_while_the_network_was_granted(online_first: bool) -> None:
    """A child whose network is turned on, or off, between two commands."""
    first, second = (ONLINE, WORKSPACE) if online_first else (WORKSPACE, ONLINE)
    story = begun(CHILD, at=100.5, policy=first, parent=T)
    output = "CODEX_SANDBOX_NETWORK_DISABLED=1\nPATH=/bin\n"
    child = [called("k1", "env", at=102.0), ended("k1", output, at=102.5), set_later(second, at=103.0)]
    parent = [called("p1", "env", at=102.0), ended("p1", "PATH=/bin\n", at=102.5)]
    child = [replace(event, thread=CHILD) for event in child]
    found = snapshot_after(begun(policy=ONLINE), parent, story, child, polled(110)).workers[1]
    assert ("child-got-less" in kinds(found.sandbox)) == online_first


PROTECTED = (*WORKSPACE.rules, PolicyRule(f"{CWD}/.git", "read"))


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (FULL, "from workspace, no network to full access"),
        (replace(WORKSPACE, approval="never"), "(approval: on-request to never)"),
        (replace(WORKSPACE, rules=PROTECTED), "(paths protected inside the writable ones)"),
        (replace(WORKSPACE, approval=None), None),
        (replace(WORKSPACE, rules=WORKSPACE.rules[::-1]), None),
    ],
)
def test_policy_change_names_what_changed_in_what_is_stated(policy: Policy, said: str | None) -> None:
    found = worker(begun(policy=WORKSPACE), set_later(policy, at=101, line=6), done(), polled(110)).sandbox
    assert [f.message.partition(": commands are held")[0] for f in found.findings] == (
        [f"Its policy changed {said}"] if said else []
    )


# ---------------------------------------------------------------- what stood in the way


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ("bwrap: setting up uid map: Permission denied", "codex doctor"),
        (
            "bwrap: execvp codex-linux-sandbox: Permission denied\n",
            "end this Codex, then go on in a new one: codex resume ID",
        ),
    ],
)
def test_sandbox_cannot_start(output: str, remedy: str) -> None:
    """The second is of a Codex 0.169.0 that lost its helper; resumed, it ran commands again."""
    broken = [x for i in range(3) for x in (called(f"c{i}"), ended(f"c{i}", output, exit_code=1))]
    found = worker(begun(), broken, done(), polled(110))
    (finding,) = found.sandbox.findings
    assert (finding.kind, finding.count, found.state) == ("sandbox-cannot-start", 3, "blocked-sandbox")
    assert finding.remedy is not None
    assert finding.remedy.text == remedy


def test_denied_under_full_access() -> None:
    refused = (
        called(text="tmux new-window"),
        ended("c1", "error connecting to /tmp/tmux-0/default (Operation not permitted)", exit_code=1),
    )
    assert worker(begun(policy=FULL), refused, done(), polled(110)).sandbox.findings == ()
    marked = worker(begun(policy=FULL), printed("1", call="c0"), refused, done(), polled(110))
    assert set(kinds(marked.sandbox)) == {"stale-network-flag", "denied-under-full-access"}


# ---------------------------------------------------------------- the cells that differ
