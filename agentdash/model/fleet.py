"""Everything known at one moment: the result of reducing events, the input of judging.

A fleet that was returned never changes, nor do its mappings: `engine.reduce` changes a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from agentdash.model.denials import PathKind
from agentdash.model.events import (
    Event,
    HostSeen,
    LocksSeen,
    ScreenRead,
    SessionSeen,
    SourceSeen,
    StatusPushed,
    TroubleLogged,
    ViolationLogged,
)
from agentdash.model.evidence import EvidenceSource
from agentdash.model.git import Repository
from agentdash.model.memory import PastWorker, RememberedObservation, ThreadMemory
from agentdash.model.observation import ProvisionalObservation
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Kernel, Process, ProcessKey
from agentdash.model.remote import RemoteHost
from agentdash.model.requested import Requested
from agentdash.model.state_paths import Mount, PathAccess
from agentdash.model.states import Attention
from agentdash.model.thread import Thread

# ------------------------------------------------------------
# Links between threads, processes and panes: the result of `engine.link`. Each names its evidence (`by`)


class ThreadOwner(msgspec.Struct, frozen=True):
    """The process that has a thread loaded."""

    pid: int
    by: str
    """The evidence, in words."""
    source: EvidenceSource
    """`lock`: it holds the writer lock (Codex 0.148+). `process`: it holds the rollout open."""
    key: ProcessKey | None = None
    """Its identity, where it is among the tracked processes."""


class ThreadPane(msgspec.Struct, frozen=True):
    """The pane of a thread."""

    key: PaneKey
    by: str
    """The evidence, in words."""
    own: bool = False
    """Whether the Codex in the pane runs the thread itself: a TUI may merely show a thread of a daemon."""
    claimed: bool = False
    """Whether the pane alone says so, which anything in it can do."""


class FleetLinks(msgspec.Struct, frozen=True, dict=True):
    """All links of a fleet at one moment."""

    owners: dict[str, ThreadOwner] = {}
    orphans: dict[str, float] = {}
    """Threads whose owner was seen to have ended, and when (unix seconds); until they have an owner again."""
    commands: dict[str, tuple[Process, ...]] = {}
    """Live processes that are commands of a thread: they name it, and descend from its owner, or did."""
    claims: dict[str, tuple[Process, ...]] = {}
    """Live processes that name a thread, and were not seen below its owner: anybody may do that."""
    panes: dict[str, ThreadPane] = {}
    below: dict[PaneKey, tuple[Process, ...]] = {}
    """Live processes below each pane, by pid."""
    servers: dict[ProcessKey, Process] = {}
    """The tmux server that each worker CLI descends from, where it is among the tracked processes."""

    nested: dict[ProcessKey, str] = {}
    """The thread whose command started a worker CLI that lives, and has no pane of its own; empty for one
    that waits for its standard input, and is not known to be started by a thread."""

    outer: dict[str, str] = {}
    """The thread whose command started the Codex that runs a thread."""

    def threads_in(self, pane: PaneKey) -> Sequence[str]:
        """Return the threads that are linked to a pane."""
        return self._threads_by_pane.get(pane, ())

    @cached_property
    def _threads_by_pane(self) -> dict[PaneKey, list[str]]:
        found: dict[PaneKey, list[str]] = {}
        for thread, link in self.panes.items():
            found.setdefault(link.key, []).append(thread)
        return found


# ------------------------------------------------------------


NOT_RECORDED: Final = "not recorded any more"
"""Detail of a source from the end of its recording on."""


class PaneOccupant(msgspec.Struct, frozen=True):
    """The worker CLI last seen in a pane; kept when it has ended, so that the pane can show what ended."""

    agent: str
    key: ProcessKey
    process: Process
    """As it was seen last: its facts are needed after it has ended, too."""
    gone_at: float | None = None
    paths: tuple[PathAccess, ...] = ()
    """Whether it may write its state paths, as it was seen last."""


class ProviderTrouble(msgspec.Struct, frozen=True):
    """Trouble with the model provider that no file of the worker contains."""

    at: float
    source: EvidenceSource
    """`screen`, `title` or `log`."""
    text: str
    over: float | None = None
    """Since when the screen shows work again; it may be a frame between two attempts."""


class StatePeriod(msgspec.Struct, frozen=True, omit_defaults=True):
    """A period of time that a worker spent in one state."""

    state: str
    """The state's name."""
    since: float
    why: str
    until: float | None = None
    """None: it is still in it."""
    waits: bool = False
    """Whether work waited for the user: an approval, or an answer to a question."""


class History(msgspec.Struct, frozen=True, omit_defaults=True):
    """The states that a worker has been in, oldest first; bounded."""

    periods: tuple[StatePeriod, ...] = ()
    thread: Thread | None = None
    """The thread as it was judged last, if its rollout is the only source that knows of it: as long as the
    thread stays the same, so does its state."""


