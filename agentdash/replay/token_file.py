"""Count the tokens of one session file, on demand: the dashboard reads only head and tail of large files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from agentdash.agents.session_logs import SessionLog, log_of
from agentdash.model.events import TokensCounted
from agentdash.model.sanitize import clean_line
from agentdash.model.tokens import ModelUsage
from agentdash.replay.streams import LineReader

MAX_BYTES: Final = 256 << 20
"""Size of the largest file that is read for its tokens: in about a second."""
_OF_ROLLOUT: Final = re.compile(
    rb'"(?:token_(?:count|usage_record)|turn_context|thread_settings_applied|session_meta)"|"turn_id"'
)
"""What the lines contain that count tokens, set the model, or show which lines of a fork are its own."""
_OF_TRANSCRIPT: Final = re.compile(rb'"usage":')


class TokenFile:
    """The tokens in one session file. Reads on where it stopped.

    Args:
        path: a rollout or a transcript.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = log_of(path) or SessionLog(path, clean_line(path.name), "codex")
        self._relevant = _OF_TRANSCRIPT if self._log.agent == "claude" else _OF_ROLLOUT
        self._begin()

    def _begin(self) -> None:
        self._lines = LineReader(self.path)
        self._reader = self._log.reader()
        self._by_model: tuple[ModelUsage, ...] = ()

    def read(self) -> tuple[ModelUsage, ...]:
        """Return the tokens by model so far; empty where the file is too large, or cannot be read."""
        try:
            size = self.path.stat().st_size
            if size > MAX_BYTES:
                return ()
            if size < self._lines.offset and self.path.suffix != ".zst":
                self._begin()
            while (line := self._lines.next()) is not None:
                if self._relevant.search(line):
                    self._count(line)
        except OSError:
            return ()
        return self._by_model

    def _count(self, line: bytes) -> None:
        for event in self._reader.read((line,)):
            if isinstance(event, TokensCounted) and event.by_model:
                self._by_model = event.by_model
