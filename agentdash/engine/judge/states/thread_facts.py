"""The facts that a Codex thread's state is judged by, and the questions that several rules have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from agentdash.model.denials import Denial
from agentdash.model.events import CallKind, ScreenRead, SessionSeen, StatusPushed
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fleet import Fleet, FleetLinks, ProviderTrouble, ThreadOwner
from agentdash.model.pane import PaneKey
from agentdash.model.process import AGENT_NAMES, Process
from agentdash.model.sanitize import clean_line
from agentdash.model.states import Liveness, State
from agentdash.model.thread import Call, Thread, Turn

PROCESS_START_GRACE_S: Final = 1.0
"""Time that a call's process may take to appear before its absence counts: a scan of all processes and a
fork."""
_OWNERLESS_AFTER_S: Final = 3.0
"""Age of the newest line from which a thread without an owner counts as left. Of a file without a whole line,
which may have been created just now, its time of change."""


class ThreadFacts(msgspec.Struct, frozen=True):
    """Everything that the state of one thread depends on."""

    thread: Thread
    owner: ThreadOwner | None = None
    orphaned: float | None = None
    """When its owner was seen to have ended (unix seconds)."""
    runs_once: bool = False
    """Whether its owner was given one task, with which it ends (`codex exec`)."""
    commands: tuple[Process, ...] = ()
    """Live processes of its commands."""
    claims: tuple[Process, ...] = ()
    """Live processes that name it, and are not known to be its commands."""
    processes_at: float | None = None
    """Time of the newest process scan, or None."""
    files_at: float | None = None
    """Time of the newest scan that has read open files: not every one does."""
    reading: ScreenRead | None = None
    """The reading of its pane's screen; None without a pane."""
    pushed: StatusPushed | None = None
    """The newest status in Codex's feed (0.160+)."""
    trouble: ProviderTrouble | None = None
    """The newest trouble with the provider, seen while its turn was open."""
    session: SessionSeen | None = None
    """The session file of its process (Claude Code), where that names this thread."""
    asker: Thread | None = None
    """The sub-agent that waits for an approval, whose dialog stands in its own pane."""
    dialog: Evidence | None = None
    """Of a sub-agent that asks (Claude Code): the dialog, which stands in the pane of its session."""
    agents: int = 0
    """Agents of Claude Code that work on for it; it goes on by itself when they have ended."""

    @property
    def cli(self) -> str:
        """The name of the CLI that runs it, in words."""
        return AGENT_NAMES.get(self.thread.agent, self.thread.agent)

    @property
    def open_turn(self) -> Turn | None:
        """The newest turn, while it has not ended."""
        turn = self.thread.turn
        return turn if turn is not None and turn.ended_at is None else None

    @property
    def newest_open_call(self) -> Call | None:
        """The call that was opened last and has not ended."""
        return self.thread.open_calls[-1] if self.thread.open_calls else None

    @property
    def liveness(self) -> Liveness:
        """Whether a process has the thread loaded."""
        if self.owner or self.commands:
            return Liveness.ALIVE
        if self.files_at is None:
            return Liveness.UNKNOWN
        newest_line = self.thread.written_at or 0.0
        ended = self.orphaned is not None and self.orphaned >= newest_line
        silent = self.files_at - newest_line >= _OWNERLESS_AFTER_S
        return Liveness.GONE if ended or silent else Liveness.UNKNOWN

    @property
    def ownerless_since(self) -> float | None:
        """When its owner ended; the time of its newest line where that is later or all that is known."""
        return max((at for at in (self.orphaned, self.thread.last_at) if at is not None), default=None)

    @property
    def can_be_answered(self) -> bool:
        """Whether the user can reply to its last message: that of a sub-agent goes to its parent."""
        thread = self.thread
        is_run = self.runs_once or (thread.source or "").startswith(("exec", "sdk"))
        return self.owner is not None and not is_run and thread.parent is None

    def open_call(self, kind: CallKind) -> Call | None:
        """Return the oldest open call of a kind."""
        return next((call for call in self.thread.open_calls if call.kind == kind), None)

    def process_of(self, call: Call) -> Process | None:
        """Return the live process of a call, by `CODEX_TOOL_CALL_ID` in its environment (0.163+)."""
        return next((p for p in self.commands if (p.env or {}).get("CODEX_TOOL_CALL_ID") == call.id), None)

    def is_answered_since(self, at: float) -> bool:
        """Return whether Codex's feed has reported since `at` that the thread works and waits for nothing."""
        pushed = self.pushed
        return pushed is not None and pushed.status == "active" and not pushed.flags and pushed.at >= at


