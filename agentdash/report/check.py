"""`agentdash check`: rollouts audited from their files alone, for people and as `agentdash.check/1` for programs.

Nothing live is looked at: a turn that was never ended counts as left.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from agentdash.agents.codex.home import CodexHome, open_lines, thread_id
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.events import LocksSeen, ProcessesCounted
from agentdash.model.fleet import Fleet, PolicyPeriod, Thread
from agentdash.model.sanitize import clean_line
from agentdash.model.times import iso
from agentdash.model.worker import Worker
from agentdash.report.status import FindingReport, configured_report, finding_report

_PORTION: Final = 2_000
"""Lines held in memory at a time."""
_MUCH: Final = 32 << 20
"""Bytes from which on further processes are worth their start."""
_PROCESSES: Final = 8
_LATER: Final = 4e9
"""A time after everything: when nobody holds these files any more."""


class PolicyReport(msgspec.Struct):
    """A policy, and since when it was in force."""

    since: str | None
    origin: str
    line: int
    filesystem: str
    network: str
    writable_roots: list[str]
    approval: str | None
    reviewer: str | None


class ThreadReport(msgspec.Struct):
    """One audited thread."""

    id: str
    parent: str | None
    file: str
    cli_version: str | None
    verdict: str
    state: str
    policies: list[PolicyReport]
    findings: list[FindingReport]
    notes: list[str]
    """What was not understood or not read."""
    problem: str | None
    """Why it cannot be read."""


class TotalsReport(msgspec.Struct):
    """The audit in numbers."""

    threads: int
    match: int
    mismatch: int
    unverified: int
    unreadable: int
    findings: dict[str, int]
    """How many threads show each kind."""


class CheckReport(msgspec.Struct):
    """The document of `agentdash check --json`."""

    schema: Literal["agentdash.check/1"]
    threads: list[ThreadReport]
    totals: TotalsReport

    @property
    def exit_code(self) -> int:
        """0: clean. 1: findings. 2: something could not be read."""
        return 2 if self.totals.unreadable else 1 if self.totals.findings else 0


def find_rollouts(home: CodexHome, targets: Iterable[str]) -> list[Path]:
    """The files that are meant: paths, thread ids or their beginnings; without any, all of the home.

    Raises:
        LookupError: a target is none of these; says which.
    """
    if not (wanted := list(targets)):
        return list(home.rollouts())
    found: list[Path] = []
    for target in wanted:
        path = Path(target)
        if path.is_dir():
            hits = sorted(p for p in path.rglob("rollout-*.jsonl*") if thread_id(p))
        elif path.exists():
            hits = [path]
        else:
            hits = [
                p for p in home.rollouts() if len(target) >= 4 and (thread_id(p) or "").startswith(target)
            ]
        if not hits:
            raise LookupError(
                f"{clean_line(target)!r} is no rollout, no directory with rollouts, and no thread of {clean_line(str(home.root))}"
            )
        found += hits
    return list(dict.fromkeys(found))


def check(paths: Iterable[Path], done: Callable[[Path], None] = lambda _: None) -> CheckReport:
    """Audits rollouts, in the order given; helper threads of Codex are left out. Children are held against their parents among them.

    Args:
        paths: the files.
        done: is told of each when it has been read.
    """
    threads = _audit(tuple(paths), done)
    verdicts = Counter(t.verdict for t in threads)
    kinds = Counter(kind for t in threads for kind in {f.kind for f in t.findings})
    unreadable = sum(t.problem is not None for t in threads)
    totals = TotalsReport(
        len(threads),
        verdicts["match"],
        verdicts["mismatch"],
        verdicts["unverified"],
        unreadable,
        dict(sorted(kinds.items())),
    )
    return CheckReport("agentdash.check/1", threads, totals)


def print_check(report: CheckReport, console: Console) -> None:
    """What was found, thread by thread, and the totals."""
    for thread in report.threads:
        if thread.problem:
            console.print(Text(f"{thread.file}: cannot be read: {thread.problem}"))
        for finding in thread.findings:
            console.print(
                Text(f"{thread.id}  codex {thread.cli_version or '?'}  {finding.kind}  ({finding.direction})")
            )
            console.print(Text(f"  {finding.message}"))
            for evidence in finding.evidence:
                console.print(Text(f"  {evidence.source} {evidence.at or ''}  {evidence.text}"), style="dim")
            if finding.remedy:
                console.print(Text(f"  remedy: {finding.remedy}"))
    total = report.totals
    console.print(
        Text(
            f"{total.threads} threads: {total.match} match, {total.mismatch} mismatch, {total.unverified} unverified"
        )
        + Text(f", {total.unreadable} unreadable" if total.unreadable else "")
    )


def _audit(paths: Sequence[Path], done: Callable[[Path], None]) -> list[ThreadReport]:
    found: dict[Path, ThreadReport | None] = {}
    parents: dict[str, Thread] = {}
    waiting: dict[Path, Fleet] = {}
    for path, fleet in zip(paths, _read_all(paths), strict=True):
        done(path)
        if isinstance(fleet, ThreadReport):
            found[path] = fleet
            continue
        found[path] = None  # keeps its place
        for thread in fleet.threads.values():
            parents[thread.id] = Thread(
                thread.id, cwd=thread.cwd, policies=thread.policies, observations=thread.observations
            )
            if thread.parent and thread.parent not in parents:
                waiting[path] = fleet
        if path not in waiting:
            found[path] = _judge(fleet, path, parents)
    for path, fleet in waiting.items():
        found[path] = _judge(fleet, path, parents)
    return [report for report in found.values() if report is not None]


def _read_all(paths: Sequence[Path]) -> Iterator[Fleet | ThreadReport]:
    """What each file tells, in order; where there is much to read, by as many processes as there are processors."""
    processors = min(os.cpu_count() or 1, _PROCESSES)
    if processors == 1 or sum(map(size_of, paths)) < _MUCH:
        yield from map(_read, paths)
        return
    from multiprocessing import Pool  # noqa: PLC0415 - few homes are large

    signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGINT}
    )  # they inherit this: ctrl-c is for the one who started them, and ends them
    try:
        pool = Pool(processors)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with pool:
        yield from pool.imap(_read, paths, chunksize=4)


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def read_rollout(path: Path) -> Fleet:
    """All that a file tells, in bounded memory. Its thread is called by the id in its name, or by the name.

    Raises:
        OSError: it cannot be read.
    """
    reader, fleet, line = RolloutReader(thread_id(path) or clean_line(path.name)), Fleet(), 1
    lines = iter(open_lines(path))
    while portion := list(islice(lines, _PORTION)):
        fleet = reduce(fleet, reader.read(portion, line))
        line += len(portion)
    return fleet


def _read(path: Path) -> Fleet | ThreadReport:
    """All that a file tells, when nobody holds it any more; a report of why not, where it cannot be read."""
    try:
        fleet = read_rollout(path)
    except OSError as error:
        thread, why = thread_id(path) or clean_line(path.name), clean_line(error.strerror or str(error))
        return ThreadReport(
            thread, None, clean_line(str(path)), None, "unverified", "unreachable", [], [], [], why
        )
    return reduce(fleet, [LocksSeen(at=_LATER, holders={}, readable=True), ProcessesCounted(at=_LATER)])


def _judge(fleet: Fleet, path: Path, parents: dict[str, Thread]) -> ThreadReport | None:
    above = {t.parent: parents[t.parent] for t in fleet.threads.values() if t.parent in parents}
    workers = build_snapshot(replace(fleet, threads={**above, **fleet.threads}), _LATER).workers
    return _report(workers[0], path) if workers else None


def _report(worker: Worker, path: Path) -> ThreadReport:
    return ThreadReport(
        id=worker.id,
        parent=worker.parent,
        file=clean_line(str(path)),
        cli_version=worker.agent.version,
        verdict=worker.sandbox.verdict,
        state=str(worker.state),
        policies=[policy_report(p) for p in worker.policies],
        findings=[finding_report(f) for f in worker.sandbox.findings],
        notes=list(worker.notes),
        problem=None,
    )


def policy_report(period: PolicyPeriod) -> PolicyReport:
    """A policy's time as a document."""
    policy = configured_report(period.policy)
    return PolicyReport(
        since=iso(period.since),
        origin=period.origin,
        line=period.line,
        filesystem=policy.filesystem,
        network=policy.network,
        writable_roots=policy.writable_roots,
        approval=policy.approval,
        reviewer=period.policy.reviewer,
    )
