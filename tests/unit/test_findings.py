"""Findings of threads: observations against policies, parents and mounts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.denials import PathKind, Remedy
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


def printed(flag: str, sandbox: str = "", call: str = "c1", at: float = 102.0) -> list[e.Event]:
    return [called(call, PROBE, at=at), ended(call, f"flag={flag}\nsandbox={sandbox}\n", at=at)]


def live(kernel: Kernel, **flags: str) -> list[e.Event]:
    env = {"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1", **flags}
    host = e.HostSeen(at=90, platform="linux", kernel=HOST)
    return [
        host,
        process(50, started=90.0, agent="codex"),
        process(77, 50, started=104.0, kernel=kernel, env=env),
        *held(110),
    ]


NETWORK = {"CODEX_SANDBOX_NETWORK_DISABLED": "1"}


@pytest.mark.parametrize(
    ("policy", "flag", "sandbox", "verdict", "kinds"),
    [
        (WORKSPACE, "1", "", "match", []),
        (ONLINE, "", "", "match", []),
        (FULL, "", "", "match", []),
        (FULL, "0", "", "match", []),
        (FULL, "1", "", "mismatch", ["stale-network-flag"]),
        (FULL, "1", "seatbelt", "mismatch", ["foreign-sandbox-flag", "stale-network-flag"]),
        (ONLINE, "1", "", "mismatch", ["stale-network-flag"]),
        (WORKSPACE, "", "", "mismatch", ["missing-network-flag"]),
        (WORKSPACE, "1", "seatbelt", "mismatch", ["foreign-sandbox-flag"]),
        (replace(FULL, network=Network.MEDIATED), "", "", "match", []),
        (Policy(), "1", "", "match", []),
    ],
)
def test_printed_flags(policy: Policy, flag: str, sandbox: str, verdict: str, kinds: list[str]) -> None:
    found = worker(begun(policy=policy), printed(flag, sandbox), done(), polled(110)).sandbox
    assert (found.verdict, sorted(f.kind for f in found.findings)) == (verdict, kinds)


def test_foreign_flag_where_no_policy_is_stated() -> None:
    unstated = [event for event in begun() if not isinstance(event, e.PolicySet)]
    (finding,) = worker(unstated, printed("1", "seatbelt"), done(), polled(110)).sandbox.findings
    assert (finding.kind, finding.configured) == ("foreign-sandbox-flag", "not stated")
    assert "Codex sets this on macOS alone" in finding.message


@pytest.mark.parametrize(
    ("policy", "kernel", "env", "kinds", "direction"),
    [
        (WORKSPACE, SANDBOXED, NETWORK, [], None),
        (ONLINE, replace(SANDBOXED, net=HOST.net), {}, [], None),
        (FULL, HOST, {}, [], None),
        (FULL, HOST, NETWORK, ["stale-network-flag"], "label"),
        (FULL, SANDBOXED, {}, ["network-cut"], "narrower"),
        (ONLINE, SANDBOXED, NETWORK, ["network-cut"], "narrower"),
        (FULL, replace(SANDBOXED, net=HOST.net), {}, ["nested-sandbox"], "narrower"),
        (WORKSPACE, HOST, {}, ["network-open", "filesystem-wider"], "wider"),
        (WORKSPACE, HOST, NETWORK, ["network-open", "filesystem-wider"], "wider"),
        (ONLINE, HOST, {}, ["filesystem-wider"], "wider"),
        (WORKSPACE, replace(SANDBOXED, net=HOST.net), NETWORK, [], None),
        (WORKSPACE, SANDBOXED, {}, [], None),
        (FULL, Kernel(), NETWORK, ["stale-network-flag"], "narrower"),
    ],
)
def test_live_processes(
    policy: Policy, kernel: Kernel, env: dict[str, str], kinds: list[str], direction: str | None
) -> None:
    found = worker(begun(policy=policy), called(), live(kernel, **env)).sandbox
    assert [f.kind for f in found.findings] == kinds
    assert direction is None or found.findings[0].direction == direction


def test_no_observation_is_unverified() -> None:
    assert worker(begun(), called(), ended(), done(), polled(110)).sandbox.verdict == "unverified"


def test_observations_of_one_cause_are_merged() -> None:
    many = [x for i in range(9) for x in printed("1", call=f"c{i}", at=102.0 + i)]
    (finding,) = worker(begun(policy=FULL), many, done(at=120), polled(130)).sandbox.findings
    assert (finding.count, finding.since, finding.last) == (9, 102.0, 110.0)


def test_printed_and_live_observations_are_merged() -> None:
    (finding,) = worker(begun(policy=FULL), printed("1"), live(HOST, **NETWORK)).sandbox.findings
    assert (finding.kind, finding.direction, finding.count) == ("stale-network-flag", "label", 2)
    assert {x.source for x in finding.evidence} == {"rollout", "output", "environment", "process", "kernel"}


def test_observation_is_compared_with_the_policy_then() -> None:
    """Network was off when the flag was seen, and is on now: of that nothing was observed yet."""
    later = e.PolicySet(thread=T, at=105, line=8, policy=ONLINE, origin="thread_settings_applied")
    sandbox = worker(begun(), printed("1"), done(at=104), later, polled(110)).sandbox
    assert (sandbox.verdict, differing_fields(sandbox)) == ("unverified", [])
    again = e.PolicySet(thread=T, at=106, line=9, policy=WORKSPACE, origin="turn_context")
    assert worker(begun(), printed("1"), done(at=104), later, again, polled(110)).sandbox.verdict == "match"


def test_a_choice_during_a_turn_counts_from_its_end() -> None:
    """`/permissions` of 0.169: the commands of the turn that runs keep their sandbox, whenever they start."""
    chosen = e.PolicySet(thread=T, at=100.5, line=4, policy=FULL, origin="thread_settings_applied")
    turn = (begun(), chosen, printed("1"))
    during = worker(*turn, polled(103)).sandbox
    assert (during.verdict, during.findings, during.configured) == ("match", (), WORKSPACE)
    after = worker(*turn, done(at=104), polled(110)).sandbox
    assert (after.verdict, differing_fields(after), after.configured) == ("unverified", [], FULL)
    next_turn = e.TurnStarted(thread=T, at=105, line=10, turn="turn-2")
    assert worker(*turn, next_turn, polled(110)).sandbox.configured == FULL  # the end of the turn is lost
    back = e.PolicySet(thread=T, at=100.7, line=4, policy=WORKSPACE, origin="thread_settings_applied")
    assert worker(begun(), chosen, back, done(at=104), polled(110)).sandbox.configured == WORKSPACE


def test_user_commands_are_not_compared() -> None:
    own = e.CallStarted(
        thread=T,
        at=102,
        line=5,
        call="u1",
        kind="command",
        tool="shell",
        text=PROBE,
        script=PROBE,
        by_user=True,
    )
    sandbox = worker(begun(), own, ended("u1", "flag=\nsandbox=\n"), polled(110)).sandbox
    assert (sandbox.findings, sandbox.verdict) == ((), "unverified")


def test_finding_quotes_both_sides() -> None:
    (finding,) = worker(begun(policy=FULL), printed("1"), done(), polled(110)).sandbox.findings
    assert finding.configured == "files unrestricted, network on, approval never"
    assert "flag=1" in finding.got
    assert "turn_context, line 3" in finding.evidence[0].text
    assert finding.remedy is not None
    assert finding.remedy.text == '[shell_environment_policy]\nexclude = ["CODEX_SANDBOX*"]'


def test_seatbelt_on_macos_is_no_finding() -> None:
    story = begun()
    story[0] = replace(story[0], cwd="/Users/dev/project")
    story[2] = replace(story[2], cwd="/Users/dev/project")
    assert worker(story, printed("1", "seatbelt"), done(), polled(110)).sandbox.verdict == "match"


def test_children_with_less_than_their_parent() -> None:
    """The block of a real report (Codex 0.114 on macOS): PASS for the parent, FAIL for both children."""
    block = (
        'echo "=== $ROLE ==="; echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED-}"; '
        'echo "sandbox=${CODEX_SANDBOX-}"; echo "thread=${CODEX_THREAD_ID-}"; '
        "python3 -c \"import socket; socket.getaddrinfo('example.com', 443)\"; "
        "curl -sS -m 5 https://example.com; ping -c 1 1.1.1.1"
    )
    failed = (
        "=== child ===\nflag=1\nsandbox=seatbelt\nthread=x\n"
        "socket.gaierror: [Errno 8] nodename nor servname provided, or not known\n"
        "curl: (6) Could not resolve host: example.com\nping: sendto: Operation not permitted\n"
    )

    def member(thread: str, output: str, **more: object) -> list[e.Event]:
        story = begun(thread, version="0.114.0", policy=FULL, **more)
        story[0] = replace(story[0], cwd="/Users/dev/project")
        call = e.CallStarted(
            thread=thread,
            at=102,
            line=5,
            call="c",
            kind="command",
            tool="exec_command",
            text=block,
            script=block,
        )
        return [
            *story,
            call,
            e.CallEnded(thread=thread, at=103, line=6, call="c", output=output, exit_code=2),
            done(thread=thread, at=104),
        ]

    children = [member(child, failed, parent=T) for child in (CHILD, CHILD[:-1] + "e")]
    passed = member(T, "=== parent ===\nflag=\nsandbox=\nthread=x\n93.184.215.14\n")
    parent, *both = snapshot_after(passed, *children, polled(110)).workers
    assert (parent.sandbox.verdict, [c.sandbox.verdict for c in both]) == ("match", ["mismatch", "mismatch"])
    for child in both:
        kinds = {f.kind for f in child.sandbox.findings}
        assert kinds == {
            "stale-network-flag",
            "foreign-sandbox-flag",
            "child-got-less",
            "denied-under-full-access",
        }
    assert [c.state for c in both] == ["completed", "completed"]


# ---------------------------------------------------------------- escalations


def allowed(kernel: Kernel, **flags: str) -> list[e.Event]:
    return [called(ask=True), *live(kernel, **flags)]


@pytest.mark.parametrize(
    ("policy", "kernel", "env", "kinds"),
    [
        (WORKSPACE, HOST, NETWORK, ["escalated-flag-left"]),
        (WORKSPACE, HOST, {}, []),
        (WORKSPACE, SANDBOXED, NETWORK, ["escalated-not-host"]),
        (ONLINE, HOST, {}, []),
        (ONLINE, HOST, NETWORK, ["stale-network-flag"]),
    ],
)
def test_allowed_escalation(policy: Policy, kernel: Kernel, env: dict[str, str], kinds: list[str]) -> None:
    assert [f.kind for f in worker(begun(policy=policy), allowed(kernel, **env)).sandbox.findings] == kinds


def test_prefix_rule_of_an_escalation_covers_later_commands() -> None:
    wish = e.Escalation("escalated", "to push", ("git", "push"))
    first = e.CallStarted(
        thread=T,
        at=101,
        line=5,
        call="c0",
        kind="command",
        tool="exec_command",
        text="git push",
        script="git push",
        escalation=wish,
    )
    story = (
        begun(),
        first,
        ended("c0", at=102),
        called("c1", "git push --tags", at=103),
        live(HOST, **NETWORK),
    )
    found = worker(*story).sandbox
    assert (found.verdict, found.findings) == ("unverified", ())
    assert found.unread[-1] == (
        "what the sandbox holds, by commands that the prefix_rule of call c0 may have let out of it"
    )


@pytest.mark.parametrize("call", ["u9", None])
def test_command_without_a_call_is_not_compared(call: str | None) -> None:
    env = {"CODEX_THREAD_ID": T} | ({"CODEX_TOOL_CALL_ID": call} if call else {})
    own = process(77, 50, started=104.0, kernel=HOST, env=env)
    host = e.HostSeen(at=90, platform="linux", kernel=HOST)
    found = worker(begun(), host, process(50, started=90.0, agent="codex"), own, held(110)).sandbox
    assert found.findings == ()


def test_possible_retry_is_information() -> None:
    story = (begun(policy=replace(WORKSPACE, approval="on-failure")), called(), live(HOST, **NETWORK))
    found = worker(*story).sandbox
    assert (found.verdict, {f.severity for f in found.findings}) == ("match", {"info"})


def changed_to(policy: Policy) -> list[str]:
    """The kinds of a thread whose policy becomes another one."""
    later = e.PolicySet(thread=T, at=101, line=6, policy=policy, origin="turn_context", cwd=CWD)
    return [f.kind for f in worker(begun(policy=WORKSPACE), later, done(), polled(110)).sandbox.findings]


def test_policy_that_is_not_stated_is_no_change() -> None:
    assert changed_to(FULL) == ["policy-changed"]
    assert changed_to(replace(WORKSPACE, approval="never")) == ["policy-changed"]
    assert changed_to(replace(WORKSPACE, approval=None)) == []
    assert changed_to(Policy()) == []
    assert changed_to(replace(WORKSPACE, network=Network.UNKNOWN)) == []
    assert changed_to(replace(WORKSPACE, rules=WORKSPACE.rules[::-1])) == []


# ---------------------------------------------------------------- launchers, and sandboxes around sandboxes


def launched(
    policy: Policy,
    *argv: str,
    above: str = "codex",
    kernel: Kernel = SANDBOXED,
    flags: dict[str, str] = NETWORK,
    before: tuple[e.Event, ...] = (),
) -> list[str]:
    """The kinds of a command below a launcher."""
    story = (
        begun(policy=policy),
        *before,
        called(),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        process(50, started=90.0, agent="codex"),
        process(60, 50, started=100.0, argv=argv),
        process(
            77,
            60,
            started=104.0,
            kernel=kernel,
            env={"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1", **flags},
        ),
        held(110),
    )
    return [f.kind for f in worker(*story).sandbox.findings]


def bwrap(*more: str) -> tuple[str, ...]:
    return ("bwrap", "--ro-bind", "/", "/", "--bind", CWD, CWD, "--bind", "/tmp", "/tmp", *more, "--", "make")


def test_launcher_applies_the_policy() -> None:
    assert launched(WORKSPACE, *bwrap("--unshare-net")) == []
    assert launched(ONLINE, *bwrap(), kernel=replace(SANDBOXED, net=HOST.net), flags={}) == []


def test_launcher_applies_less() -> None:
    """As when a child's split policies are those of its parent before it was given more (Codex 0.114)."""
    assert launched(FULL, *bwrap("--unshare-net"), kernel=Kernel()) == ["network-cut", "filesystem-narrower"]
    bigger = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/srv", "write")))
    assert launched(bigger, *bwrap("--unshare-net")) == ["filesystem-narrower"]


