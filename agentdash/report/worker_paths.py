"""`agentdash check --worker NAME`: which of a worker CLI's state paths a policy would deny, before the worker is started."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentdash.agents.codex.home import CodexHome, thread_id
from agentdash.agents.codex.policy_formats import from_sandbox_policy
from agentdash.engine.judge.findings.remedies import network, writable_root
from agentdash.engine.judge.findings.state_paths import paths_under_policy
from agentdash.model.policy import Network, Policy
from agentdash.model.state_paths import DEFAULTS, PathAccess, StatePath, place
from agentdash.report.check import read_rollout
from agentdash.report.status import ConfiguredReport, configured_report

MODES: Final = ("read-only", "workspace-write", "danger-full-access")
"""Codex's names of policies (`--sandbox`)."""
_KEPT: Final = ("HOME", "PWD", *DEFAULTS)


class PathReport(msgspec.Struct):
    """One place where the worker keeps something."""

    path: str
    what: str
    allowed: bool | None
    """None: the policy does not say."""
    needed: bool
    """Whether the worker fails or stalls without it, as things are on this disk."""
    remedy: str | None


class WorkerPathsReport(msgspec.Struct):
    """The document of `agentdash check --worker NAME --json`."""

    schema: Literal["agentdash.check-worker/1"]
    worker: str
    cwd: str
    policy: ConfiguredReport
    policy_of: str
    """Where the policy is from: a mode's name, or `thread ID`."""
    network: bool | None
    """Whether it would have the network, which it needs for its model; None: the policy does not say."""
    network_remedy: str | None
    paths: list[PathReport]

    @property
    def exit_code(self) -> int:
        """0: nothing that it needs is denied. 1: something is."""
        return int(self.network is False or any(p.needed and p.allowed is False for p in self.paths))


def policy_of_mode(mode: str, cwd: Path) -> Policy:
    """The policy that `codex --sandbox MODE` starts with, in a directory."""
    return from_sandbox_policy({"type": mode}, str(cwd))


def policy_of_thread(home: CodexHome, target: str | None) -> tuple[str, Policy]:
    """The policy in force of a thread (an id, its beginning, or a file), or of the newest one that states any.

    Raises:
        LookupError: there is none; says so.
    """
    paths = [Path(target)] if target and Path(target).is_file() else home.rollouts()
    for path in paths:
        ident = thread_id(path) or path.stem
        if target and path != Path(target) and not ident.startswith(target):
            continue
        try:
            threads = read_rollout(path).threads.values()
        except OSError:
            continue
        for thread in threads:
            if not thread.helper and (policy := thread.policy) is not None:
                return f"thread {ident}", policy
    raise LookupError(
        f"no thread{f' {target!r}' if target else ''} here states a policy: give --policy {', '.join(MODES)}"
    )


def worker_paths_report(
    worker: str, rows: Sequence[StatePath], policy: Policy, origin: str, cwd: Path
) -> WorkerPathsReport:
    """What a policy would deny a worker that is started in `cwd` with this environment."""
    env = {name: value for name in _KEPT if (value := os.environ.get(name))}
    placed = [path for row in rows if (path := place(row.path, env, str(cwd)))]
    missing = [path for path in placed if not os.path.lexists(path)]
    reached = {Network.OFF: False, Network.ON: True}.get(policy.network)
    return WorkerPathsReport(
        schema="agentdash.check-worker/1",
        worker=worker,
        cwd=str(cwd),
        policy=configured_report(policy),
        policy_of=origin,
        network=reached,
        network_remedy=network(policy, "") if reached is False else None,
        paths=[_path(access, policy) for access in paths_under_policy(policy, rows, env, str(cwd), missing)],
    )


def print_worker_paths(report: WorkerPathsReport, console: Console) -> None:
    """The same for people."""
    policy = report.policy
    console.print(
        Text(
            f"{report.worker} in {report.cwd}, under {report.policy_of}: files {policy.filesystem}, network {policy.network}"
        )
    )
    table = Table(box=None, pad_edge=False, show_header=False)
    for path in report.paths:
        verdict = (
            "not stated"
            if path.allowed is None
            else "may write"
            if path.allowed
            else "DENIED"
            if path.needed
            else "denied"
        )
        table.add_row(
            Text(verdict),
            Text(path.path),
            Text(path.what + (", needed" if path.needed else "")),
            Text(path.remedy or ""),
        )
    reached = "not stated" if report.network is None else "has" if report.network else "DENIED"
    table.add_row(
        Text(reached), Text("network"), Text("its model, needed"), Text(report.network_remedy or "")
    )
    console.print(table)


def _path(access: PathAccess, policy: Policy) -> PathReport:
    allowed = {"allowed": True, "policy": False}.get(access.access.verdict)
    remedy = (
        writable_root(access.path, policy, "mkdir") if allowed is False else None
    )  # these are directories
    return PathReport(access.path, access.what, allowed, access.needed, remedy)
