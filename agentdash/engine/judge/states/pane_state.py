"""The state of a worker CLI that is known by its pane alone.

Its tmux server, its process, its session file and its screen are consulted in this order.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final, NamedTuple

from msgspec.structs import replace

from agentdash.engine.judge.states import facts
from agentdash.engine.judge.states.activity import pane_last_sign
from agentdash.engine.judge.states.facts import conclude
from agentdash.model.denials import Denial
from agentdash.model.events import ScreenRead, SessionSeen
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind
from agentdash.model.fleet import NOT_RECORDED, Fleet, PaneOccupant, ProviderTrouble
from agentdash.model.memory import PastWorker
from agentdash.model.observation import NETWORK_FLAG
from agentdash.model.pane import NO_SERVER, Pane, PaneKey, tmux_source
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Kernel, Process, ProcessKey
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, Link, PastPane, Worker
from agentdash.sandbox.denials import find_denials

_AT_REST: Final = (State.COMPLETED, State.WAITING_INPUT, State.INTERRUPTED)
_AT_WORK: Final = (State.RUNNING, State.WAITING_APPROVAL, State.BLOCKED_SANDBOX, State.FAILED_PROVIDER)
_LOGS_WITHOUT_ENDS: Final = ("qwen",)
"""Worker CLIs whose logs have no line for a turn that is cancelled or fails: an open one says nothing."""
_STILL: Final = "it sits still"
_NOT_UNDERSTOOD: Final = facts.unclear("its process runs; its screen is not understood")
_LASTING: Final = (
    State.COMPLETED,
    State.BLOCKED_SANDBOX,
    State.FAILED_PERMISSION,
    State.FAILED_PROVIDER,
    State.EXITED,
)
"""States that the end of the process does not change; all others end as `exited`."""
_MAX_PAST_PANES: Final = 200
"""Past panes in a snapshot, which is written as a file for sandboxed agents: 100 KB."""


class PaneFacts(NamedTuple):
    """What the state of a worker CLI depends on that is known by its process, in a pane or not."""

    fleet: Fleet
    occupant: PaneOccupant
    pane: Pane | None = None

    @property
    def reading(self) -> ScreenRead | None:
        """The reading of its screen."""
        return self.fleet.readings.get(self.pane.key) if self.pane else None

    @property
    def session(self) -> SessionSeen | None:
        """Its session."""
        return pane_session(self.fleet, self.pane, self.occupant) if self.pane else None

    @property
    def sandbox(self) -> SandboxInfo | None:
        """The sandbox around its process."""
        return enclosing_sandbox(self.occupant.process, self.fleet.kernel)


def judge_pane(fleet: Fleet, pane: Pane, occupant: PaneOccupant) -> Assessment:
    """Return the state of a worker CLI that is known by its pane only."""
    server = fleet.sources.get(tmux_source(pane.key.server))
    is_unrecorded = server is not None and server.detail == NOT_RECORDED
    if server is not None and not server.ok and not is_unrecorded:
        return facts.server_gone(server)
    if not is_unrecorded and pane.dead and pane.dead_status is None and pane.dead_signal is None:
        # of its zombie, which tmux 3.3 may not have collected
        code = next((p.exit_code for p in fleet.processes.values() if p.pid == pane.pid and p.zombie), None)
        pane = replace(pane, dead_status=code)
    case = PaneFacts(fleet, occupant, pane)
    if pane.dead or occupant.gone_at is not None:
        return _assess_ended(case, pane)
    if server is not None and is_unrecorded:
        return _assess_unrecorded(fleet, pane, server.at)
    found = _assess_alive(case, pane)
    session = case.session
    question = session.chat.asks if session is not None and session.chat is not None else ""
    if question and not occupant.process.once and found.state is State.COMPLETED:
        return facts.asks_in_text(question, found.since, EvidenceSource.SESSION_LOG)
    return found


def _assess_unrecorded(fleet: Fleet, pane: Pane, at: float) -> Assessment:
    """Return the state after the end of a recording: of a worker that had not ended, it is not known."""
    history = fleet.histories.get(str(pane.key))
    periods = history.periods if history else ()
    last = next((period for period in reversed(periods) if period.state != State.UNREACHABLE), None)
    why = f"{NOT_RECORDED}{f'; it was {last.state} then: {last.why}' if last else ''}"
    fact = facts.unclear(why)
    return conclude(State.UNREACHABLE, at, "recording-ended", why, EvidenceSource.HISTORY, fact=fact)


def _assess_ended(case: PaneFacts, pane: Pane) -> Assessment:
    """Return the state of a worker whose process has ended, or has left its pane."""
    at, how, evidence = _ending(pane, case.occupant)
    is_finished = pane.dead and pane.dead_status == 0
    has_error = bool(pane.dead_status or pane.dead_signal)
    last_seen = case.reading.state if case.reading is not None else None
    # one that was at rest and left without an error has quit: what its last screen quotes did not stop it
    has_quit = last_seen in _AT_REST and not has_error
    if not is_finished and not has_quit and (denial := screen_denial(case) or state_path_denial(case)):
        assessment = assess_blocked(denial, at, how)
        return replace(assessment, evidence=(*assessment.evidence, evidence))
    history = case.fleet.histories.get(str(pane.key))
    last = history.periods[-1] if history and history.periods else None
    if last is not None and last.state == State.BLOCKED_SANDBOX and last.since >= at:
        # what it printed last has scrolled away since
        fact = facts.unclear("blocked:", last.why)
        return Assessment(State.BLOCKED_SANDBOX, last.since, last.why, (evidence,), fact)
    if is_finished and case.occupant.process.once:
        return Assessment(State.COMPLETED, at, f"its one task is done: {how}", (evidence,), facts.FINISHED)
    was_at_work = not has_quit and (last_seen in _AT_WORK or has_error)
    return Assessment(State.EXITED, at, how, (evidence,), facts.ended(how, in_a_turn=was_at_work))


def _ending(pane: Pane, occupant: PaneOccupant) -> tuple[float, str, Evidence]:
    """Return when it ended (unix seconds), how, and the evidence."""
    if pane.dead:
        code = "unknown" if pane.dead_status is None else pane.dead_status
        how = f"killed by signal {pane.dead_signal}" if pane.dead_signal else f"exit code {code}"
        at = pane.dead_at or 0.0
        return at, how, Evidence(EvidenceSource.TMUX, at, "pane-dead", f"pane_dead=1, {how}")
    at, how = occupant.gone_at or 0.0, f"{occupant.agent} (pid {occupant.key.pid}) is gone from the pane"
    return at, how, Evidence(EvidenceSource.PROCESS, at, "worker-gone", how)


# ---------------------------------------------------------------- its process lives


def _assess_alive(case: PaneFacts, pane: Pane) -> Assessment:
    """Return the state by its session file or log, as far as the screen only says more about it; without
    these by its screen."""
    fleet, reading, session = case.fleet, case.reading, case.session
    if (found := _awaiting_input(fleet, case.occupant.key)) is not None:
        return found
    state = State(reading.state) if reading is not None and reading.state else None
    chat = session.chat if session is not None else None
    said = _said(session)
    is_contradicted = reading is not None and state is not None and said and not facts.is_heard(reading, said)
    if session is not None and session.status is not None and (state is None or is_contradicted):
        return _by_session_file(session)
    if session is not None and is_contradicted:
        return _by_log(session, State.RUNNING, facts.WORKS, "its newest turn is open")
    if (blocked := _sandbox_block(case, pane, state)) is not None:
        return blocked
    if session is not None and chat is not None and chat.trouble and state in (None, State.RUNNING):
        fact = facts.retries(chat.trouble)
        return _by_log(session, State.RUNNING, fact, f"it tries again: {chat.trouble}")
    trouble = fleet.troubles.get(str(pane.key))
    if trouble is not None and state in (None, State.INTERRUPTED) and not _is_over(trouble, case):
        return facts.stopped_while_failing(trouble, trouble.at)
    if reading is not None and state is not None:
        return facts.assess_screen(reading)
    if reading is not None and reading.partial:
        return facts.assess_half_menu(reading, f"its {pane.width}x{pane.height} pane")
    if (denial := screen_denial(case)) is not None:
        return assess_blocked(denial, pane.drawn_at or pane.titled_at or 0.0, "it goes no further")
    if session is not None and chat is not None and chat.turn not in (None, "open"):
        how = f"its newest turn {chat.turn}{f': {chat.why}' if chat.why else ''}"
        failed = (State.FAILED_PROVIDER, facts.provider(chat.why))
        ends = {"failed": failed, "interrupted": (State.INTERRUPTED, facts.STOPPED)}
        return _by_log(session, *ends.get(chat.turn, (State.COMPLETED, facts.FINISHED)), how)
    why = "its process runs; nothing that it shows is understood here"
    return Assessment(State.UNKNOWN, None, why, fact=_NOT_UNDERSTOOD)


def _awaiting_input(fleet: Fleet, key: ProcessKey) -> Assessment | None:
    """Return `waiting-input` where a worker, or the program that it runs, waits for the end of its standard
    input: before that it begins nothing."""
    for process in fleet.processes.values():
        if process.awaited_input is not None and (process.key == key or process.ppid == key.pid):
            at, source = process.key.started, EvidenceSource.KERNEL
            fact = facts.awaits_input(process.awaited_input, process.argv)
            text = f"pid {process.pid} waits in read(0), a {process.awaited_input}"
            return conclude(State.WAITING_INPUT, at, "awaits-input", fact.text, source, text, fact)
    return None


def _by_log(session: SessionSeen, state: State, fact: Fact, how: str) -> Assessment:
    """Return a state by the log of a session, where the screen does not decide it."""
    why, source = f"by the log of its session: {how}", EvidenceSource.SESSION_LOG
    return conclude(state, session.since, "session-log", why, source, how, fact)


def _by_session_file(session: SessionSeen) -> Assessment:
    """Return the state by the status in a session file, where the screen adds nothing."""
    waiting_for, source = session.waiting_for or "", EvidenceSource.SESSION_FILE
    text = f"status {session.status}{f', waiting for {waiting_for}' if waiting_for else ''}"
    state, fact = State.COMPLETED, facts.FINISHED
    if session.status == "busy":
        state, fact = State.RUNNING, facts.WORKS
    elif session.status == "waiting":
        fact = Fact(FactKind.APPROVE, "waits for", clean_line(waiting_for or "an answer"))
        state = State.WAITING_APPROVAL
    why = f"its session file: {text}"
    return conclude(state, session.since, "session-status", why, source, text, fact)


def _said(session: SessionSeen | None) -> facts.Said | None:
    """Return what the CLI states itself: its status, or that a turn of this process is open in its log."""
    if session is None or session.status is not None:
        return session.status if session is not None else None
    chat = session.chat
    if chat is None or chat.turn != "open" or session.agent in _LOGS_WITHOUT_ENDS:
        return None
    is_own = chat.since is None or chat.since >= session.key.started
    return "open" if is_own else None


def _sandbox_block(case: PaneFacts, pane: Pane, state: State | None) -> Assessment | None:
    """Return `blocked-sandbox` where its sandbox explains a failing provider or a standstill."""
    reading = case.reading
    if reading is not None and (state is State.FAILED_PROVIDER or reading.is_retrying):
        denial = network_cut_denial(case, reading.text)
        return assess_blocked(denial, reading.at, "it tries again") if denial else None
    if state in (None, State.RUNNING) and _has_no_activity(case, pane):
        denial = state_path_denial(case)
        return assess_blocked(denial, pane.moved_at or pane.drawn_at or 0.0, _STILL) if denial else None
    return None


def _has_no_activity(case: PaneFacts, pane: Pane) -> bool:
    """Return whether a pane's worker has shown no activity for a while."""
    fleet, occupant = case.fleet, case.occupant
    if fleet.processes_at is None or (pane.moved_at is None and pane.drawn_at is None):
        return False
    last = max(pane_last_sign(fleet.links.below.get(pane.key, ()), pane, fleet.busy), occupant.key.started)
    return fleet.processes_at - last >= _STANDSTILL_S


