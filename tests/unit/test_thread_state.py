"""Every state of threads and panes, with its evidence."""

import pytest
from msgspec.structs import replace

from agentdash.engine.judge.findings.remedies import MCP_SERVER
from agentdash.model import events as e
from agentdash.model.chat import Chat
from agentdash.model.fleet import FleetKnown
from agentdash.model.process import ProcessKey
from agentdash.model.states import State
from tests.unit.story import (
    CWD,
    PANE,
    WORKSPACE,
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


@pytest.mark.parametrize(
    ("approval", "ask", "ran"),
    [("never", False, True), ("on-request", True, False), ("untrusted", False, False)],
)
def test_exited_at_a_call_that_may_have_waited_for_an_approval(approval: str, ask: bool, ran: bool) -> None:
    """The file has the request alone: whether the command ran is not in it."""
    found = worker(begun(policy=replace(WORKSPACE, approval=approval)), called(ask=ask), polled(110))
    assert found.state is State.EXITED
    assert ("while `pytest -q` ran" in found.assessment.why) is ran
    assert ("whether it was allowed is not known" in found.assessment.why) is not ran
    assert (found.assessment.fact.what == "ended in the middle of") is ran


def test_observed_end_of_owner_needs_no_grace() -> None:
    """The absence of an owner takes several scans to be sure of; an observed end does not."""
    owned = (process(50, started=90.0, agent="codex"), begun(), called(), held(102))
    gone = [e.ProcessGone(at=102.5, key=ProcessKey(50, 90.0)), *polled(102.5)]

    def after(*story: e.Event | list[e.Event], now: float = 103.6) -> tuple[State, float | None]:
        (found,) = snapshot_after(*owned, *story, now=now).workers
        return found.state, found.assessment.since

    assert after(gone, now=103.0) == (State.RUNNING, 100.0)  # its last lines may still come
    assert after(gone) == (State.EXITED, 102.5)
    assert after(gone, done(at=102.4)) == (State.COMPLETED, 102.4)
    assert after(gone, held(103, 51), now=104.0) == (State.RUNNING, 100.0)  # somebody has taken it up
    assert after(polled(102.5)) == (State.RUNNING, 100.0)  # it lives, and let go


@pytest.mark.parametrize("how", ["collected", "zombie", "dead pane"])
def test_screen_of_a_dead_codex_is_ignored(how: str) -> None:
    """tmux 3.3a may leave a pane's program uncollected: the pane is dead, or the program a zombie."""
    zombie = process(11, 10, started=95.0, agent="codex", cwd=CWD, zombie=True)
    ending = {
        "collected": e.ProcessGone(at=110, key=ProcessKey(11, 95.0)),
        "zombie": zombie,
        "dead pane": pane(dead=True),
    }[how]
    found = worker(in_a_pane(), read("failed-provider"), ending, polled(110))
    assert (found.state, found.pane is not None) == (State.EXITED, True)


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("usage_limit_exceeded", State.FAILED_PROVIDER),
        ("sandbox_error", State.BLOCKED_SANDBOX),
        ("too_many_denials", State.FAILED_PERMISSION),
        (None, State.FAILED_PROVIDER),
    ],
)
def test_failed_turn(kind: str | None, state: State) -> None:
    found = worker(begun(), done(None, error="it failed", error_kind=kind), polled(110))
    assert found.state is state
    assert "it failed" in found.assessment.why


def hand_off(call: str, output: str, *, at: float) -> list[e.Event]:
    """A call of an MCP server's tool, with its answer."""
    started = e.CallStarted(
        thread=T, at=at, line=5, call=call, kind="other", tool="board.complete", text='{"task": 7}'
    )
    return [started, ended(call, output, at=at + 0.5, exit_code=None)]


def test_denied_hand_off_by_an_mcp_server_blocks_and_no_root_of_the_sandbox_is_its_remedy() -> None:
    refused = hand_off("c2", "Error: EROFS: read-only file system, open '/srv/x'", at=102.2)
    found = worker(begun(), called(), ended(), refused, done(), polled(110))
    assert found.state is State.BLOCKED_SANDBOX
    assert found.assessment.why.startswith("its last MCP call was likely denied /srv/x")
    (finding,), (entry,) = found.sandbox.findings, found.sandbox.denials
    assert finding.remedy is entry.remedy is MCP_SERVER


