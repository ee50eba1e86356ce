"""Tokens beside those that `ccusage` counts in the same files, to the token; costs beside its costs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from agentdash.model.tokens import ModelUsage, TokenUsage
from agentdash.prices import cost, price_list
from agentdash.report.sessions import read_sessions
from tests.live.clis import install as install_cli
from tests.unit.rollout_files import event, line, meta

VERSION: Final = "20.0.24"
DATA: Final = Path(__file__).parents[1] / "data"
_COPIED: Final = "rollouts/0.114.0/"
"""Recordings with copied counts, which `ccusage` recognizes by their times."""
_DIFFERENT: Final = {
    "gpt-6-luna",
    "gpt-6.1-terra",
    "gpt-6-sol",
    "gpt-6.1-sol",
    "gpt-6.2-sol",
    "codex-mini-latest",
}
"""Models that this version of `ccusage` has no price for."""


@pytest.fixture(scope="module")
def ccusage() -> Path:
    return install_cli("ccusage")


def run(binary: Path, agent: str, **env: str) -> Any:
    done = subprocess.run(
        [binary, agent, "session", "--json", "--offline"],
        env={**os.environ, **env},
        capture_output=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return json.loads(done.stdout)


def spread(lines: bytes) -> bytes:
    """Return a rollout with two seconds between its lines: of a child `ccusage` takes counts in one second,
    which the scripted model of the recordings has, as a copied history."""
    times = iter(range(100_000))

    def later(match: re.Match[bytes]) -> bytes:
        at = datetime.fromisoformat(match[2].decode()) + timedelta(seconds=2 * next(times))
        return match[1] + at.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()

    return re.sub(rb'^(\{"timestamp":")([^"]+)', later, lines, flags=re.MULTILINE)


def test_tokens_of_every_recording(ccusage: Path, tmp_path: Path) -> None:
    day = tmp_path / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    for path in (*DATA.glob("recordings/*/*/rollout-*"), *DATA.glob("rollouts/*/*/rollout-*.jsonl")):
        content = path.read_bytes()
        (day / path.name).write_bytes(content if _COPIED in str(path) else spread(content))
    theirs = {
        Path(session["sessionFile"]).name: (
            session["totalTokens"],
            session["inputTokens"],
            session["cacheReadTokens"],
        )
        for session in run(ccusage, "codex", CODEX_HOME=str(tmp_path))["sessions"]
    }
    sessions = read_sessions(tmp_path, None, tmp_path / "no-claude").sessions
    ours = {
        Path(session.file).stem: (
            session.tokens.total,
            sum(each.input for each in session.tokens.models),
            sum(each.cached for each in session.tokens.models),
        )
        for session in sessions
        if session.tokens
    }
    assert len(ours) > 100
    assert ours == theirs


def rollout(model: str, usage: TokenUsage) -> bytes:
    """Return a rollout with one request."""
    counts = {
        "input_tokens": usage.prompt,
        "cached_input_tokens": usage.cached,
        "output_tokens": usage.output,
        "reasoning_output_tokens": 0,
        "total_tokens": usage.total,
    }
    info = {"total_token_usage": counts, "last_token_usage": counts}
    context = line("turn_context", {"cwd": "/x", "model": model})
    return b"\n".join((meta(source="exec"), context, event("token_count", info=info), b""))


def test_cost_of_every_model_of_openai(ccusage: Path, tmp_path: Path) -> None:
    day = tmp_path / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    usage = TokenUsage(input=1_000, cached=20_000, output=300)
    names = [name for name in price_list().models if not name.startswith("claude-")]
    for number, name in enumerate(names):
        file = f"rollout-2026-11-20T20-00-00-01a1fa8b-2cba-7501-a214-{number:012d}.jsonl"
        (day / file).write_bytes(rollout(name, usage))
    theirs = {
        model: session["costUSD"]
        for session in run(ccusage, "codex", CODEX_HOME=str(tmp_path))["sessions"]
        for model, found in session["models"].items()
        if not found.get("missingPricing")
    }
    ours = {name: cost([ModelUsage(model=name, usage=usage)]) for name in names}
    assert set(names) - theirs.keys() == _DIFFERENT
    assert {name: ours[name].usd for name in theirs} == pytest.approx(theirs)


@pytest.mark.parametrize("version", ["2.1.197", "2.1.240", "2.1.330"])
def test_tokens_and_cost_of_claude(ccusage: Path, tmp_path: Path, version: str) -> None:
    shutil.copytree(DATA / "claude" / version / "child-mode", tmp_path / "home")
    for file in (tmp_path / "home" / "projects").rglob("*.jsonl"):
        # the scripted model counts 100 tokens written to the cache, and none in the parts of this number
        content = file.read_text("utf-8")
        written = '"ephemeral_5m_input_tokens":{}'
        file.write_text(content.replace(written.format(0), written.format(100)), "utf-8")
    report = read_sessions(tmp_path / "no-codex", None, tmp_path / "home")
    totals = run(ccusage, "claude", CLAUDE_CONFIG_DIR=str(tmp_path / "home"))["totals"]
    assert len(report.sessions) == 2
    tokens = [session.tokens for session in report.sessions if session.tokens]
    assert sum(each.total for each in tokens) == totals["totalTokens"] > 4_000
    cost_usd = sum(each.cost_usd or 0.0 for each in tokens)
    assert cost_usd
    if version != "2.1.330":  # of whose model this ccusage has no price
        assert cost_usd == pytest.approx(totals["totalCost"])
