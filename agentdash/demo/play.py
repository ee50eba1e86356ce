"""Turns `day.toml` into events on a virtual clock."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.resources import files
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from agentdash.agents.codex.launcher_policy import read_launcher
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.agents.screen_reader import read_screen
from agentdash.demo.source import Script
from agentdash.engine.detect.env_output import NETWORK_FLAG, SANDBOX_FLAG, flags
from agentdash.engine.hub import Hub
from agentdash.model import events as e
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Network
from agentdash.model.process import Kernel, Process, ProcessKey
from agentdash.replay.clock import VirtualClock

_DATA: Final = files("agentdash.demo")
_HOST: Final = Kernel(seccomp=0, no_new_privs=False, net=1, mnt=1, pid=1, user=1, ns_pids=(1,))
_SANDBOXED: Final = Kernel(seccomp=2, no_new_privs=True, net=1, mnt=2, pid=2, user=2, ns_pids=(1, 1))
_KERNELS: Final = {"host": _HOST, "boxed": _SANDBOXED, "cut": replace(_SANDBOXED, net=2)}
"""What a family's commands, or a pane, may really get."""
_STEPS: Final = (e.TurnStarted, e.CallStarted, e.CallEnded, e.MessageLogged, e.TurnEnded)
"""Events that a viewer sees as a step; the others happen together with the next of these."""
_BEAT: Final = 1.0
"""Seconds between two looks at processes."""


def demo_hub(speed: float = 1.0, at: float = 0.0) -> tuple[Hub, VirtualClock]:
    """A hub over the scripted day, and its clock.

    Args:
        speed: how fast the day goes by.
        at: seconds of the day that have gone by already.
    """
    start, events = demo_events()
    clock = VirtualClock(start + at, speed)
    return Hub([Script(events, clock)], clock), clock


def demo_events() -> tuple[float, list[e.Event]]:
    """When the day begins (unix seconds), and everything that happens in it, in no order."""
    day = tomllib.loads((_DATA / "day.toml").read_text("utf-8"))
    start: datetime = day["start"]
    return start.timestamp(), list(_day(day, start.timestamp()))


def _day(day: Mapping[str, Any], start: float) -> Iterator[e.Event]:
    for name, detail in (
        ("codex", "the demo's own sessions"),
        ("processes", "the demo's own"),
        ("tmux", "3 panes"),
        ("tmux agents", "1 pane"),
    ):
        yield e.SourceSeen(at=start, name=name, ok=True, detail=detail)
    yield e.HostSeen(at=start, platform="linux", kernel=_HOST, home="/home/dev")
    held: dict[str, tuple[int, float, float]] = {}
    for number, family in enumerate(day["family"]):
        pid = 4000 + 100 * number
        told = list(_family(family, start))
        end = start + family.get("until", day["length"])
        held |= dict.fromkeys({x.thread for x in told}, (pid, told[0].at, end))
        yield from told
        codex = Process(ProcessKey(pid, told[0].at), 1, "codex", ("codex",), agent="codex", kernel=_HOST)
        yield e.ProcessSeen(at=told[0].at, process=codex)
        yield e.ProcessGone(at=end, key=codex.key)
        if launcher := _launcher(family):
            key = ProcessKey(pid + 1, told[0].at)
            yield e.ProcessSeen(
                at=told[0].at,
                process=Process(
                    key,
                    pid,
                    launcher[0],
                    launcher,
                    kernel=_HOST,
                    launcher=read_launcher(launcher[0], launcher),
                ),
            )
            yield e.ProcessGone(at=end, key=key)
        yield from _commands(told, pid, end, family)
    for lost in day["unreadable"]:
        at, path = start + lost["at"], f"/home/dev/.codex/sessions/rollout-{lost['thread']}.jsonl"
        yield e.FileSeen(
            at=at, thread=lost["thread"], path=path, size=0, modified=at, unreadable="Permission denied"
        )
    for number, pane in enumerate(day["pane"]):
        yield from _pane(pane, start, 7000 + 100 * number)
    for beat in range(int(day["length"] / _BEAT)):
        at = start + beat * _BEAT
        yield e.LocksSeen(
            at=at,
            holders={t: pid for t, (pid, since, until) in held.items() if since <= at < until},
            readable=True,
        )
        yield e.ProcessesCounted(at=at)


# ---------------------------------------------------------------- Codex threads