class Fleet(msgspec.Struct):
    """Everything known."""

    threads: dict[str, Thread] = {}
    panes: dict[PaneKey, Pane] = {}
    processes: dict[ProcessKey, Process] = {}
    readings: dict[PaneKey, ScreenRead] = {}
    """How the newest screens were read, of panes with a screen that matched a rule."""
    pushed: dict[str, StatusPushed] = {}
    """The newest status of each thread in Codex's own feed."""
    observed: dict[ProcessKey, float] = {}
    """When the sandbox of a process was added to the observations of its thread (unix seconds)."""
    provisional: dict[ProcessKey, ProvisionalObservation] = {}
    """What processes were observed to have, to be made again when more of the log has been read."""
    occupants: dict[PaneKey, PaneOccupant] = {}
    locks: LocksSeen | None = None
    """The newest look at the writer locks of threads, or None if they were never read."""
    processes_at: float | None = None
    """When the newest pass over processes ended, or None (replay of bare files): then a missing process
    means nothing."""
    files_at: float | None = None
    """When the open files of processes were read last, in that pass or before."""
    sources: dict[str, SourceSeen] = {}
    host: HostSeen | None = None
    mounts: dict[int, tuple[Mount, ...]] = {}
    """Mount tables by the inode of their namespace (`Kernel.mnt`), of those that processes live in and
    agentdash does not."""
    state_paths: dict[ProcessKey, tuple[PathAccess, ...]] = {}
    """Whether a worker CLI in a sandbox may write its state paths."""
    repositories: dict[str, Repository] = {}
    """The git repositories of live workers, by directory."""
    paths: dict[str, PathKind] = {}
    """What is at the paths that were denied, and above them."""
    links: FleetLinks = FleetLinks()
    """The links after the newest pass over processes."""
    busy: dict[ProcessKey, float] = {}
    """When the CPU or I/O of a process last moved."""
    troubles: dict[str, ProviderTrouble] = {}
    """The newest trouble with the provider on the screen of each worker, by thread id or pane."""
    sessions: dict[ProcessKey, SessionSeen] = {}
    """The status that each worker CLI writes into a file of its own."""
    requests: dict[str, tuple[Requested, ...]] = {}
    """What was asked for each worker, by thread id or pane: one for each process that ran it, oldest
    first; bounded."""
    recalled: dict[str, ThreadMemory] = {}
    """What was observed of threads earlier: their files may be read again, and do not contain it."""
    past_workers: dict[PaneKey, PastWorker] = {}
    """The newest worker of each pane that an earlier look, or another agentdash, saw in it."""
    attention: Attention | None = None
    """What the user has looked at and acknowledged, or None if not known."""
    histories: dict[str, History] = {}
    """By worker: thread id or pane."""
    remotes: dict[str, RemoteHost] = {}
    """Other hosts and their workers, by the name of the host."""

    @property
    def kernel(self) -> Kernel | None:
        """agentdash's own kernel facts."""
        return self.host.kernel if self.host else None

    def copy(self) -> Fleet:
        """Return a fleet with mappings of its own."""
        return replace(self, **dict(zip(_MAPPINGS, map(dict, _mappings_of(self)), strict=True)))

    def share(self, before: Fleet) -> None:
        """Take the mappings of an earlier fleet where they are equal: the same object means no change."""
        for name, known, own in zip(_MAPPINGS, _mappings_of(before), _mappings_of(self), strict=True):
            if known == own:
                setattr(self, name, known)


_MAPPINGS: Final = tuple(n for n in Fleet.__struct_fields__ if isinstance(getattr(Fleet(), n), dict))
_mappings_of: Final = attrgetter(*_MAPPINGS)


class RemoteSeen(Event, frozen=True, kw_only=True, tag="remote-seen"):
    """Another host as it is now. It is never recorded: its own agentdash has the files."""

    host: RemoteHost


class FleetReplaced(Event, frozen=True, kw_only=True, tag="known"):
    """Everything known, at once: emitted by a source that can seek. It replaces everything that was known
    before."""

    fleet: Fleet


class RecordingEnded(Event, frozen=True, kw_only=True, tag="recording-ended"):
    """Emitted by replays alone: from here on nothing was recorded of panes and processes."""

    threads_ended: bool = False
    """Whether the processes of all threads are known to have ended since."""


