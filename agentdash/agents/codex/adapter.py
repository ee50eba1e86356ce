"""The adapter of Codex: its processes hold their rollouts open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from agentdash.agents.adapter import Adapter
from agentdash.agents.codex.config.reader import CodexRequests
from agentdash.agents.codex.home import thread_id
from agentdash.agents.codex.screen_label import screen_label
from agentdash.model.pane import ScreenLabel


class CodexAdapter(Adapter):
    """Codex. Its sessions are threads, whose rollouts, locks, log database and status feed have sources of
    their own."""

    keeps_session_logs = True
    request_reader = CodexRequests()

    def screen_label(self, lines: Sequence[str]) -> ScreenLabel | None:
        """Return the sandbox that the header of `codex exec`, or `/status`, states."""
        return screen_label(lines)

    def is_session_log(self, path: str) -> bool:
        """Return whether a path is that of a rollout."""
        return thread_id(PurePath(path)) is not None


ADAPTER = CodexAdapter
