"""The adapter of Copilot CLI: its sessions."""

from __future__ import annotations

from agentdash.agents.adapter import Adapter
from agentdash.agents.copilot import CopilotSessions


class CopilotAdapter(Adapter):
    """Copilot CLI."""

    session_files = CopilotSessions()


ADAPTER = CopilotAdapter
