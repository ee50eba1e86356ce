"""Recorded rollouts of real Codex versions: no unknown line, each fact once, the same facts from every
version."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agentdash.model import events as e
from agentdash.model.policy import Filesystem, Network
from tests.unit.rollout_files import ROLLOUTS, VERSIONS, all_files, events_of, files, only

PROBE = [
    'echo "role=${ROLE:-solo}"; echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; '
    'echo "sandbox=${CODEX_SANDBOX:-}"; echo "thread=${CODEX_THREAD_ID:-}"',
    "env | grep ^CODEX | sort",
    "touch $HOME/agentdash-denied && echo wrote-home; touch in-workspace && echo wrote-workspace",
    "python3 -c \"import socket; print(socket.getaddrinfo('example.com', 443)[0][4][0])\"",
]
PROBES = (
    "read-only",
    "workspace-write",
    "workspace-write-network",
    "full-access",
    "full-access-leaked-flags",
)
POLICIES = {
    "read-only": (Filesystem.READ_ONLY, Network.OFF),
    "workspace-write": (Filesystem.WORKSPACE, Network.OFF),
    "workspace-write-network": (Filesystem.WORKSPACE, Network.ON),
    "full-access": (Filesystem.UNRESTRICTED, Network.ON),
    "full-access-leaked-flags": (Filesystem.UNRESTRICTED, Network.ON),
    "kanban-board": (Filesystem.WORKSPACE, Network.OFF),
    "escalation-refused": (Filesystem.WORKSPACE, Network.OFF),
    "killed-mid-command": (Filesystem.WORKSPACE, Network.OFF),
    "provider-401": (Filesystem.READ_ONLY, Network.OFF),
    "spawn": (Filesystem.UNRESTRICTED, Network.ON),
    "spawn-leaked-flags": (Filesystem.UNRESTRICTED, Network.ON),
}
MINOR = {version: int(version.split(".")[1]) for version in VERSIONS}
SPAWNING = [v for v in VERSIONS if MINOR[v] >= 107]


def story(version: str, scenario: str) -> list[e.Event]:
    (path,) = files(version, scenario)
    return events_of(path)


@pytest.mark.parametrize("path", all_files(), ids=lambda p: "/".join(p.parts[-3:-1]))
def test_every_stored_rollout_is_parsed(path: Path) -> None:
    events = events_of(path)
    assert only(e.LineSkipped, events) == []
    assert isinstance(events[0], e.ThreadStarted)
    calls = only(e.CallStarted, events)
    ends = Counter(end.call for end in only(e.CallEnded, events) if end.outcome != "running")
    assert max(Counter(call.call for call in calls).values(), default=1) == 1
    assert set(ends) <= {call.call for call in calls}
    assert max(ends.values(), default=1) == 1
    assert all(event.at > 1.7e9 and event.line > 0 for event in events)
    assert [event.line for event in events] == sorted(event.line for event in events)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("scenario", PROBES)
def test_commands_of_a_scenario_are_equal_in_all_versions(version: str, scenario: str) -> None:
    events = story(version, scenario)
    calls = only(e.CallStarted, events)
    assert [call.text for call in calls] == PROBE
    assert {call.kind for call in calls} == {"command"}
    ends = only(e.CallEnded, events)
    assert [end.call for end in ends] == [call.call for call in calls]
    flag = "1" if "leaked" in scenario or (scenario in ("read-only", "workspace-write")) else ""
    assert f"flag={flag}\n" in ends[0].output
    assert ends[0].exit_code == 0
    assert ends[3].exit_code == 1
    assert "socket.gaierror" in ends[3].output
    assert [(said.role, said.text) for said in only(e.MessageLogged, events)] == [
        ("user", "[[probe]] run the recorded scenario"),
        ("agent", "Probe finished."),
    ]


@pytest.mark.parametrize(
    ("version", "scenario"),
    [(v, s) for v in VERSIONS for s in POLICIES if v in SPAWNING or not s.startswith("spawn")],
)
def test_policy_is_that_of_the_command_line(version: str, scenario: str) -> None:
    for path in files(version, scenario):
        policies = [event.policy for event in only(e.PolicySet, events_of(path))]
        assert bool(policies) == (version != "0.20.0")  # `codex exec` of 0.20 wrote no policy at all
        assert {(p.filesystem, p.network) for p in policies if p} <= {POLICIES[scenario]}
        assert None not in policies
        assert {p.approval for p in policies if p} <= {"never"}


@pytest.mark.parametrize("version", VERSIONS)
def test_refused_escalation(version: str) -> None:
    events = story(version, "escalation-refused")
    (call,), (end,) = only(e.CallStarted, events), only(e.CallEnded, events)
    assert call.escalation == e.Escalation(
        "escalated", "Need to run outside of the sandbox to read its flags."
    )
    # 0.20 and 0.36 do not know this spelling, and ran the command in the sandbox
    assert end.outcome == ("refused-by-approval" if MINOR[version] > 36 else "ended")


@pytest.mark.parametrize("version", VERSIONS)
def test_killed_call_stays_open(version: str) -> None:
    events = story(version, "killed-mid-command")
    ended = {end.call for end in only(e.CallEnded, events)}
    still_open = [call.text for call in only(e.CallStarted, events) if call.call not in ended]
    assert still_open == (
        ["sleep 30"] if MINOR[version] >= 72 else []
    )  # before, a call was written with its output
    assert only(e.TurnEnded, events) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_denial_has_the_output_of_the_command(version: str) -> None:
    ends = only(e.CallEnded, story(version, "read-only"))
    assert "touch: cannot touch '/home/dev/agentdash-denied': " in ends[2].output.splitlines()[0]
    assert "StreamOutput" not in ends[2].output
    assert ends[2].exit_code == 1
    assert ends[2].outcome == (
        "denied" if version in ("0.20.0", "0.36.0", "0.98.0", "0.107.0", "0.114.0") else "ended"
    )


@pytest.mark.parametrize("version", SPAWNING)
@pytest.mark.parametrize("scenario", ["spawn", "spawn-leaked-flags"])
def test_parents_and_children_refer_to_each_other(version: str, scenario: str) -> None:
    families = [events_of(path) for path in files(version, scenario)]
    started = [only(e.ThreadStarted, events)[0] for events in families]
    (root,) = [thread for thread in started if thread.parent is None]
    children = {thread.thread for thread in started if thread.parent == root.thread}
    assert len(children) == 2
    assert {thread.source for thread in started if thread.parent} == {"subagent"}
    spawned = [event for events in families for event in only(e.ChildSpawned, events)]
    assert {(event.thread, event.child) for event in spawned} == {(root.thread, each) for each in children}
    kinds = Counter(call.kind for call in only(e.CallStarted, families[started.index(root)]))
    assert kinds == {"command": 1, "spawn": 2, "wait": 1}
    assert not any(thread.helper for thread in started)


# ---------------------------------------------------------------- constructed rollouts


def rollouts(version: str, scenario: str) -> list[list[e.Event]]:
    return [events_of(path) for path in files(version, scenario, ROLLOUTS)]


def test_background_command_ends_with_its_item() -> None:
    (events,) = rollouts("0.169.0", "background-commands")
    told: dict[str, list[tuple[str, int | None, str]]] = {}
    for end in only(e.CallEnded, events):
        told.setdefault(end.call, []).append((end.outcome, end.exit_code, end.output))
    calls = {call.text: told[call.call] for call in only(e.CallStarted, events)}
    assert calls["echo start; sleep 2; echo finished; exit 3"] == [
        ("running", None, "start\n"),
        ("ended", 3, "start\nfinished\n"),
    ]
    assert calls["sleep 60"] == [("running", None, ""), ("aborted", None, "")]
    assert [call.kind for call in only(e.CallStarted, events)] == [
        "command",
        "poll",
        "poll",
        "command",
        "poll",
        "command",
    ]


@pytest.mark.parametrize("version", ["0.114.0", "0.169.0"])
def test_copied_history_of_a_child_is_ignored(version: str) -> None:
    parent, child = rollouts(version, "full-history-child")
    (born,) = only(e.ThreadStarted, child)
    assert born.parent == born.forked_from == only(e.ThreadStarted, parent)[0].thread
    assert [call.text for call in only(e.CallStarted, child)] == ["echo kid; exit 1"]
    assert len(only(e.TurnStarted, child)) == len(only(e.TurnEnded, child)) == 1
    assert {event.child for event in only(e.ChildSpawned, parent)} == {born.thread}
    assert only(e.ChildSpawned, child) == []


@pytest.mark.parametrize("version", ["0.114.0", "0.169.0"])
def test_copied_history_of_a_fork_is_ignored(version: str) -> None:
    _, fork = rollouts(version, "user-shell-and-fork")
    assert only(e.ThreadStarted, fork)[0].forked_from is not None
    prompts = [said.text for said in only(e.MessageLogged, fork) if said.role == "user"]
    assert prompts == (["second"] if version == "0.114.0" else ["after the fork [[kid]]"])
    assert Counter(call.text for call in only(e.CallStarted, fork))["echo kid; exit 1"] == 1
    assert only(e.PolicySet, fork)
