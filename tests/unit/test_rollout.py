"""Recorded rollouts of real Codex versions: no unknown line, each fact once, the same facts from every
version."""

from collections import Counter
from pathlib import Path

import pytest

from agentdash.model import events as e
from tests.unit.rollout_files import ROLLOUTS, VERSIONS, all_files, events_of, files, only

PROBE = [
    'echo "role=${ROLE:-solo}"; echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; '
    'echo "sandbox=${CODEX_SANDBOX:-}"; echo "thread=${CODEX_THREAD_ID:-}"',
    "env | grep ^CODEX | sort",
    "touch $HOME/agentdash-denied && echo wrote-home; touch in-workspace && echo wrote-workspace",
    "python3 -c \"import socket; print(socket.getaddrinfo('example.com', 443)[0][4][0])\"",
]
LEAKED = "full-access-leaked-flags"
PROBES = ("read-only", "workspace-write", "workspace-write-network", "full-access", LEAKED)


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
    (path,) = files(version, scenario)
    events = events_of(path)
    calls = only(e.CallStarted, events)
    assert [call.text for call in calls] == PROBE
    assert {call.kind for call in calls} == {"command"}
    ends = only(e.CallEnded, events)
    assert [end.call for end in ends] == [call.call for call in calls]
    flag = "1" if scenario in ("read-only", "workspace-write", LEAKED) else ""
    assert f"flag={flag}\n" in ends[0].output
    assert ends[0].exit_code == 0
    assert ends[3].exit_code == 1
    assert "socket.gaierror" in ends[3].output
    assert [(said.role, said.text) for said in only(e.MessageLogged, events)] == [
        ("user", "[[probe]] run the recorded scenario"),
        ("agent", "Probe finished."),
    ]


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
    kinds = [call.kind for call in only(e.CallStarted, events)]
    assert kinds == ["command", "poll", "poll", "command", "poll", "command"]


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
