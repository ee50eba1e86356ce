"""States of stories that people's sessions contain: each class with variants, and controls beside them.

No screen ends a turn that the CLI's own status or its record says is open; trying again is work.
"""

import json
from collections.abc import Iterable, Sequence

import pytest
from msgspec.structs import replace

from agentdash.agents.claude.transcript.reader import TranscriptReader
from agentdash.agents.codex.rollout.calls import mcp_call
from agentdash.agents.codex.rollout.records import Item
from agentdash.model import events as e
from agentdash.model.chat import Chat
from agentdash.model.fact import FactKind
from agentdash.model.process import ProcessKey
from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.unit.story import (
    CHILD,
    CWD,
    HOST,
    PANE,
    T,
    asked,
    begun,
    called,
    done,
    ended,
    held,
    in_pane,
    old,
    pane,
    polled,
    process,
    snapshot_after,
    worker,
)

Story = list[e.Event | list[e.Event]]
Events = Sequence[e.Event]
RULE = "refused-by-policy"
USER = "refused-by-user"
POLICY = "refused-by-approval"
OWNER = ProcessKey(11, 95.0)
"""The process of a worker CLI in a pane."""
OTHER = "01a1fa8b-64d1-75d0-9538-5a109db01aaa"


def status(what: str, since: float = 100.1) -> e.Event:
    return e.SessionSeen(at=107.0, key=OWNER, agent="claude", status=what, since=since, session=T)


def screen(state: str, rule: str, text: str = "✻ Waiting for 1 agent", agent: str = "claude") -> e.Event:
    return e.ScreenRead(at=106.5, key=PANE, agent=agent, state=state, rule=f"{agent}.{rule}", text=text)


def tried(call: str, outcome: e.Outcome = "ended", *, at: float = 101.0, tool: str = "exec_command") -> Story:
    """A call, and how it ended."""
    start = called(call, at=at)
    if tool != "exec_command":
        start = replace(start, kind="other", tool=tool, text='{"name": "x"}', script="")
    return [start, ended(call, "", at=at + 0.5, exit_code=None, outcome=outcome)]


PLANNED = tried("c0", tool="update_plan")
ANSWERED = {
    "the only action, by a rule": (State.COMPLETED, [*tried("c1", RULE), done()]),
    "a clean-up, by the user": (State.COMPLETED, [*tried("c1"), *tried("c2", USER), done()]),
    "an MCP call behind work": (State.COMPLETED, [*tried("c1"), *tried("c2", USER, tool="a.b"), done()]),
    "all, by the policy": (State.FAILED_PERMISSION, [*tried("c1", POLICY), *tried("c2", POLICY), done()]),
    "MCP, by the user": (State.FAILED_PERMISSION, [*tried("c1", USER, tool="mcp__spike__echo"), done()]),
    "MCP, behind a plan": (State.FAILED_PERMISSION, [*PLANNED, *tried("c1", USER, tool="a.b"), done()]),
    "MCP, repeated": (State.COMPLETED, [*tried("c1", USER, tool="a.b"), *tried("c2", tool="a.b"), done()]),
    "without an answer": (State.FAILED_PERMISSION, [*tried("c1"), *tried("c2", RULE), done(None)]),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_refusals_of_a_turn_that_ended(name: str) -> None:
    state, story = ANSWERED[name]
    found = worker(begun(), *story, polled(110))
    assert found.state is state
    assert "was refused by" in found.assessment.why or name == "MCP, repeated"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("MCP tool call requires approval, but approval policy is never", POLICY),
        ("user cancelled MCP tool call", USER),
        ("MCP tool call blocked by app configuration", RULE),
        ("connection to the server was closed", "failed"),
    ],
)
def test_refused_mcp_calls(error: str, outcome: str) -> None:
    """Items have an object (0.130+), events a `Result` (before)."""
    item = Item(id="c1", server="spike", tool="echo", status="failed", error={"message": error})
    event = Item(call_id="c1", result={"Err": error})
    assert [mcp_call(call).ending.outcome for call in (item, event)] == [outcome, outcome]


# ---------------------------------------------------------------- standard input