def _is_over(trouble: ProviderTrouble, case: PaneFacts) -> bool:
    """Return whether work had gone on before it stopped, or another turn has begun since."""
    session, reading = case.session, case.reading
    chat = session.chat if session is not None else None
    if chat is not None and chat.turn == "open" and (chat.since or 0.0) > trouble.at:
        return True
    return trouble.over is not None and reading is not None and reading.at - trouble.over > facts.RECOVERY_S


def pane_session(fleet: Fleet, pane: Pane, occupant: PaneOccupant) -> SessionSeen | None:
    """Return the session of a pane's worker: of its process, or of one that it started itself again as."""
    keys = [occupant.key, *(p.key for p in fleet.links.below.get(pane.key, ()) if p.agent == occupant.agent)]
    return next((fleet.sessions[key] for key in keys if key in fleet.sessions), None)


def judge_nested(fleet: Fleet, nested: PaneOccupant) -> Assessment:
    """Return the state of a nested worker CLI, which a command of a thread has started: blocked where it sits
    still and may not write a path that it needs, else running."""
    if (found := _awaiting_input(fleet, nested.key)) is not None:
        return found
    denial = state_path_denial(PaneFacts(fleet, nested))
    still_since = max(fleet.busy.get(nested.key, 0.0), nested.key.started)
    if denial is not None and (fleet.processes_at or 0.0) - still_since >= _STANDSTILL_S:
        return assess_blocked(denial, still_since, _STILL)
    why, source = f"pid {nested.key.pid} runs, started by a command of its thread", EvidenceSource.PROCESS
    return conclude(State.RUNNING, nested.key.started, "nested-worker", why, source, fact=facts.WORKS)


