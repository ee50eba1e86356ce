"""The adapter of Gemini CLI: chats, and what its arguments and settings ask for."""

from __future__ import annotations

from agentdash.agents.adapter import Adapter
from agentdash.agents.gemini.chats import GEMINI_CHATS
from agentdash.agents.gemini.requests import GEMINI, GeminiRequests


class GeminiAdapter(Adapter):
    """Gemini CLI."""

    session_files = GEMINI_CHATS
    request_reader = GeminiRequests(GEMINI)


ADAPTER = GeminiAdapter
