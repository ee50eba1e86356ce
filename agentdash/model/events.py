"""Events: small frozen facts, each with a time and the source it was read from.

Sources emit events and decide nothing; `engine.reduce` turns them into a `Fleet`. Every event can be written
as one JSON line and read back (`encode`, `decode`): journals and the demo are such lines. The tag of an event
and the names of its fields on disk never change; a field that was renamed since keeps its name on disk
(`msgspec.field(name=...)`).

Times (`at`) are unix seconds, UTC. Texts are clean already: see `model.sanitize`.
"""

from __future__ import annotations

from typing import Final, Literal, Union

import msgspec

from agentdash.model.changes import FileChange
from agentdash.model.chat import Chat
from agentdash.model.decoders import JsonDecoder
from agentdash.model.denials import PathKind
from agentdash.model.evidence import EvidenceSource
from agentdash.model.git import Repository
from agentdash.model.memory import PastWorker, ThreadMemory
from agentdash.model.pane import Pane, PaneKey, ScreenUsage
from agentdash.model.policy import Grant, Policy
from agentdash.model.process import Kernel, Launcher, Process, ProcessKey
from agentdash.model.requested import Requested
from agentdash.model.state_paths import Mount, PathAccess
from agentdash.model.states import Attention
from agentdash.model.tokens import ModelUsage, UsageWindow


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """The base of all events."""

    at: float
    """When it happened (unix seconds), by the source's own clock."""


# ---------------------------------------------------------------- threads: what their session files state

CallKind = Literal["command", "poll", "patch", "question", "permission", "spawn", "wait", "other"]
"""The purpose of a tool call. `poll` reads from a command that is still running; `wait` waits for child
threads."""

Outcome = Literal[
    "ended",
    "running",
    "refused-by-user",
    "refused-by-policy",
    "refused-by-approval",
    "denied",
    "aborted",
    "timed-out",
    "failed",
]
"""How a call ended. `running`: it returned to the model while its process lives on. `denied`: Codex itself
called the failure a sandbox denial. `failed`: it could not be carried out at all."""


AllowedBy = Literal["person", "rule", "mode"]
"""What allowed a call: an answer to its permission prompt, a rule of the settings, or the permission mode."""


class ThreadEvent(Event, frozen=True, kw_only=True):
    """A fact about one thread, usually one line of its rollout."""

    thread: str
    """The thread's id (the uuid in the name of the file)."""
    line: int = 0
    """Line of the rollout, counted from 1; 0 where it comes from no single line."""


class ThreadStarted(ThreadEvent, frozen=True, kw_only=True, tag="thread-started"):
    """The first `session_meta` of a file (or the bare header line of files like those of 0.20)."""

    agent: str = "codex"
    """The worker CLI; 0.1.0 read the logs of Codex alone, and did not write it."""
    cwd: str | None = None
    version: str | None = None
    """`cli_version`."""
    originator: str | None = None
    source: str | None = None
    """`source` flattened: `cli`, `exec`, `vscode`, `subagent`, `review`, `guardian` ..."""
    parent: str | None = None
    """The spawning thread (`source.subagent.thread_spawn.parent_thread_id`, `parent_thread_id`)."""
    forked_from: str | None = None
    nickname: str | None = None
    role: str | None = None
    path: str | None = None
    """`agent_path`, e.g. `/root/build`, of multi-agent v2."""
    side_chat: bool = False
    """Whether a TUI shows it beside the thread that it was forked from (0.171)."""
    helper: bool = False
    """A thread that Codex runs for itself (review, compaction, guardian, titles): never judged."""


class TurnStarted(ThreadEvent, frozen=True, kw_only=True, tag="turn-started"):
    """`task_started`, since 0.107 at the latest."""


class TurnEnded(ThreadEvent, frozen=True, kw_only=True, tag="turn-ended"):
    """`task_complete` or `turn_aborted`."""

    how: Literal["completed", "aborted"]
    message: str | None = None
    """`last_agent_message`."""
    reason: str | None = None
    """Of an abort: `interrupted`, `replaced`, `review_ended`, `budget_limited`."""
    error: str | None = None
    """`error.message` (0.145+ for completed, 0.160+ for aborted turns)."""
    error_kind: str | None = None
    """`error.codex_error_info`, flattened: `usage_limit_exceeded`, `http_connection_failed 401` ..."""
    has_result: bool = False
    """Whether it did its work without a final message: `/compact`, `/review`, a command of the user."""


