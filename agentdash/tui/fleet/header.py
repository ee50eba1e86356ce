"""The first line: how many workers need the user, run and differ; sources that fail; the time."""

from __future__ import annotations

import time
from pathlib import PurePath
from typing import Final

from msgspec.structs import replace

from agentdash.model.states import Group
from agentdash.model.times import local_time
from agentdash.model.usage_limits import usage_limits
from agentdash.model.worker import Snapshot
from agentdash.prices import cost, cost_text
from agentdash.tui.format import age, elide
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Line, Span, fit, justify, paragraph, width
from agentdash.tui.theme import GROUP_TONES, Look
from agentdash.tui.view import View
from agentdash.tui.worker.overview import heading

_WORDS: Final = {
    "needs-you": ("needs you", "need you"),
    "running": ("running", "running"),
    "unclear": ("unclear", "unclear"),
    "done": ("done", "done"),
    "mismatch": ("sandbox problem", "sandbox problems"),
}
"""What is counted, of one and of several workers."""
_LIMIT_FROM_PERCENT: Final = 70
_OLD_NEWS_S: Final = 900.0
"""What a session stated of a limit so long ago is shown with its age."""
_MAX_LIMITS: Final = 2
_LEFT_OUT: Final = ("cost", "done", "unclear", "limits", "mismatch", "running")
"""In this order, where there is no room."""
_LEAST_ERROR_CELLS: Final = 16
_CAPTION_FROM_LINES: Final = 20
"""On a lower screen the rows go before what is to be looked at."""


def _counts(numbers: dict[str, int]) -> dict[str, str]:
    """Return the counts in words: `2 need you`, `3 running`; zeros are left out."""
    counted = ((name, words, numbers.get(name, 0)) for name, words in _WORDS.items())
    return {name: f"{number} {words[number != 1]}" for name, words, number in counted if number}


def title(snapshot: Snapshot) -> str:
    """Return the counts as the title of a terminal: `agentdash: 2 need you, 3 running, 1 sandbox problem`."""
    counted = _counts(snapshot.counts())
    shown = ", ".join(counted[name] for name in ("needs-you", "running", "mismatch") if name in counted)
    return f"agentdash: {shown}" if shown else "agentdash"


def failing(snapshot: Snapshot, cells: int, look: Look) -> Line:
    """Return the errors of the sources that cannot be read, the first of them in so many cells."""
    if not (errors := [f"{source.name}: {source.detail}" for source in snapshot.failing_sources]):
        return ()
    more = f" +{len(errors) - 1}" if len(errors) > 1 else ""
    return (Span(elide(errors[0], cells, look.glyphs.ellipsis) + more + "  ", "ask"),)


def spent(snapshot: Snapshot) -> str:
    """Return what the tokens of all workers but past ones cost, `$1.20`; with `+` if those of some are not
    known, or have no price; empty if none have one."""
    workers = [worker for worker in snapshot.workers if worker.group is not Group.PAST]
    found = cost(usage for worker in workers for usage in worker.tokens.by_model)
    if found is None or not found.priced_usd:
        return ""
    is_whole = found.usd is not None and all(worker.tokens.by_model for worker in workers)
    return cost_text(replace(found, usd=found.priced_usd if is_whole else None))


def limits(snapshot: Snapshot, look: Look) -> Line:
    """Return the usage limits that are nearly used up, `codex 5h 82 % → 14:20`, with the age of old news, and
    with its home where an agent has several."""
    found = usage_limits(snapshot.workers, look.now)
    spans = []
    for agent, home, window, span in ((each.agent, each.home, each.window, each.span) for each in found):
        if window.used >= _LIMIT_FROM_PERCENT:
            homes = {other.home for other in found if other.agent == agent}
            name = agent if len(homes) < 2 else PurePath(home).name
            resets = local_time(window.resets_at or 0.0, look.now)
            old = look.now - window.at
            stated = f" ({age(old)} ago)" if old > _OLD_NEWS_S else ""
            text = f"{name} {span} {window.used:.0f} % {look.glyphs.arrow} {resets}{stated}   "
            spans.append(Span(text, "stuck" if window.used >= 100 else "waited"))
    return tuple(spans[:_MAX_LIMITS])


def header(view: View, cells: int) -> Line:
    """Return the header, without what there is no room for."""
    snapshot, look = view.snapshot or Snapshot(0.0, ()), view.look
    flag = (*view.flag, Span("  ")) if view.flag else ()
    now = Span(time.strftime("%H:%M ", time.localtime(look.now)))
    errors = failing(snapshot, max(_LEAST_ERROR_CELLS, cells // 3), look)
    price = spent(snapshot)
    shown = {"cost": (Span(f"{price}   " if price else "", "muted"),), "limits": limits(snapshot, look)}
    for name, words in _counts(snapshot.counts()).items():  # a click on a count shows these workers
        shown[name] = (Span(words, GROUP_TONES[name], f"app.only('{name}')"), Span("   "))
    for name in ("", *_LEFT_OUT):
        shown.pop(name, None)
        left = (Span(" "), *flag, *(span for each in _WORDS for span in shown.get(each, ())))
        right = (*shown.get("cost", ()), *shown.get("limits", ()), *errors, now)
        if width(left) + width(right) < cells:
            break
    if width(right) >= cells:
        return fit(left, cells, look.glyphs.ellipsis)
    return justify(left, right, cells, look.glyphs.ellipsis)


class Header(Lines):
    """The header, with more lines while the snapshot may be out of date."""

    def __init__(self) -> None:
        super().__init__(id="header", focusable=False)

    def show_fleet(self, view: View, *, is_zoomed: bool) -> None:
        """Draw the counts of the snapshot, or the selected worker if it has the whole screen; then why the
        snapshot may be out of date."""
        cells = self.size.width or self.app.size.width
        if is_zoomed:
            about = heading(view.worker, view.parent, cells, view.look) if view.worker else ()
            lines: list[Line] = [fit((*view.flag, *about), cells, view.look.glyphs.ellipsis)]
        else:
            lines = [header(view, cells)]
        if view.caption and self.app.size.height >= _CAPTION_FROM_LINES:
            lines += paragraph(view.caption, cells - 1, "strong", indent=1, cap=3)
        if view.feed_error:
            lines += paragraph(view.feed_error, cells - 1, "stuck", indent=1, cap=2)
        self.show(lines)
