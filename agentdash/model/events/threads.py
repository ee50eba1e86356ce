"""Events of one thread: what the lines of its session file state, and the file itself."""

from __future__ import annotations

from typing import Literal

import msgspec

from agentdash.model.changes import FileChange
from agentdash.model.events import Event
from agentdash.model.policy import Grant, Policy
from agentdash.model.tokens import ModelUsage

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
    provider: str | None = None
    parent: str | None = None
    """The spawning thread (`source.subagent.thread_spawn.parent_thread_id`, `parent_thread_id`)."""
    forked_from: str | None = None
    nickname: str | None = None
    role: str | None = None
    path: str | None = None
    """`agent_path`, e.g. `/root/build`, of multi-agent v2."""
    helper: bool = False
    """A thread that Codex runs for itself (review, compaction, guardian, titles): never judged."""


class TurnStarted(ThreadEvent, frozen=True, kw_only=True, tag="turn-started"):
    """`task_started`, since 0.107 at the latest."""

    turn: str | None = None


class TurnEnded(ThreadEvent, frozen=True, kw_only=True, tag="turn-ended"):
    """`task_complete` or `turn_aborted`."""

    turn: str | None = None
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
    """Whether it did its work without a last message: `/compact`, `/review`, a command of the user's."""


class PolicySet(ThreadEvent, frozen=True, kw_only=True, tag="policy-set"):
    """The policy in force from here on.

    Read from `turn_context`, `thread_settings_applied`, or `<environment_context>` in old files; from
    `sandbox_instructions` and permission modes of Claude Code.
    """

    policy: Policy | None = None
    """None where the line has no policy that can be read (then only the other fields count)."""
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
    effort: str | None = None


class Escalation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The request of a call to run outside of the sandbox, or with more than the policy grants."""

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
    """`FILE:LINE` of the rule that lets it run outside of the sandbox, by the rules as they are now; empty:
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
    """Whether the CLI states that it ran the command in its sandbox (Claude Code, `sandboxed`, 2.1.330)."""
    allowed_by: AllowedBy | None = None
    """What allowed it, where the CLI states it (Claude Code, `permissionDecision`, 2.1.330)."""
    changes: tuple[FileChange, ...] = ()
    """Of a patch: what it has changed, where the CLI states it."""
    grant: Grant | None = None
    """What `request_permissions` was granted (Codex 0.12x and newer)."""


class CallsLeftOut(ThreadEvent, frozen=True, kw_only=True, tag="calls-left-out"):
    """Calls that ended by themselves and show nothing of a sandbox, in the place of their lines.

    Audits leave them out, which is several times as fast as reading them.
    """

    count: int
    started_line: int
    """The line of the newest of them."""
    policy_at: tuple[float, ...] = ()
    """When lines between them repeated the policy in force (unix seconds)."""


class SandboxFailed(ThreadEvent, frozen=True, kw_only=True, tag="sandbox-failed"):
    """The sandbox of a CLI could not be started: later commands run without it (Claude Code)."""

    call: str
    text: str
    """What the CLI states."""


class ChildSpawned(ThreadEvent, frozen=True, kw_only=True, tag="child-spawned"):
    """A child thread, as named in the parent's file; may be repeated for one child."""

    child: str
    nickname: str | None = None


class MessageLogged(ThreadEvent, frozen=True, kw_only=True, tag="said"):
    """A message of the user or of the model."""

    role: Literal["user", "agent"] = msgspec.field(name="who")
    text: str


class TokensCounted(ThreadEvent, frozen=True, kw_only=True, tag="tokens-counted"):
    """Running totals (`token_count`, `token_usage_record`): the newest wins, they are never added up."""

    total: int | None = None
    """Tokens of the thread so far, without those of the thread that it was forked from."""
    by_model: tuple[ModelUsage, ...] = ()
    """The same by model."""
    context: int | None = None
    """Tokens in the model's context at the last request."""
    window: int | None = None
    """The model's context window."""
    limit_used: float | None = None
    """Percent of the primary rate limit used."""
    limit_resets_at: float | None = None


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

    Consecutive ones that are skipped for the same reason are one event, which is as of the last of them.
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
    archived: bool = False
    compressed: bool = False
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
