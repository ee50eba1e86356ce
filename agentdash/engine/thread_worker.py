"""The worker that a thread is: its state and its sandbox as judged, and what its row shows."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from agentdash.engine.judge.attention import limited_until
from agentdash.engine.judge.findings.pane_sandbox import judge_nested_sandbox, judge_pane_sandbox
from agentdash.engine.judge.findings.verdict import Surroundings
from agentdash.engine.judge.states.pane_state import judge_nested, judge_pane, pane_session
from agentdash.engine.judge.states.thread_facts import ThreadFacts
from agentdash.model.chat import Chat
from agentdash.model.events import ScreenRead
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Finding
from agentdash.model.fleet import Fleet, PaneOccupant, ThreadPane
from agentdash.model.pane import Pane, ScreenUsage
from agentdash.model.process import THREAD_VARIABLES, Process
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import Thread, Tokens
from agentdash.model.worker import Agent, Assessment, Link, Sandbox, Worker, nested_worker_id

_THREAD_KINDS: Final[dict[str, Literal["codex-thread", "claude-session"]]] = {
    "codex": "codex-thread",
    "claude": "claude-session",
}
"""Kind of worker of the threads of each CLI; those of others are chats."""
MAX_NAME_CHARS: Final = 60
"""Characters of a prompt that serves as a name: the widest name column."""
_MAX_LINE_CHARS: Final = 300
"""Characters of the activity line: the widest terminal in use."""
_LISTED_CLAIMS: Final = 5
"""Of processes that name a thread and are not its commands: there may be any number."""
_MAX_ARGV_CHARS: Final = 200
"""Characters of a command line in a link."""
FIELDS_OF_TALK: Final = frozenset(
    (
        *("last_at", "last_message", "last_prompt", "prompt", "name", "moments", "tokens"),
        *("turn", "turns", "edits", "children", "lines", "file", "skipped"),
    )
)
"""Fields of a thread on which its sandbox does not depend; they change with nearly every line. The Codex home
that `file` lies in is among the places."""
_FIELDS_OF_SANDBOX: Final = tuple(name for name in Thread.__struct_fields__ if name not in FIELDS_OF_TALK)


class RowInputs(msgspec.Struct, frozen=True):
    """Everything that the row of a thread is derived from."""

    case: ThreadFacts
    parent: str | None
    link: ThreadPane | None
    pane: Pane | None
    part: str
    """Which part of its pane it is, where that has several threads."""
    server_findings: tuple[Finding, ...]
    """Findings about the tmux server of its pane."""
    surroundings: Surroundings

    def is_same(self, other: RowInputs) -> bool:
        """Return whether judging again would give the same.

        At rest the time of the pass over processes matters only as far as it shows that the thread is left.
        """
        case, theirs = self.case, other.case
        thread = case.thread
        is_at_rest = thread.turn is not None and thread.turn.ended_at is not None and not thread.open_calls
        if is_at_rest and case.liveness is theirs.liveness:
            theirs = replace(theirs, processes_at=case.processes_at, files_at=case.files_at)
            return self == replace(other, case=theirs)
        return self == other

    def has_same_sandbox(self, other: RowInputs) -> bool:
        """Return whether judging the sandbox again, in the same state, would give the same: what the model
        writes, and when, does not matter."""
        thread, theirs = self.case.thread, other.case.thread
        return self.surroundings == other.surroundings and all(
            getattr(thread, name) is getattr(theirs, name) for name in _FIELDS_OF_SANDBOX
        )


def thread_worker(inputs: RowInputs, assessment: Assessment, sandbox: Sandbox) -> Worker:
    """Return the worker that a thread is.

    Args:
        inputs: what it is derived from.
        assessment: its state.
        sandbox: as judged by `judge_sandbox`.
    """
    case, thread = inputs.case, inputs.case.thread
    prompt = clean_line(thread.prompt or "", MAX_NAME_CHARS)
    is_read = bool(thread.version) or thread.last_at != thread.created_at
    if thread.agent != "codex":
        assessment, sandbox = by_transcript(assessment, sandbox)
    return Worker(
        id=thread.id,
        kind=_THREAD_KINDS.get(thread.agent, "chat"),
        name=thread.name or thread.nickname or prompt or thread.id[:8],
        agent=Agent(thread.agent, thread.version),
        assessment=assessment,
        parent=inputs.parent,
        sandbox=add_findings(sandbox, inputs.server_findings),
        pane=inputs.pane,
        part=inputs.part,
        pids=tuple(process.pid for process in case.commands),
        cwd=thread.cwd,
        started=thread.created_at,
        tokens=thread.tokens,
        edits=thread.edits,
        limited_until=limited_until(thread, assessment),
        # if only a bare header was read, the mtime of the file
        last_activity=thread.last_at if is_read else thread.file.modified if thread.file else None,
        line=_activity_line(thread, assessment),
        links=tuple(_thread_links(inputs)),
        policies=thread.policies,
        moments=thread.moments,
        calls=(*reversed(thread.open_calls), *reversed(thread.calls)),
        model=thread.model,
        file=thread.file.path if thread.file else None,
        turns=thread.turns,
        notes=_notes(thread),
    )


def _thread_links(inputs: RowInputs) -> Iterator[Link]:
    owner = inputs.case.owner
    if owner:
        yield Link(f"pid {owner.pid}", owner.by)
    if inputs.link:
        part = f"; {inputs.part}" if inputs.part else ""
        yield Link(f"pane {inputs.link.key}", f"{inputs.link.by}{part}")
    variable = THREAD_VARIABLES.get(inputs.case.thread.agent, "a variable")
    for process in inputs.case.commands:
        yield Link(f"pid {process.pid}", f"{variable} in its environment: {_command_line(process)}")
    for process in inputs.case.claims[:_LISTED_CLAIMS]:
        why = f"not counted: {variable} names this thread, whose process is not above it"
        yield Link(f"pid {process.pid}", f"{why}: {_command_line(process)}")


def _command_line(process: Process) -> str:
    return " ".join(process.argv)[:_MAX_ARGV_CHARS] or process.name


def _activity_line(thread: Thread, assessment: Assessment) -> str:
    """Return what a thread needs, or does, or last did."""
    if assessment.state.needs_you:
        text = assessment.why
    elif thread.open_calls:
        call = thread.open_calls[-1]
        text = f"$ {call.text}" if call.kind == "command" else f"{call.tool} {call.text}"
    else:
        text = thread.last_message or thread.last_prompt or ""
    return clean_line(text, _MAX_LINE_CHARS)


def _notes(thread: Thread) -> tuple[str, ...]:
    notes = [f"{count} × {what} skipped" for what, count in thread.skipped]
    if thread.file and thread.file.skimmed:
        size = thread.file.size
        read = f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
        notes.insert(0, f"only head and tail of {read} read")
    if thread.denials_dropped:
        notes.append(f"{thread.denials_dropped} older denials dropped")
    return tuple(notes)


def add_findings(sandbox: Sandbox, findings: tuple[Finding, ...]) -> Sandbox:
    """Return a sandbox with more findings."""
    return replace(sandbox, findings=(*sandbox.findings, *findings)) if findings else sandbox


def by_transcript(assessment: Assessment, sandbox: Sandbox) -> tuple[Assessment, Sandbox]:
    """Return both with the transcript, the log of other CLIs than Codex, as source in place of a rollout."""
    findings = tuple(replace(finding, evidence=_renamed(finding.evidence)) for finding in sandbox.findings)
    return (
        replace(assessment, evidence=_renamed(assessment.evidence)),
        replace(sandbox, evidence=_renamed(sandbox.evidence), findings=findings),
    )


def _renamed(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    return tuple(
        replace(each, source=EvidenceSource.TRANSCRIPT) if each.source is EvidenceSource.ROLLOUT else each
        for each in evidence
    )


# ------------------------------------------------------------
# Workers without a session of their own: occupants of panes, and worker CLIs that a command started


TERMINAL_ANSWER: Final = re.compile(r"G[a-zA-Z]=\w+(?:,[a-zA-Z]=\w+)*(?:;[\w+/=:. -]*)?")
"""What programs (Claude Code 2.1.330) ask terminals about graphics, and their answer: tmux keeps it as the
title."""
_NO_CHAT: Final = Chat(by="")


def pane_worker(
    fleet: Fleet, pane: Pane, occupant: PaneOccupant, below: Sequence[Process], findings: tuple[Finding, ...]
) -> Worker:
    """Return the worker that occupies a pane.

    Args:
        below: the processes of the pane.
        findings: about the tmux server of the pane.
    """
    main = fleet.processes.get(occupant.key)
    assessment = judge_pane(fleet, pane, occupant)
    sandbox = judge_pane_sandbox(fleet, pane, occupant, assessment)
    is_named = bool(pane.title) and not TERMINAL_ANSWER.fullmatch(pane.title)
    has_title = is_named and occupant.gone_at is None
    session = pane_session(fleet, pane, occupant)
    chat = session.chat if session is not None and session.chat is not None else _NO_CHAT
    by = f"descends from the pane's first process (pid {pane.pid})"
    return Worker(
        id=str(pane.key),
        kind="pane",
        name=chat.name or (pane.title if has_title else pane.window) or str(pane.key),
        agent=Agent(occupant.agent),
        assessment=assessment,
        sandbox=add_findings(sandbox, findings),
        tokens=Tokens(total=chat.total, by_model=chat.by_model, context=chat.context),
        model=chat.model,
        edits=chat.edits,
        on_screen=_usage_on_screen(fleet.readings.get(pane.key), occupant.agent),
        pane=pane,
        pids=tuple(process.pid for process in below),
        cwd=main.cwd if main else None,
        started=occupant.key.started,
        last_activity=max((at for at in (pane.drawn_at, pane.titled_at) if at is not None), default=None),
        line=chat.tool or assessment.why,
        links=(
            Link(f"pid {occupant.key.pid}", by),
            *([Link(f"session {session.session}", chat.by)] if session and session.chat else []),
        ),
    )


def nested_worker(fleet: Fleet, process: Process, thread: str) -> Worker:
    """Return the worker that is a worker CLI below a command of a thread.

    Args:
        process: the process of the CLI.
        thread: the id of the thread; empty: none is known.
    """
    agent = process.agent or process.name
    program, *arguments = process.argv or (process.name,)
    nested = PaneOccupant(
        agent=agent, key=process.key, process=process, paths=fleet.state_paths.get(process.key, ())
    )
    assessment = judge_nested(fleet, nested)
    by = "descends from the process of the thread that its environment names"
    return Worker(
        id=nested_worker_id(process.pid),
        kind="process",
        name=clean_line(" ".join((posixpath.basename(program), *arguments)), MAX_NAME_CHARS),
        agent=Agent(agent),
        assessment=assessment,
        parent=thread or None,
        sandbox=judge_nested_sandbox(fleet, nested, assessment),
        pids=(process.pid,),
        cwd=process.cwd,
        started=process.key.started,
        last_activity=max(fleet.busy.get(process.key, 0.0), process.key.started),
        line=assessment.why,
        links=(Link(f"thread {thread}", by),) if thread else (),
    )


def _usage_on_screen(reading: ScreenRead | None, agent: str) -> ScreenUsage | None:
    """Return what a screen states of model, context and cost, or None."""
    if reading is None or reading.agent != agent or reading.usage == ScreenUsage():
        return None
    return reading.usage
