"""What the user has set, from flags and the environment, as one frozen value."""

from __future__ import annotations

from pathlib import Path

import msgspec

THEMES = ("dark", "light", "high-contrast", "colour-blind", "terminal")
"""Names of `tui.theme.THEMES`, here for those who must not import Textual."""


def agents_folder() -> Path:
    """Where the user keeps rules for worker CLIs: `~/.config/agentdash/agents/<cli>.toml`, or where the platform wants it."""
    from platformdirs import user_config_path  # noqa: PLC0415 - needed by few commands

    return user_config_path("agentdash") / "agents"


def state_folder() -> Path:
    """Where agentdash keeps what it writes: `$XDG_STATE_HOME/agentdash`, `~/.local/state/agentdash`, or where the platform wants it."""
    from platformdirs import user_state_path  # noqa: PLC0415 - needed by few commands

    return user_state_path("agentdash")


class Config(msgspec.Struct, frozen=True):
    """Everything that can be set."""

    codex_home: Path | None = None
    """None: `$CODEX_HOME`, or `~/.codex`."""
    tmux: bool = True
    socket_names: tuple[str, ...] = ()
    """tmux servers by name, as for `tmux -L`."""
    socket_paths: tuple[Path, ...] = ()
    """tmux servers by socket, as for `tmux -S`."""
    ascii: bool = False
    theme: str | None = None
    sessions: int | None = 50
    """How many of the newest sessions are read at the start, beside those of the last day; older ones are when they change. None: all."""
