"""Each state is caused with the real Codex and the real OpenCode; no state is shown without a cause.

A walk goes through the states of a CLI: each step causes a state, with the words on the screen that show it.
"""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from agentdash.model.states import State
from tests.live.codex import MENU, UNTIL_LET_GO, Lab, Pane
from tests.live.conftest import OpenLab
from tests.live.model_server import Script
from tests.live.patience import scaled
from tests.live.watched import Watched, in_pane, watching
from tests.live.workers import opencode_tui

Act = Callable[[Lab, Pane], Awaitable[None] | None]

_OPTIONS = [{"label": "Left", "description": "this way"}, {"label": "Right", "description": "that way"}]
_QUESTION = {"id": "way", "header": "Way", "question": "Which way?", "options": _OPTIONS}
_NO_QUOTA = dict.fromkeys(("type", "code"), "insufficient_quota")
_UNPAID = {"error": {"message": "You exceeded your current quota", **_NO_QUOTA}}


_RETRIES = "provider fails, retrying"
_ASKS = {"asks": [{"say": "I have fixed it.\n\nShall I *commit* it?"}], "yes": [{"say": "Committed."}]}


class Step(NamedTuple):
    """A cause, and the state that it must lead to."""

    name: str
    act: Act
    shows: str | None
    """Words on the screen that show the cause has taken effect; None if there are none."""
    state: State
    meanwhile: tuple[State, ...] = ()
    """Other states that may be shown on the way."""
    what: str = ""
    """How the words of the worker's fact begin; empty if any will do."""


async def walk(
    seen: Watched, lab: Lab, pane: Pane, steps: Sequence[Step], *, by_screen: bool = False
) -> dict[str, list[State]]:
    """Take the steps in order, each until its state is shown; return those on which states were shown that
    nothing caused, with all states since the cause.

    Args:
        by_screen: whether its screen alone is known, which may be unknown while a slow machine draws it.
    """
    strays: dict[str, list[State]] = {}
    before: State | None = None
    for step in steps:
        with seen.states(in_pane(pane)) as passed:
            if (acting := step.act(lab, pane)) is not None:
                await acting
            if step.shows is not None:
                await pane.shows(step.shows)
            await seen.until(
                in_pane(pane, step.state), lambda w, what=step.what: w.fact.what.startswith(what)
            )
            shown = passed[1:] if passed[:1] == [before] else list(passed)
        arrived = shown.index(step.state) if step.state in shown else len(shown)
        stray = {*shown[:arrived]} - {*step.meanwhile, State.RUNNING} | {*shown[arrived + 1 :]}
        if stray - ({State.UNKNOWN, step.state} if by_screen else set()):
            strays[step.name] = shown
        before = step.state
    return strays


# ---------------------------------------------------------------- acts


def say(prompt: str) -> Act:
    return lambda lab, pane: pane.submit(prompt)


def press(*keys: str) -> Act:
    async def act(lab: Lab, pane: Pane) -> None:
        for number, key in enumerate(keys):
            await asyncio.sleep(scaled(0.3) if number else 0)  # a TUI takes two Escapes at once for one
            pane.keys(key)

    return act


def answer(menu: str, key: str) -> Act:
    return lambda lab, pane: pane.answer(menu, key)


def let_go(gate: str) -> Act:
    return lambda lab, pane: lab.model.release(gate)


def let_command_go(lab: Lab, pane: Pane) -> None:
    lab.let_go()


def nothing(lab: Lab, pane: Pane) -> None:
    """Do nothing: the cause is there already."""


def lose_the_network(lab: Lab, pane: Pane) -> None:
    lab.model.close()
    pane.submit("[[more]] go")


def kill_server(lab: Lab, pane: Pane) -> None:
    """Kill the tmux server, and with it the programs of its panes."""
    lab.run_tmux("kill-server")


_ASKS_IN_TEXT = (
    Step("question at the end", say("[[asks]] go"), "Shall I", State.WAITING_INPUT, what="asks"),
    Step("answered by a prompt", say("[[yes]] go"), "Committed.", State.COMPLETED),
)
# ---------------------------------------------------------------- Codex

CODEX: Script = {
    "hold": [{"hold": "first"}, {"say": "all done"}],
    "ask": [
        {"run": f"touch allowed; {UNTIL_LET_GO}", "escalate": "May I?", "yield_ms": 30_000},
        {"say": "allowed and done"},
    ],
    "question": [
        {"tool": "request_user_input", "args": {"questions": [_QUESTION]}},
        {"say": "answered and done"},
    ],
    "stop": [{"hold": "never"}, {"say": "never"}],
    "unpaid": [{"fail": 429, "body": _UNPAID}] * 9,
    "denied": [{"run": "touch /etc/agentdash-denied"}, {"say": "It did not work."}],
    "mixed": [{"run": "touch /etc/agentdash-denied"}, {"run": "echo went on"}, {"say": "Half of it worked."}],
    "refused": [{"run": "touch allowed", "escalate": "May I?"}, {"say": "It was refused."}],
    "more": [{"say": "never"}],
    **_ASKS,
}
CODEX_CONFIG = "features.default_mode_request_user_input = true"
CODEX_TUI = (
    Step("fresh", nothing, "Ask Codex to do anything", State.WAITING_INPUT, (State.UNKNOWN,)),
    Step("model at work", say("[[hold]] go"), "esc to interrupt", State.RUNNING),
    Step("turn complete", let_go("first"), "all done", State.COMPLETED),
    Step("approval", say("[[ask]] go"), MENU, State.WAITING_APPROVAL),
    Step("approved", answer(MENU, "y"), None, State.RUNNING),
    Step("turn complete again", let_command_go, "allowed and done", State.COMPLETED),
    Step("question", say("[[question]] go"), "Which way?", State.WAITING_INPUT),
    Step("answered", answer("enter to submit answer", "Enter"), "answered and done", State.COMPLETED),
    *_ASKS_IN_TEXT,
    Step("model at work again", say("[[stop]] go"), "esc to interrupt", State.RUNNING),
    Step("stopped by its user", press("Escape"), "Conversation interrupted", State.INTERRUPTED),
    Step("quota", say("[[unpaid]] go"), "Quota exceeded", State.FAILED_PROVIDER),
    Step("write denied", say("[[denied]] go"), "It did not work.", State.BLOCKED_SANDBOX),
    Step("write denied, got past", say("[[mixed]] go"), "Half of it worked.", State.COMPLETED),
    Step("network gone", lose_the_network, "Reconnecting", State.RUNNING, what=_RETRIES),
)
GIVEN_UP = Step("stopped while the network was gone", press("Escape"), None, State.FAILED_PROVIDER)

