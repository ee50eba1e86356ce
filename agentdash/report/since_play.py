"""Play what happened since a time: session files and journals, once, from their beginnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.policy import Policy
from agentdash.model.worker import Snapshot
from agentdash.replay.family import Family
from agentdash.replay.journal import find_overlapping
from agentdash.replay.streams import FileStream, MergedStream, family_stream

_BATCH_EVENTS: Final = 500
"""Events reduced at once."""
_REFUSED: Final = ("refused-by-user", "refused-by-policy", "refused-by-approval", "aborted", "failed")
"""Outcomes of commands that did not run."""


class Outside(NamedTuple):
    """Commands of a thread that ran outside of a sandbox for one reason."""

    how: str
    """`allowed to leave the sandbox`, `with full access` ..."""
    commands: int
    first_at: float
    first: str
    """The first of them."""


class Played(NamedTuple):
    """What files and journals show."""

    snapshot: Snapshot
    """As known at the end, with turns that have no end still open."""
    ended: Snapshot
    """The same, if no process of theirs lives any more."""
    outside: dict[str, list[Outside]]
    """By thread."""
    problems: list[str]
    """Files and directories that could not be read."""


def play_since(
    codex: CodexHome,
    claude: ClaudeHome,
    journals: Path,
    *,
    since: float,
    now: float,
    progress: Callable[[int], None] = lambda _: None,
) -> Played:
    """Play all session files that were written since a time, and the journals of that time.

    Args:
        journals: directory of recordings; it need not exist.
        since: unix seconds.
        now: unix seconds.
        progress: called with the number of bytes that have been read.
    """
    problems: list[str] = []

    def note(error: OSError) -> None:
        problems.append(f"{error.filename}: {error.strerror or error}")

    paths = [
        path for path in (*codex.rollouts(note), *claude.transcripts(note)) if _is_written(path, since, note)
    ]
    overlapping = find_overlapping(journals, since, now, now)
    recorded = [FileStream(path, reader, begun=since) for path, reader in overlapping]
    stream = family_stream(Family("", tuple(sorted(paths)), codex), recorded)
    watch = _OutsideWatch(since)
    fleet = Fleet()
    for batch in _batches(stream):
        for event in batch:
            watch.take(event)
        fleet = reduce(fleet, batch)
        progress(stream.offset)
    problems += [f"{file.path}: {file.problem}" for file in stream.streams if file.problem is not None]
    closing = [e.LocksSeen(at=now, holders={}, readable=True), e.ProcessesCounted(at=now)]
    ended = reduce(fleet, closing)
    return Played(build_snapshot(fleet, now), build_snapshot(ended, now), watch.found(), problems)


def _is_written(path: Path, since: float, note: Callable[[OSError], None]) -> bool:
    try:
        return path.stat().st_mtime >= since
    except FileNotFoundError:  # moved to the archive meanwhile
        return False
    except OSError as error:
        note(error)
        return False


def _batches(stream: MergedStream) -> Iterator[Sequence[e.Event]]:
    batch: list[e.Event] = []
    while (step := stream.next()) is not None:
        batch += step.events
        if len(batch) >= _BATCH_EVENTS:
            yield batch
            batch = []
    yield batch


class _OutsideWatch:
    """Collects commands that ran outside of a sandbox.

    Args:
        since: begin of the time that counts (unix seconds).
    """

    def __init__(self, since: float) -> None:
        self._since = since
        self._policies: dict[str, Policy] = {}
        self._open: dict[tuple[str, str], e.CallStarted] = {}
        self._found: dict[tuple[str, str], Outside] = {}
        """By thread and reason."""

    def take(self, event: e.Event) -> None:
        """Add what an event shows."""
        match event:
            case e.PolicySet(policy=Policy() as policy):
                self._policies[event.thread] = policy
            case e.CallStarted(kind="command") if event.at >= self._since:
                self._open[event.thread, event.call] = event
            case e.CallEnded():
                started = self._open.pop((event.thread, event.call), None)
                how = self._how(started, event) if started is not None else None
                if started is not None and how is not None:
                    self._add(started, how)

    def found(self) -> dict[str, list[Outside]]:
        """Return what was found, by thread."""
        by_thread: dict[str, list[Outside]] = {}
        for (thread, _), outside in self._found.items():
            by_thread.setdefault(thread, []).append(outside)
        return by_thread

    def _how(self, started: e.CallStarted, ended: e.CallEnded) -> str | None:
        """Return why a command was in no sandbox; None where it was in one, did not run, or nothing shows
        it."""
        if ended.sandboxed or ended.outcome in _REFUSED:
            return None
        policy = self._policies.get(started.thread)
        if started.by_user:
            return "typed by the user"
        if policy is not None and policy.is_full_access:
            return "with full access"
        if started.escalation is not None and started.escalation.kind == "escalated":
            return "allowed to leave the sandbox"
        return "without a sandbox, as the CLI states" if ended.sandboxed is False else None

    def _add(self, started: e.CallStarted, how: str) -> None:
        known = self._found.get((started.thread, how))
        self._found[started.thread, how] = (
            Outside(how, 1, started.at, started.text)
            if known is None
            else known._replace(commands=known.commands + 1)
        )