def thread_facts(fleet: Fleet, thread: Thread, links: FleetLinks) -> ThreadFacts:
    """Collect the facts about a thread from the fleet."""
    placed, owner = links.panes.get(thread.id), links.owners.get(thread.id)
    pane = fleet.panes.get(placed.key) if placed else None
    occupant = fleet.occupants.get(placed.key) if placed else None
    is_in_front = placed is not None and thread.id in threads_in_front(fleet, links, placed.key)
    left = (pane is not None and pane.dead) or (occupant is not None and occupant.gone_at is not None)
    process = fleet.processes.get(owner.key) if owner is not None and owner.key is not None else None
    logged, on_screen = thread.trouble, fleet.troubles.get(thread.id)
    troubles = [on_screen] if on_screen is not None else []
    troubles += [ProviderTrouble(logged.at, EvidenceSource.CODEX_LOG, logged.text)] if logged else []
    asking = _asking(fleet, links, thread) if thread.children else []
    children = (fleet.threads.get(child) for child in thread.children if thread.agent == "claude")
    return ThreadFacts(
        thread=thread,
        owner=owner,
        orphaned=links.orphans.get(thread.id),
        runs_once=process is not None and process.once,
        commands=links.commands.get(thread.id, ()),
        claims=links.claims.get(thread.id, ()),
        processes_at=fleet.processes_at,
        files_at=fleet.files_at,
        reading=fleet.readings.get(placed.key) if placed and is_in_front and not left else None,
        pushed=fleet.pushed.get(thread.id) if thread.agent == "codex" else None,
        trouble=max(troubles, key=lambda trouble: trouble.at, default=None),
        session=_session(fleet, links, thread),
        asker=asking[0] if asking and asking[0] is not thread else None,
        dialog=_dialog(fleet, links, thread),
        agents=sum(child is not None and child.is_in_turn for child in children),
    )


def threads_in_front(fleet: Fleet, links: FleetLinks, pane: PaneKey) -> Sequence[str]:
    """Return the threads of a pane that the reading of its screen is of: of several, those with the name in
    its title, or with a sub-agent of that name."""
    shown, reading = links.threads_in(pane), fleet.readings.get(pane)
    known = {each: fleet.threads[each] for each in shown if each in fleet.threads}
    has_side_chat = any(each.side_chat for each in known.values())
    if len(shown) < 2 or reading is None or not (reading.front or has_side_chat):
        return shown
    families = {id_: (each, *_children(fleet, each)) for id_, each in known.items() if reading.front}
    return [id_ for id_, family in families.items() if any(each.is_titled(reading.front) for each in family)]


def _children(fleet: Fleet, thread: Thread) -> list[Thread]:
    return [fleet.threads[child] for child in thread.children if child in fleet.threads]


def _session(fleet: Fleet, links: FleetLinks, thread: Thread) -> SessionSeen | None:
    """Return the session file of the process that runs a thread, if it names that thread."""
    owner = links.owners.get(thread.id)
    seen = fleet.sessions.get(owner.key) if owner is not None and owner.key is not None else None
    return seen if seen is not None and seen.session == thread.id else None


# ---------------------------------------------------------------- which thread of a session asks


