"""Reduce the tool calls of a thread: what ran, how it ended, which denial and which sandbox its output
shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar

from msgspec.structs import asdict, replace

from agentdash.engine.detect import allowances, granted, may_connect, platform, restraints
from agentdash.engine.edits import add_edits, named_files
from agentdash.model import events as e
from agentdash.model.denials import Denial, LedgerEntry, stable_target
from agentdash.model.evidence import EvidenceSource
from agentdash.model.limits import MAX_CALLS, MAX_MOMENTS
from agentdash.model.observation import Applied, SandboxObservation
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import THREAD_AGENTS
from agentdash.model.secrets import mask_beginning
from agentdash.model.thread import Call, Moment, Thread
from agentdash.model.versions import is_before
from agentdash.sandbox.denials import find_denials
from agentdash.sandbox.flags import Flags, read_flags

MAX_OBSERVATIONS: Final = 64
"""Distinct observations kept of a thread; equal ones are counted, so few threads have more than five."""
_MAX_VIOLATIONS: Final = 50
"""Logged violations kept of a thread: each is matched with a call, and no more calls matter at
once."""
_MAX_REFUSAL_CHARS: Final = 300
"""Characters kept of what a refused call was told."""
_MAX_RECENT: Final = 8
"""Call ids and pids kept of an observation or a denial, and calls of a thread that drive tmux."""
_MAX_DENIALS: Final = 200
"""Distinct denials kept of a thread, the newest; how many were dropped is counted."""
_UNSTATED_SANDBOX: Final = Policy(Filesystem.READ_ONLY, Network.UNKNOWN, (PolicyRule("/", "read"),))
"""Policy assumed for rollouts that state none, where Codex itself reports that its sandbox denied a command
(up to 0.36)."""
_FIRST_BUBBLEWRAP: Final = (0, 125)
"""The first Codex that builds its sandbox on Linux by bubblewrap; later ones know Landlock on request."""
_UNAMBIGUOUS_REASON: Final = "read_only_file_system"
"""The only filesystem `reason` in Codex's log that an ordinary failure cannot cause."""
_NOT_PERMITTED: Final = re.compile(r"operation not permitted|\bEPERM\b", re.IGNORECASE)
_PRINTED_HOME: Final = re.compile(r'^(?:declare -x )?HOME="?(/[^\s"]+?)/?"?$', re.MULTILINE)
_confinement: Final = attrgetter("policy", "source", "sandboxed", "seccomp", "no_new_privs", "own_network")
"""What the kernel shows of an observation, beside the flags."""
_T = TypeVar("_T")


def start_call(thread: Thread, event: e.CallStarted) -> Thread:
    """Add an open call; the model has answered by making it."""
    thread = drop_calls_without_output(thread, event.at)
    call = Call.started(event, thread.cwd)
    call = replace(call, edits=named_files(event, call.cwd))
    others = (other for other in thread.open_calls if other.id != call.id)
    turn = thread.turn
    if turn is not None and turn.ended_at is None:
        turn = replace(turn, answered=True, unanswered=0, message=None)
    thread = replace(thread, open_calls=(*others, call)[-MAX_CALLS:], turn=turn)
    if event.kind == "command" and "tmux" in event.text:
        thread = replace(thread, tmux=_append_recent(thread.tmux, (event.call,)))
    if event.kind == "poll":
        return thread
    return add_moment(thread, Moment(at=event.at, kind="call", text=event.text, call=event.call))


