"""The verdict on a thread's sandbox: its layers compared, and one finding per cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from agentdash.engine.judge.findings.command_sandbox import (
    auto_approved,
    child_mode_escalated,
    sandbox_silently_off,
)
from agentdash.engine.judge.findings.observations import check_observation, observation_evidence
from agentdash.engine.judge.findings.policies import (
    ParentPolicy,
    inheritance_findings,
    newest_request,
    policy_changes,
    request_findings,
)
from agentdash.engine.judge.findings.remedies import exclude_flags, remedy_for, startup_remedy
from agentdash.engine.judge.findings.tmux_boundary import escape_findings
from agentdash.engine.judge.findings.wording import (
    DENIAL_KINDS,
    launcher_in_words,
    make_finding,
    policy_in_words,
)
from agentdash.engine.judge.states.thread_facts import stopping_denial
from agentdash.model.denials import Denial, LedgerEntry, PathFacts, Remedy, may_not
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.observation import UNSET, SandboxObservation
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.requested import Requested
from agentdash.model.states import State
from agentdash.model.thread import Call, Thread
from agentdash.model.worker import Assessment, Got, Sandbox

T = TypeVar("T")


class Surroundings(msgspec.Struct, frozen=True):
    """What a thread's sandbox is compared with, besides the thread itself."""

    platform: str | None = None
    """`sys.platform` of the machine on which its live processes were seen."""
    parent_policy: ParentPolicy | None = None
    places: PathFacts = PathFacts()
    requests: tuple[Requested, ...] = ()
    """What the processes that ran it were asked for, oldest first."""
    awaits_request: bool = False
    """Whether what its process was asked for is still to be read: nothing matches before."""


def judge_sandbox(thread: Thread, assessment: Assessment, around: Surroundings) -> Sandbox:
    """Return the layers of a thread's sandbox, compared.

    A denial that stopped it, by its assessment, is a finding; one that it got past is not.
    """
    parent, places, requests = around.parent_policy, around.places, around.requests
    is_codex = thread.agent == "codex"
    own = [_attribute(each, thread) for each in thread.observations if not each.by_user]
    checked = [(each, check_observation(each, thread, around.platform, places)) for each in own]
    different = [finding for _, found in checked for finding in found]
    different += inheritance_findings(thread, parent) if parent else []
    different += escape_findings(thread, places)
    if is_codex:
        different += [*request_findings(thread, requests, parent), *auto_approved(thread)]
    different += sandbox_silently_off(thread, requests)
    different += child_mode_escalated(thread, parent, requests)
    differences = _merge(different)
    is_mismatch = _is_mismatch(differences)
    is_match = not around.awaits_request and any(_is_comparable(each, thread) for each in own)
    # what differs comes first, then the newest: what is well must not hide what is not
    checked_worst_first = sorted(
        checked, key=lambda each: (_is_mismatch(each[1]), each[0].last), reverse=True
    )
    worst_first = [each for each, _ in checked_worst_first]
    launchers = [each.applied for each in worst_first if each.applied]
    launcher, escalation = _first(launchers), _escalation(thread)
    by = launcher.by if launcher else None
    told = _first(each for each in worst_first if each.recorded is not None)
    applied = [launcher_in_words(launcher)] if launcher else []
    if told is not None and launcher is None and is_codex:
        applied = [f"{'a' if told.recorded else 'no'} sandbox, by Codex's own words: {told.quote}"]
    applied += [escalation] if escalation else []
    # a change that another finding explains is no finding of its own
    dropped = {each.since for each in differences if each.kind is FindingKind.RESUME_DROPPED_POLICY}
    changes = (change for change in policy_changes(thread) if change.last not in dropped)
    return Sandbox(
        verdict="mismatch" if is_mismatch else "match" if is_match else "unverified",
        configured=thread.policy,
        applied="; ".join(applied) or None,
        launcher="none" if by == "nothing" else by,
        escalation=escalation,
        applied_policy=_first(each.policy for each in launchers),
        got=_observed([each for each in worst_first if each.recorded is None and not each.effect], thread),
        findings=(*differences, *changes, *denial_findings(thread, assessment.state, places)),
        evidence=tuple(
            observation_evidence(each, agrees=is_mismatch is _is_mismatch(found)) for each, found in checked
        ),
        unread=tuple(_not_observed(thread, own, around)),
        denials=_ledger(thread, places),
        requested=newest_request(thread, requests) if is_codex else _first(reversed(requests)),
    )