@pytest.mark.parametrize("size", [0, 20_000], ids=["created", "first line in part"])
def test_file_without_a_whole_line_is_no_session_log_once_nobody_writes_it(size: int) -> None:
    """Codex creates a file before it writes the first line, which is long; its owner is seen later."""
    seen = e.FileSeen(thread=T, at=100.1, path="/x", size=size, modified=100.0)
    assert snapshot_after(seen, polled(100.2), now=100.3).workers == ()
    (found,) = snapshot_after(seen, polled(104.0), now=104.1).workers
    assert (found.state, found.assessment.evidence[0].rule) == (State.UNREACHABLE, "no-session-log")


# ---------------------------------------------------------------- what Codex itself and its screen say


def pushed(*flags: str, at: float = 105.0) -> e.Event:
    return e.StatusPushed(at=at, thread=T, status="active", flags=flags)


def read(state: str | None, rule: str = "codex.rule", at: float = 106.0, **more: bool) -> e.Event:
    return e.ScreenRead(at=at, key=PANE, agent="codex", state=state, rule=rule, text="words", **more)


def in_a_pane() -> list[e.Event]:
    return [*begun(), *in_pane("codex", started=95.0, cwd=CWD), *held(104, 11)]


def test_feed_answer_outranks_screen_and_processes() -> None:
    asks = [called(at=104.5, ask=True), pushed("waitingOnApproval"), read("waiting-approval", at=105.5)]
    answered = [*in_a_pane(), *asks, pushed(at=106.0), *held(108, 11)]
    assert worker(answered).state is State.RUNNING
    again = read("waiting-approval", rule="codex.other", at=107.0)
    assert worker(answered, again).state is State.WAITING_APPROVAL


def test_failure_of_the_turn_before_is_ignored_until_the_screen_shows_work() -> None:
    """A slow TUI has taken the next prompt, and draws it later than the rollout has its turn."""
    tries = "codex.reconnecting"
    failed = [read("running", tries, at=99.0), read(None, at=100.5), read("running", tries, at=101.0)]
    assert worker(in_a_pane(), failed).assessment.why == "thinking"
    again = [read("running", at=102.0), read("running", tries, at=103.0)]
    assert worker(in_a_pane(), failed, again).assessment.why == "tries again: words"


# ---------------------------------------------------------------- panes


def shows(state: str | None, rule: str, *, at: float = 111.0, text: str = "", **more: object) -> e.Event:
    return e.ScreenRead(
        at=at, key=PANE, agent="opencode", state=state, rule=f"opencode.{rule}", text=text, **more
    )


def test_pager_freezes_the_state() -> None:
    hidden = shows(None, "pager", at=115, frozen=True)
    found = worker(opencode(), shows("running", "working", text="esc interrupt"), hidden)
    assert (found.state, found.assessment.since) == (State.RUNNING, 111)
    assert "hides its prompt" in found.assessment.why


def opencode(*, gone: bool = False) -> list[e.Event]:
    """OpenCode in a pane, perhaps gone again."""
    end = [e.ProcessGone(at=120, key=ProcessKey(11, 85.0)), *polled(121)] if gone else []
    return [*in_pane("opencode"), *polled(110), *end]


ZOMBIE = process(10, started=80.0, zombie=True, exit_code=4)
LOST = e.SourceSeen(at=130, name="tmux", ok=False, detail="no server running on /tmp/tmux-0/default")


@pytest.mark.parametrize(
    ("story", "state", "why"),
    [
        ([opencode()], State.UNKNOWN, "nothing that it shows is understood here"),
        ([opencode(gone=True)], State.EXITED, "opencode (pid 11) is gone from the pane"),
        ([opencode(), pane(dead=True)], State.EXITED, "exit code unknown"),
        ([opencode(), pane(dead=True), ZOMBIE], State.EXITED, "exit code 4"),
        ([opencode(), LOST], State.UNREACHABLE, "no server running"),
    ],
)
def test_pane_without_a_reading(story: list[e.Event | list[e.Event]], state: State, why: str) -> None:
    found = worker(*story)
    assert (found.state, why in found.assessment.why) == (state, True)


# ---------------------------------------------------------------- the hard ones


