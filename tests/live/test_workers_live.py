"""Real Gemini CLI, Qwen Code, OpenCode, Kilo, Copilot CLI: states, sessions, sandboxes, as they run."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.session_logs import unsorted_logs
from agentdash.model.findings import FindingKind
from agentdash.model.states import State
from agentdash.replay.library.search import TextSearch
from agentdash.report.audit import audit
from tests.live.clis import install
from tests.live.conftest import Keep
from tests.live.model_server import Script
from tests.live.patience import until
from tests.live.programs import write_program
from tests.live.watched import in_pane, watching
from tests.live.workers import PROMPTS, WorkerLab, WorkerPane

OpenLab = Callable[[Script], WorkerLab]
WAIT = "until [ -e go ]; do sleep 0.1; done; echo went"
"""A command that runs until the test lets it end."""
SCRIPT: Script = {
    "think": [{"hold": "answer", "say": "The answer."}],
    "act": [{"run": WAIT}, {"say": "It has ended."}],
    "fail": [{"fail": 401}],
    "part": [{"unfinished": "Half of an"}] * 9,
    "retry": [{"fail": 429}],
}


@pytest.fixture
def workers(keep: Keep[WorkerLab]) -> OpenLab:
    """Return a function that opens a lab."""
    return lambda script: keep(WorkerLab(script))


PROMPTED, TITLED = ("gemini", "qwen", "copilot"), ("opencode", "kilo")
NAMES = dict.fromkeys(PROMPTED, "[[think]] think") | dict.fromkeys(TITLED, "A title")
"""The first prompt, or the title that the model gave."""
EVERY_CLI = list(NAMES) if os.environ.get("AGENTDASH_MATRIX") == "all" else list(NAMES)[:-1]
"""Kilo is a fork of OpenCode."""
FAILURES = {
    "gemini": ("[[part]] part", State.FAILED_PROVIDER, "without a finish reason"),
    "qwen": ("[[retry]] retry", State.RUNNING, "429"),
}
"""Failures that the screen hides or words differently."""


@pytest.mark.parametrize("agent", EVERY_CLI)
async def test_states_and_session(workers: OpenLab, agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = workers(SCRIPT)
    lab.configure(agent)
    pane = await lab.start(agent)
    async with watching(lab) as watched:
        await watched.until(in_pane(pane, State.WAITING_INPUT))
        await pane.submit("[[think]] think")
        await watched.until(in_pane(pane, State.RUNNING))
        lab.model.release("answer")
        await watched.until(in_pane(pane, State.COMPLETED))
        await pane.submit("[[act]] act")
        await watched.until(in_pane(pane, State.WAITING_APPROVAL), lambda w: WAIT[:20] in w.assessment.why)
        pane.keys("Enter")
        await watched.until(in_pane(pane, State.RUNNING))
        (lab.workspace / "go").touch()
        done = await watched.until(
            in_pane(pane, State.COMPLETED),
            lambda w: w.tokens.total == 3720 and WAIT in w.line,
            name=NAMES[agent],
        )
        assert done.tokens.context == 1200
        assert any(link.to.startswith("session ") for link in done.links)
        prompt, state, why = FAILURES.get(agent, ("[[fail]] fail", State.FAILED_PROVIDER, ""))
        await pane.submit(prompt)
        await watched.until(in_pane(pane, state), lambda w: why in w.assessment.why)
    monkeypatch.setenv("HOME", str(lab.user))
    for variable in ("GEMINI_CLI_HOME", "QWEN_HOME", "COPILOT_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    (past,) = audit(unsorted_logs(ClaudeHome(lab.user / ".claude"), lambda _: None)).threads
    assert (past.agent, past.cwd, past.problem) == (agent, str(lab.workspace), None)
    search = TextSearch("echo went", [Path(past.file)])
    list(search.steps())
    assert "command" in {hit.what for hit in search.hits}


def is_empty(pane: WorkerPane) -> bool:
    """Return whether a Qwen Code waits for the first prompt of a session."""
    text = pane.text()
    return PROMPTS["qwen"] in text and "[[" not in text


async def test_sessions_of_two_qwens_in_one_directory(workers: OpenLab) -> None:
    lab = workers({"one": [{"say": "1"}], "two": [{"say": "2"}], "new": [{"say": "3"}]})
    lab.configure("qwen")
    one, two = await lab.start("qwen"), await lab.start("qwen")
    async with watching(lab) as watched:
        for pane, prompt in ((one, "[[one]] first"), (two, "[[two]] second")):
            await pane.submit(prompt)
            found = await watched.until(in_pane(pane, State.COMPLETED), name=prompt)
            assert any("runtime.json has its pid" in link.by for link in found.links)
        await one.submit("/clear")
        # it drops what is typed before it has drawn itself anew
        await until(lambda: is_empty(one), "a screen without the first prompt")
        await watched.until(in_pane(one), lambda w: len(w.links) == 1)
        await one.submit("[[new]] third")
        await watched.until(in_pane(one, State.COMPLETED), name="[[new]] third")


# ---------------------------------------------------------------- sandboxes

CASES: dict[str, list[tuple[dict[str, Any], list[str], bool]]] = {
    "gemini": [({}, [], False), ({"tools": {"sandbox": True}}, [], True)],
    "qwen": [({}, ["-s"], True)],
}
"""Settings and arguments beside `SANDBOX=0`, and whether a sandbox was asked for."""


@pytest.mark.parametrize("agent", CASES)
async def test_inherited_mark_drops_the_sandbox(workers: OpenLab, agent: str) -> None:
    lab = workers({})
    for number, (settings, arguments, is_asked) in enumerate(CASES[agent]):
        lab.configure(agent, settings)
        lab.workspace = lab.root / f"workspace-{number}"
        lab.workspace.mkdir()
        async with watching(lab) as watched:  # its settings are read before it writes them itself
            pane = await lab.start(agent, *arguments, env={"SANDBOX": "0"})
            found = await watched.until(in_pane(pane), lambda w: bool(w.sandbox.requested))
        assert found.sandbox.verdict == ("mismatch" if is_asked else "match")
        kinds = [finding.kind for finding in found.sandbox.findings]
        assert kinds == [FindingKind.SANDBOX_SILENTLY_OFF] * is_asked
        lab.run_tmux("kill-pane", "-t", pane.id)


BWRAP = ("bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--")


def _around(lab: WorkerLab) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command that starts something in Anthropic's sandbox runtime, and what that needs.

    It looks for files to protect with ripgrep: one that finds none does as well.
    """
    programs = write_program(lab.root / "bin" / "rg", "exit 1").parent
    places = [str(lab.root), "/tmp"]
    settings = {
        "filesystem": {"allowWrite": places, "denyRead": [], "denyWrite": []},
        "network": {"allowedDomains": [], "deniedDomains": []},
    }
    (lab.root / "srt.json").write_text(json.dumps(settings), "utf-8")
    command = (str(install("srt")), "--settings", str(lab.root / "srt.json"))
    return command, {"PATH": f"{programs}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("around", "named"), [("bwrap", "bwrap: full access"), ("srt", "sandbox runtime (srt) by ")]
)
async def test_sandbox_around_opencode_is_named_by_what_built_it(
    workers: OpenLab, around: str, named: str
) -> None:
    lab = workers({})
    lab.configure("opencode")
    command, env = _around(lab) if around == "srt" else (BWRAP, {})
    pane = await lab.start("opencode", around=command, env=env)
    async with watching(lab) as watched:
        found = await watched.until(in_pane(pane), lambda w: bool(w.sandbox.applied and w.sandbox.requested))
    assert (found.sandbox.applied or "").startswith(named)
    assert (found.sandbox.verdict, found.sandbox.findings) == ("unverified", ())
    assert (found.agent.name, found.pane and found.pane.key.id) == ("opencode", pane.id)