def test_launcher_applies_more() -> None:
    assert launched(WORKSPACE, *bwrap("--bind", "/srv", "/srv", "--unshare-net")) == ["filesystem-wider"]
    assert launched(WORKSPACE, *bwrap(), kernel=replace(SANDBOXED, net=HOST.net)) == ["network-open"]


def test_temporary_directory_by_its_path_is_that_of_the_policy() -> None:
    """Codex 0.145 gives bubblewrap the path, the policy has `$TMPDIR`."""
    own = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("$TMPDIR", "write")))
    scratch = bwrap("--bind", "/scratch/me", "/scratch/me", "--unshare-net")
    for tmpdir in ("/scratch/me", "/scratch/me/", "/scratch/a-link"):
        assert launched(own, *scratch, flags={**NETWORK, "TMPDIR": tmpdir}) == []
        assert launched(WORKSPACE, *scratch, flags={**NETWORK, "TMPDIR": tmpdir}) == ["filesystem-wider"]
    more = (*scratch[:-2], "--bind", "/srv", "/srv", *scratch[-2:])
    assert launched(own, *more, flags={**NETWORK, "TMPDIR": "/scratch/me"}) == ["filesystem-wider"]
    assert launched(own, *scratch) == ["filesystem-wider"]


def test_root_that_is_a_symbolic_link_is_bound_at_its_target() -> None:
    linked = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/home/dev/board", "write")))
    argv = bwrap("--bind", "/data/board", "/data/board", "--unshare-net")
    assert launched(linked, *argv) == ["filesystem-narrower", "filesystem-wider"]
    for link in ("/home/dev/board", "/home"):
        seen = e.PathsSeen(at=99, paths=((link, PathKind.LINK),))
        assert launched(linked, *argv, before=(seen,)) == []
    elsewhere = e.PathsSeen(at=99, paths=(("/home/dev/boa", PathKind.LINK),))
    assert launched(linked, *argv, before=(elsewhere,)) == ["filesystem-narrower", "filesystem-wider"]


