"""The adapter of OpenCode: its permission rules."""

from __future__ import annotations

from agentdash.agents.adapter import Adapter
from agentdash.agents.opencode.requests import OpencodeRequests


class OpencodeAdapter(Adapter):
    """OpenCode."""

    request_reader = OpencodeRequests()


ADAPTER = OpencodeAdapter