EXEC = ("codex", "exec", "say A")
NODE = process(50, argv=("node", *EXEC), agent="codex", once=True)
WAITS = "waits for the end of its standard input, a"


@pytest.mark.parametrize(
    ("parents", "awaits", "argv", "why"),
    [
        ((), "pipe", EXEC, f"{WAITS} pipe (start it with < /dev/null)"),
        ((NODE,), "socket", EXEC, f"{WAITS} socket (start it with < /dev/null)"),
        ((NODE,), "pipe", ("codex", "exec", "-"), f"{WAITS} pipe (write its task there, and close it)"),
        ((pane(50), NODE), "pipe", EXEC, f"{WAITS} pipe (start it with < /dev/null)"),
        ((pane(50), NODE), "terminal", ("codex", "exec", "-"), f"{WAITS} terminal (ctrl+d ends it)"),
        ((NODE,), None, EXEC, None),
    ],
)
def test_waiting_for_standard_input(
    parents: tuple[e.Event, ...], awaits: str | None, argv: tuple[str, ...], why: str | None
) -> None:
    """In a pane or not; one that does not wait, and has no pane and no session, is not known to be one."""
    program = process(60, 50, argv=argv, agent="codex", once=True, awaited_input=awaits)
    workers = snapshot_after(*parents, program, polled(110)).workers
    assert [(w.state, w.assessment.why) for w in workers] == ([(State.WAITING_INPUT, why)] if why else [])


# ---------------------------------------------------------------- questions in the last message

CODEX = process(50, agent="codex")
EXEC_RUNS = process(50, agent="codex", once=True)


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("Fixed.\n\nShall I *commit* it?", "Shall I *commit* it?"),
        ("Which branch: **main or dev?**\n", "Which branch: **main or dev?**"),
        ("どちらにしますか？", "どちらにしますか？"),
        ('It says "ready (or not?)"', 'It says "ready (or not?)"'),
        ("Is it done? Yes, it is.", None),
        ("Tell me which one.", None),
    ],
)
def test_last_message_that_asks(message: str, question: str | None) -> None:
    found = worker(CODEX, begun(), done(message), held(110))
    assert found.state is (State.WAITING_INPUT if question else State.COMPLETED)
    unmarked = e.MessageLogged(thread=T, at=105, line=8, role="agent", text=message)
    assert worker(CODEX, old(), unmarked, held(110)).state is found.state
    if question:
        assert (found.assessment.fact.what, found.assessment.fact.object) == ("asks", question)
        assert found.assessment.evidence[0].rule == "asks-in-text"


@pytest.mark.parametrize(
    "story",
    [
        [EXEC_RUNS, *begun(), done("Go on?"), *held(110)],
        [CODEX, *begun(source="exec"), done("Go on?"), *held(110)],
        [CODEX, *begun(source="subagent", parent="other"), done("Go on?"), *held(110)],
        [*begun(), done("Go on?"), *polled(110)],
    ],
    ids=["codex exec", "exec by its record", "sub-agent", "left"],
)
def test_questions_that_nobody_can_answer(story: Story) -> None:
    found = worker(*story)
    assert found.state is State.COMPLETED
    assert found.assessment.why.endswith("it ended with a question: Go on?")


def test_what_outranks_a_question_in_the_text() -> None:
    refused = [CODEX, *begun(), *tried("c1", USER), done("May I?")]
    assert worker(*refused, held(110)).state is State.WAITING_INPUT
    output = "touch: cannot touch '/home/dev/x': Read-only file system"
    denied = [called(text="touch /home/dev/x"), ended(output=output, exit_code=1), done("May I?")]
    assert worker(CODEX, begun(), *denied, held(110)).state is State.BLOCKED_SANDBOX
    again = e.TurnStarted(thread=T, at=109, line=20)
    assert worker(*refused, again, held(110)).state is State.RUNNING


# ---------------------------------------------------------------- sub-agents of Claude Code

KIDS = ("agent-a", "agent-b")