def test_proxy_replaces_the_network() -> None:
    assert launched(ONLINE, *bwrap("--unshare-net"), flags={"CODEX_NETWORK_PROXY_ACTIVE": "1"}) == []


def test_codex_inside_a_sandbox() -> None:
    story = (
        begun(policy=FULL),
        called(),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        process(40, started=80.0, argv=bwrap("--unshare-net")),
        process(50, 40, started=90.0, agent="codex", kernel=SANDBOXED),
        process(
            77, 50, started=104.0, kernel=SANDBOXED, env={"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1"}
        ),
        held(110),
    )
    assert [(f.kind, f.direction) for f in worker(*story).sandbox.findings] == [
        ("nested-sandbox", "narrower")
    ]


def test_container_around_both_is_no_sandbox() -> None:
    container = replace(SANDBOXED, no_new_privs=False)
    story = (
        begun(policy=FULL),
        called(),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        process(50, started=90.0, agent="codex", kernel=container),
        process(
            77, 50, started=104.0, kernel=container, env={"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1"}
        ),
        held(110),
    )
    assert worker(*story).sandbox.verdict == "match"


# ---------------------------------------------------------------- parents and children, before and after


def family(parent: Policy, child: Policy, *more: e.Event, **about: object) -> Worker:
    """The child of a family."""
    return snapshot_after(
        begun(policy=parent), begun(CHILD, at=104.0, policy=child, parent=T, **about), *more, polled(110)
    ).workers[1]