def end_call(thread: Thread, event: e.CallEnded, home: str | None = None) -> Thread:
    """Move a call to the ended ones, with what its output shows; a background command ends a second time.

    Args:
        thread: before.
        event: how the call ended.
        home: the home directory of the thread's commands, where it is known.
    """
    known = thread.find_call(event.call)
    if known is None:  # its start was in a part of the file that was not read
        known = Call(id=event.call, at=event.at, line=event.line, kind="other", tool="", text="")
    refusal = event.output.strip() if event.outcome.startswith("refused") else ""
    ended = replace(
        known,
        ended_at=event.at,
        outcome=event.outcome,
        exit_code=event.exit_code,
        output=mask_beginning(refusal, _MAX_REFUSAL_CHARS),
        session=event.session or known.session,
        sandboxed=known.sandboxed if event.sandboxed is None else event.sandboxed,
        allowed_by=event.allowed_by or known.allowed_by,
        denials=_detect_denials(thread, known, event, home) or _logged_denials(thread.violations, known.id),
    )
    others = thread.calls if known.ended_at is None else [c for c in thread.calls if c is not known]
    thread = replace(
        thread,
        open_calls=tuple(c for c in thread.open_calls if c.id != ended.id),
        calls=(*others, ended)[-MAX_CALLS:],
    )
    thread = add_edits(record_denials(thread, ended, event.at), ended, event)
    if thread.platform is None:
        thread = replace(thread, platform=platform(event.output))
    if known.kind == "poll":
        return _add_poll(thread, event, home)
    if known.kind != "command":
        return thread
    if "HOME=/" in event.output and (printed := _PRINTED_HOME.search(event.output)) is not None:
        thread = replace(thread, home=printed[1])
    thread = _observe_output(thread, known, event)
    if event.sandboxed is not None:
        record = _observed(
            thread,
            known,
            event.at,
            source=EvidenceSource.TRANSCRIPT,
            granted=granted(thread, known),
            recorded=event.sandboxed,
            approved=event.allowed_by == "person",
            quote=event.sandbox_words
            or f'"sandboxed": {str(event.sandboxed).lower()} in the record of its result',
        )
        thread = add_observation(thread, record)
    return _observe_effect(thread, ended, event.output)


def _add_poll(thread: Thread, event: e.CallEnded, home: str | None) -> Thread:
    """Add the denials that a poll shows of a command that goes on; its end settles them."""
    running = (c for c in reversed(thread.calls) if c.session == event.session and c.outcome == "running")
    command = next((c for c in running if c.kind == "command"), None)
    if command is None:
        return thread
    denials = _detect_denials(thread, command, replace(event, exit_code=None), home)
    if not denials:
        return thread
    return _deny(thread, command, tuple(dict.fromkeys((*command.denials, *denials))), event.at)


def _deny(thread: Thread, call: Call, denials: tuple[Denial, ...], at: float) -> Thread:
    """Give the denials to a call that has ended, and to the ledger."""
    denied = replace(call, denials=denials)
    calls = tuple(denied if each is call else each for each in thread.calls)
    return record_denials(replace(thread, calls=calls), denied, at)


def abort_open_calls(thread: Thread, at: float) -> Thread:
    """End the calls that a turn left open: they get no answer any more. Background commands have ended
    entries already."""
    aborted = (replace(call, ended_at=at, outcome="aborted") for call in thread.open_calls)
    return replace(thread, open_calls=(), calls=(*thread.calls, *aborted)[-MAX_CALLS:])


def drop_calls_without_output(thread: Thread, at: float) -> Thread:
    """End the open calls that the model has not waited for, where it gives something new.

    It goes on when all its parallel calls have ended; files without turn marks lack the output of some.
    """
    turn, newest = thread.turn, thread.calls[-1] if thread.calls else None
    if turn is None or not turn.inferred or newest is None:
        return thread
    over = [c for c in thread.open_calls if c.line < newest.line or c.at < (newest.ended_at or 0.0)]
    kept = tuple(call for call in thread.open_calls if call not in over)
    return replace(abort_open_calls(replace(thread, open_calls=tuple(over)), at), open_calls=kept)


