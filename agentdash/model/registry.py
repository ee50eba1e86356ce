"""The registry of facts: where each can be read again, and which of their texts reports may show.

A field of `Fleet`, an event type, or a text field that is missing here fails a test
(`tests/unit/test_registry.py`). The journal and the redaction of reports take their lists from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from agentdash.model import events as e
from agentdash.model.activity import Activity
from agentdash.model.changes import FileChange
from agentdash.model.chat import Chat
from agentdash.model.fleet import FleetKnown, Locks, PaneOccupant, ProviderTrouble, SourceHealth
from agentdash.model.git import Repository
from agentdash.model.memory import PastWorker, ThreadMemory
from agentdash.model.observation import Applied, Escape, SandboxObservation
from agentdash.model.pane import Pane, PaneKey, ScreenLabel, ScreenUsage
from agentdash.model.policy import Grant, Policy, PolicyRule
from agentdash.model.process import Launcher, Process
from agentdash.model.reach import Reach, Reached, ReachTarget
from agentdash.model.requested import EnvironmentRule, Requested, RequestOrigin
from agentdash.model.state_paths import Installed, Mount, PathAccess, StatePath, WriteAccess
from agentdash.model.states import Acknowledgement, Attention
from agentdash.model.tokens import ModelUsage


class Origin(StrEnum):
    """Where a fact can be read again after agentdash has ended."""

    ROLLOUT = "rollout"
    """In the files of Codex."""
    JOURNAL = "journal"
    """In agentdash's own journal: no other file contains it."""
    REMOTE = "remote"
    """On another host, where its agentdash reads it."""
    DERIVED = "derived"
    """Nowhere: it follows from the others."""


FLEET_FIELDS: Final[Mapping[str, Origin]] = {
    "threads": Origin.ROLLOUT,  # but for what Codex logged of them: `FleetKnown.logged`
    "panes": Origin.JOURNAL,
    "processes": Origin.JOURNAL,
    "readings": Origin.JOURNAL,
    "pushed": Origin.JOURNAL,
    "observed": Origin.DERIVED,
    "provisional": Origin.DERIVED,
    "occupants": Origin.JOURNAL,
    "locks": Origin.JOURNAL,
    "processes_at": Origin.JOURNAL,
    "files_at": Origin.JOURNAL,
    "sources": Origin.JOURNAL,
    "host": Origin.JOURNAL,
    "mounts": Origin.JOURNAL,
    "state_paths": Origin.JOURNAL,
    "repositories": Origin.JOURNAL,
    "reaches": Origin.JOURNAL,
    "paths": Origin.JOURNAL,
    "links": Origin.DERIVED,
    "busy": Origin.JOURNAL,
    "labels": Origin.JOURNAL,
    "troubles": Origin.JOURNAL,
    "sessions": Origin.JOURNAL,
    "requests": Origin.JOURNAL,
    "recalled": Origin.JOURNAL,
    "past_workers": Origin.JOURNAL,
    "attention": Origin.JOURNAL,
    "histories": Origin.DERIVED,
    "remotes": Origin.REMOTE,
}
"""The fields of a `Fleet`. Those of the journal are the fields of `FleetKnown`."""

RESTORED_FIELDS: Final = tuple(name for name, origin in FLEET_FIELDS.items() if origin is Origin.JOURNAL)
"""The fields of a `Fleet` that a journal restores."""

