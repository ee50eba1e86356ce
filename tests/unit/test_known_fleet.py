"""What a journal restores of a fleet."""

from itertools import product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
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
RECALLED = ThreadMemory(
    "t1", (RememberedObservation(SandboxObservation(source=EvidenceSource.ENVIRONMENT, policy=-1)),)
)
AT = st.integers(1, 50).map(float)
SCREENS = ((), ("⠋ 3s", "done"), ("⠙ 4s", "done"), ("Grüße",))
SHELL, CODEX_TUI, NESTED = (Process(key, ppid, "x") for key, ppid in zip(PROCESSES, (1, 10, 11), strict=True))
RUNNING = [
    SHELL,
    replace(SHELL, zombie=True),
    replace(CODEX_TUI, agent="codex", argv=("codex", "resume", "t1"), kernel=Kernel(mnt=1), cpu=1.0),
    replace(CODEX_TUI, agent="codex", rollouts=("/t1",), kernel=Kernel(seccomp=2, mnt=5), io=5),
    replace(CODEX_TUI, agent="codex", zombie=True, cpu=2.0),
    replace(NESTED, env={"CODEX_THREAD_ID": "t1"}, kernel=Kernel(mnt=5)),
    replace(NESTED, agent="opencode", once=True),
]
NEEDED = (PathAccess("/p", "db", WriteAccess("mode"), needed=True),)
PLACES = (None, Repository("/srv/a", "main", dirty=True), Repository("/srv/b"))
LOOKED = Attention(looked_at=5.0, acknowledged=(Acknowledgement("a", State.WAITING_INPUT, 1.0, "0123"),))


def examples(key: PaneKey, process: ProcessKey, thread: str) -> list[e.Event]:
    """Return events of all kinds that are recorded."""
    pane = Pane(key, "s", "1:w", process.pid, "node")
    read = e.ScreenRead(at=0, key=key, agent="codex", state="running", rule="r")
    return [
        e.LocksSeen(at=0, holders={}),
        e.LocksSeen(at=0, holders={thread: process.pid}),
        *(e.PaneSeen(at=0, pane=each) for each in (pane, replace(pane, title="⠋ x", server_pid=5))),
        e.PaneSeen(at=0, pane=replace(pane, dead=True)),
        *(e.PaneDrawn(at=0, key=key, screen=screen) for screen in SCREENS),
        e.PaneGone(at=0, key=key),
        *(read, replace(read, frozen=True), replace(read, agent="opencode", state=None)),
        *(replace(read, state=state, text="quota") for state in ("failed-provider", "waiting-approval")),
        e.StatusPushed(at=0, thread=thread, status="active", flags=("waitingOnApproval",)),
        e.StatusPushed(at=0, thread=thread, status="idle"),
        e.PaneSessionRead(at=0, key=key, thread=thread, server_pid=5),
        e.ObservationsRecalled(at=0, memory=replace(RECALLED, thread=thread)),
        e.PanesRecalled(at=0, workers=(PastWorker(key, thread, "codex", seen=process.started),)),
        *(e.MountsSeen(at=0, namespace=number, mounts=(Mount(1, 0, "/"),)) for number in (5, 6)),
        e.AttentionRecalled(at=0, attention=LOOKED),
        e.SessionSeen(at=0, key=process, agent="claude", status="idle", since=2.0),
        *(e.PolicyRequested(at=0, worker=thread, requested=Requested(since=since)) for since in (1.0, 9.0)),
        *(e.ProcessSeen(at=0, process=each) for each in RUNNING),
        *(e.StatePathsSeen(at=0, key=process, paths=paths) for paths in ((), NEEDED)),
        *(e.RepositorySeen(at=0, directory="/srv/a", repository=place) for place in PLACES),
        e.PathsSeen(at=0, paths=(("/srv/board", PathKind.DIRECTORY),)),
        e.ProcessGone(at=0, key=process),
        e.ProcessesCounted(at=0),
        e.HostSeen(at=0, platform="linux"),
        e.HostSeen(at=0, platform="linux", kernel=Kernel(mnt=1)),
        *(
            e.SourceSeen(at=0, name=n, ok=ok, detail="d")
            for n in ("tmux", "codex feed")
            for ok in (True, False)
        ),
        *(
            e.ViolationLogged(at=0, thread=thread, call="c", resource="network", reason="r", host=host)
            for host in (None, "h")
        ),
        e.TroubleLogged(at=0, thread=thread, text="retry"),
    ]


BY_KIND: dict[type[e.Event], list[e.Event]] = {}
for _places in product(PANES, PROCESSES, THREADS):
    for _event in examples(*_places):
        BY_KIND.setdefault(type(_event), []).append(_event)
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
EVENTS = st.sampled_from(list(BY_KIND)).flatmap(lambda kind: st.sampled_from(BY_KIND[kind]))
RANDOM_EVENTS = st.lists(st.builds(lambda event, at: replace(event, at=at), EVENTS, AT), max_size=25)
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
    assert BY_KIND.keys() == set(e.RECORDED)


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
