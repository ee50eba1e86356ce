"""The sandbox of a worker CLI that is known by its process: what it was asked for and has, and what a sandbox
denied it.

One judge for all CLIs: their adapters state what was asked for (`Requested`), the kernel what the process and
its commands have. A sandbox that was not asked of the CLI is named by what built it, and is no finding.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from agentdash.engine.judge.findings.remedies import filesystem_remedy, turn_network
from agentdash.engine.judge.findings.remedy_places import facts_of, place_of, request_of
from agentdash.engine.judge.findings.wording import DENIAL_KINDS, make_finding
from agentdash.engine.judge.states.pane_state import (
    PaneFacts,
    SandboxDenial,
    assess_blocked,
    enclosing_sandbox,
    network_cut_denial,
    screen_denial,
    state_path_denial,
)
from agentdash.engine.link.process_tree import ProcessTree
from agentdash.model.denials import Denial, PathKind, Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.fleet import Fleet, PaneOccupant
from agentdash.model.layers import NO_SANDBOX, DifferingField, LayerField
from agentdash.model.observation import INHERITED, NETWORK_FLAG, RUNTIME_FLAG, SANDBOX_FLAG, UNSET
from agentdash.model.pane import Pane
from agentdash.model.policy import Network, Policy
from agentdash.model.process import AGENT_NAMES, COMMAND_MARKS, Kernel, Process
from agentdash.model.requested import Requested, RequestField
from agentdash.model.states import State
from agentdash.model.worker import Assessment, Got, Sandbox, nested_worker_id

_CODEX_LAUNCHERS: Final = ("codex-linux-sandbox", "codex-execve-wrapper")
_THREAD_VARIABLE: Final = "CODEX_THREAD_ID"
_CODEX_MARKS: Final = (NETWORK_FLAG, SANDBOX_FLAG, _THREAD_VARIABLE)
"""Variables that Codex sets for the commands that it runs."""
_CONTAINER_PROGRAMS: Final = ("docker", "podman", "lxc")
_NAMED_BY_CLI: Final = re.compile(rf"{INHERITED}=(?:sandbox-exec|\S+-[\w.]+)$")
"""A value that the CLI may have set itself: its containers are named after the image, with a number."""


# ---------------------------------------------------------------- what built a sandbox
# By the launchers and programs above a process, or else by marks that a sandbox leaves in its environment.


class _Author(NamedTuple):
    """What built a sandbox."""

    name: str
    """`Codex`, `sandbox runtime (srt)`, `Gemini CLI`, `bwrap`."""
    evidence: str
    launcher: str = ""
    """The program that applied it: `bwrap`; empty if it is known by a mark alone."""
    policy: Policy | None = None
    """The policy in the launcher's arguments."""


def _author(fleet: Fleet, process: Process) -> _Author | None:
    """Return what built the sandbox around a process, or None if nothing shows it."""
    by_mark = _author_by_mark(process)
    above = list(ProcessTree(fleet.processes.values(), {}).above(process))
    launchers = [each.launcher for each in above if each.launcher]
    first = next((each for each in above if each.launcher), None)
    if first is None:
        return by_mark
    cli = next((each.agent for each in above[above.index(first) :] if each.agent), None)
    name = AGENT_NAMES.get(cli, cli) if cli else launchers[0].name
    if any(each.name in _CODEX_LAUNCHERS for each in launchers):
        name = "Codex"
    elif by_mark is not None and by_mark.evidence.startswith(RUNTIME_FLAG):
        name = by_mark.name
    evidence = f"pid {first.pid} above it: {' '.join(first.argv[:4])}"
    policy = next((each.policy for each in launchers if each.policy), None)
    return _Author(name, evidence, launchers[0].name, policy)


def _author_by_mark(process: Process) -> _Author | None:
    """Return what the environment of a process in a sandbox names. (A mark alone proves none: it may be
    inherited.)"""
    env = process.env or {}
    if env.get(RUNTIME_FLAG):
        runtime = AGENT_NAMES["claude"] if "CLAUDE_CODE_SESSION_ID" in env else "sandbox runtime (srt)"
        return _Author(runtime, f"{RUNTIME_FLAG}={env[RUNTIME_FLAG]}")
    if (mark := next((name for name in _CODEX_MARKS if name in env), None)) is not None:
        return _Author("Codex", f"{mark}={env[mark]}")
    return None


