"""The variables by which worker CLIs mark what runs in their sandboxes."""

from __future__ import annotations

from typing import Final

NETWORK_FLAG: Final = "CODEX_SANDBOX_NETWORK_DISABLED"
"""`1` where the policy turns the network off (all versions, also where no sandbox could be built)."""
SANDBOX_FLAG: Final = "CODEX_SANDBOX"
"""`seatbelt` in the sandbox of macOS."""
RUNTIME_FLAG: Final = "SANDBOX_RUNTIME"
"""`1` for everything in the sandbox of Anthropic's sandbox runtime (`srt`, Claude Code)."""
INHERITED: Final = "SANDBOX"
"""Set by Gemini CLI and Qwen Code inside of their sandboxes: `sandbox-exec`, or a container's name. Where it
is inherited from elsewhere, they start none."""
