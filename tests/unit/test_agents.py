"""Identification of worker CLIs by their argument vectors."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from agentdash.agents.identify import identify

RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "argv.jsonl").read_text("utf-8").splitlines()
]
"""Processes of real worker CLIs in panes and sandboxes, with trimmed paths and arguments, and their
identities."""


def identity(argv: list[str], exe: str | None = None) -> str | None:
    found = identify(argv, exe)
    return f"{found.agent} {found.role}" if found else None


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: f"{row['from'].split('/')[0]}-{row['name']}")
def test_recorded_processes(row: dict[str, Any]) -> None:
    assert identity(row["argv"], row["exe"]) == row["agent"]


CURSOR = "/home/u/.local/share/cursor-agent/versions/1/index.js"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # interpreters and launchers
        (
            "node --no-warnings=X -r ./hook.js /usr/lib/node_modules/@google/gemini-cli/dist/index.js",
            "gemini worker",
        ),
        ("node node_modules/@github/copilot/npm-loader.js --banner", "copilot worker"),
        ("bun run /home/u/.bun/bin/opencode run hello", "opencode worker"),
        ("python3.12 -m aider --model x", "aider worker"),
        ("bash -e /usr/local/bin/codex exec hi", "codex worker"),
        (f"/home/u/.local/bin/cursor-agent --use-system-ca {CURSOR}", "cursor worker"),
        (f"/home/u/.local/bin/agent {CURSOR}", None),  # nothing shows that this runs a script
        ("/home/u/.local/share/claude/versions/2.1.197 --resume", "claude worker"),
        # programs that mention them, or are shipped with them
        ("vim codex", None),
        ("bash -c codex", None),
        ("python -c import aider", None),
        ("node /usr/lib/node_modules/@openai/codex/node_modules/ripgrep/cli.js", None),
        ("node /home/u/claude.js.d/server.js", None),
        ("/Applications/Claude.app/Contents/MacOS/Claude", None),
        ("node", None),
        ("python3 -m", None),
        # subcommands
        ("codex --search exec debug the login", "codex worker"),
        ("codex -c a=b app-server --listen unix://", "codex server"),
        ("codex sandbox -- codex exec hi", "codex aside"),
        ("codex login", "codex aside"),
        ("opencode serve --port 4096", "opencode server"),
        ("claude mcp serve", "claude aside"),
        # other programs of the same name
        ("goose -dir migrations postgres up", "goose aside"),
        ("copilot svc deploy", "copilot aside"),
    ],
)
def test_command_lines(line: str, expected: str | None) -> None:
    assert identity(line.split()) == expected


@pytest.mark.parametrize(
    ("argv", "exe", "expected"),
    [
        (["codex171"], "/opt/codex/bin/codex", "codex worker"),
        (["/home/u/bin/cx", "exec", "go"], "/usr/lib/node_modules/@openai/codex/bin/codex", "codex worker"),
        (["cx", "app-server"], "/opt/codex/bin/codex", "codex server"),
        (["cx", "sandbox", "--", "ls"], "/opt/codex/bin/codex", "codex aside"),
        (["codex-linux-sandbox", "--", "ls"], "/opt/codex/bin/codex", None),
        (["/home/u/.codex/tmp/arg0/codex-arg0x/apply_patch", "*** Begin"], "/opt/codex/bin/codex", None),
        (["rg", "x"], "/usr/lib/node_modules/@openai/codex/vendor/path/rg", None),
        (["ugrep", "x"], "/home/u/.local/share/claude/versions/2.1.332", None),
        (["ls"], "/opt/codex/bin/ls", None),
        (
            ["agent", "--use-system-ca", "/u/share/cursor-agent/versions/1/index.js"],
            "/u/share/cursor-agent/versions/1/node",  # an interpreter
            "cursor worker",
        ),
    ],
)  # fmt: skip
def test_a_program_under_another_name(argv: list[str], exe: str, expected: str | None) -> None:
    assert identity(argv, exe) == expected


def test_every_toml_identifies_its_cli() -> None:
    names = {
        path.name.removesuffix(".toml")
        for path in (files("agentdash") / "agents").iterdir()
        if path.name.endswith(".toml")
    } - {"any"}
    for name in names:
        program = {"cursor": "cursor-agent"}.get(name, name)
        assert identity([f"/usr/bin/{program}"]) == f"{name} worker"
