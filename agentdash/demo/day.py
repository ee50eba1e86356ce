"""The demo: `day.toml` as events on a virtual clock, the hub that plays them, and its conversations."""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from agentdash.agents.claude.settings import SETTINGS, Arguments, parse_role
from agentdash.agents.claude.settings import requested as requested_of_claude
from agentdash.agents.claude.transcript.reader import TranscriptReader
from agentdash.agents.codex.config.argv import parse_options
from agentdash.agents.codex.config.files import ETC, ConfigLayers, parse_config
from agentdash.agents.codex.config.precedence import request, requested
from agentdash.agents.codex.config.reader import role_request
from agentdash.agents.codex.policy_formats import read_launcher
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.agents.screen_reader import read_screen
from agentdash.engine.conversation import ConversationBuilder
from agentdash.engine.hub import Hub
from agentdash.model import events as e
from agentdash.model.conversation import Conversation
from agentdash.model.events import Event, ThreadEvent
from agentdash.model.fleet import Fleet
from agentdash.model.observation import NETWORK_FLAG, SANDBOX_FLAG
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Network, Policy
from agentdash.model.process import Kernel, Process, ProcessKey
from agentdash.model.requested import RequestLayer
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.replay.clock import VirtualClock
from agentdash.sandbox.flags import read_flags

_DATA: Final = Path(__file__).parent
_HOST: Final = Kernel(seccomp=0, no_new_privs=False, net=1, mnt=1, pid=1, user=1, ns_pids=(1,))
_SANDBOXED: Final = Kernel(seccomp=2, no_new_privs=True, net=1, mnt=2, pid=2, user=2, ns_pids=(1, 1))
_OFFLINE: Final = replace(_SANDBOXED, net=2)
_KERNELS: Final = {"host": _HOST, "sandboxed": _SANDBOXED, "offline": _OFFLINE}
"""Values of `kernel` in `day.toml`."""
_VISIBLE_EVENTS: Final = (e.TurnStarted, e.CallStarted, e.CallEnded, e.MessageLogged, e.TurnEnded)
"""Events that take `pace` seconds; the others happen together with the next of these."""
_POLL_INTERVAL_S: Final = 1.0
"""Seconds between two process counts, as in a live fleet."""
_EARLY_POLL_INTERVAL_S: Final = 5.0
_APPROVAL_SHARE: Final = 0.8
"""Part of an escalated call that is spent waiting for approval."""
_FIRST_PID: Final = 4_000
"""Pid of the first family's Codex; families are 100 apart."""
_FIRST_SESSION_PID: Final = 9_000
"""Pid of the first Claude Code; these are 100 apart."""
_SHELL_BEFORE_S: Final = 60.0
"""For which the shell of a pane runs before a Codex is started in it."""
_FIRST_PANE_PID: Final = 7_000
"""Pid of the first pane's shell; panes are 100 apart."""
_LAUNCHER: Final = ("codex-linux-sandbox",)
"""The argv of the usual launcher."""
_HOME: Final = "/home/dev/.codex"
_CLAUDE_HOME: Final = "/home/dev/.claude"
_WORKSPACE: Final = "/home/dev/project"
_COLUMNS: Final = 100
_LINES: Final = 30
"""Size of the recorded screens."""


def demo_events() -> tuple[float, list[e.Event]]:
    """Return the start of the day (unix seconds), and all its events, unordered."""
    day = _read_day()
    start = day["start"].timestamp()
    return start, list(_day(day, start))


def _read_day() -> dict[str, Any]:
    return tomllib.loads((_DATA / "day.toml").read_text("utf-8"))


