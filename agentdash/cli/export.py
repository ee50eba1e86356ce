"""`agentdash replay --export`: write a past session as a report."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import click

from agentdash import __version__
from agentdash.agents.session_rows import written_at
from agentdash.cli.family import playable
from agentdash.cli.output import Progress, warn_unreadable
from agentdash.config import Config, journal_folder
from agentdash.files import file_size, write_file
from agentdash.model.sanitize import clean_line
from agentdash.replay.streams import family_stream
from agentdash.report.redact import Scrubber

_FORMATS = (".html", ".md")
_ENDED_AFTER_S: Final = 60.0
"""A session whose files have not been written for so long counts as ended."""


def export(
    target: str,
    config: Config,
    file: Path,
    *,
    journal: Path | None,
    redact: bool = False,
    force: bool = False,
) -> int:
    """Export the session of `target` to `file`, in the format of its suffix; return the exit code, 2 where
    something could not be read.

    Raises:
        click.UsageError: no thread matches, the suffix is invalid, or the file cannot be written.
    """
    shown = clean_line(str(file))
    if os.path.lexists(file) and not force:
        raise click.UsageError(f"{shown}: file exists (use --force to overwrite)")
    if file.exists() and not file.is_file():
        raise click.UsageError(f"{shown}: not a regular file")
    if file.suffix not in _FORMATS:
        raise click.UsageError(f"{shown}: invalid suffix: choose from {', '.join(_FORMATS)}")
    from agentdash.report.exports import build_report, markdown, page

    now = time.time()
    family, recorded = playable(target, config, journal or journal_folder(), now)
    stream = family_stream(family, recorded)
    scrubber = Scrubber.of_this_machine() if redact else None
    if scrubber is not None:
        for path in family.paths:  # they lie in homes
            scrubber.learn(clean_line(str(path)))
    with Progress(sum(map(file_size, family.paths))) as progress:
        report = build_report(
            family.thread,
            stream,
            ended=now - written_at(family.paths) > _ENDED_AFTER_S,
            scrubber=scrubber,
            progress=progress.reach,
        )
    unread = [each for each in stream.streams if each.problem is not None]
    problems = [f"{clean_line(str(each.path))} cannot be read: {each.problem}" for each in unread]
    problems = list(dict.fromkeys((*family.unreadable, *problems)))
    in_brief = [f"{len(problems)} files or directories cannot be read"] if problems else []
    report.notes += in_brief if redact else problems
    written = markdown(report, __version__)
    try:
        write_file(file, (page(written) if file.suffix == ".html" else written).encode(), replace=force)
    except OSError as error:
        raise click.UsageError(f"{shown}: {error.strerror or error}") from error
    warn_unreadable(problems)
    return 2 if problems else 0


def exported(target: str, file: Path, *, config: Config, journal: Path | None) -> str:
    """Export for a screen, and return the outcome in one line."""
    if os.path.lexists(file):
        return f"{clean_line(str(file))} exists: choose another name"
    try:
        code = export(target, config, file, journal=journal)
    except click.UsageError as error:
        return error.message
    return f"Written to {clean_line(str(file.absolute()))}" + (", not all could be read" if code else "")
