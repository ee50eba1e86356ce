"""The first line: the number of workers in each bucket, the health of the sources, the time."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Collection, Iterator
from typing import Final

from msgspec.structs import replace

from agentdash.model.states import Group
from agentdash.model.worker import Snapshot
from agentdash.prices import cost, cost_text
from agentdash.tui.fleet.filter import BUCKET_NAMES
from agentdash.tui.format import age, clock, elide
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, justify, paragraph, width
from agentdash.tui.theme import GROUP_TONES, Look
from agentdash.tui.view import View

_WORDS = {
    "needs-you": "need you",
    "running": "running",
    "unclear": "unclear",
    "done": "done",
    "past": "past",
    "mismatch": "mismatches",
    "new": "new",
}
_MIN_WAITED_S = 60.0
"""Less is not worth the room."""
_ONLY_IF_ANY = ("unclear", "past", "new")
_SINGULAR = {"needs-you": "needs you", "mismatch": "mismatch"}
_CLOCK: Final = re.compile(r"\d\d:\d\d:\d\d ")
"""How the first line ends, where it has room for the time."""
_YOUNG: Final = re.compile(r"codex \d+s ago")
"""How the age of the newest activity is shown while it changes every second."""


def counts(numbers: dict[str, int], look: Look, words: Collection[str], gap: int = 2) -> Line:
    """Return `! 2 need you   > 3 running ...`, with names for these; some only if they are not 0."""
    spans: list[Span] = []
    for name, number in numbers.items():
        if name in _ONLY_IF_ANY and not number:
            continue
        text = f"{look.glyphs.groups[name]} {number}"
        if name in words:
            text += " " + (_SINGULAR.get(name, _WORDS[name]) if number == 1 else _WORDS[name])
        if spans:
            spans.append(Span(" " * gap))
        spans.append(
            Span(
                text,
                GROUP_TONES[name] if number else "muted",
                "app.unread" if name == "new" else f"app.only('{name}')" if name in BUCKET_NAMES else None,
            )
        )
    return tuple(spans)


def sources(snapshot: Snapshot, look: Look, *, failing_only: bool = False, detail: int = 60) -> Line:
    """Return `tmux ok - codex 2s ago - processes ok`, with the error of a failing source.

    Codex's files have no heartbeat: its age is that of the newest activity in any of them.
    """
    newest = max((w.last_activity or 0.0 for w in snapshot.workers if w.kind == "codex-thread"), default=0.0)
    spans: list[Span] = []
    for source in snapshot.failing_sources if failing_only else snapshot.sources:
        if spans:
            spans.append(Span(f" {look.glyphs.dot} ", "muted"))
        if not source.ok:
            spans.append(Span(elide(f"{source.name}: {source.detail}", detail, look.glyphs.ellipsis), "ask"))
        elif source.name == "codex" and newest:
            spans.append(Span(f"codex {age(look.now - newest)} ago", "muted"))
        else:
            spans.append(Span(f"{source.name} ok", "muted"))
    return tuple(spans)


def title(snapshot: Snapshot) -> str:
    """Return the counts as the title of a terminal: `agentdash: 2 need you, 3 running, 1 mismatch`."""
    numbers = snapshot.counts()
    counted = [(name, numbers[name]) for name in ("needs-you", "running", "mismatch") if numbers[name]]
    words = (
        f"{number} {_SINGULAR.get(name, _WORDS[name]) if number == 1 else _WORDS[name]}"
        for name, number in counted
    )
    return f"agentdash: {', '.join(words)}" if counted else "agentdash"


def waited_today(snapshot: Snapshot, now: float) -> float:
    """Return for how many seconds of this day, by local time, workers have waited for the user together."""
    today = time.localtime(now)
    midnight = now - (today.tm_hour * 60 + today.tm_min) * 60 - today.tm_sec
    return sum(worker.waited(midnight, now) for worker in snapshot.workers)


def spent(snapshot: Snapshot) -> str:
    """Return what the tokens of all workers but past ones cost, `$1.20`; with `+` where those of some are not
    known, or have no price; empty where none have one."""
    workers = [worker for worker in snapshot.workers if worker.group is not Group.PAST]
    found = cost(usage for worker in workers for usage in worker.tokens.by_model)
    if found is None or not found.priced_usd:
        return ""
    is_whole = found.usd is not None and all(worker.tokens.by_model for worker in workers)
    return cost_text(replace(found, usd=found.priced_usd if is_whole else None))


def header(
    snapshot: Snapshot | None,
    numbers: dict[str, int],
    look: Look,
    cells: int,
    banner: str | None = None,
    waited: float = 0.0,
    spent: str = "",
) -> Line:
    """Return the header in the longest form that fits.

    Args:
        snapshot: None until the first one arrives.
        numbers: of workers by group.
        cells: width of the header.
        banner: a word in front.
        waited: for how many seconds workers have waited today, together.
        spent: what their tokens cost; empty: not known.
    """
    flag = (Span(f" {banner} ", "marked"), Span("  ")) if banner else ()
    if snapshot is None:
        return justify(
            (Span(" "), *flag), (Span(clock(look.now) + " ", "muted"),), cells, look.glyphs.ellipsis
        )
    now = Span(clock(look.now) + " ")
    for left, right in _forms(snapshot, numbers, look, waited, spent):
        line = (Span(" "), *flag, *left), (*right, Span("   "), now)
        if width(line[0]) + width(line[1]) < cells:
            return justify(*line, cells, look.glyphs.ellipsis)
    return fit((Span(" "), *flag, *counts(numbers, look, (), 1)), cells, look.glyphs.ellipsis)


def _forms(
    snapshot: Snapshot, numbers: dict[str, int], look: Look, waited: float, spent: str
) -> Iterator[tuple[Line, Line]]:
    """Yield the left and right half, from the longest form to the shortest."""
    name = (Span("agentdash", "strong"), Span("   "))
    long, short = counts(numbers, look, _WORDS, 3), counts(numbers, look, ())
    middle = counts(numbers, look, _WORDS), counts(numbers, look, ("needs-you", "mismatch"))
    everything = sources(snapshot, look)
    failing = (sources(snapshot, look, failing_only=True, detail=cells) for cells in (40, 20))
    more = [f"waited for you {age(waited)} today"] if waited >= _MIN_WAITED_S else []
    more += [f"spent {spent}"] if spent else []
    for shown in range(len(more), 0, -1):
        extended = (*long, Span("   "), Span("   ".join(more[:shown]), "muted"))
        yield (*name, *extended), everything
        yield extended, everything
        yield extended, sources(snapshot, look, failing_only=True, detail=20)
    yield (*name, *long), everything
    yield long, everything
    if not snapshot.failing_sources:
        yield long, (Span("sources ok", "muted"),)
    yield from ((long, some) for some in failing)
    yield from ((some, sources(snapshot, look, failing_only=True, detail=12)) for some in (*middle, short))
    yield short, ()
    yield counts(numbers, look, (), 1), ()


class Header(Lines):
    """The header, with a second line while the snapshot may be out of date."""

    def __init__(self) -> None:
        super().__init__(id="header", focusable=False)
        self._view: View | None = None
        """As drawn last."""
        self._counted: Snapshot | None = None
        self._numbers: dict[str, int] = {}
        self._spent = ""

    def on_unmount(self) -> None:
        """Free the snapshot."""
        self._view = self._counted = None

    def show_fleet(self, view: View) -> None:
        """Draw the counts of the snapshot, and why it may be out of date."""
        self._view = view
        if view.snapshot is not self._counted:
            self._counted = view.snapshot
            self._numbers = view.snapshot.counts() if view.snapshot else {}
            self._spent = spent(view.snapshot) if view.snapshot else ""
        if self._numbers:
            self._numbers["new"] = len(view.new)
        cells = self.size.width or self.app.size.width
        waited = waited_today(view.snapshot, view.look.now) if view.snapshot else 0.0
        lines = [header(view.snapshot, self._numbers, view.look, cells, view.banner, waited, self._spent)]
        if view.feed_error:
            lines += paragraph(view.feed_error, cells - 1, "stuck", indent=1, cap=2)
        self.show(lines)

    @property
    def shows_seconds(self) -> bool:
        """Whether the age of the newest activity is shown in seconds."""
        return any(_YOUNG.fullmatch(span.text) for line in self._content[:1] for span in line)

    def show_time(self, now: float) -> None:
        """Draw the clock, and an age that is shown in seconds; leave the rest as it is."""
        if self._view is not None and self.shows_seconds:
            self.show_fleet(dataclasses.replace(self._view, look=Look(now, self._view.look.glyphs)))
            return
        first, *more = self._content or (BLANK,)
        if first and _CLOCK.fullmatch(first[-1].text):
            shown = first[-1]._replace(text=clock(now) + " ")
            self.show([(*first[:-1], shown), *more])
