"""Events of what is outside of session files: panes, processes, places, and what agentdash remembers."""

from __future__ import annotations

from typing import Final, Literal

from agentdash.model.chat import Chat
from agentdash.model.denials import PathKind
from agentdash.model.events import Event
from agentdash.model.evidence import EvidenceSource
from agentdash.model.git import Repository
from agentdash.model.memory import PastWorker, ThreadMemory
from agentdash.model.pane import Pane, PaneKey, ScreenLabel, ScreenUsage
from agentdash.model.process import Kernel, Process, ProcessKey
from agentdash.model.reach import Reach
from agentdash.model.requested import Requested
from agentdash.model.state_paths import Installed, Mount, PathAccess
from agentdash.model.states import Attention

_RETRY_RULES: Final = ("retrying", "reconnecting")
_PROMPT_RULES: Final = (".fresh", ".idle")
"""Ends of the ids of screen rules of a request that is sent again, and of a prompt without a task."""


class LocksSeen(Event, frozen=True, kw_only=True, tag="locks-seen"):
    """All flocks on `thread-writer-locks/<thread>.lock` (0.148+) that are held at this moment."""

    holders: dict[str, int]
    """thread -> pid of the process that has it loaded. A lock file without a holder is left out: its owner
    was killed."""
    readable: bool
    """False where this platform does not show the holders of locks: then an empty answer means nothing."""


class PaneSeen(Event, frozen=True, kw_only=True, tag="pane-seen"):
    """A tmux pane as it is now; emitted when anything but its screen changed."""

    pane: Pane


class PaneDrawn(Event, frozen=True, kw_only=True, tag="pane-drawn"):
    """A pane's visible screen; emitted when it changed."""

    key: PaneKey
    screen: tuple[str, ...]
    """The visible lines, top to bottom, right-stripped, without escapes."""
    since: float | None = None
    """Of the first capture: when the pane's window last drew anything (unix seconds)."""


class PaneGone(Event, frozen=True, kw_only=True, tag="pane-gone"):
    """The pane is not listed any more."""

    key: PaneKey


class ScreenRead(Event, frozen=True, kw_only=True, tag="screen-read"):
    """The reading of a pane's screen and title by the rules of its worker CLI (`agents/*.toml`).

    Emitted when it changed.
    """

    key: PaneKey
    agent: str
    state: str | None
    """The name of a `State`; None where no rule matched."""
    rule: str | None = None
    """The rule's id, `codex.approval-command`."""
    text: str = ""
    """The words that matched."""
    object: str = ""
    """What the prompt quotes: the command, the file; of work, the command that runs. Empty where the rule
    shows none."""
    frozen: bool = False
    """A pager, a transcript or a picker hides the prompt: the reading before this one still holds."""
    partial: bool = False
    """The pane is too small for what is on it: part of a menu may be out of sight."""
    source: EvidenceSource = EvidenceSource.SCREEN
    """Where the words stand: `screen`, or `title` where the rule reads the pane's title."""
    usage: ScreenUsage | None = None
    """What the screen states of model, context and cost; None: a dialog hides that, and what it stated before
    still holds."""

    @property
    def is_retrying(self) -> bool:
        """Return whether it shows a failed request that is sent again, by the end of the rule's id."""
        return bool(self.rule) and str(self.rule).endswith(_RETRY_RULES)

    @property
    def is_at_prompt(self) -> bool:
        """Return whether it shows a prompt without a task, by the end of the rule's id."""
        return bool(self.rule) and str(self.rule).endswith(_PROMPT_RULES)


class LabelRead(Event, frozen=True, kw_only=True, tag="label-read"):
    """The sandbox that a screen states of a thread; emitted when it changed."""

    label: ScreenLabel
    key: PaneKey | None = None
    """The pane; None in recordings of 0.1.0."""


class StatusPushed(Event, frozen=True, kw_only=True, tag="status-pushed"):
    """`thread/status/changed` or a row of `thread/list`, from Codex's app-server (0.160+)."""

    thread: str
    status: Literal["active", "idle", "not-loaded", "system-error"]
    flags: tuple[str, ...] = ()
    """`waitingOnApproval`, `waitingOnUserInput`."""
    cwd: str | None = None
    """The working directory of the thread, which has a rollout only after its first prompt."""


class PaneSessionRead(Event, frozen=True, kw_only=True, tag="pane-session-read"):
    """The newest `session id:` line of `codex exec` in the scrollback of a pane that has no worker now."""

    key: PaneKey
    thread: str
    agent: str = "codex"
    """The worker CLI that prints such a line."""
    server_pid: int | None = None