@pytest.mark.parametrize(
    ("parent", "child", "direction"),
    [
        (FULL, FULL, None),
        (WORKSPACE, replace(WORKSPACE, approval="never"), None),
        (FULL, WORKSPACE, "narrower"),
        (WORKSPACE, FULL, "wider"),
        (WORKSPACE, ONLINE, "wider"),
        (ONLINE, WORKSPACE, "narrower"),
        (WORKSPACE, replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/srv", "write"))), "wider"),
        (WORKSPACE, Policy(), None),
    ],
)
def test_child_policy_drift(parent: Policy, child: Policy, direction: str | None) -> None:
    drift = [f.direction for f in family(parent, child).sandbox.findings if f.kind == "child-policy-drift"]
    assert drift == ([direction] if direction else [])


def test_child_is_not_compared_with_a_later_policy_of_its_parent() -> None:
    """The head of the parent's file was not read."""
    later = [replace(event, at=106.0) if isinstance(event, e.PolicySet) else event for event in begun()]
    child = begun(CHILD, at=104.0, policy=FULL, parent=T)
    _, found = snapshot_after(later, child, polled(110)).workers
    assert found.sandbox.findings == ()


@pytest.mark.parametrize("online_first", [True, False])
def test_child_got_less_is_of_commands_while_the_network_was_granted(online_first: bool) -> None:
    """A child whose network is turned on, or off, between two commands."""
    first, second = (ONLINE, WORKSPACE) if online_first else (WORKSPACE, ONLINE)
    story = begun(CHILD, at=100.5, policy=first, parent=T)
    output = "CODEX_SANDBOX_NETWORK_DISABLED=1\n"
    child = [
        replace(event, thread=CHILD)
        for event in (
            called("k1", "env", at=102.0),
            ended("k1", f"{output}PATH=/bin\n", at=102.5),
        )
    ]
    change = e.PolicySet(thread=CHILD, at=103.0, line=8, policy=second, origin="turn_context", cwd=CWD)
    parent = [called("p1", "env", at=102.0), ended("p1", "PATH=/bin\n", at=102.5)]
    found = snapshot_after(begun(policy=ONLINE), parent, story, child, change, polled(110)).workers[1]
    kinds = [finding.kind for finding in found.sandbox.findings]
    assert ("child-got-less" in kinds) == online_first


def test_child_directory_is_no_drift() -> None:
    tree = replace(
        WORKSPACE,
        rules=(PolicyRule("/", "read"), PolicyRule("/home/dev/tree", "write"), PolicyRule("/tmp", "write")),
    )
    story = begun(CHILD, at=104.0, policy=tree, parent=T)
    story[0], story[2] = replace(story[0], cwd="/home/dev/tree"), replace(story[2], cwd="/home/dev/tree")
    assert snapshot_after(begun(), story, polled(110)).workers[1].sandbox.findings == ()


def test_reviewer_drift() -> None:
    found = family(
        replace(WORKSPACE, reviewer="user"), replace(WORKSPACE, reviewer="auto_review"), done(thread=CHILD)
    ).sandbox
    assert [(f.kind, f.severity) for f in found.findings] == [("reviewer-drift", "info")]
    assert found.verdict == "unverified"


def test_policy_change_names_what_changed() -> None:
    protected = PolicyRule(f"{CWD}/.git", "read")
    said = {
        "approval": changes_said(replace(WORKSPACE, approval="never")),
        "paths": changes_said(replace(WORKSPACE, rules=(*WORKSPACE.rules, protected))),
    }
    assert said == {
        "approval": "Its policy changed (approval: on-request to never)",
        "paths": "Its policy changed (paths protected inside of the writable ones)",
    }


def changes_said(policy: Policy) -> str:
    """Return what is said of a policy that becomes this one, without its consequence."""
    later = e.PolicySet(thread=T, at=101, line=6, policy=policy, origin="turn_context", cwd=CWD)
    (finding,) = worker(begun(policy=WORKSPACE), later, done(), polled(110)).sandbox.findings
    return finding.message.partition(": commands are held")[0]


def test_policy_changes_are_one_finding() -> None:
    story = begun()
    changes = [
        e.PolicySet(thread=T, at=105.0 + i, line=9 + i, policy=p, origin="turn_context")
        for i, p in enumerate((ONLINE, FULL, WORKSPACE))
    ]
    (finding,) = worker(story, changes, done(at=120), polled(130)).sandbox.findings
    assert (finding.kind, finding.severity, finding.direction, finding.count) == (
        "policy-changed",
        "info",
        "narrower",
        3,
    )


# ---------------------------------------------------------------- what stood in the way


def test_sandbox_cannot_start() -> None:
    broken = [
        x
        for i in range(3)
        for x in (
            called(f"c{i}"),
            ended(f"c{i}", "bwrap: setting up uid map: Permission denied", exit_code=1),
        )
    ]
    found = worker(begun(), broken, done(), polled(110))
    assert ([f.kind for f in found.sandbox.findings], found.sandbox.findings[0].count) == (
        ["sandbox-cannot-start"],
        3,
    )
    assert found.state == "blocked-sandbox"


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ("bwrap: setting up uid map: Permission denied", "codex doctor"),
        (
            "bwrap: execvp codex-linux-sandbox: No such file or directory\n",
            "end this Codex, then go on in a new one: codex resume ID",
        ),
        (
            "bwrap: execvp codex-linux-sandbox: Permission denied\n",
            "end this Codex, then go on in a new one: codex resume ID",
        ),
    ],
)
def test_remedy_of_a_sandbox_that_cannot_start(output: str, remedy: str) -> None:
    """The others are of a Codex 0.169.0 that lost its helper, by root and another user; resumed, it ran
    commands again."""
    story = (begun(), called(), ended("c1", output, exit_code=1), done(), polled(110))
    (finding,) = worker(*story).sandbox.findings
    assert (finding.kind, finding.remedy) == ("sandbox-cannot-start", Remedy(remedy))


