"""Each state is caused with the real Codex and the real OpenCode; no state is shown without a cause."""

from __future__ import annotations

import asyncio
import shlex

from agentdash.model.states import State
from tests.live import walks
from tests.live.conftest import OpenLab
from tests.live.walks import Taken, walk
from tests.live.watched import watching
from tests.live.workers import opencode_tui


def strays(taken: list[Taken]) -> dict[str, tuple[State, ...]]:
    """Return the steps with states that nothing caused."""
    return {t.step.name: t.passed for t in taken if t.stray}


def strays_by_screen(taken: list[Taken]) -> dict[str, tuple[State, ...]]:
    """Like `strays`, for CLIs known by their screen only: it may be unknown while a slow machine draws it."""
    return {
        t.step.name: t.passed for t in taken if any(s not in (State.UNKNOWN, t.step.state) for s in t.stray)
    }


async def test_codex_tui(codex: OpenLab) -> None:
    lab = codex(walks.CODEX, walks.CODEX_CONFIG)
    async with watching(lab) as seen:
        pane = await lab.tui()
        taken = await walk(seen, lab, pane, (*walks.CODEX_TUI, walks.GIVEN_UP))
        assert strays(taken) == {}
        worker = await seen.until(lambda w: w.kind == "codex-thread" and walks.is_in(w, pane))
        assert worker.notes == ()  # every line of its rollout is known
        states = [period.state for period in worker.history]
        # a turn interrupted while the provider failed is not ready in between
        assert states[-2:] != ["interrupted", "failed-provider"]


async def test_opencode_tui(codex: OpenLab) -> None:
    """Its first menu is cut; at last its server is gone."""
    lab = codex(walks.OPENCODE)
    async with watching(lab) as seen:
        pane = await opencode_tui(lab)
        lab.run_tmux("resize-window", "-t", pane.id, "-x", "100", "-y", "6")
        pane.submit("[[ask]] go")
        half = await seen.until(
            lambda w: walks.is_in(w, pane) and w.state is State.UNKNOWN and "out of sight" in w.assessment.why
        )
        await seen.until(lambda w: any(link.to.startswith("session ses_") for link in w.links))
        assert "100x6 pane" in half.assessment.why
        lab.run_tmux("resize-window", "-t", pane.id, "-x", "120", "-y", "40")
        taken = await walk(seen, lab, pane, walks.OPENCODE_TUI)
        assert strays_by_screen(taken) == {}
        await walk(seen, lab, pane, (walks.SERVER_GONE,))


async def test_codex_exec(codex: OpenLab) -> None:
    ends = {
        "hi": ((), State.COMPLETED),
        "unpaid": ((), State.FAILED_PROVIDER),
        "denied": ((), State.BLOCKED_SANDBOX),
        "refused": (("-c", 'approval_policy="never"', "-s", "workspace-write"), State.FAILED_PERMISSION),
    }
    lab = codex({**walks.CODEX, "hi": [{"say": "all done"}]})
    async with watching(lab) as seen:
        for marker, (flags, state) in ends.items():
            lab.exec(f"[[{marker}]] go", *flags)
            found = await seen.until(lambda w, m=marker, s=state: w.name == f"[[{m}]] go" and w.state is s)
            assert found.notes == ()


async def test_codex_exec_waits_for_its_standard_input(codex: OpenLab) -> None:
    """In a pane, and outside; it begins when the pipe is closed."""
    lab = codex(walks.CODEX)
    command = [str(lab.binary), "exec", "--skip-git-repo-check", "[[asks]] go"]
    async with watching(lab) as seen:
        pane = lab.pane(f"sleep 600 | {shlex.join(command)}")
        await seen.until(lambda w: walks.is_in(w, pane) and w.state is State.WAITING_INPUT)
        run = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, env=lab.tmux_env, cwd=lab.workspace
        )
        waits = await seen.until(lambda w: w.kind == "process" and w.state is State.WAITING_INPUT)
        assert "start it with < /dev/null" in waits.assessment.why
        await run.communicate(b"")
        ended = await seen.until(lambda w: w.kind == "codex-thread" and w.state is State.COMPLETED)
        assert ended.assessment.why.endswith("it ended with a question: Shall I *commit* it?")
