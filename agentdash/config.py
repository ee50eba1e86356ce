"""What the user has set, from flags and the environment, as one frozen value."""

from __future__ import annotations

from pathlib import Path

import msgspec

from agentdash.facts.worker import State

THEMES = ("dark", "light", "high-contrast", "colour-blind", "terminal")
"""Names of `tui.theme.THEMES`, here for those who must not import Textual."""


def agents_folder() -> Path:
    """Where the user keeps rules for worker CLIs: `~/.config/agentdash/agents/<cli>.toml`, or where the platform wants it."""
    from platformdirs import user_config_path  # noqa: PLC0415 - needed by few commands

    return user_config_path("agentdash") / "agents"


class Notices(msgspec.Struct, frozen=True):
    """On entering which states somebody is told, and how; nothing is said by default."""

    bell: tuple[State, ...] = ()
    """States that ring the terminal's bell."""
    terminal: tuple[State, ...] = ()
    """States of which the terminal is told (OSC 9 and OSC 777), to show it as it likes."""
    desktop: tuple[State, ...] = ()
    """States that make a desktop notification (`notify-send`, `osascript`)."""
    pause: float = 30.0
    """Seconds in which the same worker is not spoken of again."""

    @property
    def wanted(self) -> bool:
        """Whether anything is to be said at all."""
        return bool(self.bell or self.terminal or self.desktop)


def journal_folder() -> Path:
    """Where recordings go unless somebody says otherwise: `~/.local/state/agentdash/journal`, or where the platform wants it."""
    from platformdirs import user_state_path  # noqa: PLC0415 - needed by few commands

    return user_state_path("agentdash") / "journal"


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
    record: Path | None = None
    """Where to record what only a live agentdash sees; None: nowhere."""
    sessions: int | None = 50
    """How many of the newest sessions are read at the start, beside those of the last day; older ones are when they change. None: all."""
    stalled_after: float = 120.0
    """Seconds without output, CPU and I/O after which a worker that runs is marked as stalled."""
    notices: Notices = Notices()