def _day(day: Mapping[str, Any], start: float) -> Iterator[e.Event]:
    first = start + min(family["at"] for family in day["family"]) - 1  # before all commands
    yield from _sources(first)
    yield e.HostSeen(at=first, platform="linux", kernel=_HOST, home="/home/dev")
    held: dict[str, tuple[int, float, float]] = {}
    """By thread: pid of the Codex that holds its rollout, from when, until when."""
    for number, family in enumerate(day["family"]):
        pid = _FIRST_PID + 100 * number
        events = _rollout_events(family, start)
        end = start + family.get("until", day["length"])
        held |= dict.fromkeys({event.thread for event in events}, (pid, events[0].at, end))
        yield from events
        yield from _files(events, "codex")
        yield from _codex_processes(family, pid, events[0].at, end)
        if "pane" in family:
            yield from _pane_of_codex(family["pane"], events[0].at - _SHELL_BEFORE_S, start, pid)
        yield from _command_processes(events, pid, end, family)
        yield from _requests(family, events)
    for number, session in enumerate(day["session"]):
        yield from _session(session, start, _FIRST_SESSION_PID + 100 * number, start + day["length"])
    for each in day["unreadable"]:
        thread, at = each["thread"], start + each["at"]
        path = f"/home/dev/.codex/sessions/rollout-{thread}.jsonl"
        problem = "Permission denied"
        yield e.FileSeen(at=at, thread=thread, path=path, size=0, modified=at, unreadable=problem)
    for number, pane in enumerate(day["pane"]):
        begun, pid = start + min(map(float, pane["screens"])), _FIRST_PANE_PID + 100 * number
        yield from _pane(pane, begun, pid)
        yield from _screens(pane, start)
    for at in _poll_times(first, start, start + day["length"]):
        holders = {thread: pid for thread, (pid, since, until) in held.items() if since <= at < until}
        yield e.LocksSeen(at=at, holders=holders)
        yield e.ProcessesCounted(at=at)


def _poll_times(first: float, start: float, end: float) -> Iterator[float]:
    """Yield the times of the polls, rarer before the start: the demo begins with all of those."""
    before = int((start - first) / _EARLY_POLL_INTERVAL_S)
    yield from (start - number * _EARLY_POLL_INTERVAL_S for number in range(before, 0, -1))
    yield from (start + number * _POLL_INTERVAL_S for number in range(int((end - start) / _POLL_INTERVAL_S)))


def _sources(at: float) -> Iterator[e.Event]:
    for name, detail in (
        ("codex", "the demo's own sessions"),
        ("processes", "the demo's own"),
        ("tmux", "3 panes"),
        ("tmux agents", "1 pane"),
    ):
        yield e.SourceSeen(at=at, name=name, ok=True, detail=detail)


def _files(events: Sequence[e.ThreadEvent], agent: str) -> Iterator[e.FileSeen]:
    """Yield where the file of each session would be."""
    for thread, at in {event.thread: event.at for event in reversed(events)}.items():
        yield e.FileSeen(at=at, thread=thread, path=session_path(thread, agent), size=0, modified=at)


# ---------------------------------------------------------------- Codex threads


def _rollout_events(family: Mapping[str, Any], start: float) -> list[e.ThreadEvent]:
    """Return the events of a family's rollouts, spread out so that they can be followed.

    Children begin when they are spawned, so parents come first in `rollouts`.
    """
    takes: Mapping[str, float] = family.get("takes", {})
    pace: float = family["pace"]
    begin = start + family["at"]
    spawned: dict[str, float] = {}
    events: list[e.ThreadEvent] = []
    for name in family["rollouts"]:
        thread, logged = _log(family, name)
        at = spawned.get(thread, begin) - pace
        for event in logged:
            if isinstance(event, _VISIBLE_EVENTS):
                at += takes.get(event.call, pace) if isinstance(event, e.CallEnded) else pace
            if isinstance(event, e.ChildSpawned):
                spawned.setdefault(event.child, at)
            if isinstance(event, e.ThreadEvent):
                events.append(replace(event, at=max(at, begin)))
    return sorted(events, key=lambda event: event.at)


