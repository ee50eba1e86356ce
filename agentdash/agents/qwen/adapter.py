"""The adapter of Qwen Code, which reads settings as Gemini CLI does."""

from __future__ import annotations

from agentdash.agents.adapter import Adapter
from agentdash.agents.gemini.requests import QWEN, GeminiRequests


class QwenAdapter(Adapter):
    """Qwen Code."""

    request_reader = GeminiRequests(QWEN)


ADAPTER = QwenAdapter