EVENT_ORIGINS: Final[Mapping[type[e.Event], Origin]] = {
    e.ThreadStarted: Origin.ROLLOUT,
    e.TurnStarted: Origin.ROLLOUT,
    e.TurnEnded: Origin.ROLLOUT,
    e.PolicySet: Origin.ROLLOUT,
    e.CallStarted: Origin.ROLLOUT,
    e.CallEnded: Origin.ROLLOUT,
    e.CallsLeftOut: Origin.ROLLOUT,
    e.SandboxFailed: Origin.ROLLOUT,
    e.ChildSpawned: Origin.ROLLOUT,
    e.MessageLogged: Origin.ROLLOUT,
    e.TokensCounted: Origin.ROLLOUT,
    e.ThreadNamed: Origin.ROLLOUT,
    e.LineSkipped: Origin.ROLLOUT,
    e.FileSeen: Origin.ROLLOUT,
    e.FileGapSkipped: Origin.ROLLOUT,
    e.FileReset: Origin.ROLLOUT,
    e.FileGone: Origin.ROLLOUT,
    e.ViolationLogged: Origin.JOURNAL,
    e.TroubleLogged: Origin.JOURNAL,
    e.LocksSeen: Origin.JOURNAL,
    e.PaneSeen: Origin.JOURNAL,
    e.PaneDrawn: Origin.JOURNAL,
    e.PaneGone: Origin.JOURNAL,
    e.ScreenRead: Origin.JOURNAL,
    e.LabelRead: Origin.JOURNAL,
    e.StatusPushed: Origin.JOURNAL,
    e.PaneSessionRead: Origin.JOURNAL,
    e.ObservationsRecalled: Origin.JOURNAL,
    e.PanesRecalled: Origin.JOURNAL,
    e.MountsSeen: Origin.JOURNAL,
    e.AttentionRecalled: Origin.JOURNAL,
    e.SessionSeen: Origin.JOURNAL,
    e.PolicyRequested: Origin.JOURNAL,
    e.ProcessSeen: Origin.JOURNAL,
    e.StatePathsSeen: Origin.JOURNAL,
    e.RepositorySeen: Origin.JOURNAL,
    e.ReachSeen: Origin.JOURNAL,
    e.PathsSeen: Origin.JOURNAL,
    e.ProcessGone: Origin.JOURNAL,
    e.ProcessesCounted: Origin.JOURNAL,
    e.HostSeen: Origin.JOURNAL,
    e.SourceSeen: Origin.JOURNAL,
}
"""The event types of `AnyEvent`."""

RECORDED: Final = tuple(event for event, origin in EVENT_ORIGINS.items() if origin is Origin.JOURNAL)
"""The event types that a journal contains."""


class TextUse(StrEnum):
    """What redaction does with a text field."""

    PLAIN = "plain"
    """Keep it: identifiers, kinds, versions, paths, command lines of processes."""
    CONTEXT = "context"
    """Keep it, and its words wherever they occur: commands and directories, which explain the rest."""
    QUOTED = "quoted"
    """Replace it by its length, and remove its words wherever they are quoted: prompts, messages, outputs,
    errors."""
    SCREEN = "screen"
    """Keep it, since no report shows it, but remove its words wherever they are quoted: screens and
    titles."""
    NAME = "name"
    """Replace it by the thread's pseudonym, and remove its words wherever they are quoted: names are cut from
    prompts."""
    DROPPED = "dropped"
    """Empty it."""