def session(*commands: str) -> Story:
    """A session of Claude Code in a pane, whose sub-agents have these calls open."""
    story: Story = [
        e.ThreadStarted(thread=T, at=100, line=1, agent="claude"),
        e.TurnStarted(thread=T, at=100, line=2),
        done("They work.", at=101),
        *in_pane("claude", started=95.0),
    ]
    for kid, command in zip(KIDS, commands, strict=True):
        story += [
            e.ChildSpawned(thread=T, at=101, line=3, child=kid),
            e.ThreadStarted(thread=kid, at=101, line=1, agent="claude", parent=T),
            e.TurnStarted(thread=kid, at=101, line=2),
            replace(called(text=command, at=102), thread=kid),
        ]
    return story


def dialog(quoted: str) -> e.Event:
    return replace(screen("waiting-approval", "approval-command", "Do?"), object=quoted)


MARK = {"CLAUDE_CODE_SESSION_ID": T}
RUNS = process(77, 11, started=102.5, env=MARK)
RAN_BEFORE = process(77, 11, started=95.5, env=MARK)


@pytest.mark.parametrize(
    ("story", "asking", "object_"),
    [
        ([status("waiting"), dialog("rm b"), RUNS], {"agent-b"}, "rm b -r c"),
        ([status("waiting"), dialog("touch a"), RAN_BEFORE], {"agent-a", "agent-b"}, "touch a"),
        ([status("waiting")], {"agent-a", "agent-b"}, "touch a"),
        ([status("waiting"), dialog("curl"), RUNS], set(), "curl"),
        ([status("busy")], set(), None),
    ],
)
def test_which_sub_agent_asks(story: Story, asking: set[str], object_: str | None) -> None:
    """The one whose command the dialog quotes, and those whose commands have no process while it waits."""
    workers = {w.id: w for w in snapshot_after(session("touch a", "rm b -r c"), *story, polled(110)).workers}
    waiting = {kid for kid in KIDS if workers[kid].state is State.WAITING_APPROVAL}
    assert waiting == asking
    fact = workers[T].assessment.fact
    assert (fact.object if workers[T].state is State.WAITING_APPROVAL else None) == object_
    # each approval counts once: that of a sub-agent is not its session's as well
    needing = {each.id for each in workers.values() if each.needs_you}
    assert needing == (asking or ({T} if object_ else set()))


# ---------------------------------------------------------------- files without turn marks


def said(text: str = "All is done.", *, at: float = 105.0, line: int = 8) -> e.Event:
    return e.MessageLogged(thread=T, at=at, line=line, role="agent", text=text)


TWO = [called("c1"), called("c2", at=101.1), ended("c2", at=102)]


@pytest.mark.parametrize(
    ("state", "story"),
    [
        (State.COMPLETED, [*TWO, said(), polled(110)]),
        (State.COMPLETED, [*TWO, said(), held(110)]),
        (State.COMPLETED, [*TWO, asked(at=103), *tried("c3", at=104), said(), held(110)]),
        (State.COMPLETED, [called("c1"), said(), polled(110)]),
        (State.EXITED, [*TWO, polled(110)]),
        (State.RUNNING, [*TWO, held(110)]),
        (State.RUNNING, [said("I look."), called("c1", at=106), held(110)]),
        (State.RUNNING, [called("c1"), said(), held(110)]),
    ],
)
def test_calls_without_output(state: State, story: Story) -> None:
    assert worker(old(), *story).state is state


@pytest.mark.parametrize(("version", "state"), [("0.93.0", State.COMPLETED), ("0.107.0", State.EXITED)])
def test_end_of_a_file_whose_middle_was_not_read(version: str, state: State) -> None:
    started = e.ThreadStarted(thread=T, at=100, line=1, version=version)
    prompt = e.MessageLogged(thread=T, at=104, role="user", text="no")
    gap = e.FileGapSkipped(thread=T, at=110)
    assert worker(started, gap, prompt, said("Got it.", line=0), polled(110)).state is state


# ---------------------------------------------------------------- Claude Code before 2.1.93


def record(kind: str, content: object, at: int, *, version: str, stop: str | None = None) -> bytes:
    message = {"role": kind, "id": "m1", "content": content, "stop_reason": stop}
    time = f"2026-04-01T10:00:{at:02}Z"
    line = {"type": kind, "message": message, "timestamp": time, "cwd": "/home/dev", "version": version}
    return json.dumps(line).encode()


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


