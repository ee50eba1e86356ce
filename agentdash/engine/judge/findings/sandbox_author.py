"""Name what built the sandbox around a process: by the launchers and programs above it, or else by marks that
a sandbox leaves in the environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from agentdash.model.fleet import FleetView
from agentdash.model.observation import INHERITED, NETWORK_FLAG, RUNTIME_FLAG, SANDBOX_FLAG
from agentdash.model.policy import Policy
from agentdash.model.process import AGENT_NAMES, Process

_CODEX_LAUNCHERS: Final = ("codex-linux-sandbox", "codex-execve-wrapper")
_CODEX_MARKS: Final = (NETWORK_FLAG, SANDBOX_FLAG, "CODEX_THREAD_ID")
_RUNTIME: Final = "sandbox-runtime"
_RUNTIME_NAMES: Final = ("srt", "@anthropic-ai/sandbox-runtime")
"""The program and the npm package of Anthropic's sandbox runtime."""
_CLAUDE_MARK: Final = "CLAUDE_CODE_SESSION_ID"
_PROGRAMS: Final = frozenset(
    (
        "bwrap",
        "firejail",
        "nsjail",
        "unshare",
        "systemd-run",
        "systemd-nspawn",
        "flatpak",
        "sandbox-exec",
        "chroot",
    )
)
"""Programs that put what they start into namespaces, a filter or a profile."""


class SandboxAuthor(msgspec.Struct, frozen=True):
    """What built a sandbox."""

    name: str
    """`Codex`, `sandbox runtime (srt)`, `Gemini CLI`, `bwrap`."""
    launcher: str
    """The program that applied it: `bwrap`; empty where it is known by a mark alone."""
    evidence: str
    policy: Policy | None = None
    """The policy in the launcher's arguments."""

    def __str__(self) -> str:
        """Return it in words, with the policy."""
        by = f" by {self.launcher}" if self.launcher and self.launcher != self.name else ""
        policy = f": {self.policy.brief()}" if self.policy else ""
        return f"{self.name}{by}{policy}"


def processes_above(fleet: FleetView, process: Process) -> Iterator[Process]:
    """Yield the ancestors of a process, nearest first. Linear in the number of processes."""
    by_pid = {each.pid: each for each in fleet.processes.values()}
    visited = {process.pid}
    while (parent := by_pid.get(process.ppid)) is not None and parent.pid not in visited:
        yield parent
        visited.add(parent.pid)
        process = parent


def sandbox_author(process: Process, above: Iterable[Process]) -> SandboxAuthor | None:
    """Return what built the sandbox around a process; None where nothing shows it.

    Args:
        process: in a sandbox, as the kernel shows.
        above: its ancestors, nearest first.
    """
    ancestors = list(above)
    for number, ancestor in enumerate(ancestors):
        launcher = _launcher(ancestor)
        if launcher is None:
            continue
        policies = (each.launcher.policy for each in ancestors[number:] if each.launcher is not None)
        return SandboxAuthor(
            name=_name(launcher, process, ancestors[number:]),
            launcher=launcher,
            evidence=f"pid {ancestor.pid} above it: {' '.join(ancestor.argv[:4])}",
            policy=next((policy for policy in policies if policy is not None), None),
        )
    return _by_marks(process)


def _launcher(process: Process) -> str | None:
    """Return the program by which a process built a sandbox; None where it built none."""
    if process.launcher is not None and process.launcher.name != _RUNTIME:
        return process.launcher.name
    names = {word.rpartition("/")[2] for word in process.argv[:2]}
    if not names.isdisjoint(_RUNTIME_NAMES) or _RUNTIME_NAMES[1] in " ".join(process.argv[:2]):
        return "srt"
    return next(
        iter(_PROGRAMS & {process.name, *(word.rpartition("/")[2] for word in process.argv[:1])}), None
    )


def _name(launcher: str, process: Process, above: list[Process]) -> str:
    """Return what a launcher was started by."""
    if launcher in _CODEX_LAUNCHERS:
        return "Codex"
    if (marked := _by_marks(process, is_proven=False)) is not None and marked.name != "Codex":
        return marked.name
    for ancestor in above:
        if _launcher(ancestor) in _CODEX_LAUNCHERS:
            return "Codex"
        if ancestor.agent is not None:
            return AGENT_NAMES.get(ancestor.agent, ancestor.agent)
    return launcher


def _by_marks(process: Process, *, is_proven: bool = True) -> SandboxAuthor | None:
    """Return what the environment names. A mark alone is no evidence of a sandbox: it may be inherited.

    Args:
        process: in a sandbox.
        is_proven: whether marks count that sandboxes of another CLI leave in everything they start.
    """
    env = process.env or {}
    if env.get(RUNTIME_FLAG):
        name = AGENT_NAMES["claude"] if _CLAUDE_MARK in env else "sandbox runtime (srt)"
        return SandboxAuthor(name=name, launcher="", evidence=f"{RUNTIME_FLAG}={env[RUNTIME_FLAG]}")
    if not is_proven:
        return None
    mark = next((name for name in _CODEX_MARKS if name in env), None)
    if mark is not None:
        return SandboxAuthor(name="Codex", launcher="", evidence=f"{mark}={env[mark]}")
    if process.agent in ("gemini", "qwen") and env.get(INHERITED):
        return SandboxAuthor(
            name=AGENT_NAMES[process.agent], launcher="", evidence=f"{INHERITED}={env[INHERITED]}"
        )
    return None
