"""The adapter of Codex: its processes hold their rollouts open."""

from __future__ import annotations

from agentdash.agents.adapter import Adapter
from agentdash.agents.codex.config.reader import CodexRequests
from agentdash.agents.codex.home import ROLLOUT_NAME


class CodexAdapter(Adapter):
    """Codex. Its sessions are threads, whose rollouts, locks, log database and status feed have sources of
    their own."""

    request_reader = CodexRequests()
    session_log_name = ROLLOUT_NAME


ADAPTER = CodexAdapter
