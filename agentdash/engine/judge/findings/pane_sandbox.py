"""The sandbox of a worker CLI that is known by its pane: what it was asked for and has, and what a sandbox
denied it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from agentdash.engine.judge.findings.remedies import filesystem_remedy, network_access_remedy
from agentdash.engine.judge.findings.remedy_places import facts_of, place_of, request_of
from agentdash.engine.judge.findings.wording import DENIAL_KINDS, make_finding
from agentdash.engine.judge.states.sandboxed_pane import (
    SandboxDenial,
    SandboxInfo,
    assess_blocked,
    enclosing_sandbox,
    network_cut_denial,
    screen_denial,
    state_path_denial,
)
from agentdash.model.denials import Denial, PathKind, Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Finding, FindingKind, Verdict
from agentdash.model.fleet import FleetView, PaneOccupant
from agentdash.model.layers import NO_SANDBOX, DifferingField, LayerField
from agentdash.model.observation import INHERITED, NETWORK_FLAG, RUNTIME_FLAG, SANDBOX_FLAG, UNSET
from agentdash.model.pane import Pane
from agentdash.model.policy import Policy
from agentdash.model.process import AGENT_NAMES, COMMAND_MARKS, Kernel, Process
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.state_paths import PredictedDenials
from agentdash.model.states import State
from agentdash.model.worker import Assessment, Got, Sandbox, nested_worker_id

_CODEX_LAUNCHERS: Final = ("codex-linux-sandbox", "codex-execve-wrapper")
_THREAD_VARIABLE: Final = "CODEX_THREAD_ID"
_CODEX_MARKS: Final = (NETWORK_FLAG, SANDBOX_FLAG, _THREAD_VARIABLE)
"""Variables that Codex sets for the commands that it runs."""
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


# ---------------------------------------------------------------- what built a sandbox
# By the launchers and programs above a process, or else by marks that a sandbox leaves in its environment.


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
    """Return what built the sandbox around a process, or None if nothing shows it.

    Args:
        process: in a sandbox, as the kernel shows.
        above: its ancestors, nearest first.
    """
    ancestors = list(above)
    for number, ancestor in enumerate(ancestors):
        launcher = _launcher_of(ancestor)
        if launcher is None:
            continue
        policies = (each.launcher.policy for each in ancestors[number:] if each.launcher is not None)
        return SandboxAuthor(
            name=_author_name(launcher, process, ancestors[number:]),
            launcher=launcher,
            evidence=f"pid {ancestor.pid} above it: {' '.join(ancestor.argv[:4])}",
            policy=next((policy for policy in policies if policy is not None), None),
        )
    return _by_marks(process)


def _launcher_of(process: Process) -> str | None:
    """Return the program by which a process built a sandbox, or None."""
    if process.launcher is not None and process.launcher.name != _RUNTIME:
        return process.launcher.name
    names = {word.rpartition("/")[2] for word in process.argv[:2]}
    if not names.isdisjoint(_RUNTIME_NAMES) or _RUNTIME_NAMES[1] in " ".join(process.argv[:2]):
        return "srt"
    return next(
        iter(_PROGRAMS & {process.name, *(word.rpartition("/")[2] for word in process.argv[:1])}), None
    )


def _author_name(launcher: str, process: Process, above: list[Process]) -> str:
    """Return what a launcher was started by."""
    if launcher in _CODEX_LAUNCHERS:
        return "Codex"
    if (marked := _by_marks(process, is_proven=False)) is not None and marked.name != "Codex":
        return marked.name
    for ancestor in above:
        if _launcher_of(ancestor) in _CODEX_LAUNCHERS:
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


_CONTAINER_PROGRAMS: Final = ("docker", "podman", "lxc")
_MARK: Final = f"{INHERITED}="


# ---------------------------------------------------------------- a container of its own
# Gemini CLI and Qwen Code start themselves again in one (`docker run`, `podman run`, `lxc exec`): its client
# runs below the worker, and the process inside, which does the work, descends from the container engine.
# The CLI names the container in the client's arguments, and in the environment of what runs inside (`--env
# SANDBOX=NAME`, 12 random hexadecimal digits in Gemini CLI 0.61.0).


class OwnContainer(msgspec.Struct, frozen=True):
    """A container that a worker CLI has started itself in."""

    program: str
    """The container's client: `docker`."""
    author: SandboxAuthor
    inside: Process | None
    """The worker's process in the container, or None if it is not seen (a virtual machine, another user) or
    not the only one."""


def own_container(fleet: FleetView, process: Process, below: Iterable[Process]) -> OwnContainer | None:
    """Return the container that a worker has started itself in, or None.

    Args:
        fleet: with all processes.
        process: the worker.
        below: the processes of its pane.
    """
    mark = COMMAND_MARKS.get(process.agent or "")
    if mark is None:
        return None  # no other CLI starts itself in a container
    for client in below:
        program = client.argv[0].rpartition("/")[2] if client.argv else client.name
        if (
            program not in _CONTAINER_PROGRAMS
            or mark in (client.env or {})
            or {"run", "exec"}.isdisjoint(client.argv)
        ):
            continue
        inside = _inside(fleet, process, client)
        evidence = f"pid {client.pid} below it: {' '.join(client.argv[:4])}"
        if inside is not None:
            evidence += f"; pid {inside.pid} in it: {_MARK}{(inside.env or {})[INHERITED]}"
        author = SandboxAuthor(name=AGENT_NAMES[process.agent or ""], launcher=program, evidence=evidence)
        return OwnContainer(program=program, author=author, inside=inside)
    return None


