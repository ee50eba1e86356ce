"""`agentdash replay --export`: write a past session as a report, or its conversation."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from agentdash import __version__
from agentdash.cli.family import Playable, playable
from agentdash.cli.output import warn_unreadable
from agentdash.cli.progress import Progress
from agentdash.config import Config, journal_folder
from agentdash.files import write_file
from agentdash.model.sanitize import clean_line
from agentdash.replay.family import Family
from agentdash.replay.streams import MergedStream, family_stream
from agentdash.report.exports import TimelineReport
from agentdash.report.redact import Scrubber

_FORMATS = (".html", ".md")
_TALK_FILES = ("talk.html", "talk.md")
"""Names of files to which a conversation is exported."""
_ENDED_AFTER_S: Final = 60.0
"""A session whose files have not been written for so long counts as ended."""


def export(
    target: str,
    config: Config,
    file: Path,
    *,
    redact: bool,
    force: bool,
    journal: Path | None,
    talk: bool = False,
) -> int:
    """Export the session of `target` to `file`, in the format of its suffix; return the exit code, 2 where
    something could not be read.

    Args:
        talk: whether the conversation is exported instead of the report; so it is to a file named `talk.md`
            or `talk.html`.

    Raises:
        click.UsageError: no thread matches, the suffix is invalid, or the file cannot be written.
    """
    if os.path.lexists(file) and not force:
        raise click.UsageError(f"{clean_line(str(file))}: file exists (use --force to overwrite)")
    if file.exists() and not file.is_file():
        raise click.UsageError(f"{clean_line(str(file))}: not a regular file")
    if file.suffix not in _FORMATS:
        raise click.UsageError(f"{clean_line(str(file))}: invalid suffix: choose from {', '.join(_FORMATS)}")
    talk = talk or file.name in _TALK_FILES
    if talk and redact:
        raise click.UsageError(
            "--redact leaves out prompts and messages, all that a conversation has: export a report"
        )
    now = time.time()
    found = playable(target, config, journal or journal_folder(), now)
    family = found.family
    if talk and not family.paths:
        raise click.UsageError("a recording without session files has no conversation: export a report")
    if talk:
        written, problems = _talk(family, file.suffix)
        _write(file, written, force=force)
        warn_unreadable(problems)
        return 2 if problems else 0
    from agentdash.report.session_documents import markdown

    session = _Session(found, now)
    scrubber = _scrubber(family)
    with Progress(session.size) as progress:
        report = _report(session, progress, redact=redact, scrubber=scrubber)
        written = _rendered(markdown(report, __version__), file.suffix)
    _write(file, written, force=force)
    warn_unreadable(session.problems)
    return 2 if session.problems else 0


def exported(target: str, file: Path, *, config: Config, journal: Path | None) -> str:
    """Export for a screen, and return the outcome in one line."""
    if os.path.lexists(file):
        return f"{clean_line(str(file))} exists: choose another name"
    try:
        code = export(target, config, file, redact=False, force=False, journal=journal)
    except click.UsageError as error:
        return error.message
    return f"Written to {clean_line(str(file.absolute()))}" + (", not all could be read" if code else "")


class _Session:
    """What is exported: the files and recordings of a family."""

    def __init__(self, found: Playable, now: float) -> None:
        self.family = found.family
        files = [path.stat() for path in self.family.paths if path.exists()]
        self.ended = now - max((file.st_mtime for file in files), default=0.0) > _ENDED_AFTER_S
        """Whether no process holds its threads any more."""
        self.size = sum(file.st_size for file in files)
        self.stream = family_stream(self.family, found.recorded())

    @property
    def problems(self) -> list[str]:
        """The files and directories that could not be read, each once, after the stream has been read."""
        return list(dict.fromkeys((*self.family.unreadable, *_unreadable(self.stream))))


def _scrubber(family: Family) -> Scrubber:
    """Return a scrubber of this machine's names and of the homes in which the session's files lie."""
    scrubber = Scrubber.of_this_machine()
    for path in family.paths:
        scrubber.learn(clean_line(str(path)))
    return scrubber


def _write(file: Path, written: bytes, *, force: bool) -> None:
    try:
        write_file(file, written, replace=force)
    except OSError as error:
        raise click.UsageError(f"{clean_line(str(file))}: {error.strerror or error}") from error


def _talk(family: Family, suffix: str) -> tuple[bytes, list[str]]:
    """Return the conversations of a family as a document, and what could not be read."""
    from agentdash.report.exports import read_talk
    from agentdash.report.session_documents import talk_markdown

    report = read_talk(family)
    return _rendered(talk_markdown(report, __version__), suffix), [*family.unreadable, *report.problems]


def _unreadable(stream: MergedStream) -> Iterator[str]:
    """Yield the files of a stream that could not be read to their ends, and why."""
    for file in stream.streams:
        if file.problem is not None:
            yield f"{clean_line(str(file.path))} cannot be read: {file.problem}"


def _report(session: _Session, progress: Progress, *, redact: bool, scrubber: Scrubber) -> TimelineReport:
    from agentdash.report.timeline_builder import build_report

    report = build_report(
        session.family.thread,
        session.stream,
        redact=redact,
        ended=session.ended,
        progress=progress.reach,
        scrubber=scrubber,
    )
    problems = session.problems
    report.notes += (
        [f"{len(problems)} files or directories cannot be read"] if redact and problems else problems
    )
    return report


def _rendered(document: str, suffix: str) -> bytes:
    if suffix == ".html":
        from agentdash.report.session_documents import page

        document = page(document)
    return document.encode()
