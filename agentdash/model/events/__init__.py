"""Events: small frozen facts, each with a time and the source it was read from.

Sources emit events and decide nothing; `engine.reduce` turns them into a `Fleet`. Every event can be written
as one JSON line and read back (`encode`, `decode`): journals and the demo are such lines. The tag of an event
and the names of its fields on disk never change; a field that was renamed since keeps its name on disk
(`msgspec.field(name=...)`).

Times (`at`) are unix seconds, UTC. Texts are clean already: see `model.sanitize`.
"""

from __future__ import annotations

import msgspec

from agentdash.model.decoders import JsonDecoder
from agentdash.model.events import (
    AllowedBy,
    AttentionRecalled,
    CallEnded,
    CallKind,
    CallsLeftOut,
    CallStarted,
    ChildSpawned,
    Escalation,
    Event,
    FileGapSkipped,
    FileGone,
    FileReset,
    FileSeen,
    HostSeen,
    LabelRead,
    LineSkipped,
    LocksSeen,
    MessageLogged,
    MountsSeen,
    ObservationsRecalled,
    Outcome,
    PaneDrawn,
    PaneGone,
    PaneSeen,
    PaneSessionRead,
    PanesRecalled,
    PathsSeen,
    PolicyRequested,
    PolicySet,
    ProcessesCounted,
    ProcessGone,
    ProcessSeen,
    ReachSeen,
    RepositorySeen,
    SandboxFailed,
    ScreenRead,
    SessionSeen,
    SourceSeen,
    StatePathsSeen,
    StatusPushed,
    ThreadEvent,
    ThreadNamed,
    ThreadStarted,
    TokensCounted,
    TroubleLogged,
    TurnEnded,
    TurnStarted,
    ViolationLogged,
)

AnyEvent = (
    ThreadStarted
    | TurnStarted
    | TurnEnded
    | PolicySet
    | CallStarted
    | CallEnded
    | CallsLeftOut
    | SandboxFailed
    | ChildSpawned
    | MessageLogged
    | TokensCounted
    | ThreadNamed
    | ViolationLogged
    | TroubleLogged
    | LineSkipped
    | FileSeen
    | FileGapSkipped
    | FileReset
    | FileGone
    | LocksSeen
    | PaneSeen
    | PaneDrawn
    | PaneGone
    | ScreenRead
    | LabelRead
    | StatusPushed
    | PaneSessionRead
    | ObservationsRecalled
    | PanesRecalled
    | MountsSeen
    | AttentionRecalled
    | SessionSeen
    | PolicyRequested
    | ProcessSeen
    | StatePathsSeen
    | RepositorySeen
    | ReachSeen
    | PathsSeen
    | ProcessGone
    | ProcessesCounted
    | HostSeen
    | SourceSeen
)

_decoder: JsonDecoder[AnyEvent] = JsonDecoder(AnyEvent)
_encoder = msgspec.json.Encoder()


def encode(event: Event) -> bytes:
    """Return the event as one JSON object, without a newline."""
    return _encoder.encode(event)


def decode(line: bytes) -> AnyEvent:
    """Parse a line that `encode` wrote.

    Raises:
        msgspec.DecodeError: the line is torn, or is no event of this version.
    """
    return _decoder.decode(line)
