"""How well each worker CLI is known, and which version is installed."""

from pathlib import Path

import pytest

from agentdash.agents.knowledge import installed_agents, knowledge, screen_versions, version_of
from agentdash.agents.registry import adapters


@pytest.mark.parametrize("agent", sorted(adapters()))
def test_what_is_stated_is_what_there_is(agent: str) -> None:
    known = knowledge()[agent]
    has_reader = adapters()[agent].request_reader is not None
    is_login_alone = known.untested.startswith("its login alone") if known.untested else False
    assert is_login_alone or bool(known.untested) is not bool(screen_versions(agent))
    assert (known.sandbox != "observed") is has_reader
    assert (known.sessions != "-") is (adapters()[agent].session_files is not None or agent == "codex")


def install(root: Path, package: str, version: str, program: str) -> Path:
    """Install a package as npm does; return the directory of its command."""
    folder = root / "node_modules" / package
    (folder / "bin").mkdir(parents=True)
    (folder / "package.json").write_text(f'{{"name": "{package}", "version": "{version}"}}')
    script = folder / "bin" / f"{program}.js"
    script.write_text("#!/usr/bin/env node\n")
    script.chmod(0o755)
    commands = root / "node_modules" / ".bin"
    commands.mkdir(exist_ok=True)
    (commands / program).symlink_to(script)
    return commands


def test_installed_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = install(tmp_path, "@google/gemini-cli", "0.61.0", "gemini")
    install(tmp_path, "something-else", "9.9.9", "crush")
    native = tmp_path / "share/claude/versions/2.1.330"
    native.parent.mkdir(parents=True)
    native.write_text("#!/bin/sh\nexit 3\n")
    native.chmod(0o755)
    (commands / "claude").symlink_to(native)
    monkeypatch.setenv("PATH", str(commands))
    assert [(found.agent, found.version) for found in installed_agents()] == [
        ("claude", "2.1.330"),
        ("crush", None),
        ("gemini", "0.61.0"),
    ]
    (tmp_path / "node_modules/@google/gemini-cli/package.json").write_text("{")
    assert version_of(adapters()["gemini"], str(commands / "gemini")) is None
