"""Which workers need the user: the one judgement for header, list, documents, notifications and `wait`.

A worker needs the user while it waits, is blocked or has failed, and its process, lock or pane lives; without
these, only if it ended so, or in the middle of a turn, since the user last looked. An acknowledged state
does not need the user until it changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from agentdash.model.fact import Fact, FactKind
from agentdash.model.policy import Policy
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import mask_secrets
from agentdash.model.states import (
    NEEDS_YOU,
    Acknowledgement,
    Bookmark,
    Group,
    KnownFinding,
    State,
    fact_digest,
    group_of_state,
)
from agentdash.model.thread import Thread
from agentdash.model.times import local_time
from agentdash.model.worker import Assessment, Worker

_NEVER_LOOKED_S: Final = 3_600.0
"""Without any earlier look: what ended within so long is not past yet. A meeting, a lunch break."""
_LIMIT_ERRORS: Final = ("usage_limit_exceeded", "rate_limit")
"""Kinds of errors of Codex and of Claude Code that a used-up limit has."""
_LONGEST_ABSENCE_S: Final = 7 * 86_400.0
"""What ended longer ago is past, even without a look since."""


class Standing(NamedTuple):
    """Where a worker stands in the list."""

    group: Group
    due: float | None = None
    """When it becomes past without any event (unix seconds)."""


def judge_attention(
    assessment: Assessment,
    *,
    is_held: bool,
    looked_at: float | None,
    acknowledgement: Acknowledgement | None,
    now: float,
    limited_until: float | None = None,
) -> Standing:
    """Return the group of a worker. One that a usage limit has stopped does not need the user before that is
    reset.

    Args:
        assessment: its state, as it is shown.
        is_held: whether a process, a lock or a pane holds it, or may.
        looked_at: when the user last looked (unix seconds); None: never.
        acknowledgement: the newest one of this worker.
        now: unix seconds.
        limited_until: when that limit is reset (unix seconds); None: there is none.
    """
    state, since, fact = assessment.state, assessment.since or 0.0, assessment.fact
    last_look = now - _NEVER_LOOKED_S if looked_at is None else looked_at
    due = None
    if not is_held:
        if since <= max(last_look, now - _LONGEST_ABSENCE_S):
            return Standing(Group.PAST)
        due = since + (_NEVER_LOOKED_S if looked_at is None else _LONGEST_ABSENCE_S)
    if limited_until is not None and now < limited_until:
        return Standing(Group.DONE, min(limited_until, due or limited_until))
    crashed = state is State.EXITED and fact is not None and fact.kind is FactKind.CRASHED
    if state not in NEEDS_YOU and not crashed:
        return Standing(group_of_state(state), due)
    return Standing(Group.DONE if _is_acknowledged(assessment, acknowledgement) else Group.NEEDS_YOU, due)


def _is_acknowledged(assessment: Assessment, known: Acknowledgement | None) -> bool:
    """Return whether this very state was acknowledged, and not an earlier one of the same kind."""
    if known is None or known.state is not assessment.state or (assessment.since or 0.0) > known.at:
        return False
    return assessment.fact is None or not known.fact or known.fact == fact_digest(assessment.fact)


# ------------------------------------------------------------
# Workers that a usage limit has stopped: until when, and what is said of it


def limited_until(thread: Thread, assessment: Assessment) -> float | None:
    """Return when the usage limit is reset that a thread has stopped at (unix seconds); None where none has
    stopped it, or the time is not stated."""
    turn = thread.turn
    if assessment.state is not State.FAILED_PROVIDER or turn is None:
        return None
    if turn.error is not None and turn.error_kind not in _LIMIT_ERRORS:
        return None
    used_up = (each for each in thread.tokens.limits if each.used >= 100 and each.at >= turn.since)
    return max((each.resets_at for each in used_up if each.resets_at is not None), default=None)


def with_limit(assessment: Assessment, until: float, now: float) -> Assessment:
    """Return the assessment of a worker that a limit has stopped, with words that say when that is reset, or
    was (both times unix seconds)."""
    before = assessment.fact or Fact(FactKind.PROVIDER, "", assessment.why)
    clock = local_time(until, now)
    if now < until:
        fact = replace(before, what=f"limited until {clock}:")
        return replace(assessment, fact=fact, why=f"limited until {clock}: {before.object}")
    fact = replace(before, what=f"its limit was reset at {clock}, it still stands:")
    return replace(assessment, since=until, fact=fact, why=f"{fact.what} {before.object}")


# ------------------------------------------------------------
# Findings that the user knows of


def known_findings(worker: Worker, kinds: Iterable[str], at: float) -> list[KnownFinding]:
    """Return these kinds of findings as known in the directory of a worker, under its policy.

    Args:
        at: when the user marked them (unix seconds).
    """
    policy = worker.sandbox.configured
    words, digest = policy.brief() if policy else "", _policy_digest(policy)
    return [KnownFinding(kind, worker.place, words, digest, at) for kind in dict.fromkeys(kinds)]


def known_kinds(worker: Worker, known: Iterable[KnownFinding]) -> tuple[str, ...]:
    """Return the kinds of a worker's findings that the user knows of."""
    if not worker.sandbox.findings or not worker.place:
        return ()
    here = [each for each in known if each.directory == worker.place]
    digest = _policy_digest(worker.sandbox.configured) if here else ""
    kinds = {each.kind for each in here if each.policy_digest == digest}
    return tuple(dict.fromkeys(each.kind for each in worker.sandbox.findings if each.kind in kinds))


def _policy_digest(policy: Policy | None) -> str:
    return hashlib.blake2b(msgspec.json.encode(policy), digest_size=6).hexdigest()


# ------------------------------------------------------------
# Labels and pins


NO_SESSION: Final = "When its session began is not known: it could not be told from the next one in its pane."
_MAX_LABEL_CHARS: Final = 80
_CLOCK_SLACK_S: Final = 2.0
"""Start times of processes are counted from the boot, whose time moves with the clock."""


def bookmark_of(worker: Worker, label: str, *, pinned: bool) -> Bookmark | None:
    """Return the bookmark of a session; None where the session cannot be told from the next in its pane."""
    has_own_id = worker.kind in ("codex-thread", "claude-session")
    if not has_own_id and worker.started is None:
        return None
    started = None if has_own_id else worker.started
    return Bookmark(worker.id, started, mask_secrets(clean_line(label.strip(), _MAX_LABEL_CHARS)), pinned)


def is_of(bookmark: Bookmark, worker: Worker) -> bool:
    """Return whether a bookmark was given to the session that a worker of its id has now."""
    if bookmark.started is None:
        return True
    return worker.started is not None and abs(worker.started - bookmark.started) <= _CLOCK_SLACK_S
