"""The adapter of Codex: its processes hold their rollouts open."""

from __future__ import annotations

from functools import partial
from typing import Final

from agentdash.agents.adapter import Adapter
from agentdash.agents.codex.config.reader import CodexRequests
from agentdash.agents.codex.home import ROLLOUT_NAME

ADAPTER: Final = partial(Adapter, request_reader=CodexRequests(), session_log_name=ROLLOUT_NAME)