class PolicySet(ThreadEvent, frozen=True, kw_only=True, tag="policy-set"):
    """The policy in force from here on.

    Read from `turn_context`, `thread_settings_applied`, or `<environment_context>` in old files; from
    `sandbox_instructions` and permission modes of Claude Code.
    """

    policy: Policy | None = None
    """None if the line has no readable policy (then only the other fields count)."""
    origin: Literal[
        "turn_context",
        "thread_settings_applied",
        "environment_context",
        "sandbox_instructions",
        "permission_mode",
    ]
    """The kind of line: the last two are Claude Code's."""
    cwd: str | None = None
    model: str | None = None


class Escalation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The request of a call to run outside the sandbox, or with more than the policy grants."""

    kind: Literal["escalated", "additional"]
    """`with_escalated_permissions` / `require_escalated`, or `with_additional_permissions`."""
    reason: str | None = None
    prefix_rule: tuple[str, ...] = ()


class CallStarted(ThreadEvent, frozen=True, kw_only=True, tag="call-started"):
    """A tool call of the model."""

    call: str
    """`call_id`; for a command nested in a code-mode script, its item id."""
    kind: CallKind
    tool: str
    text: str
    """The command line, the question, or the arguments in short."""
    script: str = ""
    """Of a command: the shell script as written, with its newlines; empty where it is not known."""
    shell: str = ""
    """Of a command: the shell that runs it, by name (`bash`); empty where it is not known."""
    cwd: str | None = None
    escalation: Escalation | None = None
    let_out_by: str = ""
    """`FILE:LINE` of the rule that lets it run outside the sandbox, by the rules as they are now; empty:
    none does."""
    by_user: bool = False
    """The user's own `!cmd`: runs without a sandbox under any policy."""
    changes: tuple[FileChange, ...] = ()
    """Of a patch: what it is to change."""


class CallEnded(ThreadEvent, frozen=True, kw_only=True, tag="call-ended"):
    """The output of a tool call."""

    call: str
    outcome: Outcome = "ended"
    exit_code: int | None = None
    output: str = ""
    session: str | None = None
    """The CLI's number for a command that goes on in the background (not an OS pid)."""
    sandboxed: bool | None = None
    """Whether the CLI states that it ran the command in its sandbox (Claude Code, `sandboxed`, 2.1.330; Codex
    where that refused something)."""
    sandbox_words: str = ""
    """The words in which Codex states it."""
    launcher: Launcher | None = None
    """The launcher of the command, where it has printed that."""
    allowed_by: AllowedBy | None = None
    """What allowed it, where the CLI states it (Claude Code, `permissionDecision`, 2.1.330)."""
    changes: tuple[FileChange, ...] = ()
    """Of a patch: what it has changed, where the CLI states it."""
    grant: Grant | None = None
    """What `request_permissions` was granted (Codex 0.12x and newer)."""


class SandboxFailed(ThreadEvent, frozen=True, kw_only=True, tag="sandbox-failed"):
    """The sandbox of a CLI could not be started: later commands run without it (Claude Code)."""

    call: str
    text: str
    """What the CLI states."""


class ChildSpawned(ThreadEvent, frozen=True, kw_only=True, tag="child-spawned"):
    """A child thread, as named in the parent's file; may be repeated for one child."""

    child: str


class MessageLogged(ThreadEvent, frozen=True, kw_only=True, tag="said"):
    """A message of the user or of the model."""

    role: Literal["user", "agent"] = msgspec.field(name="who")
    text: str


class TokensCounted(ThreadEvent, frozen=True, kw_only=True, tag="tokens-counted"):
    """Running totals (`token_count`): the newest wins, they are never added up."""

    total: int | None = None
    """Tokens of the thread so far, without those of the thread that it was forked from."""
    by_model: tuple[ModelUsage, ...] = ()
    """The same by model."""
    context: int | None = None
    """Tokens in the model's context at the last request."""
    window: int | None = None
    """The model's context window."""
    limits: tuple[UsageWindow, ...] = ()
    """The account's usage limits."""


class ThreadNamed(ThreadEvent, frozen=True, kw_only=True, tag="thread-named"):
    """A thread's name, from `session_index.jsonl` or `thread_name_updated`."""

    name: str


class ViolationLogged(ThreadEvent, frozen=True, kw_only=True, tag="violation-logged"):
    """A denial by its sandbox that Codex logged itself: `recorded sandbox violation` in `logs_2.sqlite`.

    Since 0.148, not for `codex exec`. Codex derives it from the output of a failed command, up to ten seconds
    later.
    """

    call: str | None
    resource: Literal["filesystem", "network"]
    reason: str
    """`read_only_file_system`, `operation_not_permitted` ..."""
    path: str | None = None
    host: str | None = None


