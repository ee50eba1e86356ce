"""A pane that closed before its worker's session file was read is tied to the thread that this file names."""

from collections.abc import Sequence
from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from agentdash.collect.clock import SystemClock
from agentdash.collect.processes import first_look
from agentdash.collect.processes.first_look import Glimpse
from agentdash.collect.sources.first_look import FirstLookSource
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.memory import PastWorker, argument_digests
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.worker import PastPane
from tests.unit.story import CWD, PANE, T, begun, done, pane, polled, process

OTHER = "01a1fa8b-9999-7501-a214-dc60155cd481"
TMUX = e.SourceSeen(at=99.0, name="tmux", ok=True, detail="1 pane")
ARGV = ("codex", "exec", "-s", "read-only", "fix the tests")
PAST = PastWorker(
    pane=PANE,
    worker=str(PANE),
    agent="codex",
    seen=101.0,
    cwd=CWD,
    started=99.0,
    ended_at=103.0,
    arguments=argument_digests(ARGV),
)


def past_pane(*parts: e.Event | Sequence[e.Event]) -> PastPane:
    events = [x for part in parts for x in ([part] if isinstance(part, e.Event) else part)]
    (found,) = build_snapshot(reduce(Fleet(), [TMUX, *events]), 200.0).past
    return found


def recalled(**fields: object) -> e.Event:
    return e.PanesRecalled(at=105.0, workers=(replace(PAST, **fields),))


@pytest.mark.parametrize(
    ("fields", "thread"),
    [
        ({}, T),
        ({"ended_at": None}, T),
        ({"arguments": argument_digests(("codex", "exec", "  fix the\ntests"))}, T),
        ({"arguments": argument_digests(("codex", "exec", "fix the test"))}, None),
        ({"arguments": argument_digests(("codex", "resume"))}, None),
        ({"cwd": "/elsewhere"}, None),
        ({"agent": "opencode"}, None),
        ({"started": 102.0}, None),  # after the thread began
        ({"started": 60.0, "ended_at": 90.0}, None),  # before
        ({"started": None}, None),  # of an older agentdash
    ],
)
def test_thread_of_a_closed_pane(fields: dict[str, object], thread: str | None) -> None:
    session = [*begun(), done()]
    for events in ([*session, recalled(**fields)], [recalled(**fields), *session, *polled(110)]):
        found = past_pane(events)
        assert (found.worker, found.shown is None) == (thread or str(PANE), thread is not None)


def test_of_two_equal_threads_it_is_none() -> None:
    assert past_pane(begun(), begun(OTHER), recalled()).worker == str(PANE)


def test_pane_that_closes_while_it_is_watched() -> None:
    codex = process(11, 10, started=99.0, agent="codex", cwd=CWD, argv=ARGV)
    ran = [pane(), process(10, started=98.0), codex, *polled(100)]
    closes = [e.PaneGone(at=104.0, key=PANE), *polled(105)]
    assert past_pane(ran, closes).worker == str(PANE)
    assert past_pane(ran, closes, begun(), done(), polled(106)).worker == T


@pytest.mark.parametrize(
    "commands",
    [
        [ARGV],
        [("node", "/usr/lib/node_modules/@openai/codex/bin/codex.js", *ARGV[1:]), ARGV],
        [("sh", "-c", "codex exec -s read-only 'fix the tests' </dev/null")],
        [("bash", "-c", 'env A=1 codex exec "fix the tests"; exec "$SHELL"')],
    ],
)
async def test_first_look(monkeypatch: pytest.MonkeyPatch, commands: list[tuple[str, ...]]) -> None:
    seen = Glimpse("/run/t/sock", 7, "%3", 11, 99.0, CWD, 99.5, tuple(commands))
    monkeypatch.setattr(first_look, "_taken", [seen])
    key = PaneKey("/run/t/sock", "%3")
    tmux = e.SourceSeen(at=100.0, name=f"tmux {key.server}", ok=True, detail="")
    source = FirstLookSource(SystemClock())
    (event,) = await source.poll(reduce(Fleet(), [tmux]))
    assert isinstance(event, e.PanesRecalled)
    (past,) = event.workers
    assert (past.pane, past.agent, past.server_pid, past.started) == (key, "codex", 7, 99.0)
    assert set(argument_digests(("codex", "fix the tests"))) <= set(past.arguments)
    there = e.PaneSeen(at=100.0, pane=Pane(key, "s", "1:w", 11, "codex", server_pid=7))
    assert await source.poll(reduce(Fleet(), [tmux, there])) == [replace(event, at=ANY)]  # it has ended
    runs = process(11, 7, started=99.0, agent="codex", cwd=CWD, argv=ARGV)
    assert await source.poll(reduce(Fleet(), [tmux, there, runs, *polled(100)])) == []
    assert await source.poll(Fleet()) == []  # a server that is not watched
