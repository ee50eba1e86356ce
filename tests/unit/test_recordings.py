"""Recordings of eleven Codex releases, from bytes to verdicts."""

from pathlib import Path

import pytest

from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.worker import Snapshot
from tests.unit.rollout_files import RECORDINGS, ROLLOUTS, events_of, files

LATER = 2e9
CLEAN = ("workspace-write", "workspace-write-network", "read-only", "full-access", "spawn")
LEAKED = ("full-access-leaked-flags", "spawn-leaked-flags")
PROVIDER = ("provider-401", "provider-500", "provider-quota", "stream-drops")
WITHOUT_EVIDENCE = {
    *((v, s) for v in ("0.20.0",) for s in PROVIDER),  # these files contain neither requests nor errors
    ("0.58.0", "provider-quota"),  # one request without a response: the same as after a kill
    ("0.98.0", "provider-quota"),
}
POLICIES = {
    "workspace-write": "workspace, no network",
    "workspace-write-network": "workspace, network on",
    "read-only": "read-only, no network",
    "full-access": "full access",
    "full-access-leaked-flags": "full access",
    "spawn": "full access",
    "spawn-leaked-flags": "full access",
    "kanban-board": "workspace, no network",
    "escalation-refused": "workspace, no network",
}


def scenarios(*names: str) -> list[tuple[str, str]]:
    folders = (p for p in RECORDINGS.glob("*/*") if not names or p.name in names)
    return sorted(((p.parent.name, p.name) for p in folders), key=lambda x: (int(x[0].split(".")[1]), x[1]))


def snapshot_of(version: str, scenario: str, base: Path = RECORDINGS) -> Snapshot:
    """Return the snapshot of a recording at a later time, when no process holds its files."""
    events = [event for path in files(version, scenario, base) for event in events_of(path)]
    events += [e.LocksSeen(at=LATER, holders={}), e.ProcessesCounted(at=LATER)]
    snapshot = build_snapshot(reduce(Fleet(), events), LATER)
    assert snapshot.workers
    return snapshot


def test_number_of_scenarios() -> None:
    assert len({v for v, _ in scenarios()}) == 11
    assert len(scenarios()) == 144


@pytest.mark.parametrize(("version", "scenario"), scenarios())
def test_all_lines_and_policies_are_read(version: str, scenario: str) -> None:
    for worker in snapshot_of(version, scenario).workers:
        assert worker.notes == ()
        assert worker.agent.version == version or version == "0.20.0"
        if version != "0.20.0" and scenario in POLICIES:
            assert worker.sandbox.configured
            assert worker.sandbox.configured.brief() == POLICIES[scenario]


@pytest.mark.parametrize(("version", "scenario"), scenarios(*CLEAN))
def test_clean(version: str, scenario: str) -> None:
    for worker in snapshot_of(version, scenario).workers:
        # the last command resolves a name: with the network off that is denied, which is no difference
        kinds = {finding.kind for finding in worker.sandbox.findings}
        is_offline = worker.sandbox.configured is not None and worker.sandbox.configured.network == "off"
        assert kinds == ({"denied-network"} if is_offline and scenario != "spawn" else set())
        assert worker.sandbox.verdict == ("unverified" if version == "0.20.0" else "match")
        if scenario != "spawn":
            assert worker.state == ("blocked-sandbox" if is_offline else "completed")


@pytest.mark.parametrize(("version", "scenario"), scenarios(*LEAKED))
def test_leaked_flags(version: str, scenario: str) -> None:
    for worker in snapshot_of(version, scenario).workers:
        assert worker.sandbox.verdict == "mismatch"
        kinds = {f.kind for f in worker.sandbox.findings}
        # bare files have no policy: only the flag that Linux never sets is known to be foreign
        assert kinds == (
            {"foreign-sandbox-flag"}
            if version == "0.20.0"
            else {"stale-network-flag", "foreign-sandbox-flag"}
        )
        assert (worker.sandbox.got.network_flag, worker.sandbox.got.sandbox_flag) == ("1", "seatbelt")


@pytest.mark.parametrize(("version", "scenario"), scenarios("spawn", "spawn-leaked-flags"))
def test_families(version: str, scenario: str) -> None:
    parent, *children = snapshot_of(version, scenario).workers
    assert (parent.depth, [c.depth for c in children]) == (0, [1, 1])
    assert set(parent.children) == {c.id for c in children}
    assert {c.parent for c in children} == {parent.id}
    assert parent.state == "completed"
    # children that were running when their parent ended were interrupted; 0.107 does not record that
    assert {str(c.state) for c in children} <= {
        "completed",
        "interrupted",
        "exited" if version == "0.107.0" else "completed",
    }


@pytest.mark.parametrize(
    ("version", "scenario"), scenarios("kanban-board", "escalation-refused", "killed-mid-command", *PROVIDER)
)
def test_ends(version: str, scenario: str) -> None:
    (worker,) = snapshot_of(version, scenario).workers
    if scenario == "kanban-board":
        (finding,) = worker.sandbox.findings
        channel = '[sandbox_workspace_write]\nwritable_roots = ["/home/dev/board"]'
        remedy = finding.remedy.text if finding.remedy else None
        assert remedy == (None if version == "0.20.0" else channel)
        expected = "blocked-sandbox"
    elif scenario == "escalation-refused":
        # before 0.58 the request was not refused: the command ran in the sandbox
        expected = "completed" if version in ("0.20.0", "0.36.0") else "failed-permission"
    elif scenario in PROVIDER and (version, scenario) not in WITHOUT_EVIDENCE:
        expected = "failed-provider"
    else:
        expected = "exited"
    assert worker.state == expected


@pytest.mark.parametrize("scenario", ["compact", "review", "user-shell"])
def test_turns_that_need_no_last_message_are_complete(scenario: str) -> None:
    """0.130 writes `last_agent_message: null` for them, as for turns whose requests failed."""
    (worker,) = snapshot_of("0.130.0", scenario, ROLLOUTS).workers
    assert (worker.state, worker.assessment.why) == ("completed", "finished")