def add_violation(thread: Thread, event: e.ViolationLogged) -> Thread:
    """Add a logged violation; the log is later than the end of the call, which gets the denial unless it has
    one."""
    if event in thread.violations:
        return thread
    thread = replace(thread, violations=(*thread.violations, event)[-_MAX_VIOLATIONS:])
    call = next((c for c in thread.calls if c.id == event.call and not c.denials), None)
    return _deny(thread, call, _logged_denials((event,), call.id), event.at) if call else thread


def add_observation(thread: Thread, new: SandboxObservation) -> Thread:
    """Add an observation; one that equals an earlier one is counted there, with the quote of the first."""
    shown = without_occasions(new)
    old = next((each for each in thread.observations if without_occasions(each) == shown), None)
    if old is None:
        return replace(thread, observations=drop_commonest((*thread.observations, new)))
    is_same_process = bool(new.pids) and new.pids[0] in old.pids
    merged = replace(
        old,
        last=max(old.last, new.last),
        count=old.count + (not is_same_process),
        calls=_append_recent(old.calls, new.calls),
        pids=_append_recent(old.pids, new.pids),
    )
    others = (each for each in thread.observations if each is not old)
    return replace(thread, observations=(*others, merged))


def drop_commonest(observations: Sequence[SandboxObservation]) -> tuple[SandboxObservation, ...]:
    """Return the observations without the oldest of the commonest, where there are too many: flags are what a
    worker makes of them, and a flood of these must not push out what the kernel showed of another command."""
    kept = list(observations)
    while len(kept) > MAX_OBSERVATIONS:
        commonest, _ = Counter(map(_confinement, kept)).most_common(1)[0]
        del kept[next(index for index, each in enumerate(kept) if _confinement(each) == commonest)]
    return tuple(kept)


def add_moment(thread: Thread, moment: Moment) -> Thread:
    """Append an entry to the timeline."""
    return replace(thread, moments=(*thread.moments, moment)[-MAX_MOMENTS:])


def _append_recent(old: tuple[_T, ...], new: tuple[_T, ...]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys((*old, *new)))[-_MAX_RECENT:]


def _detect_denials(thread: Thread, call: Call, event: e.CallEnded, home: str | None) -> tuple[Denial, ...]:
    if thread.agent not in THREAD_AGENTS:  # chats of other CLIs state no sandbox
        return ()
    # of other tools only MCP servers run programs: what children and documents say is prose
    if call.by_user or not (call.kind in ("command", "patch") or call.is_mcp or not call.tool):
        return ()
    policy = thread.policy_of(call)
    if policy is None and event.outcome == "denied":
        policy = _UNSTATED_SANDBOX
    if event.sandboxed is False:
        return ()
    found = find_denials(
        call.script or call.text,
        event.output,
        exit_code=event.exit_code,
        outcome=event.outcome,
        policy=policy,
        cwd=call.cwd,
        home=home,
        landlock=_has_landlock(thread),
        seatbelt=thread.platform != "linux",
        tool="command" if call.kind == "command" else call.tool,
    )
    allowed = granted(thread, call) if found else None
    # "denied" by Codex itself: then it ran inside in spite of a rule
    if allowed == "outside" or (allowed == "rule" and event.outcome != "denied"):
        return ()
    if call.script or call.text:
        return found
    # what ran is in a part of the file that was not read: it may have shown a text
    return tuple(replace(denial, certainty="likely") for denial in found)


def _has_landlock(thread: Thread) -> bool:
    """Return whether the sandbox of a thread's commands can be Landlock: Linux, before bubblewrap (0.125)."""
    if thread.platform == "darwin":
        return False
    return is_before(thread.version, _FIRST_BUBBLEWRAP) is not False


