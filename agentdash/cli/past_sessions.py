"""Find the past sessions that a TARGET argument names, with what agentdash saw of them while they ran; export
them (`agentdash replay --export`)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import click

from agentdash import __version__
from agentdash.agents.codex.home import CodexHome, default_home, thread_id
from agentdash.agents.session_logs import thread_of_log
from agentdash.agents.session_rows import written_at
from agentdash.cli.output import Progress, warn_unreadable
from agentdash.config import Config, journal_folder, state_folder
from agentdash.files import file_size, open_regular, write_file
from agentdash.model.memory import ThreadMemory
from agentdash.model.sanitize import clean_line
from agentdash.replay.family import Family, find_family
from agentdash.replay.journal import find_recording, journal_streams, recording_streams
from agentdash.replay.streams import FileStream, family_stream
from agentdash.report.redact import Scrubber
from agentdash.store.memory import Memory, MemoryFileError


class Playable(NamedTuple):
    """What is played: a family with what was recorded of it, or a recording alone."""

    family: Family
    recorded: list[FileStream]


def playable(target: str, config: Config, journal: Path, now: float) -> Playable:
    """Return what a TARGET argument names: a thread with its family, or a recording.

    Args:
        target: a thread id or its prefix, the path of a session log, the name of a recording, or the path of
            a part of one.
        now: unix seconds.

    Raises:
        click.UsageError: nothing matches, or it cannot be read.
    """
    if (recording := find_recording(journal, target)) is not None:
        return Playable(Family(recording.name, ()), recording_streams(recording, now))
    home = CodexHome(config.codex_home or default_home())
    try:
        family = find_family(home, target)
    except LookupError as missing:
        raise click.UsageError(str(missing)) from missing
    for path in (each for each in family.paths if thread_id(each) == family.thread):
        try:
            with open_regular(path):
                continue
        except OSError as error:
            reason = error.strerror or str(error)
            raise click.UsageError(f"{clean_line(str(path))} cannot be read: {reason}") from error
    known = recalled(home, filter(None, map(thread_of_log, family.paths)))
    family = family._replace(memories=tuple(known.values()))
    return Playable(family, journal_streams(journal, family, now))


def recalled(home: CodexHome, threads: Iterable[str]) -> dict[str, ThreadMemory]:
    """Return what is remembered of threads of a home; nothing, and a line on stderr, where that cannot be
    read."""
    memory = Memory(state_folder(), home.root.expanduser().resolve())
    try:
        return {each.thread: each for each in memory.threads(threads)}
    except MemoryFileError as error:
        click.echo(f"agentdash: {clean_line(str(error))}", err=True)
        return {}


# ------------------------------------------------------------


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
