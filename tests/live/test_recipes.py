"""Every command of README and the documentation is run: here, or by the test that is named; and completion in
bash, zsh and fish, as the documentation sets it up, by tab in a terminal."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.live.claude import install as install_claude
from tests.live.codex import install as install_codex
from tests.live.patience import wait_until
from tests.live.programs import run, write_program
from tests.live.tmux import ROOT, TmuxServer

TRANSCRIPT: Final = next((ROOT / "tests/data/claude/2.1.197/off/projects").glob("*/*.jsonl"))
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs" / "pages").glob("*.md"))]
ELSEWHERE: Final = {
    (
        "python3 -m venv .venv && .venv/bin/pip install --quiet --editable . && .venv/bin/agentdash demo"
    ): "test_package",
    "python3 -m venv .venv": "test_package",
    ".venv/bin/pip install --quiet --editable .": "test_package",
    ".venv/bin/agentdash demo": "test_package",
    "tests/run": "CI",
    "pipx install .": "test_package: pip, with the same build",
    "uvx --from . agentdash demo": "test_package: pip, with the same build",
    "uvx shiv --console-script agentdash --output-file agentdash.pyz .": "test_package: shiv from pip",
    'eval "$(agentdash completion bash)"': "test_tab",
    'eval "$(agentdash completion zsh)"': "test_tab",
    "agentdash --host build1 --host me@gpu2:2222": "test_hosts",
    "agentdash status --container devbox --json": "test_hosts",
    "agentdash --carrier 'pod=kubectl exec -i pod -- sh -c {}'": "test_hosts",
    "agentdash doctor --host build1": "test_hosts",
}
SCREENS: Final = {
    "agentdash": "? help",
    "agentdash split --size 45": "? help",
    "agentdash replay": "sessions",
    "agentdash replay 01a1fa8b-4086 --at 20:14": "? help",
    'agentdash replay "session (1).jsonl"': "? help",
    "cat session.jsonl | agentdash replay -": "? help",
}
"""Screens, and a text of each."""
ENDLESS: Final = {
    r"""agentdash status --watch | jq -r '"\(.change) \(.worker.name) \(.worker.state)"'""": "added "
}
"""Commands that run until they are ended, and a text that they print at first."""
CODES: Final = {
    "agentdash doctor": {0, 1},  # as the machine is
    "agentdash wait %4 --until completed,blocked-sandbox --timeout 10m": {1},  # with a shorter timeout
    "agentdash check": {1},  # the recordings have findings
    "agentdash preflight --worker claude --policy workspace-write": {1},
    "agentdash preflight -s workspace-write": {0, 1},
}
"""Exit codes that are not 0."""


def recipes() -> list[str]:
    """Return the commands of all shell blocks, without comments, each once, in the order of the pages."""
    lines: dict[str, None] = {}
    for page in PAGES:
        for block in re.findall(r"(?ms)^ *```sh\n(.*?)^ *```", page.read_text("utf-8")):
            for line in block.splitlines():
                if command := re.sub(r"\s+# .*", "", line).strip():
                    lines[command] = None
    return list(lines)


HEADLESS: Final = [line for line in recipes() if line not in {*ELSEWHERE, *SCREENS, *ENDLESS}]


class Machine(TmuxServer):
    """A home with recorded sessions, a tmux server whose pane %4 has a worker, and the programs on PATH."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.home = folder / "home"
        programs = folder / "bin"
        (self.home / ".config" / "fish" / "completions").mkdir(parents=True)
        day = self.home / ".codex" / "sessions" / "2026" / "11" / "20"
        day.mkdir(parents=True)
        for path in sorted((ROOT / "tests" / "data" / "recordings" / "0.169.0").glob("*/*.jsonl")):
            shutil.copy(path, day)
        project = self.home / ".claude" / "projects" / "-home-dev"
        project.mkdir(parents=True)
        shutil.copy(TRANSCRIPT, project / f"{TRANSCRIPT.stem}.jsonl")
        for name in ("session.jsonl", "session (1).jsonl"):
            shutil.copy(path, self.home / name)
        for name, text in (
            ("agentdash", f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m agentdash "$@"'),
            ("codex", f'exec "{install_codex()}" "$@"'),
            ("claude", f'exec "{install_claude()}" "$@"'),
            ("aider", "sleep 1000"),
        ):
            write_program(programs / name, text)
        kept = {name: os.environ[name] for name in ("LANG", "TZ") if name in os.environ}
        self.tmux_env = {
            **kept,
            "HOME": str(self.home),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "TMUX": f"{self.tmux},1,0",
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
        }
        self.run_tmux("new-session", "-d", "-s", "a", "-x", "120", "-y", "36", "sleep 1000")
        for _ in range(3):
            self.run_tmux("new-window", "-d", "sleep 1000")
        self.run_tmux("new-window", "-d", "aider")

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        return run(["bash", "-c", f"set -o pipefail; {line}"], env=self.tmux_env, cwd=self.home)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with Machine(tmp_path_factory.mktemp("machine")) as opened:
        yield opened


def test_every_command_is_run() -> None:
    """A command that is new in the documentation is run headless, unless it is listed above."""
    assert {*ELSEWHERE, *SCREENS, *ENDLESS, *CODES} - set(recipes()) == set()


@pytest.mark.parametrize("line", HEADLESS)
def test_headless(machine: Machine, line: str) -> None:
    done = machine.run(line.replace("--timeout 10m", "--timeout 1"))
    assert done.returncode in CODES.get(line, {0}), (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr


def test_own_tmux_server_is_enough(machine: Machine) -> None:
    """The default server, which does not run, is not missed: agentdash runs in another one."""
    for line in ("agentdash status", "agentdash doctor"):
        done = machine.run(f"env TMUX_TMPDIR={machine.home} {line}")
        assert "no server running" not in done.stdout + done.stderr


@pytest.mark.parametrize("line", SCREENS)
def test_screens(machine: Machine, line: str) -> None:
    where = ["-c", str(machine.home), "-P", "-F", "#{pane_id}"]
    pane = machine.run_tmux("new-window", "-d", *where, line).strip()
    window = machine.run_tmux("display-message", "-p", "-t", pane, "#{window_id}").strip()

    def screens() -> str:
        with suppress(subprocess.CalledProcessError):
            panes = machine.run_tmux("list-panes", "-t", window, "-F", "#{pane_id}").split()
            return "\n".join(machine.run_tmux("capture-pane", "-p", "-t", each) for each in panes)
        return ""

    wait_until(lambda: SCREENS[line] in screens(), f"the screen of {line!r}")
    for each in machine.run_tmux("list-panes", "-t", window, "-F", "#{pane_id}").split():
        machine.run_tmux("send-keys", "-t", each, "C-q")
    wait_until(lambda: SCREENS[line] not in screens(), f"the end of {line!r}")


@pytest.mark.parametrize("line", ENDLESS)
def test_endless(machine: Machine, line: str) -> None:
    command = ["bash", "-c", line.replace("jq -r", "jq --unbuffered -r")]
    with subprocess.Popen(
        command,
        env=machine.tmux_env,
        cwd=machine.home,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        try:
            assert running.stdout.readline().startswith(ENDLESS[line])
        finally:  # a reader that goes would only be noticed by the next change
            os.killpg(running.pid, signal.SIGTERM)


# ---------------------------------------------------------------- completion

COMPLETED: Final = [
    ("agentdash stat", "agentdash status"),
    ("agentdash status --watc", "agentdash status --watch"),
    ("agentdash wait %1 --until blo", "agentdash wait %1 --until blocked-sandbox"),
    ("agentdash check --fail-on tmux-e", "agentdash check --fail-on tmux-escape"),
    ("agentdash status --host buil", "agentdash status --host build1"),
]

LIST: Final = ("agentdash wait %1 --until exited,blo", "agentdash wait %1 --until exited,blocked-sandbox")
"""Not in fish: click's script for it separates what it offers from its description by a comma."""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tab(machine: Machine, shell: str) -> None:
    config = machine.home / "hosts.toml"
    config.write_text("[hosts.build1]\n")
    if shell == "fish":
        script = machine.run("agentdash completion fish").stdout
        (machine.home / ".config/fish/completions/agentdash.fish").write_text(script)
    else:
        (machine.home / f".{shell}rc").write_text(f'eval "$(agentdash completion {shell})"\n')
    variables = ["-e", f"AGENTDASH_CONFIG={config}", "-e", "PS1=$ "]
    start = ["new-window", "-d", "-P", "-F", "#{pane_id}", *variables, shell, "-i"]
    pane = machine.run_tmux(*start).strip()

    def screen() -> str:
        return machine.run_tmux("capture-pane", "-p", "-t", pane)

    machine.run_tmux("send-keys", "-t", pane, "echo rea''dy", "Enter")
    wait_until(lambda: "\nready" in screen(), "the shell")
    assert "command not found" not in screen()
    for typed, completed in COMPLETED if shell == "fish" else (*COMPLETED, LIST):
        machine.run_tmux("send-keys", "-t", pane, "-l", typed)
        wait_until(lambda typed=typed: typed in screen(), f"{typed!r}")
        machine.run_tmux("send-keys", "-t", pane, "Tab")
        wait_until(lambda completed=completed: completed in screen(), f"{completed!r}")
        machine.run_tmux("send-keys", "-t", pane, "C-u")
        wait_until(lambda completed=completed: completed not in screen(), "an empty line")
    machine.run_tmux("kill-pane", "-t", pane)
