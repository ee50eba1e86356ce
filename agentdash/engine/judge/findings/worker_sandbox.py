"""The sandbox of a worker CLI whose session log is not read: what was asked for, and what the kernel shows.

One judge for all CLIs: their adapters state what was asked for (`Requested`), the kernel what its process and
its commands have. A sandbox that was not asked of the CLI is named by what built it, and is no finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from agentdash.engine.judge.findings.own_container import OwnContainer, own_container
from agentdash.engine.judge.findings.sandbox_author import SandboxAuthor, processes_above, sandbox_author
from agentdash.engine.judge.states.sandboxed_pane import SandboxInfo, enclosing_sandbox
from agentdash.model.denials import Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import FINDING_KINDS, Finding, FindingKind, Verdict
from agentdash.model.fleet import FleetView
from agentdash.model.layers import NO_SANDBOX, DifferingField, LayerField
from agentdash.model.observation import INHERITED, NETWORK_FLAG, SANDBOX_FLAG, UNSET
from agentdash.model.process import AGENT_NAMES, COMMAND_MARKS, Kernel, Process
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.worker import Got, Sandbox

_NAMED_BY_CLI: Final = re.compile(rf"{INHERITED}=(?:sandbox-exec|\S+-[\w.]+)$")
"""A value that the CLI may have set itself: its containers are named after the image, with a number."""


def worker_layers(fleet: FleetView, process: Process, worker: str, below: Iterable[Process] = ()) -> Sandbox:
    """Return the layers of a worker that is known by its process.

    Args:
        fleet: with the requests, and agentdash's own kernel facts.
        process: the worker.
        worker: its id, by which its requests are kept.
        below: the processes of its pane.
    """
    request = _request(fleet, process, worker)
    below = tuple(below)
    commands = _commands(process, below)
    is_per_command = request is not None and request.scope == "commands" and bool(commands)
    container = own_container(fleet, process, below)
    acting = container.inside if container else process  # None: not seen
    seen = commands[-1] if is_per_command else acting
    around = enclosing_sandbox(seen, fleet.kernel)
    author = sandbox_author(around.process, processes_above(fleet, around.process)) if around else None
    if container is not None and seen is not None and seen is acting:
        author = container.author
    findings = tuple(_findings(fleet, process, request, commands))
    return Sandbox(
        verdict=_verdict(fleet, acting, request, commands, findings, author),
        applied=_applied(author, container, is_inside=around is not None),
        launcher=(author.launcher or None) if author else (container.program if container else None),
        applied_policy=author.policy if author else None,
        got=_observed(seen, fleet.kernel) if seen else Got(),
        findings=findings,
        requested=request,
        evidence=tuple(_evidence(around, author)),
        unread=tuple(_unread(request, container)),
    )


def _request(fleet: FleetView, process: Process, worker: str) -> Requested | None:
    known = (each for each in reversed(fleet.requests.get(worker, ())) if each.since == process.key.started)
    return next(known, None)


def _commands(process: Process, below: Sequence[Process]) -> list[Process]:
    """Return the shell commands of a worker that run now, oldest first."""
    mark = COMMAND_MARKS.get(process.agent or "")
    if mark is None:
        return []
    found = [each for each in below if mark in (each.env or {}) and not each.agent and not each.launcher]
    return sorted(found, key=lambda each: each.key.started)


def _applied(author: SandboxAuthor | None, container: OwnContainer | None, *, is_inside: bool) -> str | None:
    if author is not None:
        return str(author)
    if container is not None:
        return f"a container, by {container.program}"
    return "a sandbox: what built it is not known" if is_inside else None


def _verdict(
    fleet: FleetView,
    process: Process | None,
    request: Requested | None,
    commands: Sequence[Process],
    findings: Sequence[Finding],
    author: SandboxAuthor | None,
) -> Verdict:
    if findings:
        return "mismatch"
    if request is None or request.read_at is not None or request.origin(RequestField.FILESYSTEM) is None:
        return "unverified"
    if process is None or process.kernel is None or fleet.kernel is None:
        return "unverified"
    if request.policy.is_full_access:
        return "match" if enclosing_sandbox(process, fleet.kernel) is None else "unverified"
    is_own = author is not None and author.name == AGENT_NAMES.get(process.agent or "")
    if request.scope == "commands":
        inside = [each for each in commands if enclosing_sandbox(each, process.kernel) is not None]
        return "match" if commands and len(inside) == len(commands) and is_own else "unverified"
    return "match" if is_own else "unverified"


# ---------------------------------------------------------------- findings


def _findings(
    fleet: FleetView, process: Process, request: Requested | None, commands: Sequence[Process]
) -> Iterator[Finding]:
    if request is None or not request.policy.restricts_files or process.kernel is None:
        return
    origin = request.origin(RequestField.FILESYSTEM)
    if origin is None or (request.read_at is not None and not _is_typed(origin)):
        return  # read after it was written: which settings were in force is not known
    if request.scope == "worker":
        if (by := request.dropped_by) is not None and _is_dropped(fleet, process, request, by):
            yield _dropped(process, request, origin, by)
        return
    outside = [each for each in commands if each.kernel and not enclosing_sandbox(each, process.kernel)]
    if outside and fleet.kernel is not None:
        yield _off_for_commands(process, request, origin, outside)


def _is_typed(origin: RequestOrigin) -> bool:
    return origin.layer is RequestLayer.ARGV or (
        origin.layer is RequestLayer.ENVIRONMENT and origin.file is None
    )


def _is_dropped(fleet: FleetView, process: Process, request: Requested, by: RequestOrigin) -> bool:
    """Return whether an inherited mark is the reason that no sandbox is there.

    A mark that the CLI may have set itself, in a container that agentdash runs in as well, is none.
    """
    host = fleet.kernel
    if host is None or enclosing_sandbox(process, host) is not None:
        return False
    if by.file is not None and request.read_at is not None:
        return False
    is_confined = bool(host.seccomp) or bool(host.sandboxed)
    return not (is_confined and _NAMED_BY_CLI.fullmatch(by.text))


def _dropped(process: Process, request: Requested, origin: RequestOrigin, by: RequestOrigin) -> Finding:
    name = AGENT_NAMES.get(process.agent or "", process.agent or "it")
    since = process.key.started
    source = EvidenceSource.CONFIG if by.file else EvidenceSource.ENVIRONMENT
    return _finding(
        origin,
        request,
        message=f"{name} was asked for a sandbox, and started none, without a word: it takes {by.text} for a"
        " sandbox that is around it already. It runs with all that its user may do.",
        got=f"pid {process.pid}: {_kernel_in_words(process.kernel)}; {by}",
        since=since,
        pids=(process.pid,),
        evidence=(
            Evidence(source=source, at=since, rule="inherited-mark", text=str(by)),
            _no_sandbox(process),
        ),
        remedy=_remedy(by),
    )


def _off_for_commands(
    process: Process, request: Requested, origin: RequestOrigin, outside: Sequence[Process]
) -> Finding:
    name = AGENT_NAMES.get(process.agent or "", process.agent or "it")
    first = outside[0]
    return _finding(
        origin,
        request,
        message=f"{name} was asked to run each command in a sandbox, and runs this one without.",
        got=f"pid {first.pid}: {_kernel_in_words(first.kernel)}: {' '.join(first.argv)[:200]}",
        since=first.key.started,
        pids=tuple(each.pid for each in outside),
        evidence=tuple(_no_sandbox(each) for each in outside[:3]),
        remedy=None,
    )


def _finding(
    origin: RequestOrigin,
    request: Requested,
    *,
    message: str,
    got: str,
    since: float,
    pids: tuple[int, ...],
    evidence: tuple[Evidence, ...],
    remedy: Remedy | None,
) -> Finding:
    info = FINDING_KINDS[FindingKind.SANDBOX_SILENTLY_OFF]
    asked = Evidence(
        source=EvidenceSource.CONFIG if origin.file else EvidenceSource.PROCESS,
        at=request.since or since,
        rule="sandbox-requested",
        text=str(origin),
    )
    return Finding(
        kind=FindingKind.SANDBOX_SILENTLY_OFF,
        direction=info.directions[0],
        severity=info.severity,
        configured=str(origin),
        got=got,
        message=message,
        since=since,
        last=since,
        count=len(pids),
        evidence=(asked, *evidence),
        remedy=remedy,
        pids=pids,
        fields=(
            DifferingField(
                name=LayerField.FILES,
                expected=request.policy.filesystem.value,
                actual=NO_SANDBOX,
                reference="requested",
                expected_at=request.since,
                actual_at=since,
            ),
        ),
    )


def _remedy(by: RequestOrigin) -> Remedy:
    if by.file is not None:
        return Remedy(f"remove `{by.text}` from {by.where}, and start it again")
    return Remedy(f"unset {INHERITED}", where="the shell that it is started from, before it is started again")


# ---------------------------------------------------------------- what is observed


def _observed(process: Process, host: Kernel | None) -> Got:
    kernel = process.kernel or Kernel()
    return Got(
        network_flag=_flag(process, NETWORK_FLAG),
        sandbox_flag=_flag(process, SANDBOX_FLAG),
        seccomp=kernel.seccomp,
        network_namespace=_network_namespace(kernel, host),
        no_new_privs=kernel.no_new_privs,
        sandboxed=None if process.kernel is None else enclosing_sandbox(process, host) is not None,
        at=process.key.started,
        source=EvidenceSource.KERNEL if process.kernel else EvidenceSource.ENVIRONMENT,
    )


def _flag(process: Process, name: str) -> str | None:
    return None if process.env is None else process.env.get(name) or UNSET


def _network_namespace(kernel: Kernel, host: Kernel | None) -> Literal["host", "own"] | None:
    if kernel.net is None or host is None or host.net is None:
        return None
    return "own" if kernel.net != host.net else "host"


def _kernel_in_words(kernel: Kernel | None) -> str:
    if kernel is None or kernel.seccomp is None:
        return NO_SANDBOX
    seccomp = "no seccomp" if not kernel.seccomp else f"seccomp {kernel.seccomp}, as agentdash itself"
    return f"{NO_SANDBOX} ({seccomp}, no namespaces of its own)"


def _no_sandbox(process: Process) -> Evidence:
    return Evidence(
        source=EvidenceSource.KERNEL,
        at=process.key.started,
        rule="no-sandbox",
        text=f"pid {process.pid} ({process.name}): {_kernel_in_words(process.kernel)}",
    )


def _evidence(around: SandboxInfo | None, author: SandboxAuthor | None) -> Iterator[Evidence]:
    if around is None:
        return
    process = around.process
    at = process.key.started
    if author is not None:
        text = f"{author.name}: {author.evidence}"
        yield Evidence(source=EvidenceSource.PROCESS, at=at, rule="sandbox-author", text=text)
    text = f"pid {process.pid} ({process.name}): {around.text}"
    yield Evidence(source=EvidenceSource.KERNEL, at=at, rule="in-a-sandbox", text=text)


def _unread(request: Requested | None, container: OwnContainer | None) -> Iterator[str]:
    if container is not None and container.inside is None:
        yield f"what runs in the container that {container.program} started"
    if request is not None and request.origin(RequestField.FILESYSTEM) is None:
        yield "whether a sandbox was asked for: its settings cannot be read, or the folder's trust is unknown"
    elif request is not None and request.policy.restricts_files and request.scope == "commands":
        yield "commands that have ended: the sandbox is one around each command"