def _log(family: Mapping[str, Any], name: str) -> tuple[str, list[e.ThreadEvent]]:
    """Return the thread of a recorded log, and its events."""
    if family.get("agent") != "claude":
        lines = (_DATA / "rollouts" / f"{name}.jsonl").read_bytes().splitlines()
        thread = msgspec.json.decode(lines[0])["payload"]["id"]
        return thread, RolloutReader(thread).read(lines)
    lines = (_DATA / "transcripts" / f"{name}.jsonl").read_bytes().splitlines()
    head = msgspec.json.decode(lines[0])
    thread = f"agent-{head['agentId']}" if "agentId" in head else head["sessionId"]
    return thread, TranscriptReader(thread).read(lines)


def _session(session: Mapping[str, Any], start: float, pid: int, end: float) -> Iterator[e.Event]:
    """Yield the events of a session of Claude Code with its sub-agents, and what it was asked for."""
    family = {**session, "agent": "claude", "rollouts": session["transcripts"]}
    events = _rollout_events(family, start)
    begin = events[0].at
    process = Process(ProcessKey(pid, begin), 1, "claude", ("claude",), agent="claude", kernel=_HOST)
    yield from events
    yield from _files(events, "claude")
    yield e.ProcessSeen(at=begin, process=process)
    yield e.ProcessGone(at=end, key=process.key)
    thread = events[0].thread
    yield e.SessionSeen(at=begin, key=process.key, agent="claude", status=None, since=begin, session=thread)
    file = SETTINGS.parse(RequestLayer.USER, session["settings"], f"{_CLAUDE_HOME}/settings.json", start)
    asked = requested_of_claude(Arguments(), [file], home=_CLAUDE_HOME, cwd=_WORKSPACE)
    yield e.PolicyRequested(at=begin, worker=thread, requested=replace(asked, since=begin))
    if "role" in session:
        child = next(event for event in events if event.thread != thread)
        _, role = parse_role(session["role"], f"{_CLAUDE_HOME}/agents/free.md")
        if role is not None:
            yield e.PolicyRequested(at=child.at, worker=child.thread, requested=replace(role, since=child.at))


def _requests(family: Mapping[str, Any], events: Sequence[e.ThreadEvent]) -> Iterator[e.Event]:
    """Yield what the threads of a family were asked for, from 0.2 s before their first event on."""
    for asked in family.get("asked", ()):
        head = (_DATA / "rollouts" / f"{asked['thread']}.jsonl").read_bytes().partition(b"\n")[0]
        thread = msgspec.json.decode(head)["payload"]["id"]
        first = next(event for event in events if event.thread == thread)
        since = first.at - 0.2 + asked.get("after", 0.0)
        if "role" in asked:
            file = parse_config(asked["role"], RequestLayer.ROLE, f"{_HOME}/agents/tester.toml")
            found = role_request(file, cwd=_WORKSPACE)
        else:
            arguments = parse_options(asked["argv"][1:])
            user, managed = asked.get("user"), asked.get("managed")
            files = [parse_config(user, RequestLayer.USER, f"{_HOME}/config.toml")] if user else []
            above = (
                [parse_config(managed, RequestLayer.MANAGED, f"{ETC}/requirements.toml")] if managed else []
            )
            layers = ConfigLayers(files=tuple(files), managed=tuple(above), trust="trusted")
            found = requested(*request(layers, arguments, cwd=_WORKSPACE))
            found = replace(found, resumes=arguments.resumes)
        yield e.PolicyRequested(at=since, worker=thread, requested=replace(found, since=since))


def _codex_processes(family: Mapping[str, Any], pid: int, begin: float, end: float) -> Iterator[e.Event]:
    """Yield the events of a family's Codex process and its launcher."""
    parent = pid - 1 if "pane" in family else 1
    codex = Process(ProcessKey(pid, begin), parent, "codex", ("codex",), agent="codex", kernel=_HOST)
    yield e.ProcessSeen(at=begin, process=codex)
    yield e.ProcessGone(at=end, key=codex.key)
    if argv := tuple(family.get("launcher", _LAUNCHER)):  # one process launches all commands of a family
        read = read_launcher(argv[0], argv)
        key = ProcessKey(pid + 1, begin)
        launcher = Process(key, ppid=pid, name=argv[0], argv=argv, kernel=_HOST, launcher=read)
        yield e.ProcessSeen(at=begin, process=launcher)
        yield e.ProcessGone(at=end, key=launcher.key)