def _asking(fleet: Fleet, links: FleetLinks, session: Thread) -> list[Thread]:
    """Return the threads of a session that wait for an approval: first the one whose call the dialog on the
    screen quotes, then those that its CLI's feed or file shows."""
    placed, status = links.panes.get(session.id), _session(fleet, links, session)
    reading = fleet.readings.get(placed.key) if placed else None
    is_shown = reading is not None and reading.state == State.WAITING_APPROVAL
    is_waiting = status is not None and status.status == "waiting"
    if not (is_shown or is_waiting):
        return []
    family = {session.id: session}
    pending = [session]  # not recursive: files may name chains of any depth
    while pending:
        below = [each for each in _children(fleet, pending.pop()) if each.id not in family]
        family.update({each.id: each for each in below})
        pending += below
    with_call = [each for each in family.values() if each.open_calls]
    quoted = [each for each in with_call if reading and _quotes(reading, each.open_calls[-1])]
    if session.agent == "claude":
        others = [each for each in with_call if is_waiting and _is_in_line(fleet, links, session, each)]
    else:
        pushed = {each.id: fleet.pushed[each.id] for each in family.values() if each.id in fleet.pushed}
        asking = {id_ for id_, status in pushed.items() if "waitingOnApproval" in status.flags}
        others = [each for each in family.values() if each is not session and each.id in asking]
        # what Codex's feed says of a thread outranks a dialog that is still drawn
        quoted = [each for each in quoted if each is session or each.id in asking or each.id not in pushed]
    return list({each.id: each for each in (*quoted, *others)}.values())


def _is_in_line(fleet: Fleet, links: FleetLinks, session: Thread, thread: Thread) -> bool:
    """Return whether a thread of a session of Claude Code stands in line: no process is as young as its
    command."""
    call = thread.open_calls[-1]
    newest = max((each.key.started for each in links.commands.get(session.id, ())), default=0.0)
    return call.kind == "command" and newest < call.at <= (fleet.processes_at or 0.0) - PROCESS_START_GRACE_S


def _quotes(reading: ScreenRead, call: Call) -> bool:
    """Return whether a dialog asks about a call: it quotes the first line of a command, or names a file."""
    if reading.state != State.WAITING_APPROVAL:
        return False
    if call.kind == "patch":
        return call.text.rpartition("/")[2] in reading.text.split()
    return bool(reading.object) and clean_line(call.text).startswith(clean_line(reading.object))


def _dialog(fleet: Fleet, links: FleetLinks, thread: Thread) -> Evidence | None:
    """Return the evidence for a dialog by which a sub-agent of Claude Code asks, or None if it does not."""
    if thread.agent != "claude" or not thread.open_calls:
        return None
    session, visited = thread, {thread.id}
    while (parent := fleet.threads.get(session.parent or "")) is not None and parent.id not in visited:
        session = parent
        visited.add(parent.id)
    if session is thread or thread not in _asking(fleet, links, session):
        return None
    placed, status = links.panes.get(session.id), _session(fleet, links, session)
    reading = fleet.readings.get(placed.key) if placed else None
    if reading is not None and _quotes(reading, thread.open_calls[-1]):
        return Evidence(reading.source, reading.at, reading.rule or "", reading.object or reading.text)
    since = max(status.since if status is not None else 0.0, thread.open_calls[-1].at)
    text = f"status waiting of session {session.id}, and its command has no process"
    return Evidence(EvidenceSource.SESSION_FILE, since, "session-status", text)


# ---------------------------------------------------------------- denials that stop


def stopping_denial(thread: Thread, call: Call) -> Denial | None:
    """Return the denial that stopped a call, or None if it had none, or ended well in spite of it.

    Under full access the same words are those of a firewall, or of file modes.

    An exit code of 0 means that the program handled the denial itself, unless another command of the script
    set the code: `| tail`, `|| true`, `; echo rc=$?`. What the program itself goes on without stops nothing.
    """
    denial = call.denial
    if denial is None or denial.what == "other" or call.outcome == "running":
        return None
    policy = thread.policy_of(call)
    if policy is not None and policy.is_full_access:
        return None
    if call.exit_code != 0 or call.outcome == "denied":
        return denial
    if denial.is_aside:
        return None
    # one-shot commands start faster without the grammar
    from agentdash.sandbox.shell import commands  # noqa: PLC0415

    return denial if len(commands(call.script) or ()) > 1 else None