def _attribute(observation: SandboxObservation, thread: Thread) -> SandboxObservation:
    """Return an observation under the policy that it belongs to.

    A call whose sandbox could not be started has run no process. What was observed under its id, while the
    log was behind, belongs to a later call with the same script.
    """
    failed = thread.sandbox_failed
    if failed is None or observation.recorded is not None or failed.call not in observation.calls:
        return observation
    calls = tuple(call for call in observation.calls if call != failed.call)
    return replace(observation, calls=calls, policy=thread.policy_index_at(observation.first))


def _is_mismatch(findings: Iterable[Finding]) -> bool:
    return any(finding.severity != "info" for finding in findings)


def _is_comparable(observation: SandboxObservation, thread: Thread) -> bool:
    """Return whether it was made under the sandbox of now, and the files of that are known.

    One made under another is compared with that; it proves nothing of what is in force now.
    """
    if observation.policy < 0 or _awaits_call(observation):
        return False
    if observation.granted == "rule" and not observation.sandboxed:
        return False
    if observation.recorded is not None:
        return False  # that there was a sandbox is no word of what it allows
    was, now = thread.policies[observation.policy].policy, thread.policies[-1].policy
    if observation.effect == "reached" and was.network is not Network.ON:
        return False
    if (was.filesystem, was.network, set(was.rules)) != (now.filesystem, now.network, set(now.rules)):
        return False
    return thread.agent == "codex" or now.filesystem is not Filesystem.UNKNOWN


def _awaits_call(observation: SandboxObservation) -> bool:
    """Return whether the log may still state the call: until then some checks cannot be made."""
    return observation.provisional and not observation.called


# ---------------------------------------------------------------- one finding per cause


