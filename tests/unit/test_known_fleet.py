"""What a journal restores of a fleet."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect
from msgspec.structs import replace

from agentdash.engine.reduce.fleet import reduce
from agentdash.model import events as e
from agentdash.model.denials import PathKind
from agentdash.model.evidence import EvidenceSource
from agentdash.model.fleet import RESTORED_FIELDS, Fleet, known_of
from agentdash.model.git import Repository
from agentdash.model.memory import PastWorker, RememberedObservation, ThreadMemory
from agentdash.model.observation import SandboxObservation
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Kernel, Process, ProcessKey
from agentdash.model.requested import Requested
from agentdash.model.state_paths import Mount, PathAccess, WriteAccess
from agentdash.model.states import Acknowledgement, Attention, State
from agentdash.store.journal import LINE_DECODER, JournalPacker, JournalUnpacker

# ---------------------------------------------------------------- what a journal restores

THREADS = ("t1", "t2")
PANES = (PaneKey("default", "%1"), PaneKey("-L x", "%1"))
PROCESSES = tuple(ProcessKey(pid, float(pid)) for pid in (10, 11, 20))
LINES = st.lists(st.sampled_from(("", "⠋ 3s", "⠙ 4s", "done", "Grüße")), max_size=4).map(tuple)
KERNELS = st.sampled_from((None, Kernel(seccomp=2, mnt=5), Kernel(mnt=1)))
STATES = st.sampled_from((None, "running", "completed", "waiting-approval", "failed-provider"))


@st.composite
def processes(draw: st.DrawFn) -> Process:
    key = draw(st.sampled_from(PROCESSES))
    return Process(
        key=key,
        ppid={10: 1, 11: 10, 20: 11}[key.pid],
        name="x",
        argv=draw(st.sampled_from(((), ("codex", "resume", "t1")))),
        env=draw(st.sampled_from((None, {"CODEX_THREAD_ID": "t1"}))),
        kernel=draw(KERNELS),
        agent=draw(st.sampled_from((None, "codex", "opencode"))),
        once=draw(st.booleans()),
        zombie=draw(st.booleans()),
        rollouts=draw(st.sampled_from(((), ("/t1",)))),
        cpu=draw(st.sampled_from((0.0, 1.0, 2.0))),
        io=draw(st.sampled_from((0, 5))),
    )


@st.composite
def panes(draw: st.DrawFn) -> Pane:
    return Pane(
        key=draw(st.sampled_from(PANES)),
        session="s",
        window="1:w",
        pid=draw(st.sampled_from((10, 20))),
        command="node",
        title=draw(st.sampled_from(("", "a title", "⠋ x"))),
        dead=draw(st.booleans()),
        server_pid=draw(st.sampled_from((None, 5))),
    )


AT = st.integers(1, 50).map(float)
PANE_KEYS, PROCESS_KEYS = st.sampled_from(PANES), st.sampled_from(PROCESSES)
PATHS = st.sampled_from(((), (PathAccess("/p", "db", WriteAccess("policy"), needed=True),)))
RECALLED = ThreadMemory(
    "t1", (RememberedObservation(SandboxObservation(source=EvidenceSource.ENVIRONMENT, policy=-1)),)
)
RECORDED_EVENTS: dict[type[e.Event], st.SearchStrategy[Any]] = {
    e.LocksSeen: st.builds(
        e.LocksSeen, at=AT, holders=st.sampled_from(({}, {"t1": 10})), readable=st.booleans()
    ),
    e.PaneSeen: st.builds(e.PaneSeen, at=AT, pane=panes()),
    e.PaneDrawn: st.builds(e.PaneDrawn, at=AT, key=PANE_KEYS, screen=LINES),
    e.PaneGone: st.builds(e.PaneGone, at=AT, key=PANE_KEYS),
    e.ScreenRead: st.builds(
        e.ScreenRead,
        at=AT,
        key=PANE_KEYS,
        agent=st.sampled_from(("codex", "opencode")),
        state=STATES,
        rule=st.sampled_from((None, "r")),
        text=st.sampled_from(("", "quota")),
        frozen=st.booleans(),
    ),
    e.StatusPushed: st.builds(
        e.StatusPushed,
        at=AT,
        thread=st.sampled_from(THREADS),
        status=st.sampled_from(("active", "idle")),
        flags=st.sampled_from(((), ("waitingOnApproval",))),
    ),
    e.PaneSessionRead: st.builds(
        e.PaneSessionRead, at=AT, key=PANE_KEYS, thread=st.sampled_from(THREADS), server_pid=st.just(5)
    ),
    e.ObservationsRecalled: st.builds(
        e.ObservationsRecalled, at=AT, memory=st.sampled_from([RECALLED, replace(RECALLED, thread="t2")])
    ),
    e.PanesRecalled: st.builds(
        e.PanesRecalled,
        at=AT,
        workers=st.builds(lambda key, at: (PastWorker(key, "t1", "codex", seen=at),), PANE_KEYS, AT),
    ),
    e.MountsSeen: st.builds(
        e.MountsSeen, at=AT, namespace=st.sampled_from((5, 6)), mounts=st.just((Mount(1, 0, "/"),))
    ),
    e.AttentionRecalled: st.builds(
        e.AttentionRecalled,
        at=AT,
        attention=st.builds(
            Attention,
            looked_at=AT,
            acknowledged=st.just((Acknowledgement("a", State.WAITING_INPUT, 1.0, "0123"),)),
        ),
    ),
    e.SessionSeen: st.builds(
        e.SessionSeen, at=AT, key=PROCESS_KEYS, agent=st.just("claude"), status=st.just("idle"), since=AT
    ),
    e.PolicyRequested: st.builds(
        e.PolicyRequested, at=AT, worker=st.sampled_from(THREADS), requested=st.builds(Requested, since=AT)
    ),
    e.ProcessSeen: st.builds(e.ProcessSeen, at=AT, process=processes()),
    e.StatePathsSeen: st.builds(e.StatePathsSeen, at=AT, key=PROCESS_KEYS, paths=PATHS),
    e.RepositorySeen: st.builds(
        e.RepositorySeen,
        at=AT,
        directory=st.sampled_from(("/srv/a", "/srv/b")),
        repository=st.sampled_from((None, Repository("/srv/a", "main", dirty=True), Repository("/srv/b"))),
    ),
    e.PathsSeen: st.builds(e.PathsSeen, at=AT, paths=st.just((("/srv/board", PathKind.DIRECTORY),))),
    e.ProcessGone: st.builds(e.ProcessGone, at=AT, key=PROCESS_KEYS),
    e.ProcessesCounted: st.builds(e.ProcessesCounted, at=AT),
    e.HostSeen: st.builds(e.HostSeen, at=AT, platform=st.just("linux"), kernel=KERNELS),
    e.SourceSeen: st.builds(
        e.SourceSeen,
        at=AT,
        name=st.sampled_from(("tmux", "codex feed")),
        ok=st.booleans(),
        detail=st.just("d"),
    ),
    e.ViolationLogged: st.builds(
        e.ViolationLogged,
        at=AT,
        thread=st.sampled_from(THREADS),
        call=st.just("c"),
        resource=st.just("network"),
        reason=st.just("r"),
        host=st.sampled_from((None, "h")),
    ),
    e.TroubleLogged: st.builds(
        e.TroubleLogged, at=AT, thread=st.sampled_from(THREADS), text=st.just("retry")
    ),
}
CODEX = Process(PROCESSES[1], 10, "codex", agent="codex", kernel=Kernel(mnt=5))
BEGINNING: list[e.Event] = [
    e.PaneSeen(at=1.0, pane=Pane(PANES[0], "s", "1:w", 10, "node")),
    e.MountsSeen(at=1.0, namespace=5, mounts=(Mount(1, 0, "/"),)),
    e.ProcessSeen(at=1.0, process=Process(PROCESSES[0], 1, "sh")),
    e.ProcessSeen(at=1.0, process=CODEX),
    e.ProcessesCounted(at=2.0),
    e.ProcessSeen(at=3.0, process=replace(CODEX, cpu=1.0)),
    e.ScreenRead(at=3.0, key=PANES[0], agent="codex", state="failed-provider", text="quota"),
]
"""A worker in a pane, which random events rarely add up to."""
RANDOM_EVENTS = st.lists(
    st.sampled_from(list(RECORDED_EVENTS)).flatmap(RECORDED_EVENTS.__getitem__), max_size=25
)
STORIES = st.builds(lambda begin, events: [*begin, *events], st.sampled_from(([], BEGINNING)), RANDOM_EVENTS)
SLOW = settings(suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def restorable(fleet: Fleet) -> dict[str, object]:
    found = {name: getattr(fleet, name) for name in RESTORED_FIELDS}
    logged = {t.id: (t.violations, t.trouble) for t in fleet.threads.values() if t.violations or t.trouble}
    return found | {"logged": logged}


def test_a_story_reaches_every_restored_field() -> None:
    """The property below is empty for fields that no story fills."""
    filled: set[str] = set()

    @SLOW
    @given(STORIES)
    def collect(story: list[e.Event]) -> None:
        fleet = reduce(Fleet(), story)
        filled.update(name for name in RESTORED_FIELDS if getattr(fleet, name))

    collect()
    assert filled == set(RESTORED_FIELDS)


@SLOW
@given(STORIES, AT)
def test_known_fleet_is_restored_through_a_journal_line(story: list[e.Event], at: float) -> None:
    fleet = reduce(Fleet(), [*story, e.ProcessesCounted(at=51.0)])
    line = e.encode(known_of(fleet, at))
    assert restorable(reduce(Fleet(), [LINE_DECODER.decode(line)])) == restorable(fleet)


@SLOW
@given(STORIES, st.integers(0, 25))
def test_packed_events_are_unpacked(story: list[e.Event], cut: int) -> None:
    """A part begins with what is known, and the events after that are packed against it."""
    before, after = story[:cut], story[cut:]
    fleet = reduce(Fleet(), before)
    packer, unpacker = JournalPacker(), JournalUnpacker()
    packed = [packer.pack(event) for event in (known_of(fleet, 1.0), *after)]
    lines = [e.encode(event) for event in packed if event is not None]
    unpacked = [unpacker.unpack(LINE_DECODER.decode(line)) for line in lines]
    expected = [event for event in after if not isinstance(event, e.LocksSeen)]
    assert [event for event in unpacked[1:] if not isinstance(event, e.LocksSeen)] == expected


@SLOW
@given(STORIES)
def test_every_recorded_event_is_encoded_and_decoded(story: list[e.Event]) -> None:
    assert [e.decode(e.encode(event)) for event in story] == story


REQUIRED: dict[str, Any] = {
    "count": 1,
    "started_line": 1,
    "pane": Pane(PANES[0], "s", "w", 1, "sh"),
    "process": Process(PROCESSES[0], 1, "sh"),
    "key": PANES[0],
    "memory": RECALLED,
    "paths": (),
    "requested": Requested(),
    "workers": (),
    "how": "completed",
    "origin": "turn_context",
    "kind": "command",
    "role": "user",
    "since": 1.0,
    "modified": 1.0,
}
"""Values of required fields that are more than a text."""


@pytest.mark.parametrize("event_type", e.EVENTS, ids=lambda event: event.__name__)
def test_every_event_type_is_reduced(event_type: type[e.Event]) -> None:
    info = inspect.type_info(event_type)
    assert isinstance(info, inspect.StructType)
    required = [field.name for field in info.fields if field.required and field.name != "at"]
    event = event_type(at=1.0, **{name: REQUIRED.get(name, "x") for name in required})
    reduce(Fleet(), [event])
