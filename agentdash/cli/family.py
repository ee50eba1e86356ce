"""Find the family of threads that a TARGET argument names, and what agentdash saw of it while it ran."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import click

from agentdash.agents.codex.home import CodexHome, default_home, thread_id
from agentdash.agents.session_logs import thread_of_log
from agentdash.config import Config, state_folder
from agentdash.files import open_regular
from agentdash.model.memory import ThreadMemory
from agentdash.model.sanitize import clean_line
from agentdash.replay.family import Family, find_family
from agentdash.replay.journal import find_recording, journal_streams, recording_streams
from agentdash.replay.streams import FileStream
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
