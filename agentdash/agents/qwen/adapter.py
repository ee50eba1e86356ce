"""The adapter of Qwen Code, which reads settings as Gemini CLI does, and its chats."""

from __future__ import annotations

from agentdash.agents.adapter import Adapter
from agentdash.agents.gemini.chats import QWEN_CHATS
from agentdash.agents.gemini.requests import QWEN, GeminiRequests


class QwenAdapter(Adapter):
    """Qwen Code."""

    session_files = QWEN_CHATS
    finds_sessions_by_directory = True
    request_reader = GeminiRequests(QWEN)


ADAPTER = QwenAdapter
