"""Worker CLIs inside of somebody's sandbox: whether they are in one, by the kernel, and what it denied them, by what they print.

The words of a denial prove nothing by themselves; together with a kernel that shows a sandbox around the process, and with an end or a
standstill, they do.
"""

from __future__ import annotations

import posixpath
import re
from typing import Final

import msgspec

from agentdash.engine.detect.denials import denial
from agentdash.engine.detect.env_output import NETWORK_FLAG, SANDBOX_FLAG
from agentdash.engine.judge.findings.remedies import NETWORK_ACCESS, writable_root
from agentdash.engine.judge.states.activity import pane_last_sign
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.fleet import UNSET, Denial, PaneOccupant
from agentdash.model.fleet_draft import FleetView
from agentdash.model.pane import Pane
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Kernel, Process
from agentdash.model.states import State
from agentdash.model.worker import Assessment, Got, Sandbox

_LINES: Final = 20
"""Last lines of a screen that are its end: what a program says when it gives up, and a prompt below that."""
_UNREASONED: Final = re.compile(r"\bFileSystem\.\w+ \((/[^)]+)\)")
"""OpenCode (1.18, by its runtime) names what it could not do and to which path, not why."""
_UNREACHED: Final = re.compile(
    r"connect|network|resolve|fetch failed|socket|typo in the url|EAI_AGAIN|ENETUNREACH|timed? ?out",
    re.IGNORECASE,
)
_STILL: Final = 15.0
"""Seconds without a sign of life after which one that may not write what it needs is not given the benefit of the doubt."""
_NAMESPACES: Final = {"mnt": "mount", "pid": "pid", "user": "user", "net": "network"}


class SandboxInfo(msgspec.Struct, frozen=True):
    """A sandbox around a process."""

    process: Process
    text: str
    """How the kernel shows it: `seccomp 2, own mount, pid namespaces`."""
    offline: bool
    """Whether it has no network of the host: by the flag, or by a network namespace of its own."""


def enclosing_sandbox(process: Process | None, host: Kernel | None) -> SandboxInfo | None:
    """The sandbox that a process is in; None where the kernel shows none, or was not asked."""
    kernel = process.kernel if process else None
    if process is None or kernel is None:
        return None
    own = [_NAMESPACES[name] for name in kernel.apart_from(host)] if host else []
    filtered = kernel.seccomp and (
        host is None or kernel.seccomp != host.seccomp
    )  # a container around both filters both
    signs = [f"seccomp {kernel.seccomp}"] if filtered else []
    signs += [f"own {', '.join(own)} namespace{'s' * (len(own) > 1)}"] if own else []
    if not signs:
        return None
    return SandboxInfo(
        process, ", ".join(signs), "network" in own or (process.env or {}).get(NETWORK_FLAG) == "1"
    )


def denied(fleet: FleetView, pane: Pane, occupant: PaneOccupant | None) -> tuple[SandboxInfo, Denial] | None:
    """The denial that a sandboxed worker's screen ends with, and the sandbox."""
    box = enclosing_sandbox(occupant.process if occupant else None, fleet.kernel)
    if box is None:
        return None
    output = _end_of(pane)
    policy = Policy(Filesystem.READ_ONLY, Network.OFF if box.offline else Network.ON, (PolicyRule("/", "read"),))
    told = [d for line in output.splitlines() if (d := denial("", line, policy, box.process.cwd)) is not None]
    found = next(
        (d for d in reversed(told) if d.path), told[-1] if told else None
    )  # errors of several lines name the path in one of them
    if (found is None or not found.certain) and (named := _UNREASONED.search(output)):
        found = Denial("filesystem", named[0], named[1])
    return (box, found) if found else None


def hindered(fleet: FleetView, occupant: PaneOccupant | None) -> tuple[SandboxInfo, Denial] | None:
    """The state path that a sandboxed worker needs and may not write, whether it says so or not."""
    box = enclosing_sandbox(occupant.process if occupant else None, fleet.kernel)
    path = next((p for p in occupant.paths if p.needed and p.denied), None) if occupant else None
    if box is None or path is None:
        return None
    return box, Denial(
        "filesystem",
        f"it may not write {path.path}, where it keeps its {path.what}",
        path.path,
        source="kernel",
    )


