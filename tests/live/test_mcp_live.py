"""`agentdash mcp` as real agents use it: they start it outside their sandbox, and read its answers."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.live import claude
from tests.live.conftest import OpenLab
from tests.live.patience import scaled

_LIMIT_S = 60.0
"""On a quiet machine; two starts of agentdash with the SDK take two seconds."""


def _server(state: Path, *more: str) -> dict[str, Any]:
    return {
        "command": sys.executable,
        "args": ["-m", "agentdash", "mcp", *more],
        "env": {"XDG_STATE_HOME": str(state), "XDG_CONFIG_HOME": str(state)},
    }


def test_codex_asks_about_a_worker(codex: OpenLab, tmp_path: Path) -> None:
    """A sandboxed Codex, which sees no other process, gets the state of itself and of others."""
    call = {"tool": "status", "args": {}, "namespace": "mcp__agentdash"}
    lab = codex({"ask": [call, {"say": "done"}]})
    server = _server(tmp_path, "--no-tmux", "--codex-home", str(lab.home))
    with (lab.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write("[mcp_servers.agentdash]\n")
        config.write("required = true\n")  # otherwise the first request may come before its tools
        config.writelines(f"{name} = {json.dumps(server[name])}\n" for name in ("command", "args"))
        config.writelines(f"env.{name} = {json.dumps(value)}\n" for name, value in server["env"].items())
        limits = ("startup_timeout_sec", "tool_timeout_sec")
        config.writelines(f"{name} = {scaled(_LIMIT_S):.0f}\n" for name in limits)
    done = subprocess.run(
        [str(lab.binary), "exec", "-s", "read-only", "--skip-git-repo-check", "[[ask]] who is there?"],
        env={"CODEX_HOME": str(lab.home), "HOME": str(lab.user), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        cwd=lab.workspace,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=scaled(_LIMIT_S * 3),
        check=False,
    )
    answer = _output(lab.model.requests[-1]["input"])
    workers = json.loads(answer[answer.index('{"problems"') :])["workers"]
    assert [(worker["agent"], worker["state"]) for worker in workers] == [("codex", "running")]
    assert done.returncode == 0


def _output(items: list[dict[str, Any]]) -> str:
    """Return the text of the newest tool output of a request."""
    output = next(item["output"] for item in reversed(items) if item["type"] == "function_call_output")
    return output if isinstance(output, str) else "".join(part["text"] for part in output)


def test_claude_asks_about_a_worker(tmp_path: Path) -> None:
    call = {"tool": "mcp__agentdash__status", "args": {}}
    # several times: at the first, Claude Code may not have written its session yet
    script = {"ask": [call, call, call, {"say": "done"}]}
    with closing(claude.ClaudeLab(claude.install(), script)) as lab:
        (tmp_path / "no-codex").mkdir()
        server = _server(tmp_path, "--no-tmux", "--codex-home", str(tmp_path / "no-codex"))
        server["env"] |= {"CLAUDE_CONFIG_DIR": str(lab.config)}
        config = json.dumps({"mcpServers": {"agentdash": server}})
        printed = lab.print(
            "[[ask]] who is there?", "--mcp-config", config, "--allowedTools", "mcp__agentdash__status"
        )
        assert "done" in printed
        results = [
            part
            for request in lab.model.requests
            for message in request.get("messages", [])
            if isinstance(message["content"], list)
            for part in message["content"]
            if part["type"] == "tool_result"
        ]
    content = results[-1]["content"]
    answer = content if isinstance(content, str) else "".join(part["text"] for part in content)
    workers = json.loads(answer)["workers"]
    assert [(worker["agent"], worker["state"]) for worker in workers] == [("claude", "running")]
