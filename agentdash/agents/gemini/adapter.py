"""The adapter of Gemini CLI: chats, and what its arguments and settings ask for."""

from __future__ import annotations

from agentdash.agents.adapter import Adapter
from agentdash.agents.gemini import GEMINI_CHATS
from agentdash.agents.gemini.requests import GEMINI
from agentdash.agents.gemini_settings import GeminiRequests


class GeminiAdapter(Adapter):
    """Gemini CLI."""

    session_files = GEMINI_CHATS
    request_reader = GeminiRequests(GEMINI)


ADAPTER = GeminiAdapter
