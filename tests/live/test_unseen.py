"""A real Codex sends the same to its model provider, and keeps the same files, whether agentdash looks or
not; and what its status feed tells."""

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from msgspec.structs import replace

from agentdash.agents.codex.status_feed import StatusFeed
from agentdash.collect.clock import SystemClock
from agentdash.model.events import Event, SourceSeen, StatusPushed
from tests.live.codex import MENU, VERSION, Lab, Pane
from tests.live.conftest import OpenLab
from tests.live.patience import scaled, until

VERSIONS: Final = ("0.160.0", VERSION)
"""The first with a shared app-server, and the newest one."""
COMMANDS: Final = (
    "status --json",
    "explain THREAD",
    "reach THREAD",
    "doctor",
    "check THREAD",
    "sessions --json",
)
_CHANCE: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:call|fc|msg|resp|ctc)_[0-9a-f]{12}"
    r"|(?<=_unix_ms\\\":)\d+|(?<=_unix_ms\":)\d+|(?<=Chunk ID: )\w+|(?<=Wall time: )[\d.]+"
    r"|\[\[turn\d\]\]|end \d"
)
"""What differs from turn to turn: ids, times, and the texts of this test."""


@pytest.mark.parametrize("version", VERSIONS)
async def test_requests_stay_equal(version: str, codex: OpenLab) -> None:
    """Watched are three turns between others: by one-shot commands, by two feeds that are connected again,
    each in the middle of the turn and after it."""
    lab = codex({f"turn{n}": _steps(n) for n in range(7)}, version=version)
    pane = await lab.tui()
    await _turn(lab, pane, 0)  # the first request of a thread has other marks
    expected = await _turn(lab, pane, 1)
    [thread] = lab.threads()
    for number in (2, 3):
        async with AsyncExitStack() as watching:
            assert await _turn(lab, pane, number, thread, watching) == expected
    assert await _turn(lab, pane, 4, thread) == expected
    assert await _turn(lab, pane, 5) == expected
    assert _agents(lab) == {f"codex-tui/{version}"}


def _steps(number: int) -> list[dict[str, Any]]:
    end = {"say": f"end {number}."}
    return [{"hold": f"first{number}"}, {"run": "true"}, {"hold": f"second{number}"}, end]


async def _turn(
    lab: Lab, pane: Pane, number: int, thread: str | None = None, watching: AsyncExitStack | None = None
) -> list[str]:
    """Return the parts of what Codex sends in a turn, without what chance decides.

    Args:
        thread: looked at by all commands while the model is asked for the second time.
        watching: holds two feeds from the first request on.
    """
    seen = len(_own(lab))
    pane.submit(f"[[turn{number}]] go")
    await until(lambda: len(_own(lab)) == seen + 1, "the first request")
    if watching is not None:
        for _ in range(2):
            await watching.enter_async_context(_feed(lab))
    lab.model.release(f"first{number}")
    await until(lambda: len(_own(lab)) == seen + 2, "the second request")
    if thread is not None:
        await asyncio.gather(*(_run(lab, thread, command) for command in COMMANDS))
        feed = StatusFeed(lab.home, SystemClock())
        assert await feed.poll(1.0, timeout=scaled(30))
        assert await feed.poll(1.0, timeout=scaled(30))  # connected again
    lab.model.release(f"second{number}")
    await pane.shows(f"end {number}.")
    sent = _own(lab)
    bodies = [body for _, body in sent]
    for before, after in itertools.pairwise(bodies):
        assert after["input"][: len(before["input"])] == before["input"]
    lengths = [0, *(len(body["input"]) for body in bodies)]
    new = [
        [head, {**body, "input": body["input"][lengths[index] :]}]
        for index, (head, body) in enumerate(sent)
        if index >= seen
    ]
    return _CHANCE.sub("#", json.dumps(new, sort_keys=True)).split(", ")


