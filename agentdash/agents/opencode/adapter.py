"""The adapter of OpenCode: its sessions, and its permission rules."""

from __future__ import annotations

from agentdash.agents.adapter import Adapter
from agentdash.agents.opencode import OpencodeRequests, OpencodeSessions


class OpencodeAdapter(Adapter):
    """OpenCode."""

    session_files = OpencodeSessions()
    request_reader = OpencodeRequests()


ADAPTER = OpencodeAdapter
