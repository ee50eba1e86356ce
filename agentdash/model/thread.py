"""A session as its log shows it: turns, calls, policies, tokens.

All structs are frozen: `engine.reduce` replaces them.
"""

from __future__ import annotations

from typing import Final, Literal, Self

import msgspec

from agentdash.model.changes import Edit, FileChange
from agentdash.model.denials import Denial, LedgerEntry
from agentdash.model.events import (
    AllowedBy,
    CallKind,
    CallStarted,
    Escalation,
    FileSeen,
    Outcome,
    SandboxFailed,
    TroubleLogged,
    ViolationLogged,
)
from agentdash.model.observation import Escape, SandboxObservation
from agentdash.model.policy import Grant, Policy
from agentdash.model.tokens import ModelUsage, UsageWindow

GRANT: Final = "request_permissions"
GRANT_ENDED: Final = "end of the grant"
"""Origins of policies that no line states."""


class PolicyPeriod(msgspec.Struct, frozen=True, omit_defaults=True):
    """A policy and the time from which it is in force; it ends where the next one begins."""

    since: float
    policy: Policy
    line: int
    """Of the log; 0: not known, since a gap was left before it."""
    origin: str
    base: Policy | None = None
    """The policy as the log states it, where more was granted on request; None: nothing was."""

    @property
    def stated(self) -> Policy:
        """The policy without what was granted on request."""
        return self.policy if self.base is None else self.base

    @property
    def is_by_grant(self) -> bool:
        """Whether it began with a grant or the end of one: the log states no other policy."""
        return self.origin in (GRANT, GRANT_ENDED)

    @property
    def place(self) -> str:
        """Return where the log states it: `turn_context, line 6`."""
        return f"{self.origin}, line {self.line}" if self.line else self.origin


