"""How costs grow with the number of panes and threads, events, and workers: n, 2n, 4n, 8n.

CPU time of pure functions. The worst case of linking: all panes and threads in one directory, none of them
tied by a process.
"""

import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Process, ProcessKey

_SIZES = (60, 120, 240, 480)
_CWD = "/home/dev/project"
_TIMES = 5


def measure(home: Path) -> None:
    """Print a row for each cost, a column for each size, and the growth from the first to the last size."""
    del home
    rows: dict[str, list[float]] = {}
    for number in _SIZES:
        for name, milliseconds in _costs(number).items():
            rows.setdefault(name, []).append(milliseconds)
    print(f"{'ms':34}" + "".join(f"{number:9}" for number in _SIZES) + "   growth for 8 x")
    for name, values in rows.items():
        cells = "".join(f"{value:9.3f}" for value in values)
        print(f"{name:34}{cells}   {values[-1] / values[0]:5.1f} x")


def _costs(number: int) -> dict[str, float]:
    fleet = reduce(Fleet(), _events(number))
    fleet = reduce(fleet, [e.ProcessesCounted(at=1_003.0)])
    started = _started(_thread(number), 1_003.5)
    said = e.MessageLogged(thread=_thread(3), at=1_003.5, line=9, role="assistant", text="hello")
    process = next(iter(fleet.processes.values()))
    worked = e.ProcessSeen(at=1_003.5, process=replace(process, cpu=process.cpu + 1))
    cache = WorkerCache()
    build_snapshot(fleet, 1_003.5, cache)
    return {
        "a look at processes": _ms(lambda: reduce(fleet, [worked, e.ProcessesCounted(at=1_004.0)])),
        "a thread that starts": _ms(lambda: reduce(fleet, [started])),
        "one line of a thread": _ms(lambda: reduce(fleet, [said]), 100),
        "a snapshot, nothing changed": _ms(lambda: build_snapshot(fleet, 1_003.5, cache)),
        "a first snapshot": _ms(lambda: build_snapshot(fleet, 1_003.5, WorkerCache())),
    }


def _ms(work: Callable[[], object], repeat: int = 1) -> float:
    """Return the least CPU milliseconds of some tries."""
    taken = []
    for _ in range(_TIMES):
        began = time.process_time()
        for _ in range(repeat):
            work()
        taken.append((time.process_time() - began) / repeat)
    return min(taken) * 1000


def _thread(number: int) -> str:
    return f"01a1fa8b-0000-7000-8000-{number:012d}"


def _events(number: int) -> list[e.Event]:
    events: list[e.Event] = [_seen(999, 1, "tmux: server", 800.0)]
    for each in range(number):
        thread, key = _thread(each), PaneKey("default", f"%{each}")
        named = {"session": "s", "window": f"{each}:codex", "command": "codex", "title": "codex"}
        pane = Pane(key, pid=1_000 + each, width=100, height=30, server_pid=999, **named)
        screen = ("some words of the screen of an agent at work",) * 28 + (f"prompt {each}",)
        prompt = f"fix the flaky test number {each} please"
        events += [
            e.FileSeen(thread=thread, at=1_000.0, path=f"/h/{thread}.jsonl", size=10, modified=1_000.0),
            _started(thread, 1_000.0),
            e.MessageLogged(thread=thread, at=1_001.0, line=2, role="user", text=prompt),
            e.PaneSeen(at=1_001.0, pane=pane),
            e.PaneDrawn(at=1_001.0, key=key, screen=screen),
            _seen(1_000 + each, 999, "sh", 900.0),
            _seen(10_000 + each, 1_000 + each, "codex", 901.0),
        ]
    return [*events, e.LocksSeen(at=1_002.0, holders={}), e.ProcessesCounted(at=1_002.0)]


def _started(thread: str, at: float) -> e.ThreadStarted:
    return e.ThreadStarted(thread=thread, at=at, line=1, cwd=_CWD, version="0.169.0", originator="codex-tui")


def _seen(pid: int, parent: int, name: str, started: float) -> e.ProcessSeen:
    key, agent = ProcessKey(pid, started), "codex" if name == "codex" else None
    process = Process(key=key, ppid=parent, name=name, argv=(name,), cwd=_CWD, agent=agent)
    return e.ProcessSeen(at=1_001.0, process=process)
