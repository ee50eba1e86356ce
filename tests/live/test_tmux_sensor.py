"""The tmux sensor over real tmux servers."""

import asyncio
import itertools
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from agentdash.collect.tmux import sensor
from agentdash.collect.tmux.actions import TmuxRefusedError, go_to_pane
from agentdash.collect.tmux.sensor import TmuxSensor
from agentdash.collect.tmux.servers import run_commands, servers
from agentdash.model.events import PaneDrawn, PaneGone, PaneSeen, SourceSeen
from agentdash.model.pane import Pane, PaneKey
from agentdash.peers import ProvenSocket
from tests.live.conftest import Screens
from tests.live.patience import wait_until, within
from tests.live.tmux import TmuxServer, default_server


class Tmux:
    """The default server."""

    def __init__(self, server: TmuxServer) -> None:
        self.server = server

    def __call__(self, *args: str) -> str:
        return self.server.run_tmux(*args).strip()

    def open(self, command: str = "sleep 1000", *options: str, how: str = "new-window") -> str:
        """Open a pane with this command, in a new session or the only one; return its id."""
        where = ["-d", "-P", "-F", "#{pane_id}", *options]
        with suppress(subprocess.CalledProcessError):
            return self(how, *where, command)
        return self("new-session", "-x", "60", "-y", "8", *where, command)


@pytest.fixture
def tmux(monkeypatch: pytest.MonkeyPatch, report_screens: Callable[[Screens], None]) -> Iterator[Tmux]:
    with default_server(monkeypatch) as server:
        report_screens(server.screens)
        yield Tmux(server)


class Observer:
    """Polls the sensor, and keeps the newest panes, screens and sources."""

    def __init__(self, skip: PaneKey | None = None, timeout: float = 10.0) -> None:
        self.sensor = TmuxSensor(servers((), (), default=True), timeout=timeout, skip=skip)
        self.panes: dict[str, Pane] = {}
        self.screens: dict[str, tuple[str, ...]] = {}
        self.sources: dict[str, SourceSeen] = {}
        self.emitted: list[str] = []

    async def poll(self) -> list[str]:
        """Poll once; return the events in short: `+%1` seen, `=%1` drawn, `-%1` gone."""
        self.emitted = []
        for event in await self.sensor.poll(time.time()):
            match event:
                case PaneSeen(pane=pane):
                    self.panes[str(pane.key)] = pane
                    self.emitted.append(f"+{pane.key}")
                case PaneDrawn(key=key, screen=screen):
                    self.screens[str(key)] = screen
                    self.emitted.append(f"={key}")
                case PaneGone(key=key):
                    del self.panes[str(key)]
                    self.emitted.append(f"-{key}")
                case SourceSeen():
                    self.sources[event.name] = event
        return self.emitted

    async def until(self, condition: Callable[[], bool]) -> None:
        async with within():
            await self.poll()
            while not condition():
                await asyncio.sleep(0.02)
                await self.poll()

    def text(self, pane: str) -> str:
        return "\n".join(self.screens.get(pane, ()))


