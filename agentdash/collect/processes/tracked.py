"""A process of this machine, as the sensor has read it last."""

from __future__ import annotations

from typing import Final

from agentdash.agents.identify import Identity, identify
from agentdash.collect.processes.linux import Stat
from agentdash.model.process import THREAD_VARIABLES, Process
from agentdash.model.state_paths import PathAccess

_COMMON_VARIABLES: Final = frozenset(("CODEX_HOME", "CODEX_SQLITE_HOME"))
"""Variables that users export in their profiles: no sign of Codex."""
_MARKS: Final = frozenset(THREAD_VARIABLES.values())


class TrackedProcess:
    """One process of this machine, whether followed or not."""

    __slots__ = ("agent", "argv", "deferred", "env", "exe", "followed", "process", "reread", "stat", "state")

    def __init__(self, stat: Stat) -> None:
        self.stat = stat
        self.argv: list[str] = []
        self.exe: str | None = None
        self.env: dict[str, str] | None = None
        self.agent: Identity | None = None
        self.process: Process | None = None
        """As emitted last."""
        self.followed = False
        """Whether it is reported."""
        self.deferred = False
        """Whether its next event waits for the next poll."""
        self.reread = False
        """Whether it has become another program since it was emitted."""
        self.state: tuple[PathAccess, ...] = ()
        """Its state paths as emitted last."""

    def become(self, argv: list[str], exe: str | None, env: dict[str, str] | None) -> None:
        """Take over what an exec changes."""
        self.argv = argv
        self.exe = exe
        self.env = env
        self.agent = identify(argv, exe)
        self.reread = True

    def runs(self, program: str) -> bool:
        """Return whether the first argument is a program of this name."""
        return bool(self.argv) and self.argv[0].rpartition("/")[2] == program

    @property
    def is_of_interest(self) -> bool:
        """Whether it is followed for its own sake: a known agent, or marked as a command of one."""
        names = self.env.keys() - _COMMON_VARIABLES if self.env else ()
        return self.agent is not None or any(name.startswith("CODEX_") or name in _MARKS for name in names)