# ---------------------------------------------------------------- whose pane is gone, or was left


def past_panes(fleet: Fleet, occupied: Container[PaneKey]) -> tuple[PastPane, ...]:
    """Return the panes whose worker is gone, the newest last, but for those that have another one now.

    Panes that belong to another tmux server now, and those of servers that are not watched, are left out.
    """
    if not fleet.past_workers:
        return ()
    newest = sorted(fleet.past_workers.values(), key=lambda past: past.seen)[-_MAX_PAST_PANES:]
    agents = {process.pid: process for process in fleet.processes.values() if process.agent}
    server_pids = {(key.server, pane.server_pid) for key, pane in fleet.panes.items()}
    running = {server for server, _ in server_pids}
    found: list[PastPane] = []
    for past in newest:
        pane, server = fleet.panes.get(past.pane), past.pane.server
        is_replaced = pane is not None and pane.server_pid != past.server_pid
        if past.pane in occupied or is_replaced or not _is_watched(fleet, server):
            continue
        source = fleet.sources.get(tmux_source(server))
        is_gone = source is None or source.detail == NO_SERVER
        is_restarted = server in running and (server, past.server_pid) not in server_pids
        shown = None if past.is_thread else _past_worker(fleet, past, agents.get(past.pid or 0))
        found.append(PastPane(past.pane, past.worker, shown, is_stale=is_restarted or is_gone))
    return tuple(found)