TEXTS: Final[Mapping[type[msgspec.Struct], Mapping[str, TextUse]]] = {
    e.ThreadStarted: {
        "thread": TextUse.PLAIN,
        "agent": TextUse.PLAIN,
        "cwd": TextUse.CONTEXT,
        "version": TextUse.PLAIN,
        "originator": TextUse.PLAIN,
        "source": TextUse.PLAIN,
        "provider": TextUse.PLAIN,
        "parent": TextUse.PLAIN,
        "forked_from": TextUse.PLAIN,
        "nickname": TextUse.PLAIN,
        "role": TextUse.PLAIN,
        "path": TextUse.PLAIN,
    },
    e.TurnStarted: {"thread": TextUse.PLAIN, "turn": TextUse.PLAIN},
    e.TurnEnded: {
        "thread": TextUse.PLAIN,
        "turn": TextUse.PLAIN,
        "message": TextUse.QUOTED,
        "reason": TextUse.PLAIN,
        "error": TextUse.QUOTED,
        "error_kind": TextUse.PLAIN,
    },
    e.PolicySet: {
        "thread": TextUse.PLAIN,
        "cwd": TextUse.PLAIN,
        "model": TextUse.PLAIN,
        "effort": TextUse.PLAIN,
    },
    e.Escalation: {"reason": TextUse.QUOTED, "prefix_rule": TextUse.PLAIN},
    e.CallStarted: {
        "thread": TextUse.PLAIN,
        "call": TextUse.PLAIN,
        "tool": TextUse.PLAIN,
        "text": TextUse.QUOTED,  # but for commands, which are context
        "script": TextUse.CONTEXT,
        "shell": TextUse.PLAIN,
        "cwd": TextUse.PLAIN,
        "let_out_by": TextUse.CONTEXT,
    },
    e.CallEnded: {
        "thread": TextUse.PLAIN,
        "call": TextUse.PLAIN,
        "output": TextUse.QUOTED,
        "session": TextUse.PLAIN,
    },
    e.CallsLeftOut: {"thread": TextUse.PLAIN},
    e.SandboxFailed: {"thread": TextUse.PLAIN, "call": TextUse.PLAIN, "text": TextUse.QUOTED},
    e.ChildSpawned: {"thread": TextUse.PLAIN, "child": TextUse.PLAIN, "nickname": TextUse.PLAIN},
    e.MessageLogged: {"thread": TextUse.PLAIN, "text": TextUse.QUOTED},
    e.TokensCounted: {"thread": TextUse.PLAIN},
    e.ThreadNamed: {"thread": TextUse.PLAIN, "name": TextUse.NAME},
    e.ViolationLogged: {
        "thread": TextUse.PLAIN,
        "call": TextUse.PLAIN,
        "reason": TextUse.PLAIN,
        "path": TextUse.PLAIN,
        "host": TextUse.PLAIN,
    },
    e.TroubleLogged: {"thread": TextUse.PLAIN, "text": TextUse.QUOTED},
    e.LineSkipped: {"thread": TextUse.PLAIN, "detail": TextUse.DROPPED},
    e.FileSeen: {"thread": TextUse.PLAIN, "path": TextUse.PLAIN, "unreadable": TextUse.PLAIN},
    e.FileGapSkipped: {"thread": TextUse.PLAIN},
    e.FileReset: {"thread": TextUse.PLAIN},
    e.FileGone: {"thread": TextUse.PLAIN},
    e.LocksSeen: {"holders": TextUse.PLAIN},
    e.PaneSeen: {},
    e.PaneDrawn: {"screen": TextUse.SCREEN},
    e.PaneGone: {},
    e.ScreenRead: {
        "agent": TextUse.PLAIN,
        "state": TextUse.PLAIN,
        "rule": TextUse.PLAIN,
        "text": TextUse.SCREEN,
        "object": TextUse.SCREEN,
    },
    ScreenUsage: {"model": TextUse.SCREEN},
    e.LabelRead: {},
    e.StatusPushed: {"thread": TextUse.PLAIN, "flags": TextUse.PLAIN, "cwd": TextUse.CONTEXT},
    e.PaneSessionRead: {"thread": TextUse.PLAIN, "agent": TextUse.PLAIN},
    e.ObservationsRecalled: {},
    e.PanesRecalled: {},
    e.AttentionRecalled: {},
    e.PolicyRequested: {"worker": TextUse.PLAIN},
    e.SessionSeen: {"agent": TextUse.PLAIN, "waiting_for": TextUse.PLAIN, "session": TextUse.PLAIN},
    e.ProcessSeen: {},
    e.MountsSeen: {},
    e.StatePathsSeen: {},
    e.RepositorySeen: {"directory": TextUse.CONTEXT},
    e.ReachSeen: {"worker": TextUse.PLAIN},
    e.PathsSeen: {"paths": TextUse.DROPPED},  # outputs named them
    e.ProcessGone: {},
    e.ProcessesCounted: {},
    e.HostSeen: {"platform": TextUse.PLAIN, "home": TextUse.PLAIN},
    e.SourceSeen: {"name": TextUse.PLAIN, "detail": TextUse.PLAIN},
    FleetKnown: {  # the keys of mappings
        "pushed": TextUse.PLAIN,
        "sources": TextUse.PLAIN,
        "labels": TextUse.PLAIN,
        "troubles": TextUse.PLAIN,
        "recalled": TextUse.PLAIN,
        "requests": TextUse.PLAIN,
        "paths": TextUse.DROPPED,
        "repositories": TextUse.PLAIN,
        "reaches": TextUse.PLAIN,
    },
    Acknowledgement: {"worker": TextUse.PLAIN, "fact": TextUse.PLAIN},
    Activity: {},
    Chat: {
        "by": TextUse.PLAIN,
        "name": TextUse.QUOTED,
        "model": TextUse.PLAIN,
        "tool": TextUse.CONTEXT,
        "why": TextUse.QUOTED,
        "trouble": TextUse.QUOTED,
    },
    Applied: {"by": TextUse.PLAIN},
    Attention: {},
    Escape: {"call": TextUse.PLAIN, "pane": TextUse.PLAIN, "quote": TextUse.CONTEXT},
    FileChange: {"path": TextUse.CONTEXT, "diff": TextUse.DROPPED, "moved_to": TextUse.CONTEXT},
    Installed: {"workers": TextUse.PLAIN, "env": TextUse.PLAIN},
    Grant: {},
    Launcher: {"name": TextUse.PLAIN},
    Locks: {"holders": TextUse.PLAIN},
    Mount: {
        "point": TextUse.PLAIN,
        "fstype": TextUse.PLAIN,
        "root": TextUse.PLAIN,
        "device": TextUse.PLAIN,
    },
    Pane: {
        "session": TextUse.PLAIN,
        "window": TextUse.PLAIN,
        "command": TextUse.PLAIN,
        "title": TextUse.SCREEN,
        "screen": TextUse.SCREEN,
        "clients": TextUse.PLAIN,
    },
    PaneKey: {"server": TextUse.PLAIN, "id": TextUse.PLAIN},
    PaneOccupant: {"agent": TextUse.PLAIN},
    PastWorker: {
        "worker": TextUse.PLAIN,
        "agent": TextUse.PLAIN,
        "name": TextUse.PLAIN,
        "cwd": TextUse.PLAIN,
        "rule": TextUse.PLAIN,
        "words": TextUse.PLAIN,
        "arguments": TextUse.PLAIN,
    },
    PathAccess: {"path": TextUse.PLAIN, "what": TextUse.PLAIN},
    Reach: {"limits": TextUse.PLAIN},
    Reached: {"how": TextUse.PLAIN},
    ReachTarget: {"path": TextUse.CONTEXT, "what": TextUse.PLAIN},
    Repository: {
        "root": TextUse.CONTEXT,
        "branch": TextUse.CONTEXT,
        "commit": TextUse.PLAIN,
        "worktree": TextUse.CONTEXT,
        "upstream": TextUse.CONTEXT,
    },
    Policy: {
        "approval": TextUse.PLAIN,
        "may_ask": TextUse.PLAIN,
        "reviewer": TextUse.PLAIN,
        "profile": TextUse.PLAIN,
    },
    PolicyRule: {"path": TextUse.CONTEXT},
    Process: {
        "name": TextUse.PLAIN,
        "argv": TextUse.PLAIN,
        "exe": TextUse.PLAIN,
        "cwd": TextUse.PLAIN,
        "env": TextUse.PLAIN,
        "agent": TextUse.PLAIN,
        "rollouts": TextUse.PLAIN,
        "connection": TextUse.PLAIN,
        "terminal": TextUse.PLAIN,
    },
    ProviderTrouble: {"text": TextUse.SCREEN},
    EnvironmentRule: {"names": TextUse.PLAIN, "text": TextUse.CONTEXT, "file": TextUse.CONTEXT},
    Requested: {
        "excluded": TextUse.CONTEXT,
        "changed_files": TextUse.CONTEXT,
        "rules_of": TextUse.PLAIN,
    },
    ScreenLabel: {"thread": TextUse.PLAIN, "text": TextUse.SCREEN, "roots": TextUse.PLAIN},
    RequestOrigin: {"text": TextUse.CONTEXT, "file": TextUse.CONTEXT},
    SandboxObservation: {
        "network_flag": TextUse.PLAIN,
        "sandbox_flag": TextUse.PLAIN,
        "unwritable": TextUse.PLAIN,
        "exposed": TextUse.PLAIN,
        "lost": TextUse.PLAIN,
        "rule": TextUse.CONTEXT,
        "calls": TextUse.PLAIN,
        "quote": TextUse.PLAIN,
    },
    SourceHealth: {"name": TextUse.PLAIN, "detail": TextUse.PLAIN},
    StatePath: {"path": TextUse.PLAIN, "what": TextUse.PLAIN},
    ModelUsage: {"model": TextUse.PLAIN, "tier": TextUse.PLAIN},
    ThreadMemory: {"thread": TextUse.PLAIN},
    WriteAccess: {},
}
"""The text fields of every struct that an event can contain. Enumerations and literals are no texts."""
