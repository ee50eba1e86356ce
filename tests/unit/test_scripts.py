"""The shell script of a command is kept as written, whatever form the call has."""

import json
from typing import Any

import pytest

from agentdash.agents.codex.rollout.tools import describe, describe_custom
from agentdash.model.events import CallStarted
from agentdash.model.sanitize import MAX_BLOCK_CHARS
from tests.unit.rollout_files import call, meta, only, read, response

SCRIPT = "set -e\nenv | grep '^CODEX'  # flags\n\ncat <<'EOF'\n  two\nEOF\n"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("exec_command", {"cmd": SCRIPT}),
        ("exec_command", {"cmd": SCRIPT, "shell": "/bin/zsh"}),
        ("shell_command", {"command": SCRIPT}),
        ("shell", {"command": ["bash", "-lc", SCRIPT]}),
        ("shell", {"command": ["/bin/sh", "-c", SCRIPT]}),
        ("container.exec", {"command": ["zsh", "-lc", SCRIPT]}),
    ],
)
def test_a_script_keeps_its_lines(name: str, arguments: dict[str, Any]) -> None:
    tool = describe(name, None, json.dumps(arguments))
    assert tool.script == SCRIPT
    assert "\n" not in tool.text


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": ["pwsh", "-Command", "env"]},
        {"command": ["fish", "-c", "env"]},
        {"command": ["bash", "-c", "x" * (MAX_BLOCK_CHARS + 1)]},
    ],
)
def test_other_shells_and_cut_scripts_are_not_known(arguments: dict[str, Any]) -> None:
    assert describe("shell", None, arguments).script == ""


@pytest.mark.parametrize(
    ("js", "script"),
    [
        ('const r = await tools.exec_command({cmd: "env\\nid"});\ntext(r.output);', "env\nid"),
        ('// look\nconst r = await tools.exec_command({"cmd": "env"})\ntext(JSON.stringify(r))', "env"),
        (
            'const a = await tools.exec_command({cmd: "env"}); text(a);'
            'const b = await tools.exec_command({cmd: "exit 4"}); text(b);',
            "(\nenv\n)\n(\nexit 4\n)",
        ),
        ('const r = await tools.exec_command({cmd: "env"}); text(r.output.slice(0, 9));', ""),
        ('const r = await tools.exec_command({cmd: "env"}); text("CODEX_SANDBOX=" + r.output);', ""),
        ("const r = await tools.exec_command({cmd: `env ${x}`}); text(r.output);", ""),
        ('if (x) { const r = await tools.exec_command({cmd: "env"}); text(r.output); }', ""),
        ('const r = await tools.exec_command({cmd: "env"}); text(q.output);', ""),
    ],
)
def test_code_mode_counts_only_where_whole_outputs_are_printed(js: str, script: str) -> None:
    assert describe_custom("exec", None, js).script == script


def started(text: str, name: str, arguments: dict[str, Any]) -> tuple[str, str]:
    """Return shell and script of a call behind a message of the user."""
    message = response("message", role="user", content=[{"type": "input_text", "text": text}])
    (event,) = only(CallStarted, read(meta(), message, call(name, arguments)))
    return event.shell, event.script


def context(shell: str) -> str:
    return f"<environment_context>\n  <cwd>/w</cwd>\n  <shell>{shell}</shell>\n</environment_context>"


@pytest.mark.parametrize(
    ("text", "name", "arguments", "expected"),
    [
        (context("zsh"), "exec_command", {"cmd": "env"}, ("zsh", "env")),
        (context("sh"), "shell_command", {"command": "env"}, ("sh", "env")),
        # what the arguments say counts before the environment context
        (context("zsh"), "exec_command", {"cmd": "env", "shell": "/bin/dash"}, ("dash", "env")),
        (context("zsh"), "shell", {"command": ["bash", "-lc", "env"]}, ("bash", "env")),
        (context("fish"), "shell", {"command": ["env", "-0"]}, ("", "env -0")),
        (context("fish"), "exec_command", {"cmd": "env"}, ("", "")),  # a shell that is not followed
        (f"Why is it so? {context('fish')}", "exec_command", {"cmd": "env"}, ("", "env")),  # quoted
    ],
)
def test_shell_of_a_call(text: str, name: str, arguments: dict[str, Any], expected: tuple[str, str]) -> None:
    assert started(text, name, arguments) == expected