def _own_container(process: Process, below: Iterable[Process]) -> str | None:
    """Return the program by which a worker has started itself again in a container, or None.

    Gemini CLI and Qwen Code do (`docker run`, `podman run`, `lxc exec`): its client runs below the worker,
    and what does the work descends from the container engine.
    """
    mark = COMMAND_MARKS.get(process.agent or "")
    for client in below if mark is not None else ():
        program = client.argv[0].rpartition("/")[2] if client.argv else client.name
        is_client = program in _CONTAINER_PROGRAMS and not {"run", "exec"}.isdisjoint(client.argv)
        if is_client and mark not in (client.env or {}):
            return program
    return None


# ---------------------------------------------------------------- the layers


def _judge_layers(fleet: Fleet, process: Process, worker: str, below: Sequence[Process] = ()) -> Sandbox:
    """Return the layers of a worker that is known by its process and those of its pane, or below it; its id
    is the one by which its requests are kept."""
    since, host = process.key.started, fleet.kernel
    request = next((each for each in reversed(fleet.requests.get(worker, ())) if each.since == since), None)
    is_asked = request is not None and request.origin(RequestField.FILESYSTEM) is not None
    container = _own_container(process, below)
    around = enclosing_sandbox(process, host) if container is None else None
    author = _author(fleet, around.process) if around else None
    findings = tuple(_silently_off(fleet, process, request)) if request else ()
    is_match = False
    if request is not None and is_asked and request.read_at is None and container is None:
        is_of_cli = author is not None and author.name == AGENT_NAMES.get(process.agent or "")
        is_as_asked = around is None if request.policy.is_full_access else is_of_cli
        is_match = is_as_asked and None not in (process.kernel, host)
    applied = f"a container, by {container}" if container else None
    evidence, unread = [], []
    if around is not None:
        applied, at = "a sandbox: what built it is not known", around.process.key.started
        if author is not None:
            by = f" by {author.launcher}" if author.launcher not in ("", author.name) else ""
            applied = f"{author.name}{by}{f': {author.policy.brief()}' if author.policy else ''}"
            text = f"{author.name}: {author.evidence}"
            evidence.append(Evidence(EvidenceSource.PROCESS, at, "sandbox-author", text))
        text = f"pid {process.pid} ({process.name}): {around.text}"
        evidence.append(Evidence(EvidenceSource.KERNEL, at, "in-a-sandbox", text))
    if container is not None:
        unread.append(f"what runs in the container that {container} started")
    if request is not None and not is_asked:
        unread.append(
            "whether a sandbox was asked for: its settings cannot be read, or the folder's trust is unknown"
        )
    return Sandbox(
        verdict="mismatch" if findings else "match" if is_match else "unverified",
        applied=applied,
        launcher=(author.launcher if author else container) or None,
        applied_policy=author.policy if author else None,
        got=_observed(process, host) if container is None else Got(),
        findings=findings,
        requested=request,
        evidence=tuple(evidence),
        unread=tuple(unread),
    )


def _observed(process: Process, host: Kernel | None) -> Got:
    kernel, env = process.kernel or Kernel(), process.env
    is_known = host is not None and None not in (kernel.net, host.net)
    is_host = host is not None and kernel.net == host.net
    return Got(
        network_flag=None if env is None else env.get(NETWORK_FLAG) or UNSET,
        sandbox_flag=None if env is None else env.get(SANDBOX_FLAG) or UNSET,
        seccomp=kernel.seccomp,
        network_namespace=("host" if is_host else "own") if is_known else None,
        no_new_privs=kernel.no_new_privs,
        sandboxed=None if process.kernel is None else enclosing_sandbox(process, host) is not None,
        at=process.key.started,
        source=EvidenceSource.KERNEL if process.kernel else EvidenceSource.ENVIRONMENT,
    )


# ---------------------------------------------------------------- asked for, and not there


def _silently_off(fleet: Fleet, process: Process, request: Requested) -> Iterator[Finding]:
    """Yield a finding where a worker runs without the sandbox that was asked for: an inherited mark is the
    reason.

    A mark that the CLI may have set itself, in a container that agentdash runs in as well, is not.
    """
    origin, mark, host = request.origin(RequestField.FILESYSTEM), request.dropped_by, fleet.kernel
    if origin is None or mark is None or not request.policy.restricts_files:
        return
    if process.kernel is None or host is None or enclosing_sandbox(process, host) is not None:
        return
    if request.read_at is not None and origin.file is not None:
        return  # read after it was written: which settings were in force is not known
    if (host.seccomp or host.sandboxed) and _NAMED_BY_CLI.fullmatch(mark.text):
        return
    since, seccomp = process.key.started, process.kernel.seccomp
    filtered = f"seccomp {seccomp}, as agentdash itself" if seccomp else "no seccomp"
    kernel = f"{NO_SANDBOX} ({filtered}, no namespaces of its own)"
    name = AGENT_NAMES.get(process.agent or "", process.agent or "it")
    source = EvidenceSource.CONFIG if origin.file else EvidenceSource.PROCESS
    inside = f"pid {process.pid} ({process.name}): {kernel}"
    files = request.policy.filesystem.value
    yield make_finding(
        FindingKind.SANDBOX_SILENTLY_OFF,
        f"{name} was asked for a sandbox, and started none, without a word: it takes {mark.text} for one that"
        " is around it already. It runs with all that its user may do.",
        configured=str(origin),
        got=f"pid {process.pid}: {kernel}; {mark}",
        since=since,
        evidence=[
            Evidence(source, request.since or since, "sandbox-requested", str(origin)),
            Evidence(EvidenceSource.ENVIRONMENT, since, "inherited-mark", str(mark)),
            Evidence(EvidenceSource.KERNEL, since, "no-sandbox", inside),
        ],
        remedy=Remedy(f"unset {INHERITED}", where="the shell that it is started from, before the next start"),
        pids=[process.pid],
        fields=[
            DifferingField(LayerField.FILES, files, NO_SANDBOX, "observed", "requested", request.since, since)
        ],
    )


