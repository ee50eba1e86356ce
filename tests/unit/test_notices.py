"""Notices: when they are due, what their document keeps to itself, and what sends them."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentdash.cli import notices
from agentdash.config import Config, NoticeSettings, ThresholdSettings
from agentdash.engine.hub import Hub
from agentdash.engine.reduce.thread import reduce_thread
from agentdash.model.events import SourceSeen, TokensCounted
from agentdash.model.fact import Fact, FactKind, ObjectForm
from agentdash.model.states import Group, State
from agentdash.model.thread import Call, Thread, Tokens
from agentdash.model.tokens import ModelUsage, TokenUsage
from agentdash.model.worker import Sandbox, Snapshot, Worker
from agentdash.replay.clock import VirtualClock
from agentdash.report.notices import News, NoticeBook, is_quiet, notice_report
from agentdash.report.redact import Scrubber
from agentdash.thresholds import failures_in_a_row, passed
from tests.unit.story import row

ASKS = Fact(FactKind.ASK, "asks", "Shall I sell Acme?")
WAITING, RUNNING, DONE = State.WAITING_APPROVAL, State.RUNNING, State.COMPLETED


def worker(state: State, since: float, name: str = "deploy", **more: Any) -> Worker:
    return row(f"id-{name}", state, since=since, name=name, **more)


def told(story: Sequence[tuple[float, Sequence[Worker]]], quiet: Sequence[float] = ()) -> dict[float, str]:
    """Return what is told at the times of a story: `deploy needs-you`."""
    book, found = NoticeBook(("needs-you", "done", "mismatch", "stalled")), {}
    for at, workers in story:
        news = book.due(Snapshot(at, tuple(workers)), at, is_quiet=at in quiet)
        if news:
            found[at] = ", ".join(f"{each.worker.name} {'+'.join(each.on)}" for each in news)
    return found


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([(WAITING, 105.0)], {106.0: "deploy needs-you"}),
        ([(WAITING, 50.0)], {}),  # from before the first snapshot
        ([(DONE, 105.0)], {106.0: "deploy done"}),
        ([(RUNNING, 105.0), (WAITING, 108.0)], {109.0: "deploy needs-you"}),
        ([(WAITING, 105.0), (RUNNING, 106.0)], {}),  # answered before it had settled
    ],
)
def test_what_begins_later_is_told_once(
    states: list[tuple[State, float]], expected: dict[float, str]
) -> None:
    story: list[tuple[float, list[Worker]]] = [(100.0, [])]
    for at in range(105, 120):
        begun = [each for each in states if each[1] <= at]
        story.append((float(at), [worker(*begun[-1])]))
    assert told(story) == expected


def test_one_worker_is_told_of_once_a_minute_and_the_rest_in_one_notice() -> None:
    story = [(100.0, [])] + [
        (float(at), [worker(WAITING if at % 4 < 2 else RUNNING, float(at - at % 2))])
        for at in range(101, 300)
    ]
    times = list(told(story))
    assert all(later - earlier >= 60 for earlier, later in pairwise(times))
    assert len(times) == 4

    both = [worker(WAITING, 101.0), worker(DONE, 102.0, "build"), worker(WAITING, 90.0, "old")]
    night = [(100.0, [both[2]]), *((100.0 + n, both) for n in range(1, 9))]
    assert told(night, quiet=[100.0 + n for n in range(8)]) == {108.0: "deploy needs-you, build done"}


def test_children_the_past_and_stalls() -> None:
    workers = [
        worker(DONE, 101.0, "child", parent="id-deploy"),
        worker(WAITING, 101.0, "past", standing=Group.PAST),
        worker(RUNNING, 101.0, "slow", stalled=101.0),
        worker(WAITING, 101.0, "acknowledged", standing=Group.DONE),
    ]
    assert told([(100.0, []), (101.0, workers), (103.0, workers)]) == {103.0: "slow stalled"}


def failed(*outcomes: tuple[str, int]) -> tuple[Call, ...]:
    """Return calls that have ended, the newest first: each with its command and its exit code."""
    return tuple(
        Call(str(n), float(n), n, "command", "exec", text, ended_at=float(n), outcome="ended", exit_code=code)
        for n, (text, code) in enumerate(outcomes)
    )


def test_thresholds_are_told_once_each() -> None:
    book = NoticeBook(("threshold",), ThresholdSettings(context=80, failing=3))
    story = ((100.0, 10, 0), (101.0, 84, 1), (103.0, 86, 3), (105.0, 90, 4), (170.0, 95, 4))
    seen = []
    for at, context, failures in story:
        tokens, calls = Tokens(context=context, window=100), failed(*[("make", 2)] * failures)
        busy = worker(RUNNING, 50.0, tokens=tokens, calls=calls, last_activity=at)
        seen += [each.passed for each in book.due(Snapshot(at, (busy,)), at)]
    assert seen == [
        ("context 86 %", "same call failed 3 times"),
        ("context 95 %", "same call failed 4 times"),
    ]


def test_the_cost_of_a_day_begins_with_it() -> None:
    day = 20_000
    thread, seen = Thread("t"), []
    for at, tokens in ((day - 1, 1_000_000), (day, 3_000_000), (day + 0.9, 9_000_000)):
        usage = (ModelUsage("gpt-5", TokenUsage(input=tokens)),)
        thread = reduce_thread(thread, TokensCounted(at=at * 86_400, thread="t", by_model=usage))
        busy = worker(RUNNING, 1.0, tokens=thread.tokens)
        seen.append([words for _, words in passed(busy, ThresholdSettings(cost_day=2), at * 86_400)])
    assert seen == [[], ["today $2.50"], ["today $10.00"]]
    assert not list(passed(busy, ThresholdSettings(cost_day=2), (day + 1) * 86_400))


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([("a", 1), ("a", 1), ("a", 1), ("b", 1)], 3),
        ([("a", 0), ("a", 1), ("a", 1)], 0),
        ([("a", 1), ("b", 0), ("a", 1)], 1),
        ([], 0),
    ],
)
def test_failures_in_a_row(outcomes: list[tuple[str, int]], expected: int) -> None:
    assert failures_in_a_row(worker(RUNNING, 1.0, calls=failed(*outcomes))) == expected


@pytest.mark.parametrize(
    ("hours", "quiet"),
    [
        ("22:00-07:00", {"22:00", "23:59", "00:00", "06:59"}),
        ("12:00-13:30", {"12:00", "13:29"}),
        (None, set()),
    ],
)
def test_quiet_hours(hours: str | None, quiet: set[str]) -> None:
    clocks = ("00:00", "06:59", "07:00", "12:00", "13:29", "13:30", "21:59", "22:00", "23:59")
    assert {clock for clock in clocks if is_quiet(hours, clock)} == quiet


def document_of(*news: News, text: bool = False) -> dict[str, Any]:
    scrubber = None if text else Scrubber(["/home/ada"], ["lovelace"])
    found: dict[str, Any] = json.loads(notices.msgspec.json.encode(notice_report(news, 100.0, scrubber)))
    return found


def test_a_redacted_document_keeps_commands_and_paths_but_no_words() -> None:
    run = Fact(FactKind.RUN, "wants to run", "scp /home/ada/x lovelace:", ObjectForm.COMMAND, "May I?")
    asks = worker(State.WAITING_INPUT, 99.0, "Sell Acme", fact=ASKS, cwd="/home/ada/acme")
    runs = worker(WAITING, 99.0, "Sell Acme", fact=run, cwd="/home/ada/acme")
    asks, runs = (replace(each, id="01a21a1f-9a8d-77d3-b758-375b853d974e") for each in (asks, runs))
    for each in (asks, runs):
        shown = json.dumps(document_of(News(each, ("needs-you",))))
        assert not [word for word in ("Sell", "Acme?", "May I", "/home/ada", "lovelace") if word in shown]
        assert "Sell Acme" in json.dumps(document_of(News(each, ("needs-you",)), text=True))
    redacted = document_of(News(runs, ("needs-you",)))
    assert redacted["text"] == "wants to run scp ~/x [host]:"
    assert redacted["title"] == "codex 01a21a1f-9a8d: waiting approval"


def test_the_document_of_several_counts_them() -> None:
    differing = worker(RUNNING, 99.0, "b", sandbox=Sandbox(verdict="mismatch"))
    several = document_of(
        News(worker(WAITING, 99.0, "a"), ("needs-you",)), News(differing, ("mismatch",)), text=True
    )
    assert several["title"] == "2 workers: 1 needs you, 1 sandbox problem"
    assert several["text"] == "a: waiting approval; b: sandbox problem"


# ---------------------------------------------------------------- sending


def run(*command: str) -> str:
    report = notice_report([News(worker(WAITING, 99.0), ("needs-you",))], 100.0, None)
    return asyncio.run(notices.run_command(command, report))


def test_the_command_gets_the_document_and_says_how_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert run("/bin/sh", "-c", f"cat > {out}") == ""
    assert json.loads(out.read_text())["title"] == "deploy: waiting approval"
    assert run("/bin/sh", "-c", "echo first >&2; echo refused >&2; exit 7") == "exit code 7: refused"
    assert run("/bin/sh", "-c", "exec <&-; true") == ""  # it need not read
    assert run("/nowhere/tell") == "No such file or directory"
    monkeypatch.setattr(notices, "_TIMEOUT_S", 0.2)
    assert run("/bin/sh", "-c", f"sleep 60; rm {out}") == "it took longer than 0.2 s"
    assert out.exists()


def stopped_hub() -> Hub:
    clock = VirtualClock(100.0)
    clock.set(paused=True, now=100.0)
    return Hub((), clock)


async def test_a_slow_command_holds_up_neither_bell_nor_later_notices(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = f"cat >> {out}; [ $(wc -l < {out}) = 1 ] && sleep 0.3; exit 3"
    settings = NoticeSettings(command=("/bin/sh", "-c", script), bell=True)
    hub, written = stopped_hub(), []
    service = notices.Notices(Config(notices=settings), hub, lambda: None, written.append)
    service._tell([News(worker(WAITING, 1.0, "a"), ("needs-you",))])
    task = asyncio.create_task(service._run_command())
    await until(out.exists)
    for name in "bc":
        service._tell([News(worker(WAITING, 2.0, name), ("needs-you",))])
    assert written == ["\a"] * 3
    await until(lambda: bool(hub._pending))
    await until(lambda: out.read_text().count("\n") == 2)
    task.cancel()
    assert json.loads(out.read_text().splitlines()[-1])["title"] == "2 workers: 2 need you"
    detail = SourceSeen(at=100.0, name="notices", ok=False, detail="/bin/sh: exit code 3")
    assert hub._pending[0] == detail


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - a file
        await asyncio.sleep(0.01)


def test_foreign_text_cannot_end_a_sequence() -> None:
    hostile = worker(WAITING, 101, "--help;\x1b]0;owned\a", fact=Fact(FactKind.ASK, "x;y\x9d0;z\x1b\\"))
    report = notice_report([News(hostile, ("needs-you",))], 100.0, None)
    for sequence in notices.osc_sequences(report, {}).split("\x1b\\")[:2]:
        body = sequence.removeprefix("\x1b]")
        assert all(character.isprintable() for character in body)
        assert body.count(";") == (1 if body.startswith("9") else 3)
    wrapped = notices.osc_sequences(report, {"TMUX": "/tmp/tmux-0/default,1,0"})
    assert wrapped.count("\x1bPtmux;\x1b\x1b]") == 2


def test_no_other_agentdash_sends_the_same() -> None:
    settings = NoticeSettings(command=(sys.executable,))
    service = notices.Notices(Config(notices=settings), stopped_hub(), lambda: 42)
    service._tell([News(worker(WAITING, 1.0), ("needs-you",))])
    assert not service._outbox