def _inside(fleet: FleetView, process: Process, client: Process) -> Process | None:
    name = _container_name(client.argv)
    if name is None:
        return None
    found = {
        each.pid: each
        for each in fleet.processes.values()
        if each.agent == process.agent
        and each.key.started >= client.key.started
        and (each.env or {}).get(INHERITED) == name
        and enclosing_sandbox(each, fleet.kernel) is not None
    }
    outermost = [each for each in found.values() if each.ppid not in found]
    return outermost[0] if len(outermost) == 1 else None


def _container_name(argv: Sequence[str]) -> str | None:
    """Return the name of the container that a client's arguments give to what runs inside."""
    given = [value for option, value in pairwise(argv) if option == "--env" and value.startswith(_MARK)]
    return given[-1].removeprefix(_MARK) or None if given else None


_NAMED_BY_CLI: Final = re.compile(rf"{INHERITED}=(?:sandbox-exec|\S+-[\w.]+)$")
"""A value that the CLI may have set itself: its containers are named after the image, with a number."""


# ---------------------------------------------------------------- asked for, and what the kernel shows
# One judge for all CLIs: their adapters state what was asked for (`Requested`), the kernel what the process
# and its commands have. A sandbox that was not asked of the CLI is named by what built it, and is no finding.


def worker_layers(fleet: FleetView, process: Process, worker: str, below: Iterable[Process] = ()) -> Sandbox:
    """Return the layers of a worker that is known by its process.

    Args:
        fleet: with the requests, and agentdash's own kernel facts.
        process: the worker.
        worker: its id, by which its requests are kept.
        below: the processes of its pane.
    """
    request = _request_of_process(fleet, process, worker)
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
    findings = tuple(_worker_findings(fleet, process, request, commands))
    return Sandbox(
        verdict=_verdict(fleet, acting, request, commands, findings, author),
        applied=_applied(author, container, is_inside=around is not None),
        launcher=(author.launcher or None) if author else (container.program if container else None),
        applied_policy=author.policy if author else None,
        got=_observed(seen, fleet.kernel) if seen else Got(),
        findings=findings,
        requested=request,
        evidence=tuple(_layer_evidence(around, author)),
        unread=tuple(_unread(request, container)),
    )


def _request_of_process(fleet: FleetView, process: Process, worker: str) -> Requested | None:
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


