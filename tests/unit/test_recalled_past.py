"""What was seen of a thread while it ran counts in its past: at its time in a replay, and in every list."""

from pathlib import Path

from agentdash.agents.codex.home import thread_id
from agentdash.collect.clock import SystemClock
from agentdash.model.evidence import EvidenceSource
from agentdash.model.memory import RememberedObservation, ThreadMemory
from agentdash.model.observation import SandboxObservation
from agentdash.model.policy import Filesystem, Policy
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.replay.cursor import Cursor
from agentdash.replay.family import Family
from agentdash.replay.library.library import Library
from agentdash.replay.streams import family_stream
from agentdash.report.audit import audit
from agentdash.report.exports import build_report
from tests.unit.rollout_files import RECORDINGS, home_of

_SOURCE = next(RECORDINGS.glob("0.169.0/full-access/*.jsonl"))
_THREAD = thread_id(_SOURCE) or ""


def steps(memories: tuple[ThreadMemory, ...] = ()) -> Cursor:
    return Cursor(family_stream(Family(_THREAD, (_SOURCE,), memories=memories)))


def remembered() -> ThreadMemory:
    """Return a memory of a request at the start, and of a flag that was seen from the middle to the end."""
    cursor, at = steps(), []
    while cursor.advance() is not None:
        at.append(cursor.at)
    (period,) = cursor.fleet.threads[_THREAD].policies
    middle, end = at[len(at) // 2], at[-1] + 100
    flag = SandboxObservation(
        source=EvidenceSource.ENVIRONMENT, policy=-1, network_flag="1", first=middle, last=end
    )
    origin = RequestOrigin(field=RequestField.FILESYSTEM, layer=RequestLayer.ARGV, text="-s read-only")
    asked = Requested(policy=Policy(filesystem=Filesystem.READ_ONLY), origins=(origin,), since=at[0] - 1)
    return ThreadMemory(_THREAD, (RememberedObservation(flag, period.since),), requests=(asked,))


def kinds(cursor: Cursor) -> set[str]:
    (worker,) = cursor.snapshot(settled=True).workers
    return {str(finding.kind) for finding in worker.sandbox.findings}


def test_a_replay_recalls_at_its_time_what_was_seen() -> None:
    memory = remembered()
    middle = memory.observations[0].observation.first
    cursor = steps((memory,))
    seen: list[tuple[bool, bool]] = []
    while cursor.advance() is not None:
        thread = cursor.fleet.threads[_THREAD]
        live = [each for each in thread.observations if each.source is EvidenceSource.ENVIRONMENT]
        assert all(each.last <= cursor.at for each in live)
        assert [request.since for request in cursor.fleet.requests[_THREAD]] == [memory.requests[0].since]
        seen.append((cursor.at >= middle, bool(live)))
    assert {is_late for is_late, _ in seen} == {False, True}
    assert all(is_late == is_seen for is_late, is_seen in seen)
    cursor.close()
    assert cursor.fleet.recalled[_THREAD] == memory


def test_all_lists_agree_about_what_was_seen(tmp_path: Path) -> None:
    memory, home = remembered(), home_of(tmp_path, _SOURCE)
    (path,) = home.rollouts()
    family = Family(_THREAD, (path,), home)

    def readings(*memories: ThreadMemory) -> list[set[str]]:
        known = {each.thread: each for each in memories}
        (checked,) = audit([path], recall=lambda thread: known.get(thread) or ThreadMemory(thread)).threads
        library = Library(home, SystemClock(), recall=lambda *_: known)
        listed = {entry.key: entry for entry in library.fill(list(library.entries()))}
        (row,) = listed.values()
        cursor = Cursor(family_stream(family._replace(memories=memories)))
        while cursor.advance() is not None:
            pass
        cursor.close()
        report = build_report(_THREAD, family_stream(family._replace(memories=memories)), ended=True)
        (exported,) = report.workers
        return [
            {finding.kind for finding in checked.findings},
            set(row.findings),
            kinds(cursor),
            {str(finding.kind) for finding in exported.sandbox.findings},
        ]

    without, recalled, again = readings(), readings(memory), readings()
    assert without == again == [set()] * 4
    assert recalled[0] > {"stale-network-flag"}
    assert recalled == [recalled[0]] * 4