def _is_watched(fleet: Fleet, server: str) -> bool:
    """Return whether a tmux server is read; the default one is always, and may be absent silently."""
    source = tmux_source(server)
    if server == "default":
        return bool(fleet.panes) or any(name.startswith(source) for name in fleet.sources)
    return source in fleet.sources


def _past_worker(fleet: Fleet, past: PastWorker, process: Process | None) -> Worker:
    """Return a worker that is not in its pane any more; `process` has its pid, and is a worker CLI."""
    return Worker(
        id=past.worker,
        kind="pane",
        name=past.name or past.worker,
        agent=Agent(past.agent),
        assessment=_judge_past(fleet, past, process),
        cwd=past.cwd,
        last_activity=past.seen,
        links=(Link(f"pane {past.pane}", "an agentdash saw it there"),),
    )


def _judge_past(fleet: Fleet, past: PastWorker, process: Process | None) -> Assessment:
    server, history = fleet.sources.get(tmux_source(past.pane.server)), EvidenceSource.HISTORY
    if server is not None and not server.ok and server.detail not in (NO_SERVER, NOT_RECORDED):
        return facts.server_gone(server)
    is_agent = process is not None and process.agent == past.agent and not process.zombie
    if is_agent and process is not None and process.key.started <= past.seen:
        why, source = f"its pane is gone; its process (pid {past.pid}) lives", EvidenceSource.PROCESS
        return conclude(State.UNKNOWN, past.ended_at, "pane-gone", why, source, fact=facts.unclear(why))
    left = "it has left its pane" if past.pane in fleet.panes else "its pane is gone"
    if past.state in _LASTING:
        why = f"{left}; it was {past.state} then"
        return conclude(past.state, past.since, past.rule or "seen-before", why, history)
    before = f"; it was {past.state} when it was last seen" if past.state is not State.UNKNOWN else ""
    return conclude(State.EXITED, past.ended_at or past.seen, "pane-left", f"{left}{before}", history)


# ---------------------------------------------------------------- inside a sandbox
# The text of a denial alone proves nothing. Together with a kernel that shows a sandbox around the process,
# and with an end or a standstill, it does.


_SCREEN_END_LINES: Final = 20
"""Non-empty lines at the bottom of a screen that count as its end: an error of several lines, and a prompt
below it."""
_UNEXPLAINED_FAILURE: Final = re.compile(r"\bFileSystem\.\w+ \((/[^)]+)\)")
"""OpenCode (1.18, by its runtime) prints the operation and the path that failed, without the reason."""
_CONNECTION_FAILURE: Final = re.compile(
    r"connect|network|resolve|fetch failed|socket|typo in the url|EAI_AGAIN|ENETUNREACH|timed? ?out",
    re.IGNORECASE,
)
_STANDSTILL_S: Final = 15.0
"""Time without activity after which a worker that may not write a path it needs counts as blocked by that."""
_NAMESPACES: Final = {"mnt": "mount", "pid": "pid", "user": "user", "net": "network"}


