"""Completion in bash, zsh and fish, as the documentation sets it up, by tab in a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.live.patience import wait_until
from tests.live.programs import run, write_program
from tests.live.tmux import ROOT, TmuxServer

RC = {"bash": ".bashrc", "zsh": ".zshrc"}
CASES = [
    ("agentdash stat", "agentdash status"),
    ("agentdash status --watc", "agentdash status --watch"),
    ("agentdash wait %1 --until blo", "agentdash wait %1 --until blocked-sandbox"),
    ("agentdash check --fail-on tmux-e", "agentdash check --fail-on tmux-escape"),
    ("agentdash status --host buil", "agentdash status --host build1"),
]

LIST = ("agentdash wait %1 --until exited,blo", "agentdash wait %1 --until exited,blocked-sandbox")
"""Not in fish: click's script for it separates what it offers from its description by a comma."""


class Shell(TmuxServer):
    """An interactive shell in the one pane of a tmux server, with a home of its own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.home = self.folder / "home"
        programs = self.folder / "bin"
        (self.home / ".config" / "fish" / "completions").mkdir(parents=True)
        start = f'cd "{ROOT}" && exec "{sys.executable}" -m agentdash "$@"'
        program = write_program(programs / "agentdash", start)
        config = self.home / ".config" / "agentdash" / "config.toml"
        config.parent.mkdir()
        config.write_text("[hosts.build1]\n")
        self.tmux_env = {
            "HOME": str(self.home),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PS1": "$ ",
        }
        if name == "fish":
            script = run([program, "completion", "fish"], check=True, env=self.tmux_env).stdout
            (self.home / ".config/fish/completions/agentdash.fish").write_text(script)
        else:
            (self.home / RC[name]).write_text(f'eval "$(agentdash completion {name})"\n')
        self.run_tmux("new-session", "-d", "-s", "a", "-x", "120", "-y", "24", name, "-i")

    @property
    def screen(self) -> str:
        return self.run_tmux("capture-pane", "-p", "-t", "a")


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest) -> Iterator[Shell]:
    with Shell(request.param) as opened:
        yield opened


def test_tab(shell: Shell) -> None:
    shell.run_tmux("send-keys", "-t", "a", "echo rea''dy", "Enter")
    wait_until(lambda: "\nready" in shell.screen, "the shell")
    assert "command not found" not in shell.screen
    for typed, completed in CASES if shell.name == "fish" else (*CASES, LIST):
        shell.run_tmux("send-keys", "-t", "a", "-l", typed)
        wait_until(lambda typed=typed: typed in shell.screen, f"{typed!r}")
        shell.run_tmux("send-keys", "-t", "a", "Tab")
        wait_until(lambda completed=completed: completed in shell.screen, f"{completed!r}")
        shell.run_tmux("send-keys", "-t", "a", "C-u")
        wait_until(lambda completed=completed: completed not in shell.screen, "an empty line")
