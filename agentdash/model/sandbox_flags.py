"""The variables by which Codex marks commands in its sandbox."""

from __future__ import annotations

from typing import Final

NETWORK_FLAG: Final = "CODEX_SANDBOX_NETWORK_DISABLED"
"""`1` where the policy turns the network off (all versions, also where no sandbox could be built)."""
SANDBOX_FLAG: Final = "CODEX_SANDBOX"
"""`seatbelt` in the sandbox of macOS."""
