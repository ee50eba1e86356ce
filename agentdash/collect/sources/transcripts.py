"""Claude Code's transcripts, followed as they grow."""

from __future__ import annotations

from pathlib import Path, PurePath

from agentdash.agents.claude.home import LINE_MARKS, ClaudeHome, last_record_at, problem, thread_id
from agentdash.collect.scheduler import PollScheduler
from agentdash.collect.sources.rollouts import SessionLogSource
from agentdash.model.source import Clock


class TranscriptSource(SessionLogSource):
    """Reads the transcripts of Claude Code, those of sub-agents too.

    Args:
        home: the configuration directory to follow.
        newest: how many of the newest sessions are read at first; None: all.
        scheduler: notified of activity, and of commands that start.
    """

    name = "claude"
    marks = LINE_MARKS
    skim_above = 1 << 20  # before the first answer it has 120 KB of instructions and tools

    def __init__(self, home: ClaudeHome, newest: int | None, clock: Clock, scheduler: PollScheduler) -> None:
        super().__init__([home.projects], newest, clock, scheduler)
        self._home = home

    def _age_key(self, path: str) -> float:
        return last_record_at(path) or 0.0  # their names are random

    def _thread_id(self, path: PurePath) -> str | None:
        return thread_id(path)

    def _problem(self) -> str | None:
        return problem(self._home)

    def _where(self) -> Path:
        return self._home.root