def _family(family: Mapping[str, Any], start: float) -> list[e.ThreadEvent]:
    """The rollouts of a family, parents first, each spread out so that an eye can follow; children begin when they are spawned."""
    takes: Mapping[str, float] = family.get("takes", {})
    spawned: dict[str, float] = {}
    told: list[e.ThreadEvent] = []
    for name in family["rollouts"]:
        lines = (_DATA / "rollouts" / f"{name}.jsonl").read_bytes().splitlines()
        thread = msgspec.json.decode(lines[0])["payload"]["id"]
        at = spawned.get(thread, start + family["at"]) - family["pace"]
        for event in RolloutReader(thread).read(lines):
            if isinstance(event, _STEPS):
                at += (
                    takes.get(event.call, family["pace"])
                    if isinstance(event, e.CallEnded)
                    else family["pace"]
                )
            if isinstance(event, e.ChildSpawned):
                spawned.setdefault(event.child, at)
            if isinstance(event, e.ThreadEvent):
                told.append(replace(event, at=max(at, start + family["at"])))
    return sorted(told, key=lambda x: x.at)


def _launcher(family: Mapping[str, Any]) -> tuple[str, ...]:
    """What stands between Codex and the commands that it sandboxes; one process for all of them."""
    return tuple(family.get("launcher", ("codex-linux-sandbox",)))


def _commands(
    told: list[e.ThreadEvent], codex: int, until: float, family: Mapping[str, Any]
) -> Iterator[e.Event]:
    """The processes that the calls must have had, with the flags that they printed or else those of their policy."""
    policies = [x for x in told if isinstance(x, e.PolicySet) and x.policy]
    ends = {x.call: x for x in told if isinstance(x, e.CallEnded)}
    calls = [x for x in told if isinstance(x, e.CallStarted) and x.kind == "command"]
    for number, call in enumerate(calls):
        end = ends.get(call.call)
        policy = next(
            x.policy for x in reversed(policies) if x.policy and x.thread == call.thread and x.at <= call.at
        )
        sandboxed = policy.enforced_by == "codex" and call.escalation is None
        offline = sandboxed and policy.network is Network.OFF
        printed = flags(call.text, end.output if end else "", call.thread)
        env = {"CODEX_THREAD_ID": call.thread, "CODEX_TOOL_CALL_ID": call.call}
        env |= {NETWORK_FLAG: "1"} if printed.network == "1" or offline else {}
        env |= {SANDBOX_FLAG: "seatbelt"} if printed.sandbox == "seatbelt" else {}
        env |= family.get("flags", {})
        kernel = replace(_SANDBOXED, net=2 if offline else 1) if sandboxed else _HOST
        kernel = _KERNELS[family["kernel"]] if "kernel" in family else kernel
        # somebody has to say yes to an escalation before it runs
        begun = call.at if call.escalation is None or end is None else call.at + (end.at - call.at) * 0.8
        key = ProcessKey(codex + 2 + number, begun)
        argv, parent = (
            ("/bin/bash", "-lc", call.text),
            codex + 1 if sandboxed and _launcher(family) else codex,
        )
        yield e.ProcessSeen(at=begun, process=Process(key, parent, "bash", argv, env=env, kernel=kernel))
        yield e.ProcessGone(at=end.at if end else until, key=key)


# ---------------------------------------------------------------- panes


def _pane(pane: Mapping[str, Any], start: float, pid: int) -> Iterator[e.Event]:
    key = PaneKey(pane.get("server", "default"), pane["id"])
    kernel = _KERNELS[pane.get("kernel", "host")]
    begun = start + min(map(float, pane["screens"]))
    seen = Pane(
        key,
        pane["session"],
        pane["window"],
        pid,
        pane["agent"],
        pane["title"],
        width=100,
        height=30,
        server_pid=pid - 1,
    )
    yield e.PaneSeen(at=begun, pane=seen)
    for number, name, agent in (
        (pid - 1, "tmux: server", None),
        (pid, "bash", None),
        (pid + 1, pane["agent"], pane["agent"]),
    ):
        parent = 1 if number < pid else number - 1
        own = replace(kernel, ns_pids=(number,))
        yield e.ProcessSeen(
            at=begun,
            process=Process(
                ProcessKey(number, begun), parent, name, (name,), cwd=pane["cwd"], kernel=own, agent=agent
            ),
        )
    for at, screen in pane["screens"].items():
        lines = (_DATA / "screens" / f"{screen}.txt").read_text("utf-8").splitlines()
        reading = read_screen(pane["agent"], lines, title=pane["title"], width=100, height=30)
        yield e.PaneDrawn(at=start + float(at), key=key, screen=tuple(lines))
        yield e.ScreenRead(
            at=start + float(at), key=key, agent=pane["agent"], **msgspec.structs.asdict(reading)
        )
