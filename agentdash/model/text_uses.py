"""What redaction does with each text of an event.

A text field that is neither listed here nor kept for its name (`PLAIN_NAMES` of `test_redaction.py`) fails a
test.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from agentdash.model import events as e
from agentdash.model.changes import FileChange
from agentdash.model.chat import Chat
from agentdash.model.fleet import FleetKnown, ProviderTrouble, SourceHealth
from agentdash.model.git import Repository
from agentdash.model.memory import PastWorker
from agentdash.model.observation import Escape, SandboxObservation
from agentdash.model.pane import Pane, ScreenLabel, ScreenUsage
from agentdash.model.policy import PolicyRule
from agentdash.model.process import Launcher, Process
from agentdash.model.reach import ReachTarget
from agentdash.model.requested import EnvironmentRule, Requested, RequestOrigin


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
    e.ThreadStarted: {"cwd": TextUse.CONTEXT},
    e.TurnEnded: {"message": TextUse.QUOTED, "reason": TextUse.PLAIN, "error": TextUse.QUOTED},
    e.Escalation: {"reason": TextUse.QUOTED},
    e.CallStarted: {"text": TextUse.QUOTED, "script": TextUse.CONTEXT, "let_out_by": TextUse.CONTEXT},
    e.CallEnded: {"output": TextUse.QUOTED},
    e.SandboxFailed: {"text": TextUse.QUOTED},
    e.MessageLogged: {"text": TextUse.QUOTED},
    e.ThreadNamed: {"name": TextUse.NAME},
    e.ViolationLogged: {"reason": TextUse.PLAIN},
    e.TroubleLogged: {"text": TextUse.QUOTED},
    e.LineSkipped: {"detail": TextUse.DROPPED},
    e.PaneDrawn: {"screen": TextUse.SCREEN},
    e.ScreenRead: {"text": TextUse.SCREEN, "object": TextUse.SCREEN},
    ScreenUsage: {"model": TextUse.SCREEN},
    e.StatusPushed: {"cwd": TextUse.CONTEXT},
    e.RepositorySeen: {"directory": TextUse.CONTEXT},
    e.PathsSeen: {"paths": TextUse.DROPPED},
    e.SourceSeen: {"name": TextUse.PLAIN, "detail": TextUse.PLAIN},
    FleetKnown: {"paths": TextUse.DROPPED},
    Chat: {"name": TextUse.QUOTED, "tool": TextUse.CONTEXT, "why": TextUse.QUOTED, "trouble": TextUse.QUOTED},
    Escape: {"quote": TextUse.CONTEXT},
    FileChange: {"path": TextUse.CONTEXT, "diff": TextUse.DROPPED, "moved_to": TextUse.CONTEXT},
    Launcher: {"name": TextUse.PLAIN},
    Pane: {"title": TextUse.SCREEN, "screen": TextUse.SCREEN},
    PastWorker: {"name": TextUse.PLAIN},
    ReachTarget: {"path": TextUse.CONTEXT},
    Repository: {
        "root": TextUse.CONTEXT,
        "branch": TextUse.CONTEXT,
        "worktree": TextUse.CONTEXT,
        "upstream": TextUse.CONTEXT,
    },
    PolicyRule: {"path": TextUse.CONTEXT},
    Process: {"name": TextUse.PLAIN},
    ProviderTrouble: {"text": TextUse.SCREEN},
    EnvironmentRule: {"text": TextUse.CONTEXT, "file": TextUse.CONTEXT},
    Requested: {"excluded": TextUse.CONTEXT, "changed_files": TextUse.CONTEXT},
    ScreenLabel: {"text": TextUse.SCREEN},
    RequestOrigin: {"text": TextUse.CONTEXT, "file": TextUse.CONTEXT},
    SandboxObservation: {"rule": TextUse.CONTEXT},
    SourceHealth: {"name": TextUse.PLAIN, "detail": TextUse.PLAIN},
}
"""The text fields of structs in events that are not kept as they are, or whose names (`text`, `name`,
`reason`, `detail`) do not tell."""
