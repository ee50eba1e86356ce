"""`agentdash check --worker NAME`: which state paths of a worker CLI a policy would deny, before the worker
is started.

As the document `agentdash.check-worker/1` and as a table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from agentdash.agents.codex.home import CodexHome, thread_id
from agentdash.agents.codex.policy_formats import from_sandbox_policy
from agentdash.collect.sources.denied_paths import path_kinds
from agentdash.engine.judge.findings.remedies import filesystem_remedy, network_access_remedy
from agentdash.engine.judge.findings.state_paths import paths_under_policy
from agentdash.model.denials import PathFacts, PathKind
from agentdash.model.policy import SANDBOX_MODES, Network, Policy
from agentdash.model.state_paths import DEFAULTS, PathAccess, StatePath, resolve_path
from agentdash.report.elements import ConfiguredReport, configured_report, remedy_fields

if TYPE_CHECKING:
    from rich.console import Console

_PATH_VARIABLES: Final = ("HOME", "PWD", *DEFAULTS)
"""Environment variables that state paths depend on."""


class PathReport(msgspec.Struct):
    """A state path of the worker."""

    path: str
    what: str
    """What the worker keeps there."""
    allowed: bool | None
    """Null: the policy does not state it."""
    needed: bool
    """Whether the worker fails or stalls without it, given the files that exist."""
    remedy: str | None
    remedy_where: str | None = None
    remedy_once: str | None = None


class WorkerPathsReport(msgspec.Struct):
    """The document of `agentdash check --worker NAME --json`."""

    schema: Literal["agentdash.check-worker/1"]
    worker: str
    """The worker CLI."""
    cwd: str
    policy: ConfiguredReport
    """The policy that it would run under."""
    policy_of: str
    """Origin of the policy: the name of a mode, or `thread ID`."""
    network: bool | None
    """Whether the network is allowed, which the worker needs for its model. Null: the policy does not state
    it."""
    network_remedy: str | None
    """What opens the network; null where it is open."""
    paths: list[PathReport]
    """Where the worker CLI keeps its state."""
    network_remedy_where: str | None = None
    """File and place for its lines."""
    network_remedy_once: str | None = None
    """Shell command that starts Codex with it for one run."""

    @property
    def exit_code(self) -> int:
        """0: nothing needed is denied. 1: something is."""
        return int(self.network is False or any(p.needed and p.allowed is False for p in self.paths))


def policy_of_mode(mode: str, cwd: Path) -> Policy:
    """Return the policy of `codex --sandbox MODE` in a directory."""
    return from_sandbox_policy({"type": mode}, str(cwd))


def policy_of_thread(
    home: CodexHome, target: str | None, on_error: Callable[[OSError], None] = lambda _: None
) -> tuple[str, Policy]:
    """Return the origin and the policy in force of a thread: an id, a prefix of one, or a file.

    Without a target: of the newest thread that states a policy.

    Args:
        home: searched for threads.
        target: the thread, or its file.
        on_error: called with the error of each directory and file before it that cannot be read.

    Raises:
        LookupError: no thread states a policy.
    """
    from agentdash.report.file_audit import read_rollout  # noqa: PLC0415 - the engine takes long to import

    paths = [Path(target)] if target and Path(target).is_file() else home.rollouts(on_error)
    for path in paths:
        ident = thread_id(path) or path.stem
        if target and path != Path(target) and not ident.startswith(target):
            continue
        try:
            threads = read_rollout(path).threads.values()
        except OSError as error:
            on_error(error)
            continue
        for thread in threads:
            if not thread.helper and (policy := thread.policy) is not None:
                return f"thread {ident}", policy
    which = f" {target!r}" if target else ""
    raise LookupError(f"no thread{which} here states a policy: give --policy {', '.join(SANDBOX_MODES)}")


def worker_paths_report(
    worker: str, rows: Sequence[StatePath], policy: Policy, origin: str, cwd: Path
) -> WorkerPathsReport:
    """Return the document for a worker started in `cwd` with the environment of this process."""
    env = {name: value for name in _PATH_VARIABLES if (value := os.environ.get(name))}
    placed = [path for row in rows if (path := resolve_path(row.path, env, str(cwd)))]
    missing = [path for path in placed if not os.path.lexists(path)]
    reached = {Network.OFF: False, Network.ON: True}.get(policy.network)
    home = env.get("HOME")
    places = PathFacts(
        kinds=path_kinds(placed),
        homes=(home,) if home else (),
        workspaces=(str(cwd),),
        codex_home=env.get("CODEX_HOME"),
    )
    online = network_access_remedy(policy, places)
    return WorkerPathsReport(
        schema="agentdash.check-worker/1",
        worker=worker,
        cwd=str(cwd),
        policy=configured_report(policy),
        policy_of=origin,
        network=reached,
        network_remedy=online.text if online else None,
        network_remedy_where=online.where if online else None,
        network_remedy_once=online.once if online else None,
        paths=[
            _path_report(access, policy, places)
            for access in paths_under_policy(policy, rows, env, str(cwd), missing)
        ],
    )


def print_worker_paths(report: WorkerPathsReport, console: Console) -> None:
    """Print the paths and the network as a table."""
    from rich.table import Table  # noqa: PLC0415 - documents need no tables
    from rich.text import Text  # noqa: PLC0415 - documents need no tables

    policy = report.policy
    permissions = f"files {policy.filesystem}, network {policy.network}"
    console.print(Text(f"{report.worker} in {report.cwd}, under {report.policy_of}: {permissions}"))
    table = Table(box=None, pad_edge=False, show_header=False)
    for path in report.paths:
        purpose = path.what + (", needed" if path.needed else "")
        table.add_row(Text(_permission(path)), Text(path.path), Text(purpose), Text(path.remedy or ""))
    network_allowed = {None: "not stated", True: "has", False: "DENIED"}[report.network]
    remedy = Text(report.network_remedy or "")
    table.add_row(Text(network_allowed), Text("network"), Text("its model, needed"), remedy)
    console.print(table)


def _permission(path: PathReport) -> str:
    if path.allowed is None:
        return "not stated"
    if path.allowed:
        return "may write"
    return "DENIED" if path.needed else "denied"


def _path_report(access: PathAccess, policy: Policy, places: PathFacts) -> PathReport:
    allowed = {"allowed": True, "policy": False}.get(access.access.verdict)
    missing = places.kinds.get(access.path) is PathKind.MISSING
    remedy = None
    if allowed is False:
        remedy = filesystem_remedy(access.path, "mkdir" if missing else "write", policy, places)
    return PathReport(
        path=access.path,
        what=access.what,
        allowed=allowed,
        needed=access.needed,
        **remedy_fields(remedy),
    )