# ---------------------------------------------------------------- what a sandbox denied


def judge_pane_sandbox(fleet: Fleet, pane: Pane, occupant: PaneOccupant, assessment: Assessment) -> Sandbox:
    """Return the layers of a pane's worker, with the denial that its state rests on."""
    layers = _judge_layers(fleet, occupant.process, str(pane.key), fleet.links.below.get(pane.key, ()))
    case, evidence = PaneFacts(fleet, occupant, pane), assessment.evidence
    if assessment.state is not State.BLOCKED_SANDBOX:
        return layers
    found = screen_denial(case) or network_cut_denial(case, evidence[0].text) or state_path_denial(case)
    return _with_denial(layers, case, found, assessment.since, evidence)


def judge_nested_sandbox(fleet: Fleet, nested: PaneOccupant, assessment: Assessment) -> Sandbox:
    """Return the layers of a worker CLI that a command of a thread has started, and the path that it needs
    and may not write: also while it runs."""
    layers = _judge_layers(fleet, nested.process, nested_worker_id(nested.key.pid))
    case, started = PaneFacts(fleet, nested), nested.key.started
    found = state_path_denial(case)
    evidence = assess_blocked(found, started, "it runs").evidence if found else ()
    return _with_denial(layers, case, found, assessment.since, evidence)


def _with_denial(
    layers: Sandbox,
    case: PaneFacts,
    found: SandboxDenial | None,
    since: float | None,
    evidence: tuple[Evidence, ...],
) -> Sandbox:
    """Return the layers of a worker with the finding about what the sandbox around it denies it."""
    if found is None:
        return layers
    denial, process = found.denial, found.sandbox.process
    target = f": it may not write {denial.path}" if denial.path else ""
    finding = make_finding(
        DENIAL_KINDS[denial.what],
        f"The worker runs inside a sandbox that stops it{target}.",
        configured="not stated",
        got=f"pid {process.pid}: {found.sandbox.text}",
        since=since or process.key.started,
        evidence=evidence,
        remedy=_remedy(case.fleet, case.occupant, denial),
        pids=(process.pid,),
    )
    return replace(layers, findings=(*layers.findings, finding))


def _remedy(fleet: Fleet, occupant: PaneOccupant, denial: Denial) -> Remedy | None:
    """Return the settings of the Codex whose sandbox it is; words if it may be another program's."""
    env = occupant.process.env or {}
    places = facts_of(fleet, None, [occupant.process])
    is_codex = any(name in env for name in _CODEX_MARKS)
    thread = fleet.threads.get(env.get(_THREAD_VARIABLE, ""))
    # at the worker's state paths are directories, unless their name has a suffix
    directories = (path for path in occupant.paths if not posixpath.splitext(path.path)[1])
    kinds = {**places.kinds, **{each.path: PathKind.DIRECTORY for each in directories}}
    kinds |= {each.path: PathKind.MISSING for each in occupant.paths if each.access.missing}
    places = replace(places, kinds=kinds, request=request_of(fleet, thread))
    policy = thread.policy if thread else None
    outside = "start it from a shell outside its sandbox"
    if denial.what == "network":
        words = Remedy(f"{outside}, or let that sandbox reach the network")
        return turn_network(Network.ON, policy, places) if is_codex else words
    if not denial.path:
        return None
    operation = "mkdir" if places.kinds.get(denial.path) is PathKind.MISSING else denial.operation
    if is_codex:
        return filesystem_remedy(denial.path, operation, policy, places)
    place = place_of(denial.path, operation, places)
    return Remedy(outside if place.obstacle else f"{outside}, or let that sandbox write {place.directory}")
