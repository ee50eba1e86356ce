"""Which workers need the user: alive, since the last look, acknowledged, past, stopped by a usage limit."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from agentdash.agents.claude.transcript.records import usage_limit
from agentdash.cli.metrics import metrics_text
from agentdash.engine.hub import Hub
from agentdash.engine.judge.attention import judge_attention, limited_until, with_limit
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.engine.user_attention import UserAttention
from agentdash.model import events as e
from agentdash.model.fact import Fact, FactKind
from agentdash.model.fleet import Fleet
from agentdash.model.states import NEEDS_YOU, Acknowledgement, Attention, Group, State, fact_digest
from agentdash.model.thread import Thread, Tokens, Turn
from agentdash.model.times import local_time
from agentdash.model.tokens import UsageWindow
from agentdash.model.usage_limits import usage_limits
from agentdash.model.worker import Agent, Assessment, Snapshot, Worker
from agentdash.replay.clock import VirtualClock
from agentdash.report.status import status_report
from agentdash.store.attention import AttentionFile

NOW = 1_795_204_800.0
HOUR = 3_600.0
ASKS = Fact(FactKind.ASK, "asks", "Which one?")


def group(
    state: State,
    *,
    since: float = NOW - 60,
    held: bool = True,
    looked: float | None = None,
    acknowledged: Acknowledgement | None = None,
    fact: Fact | None = ASKS,
) -> Group:
    return judge_attention(
        Assessment(state=state, since=since, why="", fact=fact),
        is_held=held,
        looked_at=looked,
        acknowledgement=acknowledged,
        now=NOW,
    ).group


@pytest.mark.parametrize("state", NEEDS_YOU)
def test_a_session_that_nothing_holds_needs_you_if_it_ended_since_the_last_look(state: State) -> None:
    assert group(state, held=False, since=NOW - 5 * HOUR, looked=NOW - 6 * HOUR) is Group.NEEDS_YOU
    assert group(state, held=False, since=NOW - 5 * HOUR, looked=NOW - 4 * HOUR) is Group.PAST
    assert group(state, held=False, since=NOW - 200 * HOUR, looked=NOW - 900 * HOUR) is Group.PAST
    # without any look, the last hour counts
    assert group(state, held=False, since=NOW - 60) is Group.NEEDS_YOU
    assert group(state, held=False, since=NOW - 2 * HOUR) is Group.PAST


def test_an_acknowledged_state_needs_no_attention_until_it_changes() -> None:
    done = Acknowledgement("a", State.WAITING_INPUT, NOW - 30, fact_digest(ASKS))
    assert group(State.WAITING_INPUT, acknowledged=done) is Group.DONE
    # another state, a later one of the same kind, another question
    assert group(State.BLOCKED_SANDBOX, acknowledged=done) is Group.NEEDS_YOU
    assert group(State.WAITING_INPUT, since=NOW - 10, acknowledged=done) is Group.NEEDS_YOU
    other = Fact(FactKind.ASK, "asks", "Which other one?")
    assert group(State.WAITING_INPUT, acknowledged=done, fact=other) is Group.NEEDS_YOU


# ---------------------------------------------------------------- whole fleets


def dead(at: float) -> Sequence[e.Event]:
    """Return a session that ended in a turn."""
    thread = "019cd000-7aa1-7c03-9d5e-0242ac120002"
    return [
        e.ThreadStarted(at=at, thread=thread, line=1, version="0.169.0"),
        e.TurnStarted(at=at, thread=thread, line=2),
    ]


def test_a_crash_is_shown_at_once_and_past_an_hour_later_without_any_look() -> None:
    fleet = reduce(Fleet(), [*dead(NOW - 60), e.ProcessesCounted(at=NOW)])
    snapshot = build_snapshot(fleet, NOW)
    assert [worker.needs_you for worker in snapshot.workers] == [True]
    assert build_snapshot(fleet, snapshot.due).workers[0].group is Group.PAST


# ---------------------------------------------------------------- the file


def test_acknowledgements_and_looks_survive_a_restart(tmp_path: Path) -> None:
    one, two = AttentionFile(tmp_path, Path("/a")), AttentionFile(tmp_path, Path("/b"))
    first = Acknowledgement("x", State.WAITING_INPUT, NOW)
    second = Acknowledgement("y", State.EXITED, NOW)
    one.change(lambda known: known.add(first))
    AttentionFile(tmp_path, Path("/a")).change(lambda known: known.add(second))
    two.change(lambda known: replace(known, looked_at=NOW))
    assert AttentionFile(tmp_path, Path("/a")).read() == Attention(None, (first, second))
    assert one.change(lambda known: known.remove("x")).acknowledged == (second,)
    assert two.read() == Attention(NOW)
    assert one.path.stat().st_mode & 0o777 == 0o600


def test_old_acknowledgements_are_dropped(tmp_path: Path) -> None:
    file = AttentionFile(tmp_path, Path("/a"))

    def acknowledge(worker: str, at: float) -> int:
        new = Acknowledgement(worker, State.EXITED, at)
        return len(file.change(lambda known: known.add(new)).acknowledged)

    assert [acknowledge(str(number), NOW + number) for number in range(510)][-1] == 500
    assert acknowledge("z", NOW + 40 * 24 * HOUR) == 1


def test_where_nothing_can_be_written_the_hub_knows_and_a_message_says_so(tmp_path: Path) -> None:
    clock = VirtualClock(NOW)
    (tmp_path / "attention.json").write_text("{")
    hub = Hub([], clock)
    (worker,) = hub.take([*dead(NOW - 60), e.ProcessesCounted(at=NOW)]).workers
    problem = UserAttention(hub, clock, AttentionFile(tmp_path, Path("/a")).change).acknowledge(worker)
    assert "not kept" in problem


# ---------------------------------------------------------------- usage limits: whose, of whom, until when


def window(used: float, resets: float, at: float = NOW - 60, **more: str) -> UsageWindow:
    return UsageWindow(used=used, resets_at=NOW + resets, minutes=300, at=at, **more)


def worker(name: str, home: str, *windows: UsageWindow) -> Worker:
    file, works = f"{home}/sessions/2026/11/26/{name}.jsonl", Assessment(State.RUNNING, NOW, "")
    tokens = Tokens(limits=windows)
    return Worker(name, "codex-thread", name, Agent("codex"), works, file=file, tokens=tokens)


def test_the_newest_statement_of_a_limit_counts_and_accounts_do_not_mix() -> None:
    workers = [
        worker("a", "/h/.codex", window(82, HOUR), window(50, HOUR, NOW - 600)),
        worker("b", "/h/.codex", window(60, HOUR + 30, NOW - 300)),  # the same, earlier
        worker("c", "/h/.codex", window(95, 2 * HOUR, NOW - 900)),  # another account in this home
        worker("d", "/h/.codex", window(30, HOUR, plan="spark")),
        worker("e", "/h/.work", window(110, HOUR)),
        worker("f", "/h/.codex", window(100, -60)),  # reset meanwhile
    ]
    found = [(each.home, each.window.used, each.span) for each in usage_limits(workers, NOW)]
    used = [("/h/.work", 110), ("/h/.codex", 95), ("/h/.codex", 82), ("/h/.codex", 30)]
    assert found == [(*each, "5h") for each in used]
    report = status_report(Snapshot(NOW, tuple(workers)))
    assert [each.used for each in report.limits] == [110, 95, 82, 30]
    assert report.limits[0].resets_at == "2026-11-20T21:00:00.000Z"
    line = 'agentdash_usage_percent{agent="codex",home="/h/.work",plan="",span="5h"} 110'
    assert line in metrics_text(Snapshot(NOW, tuple(workers)), NOW)


def stopped(error_kind: str | None, *windows: UsageWindow) -> float | None:
    error = error_kind and "no"
    turn = Turn(NOW - 120, ended_at=NOW - 60, how="completed", error=error, error_kind=error_kind)
    thread = Thread("t", turn=turn, tokens=Tokens(limits=windows))
    return limited_until(thread, Assessment(State.FAILED_PROVIDER, NOW - 60, "no"))


@pytest.mark.parametrize(
    ("error_kind", "windows", "until"),
    [
        ("usage_limit_exceeded", [window(100, HOUR), window(40, 9 * HOUR)], NOW + HOUR),
        ("rate_limit", [window(100, HOUR), window(104, 9 * HOUR)], NOW + 9 * HOUR),
        (None, [window(100, HOUR)], NOW + HOUR),  # Codex before 0.145 writes no error
        ("server_overloaded", [window(104, HOUR)], None),  # credits are used beyond the limit
        ("usage_limit_exceeded", [window(99, HOUR)], None),
        ("usage_limit_exceeded", [window(100, HOUR, NOW - 600)], None),  # stated in an earlier turn
        ("usage_limit_exceeded", [], None),
    ],
)
def test_a_turn_is_stopped_by_what_it_states(
    error_kind: str | None, windows: list[UsageWindow], until: float | None
) -> None:
    assert stopped(error_kind, *windows) == until


def test_it_needs_you_once_the_limit_is_reset() -> None:
    fact = Fact(FactKind.PROVIDER, "provider failed:", "You've hit your usage limit.")
    before = Assessment(State.FAILED_PROVIDER, NOW - 60, "", fact=fact)
    until = NOW + HOUR

    def judge(now: float) -> tuple[Group, str]:
        assessment = with_limit(before, until, now)
        more = {"looked_at": NOW, "acknowledgement": None, "now": now, "limited_until": until}
        standing = judge_attention(assessment, is_held=True, **more)
        assert standing.due == (until if now < until else None)
        return standing.group, assessment.fact.text

    clock = local_time(until, NOW)
    assert judge(NOW) == (Group.DONE, f"limited until {clock}: You've hit your usage limit.")
    assert judge(until) == (
        Group.NEEDS_YOU,
        f"its limit was reset at {clock}, it still stands: You've hit your usage limit.",
    )


@pytest.mark.parametrize(
    ("text", "resets"),
    [
        ("You've hit your 5-hour limit · resets 12:20am (UTC)", "2026-11-21T00:20 UTC"),
        ("You've hit your limit · resets 9pm (America/New_York)", "2026-11-20T21:00 America/New_York"),
        ("You've hit your weekly limit · resets Jan 2, 7pm (Asia/Riyadh)", "2027-01-02T19:00 Asia/Riyadh"),
        ("You've hit your limit · resets Feb 31, 7pm (UTC)", None),
        ("You've hit your limit · resets 7pm (Europe/../../etc/passwd)", None),
        ("You've hit your limit · resets 7pm (No/Where)", None),
        ("5-hour limit reached ∙ resets 3pm", None),  # by a clock that is not known
    ],
)
def test_times_in_messages_of_claude_code(text: str, resets: str | None) -> None:
    found = usage_limit(None, text, NOW)
    expected = None
    if resets is not None:
        moment, zone = resets.split()
        expected = datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo(zone)).timestamp()
    assert (found and found.resets_at) == expected


def test_the_record_of_claude_code_states_it() -> None:
    quota = {"status": "rejected", "resetsAt": 1795738835, "rateLimitType": "five_hour"}
    assert usage_limit(quota, "You've hit your 5-hour limit", NOW) == UsageWindow(
        used=100.0, resets_at=1795738835, minutes=300, at=NOW, plan="five_hour"
    )
    assert usage_limit({"resetsAt": "soon"}, "", NOW) is None