def _command_processes(
    events: Sequence[e.ThreadEvent], codex: int, until: float, family: Mapping[str, Any]
) -> Iterator[e.Event]:
    """Yield the processes that a family's commands must have had."""
    policies = [event for event in events if isinstance(event, e.PolicySet)]
    ends = {event.call: event for event in events if isinstance(event, e.CallEnded)}
    calls = [event for event in events if isinstance(event, e.CallStarted) and event.kind == "command"]
    for number, call in enumerate(calls):
        end = ends.get(call.call)
        policy = _policy_of(call, policies)
        sandboxed = policy.enforced_by == "codex" and call.escalation is None
        offline = sandboxed and policy.network is Network.OFF
        usual = "offline" if offline else "sandboxed" if sandboxed else "host"
        begun = call.at
        if call.escalation is not None and end is not None:
            begun += (end.at - call.at) * _APPROVAL_SHARE
        process = Process(
            ProcessKey(codex + 2 + number, begun),
            ppid=codex + 1 if sandboxed and family.get("launcher", _LAUNCHER) else codex,
            name="bash",
            argv=("/bin/bash", "-lc", call.text),
            env=_environment(call, end, offline=offline) | family.get("flags", {}),
            kernel=_KERNELS[family.get("kernel", usual)],
        )
        yield e.ProcessSeen(at=begun, process=process)
        yield e.ProcessGone(at=end.at if end else until, key=process.key)


def _policy_of(call: e.CallStarted, policies: Sequence[e.PolicySet]) -> Policy:
    """Return the policy in force when a call started."""
    return next(
        event.policy
        for event in reversed(policies)
        if event.policy and event.thread == call.thread and event.at <= call.at
    )


def _environment(call: e.CallStarted, end: e.CallEnded | None, *, offline: bool) -> dict[str, str]:
    """Return the environment of a command: the flags that it printed, or else those of its policy."""
    printed = read_flags(call.script, end.output if end else "")
    env = {"CODEX_THREAD_ID": call.thread, "CODEX_TOOL_CALL_ID": call.call}
    if printed.network == "1" or offline:
        env[NETWORK_FLAG] = "1"
    if printed.sandbox == "seatbelt":
        env[SANDBOX_FLAG] = "seatbelt"
    return env


# ---------------------------------------------------------------- panes


def _pane(pane: Mapping[str, Any], begun: float, pid: int) -> Iterator[e.Event]:
    """Yield a pane with its tmux server, its shell and its agent, each the child of the one before."""
    key = _key(pane)
    seen = Pane(
        key,
        session=pane["session"],
        window=pane["window"],
        pid=pid,
        command=pane["agent"],
        title=pane["title"],
        width=_COLUMNS,
        height=_LINES,
        server_pid=pid - 1,
    )
    yield e.PaneSeen(at=begun, pane=seen)
    kernel = _KERNELS[pane.get("kernel", "host")]
    programs = ((pid - 1, "tmux: server", None), (pid, "bash", None), (pid + 1, pane["agent"], pane["agent"]))
    for number, name, agent in programs:
        process = Process(
            ProcessKey(number, begun),
            ppid=1 if number < pid else number - 1,
            name=name,
            argv=(name,),
            cwd=pane["cwd"],
            kernel=replace(kernel, ns_pids=(number,)),
            agent=agent,
        )
        yield e.ProcessSeen(at=begun, process=process)


def _pane_of_codex(pane: Mapping[str, Any], begun: float, start: float, codex: int) -> Iterator[e.Event]:
    """Yield the pane of a Codex, and its screens: its state is read from its rollout."""
    number, _, _ = pane["window"].partition(":")
    usual = {"id": f"%{100 + int(number)}", "session": "work", "title": "project", "cwd": _WORKSPACE}
    whole = {**usual, **pane, "agent": "codex"}
    for event in _pane(whole, begun, codex - 1):
        if not isinstance(event, e.ProcessSeen) or event.process.pid != codex:
            yield event
    for at, screen in pane.get("screens", {}).items():
        yield e.PaneDrawn(at=start + float(at), key=_key(whole), screen=tuple(_screen(screen)))