def _logged_denials(violations: tuple[e.ViolationLogged, ...], call: str) -> tuple[Denial, ...]:
    """Return the denial of a call that Codex has logged."""
    logged = next((violation for violation in reversed(violations) if violation.call == call), None)
    if logged is None:
        return ()
    # network violations come from Codex's own proxy, those of files from the words of a failed command
    certain = logged.resource == "network" or logged.reason == _UNAMBIGUOUS_REASON
    return (
        Denial(
            what=logged.resource,
            operation="connect" if logged.resource == "network" else "write",
            certainty="certain" if certain else "likely",
            quote=(
                f"recorded sandbox violation: resource={logged.resource} reason={logged.reason}"
                f" path={logged.path} host={logged.host}"
            ),
            target=logged.path or logged.host,
            source=EvidenceSource.CODEX_LOG,
        ),
    )


def _observe_output(thread: Thread, call: Call, event: e.CallEnded) -> Thread:
    """Add what the command printed of its own environment and kernel restraints, and its launcher."""
    kernel, launcher, shown = restraints(call.script, event.output), event.launcher, Flags()
    if thread.agent == "codex":  # flags that other CLIs do not set are inherited
        shown = read_flags(
            call.script,
            event.output,
            shell=call.shell,
            exit_code=event.exit_code,
            truncated=event.outcome in ("running", "aborted", "timed-out"),
        )
    if not shown and not kernel.quote and launcher is None:
        return thread
    printed = f"process 1 is {launcher.name}" if launcher else ""
    observation = _observed(
        thread,
        call,
        event.at,
        **allowances(thread, call),
        network_flag=shown.network,
        sandbox_flag=shown.sandbox,
        seccomp=kernel.seccomp,
        no_new_privs=kernel.no_new_privs,
        # each sandbox of Codex on Linux sets no_new_privs; what set it cannot be read from it
        sandboxed=True if launcher else False if kernel == (0, False) else None,
        applied=Applied(launcher.name, launcher.policy) if launcher else None,
        quote="; ".join(filter(None, (shown.quote, kernel.quote, printed))),
    )
    return add_observation(thread, observation)


def _observed(thread: Thread, call: Call, at: float, **facts: Any) -> SandboxObservation:
    """Return what was observed at a call: by its output and its policy, unless `facts` says otherwise."""
    index = thread.policy_index_of(call)
    usual = {"source": EvidenceSource.OUTPUT, "policy": index, "first": at, "last": at, "calls": (call.id,)}
    return SandboxObservation(**{**usual, **facts})


def _observe_effect(thread: Thread, call: Call, output: str) -> Thread:
    """Add what became of an access that the policy decides: its sandbox refused it, or a host answered."""
    script = call.script or call.text
    if not (call.denials or may_connect(script)):
        return thread
    policy, allowed = thread.policy_of(call), granted(thread, call)
    if thread.agent != "codex" or policy is None or call.by_user or call.outcome == "running":
        return thread
    refused = next((each for each in call.denials if _is_sandboxs(thread, policy, each)), None)
    host = None
    if not call.denials and allowed != "more":
        # one-shot commands start faster without the grammar
        from agentdash.sandbox.denials.network import reached_host  # noqa: PLC0415

        host = reached_host(script, output, call.cwd)
    facts: dict[str, Any] = {}
    if refused is not None and allowed is None:
        facts = {"effect": "refused", "quote": refused.quote}
    elif host is not None and allowed is None and policy.network in (Network.ON, Network.OFF):
        facts = {"effect": "reached", "quote": host[1]}
    elif host is not None and allowed == "outside" and (inside := _unresolved(thread, host[0])):
        # outside the sandbox the same host answers: it was the sandbox that kept the command from it
        quote = f"{inside.quote}; outside: {host[1]}"
        facts = {"effect": "refused", "quote": quote, "policy": inside.policy}
    if not facts:
        return thread
    return add_observation(thread, _observed(thread, call, call.ended_at or call.at, **facts))


def _is_sandboxs(thread: Thread, policy: Policy, denial: Denial) -> bool:
    """Return whether only the sandbox of a command can have refused this, no firewall and no file mode."""
    if not denial.is_certain or not policy.has_agent_sandbox:
        return False
    if denial.what == "filesystem":
        is_bubblewrap = thread.platform == "linux" and not _has_landlock(thread)
        return is_bubblewrap and "Read-only file system" in denial.quote
    is_refusal = _NOT_PERMITTED.search(denial.quote) is not None
    return denial.what == "network" and policy.network is Network.OFF and is_refusal


