"""The cells of the matrix: what findings name, and what was observed without one. Pure; compares nothing."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from agentdash.model.causes import causes
from agentdash.model.findings import SEVERITIES, Finding, FindingKind
from agentdash.model.layers import LayerField
from agentdash.model.reach import Reach
from agentdash.model.worker import Worker
from agentdash.tui.primitives.spans import Span, Tone
from agentdash.tui.theme import SEVERITY_TONES, Glyphs


class Aspect(StrEnum):
    """A column of the matrix. The values are the column heads."""

    FILES = "files"
    NETWORK = "network"
    FLAG = "flag"
    SEATBELT = "seatbelt"
    PARENT = "parent"
    TMUX = "tmux"
    ESCALATION = "escalation"
    REACH = "reach"


SHORT_HEADS: Final = {aspect: aspect.value[:3] for aspect in Aspect}
"""Heads of narrow columns."""
MEANINGS: Final = {
    Aspect.FILES: "what may be written, and whether there is a sandbox",
    Aspect.NETWORK: "whether commands reach the network",
    Aspect.FLAG: "CODEX_SANDBOX_NETWORK_DISABLED",
    Aspect.SEATBELT: "CODEX_SANDBOX",
    Aspect.PARENT: "against its parent",
    Aspect.TMUX: "what runs through tmux",
    Aspect.ESCALATION: "commands that were let out",
    Aspect.REACH: "what commands could write, read or connect to now",
}
_ASPECT_OF_FIELD: Final = {
    LayerField.FILES: Aspect.FILES,
    LayerField.SECCOMP: Aspect.FILES,
    LayerField.NETWORK: Aspect.NETWORK,
    LayerField.NETWORK_FLAG: Aspect.FLAG,
    LayerField.SANDBOX_FLAG: Aspect.SEATBELT,
    LayerField.TMUX: Aspect.TMUX,
    LayerField.APPROVAL: Aspect.ESCALATION,
    LayerField.REVIEWER: Aspect.ESCALATION,
}
_ASPECT_OF_REFERENCE: Final = {"parent": Aspect.PARENT, "allowed": Aspect.ESCALATION}
"""Where what was compared decides, not the field."""
_ASPECT_OF_DENIAL: Final = {
    FindingKind.DENIED_FILESYSTEM: Aspect.FILES,
    FindingKind.DENIED_UNDER_FULL_ACCESS: Aspect.FILES,
    FindingKind.SANDBOX_CANNOT_START: Aspect.FILES,
    FindingKind.DENIED_NETWORK: Aspect.NETWORK,
}
_DENIED: Final = ("⊘", "#")
_AGREES: Final = "="
_REACHES: Final = "!"
_MAY_REACH: Final = "?"
_NOTHING: Final = ("·", ".")


class MatrixCell(NamedTuple):
    """What is known of one aspect of one worker."""

    findings: tuple[Finding, ...] = ()
    """The worst first."""
    observed: bool = False
    """Whether it was observed under the policy in force."""
    reach: Reach | None = None
    """Of the aspect of that name: what it reaches; None: not looked at."""

    def sign(self, glyphs: Glyphs, *, ascii_only: bool) -> Span:
        """Return the one sign of the cell."""
        if self.reach is not None:
            return _reach_sign(self.reach, ascii_only=ascii_only)
        if not self.findings:
            if self.observed:
                return Span(_AGREES, "ready")
            return Span(_NOTHING[ascii_only], "rule")
        worst = self.findings[0]
        if worst.kind in _ASPECT_OF_DENIAL:
            return Span(_DENIED[ascii_only], "stuck")
        return Span(glyphs.directions[worst.direction], SEVERITY_TONES[worst.severity])


def _reach_sign(reach: Reach, *, ascii_only: bool) -> Span:
    certainties = {each.certainty for each in reach.targets}
    if "can" in certainties:
        return Span(_REACHES, "stuck")
    if "may" in certainties:
        return Span(_MAY_REACH, "mismatch")
    return Span(_NOTHING[ascii_only], "rule") if "unknown" in certainties else Span(_AGREES, "ready")


class MatrixRow(NamedTuple):
    """One worker."""

    worker: Worker
    cells: dict[Aspect, MatrixCell]


def aspects(finding: Finding) -> list[Aspect]:
    """Return the aspects that a finding is about; none for a change of policy, which compares times."""
    if finding.kind in _ASPECT_OF_DENIAL:
        return [_ASPECT_OF_DENIAL[finding.kind]]
    found = (
        _ASPECT_OF_REFERENCE.get(field.reference) or _ASPECT_OF_FIELD[field.name]
        for field in finding.fields
        if field.reference != "before" or finding.severity != "info"
    )
    return list(dict.fromkeys(found))


def matrix_rows(workers: Sequence[Worker]) -> list[MatrixRow]:
    """Return a row for each worker: families together, the one with the worst finding first.

    Args:
        workers: parents before their children.
    """
    families: list[list[Worker]] = []
    family_of: dict[str, list[Worker]] = {}
    for worker in workers:
        family = family_of.get(worker.parent or "")
        if family is None:
            families.append(family := [])
        family.append(worker)
        family_of[worker.id] = family
    families.sort(key=_rank)
    by_id = {worker.id: worker for worker in workers}
    return [_row(worker, by_id.get(worker.parent or "")) for family in families for worker in family]


def _rank(family: Sequence[Worker]) -> tuple[bool, int]:
    """Return the sort key of a family: what blocks a member, then its most severe finding."""
    found = [cause.rank[:2] for worker in family for cause in causes(worker)]
    return min(found, default=(True, len(SEVERITIES)))


def _row(worker: Worker, parent: Worker | None) -> MatrixRow:
    found: dict[Aspect, list[Finding]] = {aspect: [] for aspect in Aspect}
    for cause in causes(worker):
        for finding in cause.findings:
            for aspect in aspects(finding):
                found[aspect].append(finding)
    seen = _observed(worker, parent)
    cells = {aspect: MatrixCell(tuple(found[aspect]), observed=aspect in seen) for aspect in Aspect}
    cells[Aspect.REACH] = MatrixCell(reach=worker.reach)
    return MatrixRow(worker, cells)


def _observed(worker: Worker, parent: Worker | None) -> set[Aspect]:
    """Return the aspects that were observed and have something to differ from."""
    sandbox = worker.sandbox
    seen: set[Aspect] = set()
    if sandbox.configured and parent is not None and parent.sandbox.configured:
        seen.add(Aspect.PARENT)
    if sandbox.configured is None or sandbox.got.under_earlier_policy:
        return seen
    return seen | {_ASPECT_OF_FIELD[name] for name in sandbox.got.values() if name is not LayerField.SECCOMP}


def legend(glyphs: Glyphs, *, ascii_only: bool) -> list[tuple[str, Tone, str]]:
    """Return each sign with its tone and its meaning."""
    return [
        (glyphs.directions["wider"], "stuck", "more than configured"),
        (glyphs.directions["narrower"], "mismatch", "less than configured"),
        (glyphs.directions["label"], "mismatch", "a label is wrong"),
        (_DENIED[ascii_only], "stuck", "denied"),
        (_REACHES, "stuck", "reaches"),
        (_MAY_REACH, "mismatch", "may reach"),
        (_AGREES, "ready", "observed, no finding"),
        (_NOTHING[ascii_only], "muted", "not observed"),
    ]
