"""Workers that wait for words: a question at the end of their last message, and standard input."""

from __future__ import annotations

import asyncio
import shlex
from functools import partial

from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.live import opencode, walks
from tests.live.codex import Pane
from tests.live.conftest import OpenLab
from tests.live.watched import watching

ASKS = [{"say": "I have fixed it.\n\nShall I *commit* it?"}]
QUESTION = "Shall I *commit* it?"
SCRIPT = {"hi": ASKS, "yes": [{"say": "Committed."}]}


def has_ended(worker: Worker, pane: Pane) -> bool:
    return walks.is_in(worker, pane) and worker.state is State.COMPLETED


def asks(worker: Worker, pane: Pane) -> bool:
    return walks.is_in(worker, pane) and worker.assessment.why == f"asks: {QUESTION}"


async def test_question_in_the_last_message(codex: OpenLab) -> None:
    """Of Codex and OpenCode; the answer ends it."""
    lab = codex(SCRIPT)
    async with watching(lab) as seen:
        for pane in (await lab.tui(), await opencode.tui(lab)):
            pane.submit("[[hi]] go")
            found = await seen.until(partial(asks, pane=pane))
            assert (found.state, found.assessment.evidence[0].rule) == (State.WAITING_INPUT, "asks-in-text")
            pane.submit("[[yes]] go")
            await seen.until(partial(has_ended, pane=pane))


async def test_codex_exec_waits_for_its_standard_input(codex: OpenLab) -> None:
    """In a pane, and outside; it begins when the pipe is closed."""
    lab = codex(SCRIPT)
    command = [str(lab.binary), "exec", "--skip-git-repo-check", "[[hi]] go"]
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
        assert ended.assessment.why.endswith(f"it ended with a question: {QUESTION}")
