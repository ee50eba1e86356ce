"""The denial ledger of a thread, as it is shown: each entry with its remedy."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from agentdash.engine.judge.findings.remedies import remedy_for
from agentdash.model.denials import LedgerEntry, PathFacts
from agentdash.model.policy import Policy
from agentdash.model.thread import Thread


class _Judged(NamedTuple):
    """An entry with its remedy, and what that follows from besides the places."""

    entry: LedgerEntry
    policy: Policy | None
    script: str
    remedied: LedgerEntry


class Ledger:
    """Adds the remedies to one thread's ledger.

    An entry is judged again only where what its remedy follows from has changed: a call changes few entries,
    and whole ledgers of several snapshots would fill the memory.
    """

    def __init__(self) -> None:
        self._places: PathFacts | None = None
        self._judged: dict[tuple[str, str, str | None], _Judged] = {}

    def entries(self, thread: Thread, places: PathFacts) -> tuple[LedgerEntry, ...]:
        """Return the entries, each with its remedy by the policy that was in force."""
        before = self._judged if self._places is not None and self._places.is_same(places) else {}
        self._places, self._judged = places, {}
        scripts = {call.id: call.script or call.text for call in thread.calls} if thread.denials else {}
        for entry in thread.denials:
            policy = thread.policies[entry.policy].policy if entry.policy >= 0 else None
            script = next((scripts[call] for call in reversed(entry.calls) if call in scripts), "")
            key = entry.what, entry.operation, entry.target
            known = before.get(key)
            is_same = known is not None and known.entry is entry and known.policy is policy
            if known is None or not is_same or known.script != script:
                remedy = remedy_for(entry, policy, places, script=script, by_mcp=entry.by_mcp)
                known = _Judged(entry, policy, script, replace(entry, remedy=remedy))
            self._judged[key] = known
        return tuple(judged.remedied for judged in self._judged.values())
