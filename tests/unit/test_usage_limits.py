"""Usage limits: whose they are, what they say of a worker that has stopped, and until when."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from agentdash.agents.claude.transcript.records import usage_limit
from agentdash.cli.metrics import metrics_text
from agentdash.engine.judge.attention import judge_attention, limited_until, with_limit
from agentdash.model.fact import Fact, FactKind
from agentdash.model.states import Group, State
from agentdash.model.thread import Thread, Tokens, Turn
from agentdash.model.times import local_time
from agentdash.model.tokens import UsageWindow
from agentdash.model.usage_limits import usage_limits
from agentdash.model.worker import Agent, Assessment, Snapshot, Worker
from agentdash.report.status import status_report

NOW = 1_795_204_800.0
HOUR = 3_600.0


def window(used: float, resets: float, at: float = NOW - 60, **more: str) -> UsageWindow:
    return UsageWindow(used=used, resets_at=NOW + resets, minutes=300, at=at, **more)


def worker(name: str, home: str, *windows: UsageWindow, agent: str = "codex") -> Worker:
    return Worker(
        name,
        "codex-thread",
        name,
        Agent(agent),
        Assessment(State.RUNNING, NOW, ""),
        file=f"{home}/sessions/2026/11/26/rollout-{name}.jsonl",
        tokens=Tokens(limits=windows),
    )


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
    assert found == [
        ("/h/.work", 110, "5h"),
        ("/h/.codex", 95, "5h"),
        ("/h/.codex", 82, "5h"),
        ("/h/.codex", 30, "5h"),
    ]
    report = status_report(Snapshot(NOW, tuple(workers)))
    assert [each.used for each in report.limits] == [110, 95, 82, 30]
    assert report.limits[0].resets_at == "2026-11-20T21:00:00.000Z"
    line = 'agentdash_usage_percent{agent="codex",home="/h/.work",plan="",span="5h"} 110'
    assert line in metrics_text(Snapshot(NOW, tuple(workers)), NOW)


def stopped(error_kind: str | None, *windows: UsageWindow) -> float | None:
    turn = Turn(
        NOW - 120, ended_at=NOW - 60, how="completed", error=error_kind and "no", error_kind=error_kind
    )
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
        standing = judge_attention(
            assessment,
            is_held=True,
            looked_at=NOW,
            acknowledgement=None,
            now=now,
            limited_until=until,
        )
        assert standing.due == (until if now < until else None)
        assert assessment.fact is not None
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
