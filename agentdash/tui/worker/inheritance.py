"""The sandbox of a whole family: what each member was told, what was applied, what it got, and where it differs from its parent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from agentdash.engine.judge.findings.state_paths import predicted_denials
from agentdash.model.state_paths import Installed
from agentdash.model.worker import Got, Worker
from agentdash.tui.format import pad, stamp
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, paragraph
from agentdash.tui.theme import VERDICT_TONES, Look
from agentdash.tui.worker.evidence import evidence

_POLICY = 11
"""Cells of `custom net~` and the longest other brief policy."""
_AGENT = 10
"""Cells of the longest name of a worker CLI, `opencode`, and two spaces."""
_UNSEEN = "-"
_ROOMY = 70
"""Cells from which on what was applied has a column of its own."""


def inheritance(
    worker: Worker, family: Sequence[Worker], installed: Installed | None, cells: int, look: Look
) -> list[Line]:
    """The tab: the family as a table, the chosen worker's policies in their order, what its verdict rests on, what it would deny others.

    Args:
        installed: the worker CLIs that it could start.
    """
    lines = list(_table(worker, family, cells, look))
    if len(worker.policies) > 1:
        lines += [BLANK, (Span("policies", "title"),)]
        for period in worker.policies:
            words = f"{period.policy.brief()}  approval {period.policy.approval or 'not stated'}  {period.origin}, line {period.line}"
            lines.append(
                fit(
                    (Span(stamp(period.since, look.now) + "  ", "muted"), Span(words)),
                    cells,
                    look.glyphs.ellipsis,
                )
            )
    lines += [
        BLANK,
        *(evidence(worker.sandbox.evidence, cells, look) or [(Span("No command of it was seen.", "muted"),)]),
    ]
    for missing in worker.sandbox.unread:
        lines += paragraph(missing, cells, "muted", head=(Span("not known: ", "muted"),), cap=3)
    return [*lines, *_before_a_run(worker, installed, cells)]


def _before_a_run(worker: Worker, installed: Installed | None, cells: int) -> Iterable[Line]:
    """Which worker CLIs could not do their work if this thread started them, and what they would miss."""
    denied = predicted_denials(worker.sandbox.configured, installed, worker.cwd)
    if denied:
        yield BLANK
        yield (Span("if it started one of these, its sandbox would deny", "title"),)
    for agent, paths in denied.items():
        places = ", ".join(
            f"{access.path} ({access.what}{', needed' if access.needed else ''})" for access in paths
        )
        yield from paragraph(places, cells, head=(Span(pad(agent, _AGENT), "strong"),), cap=3)


def _table(chosen: Worker, family: Iterable[Worker], cells: int, look: Look) -> Iterable[Line]:
    by_id = {member.id: member for member in family}
    widest = max((2 * member.depth + cell_len(member.name) for member in by_id.values()), default=0)
    columns = (min(widest, cells // 3), _POLICY, _POLICY if cells >= _ROOMY else 0)
    yield _row(
        columns,
        (
            Span("worker", "title"),
            Span("configured", "title"),
            Span("applied", "title"),
            Span("got", "title"),
        ),
        cells,
        look,
    )
    for member in by_id.values():
        sandbox, above = member.sandbox, by_id.get(member.parent or "")
        told = sandbox.configured.brief() if sandbox.configured else _UNSEEN
        differs = (
            above is not None
            and above.sandbox.configured is not None
            and told not in (_UNSEEN, above.sandbox.configured.brief())
        )
        parts = (
            Span("  " * member.depth + member.name, "strong" if member.id == chosen.id else ""),
            Span(told, "mismatch" if differs else ""),
            Span(sandbox.applied_policy.brief() if sandbox.applied_policy else _UNSEEN),
            Span(
                f"{look.glyphs.verdicts[sandbox.verdict]} {_got(sandbox.got)}", VERDICT_TONES[sandbox.verdict]
            ),
        )
        yield _row(columns, parts, cells, look)


def _row(columns: Sequence[int], parts: Sequence[Span], cells: int, look: Look) -> Line:
    """The parts in their columns, two cells apart; those without a column are left out, the last one takes what is left."""
    dots = look.glyphs.ellipsis
    line = [
        part._replace(text=pad(part.text, width, dots) + "  ")
        for part, width in zip(parts, columns, strict=False)
        if width
    ]
    return fit((*line, parts[-1]), cells, dots)


def _got(got: Got) -> str:
    """What its commands got, in a few words."""
    words = []
    if got.network_flag is not None:
        words.append(f"flag {got.network_flag}")
    if got.sandbox_flag not in (None, "unset"):
        words.append(str(got.sandbox_flag))
    if got.network_namespace is not None:
        words.append("host's net" if got.network_namespace == "host" else "own net")
    if got.sandboxed is not None:
        words.append("sandboxed" if got.sandboxed else "no sandbox")
    return ", ".join(words) or "not seen"
