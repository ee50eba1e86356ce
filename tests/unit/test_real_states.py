"""States of stories that people's sessions contain: each class with variants, and controls beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from agentdash.agents.claude.transcript.reader import TranscriptReader
from agentdash.agents.codex.rollout.calls import mcp_call
from agentdash.agents.codex.rollout.records import Item
from agentdash.model import events as e
from agentdash.model.process import ProcessKey
from agentdash.model.states import State
from tests.unit.story import (
    PANE,
    T,
    asked,
    begun,
    called,
    done,
    ended,
    held,
    old,
    pane,
    polled,
    process,
    snapshot_after,
    worker,
)

Story = list[e.Event | list[e.Event]]
RULE = "refused-by-policy"
USER = "refused-by-user"
POLICY = "refused-by-approval"


def tried(call: str, outcome: e.Outcome = "ended", *, at: float = 101.0, tool: str = "exec_command") -> Story:
    """A call, and how it ended."""
    start = called(call, at=at)
    if tool != "exec_command":
        start = replace(start, kind="other", tool=tool, text='{"name": "x"}', script="")
    return [start, ended(call, "", at=at + 0.5, exit_code=None, outcome=outcome)]


ANSWERED = {
    "the only action, by a rule": (State.COMPLETED, [*tried("c1", RULE), done()]),
    "a clean-up, by the user": (State.COMPLETED, [*tried("c1"), *tried("c2", USER), done()]),
    "an MCP call behind work": (State.COMPLETED, [*tried("c1"), *tried("c2", USER, tool="a.b"), done()]),
    "all, by the policy": (State.FAILED_PERMISSION, [*tried("c1", POLICY), *tried("c2", POLICY), done()]),
    "MCP, by the user": (State.FAILED_PERMISSION, [*tried("c1", USER, tool="mcp__spike__echo"), done()]),
    "MCP, behind a plan": (
        State.FAILED_PERMISSION,
        [*tried("c0", tool="update_plan"), *tried("c1", USER, tool="a.b"), done()],
    ),
    "MCP, repeated": (
        State.COMPLETED,
        [*tried("c1", USER, tool="a.b"), *tried("c2", tool="a.b"), done()],
    ),
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

OWNER = process(50, agent="codex")
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
    found = worker(OWNER, begun(), done(message), held(110))
    assert found.state is (State.WAITING_INPUT if question else State.COMPLETED)
    unmarked = e.MessageLogged(thread=T, at=105, line=8, role="agent", text=message)
    assert worker(OWNER, old(), unmarked, held(110)).state is found.state
    if question:
        assert found.assessment.fact is not None
        assert (found.assessment.fact.what, found.assessment.fact.object) == ("asks", question)
        assert found.assessment.evidence[0].rule == "asks-in-text"


@pytest.mark.parametrize(
    "story",
    [
        [EXEC_RUNS, *begun(), done("Go on?"), *held(110)],
        [OWNER, *begun(source="exec"), done("Go on?"), *held(110)],
        [OWNER, *begun(source="subagent", parent="other"), done("Go on?"), *held(110)],
        [*begun(), done("Go on?"), *polled(110)],
    ],
    ids=["codex exec", "exec by its record", "sub-agent", "left"],
)
def test_questions_that_nobody_can_answer(story: Story) -> None:
    found = worker(*story)
    assert found.state is State.COMPLETED
    assert found.assessment.why.endswith("it ended with a question: Go on?")


def test_what_outranks_a_question_in_the_text() -> None:
    refused = [OWNER, *begun(), *tried("c1", USER), done("May I?")]
    assert worker(*refused, held(110)).state is State.WAITING_INPUT
    output = "touch: cannot touch '/home/dev/x': Read-only file system"
    denied = [called(text="touch /home/dev/x"), ended(output=output, exit_code=1), done("May I?")]
    assert worker(OWNER, begun(), *denied, held(110)).state is State.BLOCKED_SANDBOX
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
        pane(),
        process(10, started=80.0),
        process(11, 10, started=85.0, agent="claude"),
    ]
    for kid, command in zip(KIDS, commands, strict=True):
        story += [
            e.ChildSpawned(thread=T, at=101, line=3, child=kid),
            e.ThreadStarted(thread=kid, at=101, line=1, agent="claude", parent=T),
            e.TurnStarted(thread=kid, at=101, line=2),
            replace(called(text=command, at=102), thread=kid),
        ]
    return story


def of_session(status: str) -> e.Event:
    key = ProcessKey(11, 85.0)
    return e.SessionSeen(at=103, key=key, agent="claude", status=status, since=103, session=T)


def dialog(quoted: str) -> e.Event:
    rule = "claude.approval-command"
    asks = e.ScreenRead(at=104, key=PANE, agent="claude", state="waiting-approval", rule=rule, text="Do?")
    return replace(asks, object=quoted)


MARK = {"CLAUDE_CODE_SESSION_ID": T}
RUNS = process(77, 11, started=102.5, env=MARK)
RAN_BEFORE = process(77, 11, started=90.5, env=MARK)


@pytest.mark.parametrize(
    ("story", "asking", "object_"),
    [
        ([of_session("waiting"), dialog("rm b"), RUNS], {"agent-b"}, "rm b -r c"),
        ([of_session("waiting"), dialog("touch a"), RAN_BEFORE], {"agent-a", "agent-b"}, "touch a"),
        ([of_session("waiting")], {"agent-a", "agent-b"}, "touch a"),
        ([of_session("waiting"), dialog("curl"), RUNS], set(), "curl"),
        ([of_session("busy")], set(), None),
    ],
)
def test_which_sub_agent_asks(story: Story, asking: set[str], object_: str | None) -> None:
    """The one whose command the dialog quotes, and those whose commands have no process while it waits."""
    workers = {w.id: w for w in snapshot_after(session("touch a", "rm b -r c"), *story, polled(110)).workers}
    waiting = {kid for kid in KIDS if workers[kid].state is State.WAITING_APPROVAL}
    assert waiting == asking
    fact = workers[T].assessment.fact
    assert fact is not None
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
    return json.dumps(
        {
            "type": kind,
            "message": {"role": kind, "id": "m1", "content": content, "stop_reason": stop},
            "timestamp": f"2026-04-01T10:00:{at:02}Z",
            "cwd": "/home/dev",
            "version": version,
        }
    ).encode()


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
    version: str,
    said: Iterable[tuple[object, str | None]],
    state: State,
    is_alive: bool,
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
