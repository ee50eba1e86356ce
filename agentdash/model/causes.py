"""Findings grouped by their cause: several kinds may show one and the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from agentdash.model.findings import FINDING_KINDS, SEVERITIES, Finding, FindingKind
from agentdash.model.layers import NO_SANDBOX, LayerField
from agentdash.model.states import State
from agentdash.model.worker import Worker

_BLOCKERS: Final = frozenset(
    (FindingKind.DENIED_FILESYSTEM, FindingKind.DENIED_NETWORK, FindingKind.SANDBOX_CANNOT_START)
)
"""Kinds of the finding that a blocked worker is blocked by."""


_LED: Final[dict[FindingKind, tuple[FindingKind, ...]]] = {
    FindingKind.FILESYSTEM_WIDER: (FindingKind.NETWORK_OPEN, FindingKind.MISSING_NETWORK_FLAG),
    FindingKind.NETWORK_CUT: (FindingKind.CHILD_GOT_LESS,),
    FindingKind.STALE_NETWORK_FLAG: (FindingKind.FOREIGN_SANDBOX_FLAG, FindingKind.CHILD_GOT_LESS),
    FindingKind.CHILD_POLICY_DRIFT: (FindingKind.REVIEWER_DRIFT,),
    FindingKind.NESTED_SANDBOX: (FindingKind.DENIED_UNDER_FULL_ACCESS,),
}
"""Kinds that one of the first kind explains; without it they have causes of their own."""
_NO_SANDBOX: Final = "no sandbox"
_WORDS_OF_GROUPS: Final = {
    FindingKind.FILESYSTEM_WIDER: _NO_SANDBOX,
    FindingKind.STALE_NETWORK_FLAG: "inherited flags",
}
"""What a leading kind is called together with what it explains, where that differs."""


class Cause(NamedTuple):
    """What is wrong with one worker's sandbox, and the findings that show it."""

    words: str
    """`no sandbox`, `write denied`."""
    findings: tuple[Finding, ...]
    """The worst first."""
    blocks: bool = False
    """Whether the worker is blocked by it."""
    is_known: bool = False
    """Whether the user has marked all of it as known."""

    @property
    def worst(self) -> Finding:
        """Return the worst finding."""
        return self.findings[0]

    @property
    def kinds(self) -> tuple[FindingKind, ...]:
        """Return the kinds of the findings, each once."""
        return tuple(dict.fromkeys(finding.kind for finding in self.findings))

    @property
    def last(self) -> float:
        """Return when it was observed last (unix seconds)."""
        return max(finding.last for finding in self.findings)

    @property
    def rank(self) -> tuple[bool, bool, int, float]:
        """Return the sort key: what is known comes last, what blocks first, then the most severe, then the
        newest."""
        return self.is_known, not self.blocks, SEVERITIES.index(self.worst.severity), -self.last


def causes(worker: Worker) -> list[Cause]:
    """Return the causes of a worker's findings, the one that blocks it first, then the worst."""
    left = list(worker.sandbox.findings)
    found = []
    for leader, led in _LED.items():
        group = [finding for finding in left if finding.kind in (leader, *led)]
        if len(group) > 1 and any(finding.kind is leader and _leads(finding) for finding in group):
            found.append(_cause(_WORDS_OF_GROUPS.get(leader, FINDING_KINDS[leader].words), group))
            left = [finding for finding in left if finding not in group]
    found += [_cause(_words(finding), [finding]) for finding in left]
    blocker = _blocker(worker, found)
    known = frozenset(worker.known)
    found = [
        cause._replace(blocks=cause is blocker, is_known=known.issuperset(cause.kinds)) for cause in found
    ]
    return sorted(found, key=lambda cause: cause.rank)


def ranked_findings(worker: Worker) -> list[Finding]:
    """Return the findings in the order of their causes."""
    return [finding for cause in causes(worker) for finding in cause.findings]


def _cause(words: str, findings: Iterable[Finding]) -> Cause:
    worst_first = sorted(findings, key=lambda each: (SEVERITIES.index(each.severity), -each.last))
    return Cause(words, tuple(worst_first))


def _leads(finding: Finding) -> bool:
    """Return whether a finding explains others; of wider files, only no sandbox at all does."""
    return finding.kind is not FindingKind.FILESYSTEM_WIDER or _words(finding) == _NO_SANDBOX


def _words(finding: Finding) -> str:
    has_none = any(field.name is LayerField.FILES and field.actual == NO_SANDBOX for field in finding.fields)
    if finding.kind is FindingKind.FILESYSTEM_WIDER and has_none:
        return _NO_SANDBOX
    return FINDING_KINDS[finding.kind].words


def _blocker(worker: Worker, found: Sequence[Cause]) -> Cause | None:
    """Return the newest cause among those that can block a worker, if it is blocked."""
    if worker.state is not State.BLOCKED_SANDBOX:
        return None
    blockers = [cause for cause in found if cause.worst.kind in _BLOCKERS]
    return max(blockers, key=lambda cause: cause.last, default=None)
