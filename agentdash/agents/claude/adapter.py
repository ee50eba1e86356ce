"""The adapter of Claude Code: its processes record their status in session files."""

from __future__ import annotations

from agentdash.agents.adapter import Adapter
from agentdash.agents.claude.adapter import ClaudeSessionFiles
from agentdash.agents.claude.settings import ClaudeRequests


class ClaudeAdapter(Adapter):
    """Claude Code."""

    session_files = ClaudeSessionFiles()
    request_reader = ClaudeRequests()


ADAPTER = ClaudeAdapter