_STATED_AT_START: Final = (
    *("at", "line", "kind", "tool", "text", "script", "shell", "escalation", "let_out_by", "by_user"),
)
"""Fields of a call that its first line states."""
_SHELL_TOOLS: Final = ("shell", "shell_command", "container.exec", "exec_command", "unified_exec", "exec")
"""Tools of Codex that run commands; they apply patches as well."""


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call, open until it has ended."""

    id: str
    at: float
    line: int
    """Of the log; 0: not known."""
    kind: CallKind
    tool: str
    text: str
    """The command line, the question, or the arguments in short."""
    script: str = ""
    """Of a command: as written, with its line breaks; empty where it is not known."""
    shell: str = ""
    """The shell that runs it, by name; empty where it is not known."""
    cwd: str | None = None
    escalation: Escalation | None = None
    let_out_by: str = ""
    """The rule that may have let it run outside the sandbox, `FILE:LINE`."""
    by_user: bool = False
    ended_at: float | None = None
    outcome: Outcome | None = None
    """None while open. `running`: answered, but its process lives on."""
    exit_code: int | None = None
    session: str | None = None
    sandboxed: bool | None = None
    """Whether the CLI states that it ran in its sandbox; None: not stated."""
    allowed_by: AllowedBy | None = None
    """What allowed it, where the CLI states it."""
    denials: tuple[Denial, ...] = ()
    """The denials that its output shows, where the policy explains them."""
    edits: tuple[str, ...] = ()
    """The files that it is to change (absolute paths), as far as the record names them."""
    output: str = ""
    """In a conversation, both ends of it; else only the beginning of what a refused call was told."""
    changes: tuple[FileChange, ...] = ()
    """Of a patch of a conversation: what it has changed, or was to change."""

    @classmethod
    def started(cls, event: CallStarted, cwd: str | None) -> Self:
        """Return the open call that an event starts.

        Args:
            cwd: the directory of calls that state none.
        """
        stated = {name: getattr(event, name) for name in _STATED_AT_START}
        return cls(id=event.call, cwd=event.cwd or cwd, **stated)

    @property
    def shown_tool(self) -> str:
        """Return the name of its tool; a patch that a shell applies is a patch all the same."""
        return "patch" if self.kind == "patch" and self.tool in _SHELL_TOOLS else self.tool

    @property
    def label(self) -> str:
        """Return what stands before its text: `$`, `!` for a command of the user, else the tool."""
        if self.kind in ("command", "poll"):
            return "!" if self.by_user else "$"
        return self.shown_tool

    @property
    def took(self) -> float | None:
        """Return how long it ran, in seconds; None while open, and where it goes on in the background."""
        return None if self.ended_at is None or self.outcome == "running" else self.ended_at - self.at

    @property
    def failed(self) -> bool:
        """Return whether it ended without success."""
        return bool(self.exit_code) or self.outcome not in (None, "ended", "running")

    @property
    def is_mcp(self) -> bool:
        """Return whether an MCP server is called: `server.tool` of Codex, `mcp__server__tool` of others."""
        return self.kind == "other" and ("." in self.tool or self.tool.startswith("mcp__"))

    @property
    def denial(self) -> Denial | None:
        """Return the denial that counts most: the last certain one, else the last; those in passing only
        if there is no other."""
        if not self.denials:
            return None
        counted = [denial for denial in self.denials if not denial.is_aside] or self.denials
        certain = (denial for denial in reversed(counted) if denial.is_certain)
        return next(certain, counted[-1])


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """The newest turn of a thread. Files of 0.98 and older have no turn marks: there it is inferred from
    prompts."""

    since: float
    inferred: bool = False
    ended_at: float | None = None
    how: Literal["completed", "aborted"] | None = None
    message: str | None = None
    reason: str | None = None
    error: str | None = None
    error_kind: str | None = None
    has_result: bool = False
    """Whether it did its work without a last message (`TurnEnded.has_result`)."""
    unanswered: int = 0
    """Requests to the model since it last gave something new: 2 and more means that Codex is retrying."""
    answered: bool = False
    """Whether the model gave anything in this turn."""
    next_policy: Policy | None = None
    """What was chosen while it ran, and is in force from its end on."""
    line: int = 0
    """The line of the file that begins it; 0 where it is not known."""

    def has(self, call: Call) -> bool:
        """Return whether a call was made since this turn began: by lines where they are known, since clocks
        can step back."""
        if self.line and call.line:
            return call.line > self.line
        return call.at >= self.since


class Moment(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of a thread's timeline."""

    at: float
    kind: Literal["prompt", "message", "call", "turn", "policy", "trouble"]
    text: str
    call: str | None = None
    """The call it shows; look its outcome up in the thread's calls."""


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """Token counts of a thread. None: not in the file."""

    total: int | None = None
    """Without those of the thread that it was forked from."""
    by_model: tuple[ModelUsage, ...] = ()
    """The same by model."""
    context: int | None = None
    window: int | None = None
    limits: tuple[UsageWindow, ...] = ()
    """The usage limits of its account, as it stated them last."""
    day: int | None = None
    """The day of the newest count (UTC, days since 1970)."""
    before_day: tuple[ModelUsage, ...] = ()
    """Those of `by_model` that were used on earlier days."""


def without_record(size: int) -> str:
    """Say what is wrong with a session file of this many bytes if none of its lines was understood."""
    return f"no session log: {'not a line of it is understood' if size else 'it is empty'}"


_FIELDS_OF_PARENT: Final = (
    *("id", "created_at", "agent", "cwd", "parent", "policies", "observations", "file", "version", "source"),
)
"""Those that `Thread.as_parent` keeps."""


