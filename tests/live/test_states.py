"""Each state is caused with the real Codex and the real OpenCode; no state is shown without a cause."""

from __future__ import annotations

import pytest

from agentdash.model.states import State
from tests.live import opencode, walks
from tests.live.conftest import OpenLab
from tests.live.walks import Taken, walk
from tests.live.watched import thread_in, watching


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
        pane = await walks.open_codex(lab)
        taken = await walk(seen, lab, pane, (*walks.CODEX_TUI, walks.GIVEN_UP))
        assert strays(taken) == {}
        worker = await seen.until(lambda w: w.kind == "codex-thread" and walks.is_in(w, pane))
        states = [period.state for period in worker.history]
        # a turn interrupted while the provider failed is not ready in between
        assert states[-2:] != ["interrupted", "failed-provider"]


async def test_opencode_tui(codex: OpenLab) -> None:
    lab = codex(walks.OPENCODE)
    async with watching(lab) as seen:
        pane = await walks.open_opencode(lab)
        taken = await walk(seen, lab, pane, (*walks.OPENCODE_TUI, walks.KILLED))
        assert strays_by_screen(taken) == {}


async def test_opencode_run_inside_and_outside_a_sandbox(codex: OpenLab) -> None:
    """Inside, its home is read-only, and it ends with a denial; outside, it completes."""
    lab = codex(walks.OPENCODE)
    async with watching(lab) as seen:
        outside = opencode.run(lab, "[[hi]] go")
        done = await seen.until(lambda w: walks.is_in(w, outside) and w.state is State.COMPLETED)
        assert done.sandbox.got.seccomp == 0
        inside = opencode.run(lab, "[[hi]] go", sandbox=opencode.SANDBOX)
        home = str(lab.user / ".local" / "share" / "opencode")
        blocked = await seen.until(
            lambda w: (
                walks.is_in(w, inside)
                and w.state is State.BLOCKED_SANDBOX
                and home in w.assessment.why
                and any(finding.remedy for finding in w.sandbox.findings)
            )
        )
        assert blocked.sandbox.got.seccomp == 2
        (finding,) = blocked.sandbox.findings
        assert finding.kind == "denied-filesystem"
        assert finding.remedy is not None
        assert home in finding.remedy.text


async def test_opencode_run_running_and_killed(codex: OpenLab) -> None:
    lab = codex(walks.OPENCODE)
    async with watching(lab) as seen:
        pane = opencode.run(lab, "[[stop]] go")
        steps = (
            walks.Step("at work", walks.nothing, "> build", State.RUNNING, (State.UNKNOWN,)),
            walks.KILLED,
        )
        assert strays_by_screen(await walk(seen, lab, pane, steps)) == {}


async def test_lost_tmux_server_and_cut_menu(codex: OpenLab) -> None:
    lab = codex(walks.OPENCODE)
    async with watching(lab) as seen:
        pane = await opencode.tui(lab)
        lab.run_tmux("resize-window", "-t", pane.id, "-x", "100", "-y", "6")
        pane.submit("[[ask]] go")
        half = await seen.until(
            lambda w: walks.is_in(w, pane) and w.state is State.UNKNOWN and "out of sight" in w.assessment.why
        )
        assert "100x6 pane" in half.assessment.why
        await walk(seen, lab, pane, (walks.SERVER_GONE,))


@pytest.mark.parametrize(
    ("marker", "flags", "state"),
    [
        ("hi", (), State.COMPLETED),
        ("unpaid", (), State.FAILED_PROVIDER),
        ("denied", (), State.BLOCKED_SANDBOX),
        ("refused", ("-c", 'approval_policy="never"', "-s", "workspace-write"), State.FAILED_PERMISSION),
    ],
)
async def test_codex_exec(codex: OpenLab, marker: str, flags: tuple[str, ...], state: State) -> None:
    lab = codex({**walks.CODEX, "hi": [{"say": "all done"}]})
    async with watching(lab) as seen:
        lab.exec(f"[[{marker}]] go", *flags)
        await seen.until(thread_in(state))
