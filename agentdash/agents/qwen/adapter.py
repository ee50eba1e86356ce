"""The adapter of Qwen Code, which reads settings as Gemini CLI does: its chats."""

from __future__ import annotations

from agentdash.agents.adapter import Adapter
from agentdash.agents.gemini.requests import QWEN
from agentdash.agents.gemini_settings import GeminiRequests
from agentdash.agents.qwen import QWEN_CHATS


class QwenAdapter(Adapter):
    """Qwen Code."""

    session_files = QWEN_CHATS
    request_reader = GeminiRequests(QWEN)


ADAPTER = QwenAdapter