def test_denied_under_full_access() -> None:
    refused = (
        called(text="tmux new-window"),
        ended("c1", "error connecting to /tmp/tmux-0/default (Operation not permitted)", exit_code=1),
    )
    assert worker(begun(policy=FULL), refused, done(), polled(110)).sandbox.findings == ()
    marked = worker(begun(policy=FULL), printed("1", call="c0"), refused, done(), polled(110))
    assert {f.kind for f in marked.sandbox.findings} == {"stale-network-flag", "denied-under-full-access"}


# ---------------------------------------------------------------- mounts


BOUND = (
    Mount(1, 0, "/", read_only=True),
    Mount(2, 1, CWD),
    Mount(3, 1, "/tmp"),
    Mount(4, 1, "/dev", fstype="tmpfs"),
)


def mounted(policy: Policy, mounts: tuple[Mount, ...], *, codex: Kernel = HOST) -> list[tuple[str, str]]:
    """The findings of a command that lives among these mounts, and their first words."""
    story = (
        begun(policy=policy),
        called(),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        process(50, started=90.0, agent="codex", kernel=codex),
        e.MountsSeen(at=103, namespace=2, mounts=mounts),
        process(
            77,
            50,
            started=104.0,
            kernel=SANDBOXED,
            env={"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1", "HOME": "/home/dev", **NETWORK},
        ),
        held(110),
    )
    return [(f.kind, f.direction) for f in worker(*story).sandbox.findings]