def test_turn_stopped_during_provider_trouble_on_screen() -> None:
    """0.169 writes nothing for as long as it reconnects; interrupted, its prompt looks as ready as ever."""
    aborted = e.TurnEnded(thread=T, at=150, line=9, how="aborted", reason="interrupted")
    trouble = read("failed-provider", rule="codex.reconnecting")
    idle = read("interrupted", rule="codex.interrupted", at=150.5)
    found = worker(in_a_pane(), trouble, aborted, idle)
    assert found.state is State.FAILED_PROVIDER
    assert found.assessment.why == "stopped while its provider failed: words"
    answered = e.MessageLogged(thread=T, at=140, line=8, role="agent", text="Here it is.")
    assert worker(in_a_pane(), trouble, answered, aborted, idle).state is State.INTERRUPTED
    assert worker(in_a_pane(), trouble, read("running", at=120), aborted, idle).state is State.INTERRUPTED


def test_trouble_of_the_turn_before_is_over_where_the_log_has_another() -> None:
    """A pane 6 lines high has room for half of the dialog by which the next turn asks."""
    failed = shows("failed-provider", "failed", at=112, text="Error: 500")
    half = shows(None, "permission", at=120, text="options only", partial=True)

    def logged(since: float) -> e.Event:
        chat = Chat(by="the only one", turn="open", since=since)
        more = {"status": None, "since": since, "session": "s", "chat": chat}
        return e.SessionSeen(at=since, key=ProcessKey(11, 85.0), agent="opencode", **more)

    assert worker(opencode(), logged(111), failed, half).state is State.FAILED_PROVIDER
    found = worker(opencode(), logged(111), failed, logged(118), half)
    assert (found.state, "may be waiting" in found.assessment.why) == (State.UNKNOWN, True)


@pytest.mark.parametrize("after", [None, "interrupted"])
def test_pane_stopped_during_retries(after: str | None) -> None:
    failed = shows("failed-provider", "rule", at=112, text="[retrying in 3s attempt #2]")
    assert worker(opencode(), failed, shows(after, "rule", at=113)).state is State.FAILED_PROVIDER
    worked = [shows("running", "rule", at=113), shows("interrupted", "rule", at=119)]
    assert worker(opencode(), failed, worked).state is State.INTERRUPTED


def test_half_visible_menu_yields_to_other_sources() -> None:
    half = read(None, rule="codex.approval", partial=True)
    found = worker(in_a_pane(), half)
    assert (found.state, "out of sight" in found.assessment.why) == (State.UNKNOWN, True)
    knows = worker(in_a_pane(), half, pushed("waitingOnApproval"))
    assert knows.state is State.WAITING_APPROVAL
    runs = worker(in_a_pane(), called(), process(77, 11, started=101.5, env=OF_CALL), held(107, 11), half)
    assert runs.state is State.RUNNING


def test_logged_request_failures_apply_without_a_screen() -> None:
    """A turn that goes on in the daemon after its TUI has quit: no screen, and the rollout says nothing."""
    logged = e.TroubleLogged(thread=T, at=120, text="error sending request")
    found = worker(begun(), logged, held(130))
    assert (found.state, found.assessment.evidence[-1].source) == (State.RUNNING, "log")
    for later in (
        worker(begun(), logged, held(200)),  # it would have failed again
        worker(begun(), logged, called(at=125), held(130)),
        worker(in_a_pane(), read("running"), logged, held(130, 11)),
    ):
        assert (later.state, found.assessment.why in later.assessment.why) == (State.RUNNING, False)
    aborted = e.TurnEnded(thread=T, at=140, line=9, how="aborted", reason="interrupted")
    assert worker(begun(), logged, aborted, held(150)).state is State.FAILED_PROVIDER


def test_an_escalated_command_waits_since_its_call() -> None:
    """Codex asks at once: what is seen later, when a dashboard starts, is no later question."""
    asks = called(text="curl x", ask=True)
    found = worker(begun(), asks, pushed("waitingOnApproval", at=160.0), held(161))
    assert (found.state, found.assessment.since) == (State.WAITING_APPROVAL, 101.0)
    shown = worker(in_a_pane(), begun(), asks, read("waiting-approval", at=160.0), held(161))
    assert (shown.state, shown.assessment.since) == (State.WAITING_APPROVAL, 101.0)