def _own(lab: Lab) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Return heads and bodies of the requests of the thread in the TUI; helpers find a title for it."""
    [*threads] = lab.threads()
    pairs = zip(list(lab.model.heads), lab.model.requests, strict=False)
    unlike = ("content-length",)
    return [
        ({name: value for name, value in head.items() if name.lower() not in unlike}, body)
        for head, body in pairs
        if head.get("thread-id") in threads
    ]


def _agents(lab: Lab) -> set[str]:
    """Return the User-Agents of all requests, helpers' too, without the machine; each must end with Codex's
    own client."""
    own = re.compile(r"(codex-tui/(\S+)) \(.*\) \S+ \(codex-tui; \2\)")
    agents = {head["user-agent"] for head in lab.model.heads}
    return {match[1] if (match := own.fullmatch(agent)) else agent for agent in agents}


async def test_files_and_tmux_stay_equal(codex: OpenLab) -> None:
    """No file of a home whose server was killed changes, and nothing that a user of tmux can see."""
    lab = codex({"turn0": [{"run": "true"}, {"say": "end 0."}]})
    pane = await lab.tui()
    clients = ("client-attached", "client-detached", "client-session-changed", "client-resized")
    for hook in (*clients, "alert-activity"):
        lab.run_tmux("set-hook", "-g", hook, f"set-buffer -b fired {hook}")
    lab.run_tmux("set-option", "-g", "monitor-activity", "on")
    pane.submit("[[turn0]] go")
    await pane.shows("end 0.")
    [thread] = lab.threads()
    lab.pane("exec sleep 1000")
    lab.run_tmux("kill-session", "-t", pane.id)
    lab.stop_daemon()
    await until(lambda: not _processes(lab), "the end of Codex")
    files, shown = _files(lab.root), _tmux(lab)
    for command in COMMANDS:
        await _run(lab, thread, command)
    changed = {path for path, _ in _files(lab.root).items() ^ files.items()}
    assert changed == set()
    assert _tmux(lab) == shown


def _processes(lab: Lab) -> list[psutil.Process]:
    """Return the processes of Codex in the home."""
    found = psutil.process_iter(["environ", "name"])
    home = str(lab.home)
    return [
        p for p in found if p.info["name"] == "codex" and (p.info["environ"] or {}).get("CODEX_HOME") == home
    ]


def _files(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return what the file system knows of each file, but when it was read, and when its owner was set: where
    root reads a database, SQLite gives its log the owner that it has."""
    found = {str(path): path.lstat() for path in folder.rglob("*")}
    return {
        path: (known.st_ino, known.st_mode, known.st_size, known.st_mtime_ns) for path, known in found.items()
    }


def _tmux(lab: Lab) -> list[str]:
    """Return what tmux shows of its server, sessions, windows, panes, clients, and of the hooks that ran."""
    session = "#{session_activity} #{session_last_attached} #{session_attached} #{session_alerts}"
    window = "#{window_activity} #{window_activity_flag} #{window_layout} #{window_flags}"
    shown = "#{history_size} #{history_bytes} #{pane_in_mode} #{cursor_x},#{cursor_y} #{pane_title}"
    others = ("list-clients", "list-buffers", "show-options -g", "show-environment -g")
    panes = lab.run_tmux("list-panes", "-a", "-F", f"{session} {window} {shown}")
    return [panes, *(lab.run_tmux(*each.split()) for each in others)]


async def _run(lab: Lab, thread: str, command: str) -> None:
    done = await asyncio.to_thread(lab.agentdash, *command.replace("THREAD", thread).split())
    assert done.returncode in (0, 1), done.stderr


@asynccontextmanager
async def _feed(lab: Lab) -> AsyncIterator[list[Event]]:
    """Connect to the status feed for the block; yield what it tells."""
    feed, told = StatusFeed(lab.home, SystemClock()), list[Event]()
    task = asyncio.create_task(feed.stream(told.extend))
    try:
        await until(lambda: feed.connected, "the feed")
        yield told
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


# ---------------------------------------------------------------- the status feed

ASK: Final = [{"run": "touch allowed", "escalate": "May I?"}, {"say": "all done"}]


async def test_late_connection_gets_pending_approvals(codex: OpenLab) -> None:
    lab = codex({"ask": ASK})
    feed = StatusFeed(lab.home, SystemClock())
    assert await feed.poll(5.0) == []  # no daemon yet
    pane = await lab.tui()
    pane.submit("[[ask]] go")
    await pane.shows(MENU)
    [thread] = lab.threads()
    flags = ("waitingOnApproval",)
    asking = StatusPushed(at=5.0, thread=thread, status="active", flags=flags, cwd=str(lab.workspace))
    connected = SourceSeen(at=5.0, name="codex feed", ok=True, detail="connected")
    assert await feed.poll(5.0, timeout=scaled(30)) == [asking, connected]
    lab.run_tmux("kill-session", "-t", pane.id)  # the prompt outlives its TUI
    assert replace(asking, at=6.0) in await feed.poll(6.0, timeout=scaled(30))


async def test_connection_is_no_subscriber_of_a_spawned_child(codex: OpenLab) -> None:
    """Codex subscribes clients to spawned threads; it must not ask agentdash for approvals."""
    parent = [{"spawn": ["child"]}, {"wait": True}, {"say": "all done"}]
    lab = codex({"parent": parent, "child": [{"hold": "child"}, *ASK]})
    pane = await lab.tui()
    async with _feed(lab) as told:

        async def tells(status: str, *flags: str) -> None:
            """Wait for a status of the child, and forget what was told before."""
            wanted = (child, status, flags)
            await until(lambda: any(wanted == (e.thread, e.status, e.flags) for e in _pushed(told)), status)
            told.clear()

        pane.submit("[[parent]] go")
        await until(lambda: any(lab.threads().values()), "a child")
        [child] = (thread for thread, parent in lab.threads().items() if parent)
        await tells("active")
        lab.model.release("child")
        await tells("active", "waitingOnApproval")
        await pane.answer(MENU, "y")
        await tells("idle")
        await pane.shows("all done")


def _pushed(events: Sequence[Event]) -> list[StatusPushed]:
    return [event for event in events if isinstance(event, StatusPushed)]
