"""Worker CLIs inside of a sandbox: whether the kernel shows one around the process, and what it denied.

The text of a denial alone proves nothing. Together with a kernel that shows a sandbox around the process, and
with an end or a standstill, it does.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.judge.states import facts
from agentdash.engine.judge.states.activity import pane_last_sign
from agentdash.model.denials import Denial
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fleet import FleetView, PaneOccupant
from agentdash.model.observation import NETWORK_FLAG
from agentdash.model.pane import Pane
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Kernel, Process
from agentdash.model.states import State
from agentdash.model.worker import Assessment
from agentdash.sandbox.denials import find_denials

_SCREEN_END_LINES: Final = 20
"""Non-empty lines at the bottom of a screen that count as its end: an error of several lines, and a prompt
below it."""
_UNEXPLAINED_FAILURE: Final = re.compile(r"\bFileSystem\.\w+ \((/[^)]+)\)")
"""OpenCode (1.18, by its runtime) prints the operation and the path that failed, without the reason."""
_CONNECTION_FAILURE: Final = re.compile(
    r"connect|network|resolve|fetch failed|socket|typo in the url|EAI_AGAIN|ENETUNREACH|timed? ?out",
    re.IGNORECASE,
)
STANDSTILL_S: Final = 15.0
"""Time without activity after which a worker that may not write a path it needs counts as blocked by that."""
_NAMESPACES: Final = {"mnt": "mount", "pid": "pid", "user": "user", "net": "network"}


class SandboxInfo(msgspec.Struct, frozen=True):
    """A sandbox around a process."""

    process: Process
    text: str
    """How the kernel shows it: `seccomp 2, own mount, pid namespaces`."""
    offline: bool
    """Whether it lacks the host's network: by the flag, or by a network namespace of its own."""


class SandboxDenial(msgspec.Struct, frozen=True):
    """A denial, and the sandbox that the kernel shows around the process."""

    sandbox: SandboxInfo
    denial: Denial


def enclosing_sandbox(process: Process | None, host: Kernel | None) -> SandboxInfo | None:
    """Return the sandbox around a process, or None if the kernel shows none, or its facts are unknown."""
    kernel = process.kernel if process else None
    if process is None or kernel is None:
        return None
    own = [_NAMESPACES[name] for name in kernel.apart_from(host)] if host else []
    # a container around both the process and agentdash filters both
    is_filtered = kernel.seccomp and (host is None or kernel.seccomp != host.seccomp)
    signs = [f"seccomp {kernel.seccomp}"] if is_filtered else []
    signs += [f"own {', '.join(own)} namespace{'s' * (len(own) > 1)}"] if own else []
    is_offline = "network" in own or (process.env or {}).get(NETWORK_FLAG) == "1"
    return SandboxInfo(process, ", ".join(signs), is_offline) if signs else None


# ---------------------------------------------------------------- what was denied


def screen_denial(fleet: FleetView, pane: Pane, occupant: PaneOccupant | None) -> SandboxDenial | None:
    """Return the denial at the end of a sandboxed worker's screen."""
    sandbox = enclosing_sandbox(occupant.process if occupant else None, fleet.kernel)
    if sandbox is None:
        return None
    # a line that fills the pane's width continues in the next one
    lines = [line for line in pane.screen if line.strip()][-_SCREEN_END_LINES:]
    output = "".join(line if len(line) >= pane.width else f"{line}\n" for line in lines)
    network, cwd = Network.OFF if sandbox.offline else Network.ON, sandbox.process.cwd
    policy = Policy(Filesystem.READ_ONLY, network, (PolicyRule("/", "read"),))
    found = find_denials("", output, exit_code=None, outcome="ended", policy=policy, cwd=cwd, tool="screen")
    best = next((each for each in reversed(found) if each.target), found[-1] if found else None)
    if (best is None or not best.is_certain) and (failure := _UNEXPLAINED_FAILURE.search(output)):
        best = Denial("filesystem", "write", "certain", failure[0], failure[1])
    return SandboxDenial(sandbox, best) if best else None


def state_path_denial(fleet: FleetView, occupant: PaneOccupant | None) -> SandboxDenial | None:
    """Return the state path that a sandboxed worker needs and may not write, printed or not."""
    sandbox = enclosing_sandbox(occupant.process if occupant else None, fleet.kernel)
    path = next((p for p in occupant.paths if p.needed and p.denied), None) if occupant else None
    if sandbox is None or path is None:
        return None
    quote = f"it may not write {path.path}, where it keeps its {path.what}"
    denial = Denial("filesystem", "write", "certain", quote, path.path, source=EvidenceSource.KERNEL)
    return SandboxDenial(sandbox, denial)


def network_cut_denial(fleet: FleetView, occupant: PaneOccupant | None, text: str) -> SandboxDenial | None:
    """Return the denial behind a failed connection in `text`, if the sandbox has no network."""
    sandbox = enclosing_sandbox(occupant.process if occupant else None, fleet.kernel)
    if sandbox is None or not sandbox.offline or not _CONNECTION_FAILURE.search(text):
        return None
    return SandboxDenial(sandbox, Denial("network", "connect", "likely", text))


def has_no_activity(fleet: FleetView, pane: Pane, occupant: PaneOccupant | None) -> bool:
    """Return whether a pane's worker has shown no activity for a while."""
    if fleet.processes_at is None or occupant is None or (pane.moved_at is None and pane.drawn_at is None):
        return False
    last = max(pane_last_sign(fleet.links.below.get(pane.key, ()), pane, fleet.busy), occupant.key.started)
    return fleet.processes_at - last >= STANDSTILL_S


def assess_blocked(found: SandboxDenial, at: float, how: str) -> Assessment:
    """Return the state of a worker that its sandbox stopped.

    Args:
        found: the denial and the sandbox.
        at: when it was stopped (unix seconds).
        how: what became of it, `it sits still`.
    """
    process, denial = found.sandbox.process, found.denial
    target = f" {denial.path}" if denial.path else " the network" if denial.what == "network" else ""
    source = EvidenceSource.SCREEN if denial.source is EvidenceSource.OUTPUT else denial.source
    around = f"pid {process.pid} ({process.name}): {found.sandbox.text}"
    return Assessment(
        state=State.BLOCKED_SANDBOX,
        since=at,
        why=f"its sandbox denied it{target}, and {how}: {denial.quote}",
        evidence=(
            Evidence(source, at, f"denied-{denial.what}", denial.quote),
            Evidence(EvidenceSource.KERNEL, process.key.started, "in-a-sandbox", around),
        ),
        fact=facts.denied(denial, ""),
    )
