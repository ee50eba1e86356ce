"""The adapter of Kilo CLI, which keeps its sessions as OpenCode does, of which it is a fork."""

from __future__ import annotations

from functools import partial
from typing import Final

from agentdash.agents.adapter import Adapter
from agentdash.agents.opencode import OpencodeSessions

DATABASE: Final = "$XDG_DATA_HOME/kilo/kilo.db"


ADAPTER: Final = partial(Adapter, session_files=OpencodeSessions(DATABASE))
