"""Tokens beside those that `ccusage` counts in the same files, to the token; costs beside its costs."""

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

DATA: Final = Path(__file__).parents[1] / "data"
_COPIED: Final = "rollouts/0.114.0/"
"""Recordings with copied counts, which `ccusage` recognizes by their times."""
_DIFFERENT: Final = frozenset(
    ("gpt-6-luna", "gpt-6.1-terra", "gpt-6-sol", "gpt-6.1-sol", "gpt-6.2-sol", "codex-mini-latest")
)
"""Models that this version of `ccusage` has no price for."""


@pytest.fixture(scope="module")
def ccusage() -> Path:
    return install_cli("ccusage")


def run(binary: Path, agent: str, **env: str) -> Any:
    argv = [binary, agent, "session", "--json", "--offline"]
    return json.loads(subprocess.check_output(argv, env={**os.environ, **env}, stdin=subprocess.DEVNULL))


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
    counted = ("totalTokens", "inputTokens", "cacheReadTokens")
    found = run(ccusage, "codex", CODEX_HOME=str(tmp_path))["sessions"]
    theirs = {Path(each["sessionFile"]).name: [each[name] for name in counted] for each in found}
    sessions = read_sessions(tmp_path, None, tmp_path / "no-claude").sessions
    read = {Path(each.file).stem: each.tokens for each in sessions if each.tokens}
    ours = {
        name: [each.total, sum(m.input for m in each.models), sum(m.cached for m in each.models)]
        for name, each in read.items()
    }
    assert len(ours) > 100
    assert ours == theirs


def test_cost_of_every_model_of_openai(ccusage: Path, tmp_path: Path) -> None:
    day = tmp_path / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    usage = TokenUsage(input=1_000, cached=20_000, output=300)
    counts = {"input_tokens": usage.prompt, "cached_input_tokens": usage.cached}
    counts |= {"output_tokens": usage.output, "reasoning_output_tokens": 0, "total_tokens": usage.total}
    counted = event("token_count", info={"total_token_usage": counts, "last_token_usage": counts})
    names = [name for name in price_list().models if not name.startswith("claude-")]
    for number, name in enumerate(names):
        file = f"rollout-2026-11-20T20-00-00-01a1fa8b-2cba-7501-a214-{number:012d}.jsonl"
        context = line("turn_context", {"cwd": "/x", "model": name})
        (day / file).write_bytes(b"\n".join((meta(source="exec"), context, counted, b"")))
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