class FleetKnown(Event, frozen=True, kw_only=True, tag="fleet-known"):
    """Everything known that no rollout contains, as a journal repeats it: it adds to what is known.

    Its fields are those of `Fleet` that can be read again from no other file, with items in place of
    mappings, since JSON has no structs as keys.
    """

    panes: tuple[tuple[PaneKey, Pane], ...] = ()
    processes: tuple[tuple[ProcessKey, Process], ...] = ()
    readings: tuple[tuple[PaneKey, ScreenRead], ...] = ()
    pushed: tuple[tuple[str, StatusPushed], ...] = ()
    occupants: tuple[tuple[PaneKey, PaneOccupant], ...] = ()
    locks: LocksSeen | None = None
    processes_at: float | None = None
    files_at: float | None = None
    sources: tuple[tuple[str, SourceSeen], ...] = ()
    host: HostSeen | None = None
    mounts: tuple[tuple[int, tuple[Mount, ...]], ...] = ()
    state_paths: tuple[tuple[ProcessKey, tuple[PathAccess, ...]], ...] = ()
    repositories: tuple[tuple[str, Repository], ...] = ()
    paths: tuple[tuple[str, PathKind], ...] = ()
    busy: tuple[tuple[ProcessKey, float], ...] = ()
    troubles: tuple[tuple[str, ProviderTrouble], ...] = ()
    sessions: tuple[tuple[ProcessKey, SessionSeen], ...] = ()
    requests: tuple[tuple[str, tuple[Requested, ...]], ...] = ()
    recalled: tuple[tuple[str, ThreadMemory], ...] = ()
    past_workers: tuple[tuple[PaneKey, PastWorker], ...] = ()
    attention: Attention | None = None
    logged: tuple[ViolationLogged | TroubleLogged, ...] = ()
    """What Codex logged of threads."""


RESTORED_FIELDS: Final = tuple(
    name for name in Fleet.__struct_fields__ if name in FleetKnown.__struct_fields__
)
"""The fields of a `Fleet` that a journal restores."""


def memory_of(thread: Thread) -> ThreadMemory:
    """Return what is known of a thread's live processes, which no rollout contains."""
    return ThreadMemory(
        thread=thread.id,
        observations=tuple(
            RememberedObservation(
                observation=replace(observation, policy=-1),
                policy_since=thread.policies[observation.policy].since if observation.policy >= 0 else None,
            )
            for observation in thread.observations
            if observation.source is EvidenceSource.ENVIRONMENT
        ),
        escapes=thread.escapes,
    )


def known_of(fleet: Fleet, at: float) -> FleetKnown:
    """Return the event that restores all facts of a fleet that no rollout contains.

    Args:
        at: the time of the event (unix seconds).
    """
    fields: dict[str, Any] = {}
    for name in RESTORED_FIELDS:
        value = getattr(fleet, name)
        fields[name] = tuple(value.items()) if isinstance(value, dict) else value
    logged = [
        event
        for thread in fleet.threads.values()
        for event in (*thread.violations, thread.trouble)
        if event is not None
    ]
    return FleetKnown(at=at, logged=tuple(logged), **fields)


# ------------------------------------------------------------
# The process that was asked to run a thread, and whether what it was asked for is still to be read


MAY_START_S: Final = 3.0
"""Age up to which a thread without a process may get one: it has just been started."""
_IS_READ_S: Final = 10.0
"""Age of a process at which its request has been read, or cannot be: it takes a tenth of a second on a quiet
machine."""
_CLOCK_TOLERANCE_S: Final = 0.1
"""The start of a process is known to one tick of the kernel's clock."""


def asked_process(fleet: Fleet, thread: Thread) -> Process | None:
    """Return the process that was asked to run a thread: its owner, or where that is a shared server the
    program in its pane, or that of its parent."""
    owner = fleet.links.owners.get(thread.id)
    process = fleet.processes.get(owner.key) if owner and owner.key else None
    if process is not None and process.agent is not None:
        return process
    placed = fleet.links.panes.get(thread.id)
    occupant = fleet.occupants.get(placed.key) if placed else None
    shown = fleet.processes.get(occupant.key) if occupant and occupant.gone_at is None else None
    return None if shown is not None and shown.is_remote else shown


def awaits_request(fleet: Fleet, thread: Thread) -> bool:
    """Return whether what a thread was asked for is still to be read: it has just started, or its process."""
    if fleet.processes_at is None or not fleet.processes:  # read from files
        return False
    if thread.parent is not None and thread.role is None:
        return False
    process = asked_process(fleet, thread)
    if process is None:
        is_new = fleet.processes_at - (thread.created_at or 0.0) <= MAY_START_S
        return is_new and not fleet.requests.get(thread.id)  # else it has ended already
    if fleet.processes_at - process.key.started > _IS_READ_S:
        return False
    since = max((each.since or 0.0 for each in fleet.requests.get(thread.id, ())), default=0.0)
    return since < process.key.started - _CLOCK_TOLERANCE_S
