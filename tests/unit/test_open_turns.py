"""No screen ends a turn that the CLI's own status or its record says is open; trying again is work."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.chat import Chat
from agentdash.model.fact import FactKind
from agentdash.model.process import ProcessKey
from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.unit.story import CHILD, CWD, HOST, PANE, T, called, done, held, pane, polled, process, worker

OWNER = ProcessKey(11, 95.0)
OTHER = "01a1fa8b-64d1-75d0-9538-5a109db01aaa"
WAITS = "✻ Waiting for 1 background agent to finish"
Events = Sequence[e.Event]


def claude(thread: str = T, *, at: float = 100.0, **more: str) -> list[e.Event]:
    return [
        e.ThreadStarted(thread=thread, at=at, line=1, agent="claude", cwd=CWD, version="2.1.332", **more),
        e.TurnStarted(thread=thread, at=at, line=2),
    ]


def agent(child: str = CHILD, *, ended: bool = False) -> list[e.Event]:
    """An agent that works in the background, or has ended."""
    end = [done(at=106.0, thread=child)] if ended else []
    return [e.ChildSpawned(thread=T, at=101.0, line=5, child=child), *claude(child, at=101.5, parent=T), *end]


def status(what: str | None, since: float = 100.1, session: str | None = T) -> e.Event:
    return e.SessionSeen(at=107.0, key=OWNER, agent="claude", status=what, since=since, session=session)


def screen(state: str, rule: str, text: str = WAITS, at: float = 106.5, agent: str = "claude") -> e.Event:
    return e.ScreenRead(at=at, key=PANE, agent=agent, state=state, rule=f"{agent}.{rule}", text=text)


def seen(*parts: e.Event | Events, agent: str = "claude", alive: bool = True, last: Events = ()) -> Worker:
    """Return the worker after events, in a pane of a process that is alive or has ended."""
    there = [
        e.HostSeen(at=80, platform="linux", kernel=HOST),
        pane(),
        process(10, started=80.0),
        process(11, 10, started=95.0, agent=agent, cwd=CWD),
    ]
    gone = [] if alive else [e.ProcessGone(at=108.0, key=OWNER)]
    return worker(there, polled(99), *parts, polled(107), gone, last or polled(112))


AFTER = [e.TurnStarted(thread=T, at=110.0, line=10), done(at=111.0)]
"""A further turn."""


@pytest.mark.parametrize(
    ("events", "state", "words"),
    [
        ([*agent(), done(), status("busy")], State.RUNNING, "waits for 1 background agent"),
        ([*agent(ended=True), *agent(OTHER), done(), status("busy")], State.RUNNING, "1 background"),
        # the agent has ended, and the next turn not begun
        ([*agent(ended=True), done(), status("busy")], State.RUNNING, "status busy"),
        ([*agent(ended=True), done(), status("busy"), *AFTER], State.RUNNING, "status busy"),
        # it compacts, or begins before its prompt is written
        ([done(), status("busy", since=105.0)], State.RUNNING, "status busy"),
        ([*agent(), done(), status("busy"), screen("completed", "answered")], State.RUNNING, "1 background"),
        ([status("busy"), screen("failed-provider", "failed")], State.RUNNING, ""),
        (
            [status("busy"), screen("running", "retrying", "429 · attempt 5/10")],
            State.RUNNING,
            "attempt 5/10",
        ),
        # controls
        ([done(), status("idle", since=103.1)], State.COMPLETED, "finished"),
        ([*agent(ended=True), done(), status("idle", since=107.0)], State.COMPLETED, "finished"),
        # `shell`: a command goes on in the background, read as idle
        ([*agent(), done(), status("idle", since=103.1)], State.COMPLETED, "finished"),
        # a file that neither the beginning nor the end of a later turn changed
        ([done(), status("busy", since=100.1), *AFTER], State.COMPLETED, "finished"),
    ],
)
def test_claude_code_by_its_status_file(events: Events, state: State, words: str) -> None:
    found = seen(claude(), events)
    assert (found.state, words in found.assessment.why) == (state, True), found.assessment.why


def codex() -> list[e.Event]:
    return [
        e.ThreadStarted(thread=T, at=100.0, line=1, cwd=CWD, version="0.171.0"),
        e.TurnStarted(thread=T, at=100.0, line=2),
        e.MessageLogged(thread=T, at=100.0, line=4, role="user", text="fix"),
        *held(104, 11),
    ]


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (("running", "reconnecting", "• Reconnecting... 5/8"), FactKind.PROVIDER),
        (("failed-provider", "failed", "■ overloaded"), FactKind.WORK),
        (("interrupted", "interrupted", "■ Conversation interrupted"), FactKind.WORK),
    ],
)
def test_codex_by_its_rollout(read: tuple[str, str, str], kind: FactKind) -> None:
    shown = screen(*read, agent="codex")
    found = seen(codex(), shown, agent="codex", last=held(112, 11))
    assert found.assessment.fact is not None
    assert (found.state, found.assessment.fact.kind) == (State.RUNNING, kind)
    failed = done(None, at=107.5, error="overloaded", error_kind="other")
    assert seen(codex(), shown, failed, agent="codex").state is State.FAILED_PROVIDER


@pytest.mark.parametrize(
    ("cli", "chat", "read", "state"),
    [
        ("opencode", Chat(by="x", turn="open"), ("completed", "finished"), State.RUNNING),
        ("opencode", Chat(by="x", turn="open", since=99.0), ("failed-provider", "failed"), State.RUNNING),
        ("copilot", Chat(by="x", turn="open"), ("waiting-input", "question"), State.WAITING_INPUT),
        ("gemini", Chat(by="x", turn="open"), ("waiting-approval", "approval"), State.WAITING_APPROVAL),
        ("opencode", Chat(by="x", turn="open"), ("running", "retrying"), State.RUNNING),
        ("opencode", Chat(by="x", turn="open", since=90.0), ("completed", "finished"), State.COMPLETED),
        ("opencode", None, ("failed-provider", "failed"), State.FAILED_PROVIDER),
        # its chat has no line for a turn that is cancelled or fails
        ("qwen", Chat(by="x", turn="open"), ("interrupted", "interrupted"), State.INTERRUPTED),
    ],
)
def test_other_clis_by_their_logs(cli: str, chat: Chat | None, read: tuple[str, str], state: State) -> None:
    log = e.SessionSeen(at=106, key=OWNER, agent=cli, status=None, since=99.0, session="s", chat=chat)
    assert seen(log, screen(*read, agent=cli), agent=cli).state is state


@pytest.mark.parametrize(("started", "goes_on"), [(101.2, True), (99.0, False), (130.0, False)])
def test_a_background_command_goes_on_while_what_it_started_lives(started: float, goes_on: bool) -> None:
    """Other commands of the session may be alive."""
    left = [
        e.CallStarted(thread=T, at=101.0, line=5, call="c1", kind="command", tool="Bash", text="make serve"),
        e.CallEnded(thread=T, at=102.0, line=6, call="c1", outcome="running"),
        done(at=103.0),
    ]
    alive = process(60, 11, started=started, env={"CLAUDE_CODE_SESSION_ID": T}, argv=("bash",))
    found = seen(claude(), left, status("idle", since=103.1), alive)
    assert (found.state, "goes on" in found.assessment.why) == (State.COMPLETED, goes_on)


@pytest.mark.parametrize(
    ("flags", "shown", "state"),
    [
        (("waitingOnApproval",), "waiting-approval", State.WAITING_APPROVAL),
        (("waitingOnApproval",), "running", State.RUNNING),  # the dialog is elsewhere, or not drawn yet
        ((), "waiting-approval", State.RUNNING),  # answered
    ],
)
def test_approval_of_a_sub_agent_is_also_that_of_the_pane(
    flags: tuple[str, ...], shown: str, state: State
) -> None:
    child = [
        e.ChildSpawned(thread=T, at=101.0, line=5, child=CHILD),
        e.ThreadStarted(thread=CHILD, at=101.0, line=1, cwd=CWD, version="0.171.0", parent=T),
        e.TurnStarted(thread=CHILD, at=101.0, line=2),
        e.CallStarted(thread=CHILD, at=102.0, line=3, call="c", kind="command", tool="sh", text="touch x"),
    ]
    feed = [
        e.StatusPushed(at=107.5, thread=T, status="active"),
        e.StatusPushed(at=107.5, thread=CHILD, status="active", flags=flags),
    ]
    dialog = screen(shown, "approval-command", "Would you like to run", agent="codex")
    dialog = replace(dialog, object="touch x")
    found = seen(codex(), child, dialog, feed, agent="codex", last=held(112, 11))
    assert found.state is state
    assert ("touch x" in found.assessment.why) is (state is State.WAITING_APPROVAL)
    assert not found.needs_you  # it is the sub-agent's, and counts there


def test_approval_of_a_sub_agent_by_the_command_that_its_dialog_quotes() -> None:
    """Codex before 0.160 has no feed."""
    child = [
        e.ChildSpawned(thread=T, at=101.0, line=5, child=CHILD),
        e.ThreadStarted(thread=CHILD, at=101.0, line=1, cwd=CWD, version="0.144.0", parent=T),
        e.TurnStarted(thread=CHILD, at=101.0, line=2),
        replace(called(text="touch x", at=102.0, ask=True), thread=CHILD),
    ]
    quotes = screen("waiting-approval", "approval-command", "Would you like to run", agent="codex")
    found = seen(codex(), child, replace(quotes, object="touch x"), agent="codex", last=held(112, 11))
    assert (found.assessment.asker, found.fact.object) == (CHILD, "touch x")