def _screens(pane: Mapping[str, Any], start: float) -> Iterator[e.Event]:
    """Yield the screens of a pane, and how they are read."""
    for at, screen in pane["screens"].items():
        lines = _screen(screen)
        reading = read_screen(pane["agent"], lines, title=pane["title"], width=_COLUMNS, height=_LINES)
        drawn_at = start + float(at)
        yield e.PaneDrawn(at=drawn_at, key=_key(pane), screen=tuple(lines))
        yield e.ScreenRead(
            at=drawn_at, key=_key(pane), agent=pane["agent"], **msgspec.structs.asdict(reading)
        )


def _key(pane: Mapping[str, Any]) -> PaneKey:
    return PaneKey(pane.get("server", "default"), pane["id"])


def _screen(name: str) -> list[str]:
    return (_DATA / "screens" / f"{name}.txt").read_text("utf-8").splitlines()


# ------------------------------------------------------------
# The conversations of the scripted day: of its events, since the demo has no session files


_FOLDERS: Final = {
    "codex": "/home/dev/.codex/sessions/2026/11/20",
    "claude": "/home/dev/.claude/projects/-home-dev-project",
}


def session_path(thread: str, agent: str) -> str:
    """Return where the file of a session would be."""
    name = f"rollout-{thread}" if agent == "codex" else thread
    return f"{_FOLDERS[agent]}/{name}.jsonl"


class DayConversations:
    """Reads conversations of the day as they are at the time of its clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @cached_property
    def _by_thread(self) -> dict[str, list[ThreadEvent]]:
        threads: dict[str, list[ThreadEvent]] = {}
        for event in sorted(demo_events()[1], key=lambda event: event.at):
            if isinstance(event, ThreadEvent):
                threads.setdefault(event.thread, []).append(event)
        return threads

    def open(self, path: str) -> Callable[[float], Conversation]:
        """Return a function that builds the conversation of a session file up to a time (unix seconds)."""
        thread = Path(path).stem.removeprefix("rollout-")

        def read(until: float) -> Conversation:
            builder = ConversationBuilder(thread)
            for event in self._by_thread.get(thread, ()):
                if event.at <= min(until, self._clock.now()):
                    builder.add(event)
            return builder.conversation()

        return read


# ------------------------------------------------------------
# The hub. The day is parsed when it runs: the first picture comes first


def demo_hub(speed: float = 1.0, at: float = 0.0) -> tuple[Hub, VirtualClock]:
    """Return a hub over the scripted day, and its clock.

    Args:
        speed: virtual seconds per real second.
        at: seconds of the day that have passed already.
    """
    clock = VirtualClock(_read_day()["start"].timestamp() + at, speed)
    return Hub([ScriptedSource(clock)], clock), clock


def demo_scenes() -> list[tuple[float, str]]:
    """Return what to look at, each from when on (unix seconds)."""
    day = _read_day()
    return [(day["start"].timestamp() + scene["at"], scene["says"]) for scene in day["scene"]]


class ScriptedSource:
    """A source that emits each event of the day at its time."""

    name = "script"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @cached_property
    def _events(self) -> list[Event]:
        return sorted(demo_events()[1], key=lambda event: event.at)

    @cached_property
    def _times(self) -> list[float]:
        return [event.at for event in self._events]

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return all events that are due."""
        del fleet
        return self._events[: bisect_right(self._times, self._clock.now())]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit events as they become due; return after the last one."""
        del channel
        emitted = 0
        while emitted < len(self._events):
            due = bisect_right(self._times, self._clock.now())
            emit(self._events[emitted:due])
            emitted = max(emitted, due)
            if emitted < len(self._events):
                await self._clock.sleep_until(self._times[emitted])