class TroubleLogged(ThreadEvent, frozen=True, kw_only=True, tag="trouble-logged"):
    """A request to the model that Codex tries again; no rollout contains it.

    Target `codex_core::responses_retry` of `logs_2.sqlite`.
    """

    text: str


class LineSkipped(ThreadEvent, frozen=True, kw_only=True, tag="line-skipped"):
    """Lines that were not understood: counted and shown, never fatal.

    Consecutive lines skipped for the same reason are one event, with the time of the last.
    """

    what: Literal["unknown", "malformed", "oversized"]
    detail: str
    """The name of the unknown type, or what is wrong with the last line."""
    count: int = 1
    """Number of lines."""

    @property
    def reason(self) -> str:
        """Return what the lines are counted as: (`unknown world_state2`, `malformed`)."""
        return f"{self.what} {self.detail}" if self.what == "unknown" else self.what


class FileSeen(ThreadEvent, frozen=True, kw_only=True, tag="file-seen"):
    """The location of a rollout file; repeated when it changes (moved to the archive, grown, compressed)."""

    path: str
    size: int
    modified: float
    """mtime, unix seconds."""
    skimmed: bool = False
    """Only its head and its tail have been read so far."""
    unreadable: str | None = None
    """Why it cannot be read, where it cannot."""


class FileGapSkipped(ThreadEvent, frozen=True, kw_only=True, tag="lines-left-out"):
    """A part of a large file was not read: what was open before it may have ended in it."""

    same_turn: bool = False
    """Whether no turn begins in that part."""


class FileReset(ThreadEvent, frozen=True, kw_only=True, tag="file-reset"):
    """The file shrank or was replaced: everything read from it so far is void, and is read again."""


class FileGone(ThreadEvent, frozen=True, kw_only=True, tag="file-gone"):
    """The file was deleted."""


# ---------------------------------------------------------------- what is outside session files

_RETRY_RULES: Final = ("retrying", "reconnecting")
_PROMPT_RULES: Final = (".fresh", ".idle")
"""Ends of the ids of screen rules of a request that is sent again, and of a prompt without a task."""


class LocksSeen(Event, frozen=True, kw_only=True, tag="locks-seen"):
    """All flocks on `thread-writer-locks/<thread>.lock` (0.148+) that are held at this moment."""

    holders: dict[str, int]
    """thread -> pid of the process that has it loaded. A lock file without a holder is left out: its owner
    was killed."""


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
    """The name of a `State`, or None if no rule matched."""
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
    front: str = ""
    """The name of the thread that it was read of, where the title states that."""

    @property
    def is_retrying(self) -> bool:
        """Return whether it shows a failed request that is sent again, by the end of the rule's id."""
        return bool(self.rule) and str(self.rule).endswith(_RETRY_RULES)

    @property
    def is_at_prompt(self) -> bool:
        """Return whether it shows a prompt without a task, by the end of the rule's id."""
        return bool(self.rule) and str(self.rule).endswith(_PROMPT_RULES)


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
    """None if the file states none (`claude -p`)."""
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


class HostSeen(Event, frozen=True, kw_only=True, tag="host-seen"):
    """agentdash's own facts: the baseline for the namespaces of other processes."""

    platform: str
    """`sys.platform`."""
    kernel: Kernel | None = None
    home: str | None = None


class SourceSeen(Event, frozen=True, kw_only=True, tag="source-seen"):
    """The health of a source."""

    name: str
    """`codex`, `processes`, `tmux`, or `tmux NAME` for a further server."""
    ok: bool
    detail: str


# ---------------------------------------------------------------- as lines of files

EVENTS: Final[tuple[type[Event], ...]] = (
    *ThreadEvent.__subclasses__(),
    *(event for event in Event.__subclasses__() if event is not ThreadEvent),
)
"""All event types above: those that files contain."""
RECORDED: Final = tuple(
    event
    for event in EVENTS
    if event in (ViolationLogged, TroubleLogged) or not issubclass(event, ThreadEvent)
)
"""The event types that a journal contains: those that can be read again from no other file."""

_decoder: JsonDecoder[Event] = JsonDecoder(Union[EVENTS])  # noqa: UP007 - the members are not written out
_encoder = msgspec.json.Encoder()


def encode(event: Event) -> bytes:
    """Return the event as one JSON object, without a newline."""
    return _encoder.encode(event)


def decode(line: bytes) -> Event:
    """Parse a line that `encode` wrote.

    Raises:
        msgspec.DecodeError: the line is torn, or unknown to this version.
    """
    return _decoder.decode(line)