THINKS = [{"type": "thinking", "thinking": "", "signature": "x"}]
CALL = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}]
RESULT = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
BUILT = [(text("I build."), None), (CALL, None), (RESULT, None), (text("Built."), None)]
LEFT = b'{"type": "last-prompt", "lastPrompt": "hello"}'


@pytest.mark.parametrize("is_alive", [False, True])
@pytest.mark.parametrize(
    ("version", "said", "state"),
    [
        ("2.1.92", [(text("Hi."), None)], State.COMPLETED),
        ("2.0.14", BUILT, State.COMPLETED),
        ("2.0.14", BUILT[:2], State.EXITED),
        ("2.1.132", [(THINKS, "end_turn")], State.COMPLETED),
        ("2.1.132", [(THINKS, "end_turn"), (text("Hi."), "end_turn")], State.COMPLETED),
        ("2.1.132", [(THINKS, "tool_use")], State.EXITED),
        ("2.1.332", [(THINKS, None)], State.EXITED),
    ],
)
def test_last_words_of_claude(
    version: str, said: Iterable[tuple[object, str | None]], state: State, is_alive: bool
) -> None:
    lines = [record("user", "hello", 0, version=version)]
    for at, (content, stop) in enumerate(said, 1):
        kind = "user" if content is RESULT else "assistant"
        lines.append(record(kind, content, at, version=version, stop=stop))
    events = TranscriptReader(T).read([*lines, LEFT])
    later = events[-1].at + 60
    (found,) = snapshot_after(events, held(later) if is_alive else polled(later), now=later + 10).workers
    assert found.state is (State.RUNNING if is_alive and state is State.EXITED else state)
    assert sum(moment.text == "completed" for moment in found.moments) <= 1


# ---------------------------------------------------------------- turns that a screen seems to end


def claude(thread: str = T, *, at: float = 100.0, **more: str) -> list[e.Event]:
    return [
        e.ThreadStarted(thread=thread, at=at, line=1, agent="claude", cwd=CWD, version="2.1.332", **more),
        e.TurnStarted(thread=thread, at=at, line=2),
    ]


def agent(child: str = CHILD, *, ended: bool = False) -> list[e.Event]:
    """An agent that works in the background, or has ended."""
    end = [done(at=106.0, thread=child)] if ended else []
    return [e.ChildSpawned(thread=T, at=101.0, line=5, child=child), *claude(child, at=101.5, parent=T), *end]


def seen(*parts: e.Event | Events, agent: str = "claude", last: Events = ()) -> Worker:
    """Return the worker after events, in a pane."""
    host = e.HostSeen(at=80, platform="linux", kernel=HOST)
    there = [host, *in_pane(agent, started=95.0, cwd=CWD)]
    return worker(there, polled(99), *parts, polled(107), last or polled(112))


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
    return [*begun(version="0.171.0"), *held(104, 11)]


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
        (None, "waiting-approval", State.WAITING_APPROVAL),  # Codex before 0.160 has no feed
    ],
)
def test_approval_of_a_sub_agent_is_also_that_of_the_pane(
    flags: tuple[str, ...] | None, shown: str, state: State
) -> None:
    spawned = e.ChildSpawned(thread=T, at=101.0, line=5, child=CHILD)
    asks = replace(called(text="touch x", at=102.0, ask=flags is None), thread=CHILD)
    feed = [] if flags is None else [e.StatusPushed(at=107.5, thread=T, status="active")]
    feed += [replace(each, thread=CHILD, flags=flags) for each in feed]
    dialog = replace(screen(shown, "approval-command", "Would you?", agent="codex"), object="touch x")
    story = (codex(), spawned, begun(CHILD, at=101.0, parent=T), asks, dialog, feed)
    found = seen(*story, agent="codex", last=held(112, 11))
    assert found.state is state
    is_waiting = state is State.WAITING_APPROVAL
    assert ("touch x" in found.assessment.why, found.assessment.asker == CHILD) == (is_waiting, is_waiting)
    assert found.needs_you is (flags is None)  # it is the sub-agent's, and counts there if that says so
