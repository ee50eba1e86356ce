"""`agentdash mcp` as real agents use it: they start it outside their sandbox, and read its answers."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.live import claude
from tests.live.conftest import OpenLab
from tests.live.patience import scaled

_LIMIT_S = 60.0
"""On a quiet machine; two starts of agentdash with the SDK take two seconds."""


def _server(state: Path, codex_home: Path, **env: str) -> dict[str, Any]:
    return {
        "command": sys.executable,
        "args": ["-m", "agentdash", "mcp", "--no-tmux", "--codex-home", str(codex_home)],
        "env": {"XDG_STATE_HOME": str(state), "XDG_CONFIG_HOME": str(state), **env},
    }


def _is_told(requests: list[dict[str, Any]], agent: str) -> bool:
    """Return whether the newest answer of the server to a model has this agent alone, running."""
    items = [item for body in requests for item in body.get("input") or body.get("messages") or ()]
    parts = [part for item in items for part in [item, *_parts(item.get("content"))]]
    answers = [part.get("output") or part.get("content") for part in parts if _is_result(part)]
    answer = "".join(str(part["text"]) for part in _parts(answers[-1])) or str(answers[-1])
    workers = json.loads(answer[answer.index('{"') :])["workers"]
    return [(worker["agent"], worker["state"]) for worker in workers] == [(agent, "running")]


def _parts(content: Any) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else []


def _is_result(part: dict[str, Any]) -> bool:
    return part.get("type") in ("function_call_output", "tool_result")


def test_codex_asks_about_a_worker(codex: OpenLab, tmp_path: Path) -> None:
    """A sandboxed Codex, which sees no other process, gets the state of itself and of others."""
    call = {"tool": "status", "args": {}, "namespace": "mcp__agentdash"}
    lab = codex({"ask": [call, {"say": "done"}]})
    server = _server(tmp_path, lab.home)
    with (lab.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write("[mcp_servers.agentdash]\n")
        config.write("required = true\n")  # otherwise the first request may come before its tools
        config.writelines(f"{name} = {json.dumps(server[name])}\n" for name in ("command", "args"))
        config.writelines(f"env.{name} = {json.dumps(value)}\n" for name, value in server["env"].items())
        limits = ("startup_timeout_sec", "tool_timeout_sec")
        config.writelines(f"{name} = {scaled(_LIMIT_S):.0f}\n" for name in limits)
    lab.run_codex("exec", "-s", "read-only", "--skip-git-repo-check", "[[ask]] who is there?")
    assert _is_told(lab.model.requests, "codex")


def test_claude_asks_about_a_worker(tmp_path: Path) -> None:
    call = {"tool": "mcp__agentdash__status", "args": {}}
    # several times: at the first, Claude Code may not have written its session yet
    script = {"ask": [call, call, call, {"say": "done"}]}
    with claude.ClaudeLab(claude.install(), script) as lab:
        server = _server(tmp_path, lab.home, CLAUDE_CONFIG_DIR=str(lab.claude_home))
        config = json.dumps({"mcpServers": {"agentdash": server}})
        allowed = ("--allowedTools", "mcp__agentdash__status")
        assert "done" in lab.print("[[ask]] who is there?", "--mcp-config", config, *allowed)
        assert _is_told(lab.model.requests, "claude")
