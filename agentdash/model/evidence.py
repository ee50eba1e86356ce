"""Evidence: one observation, with its source, time and rule."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class EvidenceSource(StrEnum):
    """Where an observation was read. The values are those of the documents."""

    ROLLOUT = "rollout"
    """A line of a Codex rollout."""
    TRANSCRIPT = "transcript"
    """A record of a Claude Code transcript."""
    CODEX_FEED = "codex feed"
    """`thread/status/changed` of Codex's app-server (0.160+)."""
    CODEX_LOG = "log"
    """Codex's log database, `logs_2.sqlite` (0.148+)."""
    SESSION_FILE = "session file"
    """A file in which a worker CLI publishes its own status (Claude Code:
    `~/.claude/sessions/<pid>.json`)."""
    SESSION_LOG = "session log"
    """A chat file or database of a worker CLI whose sessions are not read as threads (Gemini CLI, Qwen Code,
    OpenCode)."""
    CONFIG = "config"
    """A configuration file of a worker CLI."""
    LOCK = "lock"
    """A flock on `thread-writer-locks/<thread>.lock` (Codex 0.148+)."""
    PROCESS = "process"
    """The process table: existence, arguments, parents, open files."""
    KERNEL = "kernel"
    """Kernel facts of a process: seccomp, no_new_privs, namespaces, mounts."""
    ENVIRONMENT = "environment"
    """The environment of a live process."""
    OUTPUT = "output"
    """What a command printed, as the rollout quotes it."""
    SCREEN = "screen"
    """The visible screen of a tmux pane."""
    TITLE = "title"
    """The title of a tmux pane, set by the program in it."""
    TMUX = "tmux"
    """What the tmux server reports of a pane."""
    HISTORY = "history"
    """An earlier state of the same worker."""
    STATUS_FILE = "status-file"
    """The status file that another agentdash publishes in a Codex home."""
    HOST = "host"
    """The link to another host, and what the agentdash there states."""


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One observation that a conclusion rests on, or that contradicts it."""

    source: EvidenceSource
    at: float
    """When it was observed (unix seconds)."""
    rule: str
    """Kebab-case name of the rule that used it."""
    text: str
    """What was observed, quoted or in a few words."""
    agrees: bool = True
    """False where it contradicts the conclusion."""
