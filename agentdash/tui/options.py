"""What the apps are given: the feed of snapshots, options, and callbacks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agentdash.config import NO_THRESHOLDS, ThresholdSettings
from agentdash.model.changes import DirectoryDiff
from agentdash.model.conversation import Conversation
from agentdash.model.pane import PaneKey
from agentdash.model.worker import Snapshot, Worker

GoToPane = Callable[[PaneKey], Awaitable[str]]
"""Makes the tmux client show a pane; returns on one line what has become of it, and the way back."""


OpenConversation = Callable[[str], Callable[[float], Conversation]]
"""Returns a function that reads the conversation of a session file up to a time (unix seconds)."""
ReadDiff = Callable[[str], DirectoryDiff | None]
"""Returns how the working tree of a directory differs from the main branch; None: it is no repository."""
CopyToTmux = Callable[[str], Awaitable[str | None]]
"""Copies inside tmux; returns what has happened, in words, or None outside tmux."""


class Feed(Protocol):
    """Where snapshots come from."""

    def snapshots(self) -> AsyncIterator[Snapshot]:
        """Yield the newest snapshot when it has changed, at most 10 a second; a slow consumer skips some."""
        ...


@dataclass(frozen=True)
class Options:
    """Appearance and keys."""

    ascii: bool = False
    """Use ASCII glyphs only."""
    theme: str | None = None
    """A name of `theme.THEMES` or of a theme of Textual; None: `TEXTUAL_THEME`, else `dark`."""
    title: bool = False
    """Whether the title of the terminal shows the counts of workers."""
    banner: str | None = None
    """A word in the header: `DEMO`."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """Filters by the name that stands for them: `@mine`."""
    thresholds: ThresholdSettings = NO_THRESHOLDS
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys by the id of their action: see `keys.remapped`."""
    copy_to_tmux: CopyToTmux | None = None
    """None: texts are copied by the terminal alone (OSC 52)."""
    attach_command: Callable[[Worker], str] | None = None
    """Returns the shell command that shows a worker of another host; None: there are no other hosts."""
    read_diff: ReadDiff | None = None
    """None: working trees are not read, as in a replay."""
    open_conversation: OpenConversation | None = None
    """None: conversations are read from the session files."""
    debug_log_hint: str = "--debug-log FILE writes the traceback"
    """Where the traceback of an engine failure is, or how to get it."""