def _worker_findings(
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
    return _silently_off(
        origin,
        request,
        message=f"{name} was asked for a sandbox, and started none, without a word: it takes {by.text} for a"
        " sandbox that is around it already. It runs with all that its user may do.",
        got=f"pid {process.pid}: {_kernel_in_words(process.kernel)}; {by}",
        since=since,
        pids=(process.pid,),
        evidence=(
            Evidence(source, since, "inherited-mark", str(by)),
            _no_sandbox(process),
        ),
        remedy=_unset_mark(by),
    )


def _off_for_commands(
    process: Process, request: Requested, origin: RequestOrigin, outside: Sequence[Process]
) -> Finding:
    name = AGENT_NAMES.get(process.agent or "", process.agent or "it")
    first = outside[0]
    return _silently_off(
        origin,
        request,
        message=f"{name} was asked to run each command in a sandbox, and runs this one without.",
        got=f"pid {first.pid}: {_kernel_in_words(first.kernel)}: {' '.join(first.argv)[:200]}",
        since=first.key.started,
        pids=tuple(each.pid for each in outside),
        evidence=tuple(_no_sandbox(each) for each in outside[:3]),
        remedy=None,
    )


def _silently_off(
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
    asked = Evidence(
        source=EvidenceSource.CONFIG if origin.file else EvidenceSource.PROCESS,
        at=request.since or since,
        rule="sandbox-requested",
        text=str(origin),
    )
    return make_finding(
        FindingKind.SANDBOX_SILENTLY_OFF,
        message,
        configured=str(origin),
        got=got,
        since=since,
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


def _unset_mark(by: RequestOrigin) -> Remedy:
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


def _layer_evidence(around: SandboxInfo | None, author: SandboxAuthor | None) -> Iterator[Evidence]:
    if around is None:
        return
    process = around.process
    at = process.key.started
    if author is not None:
        text = f"{author.name}: {author.evidence}"
        yield Evidence(EvidenceSource.PROCESS, at, "sandbox-author", text)
    text = f"pid {process.pid} ({process.name}): {around.text}"
    yield Evidence(EvidenceSource.KERNEL, at, "in-a-sandbox", text)


def _unread(request: Requested | None, container: OwnContainer | None) -> Iterator[str]:
    if container is not None and container.inside is None:
        yield f"what runs in the container that {container.program} started"
    if request is not None and request.origin(RequestField.FILESYSTEM) is None:
        yield "whether a sandbox was asked for: its settings cannot be read, or the folder's trust is unknown"
    elif request is not None and request.policy.restricts_files and request.scope == "commands":
        yield "commands that have ended: the sandbox is one around each command"


# ---------------------------------------------------------------- workers in panes, and nested ones


def judge_pane_sandbox(
    fleet: FleetView, pane: Pane, occupant: PaneOccupant, assessment: Assessment
) -> Sandbox:
    """Return the observed layer of a pane's worker, and the denial that stopped it."""
    if occupant.process is None:
        return Sandbox()
    layers = worker_layers(fleet, occupant.process, str(pane.key), fleet.links.below.get(pane.key, ()))
    return replace(layers, findings=(*layers.findings, *_findings(fleet, pane, occupant, assessment)))


def judge_nested_sandbox(fleet: FleetView, nested: PaneOccupant, assessment: Assessment) -> Sandbox:
    """Return the observed layer of a worker CLI that a Codex command has started, and the path that it needs
    and may not write: also while it runs."""
    if nested.process is None:
        return Sandbox()
    found = state_path_denial(fleet, nested)
    findings: tuple[Finding, ...] = ()
    if found is not None:
        evidence = assess_blocked(found, nested.key.started, "it runs").evidence
        at = assessment.since or nested.key.started
        findings = (_finding(fleet, nested, found, at=at, evidence=evidence),)
    layers = worker_layers(fleet, nested.process, nested_worker_id(nested.key.pid))
    return replace(layers, findings=(*layers.findings, *findings), predicted_denials=_denied_paths(nested))


def _denied_paths(nested: PaneOccupant) -> tuple[PredictedDenials, ...]:
    denied = sorted((path for path in nested.paths if path.denied), key=lambda path: not path.needed)
    return (PredictedDenials(nested.agent, tuple(denied)),) if denied else ()


def _findings(
    fleet: FleetView, pane: Pane, occupant: PaneOccupant, assessment: Assessment
) -> tuple[Finding, ...]:
    """Return the finding about the denial that the assessment rests on."""
    if assessment.state is not State.BLOCKED_SANDBOX:
        return ()
    found = (
        screen_denial(fleet, pane, occupant)
        or network_cut_denial(fleet, occupant, assessment.evidence[0].text)
        or state_path_denial(fleet, occupant)
    )
    if found is None:
        return ()
    at = assessment.since or found.sandbox.process.key.started
    return (_finding(fleet, occupant, found, at=at, evidence=assessment.evidence),)


def _finding(
    fleet: FleetView,
    occupant: PaneOccupant,
    found: SandboxDenial,
    *,
    at: float,
    evidence: tuple[Evidence, ...],
) -> Finding:
    """Return the finding about what the sandbox around a worker denies it."""
    denial, process = found.denial, found.sandbox.process
    kind = DENIAL_KINDS[denial.what]
    target = f": {denial.path} may not be written" if denial.path else ""
    return make_finding(
        kind,
        f"The worker runs inside of a sandbox that stops it{target}.",
        configured="not stated",
        got=f"pid {process.pid}: {found.sandbox.text}",
        since=at,
        evidence=evidence,
        remedy=_remedy(fleet, occupant, denial, process),
        pids=(process.pid,),
    )


def _remedy(fleet: FleetView, occupant: PaneOccupant, denial: Denial, process: Process) -> Remedy | None:
    """Return the settings of the Codex whose sandbox it is; words where it may be another program's."""
    env = process.env or {}
    places = facts_of(fleet, None, [process])
    is_codex = any(name in env for name in _CODEX_MARKS)
    thread = fleet.threads.get(env.get(_THREAD_VARIABLE, ""))
    kinds = {**places.kinds, **_state_paths(occupant)}
    places = replace(places, kinds=kinds, request=request_of(fleet, thread))
    policy = thread.policy if thread else None
    if denial.what == "network":
        outside = "start it from a shell outside of its sandbox, or let that sandbox reach the network"
        return network_access_remedy(policy, places) if is_codex else Remedy(outside)
    if not denial.path:
        return None
    operation = "mkdir" if places.kinds.get(denial.path) is PathKind.MISSING else denial.operation
    if is_codex:
        return filesystem_remedy(denial.path, operation, policy, places)
    place = place_of(denial.path, operation, places)
    opened = "" if place.obstacle else f", or let that sandbox write {place.directory}"
    return Remedy(f"start it from a shell outside of its sandbox{opened}")


def _state_paths(occupant: PaneOccupant) -> dict[str, PathKind]:
    """Return what is at the worker's state paths: directories, unless their name has a suffix."""
    kinds = {}
    for access in occupant.paths:
        if access.access.missing:
            kinds[access.path] = PathKind.MISSING
        elif not posixpath.splitext(access.path)[1]:
            kinds[access.path] = PathKind.DIRECTORY
    return kinds
