"""The adapter of one worker CLI: what its TOML file declares, and what a subclass reads beyond that.

`agents/NAME.toml` is enough for a CLI that is known by its processes and its screen. A CLI that also keeps
session files has a module `agents/NAME.py` (or `agents/NAME/adapter.py`), whose `ADAPTER` makes an `Adapter`
with its readers; `registry.adapters` finds it by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from agentdash.model.events import SessionSeen
from agentdash.model.process import Process
from agentdash.model.requested import Requested
from agentdash.model.state_paths import StatePath
from agentdash.model.thread import Thread

Role = Literal["worker", "server", "aside"]
"""`worker`: works on a task, or waits for one. `server`: does so for clients, in the background (Codex's
app-server). `aside`: a subcommand of the same program that is no agent (`codex sandbox`, `claude mcp`)."""


class IdentifyTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `[identify]` table: how processes of one worker CLI are recognized."""

    programs: frozenset[str]
    """Names of its program, without directory and extension."""
    packages: frozenset[str] = frozenset()
    """npm packages whose scripts are this program, whatever the script's name."""
    places: tuple[str, ...] = ()
    """Substrings of the path of its program or script, for installations where the file's own name is a
    version or `index.js`."""
    working: frozenset[str] = frozenset()
    """Subcommands that make it a worker. Listed only to keep their arguments from being taken for one of the
    following."""
    serving: frozenset[str] = frozenset()
    """Subcommands that make it a server."""
    aside: frozenset[str] = frozenset()
    """Subcommands that make it neither."""
    once: frozenset[str] = frozenset()
    """Arguments that give it one task, with which it ends."""
    tools: frozenset[str] = frozenset()
    """The names under which its program is another one. Where they are known, it is recognized under any
    other name (a symbolic link)."""

    def role(self, args: Sequence[str]) -> Role:
        """Return the role that the first known subcommand among the arguments sets; without any it is a
        worker."""
        for arg in args:
            if arg == "--" or arg in self.working:
                break
            if arg in self.serving:
                return "server"
            if arg in self.aside:
                return "aside"
        return "worker"


class UnreadableSessionError(Exception):
    """A session file that is there cannot be read; the message is which one, and why."""


class SessionFiles(Protocol):
    """The session files of one worker CLI: one per process, in which it records its own status, or the logs
    of its sessions."""

    def read(self, process: Process, at: float, *, is_alone: bool = True) -> SessionSeen | None:
        """Return what a worker's session file contains; None where none is certainly its own.

        Args:
            process: a running worker of this CLI.
            at: now, unix seconds; the time of the event, and of the status where the file has none.
            is_alone: whether no other worker of the CLI runs in its directory: there a session that nothing
                else ties to a process may be the other's.

        Raises:
            UnreadableSessionError: it is there, and cannot be read.
        """
        ...


class RequestReader(Protocol):
    """What one worker CLI was asked for: its arguments, environment and configuration files."""

    def read(self, process: Process, thread: Thread | None, root: Path, at: float) -> Requested | None:
        """Return what a process was asked for, or None if unknown. Never raises.

        Args:
            process: the worker, as it is now.
            thread: the thread that it runs; None for a CLI without threads.
            root: where its file system is mounted: `/`, or `/proc/PID/root` in another mount namespace.
            at: now, unix seconds.
        """
        ...

    def read_role(self, process: Process, thread: Thread, root: Path, at: float) -> Requested | None:
        """Return what the role of a sub-agent asks for, or None. Never raises.

        Args:
            process: the worker that runs the sub-agent.
            thread: the sub-agent's thread.
            root: as above.
            at: now, unix seconds.
        """
        del process, thread, root, at
        return None

    def read_past(self, thread: Thread, at: float) -> Requested | None:
        """Return what the configuration files asked for, of a thread whose process is not known any more;
        None where that is not known, as here. Never raises.

        Args:
            thread: with its file.
            at: now, unix seconds.
        """
        del thread, at
        return None


class Adapter:
    """One worker CLI, by its TOML tables, and what has to be read by code.

    Args:
        name: `codex`, `opencode` ...: the name of the TOML file.
        tables: of that file.
        session_files: reads its session files; None: it keeps none that are known.
        request_reader: reads its configuration; None: it is not known.
        session_log_name: the names of its session logs, if its processes hold these open, so that open files
            show which sessions they run.
    """

    def __init__(
        self,
        name: str,
        tables: Mapping[str, Any],
        *,
        session_files: SessionFiles | None = None,
        request_reader: RequestReader | None = None,
        session_log_name: re.Pattern[str] | None = None,
    ) -> None:
        self.name = name
        self.tables = tables
        self.session_files = session_files
        self.request_reader = request_reader
        self.session_log_name = session_log_name

    @cached_property
    def state_paths(self) -> tuple[StatePath, ...]:
        """The rows of the `[state]` table; empty without one."""
        return msgspec.convert(self.tables.get("state", {}).get("paths", ()), tuple[StatePath, ...])