def test_mounts_like_the_policy() -> None:
    assert mounted(WORKSPACE, BOUND) == []


def test_mounts_narrower_than_the_policy() -> None:
    bigger = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/srv/data", "write")))
    assert mounted(bigger, BOUND) == [("filesystem-narrower", "narrower")]
    assert mounted(bigger, (*BOUND, Mount(5, 1, "/mnt/disk/data"))) == []  # /srv/data may be a link to it


def test_mounts_wider_than_the_policy() -> None:
    assert mounted(WORKSPACE, (Mount(1, 0, "/"), *BOUND[1:])) == [("filesystem-wider", "wider")]


def test_container_mounts_are_no_sandbox() -> None:
    assert mounted(replace(FULL, network=Network.UNKNOWN), BOUND, codex=SANDBOXED) == []


# ---------------------------------------------------------------- the cells that differ


def differing(*story: e.Event | list[e.Event]) -> dict[str, list[tuple[str, str, str, str, str]]]:
    """Return the differing fields of a story's findings: name, layer, expected, actual, reference."""
    found = worker(*story).sandbox.findings
    assert found
    return {
        finding.kind: [(f.name, f.layer, f.expected, f.actual, f.reference) for f in finding.fields]
        for finding in found
    }


def test_fields_of_network_findings() -> None:
    online = (begun(policy=FULL), called(), live(SANDBOXED))
    assert differing(*online) == {
        "network-cut": [("network", "observed", "on", "own namespace", "configured")]
    }
    offline = (begun(), called(), live(HOST))
    assert differing(*offline) == {
        "network-open": [("network", "observed", "off", "host's", "configured")],
        "filesystem-wider": [("files", "observed", "workspace", "no sandbox", "configured")],
    }