class Thread(msgspec.Struct, frozen=True, omit_defaults=True):
    """A thread of a worker CLI, as its session log describes it."""

    id: str
    created_at: float | None = None
    last_at: float | None = None
    """Time of the newest line that was read."""
    agent: str = "codex"
    """The worker CLI that runs it."""
    cwd: str | None = None
    version: str | None = None
    originator: str | None = None
    source: str | None = None
    parent: str | None = None
    forked_from: str | None = None
    nickname: str | None = None
    role: str | None = None
    side_chat: bool = False
    """Whether a TUI shows it beside the thread that it was forked from."""
    helper: bool = False
    platform: Literal["linux", "darwin"] | None = None
    """The platform on which its commands ran, by the usual place of the home directories in its paths; None
    where these do not show it."""
    name: str | None = None
    prompt: str | None = None
    """The first message of the user."""
    last_prompt: str | None = None
    last_message: str | None = None
    model: str | None = None
    home: str | None = None
    """`HOME` as one of its commands printed it last."""
    policies: tuple[PolicyPeriod, ...] = ()
    grants: tuple[Grant, ...] = ()
    """What was granted on request, and has not ended."""
    policy_lines: tuple[float, ...] = ()
    """When the newest lines that state a policy were written, also one that did not change (unix seconds);
    bounded."""
    turn: Turn | None = None
    turns: int = 0
    open_calls: tuple[Call, ...] = ()
    calls: tuple[Call, ...] = ()
    """The newest calls that have ended, oldest first; bounded."""
    moments: tuple[Moment, ...] = ()
    """The newest part of the timeline, oldest first; bounded."""
    edits: tuple[Edit, ...] = ()
    """The newest edit of each file, the newest last; bounded."""
    children: tuple[str, ...] = ()
    tokens: Tokens = Tokens()
    observations: tuple[SandboxObservation, ...] = ()
    tmux: tuple[str, ...] = ()
    """The newest few calls that ask a tmux server to run something."""
    escapes: tuple[Escape, ...] = ()
    """What it was seen to run outside the sandbox."""
    violations: tuple[ViolationLogged, ...] = ()
    """The newest denials that Codex itself has logged, oldest first; bounded."""
    trouble: TroubleLogged | None = None
    """The newest request to the model that had to be tried again."""
    sandbox_failed: SandboxFailed | None = None
    """The newest failure of its sandbox to start (Claude Code)."""
    denials: tuple[LedgerEntry, ...] = ()
    """The denial ledger: what its sandbox refused, oldest first; bounded."""
    denials_dropped: int = 0
    """Older entries of the ledger that were dropped."""
    file: FileSeen | None = None
    """Where its file was seen last, and how much of it has been read."""
    lines: int = 0
    skipped: tuple[tuple[str, int], ...] = ()
    """Lines that were not understood, and how many: (`unknown world_state2`, 3)."""

    def as_parent(self) -> Thread:
        """Return what its children are compared with, and its request is read by: whole threads would fill
        the memory."""
        return Thread(**{name: getattr(self, name) for name in _FIELDS_OF_PARENT})

    def find_call(self, call: str | None) -> Call | None:
        """Return the open or ended call with an id, or None if it has not been read."""
        calls = (*self.open_calls, *reversed(self.calls))
        return next((each for each in calls if each.id == call), None)

    @property
    def is_in_turn(self) -> bool:
        """Whether its newest turn goes on; one without marks ends with an answer that no call follows."""
        turn = self.turn
        if turn is None or turn.ended_at is not None:
            return False
        return not turn.inferred or bool(self.open_calls) or not turn.message

    def is_titled(self, title: str) -> bool:
        """Return whether a title names it, by its name or else its first prompt; long ones end in `...`."""
        own = " ".join((self.name or self.nickname or self.prompt or "").split())
        shown = " ".join(title.split())
        start = shown.removesuffix("...").rstrip()
        return bool(start) and (own == shown or (start != shown and own.startswith(start)))

    @property
    def written_at(self) -> float | None:
        """Return the time of its newest line (unix seconds); without one, of the last change of its file."""
        return self.last_at or (self.file.modified if self.file else None)

    @property
    def policy(self) -> Policy | None:
        """Return the policy in force now."""
        return self.policies[-1].policy if self.policies else None

    def policy_index_at(self, at: float) -> int:
        """Return the index of the policy in force at a time (unix seconds); -1 before the first.

        A policy that was stated later does not apply to earlier calls.
        """
        index = -1
        for number, period in enumerate(self.policies):
            if period.since <= at:
                index = number
        return index

    def policy_index_of(self, call: Call) -> int:
        """Return the index of the policy in force when a call was made; -1 before the first.

        The order of lines decides where it is known: clocks can step back.
        """
        if not call.line or not all(period.line for period in self.policies):
            return self.policy_index_at(call.at)
        return sum(period.line < call.line for period in self.policies) - 1

    def policy_of(self, call: Call) -> Policy | None:
        """Return the policy in force when a call was made; None before the first."""
        index = self.policy_index_of(call)
        return self.policies[index].policy if index >= 0 else None

    def policy_at(self, at: float) -> Policy | None:
        """Return the policy in force at a time (unix seconds); None before the first."""
        index = self.policy_index_at(at)
        return self.policies[index].policy if index >= 0 else None
