"""The adapter of Gemini CLI: what its arguments and settings ask for."""

from __future__ import annotations

from agentdash.agents.adapter import Adapter
from agentdash.agents.gemini.requests import GEMINI, GeminiRequests


class GeminiAdapter(Adapter):
    """Gemini CLI."""

    request_reader = GeminiRequests(GEMINI)


ADAPTER = GeminiAdapter
