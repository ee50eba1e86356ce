"""The adapter of Codex: its processes hold their rollouts open."""

from __future__ import annotations

from pathlib import PurePath

from agentdash.agents.adapter import Adapter
from agentdash.agents.codex.config.reader import CodexRequests
from agentdash.agents.codex.home import thread_id


class CodexAdapter(Adapter):
    """Codex. Its sessions are threads, whose rollouts, locks, log database and status feed have sources of
    their own."""

    keeps_session_logs = True
    request_reader = CodexRequests()

    def is_session_log(self, path: str) -> bool:
        """Return whether a path is that of a rollout."""
        return thread_id(PurePath(path)) is not None


ADAPTER = CodexAdapter
