"""`agentdash replay --export`: a past session as a file to pass on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from agentdash import __version__
from agentdash.cli.family import family_of
from agentdash.cli.progress import Progress
from agentdash.config import Config, journal_folder
from agentdash.model.sanitize import clean_line
from agentdash.model.worker import Snapshot
from agentdash.replay.family import Family
from agentdash.replay.journal import journal_streams
from agentdash.replay.streams import MergedStream, family_stream

_FORMATS = (".html", ".md", ".cast")
_LONGEST = 180.0
"""Seconds of the longest cast: a longer session goes by faster."""
_FRESH = 60.0
"""Seconds after its last line for which a session may still be going on."""


def export(
    target: str, config: Config, file: Path, *, redact: bool, force: bool, gap: float, journal: Path | None
) -> None:
    """Writes the file.

    Raises:
        click.UsageError: there is no such thread, or the file cannot be written.
    """
    if file.exists() and not force:
        raise click.UsageError(f"{clean_line(str(file))} exists already: --force overwrites it")
    if file.suffix not in _FORMATS:
        raise click.UsageError(f"{clean_line(str(file))}: an export ends in {', '.join(_FORMATS)}")
    family = family_of(target, config)
    now = time.time()
    recorded = journal_streams(journal or journal_folder(), family, now)

    def make() -> MergedStream:
        return family_stream(family, recorded())

    over = now - max((path.stat().st_mtime for path in family.paths if path.exists()), default=0.0) > _FRESH
    size = sum(path.stat().st_size for path in family.paths if path.exists())
    with Progress("", 0, size) as progress:
        if file.suffix == ".cast":
            written = asyncio.run(_cast(make, config, progress, redact=redact, over=over, gap=gap))
        else:
            written = _report(family, make(), file.suffix, progress, redact=redact, over=over)
    try:
        with file.open("wb" if force else "xb") as out:
            out.write(written)
    except OSError as error:
        raise click.UsageError(f"{clean_line(str(file))}: {error.strerror or error}") from error


def _report(
    family: Family, tape: MergedStream, suffix: str, progress: Progress, *, redact: bool, over: bool
) -> bytes:
    from agentdash.report.redact import without_home
    from agentdash.report.timeline_report import build_report

    story = build_report(family.thread, tape, redact=redact, over=over, progress=progress.reach)
    if suffix == ".html":
        from agentdash.report.export_html import html as write
    else:
        from agentdash.report.export_markdown import markdown as write
    text = write(story, __version__)
    return (without_home(text) if redact else text).encode()


async def _cast(
    make: Callable[[], MergedStream],
    config: Config,
    progress: Progress,
    *,
    redact: bool,
    over: bool,
    gap: float,
) -> bytes:
    from agentdash.report.redact import Redaction
    from agentdash.report.timeline_report import length, scenes
    from agentdash.tui.cast import cast
    from agentdash.tui.options import Options

    redaction = Redaction() if redact else None

    def shown(see: Callable[[], Snapshot]) -> Callable[[], Snapshot]:
        return (lambda: redaction.snapshot(see())) if redaction else see

    def fleet_seen(tape: MergedStream) -> Iterator[tuple[float, Callable[[], Snapshot]]]:
        for scene in scenes(tape, redaction, over=over):
            progress.reach(tape.offset)
            yield scene.at, shown(scene.see)

    options = Options(config.ascii, config.theme or "dark", banner="REPLAY")
    scheduler = max(1.0, length(make(), gap) / _LONGEST)
    return b"".join([line async for line in cast(fleet_seen(make()), options, gap, scheduler)])