def sits_still(fleet: FleetView, pane: Pane, occupant: PaneOccupant | None) -> bool:
    """Whether a pane's worker has given no sign of life for a while."""
    if fleet.processes_at is None or occupant is None or (pane.moved_at is None and pane.drawn_at is None):
        return False
    life = max(pane_last_sign(fleet.links.below.get(pane.key, ()), pane, fleet.busy), occupant.key.started)
    return fleet.processes_at - life >= _STILL


def blocked(box: SandboxInfo, found: Denial, at: float, how: str) -> Assessment:
    """The state of a worker that its sandbox stopped."""
    process = box.process
    what = f" {found.path}" if found.path else " the network" if found.what == "network" else ""
    source = "screen" if found.source == "output" else found.source
    evidence = (
        Evidence(source, at, f"denied-{found.what}", found.quote),
        Evidence(
            "kernel", process.key.started, "in-a-sandbox", f"pid {process.pid} ({process.name}): {box.text}"
        ),
    )
    return Assessment(
        State.BLOCKED_SANDBOX, at, f"its sandbox denied it{what}, and {how}: {found.quote}", evidence
    )


def cut_off(fleet: FleetView, occupant: PaneOccupant | None, says: str) -> tuple[SandboxInfo, Denial] | None:
    """Trouble with the provider that is the sandbox's doing: without a network no provider can be reached."""
    box = enclosing_sandbox(occupant.process if occupant else None, fleet.kernel)
    return (
        (box, Denial("network", says))
        if box is not None and box.offline and _UNREACHED.search(says)
        else None
    )


def sandbox_of(fleet: FleetView, pane: Pane, occupant: PaneOccupant, assessment: Assessment) -> Sandbox:
    """What a pane's worker got. What it was configured to have nobody says, so that nothing can be compared."""
    process = occupant.process
    if process is None:
        return Sandbox()
    env, kernel, ours = process.env, process.kernel or Kernel(), fleet.kernel
    own = None if kernel.net is None or ours is None or ours.net is None else kernel.net != ours.net
    got = Got(
        network_flag=None if env is None else env.get(NETWORK_FLAG) or UNSET,
        sandbox_flag=None if env is None else env.get(SANDBOX_FLAG) or UNSET,
        seccomp=kernel.seccomp,
        network_namespace=None if own is None else "own" if own else "host",
        no_new_privs=kernel.no_new_privs,
        sandboxed=None if process.kernel is None else enclosing_sandbox(process, ours) is not None,
        at=process.key.started,
        source="kernel" if process.kernel else "environment",
    )
    return Sandbox(got=got, findings=_findings(fleet, pane, occupant, assessment))


def _findings(
    fleet: FleetView, pane: Pane, occupant: PaneOccupant, assessment: Assessment
) -> tuple[Finding, ...]:
    if assessment.state is not State.BLOCKED_SANDBOX:
        return ()
    seen = (
        denied(fleet, pane, occupant)
        or cut_off(fleet, occupant, assessment.evidence[0].text)
        or hindered(fleet, occupant)
    )
    if seen is None:
        return ()
    box, found = seen
    at = assessment.since or box.process.key.started
    remedy = NETWORK_ACCESS if found.what == "network" else _root(found) if found.path else None
    finding = Finding(
        kind=FindingKind(f"denied-{found.what}"),
        direction="stricter",
        severity="warning",
        configured="not stated",
        got=f"pid {box.process.pid}: {box.text}",
        message=f"The worker runs inside of a sandbox that stopped it{f': {found.path} may not be written' if found.path else ''}.",
        since=at,
        last=at,
        count=1,
        evidence=assessment.evidence,
        remedy=remedy,
        pids=(box.process.pid,),
    )
    return (finding,)


def _root(found: Denial) -> str | None:
    path = found.path or ""
    state_folder = found.source == "kernel" and not posixpath.splitext(path)[1]
    return writable_root(path, None, f"mkdir {path}" if state_folder else found.quote)


def _end_of(pane: Pane) -> str:
    """The last lines of a screen; those that fill its width go on in the next one."""
    lines = [line for line in pane.screen if line.strip()][-_LINES:]
    return "".join(line if len(line) >= pane.width else f"{line}\n" for line in lines)