def _merge(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return one finding per cause (kind and configured side), counted, the oldest first."""
    by_cause: dict[tuple[str, str], Finding] = {}
    for finding in found:
        cause = (finding.kind, finding.configured)
        known = by_cause.get(cause)
        by_cause[cause] = finding if known is None else _merge_two(known, finding)
    return tuple(sorted(by_cause.values(), key=lambda finding: finding.since))


def _merge_two(known: Finding, finding: Finding) -> Finding:
    """Return two findings of one cause as one: the first, unless the kernel has shown a label since."""
    first, latest = (known, finding) if known.since <= finding.since else (finding, known)
    cells = {(cell.name, cell.layer, cell.reference): cell for cell in (*first.fields, *latest.fields)}
    return replace(
        latest if latest.direction == "label" else first,
        since=first.since,
        last=max(known.last, finding.last),
        count=known.count + finding.count,
        evidence=tuple(dict.fromkeys((*known.evidence, *finding.evidence))),
        calls=tuple(dict.fromkeys((*known.calls, *finding.calls))),
        pids=tuple(dict.fromkeys((*known.pids, *finding.pids))),
        fields=tuple(cells.values()),
    )


# ---------------------------------------------------------------- what was observed


def _not_observed(thread: Thread, own: Sequence[SandboxObservation], around: Surroundings) -> Iterator[str]:
    """Yield what could not be observed, and limits the verdict."""
    if around.awaits_request:
        yield "it has just started: what it was asked for is not read yet"
    if around.requests and (measured := around.requests[-1].rules_of) is not None:
        yield f"{thread.version} was not measured: what was asked for is by the rules of {measured}"
    live = [each for each in own if each.source is EvidenceSource.ENVIRONMENT]
    if not own:
        yield "no command of it was seen alive, and its session shows nothing of its sandbox"
    elif not live:
        yield "no command of it was seen alive: only what its session shows is known, and no kernel facts"
    rules = dict.fromkeys(each.rule for each in own if each.rule and not each.sandboxed)
    if rules:
        yield f"what the sandbox holds, by commands that {', '.join(rules)} may have let out of it"
    if any(map(_awaits_call, live)):
        yield "the call that started some of its processes is not in its log yet"
    if any(each.sandboxed is None for each in live):
        yield "the kernel's facts of some of its processes could not be read (macOS, or another user's)"
    if users := len(thread.observations) - len(own):
        yield f"{users} kind{'s' * (users > 1)} of commands were left out: the user's own run in no sandbox"


def _observed(own: Sequence[SandboxObservation], thread: Thread) -> Got:
    """Return what commands had, each fact from the first observation that has it."""
    if not own:
        return Got()
    own_network = _first(each.own_network for each in own)
    return Got(
        network_flag=_first(each.network_flag for each in own),
        sandbox_flag=_first(each.sandbox_flag for each in own),
        seccomp=_first(each.seccomp for each in own),
        no_new_privs=_first(each.no_new_privs for each in own),
        network_namespace=None if own_network is None else "own" if own_network else "host",
        sandboxed=_first(each.sandboxed for each in own),
        at=own[0].last,
        source=own[0].source,
        under_earlier_policy=own[0].policy < len(thread.policies) - 1,
    )


def _first(values: Iterable[T | None]) -> T | None:
    """Return the first value that is known, or None."""
    return next((value for value in values if value is not None), None)


def _escalation(thread: Thread) -> str | None:
    """Return the newest escalation that was asked for, and its outcome."""
    for call in (*reversed(thread.open_calls), *reversed(thread.calls)):
        if call.escalation:
            is_outside = call.escalation.kind == "escalated"
            wish = "to leave the sandbox" if is_outside else "for more permissions"
            outcome = (call.outcome or "pending").replace("-", " ")
            return f"asked {wish} ({outcome})"
    return None


# ---------------------------------------------------------------- denials
# Those that stopped a thread, those that its policy cannot explain, and the ledger of all.

_QUOTED_CALLS: Final = 5
"""Newest calls that are quoted as evidence."""
_LISTED_CALLS: Final = 8
"""Newest calls that a finding lists."""
_Denied = tuple[Call, Denial]


def denial_findings(thread: Thread, state: State, places: PathFacts) -> Iterator[Finding]:
    """Yield findings about denied calls, except for those that the thread got past."""
    denied = [(call, call.denial) for call in thread.calls if call.denial]
    cannot_start = [(call, denial) for call, denial in denied if denial.what == "sandbox"]
    if cannot_start:
        _, newest = cannot_start[-1]
        yield _finding(
            thread,
            cannot_start,
            FindingKind.SANDBOX_CANNOT_START,
            "The sandbox itself could not be started: no command that needs it can run.",
            startup_remedy(newest.quote, thread.policy, places) if thread.agent == "codex" else None,
        )
    policies = {call.id: thread.policy_of(call) or Policy() for call, _ in denied}
    free = [(call, denial) for call, denial in denied if policies[call.id].is_full_access]
    # without marks of a sandbox the same words could be those of a firewall
    if free and any(map(_has_sandbox_mark, thread.observations)):
        is_flagged = any(observation.network_flag == "1" for observation in thread.observations)
        yield _finding(
            thread,
            free,
            FindingKind.DENIED_UNDER_FULL_ACCESS,
            "The policy is full access, and yet something that only a sandbox refuses was refused.",
            exclude_flags(places) if is_flagged else None,
        )
    last = next((each for each in reversed(denied) if stopping_denial(thread, each[0])), None)
    if state is State.BLOCKED_SANDBOX and last is not None and last not in cannot_start:
        call, denial = last
        target = f": it {may_not(denial.operation)} {denial.target}" if denial.target else ""
        script, policy = call.script or call.text, thread.policy_of(call)
        yield _finding(
            thread,
            [last],
            DENIAL_KINDS[denial.what],
            f"The last thing it tried was {'' if denial.is_certain else 'likely '}denied{target}.",
            remedy_for(denial, policy, places, script=script, by_mcp=call.is_mcp),
        )


def _has_sandbox_mark(observation: SandboxObservation) -> bool:
    """Return whether a command of the model carried a mark of a sandbox."""
    is_flagged = observation.network_flag == "1" or observation.sandbox_flag not in (None, UNSET)
    is_inside = observation.sandboxed or observation.nested or observation.own_network
    return not observation.by_user and bool(is_flagged or is_inside)


def _finding(
    thread: Thread, denied: Sequence[_Denied], kind: FindingKind, message: str, remedy: Remedy | None
) -> Finding:
    """Return one finding about denied calls, given oldest first."""
    last, newest = denied[-1]
    times = [call.ended_at or call.at for call, _ in denied]
    evidence = [
        Evidence(denial.source, at, kind, f"`{call.text}` -> {denial.quote}")
        for (call, denial), at in zip(denied, times, strict=True)
    ]
    return make_finding(
        kind,
        message,
        configured=policy_in_words(thread.policy_of(last)),
        got=newest.quote,
        since=times[0],
        last=times[-1],
        count=len(denied),
        evidence=evidence[-_QUOTED_CALLS:],
        remedy=remedy,
        calls=[call.id for call, _ in denied[-_LISTED_CALLS:]],
    )


def _ledger(thread: Thread, places: PathFacts) -> tuple[LedgerEntry, ...]:
    """Return the denial ledger of a thread, each entry with its remedy by the policy that was in force."""
    scripts = {call.id: call.script or call.text for call in thread.calls} if thread.denials else {}
    entries = []
    for entry in thread.denials:
        policy = thread.policies[entry.policy].policy if entry.policy >= 0 else None
        script = next((scripts[call] for call in reversed(entry.calls) if call in scripts), "")
        remedy = remedy_for(entry, policy, places, script=script, by_mcp=entry.by_mcp)
        entries.append(replace(entry, remedy=remedy))
    return tuple(entries)
