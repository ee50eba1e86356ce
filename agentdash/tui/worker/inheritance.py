"""The Sandbox tab: a family's layers, a worker's policies and evidence, and predicted denials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.cells import cell_len

from agentdash.model.findings import value_in_words
from agentdash.model.layers import IN_SANDBOX, NO_SANDBOX, LayerField
from agentdash.model.limits import MAX_INDENT
from agentdash.model.observation import UNSET
from agentdash.model.worker import Got, Sandbox, Worker
from agentdash.tui.format import pad, stamp, stamp_cells
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, paragraph
from agentdash.tui.theme import VERDICT_TONES, Look
from agentdash.tui.worker.evidence import evidence

_POLICY_WIDTH: Final = 16
"""Cells of the longest short policies, `read-only/filter`."""
_AGENT_WIDTH: Final = 10
"""Cells of the longest name of a worker CLI, `opencode`, and two spaces."""
_APPLIED_FROM: Final = 70
"""Cells from which on the applied layer has a column of its own."""
_NOT_KNOWN: Final = "-"


def inheritance(worker: Worker, family: Sequence[Worker], cells: int, look: Look) -> list[Line]:
    """Return the lines of the tab.

    Args:
        family: its family, parents before children.
    """
    lines = list(_table(worker, family, cells, look))
    if len(worker.policies) > 1:
        lines += [BLANK, (Span("policies", "title"),), *_policies(worker, cells, look)]
    found = evidence(worker.sandbox.evidence, cells, look)
    lines += [BLANK, *(found or [(Span("No command of it was seen.", "muted"),)])]
    for missing in worker.sandbox.unread:
        lines += paragraph(missing, cells, "muted", head=(Span("not known: ", "muted"),), cap=3)
    return [*lines, *_predicted_denials(worker, cells)]


def _policies(worker: Worker, cells: int, look: Look) -> Iterable[Line]:
    column = stamp_cells((period.since for period in worker.policies), look.now)
    for period in worker.policies:
        policy = period.policy
        text = f"{policy.brief()}  approval {policy.approval or 'not stated'}"
        at = Span(pad(stamp(period.since, look.now), column) + "  ", "muted")
        origin = f"  {period.place}"
        yield fit((at, Span(text + origin)), cells, look.glyphs.ellipsis)


def _predicted_denials(worker: Worker, cells: int) -> Iterable[Line]:
    """Yield the worker CLIs that the sandbox would deny state paths, and these paths."""
    denied = worker.sandbox.predicted_denials
    if denied:
        yield BLANK
        yield (Span("if it started one of these, its sandbox would deny", "title"),)
    for each in denied:
        places = ", ".join(
            f"{access.path} ({access.what}{', needed' if access.needed else ''})" for access in each.paths
        )
        yield from paragraph(places, cells, head=(Span(pad(each.agent, _AGENT_WIDTH), "strong"),), cap=3)


def _table(selected: Worker, family: Iterable[Worker], cells: int, look: Look) -> Iterable[Line]:
    members = list({member.id: member for member in family}.values())
    widest = max((2 * min(member.depth, MAX_INDENT) + cell_len(member.name) for member in members), default=0)
    columns = (min(widest, cells // 3), _POLICY_WIDTH, _POLICY_WIDTH if cells >= _APPLIED_FROM else 0)
    heads = tuple(Span(head, "title") for head in ("worker", "configured", "applied", "observed"))
    yield from _row(columns, heads, cells, look)
    for member in members:
        sandbox = member.sandbox
        applied = sandbox.applied_policy
        glyph = look.glyphs.verdicts[sandbox.verdict]
        parts = (
            Span(
                "  " * min(member.depth, MAX_INDENT) + member.name,
                "strong" if member.id == selected.id else "",
            ),
            _configured(sandbox),
            Span(applied.short() if applied else _NOT_KNOWN),
            Span(f"{glyph} {_observed(sandbox.got)}", VERDICT_TONES[sandbox.verdict]),
        )
        yield from _row(columns, parts, cells, look)


def _configured(sandbox: Sandbox) -> Span:
    """Return the policy, marked where a finding names it as different from the parent's."""
    differs = any(
        field.layer == "configured" and field.reference == "parent"
        for finding in sandbox.findings
        for field in finding.fields
    )
    text = sandbox.configured.short() if sandbox.configured else _NOT_KNOWN
    return Span(text, "mismatch" if differs else "")


def _row(columns: Sequence[int], parts: Sequence[Span], cells: int, look: Look) -> list[Line]:
    """Return the parts in columns of these widths; 0 leaves a part out, the last is wrapped into the rest."""
    head = [
        part._replace(text=pad(part.text, width, look.glyphs.ellipsis) + "  ")
        for part, width in zip(parts, columns, strict=False)
        if width
    ]
    return paragraph(parts[-1].text, cells, parts[-1].tone, head=head)


def _observed(got: Got) -> str:
    """Return what its commands had, in a few words."""
    words = []
    if got.sandboxed is not None:
        words.append(IN_SANDBOX if got.sandboxed else NO_SANDBOX)
    if got.network_namespace is not None:
        words.append("the host's network" if got.network_namespace == "host" else "a network of its own")
    if got.network_flag is not None:
        words.append(f"network flag {value_in_words(LayerField.NETWORK_FLAG, got.network_flag)}")
    if got.sandbox_flag not in (None, UNSET):
        words.append(f"CODEX_SANDBOX {got.sandbox_flag}")
    if got.under_earlier_policy:
        words.append("before the change of policy")
    return ", ".join(words) or "not seen"
