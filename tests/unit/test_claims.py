"""Who a process says that it belongs to counts only together with what it descends from."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from agentdash.engine.link.linker import link_fleet
from agentdash.engine.reduce.calls import MAX_OBSERVATIONS
from agentdash.model import events as e
from agentdash.model.fleet import memory_of
from agentdash.model.pane import Pane
from agentdash.model.process import ProcessKey
from agentdash.model.worker import Worker
from tests.unit.story import (
    CHILD,
    CWD,
    HOST,
    PANE,
    SANDBOXED,
    T,
    begun,
    called,
    fleet,
    held,
    polled,
    process,
    snapshot_after,
)

FORGED = {"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1", "CODEX_SANDBOX": "seatbelt"}
"""Marks that change the verdict of the victim if they count."""
OWN = {"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1", "CODEX_SANDBOX_NETWORK_DISABLED": "1"}
DAEMON = ("codex", "app-server", "--listen", "unix://", "--managed-daemon")
Story = Sequence[e.Event | Sequence[e.Event]]


def codex(pid: int = 50, ppid: int = 1, *, started: float = 90.0) -> e.Event:
    return process(pid, ppid, started=started, agent="codex", cwd=CWD)


def daemon(pid: int) -> e.Event:
    return process(pid, argv=DAEMON)


def forger(ppid: int = 1, pid: int = 77, *, started: float = 104.0) -> e.Event:
    return process(pid, ppid, started=started, env=FORGED)


def command(ppid: int = 50, pid: int = 78) -> e.Event:
    return process(pid, ppid, started=104.0, env=OWN, kernel=SANDBOXED)


def after(*story: e.Event | Sequence[e.Event]) -> Worker:
    """Return the worker of the thread."""
    machine = e.HostSeen(at=80, platform="linux", kernel=HOST)
    return next(w for w in snapshot_after(machine, begun(), called(), *story).workers if w.id == T)


@pytest.mark.parametrize(
    "story",
    [
        pytest.param((codex(), forger(), held(110)), id="a loose process"),
        pytest.param((codex(), codex(60), forger(60), held(110)), id="below another codex"),
        pytest.param((codex(), codex(60), process(61, 60), forger(61), held(110)), id="deep below it"),
        pytest.param(
            (codex(), codex(60), forger(60), e.LocksSeen(at=110, holders={T: 50, CHILD: 60}),
             e.ProcessesCounted(at=110)),
            id="below the codex of another thread",
        ),
        pytest.param((codex(), daemon(60), forger(60), held(110)), id="below another daemon"),
        pytest.param(
            (daemon(50), process(60, 50, env={"CODEX_THREAD_ID": CHILD}), forger(60), held(110)),
            id="below a command of another thread of its daemon",
        ),
        pytest.param(
            (daemon(50), process(60, 50, env={"CODEX_THREAD_ID": CHILD}), process(61, 60, env={}),
             forger(61), e.ProcessesCounted(at=105), held(110)),
            id="deep below it, with an owner that is known later",
        ),
        pytest.param((codex(started=200.0), forger(50), held(210)), id="older than its parent"),
        pytest.param((codex(60), forger(60), held(110, 4242)), id="its owner is not seen"),
        pytest.param((codex(60), forger(60), e.ProcessesCounted(at=110)), id="it has no owner"),
        pytest.param((codex(49), forger(49), codex(60), forger(60, 79), held(110, 48)), id="several"),
        pytest.param(
            (codex(), held(110), e.ProcessGone(at=120, key=ProcessKey(50, 90.0)),
             codex(50, started=121.0), forger(50, started=122.0), polled(130)),
            id="below the next process with the pid of its codex",
        ),
    ],
)  # fmt: skip
def test_a_claim_decides_nothing(story: Story) -> None:
    found = after(*story)
    assert (found.sandbox.verdict, found.sandbox.findings, found.pids) == ("unverified", (), ())
    assert "not counted: CODEX_THREAD_ID names this thread" in " ".join(link.by for link in found.links)
    assert memory_of(fleet(begun(), called(), *story).threads[T]).observations == ()
    honest = after(*story, codex(90), command(90), held(140, 90))
    assert (honest.sandbox.verdict, honest.pids) == ("match", (78,))


@pytest.mark.parametrize(
    "above",
    [
        pytest.param((process(60, name="tmux: server"),), id="in tmux"),
        pytest.param((process(60, 50, name="tmux: server"),), id="in tmux below its codex"),
        pytest.param((process(60, agent="claude"),), id="below a claude"),
    ],
)
def test_an_inherited_variable_is_not_even_a_claim(above: Story) -> None:
    found = after(codex(), *above, forger(60), held(110))
    assert (found.sandbox.verdict, found.pids, len(found.links)) == ("unverified", (), 1)


@pytest.mark.parametrize(
    "story",
    [
        pytest.param((codex(), command(), held(110)), id="child of its codex"),
        pytest.param((daemon(50), command(), held(110)), id="child of its daemon"),
        pytest.param((codex(49), codex(50, 49), command(), held(110)), id="below the script of node"),
        pytest.param(
            (codex(), process(60, 50), command(60), held(110)),
            id="below a shell",
        ),
        pytest.param(
            (codex(), command(), e.ProcessesCounted(at=109), held(110)), id="its owner is known later"
        ),
        pytest.param((codex(), command(), held(105), command(1), held(110)), id="left by its parent"),
        pytest.param((codex(), command(), held(105), command(1), held(110, 4242)), id="left by its codex"),
    ],
)  # fmt: skip
def test_a_command_counts(story: Story) -> None:
    found = after(*story)
    assert (found.sandbox.verdict, found.pids) == ("match", (78,))
    assert "not counted" not in " ".join(link.by for link in found.links)


def test_what_a_short_command_showed_waits_for_its_owner() -> None:
    gone = e.ProcessGone(at=105, key=ProcessKey(78, 104.0))
    story = (codex(), command(), e.ProcessesCounted(at=104.5), gone)
    assert after(*story, held(106)).sandbox.verdict == "match"
    assert after(*story, held(106, 60)).sandbox.verdict == "unverified"


@pytest.mark.parametrize("first", [0, 1])
def test_what_is_well_hides_nothing(first: int) -> None:
    """The verdict, what is shown as observed and the launcher are those of the worst command."""
    escaped = process(79, 50, started=104.0, env={"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1"})
    both = (escaped, command()) if first else (command(), escaped)
    late = (both[1], held(111))
    sandbox = after(codex(), both[0], held(110), *late).sandbox
    assert sandbox.verdict == "mismatch"
    assert (sandbox.got.sandboxed, sandbox.got.network_namespace) == (False, "host")


def test_a_flood_of_marks_does_not_push_out_an_escape() -> None:
    escaped = process(79, 50, started=104.0, env={"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1"})
    flood = [
        process(1_000 + n, 50, started=105.0, env={**OWN, "CODEX_SANDBOX": f"{n}"}, kernel=SANDBOXED)
        for n in range(2 * MAX_OBSERVATIONS)
    ]
    found = after(codex(), escaped, held(106), *flood, held(120))
    assert {"network-open", "missing-network-flag"} & {finding.kind for finding in found.sandbox.findings}


def test_another_pane_that_prints_the_id_of_a_live_session() -> None:
    """Its process is seen, and is not below this pane; only one in a container may be out of sight."""
    other = e.PaneSeen(at=90.0, pane=Pane(PANE, "work", "1:api", 10, "sh", screen=(f"session id: {T}",)))
    host = e.HostSeen(at=80, platform="linux", kernel=HOST)
    assert T not in link_fleet(fleet(host, begun(), other, codex(), held(110))).panes
    boxed = process(50, agent="codex", kernel=replace(HOST, pid=4_000, mnt=4_001))
    seen = fleet(host, begun(), other, boxed, held(110))
    assert link_fleet(seen).panes[T].key == PANE


@pytest.mark.parametrize(
    ("env", "is_owner"),
    [
        ({"HOME": "/home/dev"}, True),
        ({"HOME": "/x", "CLAUDE_CONFIG_DIR": "/home/dev/.claude/"}, True),
        ({"HOME": "/home/dev", "CLAUDE_CONFIG_DIR": "/tmp/mine"}, False),
        ({"HOME": "/tmp/mine"}, False),
        ({"CLAUDE_CONFIG_DIR": "/home/dev/.claude/../../../tmp/mine"}, False),
        (None, True),
    ],
)
def test_session_files_count_for_the_sessions_of_their_directory(
    env: dict[str, str] | None, is_owner: bool
) -> None:
    path = f"/home/dev/.claude/projects/x/{T}.jsonl"
    story = [
        e.FileSeen(thread=T, at=100, path=path, size=1, modified=100),
        e.ThreadStarted(thread=T, at=100, line=1, cwd=CWD, agent="claude"),
        process(50, agent="claude", env=env),
        e.SessionSeen(
            at=105, key=ProcessKey(50, 90.0), agent="claude", status="busy", since=105.0, session=T
        ),
        e.ProcessesCounted(at=110),
    ]
    assert (T in link_fleet(fleet(story)).owners) is is_owner
