"""Configured against got, in every direction; nothing where nothing differs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentdash.facts import events as e
from agentdash.facts.policy import Network, Policy
from agentdash.facts.process import Kernel
from tests.unit.story import BOXED, CHILD, FULL, HOST, WORKSPACE, T, begun, called, done, ended, looked, process, worker
from tests.unit.story import told as picture

ONLINE = replace(WORKSPACE, network=Network.ON)
PROBE = 'echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; echo "sandbox=${CODEX_SANDBOX:-}"'


def printed(flag: str, sandbox: str = "", call: str = "c1", at: float = 102.0) -> list[e.Event]:
    return [called(call, PROBE, at=at), ended(call, f"flag={flag}\nsandbox={sandbox}\n", at=at)]


def live(kernel: Kernel, **flags: str) -> list[e.Event]:
    env = {"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1", **flags}
    host = e.HostSeen(at=90, platform="linux", kernel=HOST)
    return [host, process(50, started=90.0, agent="codex"), process(77, 50, started=104.0, kernel=kernel, env=env), *looked(110)]


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
def test_printed(policy: Policy, flag: str, sandbox: str, verdict: str, kinds: list[str]) -> None:
    found = worker(begun(policy=policy), printed(flag, sandbox), done(), looked(110)).sandbox
    assert (found.verdict, sorted(f.kind for f in found.findings)) == (verdict, kinds)


@pytest.mark.parametrize(
    ("policy", "kernel", "env", "kinds", "direction"),
    [
        (WORKSPACE, BOXED, NETWORK, [], None),
        (ONLINE, replace(BOXED, net=HOST.net), {}, [], None),
        (FULL, HOST, {}, [], None),
        (FULL, HOST, NETWORK, ["stale-network-flag"], "label"),
        (FULL, BOXED, {}, ["network-cut"], "stricter"),
        (ONLINE, BOXED, NETWORK, ["network-cut"], "stricter"),
        (FULL, replace(BOXED, net=HOST.net), {}, ["nested-sandbox"], "stricter"),
        (WORKSPACE, HOST, {}, ["network-open", "filesystem-wider"], "looser"),
        (WORKSPACE, HOST, NETWORK, ["network-open", "filesystem-wider"], "looser"),
        (ONLINE, HOST, {}, ["filesystem-wider"], "looser"),
        (WORKSPACE, replace(BOXED, net=HOST.net), NETWORK, [], None),
        (WORKSPACE, BOXED, {}, [], None),
        (FULL, Kernel(), NETWORK, ["stale-network-flag"], "stricter"),
    ],
)
def test_live(policy: Policy, kernel: Kernel, env: dict[str, str], kinds: list[str], direction: str | None) -> None:
    found = worker(begun(policy=policy), called(), live(kernel, **env)).sandbox
    assert [f.kind for f in found.findings] == kinds
    assert direction is None or found.findings[0].direction == direction


def test_nothing_seen_is_no_match() -> None:
    assert worker(begun(), called(), ended(), done(), looked(110)).sandbox.verdict == "unverified"


def test_one_finding_for_many_commands() -> None:
    many = [x for i in range(9) for x in printed("1", call=f"c{i}", at=102.0 + i)]
    (finding,) = worker(begun(policy=FULL), many, done(at=120), looked(130)).sandbox.findings
    assert (finding.count, finding.since, finding.last) == (9, 102.0, 110.0)


def test_printed_and_live_are_one_cause() -> None:
    (finding,) = worker(begun(policy=FULL), printed("1"), live(HOST, **NETWORK)).sandbox.findings
    assert (finding.kind, finding.direction, finding.count) == ("stale-network-flag", "label", 2)
    assert {x.source for x in finding.evidence} == {"rollout", "output", "environment", "process", "kernel"}


def test_the_policy_of_the_time_counts() -> None:
    """Network was off when the flag was seen, and is on now."""
    later = e.PolicySet(thread=T, at=105, line=8, policy=ONLINE, origin="thread_settings_applied")
    assert worker(begun(), printed("1"), later, looked(110)).sandbox.verdict == "match"


def test_a_command_of_the_user_is_not_held_against_the_policy() -> None:
    own = e.CallStarted(thread=T, at=102, line=5, call="u1", kind="command", tool="shell", text=PROBE, by_user=True)
    assert worker(begun(), own, ended("u1", "flag=\nsandbox=\n"), looked(110)).sandbox.findings == ()


def test_both_sides_are_quoted() -> None:
    (finding,) = worker(begun(policy=FULL), printed("1"), done(), looked(110)).sandbox.findings
    assert finding.configured == "files unrestricted, network on, approval never"
    assert "flag=1" in finding.got
    assert "turn_context, line 3" in finding.evidence[0].text
    assert finding.remedy == 'shell_environment_policy.exclude = ["CODEX_SANDBOX*"]'


def test_seatbelt_on_a_mac_is_as_it_should_be() -> None:
    story = begun()
    story[0] = replace(story[0], cwd="/Users/dev/project")  # type: ignore[arg-type]
    story[2] = replace(story[2], cwd="/Users/dev/project")  # type: ignore[arg-type]
    assert worker(story, printed("1", "seatbelt"), done(), looked(110)).sandbox.verdict == "match"


def test_children_that_got_less_than_their_parent() -> None:
    """The block of a real report (Codex 0.114 on macOS): PASS for the parent, FAIL for both children."""
    block = (
        'echo "=== $ROLE ==="; echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED-}"; echo "sandbox=${CODEX_SANDBOX-}"; '
        'echo "thread=${CODEX_THREAD_ID-}"; python3 -c "import socket; socket.getaddrinfo(\'example.com\', 443)"; '
        "curl -sS -m 5 https://example.com; ping -c 1 1.1.1.1"
    )
    failed = (
        "=== child ===\nflag=1\nsandbox=seatbelt\nthread=x\n"
        "socket.gaierror: [Errno 8] nodename nor servname provided, or not known\n"
        "curl: (6) Could not resolve host: example.com\nping: sendto: Operation not permitted\n"
    )

    def told(thread: str, output: str, **more: object) -> list[e.Event]:
        story = begun(thread, version="0.114.0", policy=FULL, **more)
        story[0] = replace(story[0], cwd="/Users/dev/project")  # type: ignore[arg-type]
        call = e.CallStarted(thread=thread, at=102, line=5, call="c", kind="command", tool="exec_command", text=block)
        return [*story, call, e.CallEnded(thread=thread, at=103, line=6, call="c", output=output, exit_code=2), done(thread=thread, at=104)]

    children = [told(child, failed, parent=T) for child in (CHILD, CHILD[:-1] + "e")]
    passed = told(T, "=== parent ===\nflag=\nsandbox=\nthread=x\n93.184.215.14\n")
    parent, *both = picture(passed, *children, looked(110)).workers
    assert (parent.sandbox.verdict, [c.sandbox.verdict for c in both]) == ("match", ["mismatch", "mismatch"])
    for child in both:
        kinds = {f.kind for f in child.sandbox.findings}
        assert kinds == {"stale-network-flag", "foreign-sandbox-flag", "child-got-less", "denied-under-full-access"}
    assert [c.state for c in both] == ["completed", "completed"]
