"""Workers without a session of their own: occupants of panes, and worker CLIs that a command started."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final

from agentdash.engine.judge.findings.pane_sandbox import judge_nested_sandbox, judge_pane_sandbox
from agentdash.engine.judge.states.nested_state import judge_nested
from agentdash.engine.judge.states.pane_state import judge_pane, pane_session
from agentdash.engine.thread_worker import MAX_NAME_CHARS, add_findings
from agentdash.model.chat import Chat
from agentdash.model.events import ScreenRead, SessionSeen
from agentdash.model.findings import Finding
from agentdash.model.fleet import Fleet, PaneOccupant
from agentdash.model.pane import Pane
from agentdash.model.process import Process
from agentdash.model.sanitize import clean_line
from agentdash.model.screen import ScreenUsage
from agentdash.model.thread import Tokens
from agentdash.model.worker import Agent, Link, Worker, nested_worker_id

_TERMINAL_QUERY: Final = re.compile(r"G[a-z]=[^,;]*(?:,[a-zA-Z]=[^,;]*)*;")
"""What Claude Code (2.1.330) asks its terminal about graphics: tmux keeps it as the title."""
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
    is_named = bool(pane.title) and not _TERMINAL_QUERY.match(pane.title)
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
        on_screen=_usage_on_screen(fleet.readings.get(pane.key), occupant.agent),
        pane=pane,
        pids=tuple(process.pid for process in below),
        cwd=main.cwd if main else None,
        started=occupant.key.started,
        activity=pane.activity,
        last_activity=max((at for at in (pane.drawn_at, pane.titled_at) if at is not None), default=None),
        line=chat.tool or assessment.why,
        links=tuple(_pane_links(occupant, by, session)),
    )


def nested_worker(fleet: Fleet, process: Process, thread: str) -> Worker:
    """Return the worker that is a worker CLI below a command of a thread.

    Args:
        process: the process of the CLI.
        thread: the id of the thread.
    """
    agent = process.agent or process.name
    nested = PaneOccupant(
        agent=agent, key=process.key, process=process, paths=fleet.state_paths.get(process.key, ())
    )
    assessment = judge_nested(fleet, nested)
    by = "descends from the process of the thread that its environment names"
    return Worker(
        id=nested_worker_id(process.pid),
        kind="process",
        name=_nested_name(process),
        agent=Agent(agent),
        assessment=assessment,
        parent=thread,
        sandbox=judge_nested_sandbox(fleet, nested, assessment),
        pids=(process.pid,),
        cwd=process.cwd,
        started=process.key.started,
        last_activity=max(fleet.busy.get(process.key, 0.0), process.key.started),
        line=assessment.why,
        links=(Link(f"thread {thread}", by),),
    )


def _pane_links(occupant: PaneOccupant, by: str, session: SessionSeen | None) -> Iterator[Link]:
    yield Link(f"pid {occupant.key.pid}", by)
    if session is not None and session.chat is not None:
        yield Link(f"session {session.session}", session.chat.by)


def _usage_on_screen(reading: ScreenRead | None, agent: str) -> ScreenUsage | None:
    """Return what a screen states of model, context and cost; None where it states nothing."""
    if reading is None or reading.agent != agent or reading.usage == ScreenUsage():
        return None
    return reading.usage


def _nested_name(process: Process) -> str:
    """Return the command line of a nested worker, as a name."""
    program, *arguments = process.argv or (process.name,)
    return clean_line(" ".join((posixpath.basename(program), *arguments)), MAX_NAME_CHARS)
