"""Keep the denial ledger of a thread: everything its sandbox refused, got past or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from agentdash.model.denials import Denial, LedgerEntry, stable_target
from agentdash.model.thread import Call, Thread

_MAX_ENTRIES: Final = 200
"""Distinct denials kept of a thread, the newest; how many were dropped is counted."""
_MAX_CALLS: Final = 8
"""Call ids kept of an entry, the newest."""


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
    entries = tuple(entry for entry in entries if not _is_taken_back(entry, call))
    if _succeeded(call):
        entries = tuple(_after_success(entries, thread, call))
    if entries is thread.denials:
        return thread
    dropped = max(0, len(entries) - _MAX_ENTRIES)
    return replace(thread, denials=entries[-_MAX_ENTRIES:], denials_dropped=thread.denials_dropped + dropped)


def _enter(
    entries: tuple[LedgerEntry, ...], denial: Denial, call: Call, *, at: float, policy: int
) -> tuple[LedgerEntry, ...]:
    """Add a denial; one of the same operation and target, random names apart, is counted, and moves to the
    end."""
    for index, old in enumerate(entries):
        if old.operation != denial.operation or not _is_same(old, denial):
            continue
        merged = replace(
            old,
            target=denial.target,
            certainty="certain" if "certain" in (old.certainty, denial.certainty) else "likely",
            quote=denial.quote,
            source=denial.source,
            last=max(old.last, at),
            count=old.count + (call.id not in old.calls),
            calls=tuple(dict.fromkeys((*old.calls, call.id)))[-_MAX_CALLS:],
            policy=policy,
            by_mcp=call.is_mcp,
            got_past=_is_settled(denial, call),
        )
        return (*entries[:index], *entries[index + 1 :], merged)
    entry = LedgerEntry(
        what=denial.what,
        operation=denial.operation,
        target=denial.target,
        certainty=denial.certainty,
        quote=denial.quote,
        first=at,
        last=at,
        calls=(call.id,),
        nested=denial.nested,
        policy=policy,
        source=denial.source,
        by_mcp=call.is_mcp,
        got_past=_is_settled(denial, call),
    )
    return (*entries, entry)


def _is_taken_back(entry: LedgerEntry, call: Call) -> bool:
    """Return whether an entry rests only on what a call had printed while it ran, and its end explains."""
    return entry.calls == (call.id,) and not any(_is_same(entry, denial) for denial in call.denials)


def _is_settled(denial: Denial, call: Call) -> bool:
    """Return whether the program that was denied warned of it, and ended well all the same."""
    return call.exit_code == 0 and call.outcome == "ended" and denial.is_aside


def _succeeded(call: Call) -> bool:
    return call.kind in ("command", "patch") and call.exit_code in (0, None) and call.outcome == "ended"


def _after_success(entries: Iterable[LedgerEntry], thread: Thread, call: Call) -> Iterator[LedgerEntry]:
    """Yield the entries; those of the same command are got past."""
    script, scripts = call.script or call.text, _denied_scripts(thread)
    for entry in entries:
        is_open = not entry.got_past and call.id not in entry.calls
        is_denied_again = any(_is_same(entry, denial) for denial in call.denials)
        is_repeated = any(scripts.get(other) == script for other in entry.calls)
        yield replace(entry, got_past=True) if is_open and is_repeated and not is_denied_again else entry


def _denied_scripts(thread: Thread) -> dict[str, str]:
    """Return the scripts of calls with denials, by the ids of these."""
    return {call.id: call.script or call.text for call in thread.calls if call.denials}


def _is_same(entry: LedgerEntry, denial: Denial) -> bool:
    if entry.what != denial.what:
        return False
    return entry.target == denial.target or stable_target(entry.target) == stable_target(denial.target)
