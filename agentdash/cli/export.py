"""`agentdash replay --export`: write a past session as a report or a cast."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

from agentdash import __version__
from agentdash.cli.family import family_of
from agentdash.cli.output import warn_unreadable
from agentdash.cli.progress import Progress
from agentdash.config import Config, journal_folder
from agentdash.files import write_file
from agentdash.model.sanitize import clean_line
from agentdash.model.worker import Snapshot
from agentdash.replay.family import Family
from agentdash.replay.journal import journal_streams
from agentdash.replay.streams import MergedStream, family_stream

_FORMATS = (".html", ".md", ".cast")
_TALK_FORMATS = (".html", ".md")
_TALK_FILES = ("talk.html", "talk.md")
"""Names of files to which a conversation is exported."""
_MAX_CAST_S: Final = 180.0
"""Longest cast: a longer session is sped up to fit, since few watch more than three minutes."""
_ENDED_AFTER_S: Final = 60.0
"""A session whose files have not been written for so long counts as ended."""


def export(
    target: str,
    config: Config,
    file: Path,
    *,
    redact: bool,
    force: bool,
    gap: float,
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
    if talk and file.suffix not in _TALK_FORMATS:
        raise click.UsageError(f"a conversation is exported as {' or '.join(_TALK_FORMATS)}")
    if talk and redact:
        raise click.UsageError(
            "--redact leaves out prompts and messages, of which a conversation consists: export a report"
        )
    family = family_of(target, config)
    if talk:
        written, problems = _talk(family, file.suffix)
        _write(file, written, force=force)
        warn_unreadable(problems)
        return 2 if problems else 0
    now = time.time()
    recorded = journal_streams(journal or journal_folder(), family, now)

    def make() -> MergedStream:
        return family_stream(family, recorded())

    files = [path.stat() for path in family.paths if path.exists()]
    ended = now - max((file.st_mtime for file in files), default=0.0) > _ENDED_AFTER_S
    size = sum(file.st_size for file in files)
    stream = make()
    with Progress("", 0, size) as progress:
        if file.suffix == ".cast":
            written = asyncio.run(_cast(stream, make, config, progress, redact=redact, ended=ended, gap=gap))
        else:
            written = _report(family, stream, file.suffix, progress, redact=redact, ended=ended)
    _write(file, written, force=force)
    problems = [*family.unreadable, *_unreadable(stream)]
    warn_unreadable(list(dict.fromkeys(problems)))
    return 2 if problems else 0


def _write(file: Path, written: bytes, *, force: bool) -> None:
    try:
        write_file(file, written, replace=force)
    except OSError as error:
        raise click.UsageError(f"{clean_line(str(file))}: {error.strerror or error}") from error


def _talk(family: Family, suffix: str) -> tuple[bytes, list[str]]:
    """Return the conversations of a family as a document, and what could not be read."""
    from agentdash.report.talk import read_talk

    report = read_talk(family)
    if suffix == ".html":
        from agentdash.report.talk_html import talk_html as write
    else:
        from agentdash.report.talk_markdown import talk_markdown as write
    return write(report, __version__).encode(), [*family.unreadable, *report.problems]


def _unreadable(stream: MergedStream) -> Iterator[str]:
    """Yield the files of a stream that could not be read to their ends, and why."""
    for file in stream.streams:
        if file.problem is not None:
            yield f"{clean_line(str(file.path))} cannot be read: {file.problem}"


def _report(
    family: Family, stream: MergedStream, suffix: str, progress: Progress, *, redact: bool, ended: bool
) -> bytes:
    from agentdash.report.redact import without_home
    from agentdash.report.timeline_builder import build_report

    report = build_report(family.thread, stream, redact=redact, ended=ended, progress=progress.reach)
    problems = list(dict.fromkeys((*family.unreadable, *_unreadable(stream))))
    report.notes += (
        [f"{len(problems)} files or directories cannot be read"] if redact and problems else problems
    )
    if suffix == ".html":
        from agentdash.report.export_html import html as write
    else:
        from agentdash.report.export_markdown import markdown as write
    text = write(report, __version__)
    return (without_home(text) if redact else text).encode()


async def _cast(
    stream: MergedStream,
    make: Callable[[], MergedStream],
    config: Config,
    progress: Progress,
    *,
    redact: bool,
    ended: bool,
    gap: float,
) -> bytes:
    from agentdash.model.secrets import mask_fields
    from agentdash.report.redact import Redaction
    from agentdash.report.timeline_builder import frames, play_duration_s
    from agentdash.tui.asciicast import asciicast
    from agentdash.tui.options import Options

    redaction = Redaction() if redact else None

    def shown(see: Callable[[], Snapshot]) -> Callable[[], Snapshot]:
        return lambda: mask_fields(redaction.snapshot(see()) if redaction else see())

    def snapshots(stream: MergedStream) -> Iterator[tuple[float, Callable[[], Snapshot]]]:
        for frame in frames(stream, redaction, ended=ended):
            progress.reach(stream.offset)
            yield frame.at, shown(frame.snapshot)

    options = Options(config.ascii, config.theme or "dark", banner="REPLAY")
    speed = max(1.0, play_duration_s(make(), gap) / _MAX_CAST_S)
    return b"".join([line async for line in asciicast(snapshots(stream), options, gap, speed)])
