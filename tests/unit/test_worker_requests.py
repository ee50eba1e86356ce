"""What Gemini CLI, Qwen Code and OpenCode were asked for: arguments, variables, settings."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentdash.agents.registry import adapters
from agentdash.agents.settings_files import without_comments
from agentdash.model.policy import Filesystem, Network
from agentdash.model.process import Process, ProcessKey
from agentdash.model.requested import Requested, RequestField

STARTED = 1_700_000_000.0


class Place:
    """A home directory and a workspace with settings older than the process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cwd = "/home/dev/ws"
        (root / "home/dev/ws").mkdir(parents=True)

    def write(self, path: str, content: Any) -> None:
        """Write a file, JSON unless it is a text."""
        place = self.root / "home/dev" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content if isinstance(content, str) else json.dumps(content))
        os.utime(place, (STARTED - 100, STARTED - 100))

    def read(self, agent: str, *args: str, env: dict[str, str] | None = None) -> Requested:
        """Return the request of a process with these arguments and variables."""
        env = {"HOME": "/home/dev", **(env or {})}
        process = Process(ProcessKey(10, STARTED), 1, "node", (agent, *args), self.cwd, env=env, agent=agent)
        reader = adapters()[agent].request_reader
        return reader.read(process, None, self.root, STARTED + 50)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def sandbox_of(found: Requested) -> tuple[str, str, str | None]:
    """The files that are asked for, by what, and what keeps the sandbox from being there."""
    origin = found.origin(RequestField.FILESYSTEM)
    by = str(found.dropped_by) if found.dropped_by else None
    return found.policy.filesystem.value, str(origin) if origin else "", by


@pytest.mark.parametrize("agent", ["gemini", "qwen"])
@pytest.mark.parametrize(
    ("args", "env", "expected"),
    [
        (["-s"], {}, ("workspace", "argv: -s", None)),
        (["--sandbox", "true"], {}, ("workspace", "argv: --sandbox true", None)),
        (["-ys"], {}, ("workspace", "argv: -ys", None)),
        (["-s"], {"SANDBOX": "0"}, ("workspace", "argv: -s", "environment: SANDBOX=0")),
        (["-s"], {"SANDBOX": ""}, ("workspace", "argv: -s", None)),
        (
            ["--no-sandbox"],
            {"SANDBOX": "1"},
            ("unrestricted", "argv: --no-sandbox", "environment: SANDBOX=1"),
        ),
        (["--", "-s"], {}, ("unrestricted", "default", None)),
    ],
)
def test_arguments(
    place: Place, agent: str, args: list[str], env: dict[str, str], expected: tuple[str, str, str | None]
) -> None:
    files, origin, by = sandbox_of(place.read(agent, *args, env=env))
    assert (files, origin.startswith(expected[1]), by) == (expected[0], True, expected[2])


@pytest.mark.parametrize(
    ("agent", "typed", "variable", "expected"),
    [
        ("gemini", "--no-sandbox", "GEMINI_SANDBOX=docker", "workspace, environment: GEMINI_SANDBOX=docker"),
        ("qwen", "--no-sandbox", "QWEN_SANDBOX=docker", "workspace, environment: QWEN_SANDBOX=docker"),
        # Gemini CLI 0.61.0 sets GEMINI_SANDBOX=true for `-s`, and starts docker
        ("gemini", "-s", "GEMINI_SANDBOX=false", "workspace, argv: -s"),
        ("qwen", "-s", "QWEN_SANDBOX=false", "unrestricted, environment: QWEN_SANDBOX=false"),
    ],
)
def test_argument_and_variable(place: Place, agent: str, typed: str, variable: str, expected: str) -> None:
    found = sandbox_of(place.read(agent, typed, env=dict([variable.split("=")])))
    assert ", ".join(found[:2]) == expected


def test_settings_with_comments_and_their_line(place: Place) -> None:
    place.write(".gemini/settings.json", '{ // mine\n "tools": {\n  "sandbox": "docker",\n },\n}')
    found = place.read("gemini")
    assert sandbox_of(found) == ("workspace", '/home/dev/.gemini/settings.json:3: "sandbox": "docker"', None)
    assert found.read_at is None


@pytest.mark.parametrize(
    ("path", "content", "env"),
    [
        ("ws/.gemini/settings.json", {}, {}),
        ("managed.json", {}, {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "/home/dev/managed.json"}),
        (".gemini/settings.json", {"security": {"toolSandboxing": True}}, {}),
        (".gemini/settings.json", {"tools": {"sandbox": "$MY_SANDBOX"}}, {}),
        (".gemini/settings.json", "{ broken", {}),
    ],
)
def test_settings_that_are_not_read_leave_the_sandbox_open_but_not_what_was_typed(
    place: Place, path: str, content: Any, env: dict[str, str]
) -> None:
    place.write(path, content)
    assert sandbox_of(place.read("gemini", env=env))[1] == ""
    assert sandbox_of(place.read("gemini", "-s", env=env))[0] == "workspace"


@pytest.mark.parametrize(
    ("path", "text", "env", "is_known"),
    [
        (".env", "OTHER=1\nSANDBOX=true\n", {}, False),
        ("ws/.gemini/.env", "export GEMINI_SANDBOX = docker", {}, False),
        ("ws/.env", "API_KEY=x\n", {}, True),
        (".env", "SANDBOX=true\n", {"SANDBOX": "", "GEMINI_SANDBOX": ""}, True),
    ],
)
def test_dotenv_file_leaves_open_whether_a_sandbox_is_asked_for(
    place: Place, path: str, text: str, env: dict[str, str], *, is_known: bool
) -> None:
    place.write(path, text)
    assert (sandbox_of(place.read("gemini", env=env))[1] != "") is is_known
    assert sandbox_of(place.read("gemini", "-s", env=env))[0] == "workspace"


def test_newer_settings_are_those_of_now(place: Place) -> None:
    place.write(".gemini/settings.json", {"tools": {"sandbox": True}})
    assert place.read("gemini").read_at is None
    os.utime(place.root / "home/dev/.gemini/settings.json", (STARTED + 20, STARTED + 20))
    assert place.read("gemini").read_at == STARTED + 50


def test_approval_modes(place: Place) -> None:
    modes = [place.read("gemini", *args).policy.approval for args in ((), ("-y",), ("--approval-mode=plan",))]
    assert modes == [None, "yolo", "plan"]


def test_opencode_asks_for_no_sandbox(place: Place) -> None:
    found = place.read("opencode", "--auto")
    assert (found.policy.filesystem, found.policy.network) == (Filesystem.UNRESTRICTED, Network.ON)
    assert (found.policy.approval, place.read("opencode").policy.approval) == ("--auto", None)


def test_comments_become_blanks_and_texts_stay() -> None:
    text = '{"a": "// no /* c */", /* x\ny */ "b": [1, 2, // z\n ], }'
    plain = without_comments(text)
    assert json.loads(plain) == {"a": "// no /* c */", "b": [1, 2]}
    assert (len(plain), plain.count("\n")) == (len(text), text.count("\n"))