class SandboxInfo(NamedTuple):
    """A sandbox around a process."""

    process: Process
    text: str
    """How the kernel shows it: `seccomp 2, own mount, pid namespaces`."""
    offline: bool
    """Whether it lacks the host's network: by the flag, or by a network namespace of its own."""


class SandboxDenial(NamedTuple):
    """A denial, and the sandbox that the kernel shows around the process."""

    sandbox: SandboxInfo
    denial: Denial


def enclosing_sandbox(process: Process, host: Kernel | None) -> SandboxInfo | None:
    """Return the sandbox around a process, or None if the kernel shows none, or its facts are unknown."""
    kernel = process.kernel
    if kernel is None:
        return None
    own = [_NAMESPACES[name] for name in kernel.apart_from(host)] if host else []
    # a container around both the process and agentdash filters both
    is_filtered = kernel.seccomp and (host is None or kernel.seccomp != host.seccomp)
    signs = [f"seccomp {kernel.seccomp}"] if is_filtered else []
    signs += [f"own {', '.join(own)} namespace{'s' * (len(own) > 1)}"] if own else []
    is_offline = "network" in own or (process.env or {}).get(NETWORK_FLAG) == "1"
    return SandboxInfo(process, ", ".join(signs), is_offline) if signs else None


# ---------------------------------------------------------------- what was denied


def screen_denial(case: PaneFacts) -> SandboxDenial | None:
    """Return the denial at the end of a sandboxed worker's screen; that a program could not be run stops
    none."""
    sandbox, pane = case.sandbox, case.pane
    if sandbox is None or pane is None:
        return None
    # a line that fills the pane's width continues in the next one
    lines = [line for line in pane.screen if line.strip()][-_SCREEN_END_LINES:]
    output = "".join(line if len(line) >= pane.width else f"{line}\n" for line in lines)
    network, cwd = Network.OFF if sandbox.offline else Network.ON, sandbox.process.cwd
    policy = Policy(Filesystem.READ_ONLY, network, (PolicyRule("/", "read"),))
    read = find_denials("", output, exit_code=None, outcome="ended", policy=policy, cwd=cwd, tool="screen")
    found = [each for each in read if each.what != "other"]
    best = next((each for each in reversed(found) if each.target), found[-1] if found else None)
    if (best is None or not best.is_certain) and (failure := _UNEXPLAINED_FAILURE.search(output)):
        best = Denial("filesystem", "write", "certain", failure[0], failure[1])
    return SandboxDenial(sandbox, best) if best else None


def state_path_denial(case: PaneFacts) -> SandboxDenial | None:
    """Return the state path that a sandboxed worker needs and may not write, printed or not."""
    sandbox = case.sandbox
    path = next((path for path in case.occupant.paths if path.needed and path.denied), None)
    if sandbox is None or path is None:
        return None
    quote = f"it may not write {path.path}, where it keeps its {path.what}"
    denial = Denial("filesystem", "write", "certain", quote, path.path, source=EvidenceSource.KERNEL)
    return SandboxDenial(sandbox, denial)


def network_cut_denial(case: PaneFacts, text: str) -> SandboxDenial | None:
    """Return the denial behind a failed connection in `text`, if the sandbox has no network."""
    sandbox = case.sandbox
    if sandbox is None or not sandbox.offline or not _CONNECTION_FAILURE.search(text):
        return None
    return SandboxDenial(sandbox, Denial("network", "connect", "likely", text))


def assess_blocked(found: SandboxDenial, at: float, how: str) -> Assessment:
    """Return the state of a worker that its sandbox stopped at a time (unix seconds), and how it fares since:
    `it sits still`."""
    process, denial = found.sandbox.process, found.denial
    target = f" {denial.path}" if denial.path else " the network" if denial.what == "network" else ""
    source = EvidenceSource.SCREEN if denial.source is EvidenceSource.OUTPUT else denial.source
    around = f"pid {process.pid} ({process.name}): {found.sandbox.text}"
    why = f"its sandbox denied it{target}, and {how}: {denial.quote}"
    denied = Evidence(source, at, f"denied-{denial.what}", denial.quote)
    inside = Evidence(EvidenceSource.KERNEL, process.key.started, "in-a-sandbox", around)
    return Assessment(State.BLOCKED_SANDBOX, at, why, (denied, inside), facts.denied(denial, ""))