def test_fields_of_flags() -> None:
    assert differing(begun(policy=FULL), printed("1", "seatbelt"), polled(110)) == {
        "stale-network-flag": [("network_flag", "observed", "unset", "1", "configured")],
        "foreign-sandbox-flag": [("sandbox_flag", "observed", "unset", "seatbelt", "configured")],
    }
    assert differing(begun(), printed(""), polled(110)) == {
        "missing-network-flag": [("network_flag", "observed", "1", "unset", "configured")]
    }


def test_fields_of_escalations() -> None:
    assert differing(begun(), allowed(SANDBOXED, **NETWORK)) == {
        "escalated-not-host": [("files", "observed", "no sandbox", "in a sandbox", "allowed")]
    }
    assert differing(begun(), allowed(HOST, **NETWORK)) == {
        "escalated-flag-left": [("network_flag", "observed", "unset", "1", "allowed")]
    }


def test_fields_of_a_nested_sandbox() -> None:
    online = replace(SANDBOXED, net=HOST.net)
    assert differing(begun(policy=FULL), called(), live(online)) == {
        "nested-sandbox": [
            ("files", "observed", "no sandbox", "in a sandbox", "configured"),
            ("seccomp", "observed", "none", "filter", "configured"),
        ]
    }


def test_fields_of_a_launcher_that_applies_less() -> None:
    story = (
        begun(policy=FULL),
        called(),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        process(50, started=90.0, agent="codex"),
        process(60, 50, started=100.0, argv=bwrap("--unshare-net")),
        process(
            77, 60, started=104.0, env={"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1"}, kernel=Kernel()
        ),
        held(110),
    )
    assert differing(*story) == {
        "network-cut": [("network", "applied", "on", "off", "configured")],
        "filesystem-narrower": [("files", "applied", "unrestricted", "workspace", "configured")],
    }


