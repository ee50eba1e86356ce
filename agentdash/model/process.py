"""A process: its identity, its arguments and environment, and the facts that the kernel has of it."""

from __future__ import annotations

from typing import Final, Literal, get_args

import msgspec

from agentdash.model.policy import Policy

Namespace = Literal["user", "pid", "mnt", "net"]
NAMESPACES: Final[tuple[Namespace, ...]] = get_args(Namespace)


THREAD_VARIABLES: Final = {"codex": "CODEX_THREAD_ID", "claude": "CLAUDE_CODE_SESSION_ID"}
"""The variable by which each worker CLI names the thread in the environment of its commands (Codex 0.98+,
Claude Code 2.1.197+)."""
THREAD_AGENTS: Final = frozenset(THREAD_VARIABLES)
"""Worker CLIs whose session logs are read as threads: their processes run a thread's turns."""
AGENT_NAMES: Final = {
    "codex": "Codex",
    "claude": "Claude Code",
    "gemini": "Gemini CLI",
    "qwen": "Qwen Code",
    "opencode": "OpenCode",
}
"""Names of worker CLIs, in words."""
COMMAND_MARKS: Final = {"gemini": "GEMINI_CLI", "qwen": "QWEN_CODE"}
"""The variable that each of these CLIs sets for its shell commands, and for no other of its children (Gemini
CLI 0.61.0, Qwen Code 0.15.10)."""


AwaitedInput = Literal["pipe", "socket", "terminal"]


class ProcessKey(msgspec.Struct, frozen=True, order=True):
    """The identity of a process: pids are reused, start times are not."""

    pid: int
    started: float
    """Unix seconds."""

    def __str__(self) -> str:
        return str(self.pid)


class Kernel(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts that the kernel has of a process; None: not known. Linux: `/proc/PID/status` and
    `/proc/PID/ns/*`. macOS: `sandboxed` alone."""

    seccomp: int | None = None
    """0 none, 1 strict, 2 filter."""
    no_new_privs: bool | None = None
    net: int | None = None
    """Inode of the network namespace; mnt, pid and user likewise."""
    mnt: int | None = None
    pid: int | None = None
    user: int | None = None
    ns_pids: tuple[int, ...] = ()
    """`NSpid`: the process's number in each nested pid namespace, outermost first."""

    sandboxed: bool | None = None
    """macOS: whether it is in a sandbox at all. Linux has no such fact, and derives it from the others."""

    def apart_from(self, other: Kernel) -> tuple[Namespace, ...]:
        """Return the namespaces that it is known not to share with another process (agentdash, a tmux
        server)."""
        return tuple(
            kind
            for kind in NAMESPACES
            if None not in (a := getattr(self, kind), b := getattr(other, kind)) and a != b
        )


class Launcher(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sandbox launcher: a process that builds a sandbox and runs a command in it."""

    name: str
    """`codex-linux-sandbox`, `bwrap`, `sandbox-exec`."""
    policy: Policy | None = None
    """The policy in its arguments, or None if it cannot be read."""


class Process(msgspec.Struct, frozen=True, omit_defaults=True):
    """One process. Only a short allow-list of its environment is ever kept."""

    key: ProcessKey
    ppid: int
    name: str
    """`comm`."""
    argv: tuple[str, ...] = ()
    """Cleaned and capped; empty where it cannot be read."""
    cwd: str | None = None
    env: dict[str, str] | None = None
    """The kept part of the environment at exec time, or None if it cannot be read (other users, macOS)."""
    kernel: Kernel | None = None
    agent: str | None = None
    """The worker CLI this process is the main process of: `codex`, `opencode`, `claude` ... (rules:
    `agents/*.toml`)."""
    once: bool = False
    """Whether that worker has one task, with which it ends (`opencode run`, `claude -p`)."""
    launcher: Launcher | None = None
    """Set where this process is a sandbox launcher of a worker CLI."""
    rollouts: tuple[str, ...] = ()
    """Rollout files that it holds open (agents only): it writes these threads, in every version. Linux and
    macOS, own processes."""
    awaited_input: AwaitedInput | None = None
    """What its standard input is, where a worker with one task waits for its end, and has no session before.
    Linux, own processes."""
    zombie: bool = False
    exit_code: int | None = None
    """Exit code of a zombie that ended by itself: tmux 3.3 does not collect some programs of panes, and does
    not know how they ended."""
    cpu: float = 0.0
    """CPU seconds used so far; refreshed with the process's other facts, so compare over time only."""
    io: int = 0
    """Bytes read and written so far (`/proc/PID/io`, `rchar` and `wchar`: sockets and pipes count too); 0
    where not known."""

    @property
    def pid(self) -> int:
        """Return the pid, as the host counts."""
        return self.key.pid

    @property
    def is_remote(self) -> bool:
        """Return whether this Codex was told of a server that runs its thread (`--remote`), by the settings
        and in the directory of that server (0.171)."""
        return any(arg.partition("=")[0] == "--remote" for arg in self.argv)

    @property
    def inner_pid(self) -> int:
        """Return the pid in the process's own namespace, which differs where it has a pid namespace of its
        own; tmux reports this one."""
        return self.kernel.ns_pids[-1] if self.kernel and self.kernel.ns_pids else self.pid
