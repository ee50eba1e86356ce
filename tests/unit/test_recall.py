"""Facts of earlier looks: observations under the policy they were made under, and workers of past panes."""

import pytest
from msgspec.structs import replace

from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.evidence import EvidenceSource
from agentdash.model.fleet import Fleet
from agentdash.model.memory import PastWorker, RememberedObservation, ThreadMemory, digest
from agentdash.model.observation import SandboxObservation
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Policy
from agentdash.model.process import Process, ProcessKey
from agentdash.model.states import State
from agentdash.model.worker import PastPane

KEY = PaneKey("default", "%4")
PANE = Pane(KEY, "s", "1:w", 10, "node", server_pid=5)
AGENT = Process(ProcessKey(10, 1.0), 1, "opencode", agent="opencode")
SEEN = SandboxObservation(
    source=EvidenceSource.ENVIRONMENT, policy=-1, network_flag="1", first=25.0, last=26.0
)
MEMORY = ThreadMemory("t", (RememberedObservation(SEEN, policy_since=20.0),))
RECALLED = e.ObservationsRecalled(at=90.0, memory=MEMORY)
FILE: list[e.Event] = [
    e.ThreadStarted(at=5.0, thread="t", line=1),
    e.PolicySet(at=10.0, thread="t", line=2, origin="turn_context", policy=Policy(network="off")),
    e.PolicySet(at=20.0, thread="t", line=3, origin="turn_context", policy=Policy(network="on")),
]
LOOK: list[e.Event] = [
    e.SourceSeen(at=50.0, name="tmux", ok=True, detail="1 pane"),
    e.PaneSeen(at=50.0, pane=PANE),
    e.PaneDrawn(at=50.0, key=KEY, screen=("Allow?",), since=40.0),
    e.ProcessSeen(at=50.0, process=AGENT),
    e.ProcessesCounted(at=50.0),
]
ASKS = e.ScreenRead(
    at=50.0, key=KEY, agent="opencode", state="waiting-approval", rule="opencode.ask", text="Allow?"
)


RESET = e.FileReset(at=95.0, thread="t")


@pytest.mark.parametrize(
    ("story", "known"),
    [
        ([*FILE, RECALLED], [(1, 25.0)]),
        ([RECALLED, *FILE], [(1, 25.0)]),
        ([*FILE, RECALLED, RECALLED], [(1, 25.0)]),
        ([*FILE[:2], RECALLED], []),  # its policy is not known
        ([*FILE, RECALLED, RESET], []),
        ([*FILE, RECALLED, RESET, *FILE], [(1, 25.0)]),
    ],
)
def test_recalled_observation_has_the_policy_it_was_made_under(
    story: list[e.Event], known: list[tuple[int, float]]
) -> None:
    observations = reduce(Fleet(), story).threads["t"].observations
    assert [(each.policy, each.first) for each in observations] == known


def past_panes(events: list[e.Event]) -> tuple[PastPane, ...]:
    return build_snapshot(reduce(Fleet(), events), 100.0).past


def test_worker_of_a_pane_that_has_gone() -> None:
    gone: list[e.Event] = [
        e.PaneGone(at=60.0, key=KEY),
        e.ProcessGone(at=60.0, key=AGENT.key),
        e.ProcessesCounted(at=60.0),
    ]
    snapshot = build_snapshot(reduce(Fleet(), [*LOOK, ASKS, *gone]), 100.0)
    assert snapshot.workers == ()
    (past,) = snapshot.past
    assert past.shown is not None
    assert (past.worker, past.shown.state, past.shown.assessment.since) == ("%4", State.EXITED, 60.0)
    completed = replace(ASKS, state="completed")
    (past,) = past_panes([*LOOK, completed, *gone])
    assert past.shown is not None
    assert past.shown.state is State.COMPLETED


def recalled_pane(**fields: object) -> e.PanesRecalled:
    past = PastWorker(pane=KEY, worker="%4", agent="opencode", seen=45.0, server_pid=5, pid=10)
    return e.PanesRecalled(at=49.0, workers=(replace(past, **fields),))


@pytest.mark.parametrize(
    ("fields", "number"),
    [
        ({"pid": None}, 1),
        ({"pid": None, "server_pid": 6}, 0),  # a new server
        ({"pane": PaneKey("-L other", "%4"), "worker": "-L other %4"}, 0),  # one that is not watched
    ],
)
def test_pane_of_another_server_has_no_past_worker(fields: dict[str, object], number: int) -> None:
    assert len(past_panes([recalled_pane(**fields), *LOOK[:2]])) == number


def test_server_that_does_not_answer_is_no_end() -> None:
    hangs = e.SourceSeen(at=50.0, name="tmux", ok=False, detail="no answer within 2 s")
    (past,) = past_panes([recalled_pane(), hangs])
    assert past.shown is not None
    assert past.shown.state is State.UNREACHABLE


def since(events: list[e.Event]) -> float | None:
    (worker,) = build_snapshot(reduce(Fleet(), events), 51.0).workers
    assert worker.state is State.WAITING_APPROVAL
    return worker.assessment.since


def test_state_began_when_an_earlier_look_saw_it() -> None:
    words = {"rule": "opencode.ask", "words": digest("Allow?")}
    known = {"state": State.WAITING_APPROVAL, "since": 30.0, **words}
    assert since([*LOOK, ASKS]) == 40.0  # when the screen was drawn
    assert since([recalled_pane(**known), *LOOK, ASKS]) == 30.0
    assert since([*LOOK, ASKS, recalled_pane(**known)]) == 30.0
    for other in ({"pid": 11}, {"server_pid": 6}, {"words": digest("Other?")}, {"rule": "opencode.other"}):
        assert since([recalled_pane(**(known | other)), *LOOK, ASKS]) == 40.0
