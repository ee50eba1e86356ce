"""A home, a workspace, and `codex sandbox` of a real Codex over them."""

from __future__ import annotations

import shutil
import subprocess

from tests.live.clis import new_root
from tests.live.codex import install
from tests.live.patience import scaled
from tests.live.tmux import kill_all, outer_environment

WORKSPACE_WRITE = ("-c", 'sandbox_mode="workspace-write"')


class Box:
    """Its directories are not in /tmp, which is writable in the sandbox."""

    def __init__(self) -> None:
        self.codex = install()
        self.root = new_root()
        self.home = self.root / "people" / "alice"
        self.codex_home = self.home / ".codex"
        self.workspace = self.root / "workspace"
        for directory in (self.codex_home, self.workspace):
            directory.mkdir(parents=True)

    def argv(self, *command: str, options: tuple[str, ...] = WORKSPACE_WRITE) -> list[str]:
        """Return the arguments that run a command in the sandbox."""
        return [str(self.codex), "sandbox", *options, "--", *command]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its commands."""
        kept = {name: value for name, value in outer_environment().items() if not name.startswith("XDG_")}
        return kept | {"HOME": str(self.home), "CODEX_HOME": str(self.codex_home)}

    def run(self, argv: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end in the workspace; its errors are among its output."""
        return subprocess.run(
            argv,
            cwd=self.workspace,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=scaled(60),
        )

    def close(self) -> None:
        # the arguments of the sandbox's own processes have the workspace; those inside end with them
        kill_all(lambda process: any(str(self.root) in argument for argument in process.cmdline()))
        shutil.rmtree(self.root)