def before_each_call(do: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Call a function with the commands of each `tmux` process before the sensor starts it."""

    def run(
        proven: ProvenSocket, limit_s: float, commands: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        do(*commands)
        return run_commands(proven, limit_s, commands)

    monkeypatch.setattr(sensor, "run_commands", run)


async def test_a_server_has_news_once_it_has_run(tmux: Tmux) -> None:
    pane = tmux.open("read -r line; echo drawn; exec sleep 1000")
    observer = Observer()
    await observer.until(lambda: pane in observer.screens and not observer.sensor.has_news())
    tmux("send-keys", "-t", pane, "Enter")
    assert observer.sensor.has_news()
    await observer.until(lambda: "drawn" in observer.text(pane) and not observer.sensor.has_news())
    tmux("kill-server")
    await observer.until(lambda: not (observer.sources["tmux"].ok or observer.sensor.has_news()))
    tmux.open()
    assert observer.sensor.has_news()


async def test_panes_and_screens_are_emitted_once(tmux: Tmux) -> None:
    pane = tmux.open(r"printf '\033[1;38;2;1;2;3mpainted\033[0m   \nplain\n'; exec sleep 1000", "-n", "api")
    observer = Observer()
    await observer.until(lambda: observer.text(pane).startswith("painted\nplain"))
    await observer.until(lambda: observer.panes[pane].command == "sleep")
    await observer.until(lambda: observer.emitted == [])
    seen = observer.panes[pane]
    assert (seen.key, seen.window, seen.command) == (PaneKey("default", pane), "0:api", "sleep")
    assert (seen.width, seen.height) == (60, 8)
    assert (seen.active, seen.dead, seen.cursor_visible, seen.in_mode) == (True, False, True, False)
    assert (seen.pid, seen.server_pid) == tuple(map(int, tmux("display", "-p", "#{pane_pid} #{pid}").split()))
    assert len(observer.screens[pane]) == 8
    (source,) = observer.sources.values()
    assert (source.name, source.ok, source.detail) == ("tmux", True, "1 pane")
    tmux("send-keys", "-t", pane, "more", "Enter")
    await observer.until(lambda: "more" in observer.text(pane))
    tmux("copy-mode", "-t", pane)
    await observer.until(lambda: observer.panes[pane].in_mode)
    tmux("kill-server")


async def test_hostile_names(tmux: Tmux, tmp_path: Path) -> None:
    """Behind a pane that is skipped, and before another one."""
    odd = tmp_path / "a\tb\nc␞%0 #{pane_id}"
    odd.mkdir()
    program = tmp_path / "program"
    title = r"\033]2;t\ti%%1\342\220\236 #{pane_id}#(touch x)\342\200\256m </b>\033\\"
    program.write_text(f"#!/bin/bash\nprintf '{title}'\nexec -a $'na\\tme\\n%0\\033[31m' sleep 1000\n")
    program.chmod(0o755)
    quiet = tmux.open()
    hostile = tmux.open(str(program), "-c", str(odd))
    with suppress(subprocess.CalledProcessError):  # tmux 3.8 refuses such names
        tmux("rename-window", "-t", hostile, "w\ti\nn[/]")
        tmux("rename-session", "s\t\n␞x")
    tmux("rename-session", "s␞x")
    after = tmux.open()
    observer = Observer(skip=PaneKey("default", quiet))
    await observer.until(lambda: hostile in observer.panes and "</b>" in observer.panes[hostile].title)
    await observer.until(lambda: "na" in observer.panes[hostile].command)
    assert set(observer.panes) == {hostile, after}
    pane = observer.panes[hostile]
    assert pane.title == "ti%1␞ #{pane_id}#(touch x)m </b>"
    assert "␞" in pane.session
    for text in (pane.title, pane.session, pane.window, pane.command):
        assert text.isprintable()
    assert observer.sources["tmux"].detail == "2 panes"


async def test_server_restart(tmux: Tmux) -> None:
    first, second = tmux.open(), tmux.open()
    observer = Observer()
    await observer.until(lambda: set(observer.panes) == {first, second})
    old = observer.panes[first].server_pid
    tmux("kill-server")
    await observer.until(lambda: observer.sources["tmux"].detail == "no server running")
    assert not observer.sources["tmux"].ok
    assert set(observer.panes) == {first, second}  # in their last known state
    assert tmux.open() == first  # ids restart
    await observer.until(lambda: observer.panes[first].server_pid != old)
    assert set(observer.panes) == {first}
    assert observer.sources["tmux"].ok


async def test_server_without_answer(tmux: Tmux) -> None:
    pane = tmux.open()
    observer = Observer(timeout=0.3)
    await observer.until(lambda: pane in observer.panes)
    server = observer.panes[pane].server_pid
    assert server is not None
    os.kill(server, signal.SIGSTOP)
    try:
        await observer.until(lambda: observer.sources["tmux"].detail == "no answer within 0.3 s")
    finally:
        os.kill(server, signal.SIGCONT)
    await observer.until(lambda: observer.sources["tmux"].ok)


async def test_panes_that_keep_drawing_take_one_call(tmux: Tmux, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one of them has closed since, those behind it are captured all the same."""
    drawing = "n=0; while :; do n=$((n + 1)); echo number $n; sleep 0.01; done"
    panes = [tmux.open(drawing) for _ in range(3)]
    observer = Observer()
    await observer.until(lambda: all("number" in observer.text(pane) for pane in panes))
    calls: list[list[str]] = []

    def count(*args: str) -> None:
        verbs = [arg.partition(" ")[0] for arg in args]
        calls.append([verb for verb in verbs if verb != "display-message"])

    before_each_call(count, monkeypatch)
    await observer.until(lambda: calls[-2:] == [["list-panes", *["capture-pane"] * 3]] * 2)
    tmux("kill-pane", "-t", panes[0])
    assert f"-{panes[0]}" in await observer.poll()
    before = dict(observer.screens)
    await observer.until(lambda: all(observer.screens[pane] != before[pane] for pane in panes[1:]))


async def test_screen_and_properties_are_of_one_moment(tmux: Tmux, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program writes a number to its title and its screen at once, while its window is resized."""
    script = (
        "import itertools, time\n"
        "for n in itertools.count():\n"
        "    cursor = 'hl'[n % 2]\n"
        "    print(f'\\033]2;{n}\\007\\033[?25{cursor}\\033[2J\\033[H{n}', end='', flush=True)\n"
        "    time.sleep(0.01)\n"
    )
    pane = tmux.open(shlex.join([sys.executable, "-c", script]))
    heights = itertools.cycle((5, 24, 10))

    def resize(*args: str) -> None:
        del args
        tmux("resize-window", "-t", pane, "-x", "40", "-y", str(next(heights)))
        time.sleep(0.03)

    ready = Observer()
    await ready.until(lambda: bool(re.match(r"\d", ready.text(pane))))
    before_each_call(resize, monkeypatch)
    for _ in range(10):
        observer = Observer()
        for _ in range(3):  # the first poll captures in a second call
            await observer.poll()
            seen, screen = observer.panes[pane], observer.screens[pane]
            number = int(screen[0])
            expected = (str(number), number % 2 == 0, len(screen))
            assert (seen.title, seen.cursor_visible, seen.height) == expected


async def test_linked_window_is_one_pane(tmux: Tmux) -> None:
    pane = tmux.open()
    tmux("new-session", "-d", "-s", "second", "sleep 1000")
    tmux("link-window", "-s", pane, "-t", "second:7")
    tmux("select-window", "-t", "second:7")
    observer = Observer()
    await observer.poll()
    assert len(observer.panes) == 2
    assert sorted(observer.emitted)[-2:] == [f"={p}" for p in sorted(observer.panes)]


async def test_text_in_the_c_locale(tmux: Tmux, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is drawn in the set of characters for lines."""
    box = r"\033(0lqqk\033(B lqqk\n\033(0x\033(Bab\033(0x\033(B\n\033(0mqqj\033(B"
    pane = tmux.open(f"printf '\\033]2;✳ Ünï\\033\\\\❯ größer\\n{box}'; exec sleep 1000")
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.setenv(name, "C")
    observer = Observer()
    await observer.until(lambda: pane in observer.panes and observer.panes[pane].title == "✳ Ünï")
    drawn = ("❯ größer", "┌──┐ lqqk", "│ab│", "└──┘")
    await observer.until(lambda: observer.screens[pane][:4] == drawn)


# ---------------------------------------------------------------- actions


def test_go_to_pane(tmux: Tmux, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmux.open()
    tmux("new-session", "-d", "-s", "there", "-x", "60", "-y", "8", "sleep 1000")
    target = tmux.open("sleep 1000", "-t", "there")
    session = tmux("display-message", "-p", "-t", here, "#{session_name}:")
    beside = tmux.open("sleep 1000", "-t", session)
    below = tmux.open("sleep 1000", "-t", here, how="split-window")
    master, terminal = pty.openpty()
    streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    env = {**os.environ, "TERM": "xterm"}
    client = subprocess.Popen(["tmux", "attach", "-t", here], env=env, **streams)
    try:
        wait_until(lambda: tmux("list-clients"), "the client")
        monkeypatch.setenv("TMUX", tmux("display", "-p", "-t", here, "#{socket_path},#{pid},0"))
        monkeypatch.setenv("TMUX_PANE", here)
        for other, key in ((target, "L"), (beside, "l"), (below, ";")):
            tmux("switch-client", "-t", here)
            assert go_to_pane(PaneKey("default", other)).endswith(f"; C-b {key} goes back here.")
            assert tmux("list-clients", "-F", "#{pane_id}") == other
        assert f"C-b {key} goes back to agentdash" in tmux("show-messages")
        tmux("bind-key", "D", "run-shell 'agentdash back'")
        assert "; C-b D goes back here" in go_to_pane(PaneKey("default", target))
        with pytest.raises(TmuxRefusedError, match="another tmux server"):
            go_to_pane(PaneKey("-L other", "%0"))
        with pytest.raises(TmuxRefusedError, match="%77"):
            go_to_pane(PaneKey("default", "%77"))
        monkeypatch.delenv("TMUX")
        assert go_to_pane(PaneKey("default", target)).endswith(f"tmux attach -t '{target}' shows it.")
    finally:
        client.kill()
        client.wait()
        os.close(master)
        os.close(terminal)
