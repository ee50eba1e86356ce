"""Build short streams of events, and what they reduce to."""

from collections.abc import Sequence
from typing import Any

from agentdash.agents.codex.policy_formats import read_launcher
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.fact import Fact
from agentdash.model.fleet import Fleet
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Kernel, Process, ProcessKey
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, Snapshot, Worker, WorkerKind

T = "01a1fa8b-2cba-7501-a214-dc60155cd481"
CHILD = "01a1fa8b-64d1-75d0-9538-5a109db019fd"
CWD = "/home/dev/project"
WORKSPACE = Policy(
    Filesystem.WORKSPACE,
    Network.OFF,
    (PolicyRule("/", "read"), PolicyRule(CWD, "write"), PolicyRule("/tmp", "write")),
    "on-request",
)
FULL = Policy(Filesystem.UNRESTRICTED, Network.ON, approval="never", enforced_by="nobody")
HOST = Kernel(seccomp=0, no_new_privs=False, net=1, mnt=1, pid=1, user=1)
SANDBOXED = Kernel(seccomp=2, no_new_privs=True, net=2, mnt=2, pid=2, user=2)
PANE = PaneKey("default", "%4")


def begun(
    thread: str = T,
    *,
    at: float = 100.0,
    version: str = "0.169.0",
    policy: Policy = WORKSPACE,
    **more: object,
) -> list[e.Event]:
    """A thread with a turn under way."""
    return [
        e.ThreadStarted(
            thread=thread, at=at, line=1, cwd=CWD, version=version, originator="codex-tui", **more
        ),
        e.TurnStarted(thread=thread, at=at, line=2),
        e.PolicySet(thread=thread, at=at, line=3, policy=policy, origin="turn_context", cwd=CWD),
        e.MessageLogged(thread=thread, at=at, line=4, role="user", text="fix the tests"),
    ]


def old(thread: str = T, *, at: float = 100.0, version: str = "0.58.0") -> list[e.Event]:
    """A thread of a Codex that writes no turn marks."""
    return [
        e.ThreadStarted(thread=thread, at=at, line=1, cwd=CWD, version=version),
        e.MessageLogged(thread=thread, at=at, line=2, role="user", text="fix the tests"),
        asked(thread, at=at, line=3),
    ]


def asked(thread: str = T, *, at: float, line: int = 5) -> e.Event:
    """A request to the model, as written by 0.36-0.98."""
    return e.PolicySet(thread=thread, at=at, line=line, policy=WORKSPACE, origin="turn_context")


def called(
    call: str = "c1",
    text: str = "pytest -q",
    *,
    at: float = 101.0,
    kind: e.CallKind = "command",
    ask: bool = False,
) -> e.CallStarted:
    """A call, perhaps with the wish to run outside the sandbox."""
    wish = e.Escalation("escalated", "May I?") if ask else None
    return e.CallStarted(
        thread=T,
        at=at,
        line=5,
        call=call,
        kind=kind,
        tool="exec_command",
        text=text,
        script=text,
        escalation=wish,
    )


def ended(
    call: str = "c1",
    output: str = "ok",
    *,
    at: float = 102.0,
    exit_code: int | None = 0,
    outcome: e.Outcome = "ended",
) -> e.CallEnded:
    """The end of a call."""
    return e.CallEnded(
        thread=T, at=at, line=6, call=call, output=output, exit_code=exit_code, outcome=outcome
    )


def done(message: str | None = "Done.", *, at: float = 103.0, thread: str = T, **more: object) -> e.Event:
    """The end of a turn."""
    return e.TurnEnded(thread=thread, at=at, line=9, how="completed", message=message, **more)


def process(
    pid: int,
    ppid: int = 1,
    *,
    started: float = 90.0,
    kernel: Kernel | None = HOST,
    name: str = "sh",
    **more: object,
) -> e.Event:
    """A process, seen when it started."""
    more.setdefault("launcher", read_launcher(name, more.get("argv", ())))
    return e.ProcessSeen(
        at=started, process=Process(ProcessKey(pid, started), ppid, name, kernel=kernel, **more)
    )


def polled(at: float) -> list[e.Event]:
    """A pass over all processes and locks without further processes."""
    return [e.LocksSeen(at=at, holders={}), e.ProcessesCounted(at=at)]


def held(at: float, pid: int = 50, thread: str = T) -> list[e.Event]:
    """A pass that found an owner."""
    return [e.LocksSeen(at=at, holders={thread: pid}), e.ProcessesCounted(at=at)]


def pane(pid: int = 10, **more: object) -> e.Event:
    """A pane."""
    return e.PaneSeen(at=90.0, pane=Pane(PANE, "work", "1:api", pid, "node", **more))


def in_pane(agent: str, *, started: float = 85.0, **more: object) -> list[e.Event]:
    """A worker CLI in a pane, below a shell."""
    return [pane(), process(10, started=80.0), process(11, 10, started=started, agent=agent, **more)]


def snapshot_after(*parts: e.Event | Sequence[e.Event], now: float = 200.0) -> Snapshot:
    """Return the snapshot after events."""
    return build_snapshot(fleet(*parts), now)


def fleet(*parts: e.Event | Sequence[e.Event]) -> Fleet:
    """Return the fleet after events."""
    return reduce(Fleet(), [x for part in parts for x in ([part] if isinstance(part, e.Event) else part)])


def worker(*parts: e.Event | Sequence[e.Event]) -> Worker:
    """Return the one worker that the events are about."""
    return next(w for w in snapshot_after(*parts).workers if w.id in (T, str(PANE)))


def row(
    ident: str,
    state: State = State.RUNNING,
    *,
    since: float | None = None,
    why: str = "why",
    fact: Fact | None = None,
    kind: WorkerKind = "pane",
    name: str = "build",
    agent: str = "codex",
    **more: Any,
) -> Worker:
    """A worker as it is shown, without what it was made of."""
    return Worker(ident, kind, name, Agent(agent), Assessment(state, since, why, fact=fact), **more)
