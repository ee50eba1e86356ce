"""Notices for a user away from the screen: of which workers, when, and as which document. Pure."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from agentdash.config import NO_THRESHOLDS, Occasion, ThresholdSettings
from agentdash.documents.worker import FactReport, document
from agentdash.model.causes import causes, ranked_findings
from agentdash.model.fact import ObjectForm
from agentdash.model.secrets import mask_fields
from agentdash.model.states import Group, State
from agentdash.model.times import iso
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.elements import short_id
from agentdash.report.redact import Scrubber, map_texts
from agentdash.thresholds import passed

_PAUSE_S: Final = 60.0
"""Between two notices of one worker."""
_SETTLE_S: Final = 1.0
"""For which an occasion must hold: states of a worker that just starts may be none."""
_WORDS: Final[dict[Occasion, tuple[str, str]]] = {
    "needs-you": ("needs you", "need you"),
    "done": ("done", "done"),
    "mismatch": ("sandbox problem", "sandbox problems"),
    "stalled": ("stalled", "stalled"),
    "limit": ("limited", "limited"),
    "threshold": ("threshold passed", "thresholds passed"),
}
"""Of one worker and of several."""


class News(NamedTuple):
    """A worker that the user is to be told of, on which occasions, and the thresholds that it has passed."""

    worker: Worker
    on: tuple[Occasion, ...]
    passed: tuple[str, ...] = ()


Key = tuple[str, Occasion, str]
"""A worker, an occasion, and what tells it from an earlier one: the state, the name of a threshold."""


def occasions(
    worker: Worker, thresholds: ThresholdSettings, now: float
) -> Iterator[tuple[Occasion, str, float]]:
    """Yield the occasions for a notice that a worker gives now: with what distinguishes each, and since when
    (unix seconds)."""
    if worker.group is Group.PAST:
        return
    state, since = str(worker.state), worker.assessment.since or 0.0
    if worker.needs_you:
        yield "needs-you", state, since
    elif worker.state is State.COMPLETED and worker.parent is None:  # a child's end concerns its parent
        yield "done", state, since
    elif worker.limited_until is not None:
        yield "limit", state, since
    if worker.mismatch:
        yield "mismatch", "", max((each.since for each in worker.sandbox.findings), default=0.0)
    if worker.stalled is not None:
        yield "stalled", "", worker.stalled
    for name, _ in passed(worker, thresholds, now):
        passed_at = worker.last_activity or 0.0
        if name == "stalled" and worker.stalled is not None and thresholds.stalled is not None:
            passed_at = worker.stalled + 60 * thresholds.stalled
        yield "threshold", name, passed_at


class NoticeBook:
    """Knows what has been told: an occasion that began before the first snapshot never is, others once.

    Of one worker at most once a minute. What has to wait is told later, if it still holds.

    Args:
        wanted: the occasions to tell of.
        thresholds: those of the occasion `threshold`.
    """

    def __init__(self, wanted: Collection[Occasion], thresholds: ThresholdSettings = NO_THRESHOLDS) -> None:
        self._wanted = wanted
        self._thresholds = thresholds
        self._start: float | None = None
        self._held: set[Key] = set()
        self._waiting: dict[Key, float] = {}
        """What is to be told, and when it was seen first (unix seconds)."""
        self._told: dict[str, float] = {}
        """When each worker was told of (unix seconds), within the pause."""

    @property
    def is_waiting(self) -> bool:
        """Whether anything is to be told later."""
        return bool(self._waiting)

    def due(self, snapshot: Snapshot, now: float, *, is_quiet: bool = False) -> list[News]:
        """Return what is to be told now; it counts as told then.

        Args:
            now: unix seconds.
            is_quiet: whether everything has to wait.
        """
        start = self._start = snapshot.at if self._start is None else self._start
        held = {
            (worker.id, occasion, what): since
            for worker in snapshot.workers
            for occasion, what, since in occasions(worker, self._thresholds, now)
            if occasion in self._wanted
        }
        new = {key: now for key, since in held.items() if key not in self._held and since >= start}
        self._held = set(held)
        self._waiting = {key: at for key, at in self._waiting.items() if key in held} | new
        self._told = {worker: at for worker, at in self._told.items() if now - at < _PAUSE_S}
        if is_quiet:
            return []
        told: dict[str, list[Occasion]] = defaultdict(list)
        for (worker, occasion, what), seen_at in sorted(self._waiting.items()):
            if worker not in self._told and now - seen_at >= _SETTLE_S:
                del self._waiting[worker, occasion, what]
                told[worker].append(occasion)
        self._told |= dict.fromkeys(told, now)
        return [
            News(
                worker,
                tuple(dict.fromkeys(told[worker.id])),
                tuple(words for _, words in passed(worker, self._thresholds, now)),
            )
            for worker in snapshot.workers
            if worker.id in told
        ]


def is_quiet(hours: str | None, clock: str) -> bool:
    """Return whether a time of day, `23:10`, lies within hours, `22:00-07:00`."""
    if hours is None:
        return False
    begin, end = hours.split("-")
    return begin <= clock < end if begin <= end else clock >= begin or clock < end


# ------------------------------------------------------------
# The document that the command gets


class NewsReport(msgspec.Struct):
    """A worker that the user is told of."""

    id: str
    name: str
    """Its name; unless `text = true`, its pane or the beginning of its id."""
    agent: str
    on: list[Occasion]
    """Why: `needs-you`, `done`, `mismatch`, `stalled`, `limit`, `threshold`."""
    state: str
    since: str | None
    fact: FactReport
    """What it does or needs; unless `text = true` without questions and messages."""
    differs: list[str]
    """What is wrong with its sandbox, in a few words each."""
    passed: list[str]
    """The thresholds that it has passed, in words: `context 84 %`."""
    remedy: str | None
    replay: str | None
    """The shell command that plays its session again; null where it has no session file."""
    host: str | None
    """The host that it runs on; null: this machine."""
    pane: str | None
    """Its tmux pane; null where it has none."""
    cwd: str | None


class NoticeReport(msgspec.Struct):
    """The document that the command of `[notices]` gets on its standard input."""

    schema: Literal["agentdash.notice/1"]
    generated_at: str
    title: str
    """All of it in a few words: `codex %4: waiting approval`, `3 workers: 2 need you, 1 done`."""
    text: str
    """The rest on one line."""
    workers: list[NewsReport]
    """At least one; several where they came within seconds, in quiet hours, or while the command ran."""


def notice_report(news: Sequence[News], now: float, scrubber: Scrubber | None) -> NoticeReport:
    """Return the document of what is told at once.

    Args:
        news: at least one.
        now: unix seconds.
        scrubber: for a redacted one; None: with names, prompts and messages, without secrets.
    """
    workers = [_news_report(each, scrubber) for each in news]
    titles = [_title(worker) for worker in workers]
    if len(workers) == 1:
        (only,) = workers
        title, text = titles[0], "; ".join(filter(None, (only.fact.text, *only.differs, *only.passed)))
    else:
        counts = {each: sum(each in worker.on for worker in workers) for each in _WORDS}
        parts = ", ".join(f"{number} {_WORDS[each][number > 1]}" for each, number in counts.items() if number)
        title, text = f"{len(workers)} workers: {parts}", "; ".join(titles)
    report = NoticeReport("agentdash.notice/1", iso(now) or "", title, text, workers)
    masked: NoticeReport = mask_fields(report)
    return masked


def _title(worker: NewsReport) -> str:
    words = {"needs-you": worker.state.replace("-", " ")}
    return f"{worker.name}: {', '.join(words.get(each, _WORDS[each][0]) for each in worker.on)}"


def _news_report(news: News, scrubber: Scrubber | None) -> NewsReport:
    worker = news.worker
    remedy = next((finding.remedy for finding in ranked_findings(worker) if finding.remedy), None)
    report = document(
        NewsReport,
        worker,
        agent=worker.agent.name,
        on=news.on,
        differs=[cause.words for cause in causes(worker) if not cause.is_known] if worker.mismatch else [],
        passed=news.passed,
        remedy=(remedy.once or remedy.text) if remedy else None,
        replay=f"agentdash replay {shlex.quote(worker.id)}" if worker.is_thread else None,
    )
    return report if scrubber is None else _redacted(report, worker, scrubber)


def _redacted(report: NewsReport, worker: Worker, scrubber: Scrubber) -> NewsReport:
    """Return a report with the object of its fact only where that is a command, a path or a host, and without
    what names homes and their owners."""
    fact = replace(worker.fact, what=worker.fact.what or worker.fact.kind, why="")
    if fact.form is ObjectForm.TEXT:
        fact = replace(fact, what=fact.what.rstrip(":,"), object="")
    fact = map_texts(fact, scrubber.text)
    return replace(
        report,
        name=f"{report.agent} {report.pane or short_id(worker.id)}",
        fact=document(FactReport, fact),
        remedy=report.remedy and scrubber.text(report.remedy),
        cwd=report.cwd and scrubber.text(report.cwd),
    )