# ---------------------------------------------------------------- one state each


OF_CALL = {"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1"}
ITS_PROCESS = [process(50, agent="codex"), process(77, 50, started=105.0, env=OF_CALL)]
TRIED_AGAIN = [
    *hand_off("c1", "sqlite3.OperationalError: unable to open database file", at=101.0),
    *hand_off("c2", "closed", at=102.0),
]
HALF = e.MessageLogged(thread=T, at=104, line=7, role="agent", text="half")
DENIED = "touch: cannot touch '/home/dev/x': Read-only file system\n"
UNREADABLE = e.FileSeen(thread=T, at=100, path="/x", size=1, modified=100, unreadable="Permission denied")
REJECTED = ended(output="rejected", exit_code=None, outcome="refused-by-user")
CLOSED_FEED = e.SourceSeen(at=106, name="codex feed", ok=False, detail="closed")
READ_LATER = e.ProcessesCounted(at=110, files_at=100.5)


@pytest.mark.parametrize(
    ("state", "story"),
    [
        # of an escalated command, which has a moment to start
        (State.WAITING_APPROVAL, [begun(), called(ask=True), held(110)]),
        (State.RUNNING, [begun(), called(ask=True), held(101.5)]),
        (State.RUNNING, [begun(), called(ask=True), *ITS_PROCESS, held(110)]),
        (State.WAITING_INPUT, [begun(), called(text="Which branch?", kind="question"), held(110)]),
        # how a turn ends
        (State.FAILED_PERMISSION, [begun(), called(ask=True), REJECTED, done(), polled(110)]),
        (State.COMPLETED, [begun(version="0.160.0"), called(), ended(), done(None), polled(110)]),
        # the exit code of another command hides no denial; one that it got past stops nothing
        (State.BLOCKED_SANDBOX, [begun(), called(text="touch /x || true"), ended(output=DENIED), done()]),
        (State.BLOCKED_SANDBOX, [begun(), called(text="touch /x | tail"), ended(output=DENIED), done()]),
        (State.COMPLETED, [begun(), called(), ended(output=f"{DENIED}wrote-workspace"), done(), polled(110)]),
        (State.COMPLETED, [begun(), *TRIED_AGAIN, done()]),
        # through 0.142 files record no errors, through 0.98 no ends of turns
        (State.FAILED_PROVIDER, [old(), HALF, asked(at=105), HALF, asked(at=106), HALF, polled(110)]),
        # whether its owner lives; through 0.147 it is known by its open files alone
        (State.RUNNING, [begun(), called(), polled(100.5), READ_LATER]),
        (State.EXITED, [begun(), called(), polled(100.5), READ_LATER, polled(110.5)]),
        (State.EXITED, [begun(), called(), FleetKnown(at=110, processes_at=110.0)]),
        (State.WAITING_INPUT, [e.ThreadStarted(thread=T, at=100, line=1, version="0.169.0"), held(110)]),
        (State.UNREACHABLE, [UNREADABLE]),
        # a screen adds prompts, and ends no open turn
        (State.WAITING_APPROVAL, [in_a_pane(), read("waiting-approval")]),
        (State.RUNNING, [in_a_pane(), read("waiting-approval", at=90.0)]),
        (State.RUNNING, [in_a_pane(), read("failed-provider")]),
        (State.RUNNING, [in_a_pane(), read("completed")]),
        (State.RUNNING, [in_a_pane(), read("waiting-input", rule="codex.fresh", at=100.5)]),
        (State.COMPLETED, [in_a_pane(), read("waiting-approval"), done(at=110)]),
        # a feed's status applies at once; one that has closed says nothing
        (State.WAITING_APPROVAL, [begun(), called(kind="patch"), pushed("waitingOnApproval"), held(105.1)]),
        (State.WAITING_INPUT, [begun(), pushed("waitingOnUserInput"), held(110)]),
        (State.RUNNING, [begun(), pushed("waitingOnApproval"), pushed(at=106.0), held(110)]),
        (State.RUNNING, [begun(), pushed("waitingOnApproval"), CLOSED_FEED, held(110)]),
    ],
)
def test_state_of_a_story(state: State, story: list[e.Event | list[e.Event]]) -> None:
    assert worker(*story).state is state
