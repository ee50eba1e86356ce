"""A process: who it is, what it was given, and what the kernel says of it."""

from __future__ import annotations

from typing import Final, Literal, get_args

import msgspec

from agentdash.model.policy import Policy

Namespace = Literal["user", "pid", "mnt", "net"]
NAMESPACES: Final[tuple[Namespace, ...]] = get_args(Namespace)


class ProcessKey(msgspec.Struct, frozen=True, order=True):
    """A process's identity: pids are used again, start times are not."""

    pid: int
    started: float
    """Unix seconds."""

    def __str__(self) -> str:
        return str(self.pid)


class Kernel(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the kernel says of a process. Linux: `/proc/PID/status` and `/proc/PID/ns/*`. macOS: `sandboxed`
    alone. None: not known."""

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
    """Of macOS: whether it is in a sandbox at all. Linux has no such fact: there it is what the others come
    to."""

    def apart_from(self, other: Kernel) -> tuple[Namespace, ...]:
        """The namespaces that it is known not to share with another process (agentdash, a tmux server)."""
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
    """The policy in its arguments; None where there is none, or it cannot be read."""


class Process(msgspec.Struct, frozen=True, omit_defaults=True):
    """One process. Only `CODEX_*`, `TMUX*` and a short allow-list of its environment is ever kept."""

    key: ProcessKey
    ppid: int
    name: str
    """`comm`."""
    argv: tuple[str, ...] = ()
    """Cleaned and capped; empty where it cannot be read."""
    exe: str | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    """The kept part of the environment at exec time; None where it cannot be read (other users, macOS)."""
    kernel: Kernel | None = None
    agent: str | None = None
    """The worker CLI this process is the main process of: `codex`, `opencode`, `claude` ... (rules:
    `agents/*.toml`)."""
    once: bool = False
    """Whether that worker was given one task, with which it ends (`opencode run`, `claude -p`)."""
    launcher: Launcher | None = None
    """Set where this process is a sandbox launcher of a worker CLI."""
    rollouts: tuple[str, ...] = ()
    """Rollout files that it holds open (agents only): it writes these threads, in every version. Linux and
    macOS, own processes."""
    zombie: bool = False
    exit_code: int | None = None
    """Of a zombie that ended by itself: tmux 3.3 leaves some of a pane's programs so, and knows nothing of
    how they ended."""
    cpu: float = 0.0
    """CPU seconds used so far; refreshed with the process's other facts, so compare over time only."""
    io: int = 0
    """Bytes that it has read and written so far (`/proc/PID/io`, `rchar` and `wchar`: sockets and pipes count
    too); 0 where not told."""

    @property
    def pid(self) -> int:
        """The process's number, as the host counts."""
        return self.key.pid

    @property
    def inner_pid(self) -> int:
        """Its number as it knows it itself, and as its tmux server tells it: another one where it lives in a
        pid namespace of its own."""
        return self.kernel.ns_pids[-1] if self.kernel and self.kernel.ns_pids else self.pid