# ---------------------------------------------------------------- OpenCode

OPENCODE: Script = {
    "ask": [{"run": "touch allowed"}, {"say": "allowed and done"}],
    "question": [{"tool": "question", "args": {"questions": [_QUESTION]}}, {"say": "answered and done"}],
    **_ASKS,
    "stop": [{"hold": "never"}, {"say": "never"}],
    "unpaid": [{"fail": 429}] * 99,
}
OPENCODE_TUI = (
    Step("permission", nothing, "Permission required", State.WAITING_APPROVAL, (State.UNKNOWN,)),
    Step("allowed", answer("Permission required", "Enter"), "allowed and done", State.COMPLETED),
    Step("question", say("[[question]] go"), "esc dismiss", State.WAITING_INPUT),
    Step("answered", answer("esc dismiss", "Enter"), "answered and done", State.COMPLETED),
    *_ASKS_IN_TEXT,
    Step("model at work", say("[[stop]] go"), "esc interrupt", State.RUNNING),
    Step("stopped by its user", press("Escape", "Escape"), "interrupted", State.INTERRUPTED),
    Step("limit reached", say("[[unpaid]] go"), "retrying", State.RUNNING, what=_RETRIES),
    Step("stopped while it retried", press("Escape", "Escape"), None, State.FAILED_PROVIDER),
)
SERVER_GONE = Step("tmux server gone", kill_server, None, State.UNREACHABLE)


# ---------------------------------------------------------------- the walks are taken


async def test_codex_tui(codex: OpenLab) -> None:
    lab = codex(CODEX, CODEX_CONFIG)
    async with watching(lab) as seen:
        pane = await lab.tui()
        assert await walk(seen, lab, pane, (*CODEX_TUI, GIVEN_UP)) == {}
        worker = await seen.until(in_pane(pane), kind="codex-thread")
        assert worker.notes == ()  # every line of its rollout is known
        states = [period.state for period in worker.history]
        # a turn interrupted while the provider failed is not ready in between
        assert states[-2:] != ["interrupted", "failed-provider"]


async def test_opencode_tui(codex: OpenLab) -> None:
    """Its first menu is cut; at last its server is gone."""
    lab = codex(OPENCODE)
    async with watching(lab) as seen:
        pane = await opencode_tui(lab)
        lab.run_tmux("resize-window", "-t", pane.id, "-x", "100", "-y", "6")
        pane.submit("[[ask]] go")
        half = await seen.until(in_pane(pane, State.UNKNOWN), lambda w: "out of sight" in w.assessment.why)
        await seen.until(lambda w: any(link.to.startswith("session ses_") for link in w.links))
        assert "100x6 pane" in half.assessment.why
        lab.run_tmux("resize-window", "-t", pane.id, "-x", "120", "-y", "40")
        assert await walk(seen, lab, pane, OPENCODE_TUI, by_screen=True) == {}
        await walk(seen, lab, pane, (SERVER_GONE,))


async def test_codex_exec(codex: OpenLab) -> None:
    ends = {
        "hi": ((), State.COMPLETED),
        "unpaid": ((), State.FAILED_PROVIDER),
        "denied": ((), State.BLOCKED_SANDBOX),
        "refused": (("-c", 'approval_policy="never"', "-s", "workspace-write"), State.FAILED_PERMISSION),
    }
    lab = codex({**CODEX, "hi": [{"say": "all done"}]})
    async with watching(lab) as seen:
        for marker, (flags, state) in ends.items():
            lab.exec(f"[[{marker}]] go", *flags)
            found = await seen.until(name=f"[[{marker}]] go", state=state)
            assert found.notes == ()


async def test_codex_exec_waits_for_its_standard_input(codex: OpenLab) -> None:
    """In a pane, and outside; it begins when the pipe is closed."""
    lab = codex(CODEX)
    command = [str(lab.binary), "exec", "--skip-git-repo-check", "[[asks]] go"]
    async with watching(lab) as seen:
        pane = lab.pane(f"sleep 600 | {shlex.join(command)}")
        await seen.until(in_pane(pane, State.WAITING_INPUT))
        run = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, env=lab.tmux_env, cwd=lab.workspace
        )
        waits = await seen.until(kind="process", state=State.WAITING_INPUT)
        assert "start it with < /dev/null" in waits.assessment.why
        await run.communicate(b"")
        ended = await seen.until(kind="codex-thread", state=State.COMPLETED)
        assert ended.assessment.why.endswith("it ended with a question: Shall I *commit* it?")