def _unresolved(thread: Thread, host: str) -> LedgerEntry | None:
    """Return the denial of a host that a command of this thread could not reach."""
    entries = (entry for entry in thread.denials if entry.what == "network" and entry.target == host)
    return next((entry for entry in entries if entry.policy == len(thread.policies) - 1), None)


def without_occasions(observation: SandboxObservation) -> SandboxObservation:
    """Return what was observed, without when and in which calls and processes."""
    return replace(observation, first=0.0, last=0.0, count=0, calls=(), pids=(), quote="")


# ------------------------------------------------------------
# The denial ledger of a thread: everything its sandbox refused, got past or not


def record_denials(thread: Thread, call: Call, at: float) -> Thread:
    """Enter the denials of a call that has ended, and mark those that it got past.

    Args:
        thread: its ledger is that before the call.
        call: with its outcome and its denials.
        at: when it ended (unix seconds).
    """
    entries = thread.denials
    if not entries and not call.denials:  # as good as always: looking through the calls takes longer
        return thread
    for denial in call.denials:
        entries = _enter(entries, denial, call, at=at, policy=thread.policy_index_of(call))
    # without those that rest only on what the call had printed while it ran, and its end explains
    entries = tuple(
        entry
        for entry in entries
        if entry.calls != (call.id,) or any(_is_same(entry, denial) for denial in call.denials)
    )
    if call.kind in ("command", "patch") and call.exit_code in (0, None) and call.outcome == "ended":
        entries = tuple(_after_success(entries, thread, call))
    if entries is thread.denials:
        return thread
    dropped = max(0, len(entries) - _MAX_DENIALS)
    return replace(thread, denials=entries[-_MAX_DENIALS:], denials_dropped=thread.denials_dropped + dropped)


def _enter(
    entries: tuple[LedgerEntry, ...], denial: Denial, call: Call, *, at: float, policy: int
) -> tuple[LedgerEntry, ...]:
    """Add a denial; one of the same operation and target, random names apart, is counted, and moves to the
    end."""
    new = LedgerEntry(
        **asdict(denial),
        first=at,
        last=at,
        calls=(call.id,),
        policy=policy,
        by_mcp=call.is_mcp,
        # the program that was denied warned of it, and ended well all the same
        got_past=call.exit_code == 0 and call.outcome == "ended" and denial.is_aside,
    )
    old = next((each for each in entries if each.operation == new.operation and _is_same(each, denial)), None)
    if old is None:
        return (*entries, new)
    merged = replace(
        new,
        certainty="certain" if "certain" in (old.certainty, new.certainty) else "likely",
        first=old.first,
        last=max(old.last, at),
        count=old.count + (call.id not in old.calls),
        calls=_append_recent(old.calls, new.calls),
    )
    return (*(each for each in entries if each is not old), merged)


def _after_success(entries: Iterable[LedgerEntry], thread: Thread, call: Call) -> Iterator[LedgerEntry]:
    """Yield the entries; those of the same command are got past."""
    script = call.script or call.text
    scripts = {other.id: other.script or other.text for other in thread.calls if other.denials}
    for entry in entries:
        is_open = not entry.got_past and call.id not in entry.calls
        is_denied_again = any(_is_same(entry, denial) for denial in call.denials)
        is_repeated = any(scripts.get(other) == script for other in entry.calls)
        yield replace(entry, got_past=True) if is_open and is_repeated and not is_denied_again else entry


def _is_same(entry: LedgerEntry, denial: Denial) -> bool:
    if entry.what != denial.what:
        return False
    return entry.target == denial.target or stable_target(entry.target) == stable_target(denial.target)