class ObservationsRecalled(Event, frozen=True, kw_only=True, tag="observations-recalled"):
    """What an earlier agentdash observed of live processes of a thread."""

    memory: ThreadMemory


class PanesRecalled(Event, frozen=True, kw_only=True, tag="panes-recalled"):
    """The workers that an earlier agentdash saw in panes, the newest last."""

    workers: tuple[PastWorker, ...]


class AttentionRecalled(Event, frozen=True, kw_only=True, tag="attention-recalled"):
    """What the user has looked at and acknowledged, as kept in agentdash's state directory."""

    attention: Attention


class SessionSeen(Event, frozen=True, kw_only=True, tag="session-seen"):
    """The status that a worker CLI writes into a file of its own; emitted when it changed.

    Claude Code: `~/.claude/sessions/<pid>.json`. Without status and session: none is known any more.
    """

    key: ProcessKey
    """The process that wrote it."""
    agent: str
    status: Literal["busy", "idle", "waiting"] | None
    """None where the file has none (`claude -p`)."""
    waiting_for: str | None = None
    """`permission prompt`, for questions as well."""
    since: float
    """`statusUpdatedAt`."""
    session: str | None = None
    """The thread that the process runs (`sessionId`)."""
    chat: Chat | None = None
    """What the session's log contains, of CLIs whose logs are not read as threads."""


class PolicyRequested(Event, frozen=True, kw_only=True, tag="policy-requested"):
    """What a worker CLI was asked for by its arguments and configuration files, as it started.

    A later one of the same `since` takes its place.
    """

    worker: str
    """A thread's id, or the pane of a worker CLI without threads."""
    requested: Requested


class ProcessSeen(Event, frozen=True, kw_only=True, tag="process-seen"):
    """A process of interest, when first seen and when its facts changed."""

    process: Process


class MountsSeen(Event, frozen=True, kw_only=True, tag="mounts-seen"):
    """The mounts of a mount namespace other than agentdash's own.

    Emitted before the first process in it, and when they changed.
    """

    namespace: int
    """Its inode: `Kernel.mnt`."""
    mounts: tuple[Mount, ...]
    """In the order of mountinfo."""


class StatePathsSeen(Event, frozen=True, kw_only=True, tag="state-paths-seen"):
    """Whether a worker CLI in a sandbox may write the paths of its state; emitted when that changed.

    Empty: it is in no sandbox now.
    """

    key: ProcessKey
    paths: tuple[PathAccess, ...]


class RepositorySeen(Event, frozen=True, kw_only=True, tag="repository-seen"):
    """The git repository that a directory of a live worker lies in; emitted when it changed."""

    directory: str
    """Absolute."""
    repository: Repository | None
    """None: it lies in none."""


class ReachSeen(Event, frozen=True, kw_only=True, tag="reach-seen"):
    """What the processes of a worker could write or reach; emitted when it changed."""

    worker: str
    """Thread id, or pane; empty: agentdash's own process, in whose place a worker without a running command
    would start one."""
    reach: Reach | None
    """None: none of its processes lives any more."""


class PathsSeen(Event, frozen=True, kw_only=True, tag="paths-seen"):
    """What is at paths that were denied, and at the directories above them, as it is now."""

    paths: tuple[tuple[str, PathKind], ...]
    """Absolute paths."""


class ProcessGone(Event, frozen=True, kw_only=True, tag="process-gone"):
    """The process has ended."""

    key: ProcessKey


class ProcessesCounted(Event, frozen=True, kw_only=True, tag="processes-counted"):
    """A pass over all processes has ended: a process that was not reported by now does not exist."""

    files_at: float | None = None
    """When the files that they have open were read last (unix seconds); None: in this pass."""

    @property
    def files_read_at(self) -> float:
        """Return when the files that they have open were read last (unix seconds)."""
        return self.at if self.files_at is None else self.files_at


class HostSeen(Event, frozen=True, kw_only=True, tag="host-seen"):
    """agentdash's own facts: the baseline for the namespaces of other processes."""

    platform: str
    """`sys.platform`."""
    kernel: Kernel | None = None
    uid: int | None = None
    home: str | None = None
    installed: Installed | None = None


class SourceSeen(Event, frozen=True, kw_only=True, tag="source-seen"):
    """The health of a source."""

    name: str
    """`codex`, `processes`, `tmux`, or `tmux NAME` for a further server."""
    ok: bool
    detail: str