def differing_fields(sandbox: Sandbox) -> list[DifferingField]:
    """Return the cells that findings name which are more than information."""
    return [field for found in sandbox.findings if found.severity != "info" for field in found.fields]


def test_fields_of_an_earlier_policy_say_so() -> None:
    later = e.PolicySet(thread=T, at=105, line=8, policy=ONLINE, origin="thread_settings_applied")
    sandbox = worker(begun(), printed(""), done(at=104), later, polled(110)).sandbox
    (field,) = differing_fields(sandbox)
    assert (field.expected, field.actual, field.reference) == ("1", "unset", "earlier")
    assert (field.expected_at, field.actual_at) == (100.0, 102.0)
    assert sandbox.got.under_earlier_policy


def test_fields_of_a_child() -> None:
    (drift,) = differing_fields(family(ONLINE, WORKSPACE).sandbox)
    assert (drift.name, drift.layer, drift.expected, drift.actual, drift.reference) == (
        "network",
        "configured",
        "on",
        "off",
        "parent",
    )
    assert (drift.expected_at, drift.actual_at) == (100.0, 104.0)
    reviewed = family(replace(WORKSPACE, reviewer="user"), replace(WORKSPACE, reviewer="auto_review"))
    (finding,) = reviewed.sandbox.findings
    assert (finding.configured, finding.got) == ("reviewer user", "reviewer auto_review")
    assert [(f.name, f.expected, f.actual) for f in finding.fields] == [("reviewer", "user", "auto_review")]
    assert {finding.severity for finding in reviewed.sandbox.findings} == {"info"}


def test_denials_have_no_fields() -> None:
    refused = (
        called(text="touch /x"),
        ended("c1", "touch: cannot touch '/x': Read-only file system", exit_code=1),
    )
    assert differing(begun(), refused, done(), polled(110)) == {"denied-filesystem": []}
