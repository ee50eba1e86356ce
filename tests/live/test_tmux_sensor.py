"""The tmux sensor over real tmux servers of its own."""

from __future__ import annotations

import asyncio
import os
import pty
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentdash.collect.tmux.actions import TmuxRefusedError, go_to_pane, split
from agentdash.collect.tmux.sensor import TmuxSensor, TmuxServer, current_pane, servers, tmux_version
from agentdash.model.events import PaneDrawn, PaneGone, PaneSeen, SourceSeen
from agentdash.model.pane import Pane, PaneKey


class Tmux:
    """The default server of a socket directory that nobody else uses."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-f", "/dev/null", *args], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def open(self, command: str = "sleep 1000", *options: str) -> str:
        """A window of a new or the only session with this command in it; returns its pane's id."""
        verb = "new-window" if self.running() else "new-session"
        size = ("-x", "60", "-y", "8") if verb == "new-session" else ()
        return self(verb, "-d", "-P", "-F", "#{pane_id}", *size, *options, command)

    def running(self) -> bool:
        return subprocess.run(["tmux", "has-session"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def tmux(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tmux]:
    with tempfile.TemporaryDirectory(prefix="ad") as folder:  # sockets need short paths
        monkeypatch.setenv("TMUX_TMPDIR", folder)
        monkeypatch.delenv("TMUX", raising=False)
        monkeypatch.delenv("TMUX_PANE", raising=False)
        yield Tmux(folder)
        subprocess.run(["tmux", "kill-server"], capture_output=True, check=False)
        subprocess.run(["tmux", "-L", "other", "kill-server"], capture_output=True, check=False)


class Looking:
    """Looks until what is waited for has been seen; that it never is, is what the tests' timeout is for."""

    def __init__(self, *names: str, skip: PaneKey | None = None, timeout: float = 10.0) -> None:
        self.sensor = TmuxSensor(servers(names, (), default=True), timeout=timeout, skip=skip)
        self.panes: dict[str, Pane] = {}
        self.screens: dict[str, tuple[str, ...]] = {}
        self.sources: dict[str, SourceSeen] = {}
        self.told: list[str] = []

    async def poll(self) -> list[str]:
        """What is told, in short: `+%1` seen, `=%1` drawn, `-%1` gone."""
        self.told = []
        for event in await self.sensor.poll(time.time()):
            match event:
                case PaneSeen(pane=pane):
                    self.panes[str(pane.key)] = pane
                    self.told.append(f"+{pane.key}")
                case PaneDrawn(key=key, screen=screen):
                    self.screens[str(key)] = screen
                    self.told.append(f"={key}")
                case PaneGone(key=key):
                    del self.panes[str(key)]
                    self.told.append(f"-{key}")
                case SourceSeen():
                    self.sources[event.name] = event
        return self.told

    async def until(self, there: Callable[[], bool]) -> None:
        await self.poll()
        while not there():
            await asyncio.sleep(0.02)
            await self.poll()

    def text(self, pane: str) -> str:
        return "\n".join(self.screens.get(pane, ()))


def before_each_call(do: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Does something with the arguments of each `tmux` that the sensor is about to start."""
    loop = asyncio.get_running_loop()
    start = loop.subprocess_exec

    def started(protocol: object, *args: str, **options: object) -> object:
        do(*args)
        return start(protocol, *args, **options)

    monkeypatch.setattr(loop, "subprocess_exec", started)


async def test_panes_and_screens_are_told_once(tmux: Tmux) -> None:
    pane = tmux.open(r"printf '\033[1;38;2;1;2;3mpainted\033[0m   \nplain\n'; exec sleep 1000", "-n", "api")
    eyes = Looking()
    await eyes.until(lambda: eyes.text(pane).startswith("painted\nplain"))
    await eyes.until(lambda: eyes.told == [])
    seen = eyes.panes[pane]
    assert (seen.key, seen.window, seen.command) == (PaneKey("default", pane), "0:api", "sleep")
    assert (seen.width, seen.height, seen.active, seen.dead, seen.cursor_visible, seen.in_mode) == (
        60,
        8,
        True,
        False,
        True,
        False,
    )
    assert (seen.pid, seen.server_pid) == tuple(map(int, tmux("display", "-p", "#{pane_pid} #{pid}").split()))
    assert len(eyes.screens[pane]) == 8
    assert eyes.sources == {
        "tmux": SourceSeen(at=eyes.sources["tmux"].at, name="tmux", ok=True, detail="1 pane")
    }
    tmux("send-keys", "-t", pane, "more", "Enter")
    await eyes.until(lambda: "more" in eyes.text(pane))
    tmux("copy-mode", "-t", pane)
    await eyes.until(lambda: eyes.panes[pane].in_mode)
    tmux("kill-server")


async def test_hostile_names_lose_nothing(tmux: Tmux, tmp_path: Path) -> None:
    odd = tmp_path / "a\tb\nc␞%0 #{pane_id}"
    odd.mkdir()
    program = tmp_path / "program"
    title = r"\033]2;t\ti%%1\342\220\236 #{pane_id}#(touch x)\342\200\256m </b>\033\\"
    program.write_text(f"#!/bin/bash\nprintf '{title}'\nexec -a $'na\\tme\\n%0\\033[31m' sleep 1000\n")
    program.chmod(0o755)
    quiet = tmux.open()
    hostile = tmux.open(str(program), "-c", str(odd), "-n", "w\ti\nn[/]")
    tmux("rename-session", "s\t\n␞x")
    after = tmux.open()
    eyes = Looking()
    await eyes.until(
        lambda: (
            hostile in eyes.panes
            and "</b>" in eyes.panes[hostile].title
            and "na" in eyes.panes[hostile].command
        )
    )
    assert set(eyes.panes) == {quiet, hostile, after}
    pane = eyes.panes[hostile]
    assert pane.title == "ti%1␞ #{pane_id}#(touch x)m </b>"
    assert "␞" in pane.session
    for text in (pane.title, pane.session, pane.window, pane.command):
        assert text.isprintable()
    assert eyes.sources["tmux"].detail == "3 panes"


async def test_line_drawing_is_drawn_and_letters_stay_letters(tmux: Tmux) -> None:
    box = r"\033(0lqqk\033(B lqqk\n\033(0x\033(Bab\033(0x\033(B\n\033(0mqqj\033(B"
    pane = tmux.open(f"printf '{box}'; exec sleep 1000")
    eyes = Looking()
    await eyes.until(lambda: "└──┘" in eyes.text(pane))
    assert eyes.screens[pane][:3] == ("┌──┐ lqqk", "│ab│", "└──┘")


async def test_dead_panes_say_how_they_died(tmux: Tmux) -> None:
    alive = tmux.open()
    tmux("set-option", "-g", "remain-on-exit", "on")
    left, killed = tmux.open("sh -c 'echo; echo last words; exit 3'"), tmux.open()
    eyes = Looking()
    await eyes.until(lambda: killed in eyes.panes)
    os.kill(eyes.panes[killed].pid, signal.SIGKILL)
    await eyes.until(lambda: eyes.panes[left].dead and eyes.panes[killed].dead)
    # tmux 3.3a does not always reap its children: then it has nothing to say of how they died
    assert (eyes.panes[left].dead_status, eyes.panes[left].dead_signal) in ((3, None), (None, None))
    assert (eyes.panes[killed].dead_status, eyes.panes[killed].dead_signal) in ((None, 9), (None, None))
    await eyes.until(lambda: "dead" in eyes.text(left))
    assert "last words" in eyes.text(
        left
    )  # not in the first line: tmux scrolls that away to say that the pane is dead
    assert not eyes.panes[alive].dead


async def test_a_server_that_goes_and_comes_back(tmux: Tmux) -> None:
    first, second = tmux.open(), tmux.open()
    eyes = Looking()
    await eyes.until(lambda: set(eyes.panes) == {first, second})
    old = eyes.panes[first].server_pid
    tmux("kill-server")
    await eyes.until(lambda: not eyes.sources["tmux"].ok)
    assert eyes.sources["tmux"].detail == "no server running"
    assert set(eyes.panes) == {first, second}  # as they were seen last
    assert tmux.open() == first  # ids begin anew
    await eyes.until(lambda: eyes.panes[first].server_pid != old)
    assert set(eyes.panes) == {first}
    assert eyes.sources["tmux"].ok


async def test_a_server_that_hangs(tmux: Tmux) -> None:
    pane = tmux.open()
    eyes = Looking(timeout=0.3)
    await eyes.until(lambda: pane in eyes.panes)
    server = eyes.panes[pane].server_pid
    assert server is not None
    os.kill(server, signal.SIGSTOP)
    try:
        await eyes.until(lambda: eyes.sources["tmux"].detail == "no answer within 0.3 s")
    finally:
        os.kill(server, signal.SIGCONT)
    await eyes.until(lambda: eyes.sources["tmux"].ok)


async def test_twelve_panes_in_two_calls(tmux: Tmux, monkeypatch: pytest.MonkeyPatch) -> None:
    panes = [tmux.open(f"echo this is {n}; exec sleep 1000") for n in range(12)]
    eyes = Looking()
    await eyes.until(lambda: all(f"this is {n}\n" in eyes.text(pane) for n, pane in enumerate(panes)))
    calls = []

    def count(*args: str) -> None:
        calls.append(next(arg for arg in args if arg in ("list-panes", "capture-pane")))

    before_each_call(count, monkeypatch)
    await Looking().poll()
    assert calls == ["list-panes", "capture-pane"]
    await eyes.until(lambda: calls[-2:] == ["list-panes"] * 2)  # nobody draws: nothing is captured


async def test_a_pane_that_goes_between_listing_and_capturing(
    tmux: Tmux, monkeypatch: pytest.MonkeyPatch
) -> None:
    panes = [tmux.open(f"echo this is {n}; exec sleep 1000") for n in range(4)]
    ready = Looking()
    await ready.until(lambda: all("this is" in ready.text(pane) for pane in panes))

    def race(*args: str) -> None:
        if "capture-pane" in args and panes[1] in args:
            tmux("kill-pane", "-t", panes[1])

    before_each_call(race, monkeypatch)
    eyes = Looking()
    await eyes.poll()
    assert set(eyes.screens) == {panes[0], panes[2], panes[3]}
    assert await eyes.poll() == [f"-{panes[1]}"]


async def test_a_linked_window_is_one_pane(tmux: Tmux) -> None:
    pane = tmux.open()
    tmux("new-session", "-d", "-s", "second")
    tmux("link-window", "-s", pane, "-t", "second:7")
    tmux("select-window", "-t", "second:7")
    eyes = Looking()
    await eyes.poll()
    assert len(eyes.panes) == 2
    assert sorted(eyes.told)[-2:] == [f"={p}" for p in sorted(eyes.panes)]


async def test_several_servers_and_a_pane_to_skip(tmux: Tmux) -> None:
    pane = tmux.open()
    tmux("-L", "other", "new-session", "-d", "sleep 1000")
    eyes = Looking("other", "missing", skip=PaneKey("default", pane))
    await eyes.poll()
    assert set(eyes.panes) == {"-L other %0"}
    assert {name: source.ok for name, source in eyes.sources.items()} == {
        "tmux": True,
        "tmux other": True,
        "tmux missing": False,
    }


async def test_text_survives_a_plain_locale(tmux: Tmux, monkeypatch: pytest.MonkeyPatch) -> None:
    pane = tmux.open("printf '\\033]2;✳ Ünï\\033\\\\❯ größer'; exec sleep 1000")
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.setenv(name, "C")
    eyes = Looking()
    await eyes.until(lambda: pane in eyes.panes and eyes.panes[pane].title == "✳ Ünï")
    await eyes.until(lambda: eyes.screens[pane][0] == "❯ größer")


# ---------------------------------------------------------------- what agentdash does in tmux


def inside(tmux: Tmux, pane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the tests ran in that pane."""
    monkeypatch.setenv("TMUX", tmux("display", "-p", "-t", pane, "#{socket_path},#{pid},0"))
    monkeypatch.setenv("TMUX_PANE", pane)


def test_a_split_beside_the_current_pane(tmux: Tmux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(TmuxRefusedError, match="not inside of tmux"):
        split("right", "40%", ["true"])
    pane = tmux.open("sleep 1000", "-c", str(tmp_path))
    inside(tmux, pane, monkeypatch)
    assert current_pane() == PaneKey("default", pane)
    while tmux("display", "-p", "-t", pane, "#{pane_current_path}") != str(tmp_path):
        time.sleep(0.01)  # its shell is still on its way there
    out = tmp_path / "out"
    command = 'printf "%s|" "$PWD" "$GIVEN" "$0" "$@" > "$OUT.new"; mv "$OUT.new" "$OUT"; exec sleep 1000'
    split("right", "40%", ["env", f"OUT={out}", "sh", "-c", command, "a b", "c'd", "$HOME"], {"GIVEN": "g h"})
    assert (
        tmux("list-panes", "-t", pane, "-F", "#{pane_left}x#{pane_width} #{pane_active}") == "0x35 0\n36x24 1"
    )
    while not out.exists():
        time.sleep(0.01)
    assert out.read_text() == f"{tmp_path}|g h|a b|c'd|$HOME|"
    split("below", "3", ["sleep", "1000"])
    assert "60x3" in tmux("list-panes", "-t", pane, "-F", "#{pane_width}x#{pane_height}").replace(
        "35x3", "60x3"
    )
    with pytest.raises(TmuxRefusedError):
        split("below", "nonsense", ["true"])
    monkeypatch.setenv("TMUX_PANE", "%99")
    with pytest.raises(TmuxRefusedError, match="%99"):
        split("below", "3", ["true"])


def test_going_to_a_pane(tmux: Tmux, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmux.open()
    tmux("new-session", "-d", "-s", "there", "-x", "60", "-y", "8", "sleep 1000")
    target = tmux("new-window", "-d", "-t", "there", "-P", "-F", "#{pane_id}", "sleep 1000")
    master, terminal = pty.openpty()
    client = subprocess.Popen(
        ["tmux", "attach", "-t", here],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm"},
    )
    try:
        while not tmux("list-clients"):
            time.sleep(0.01)
        inside(tmux, here, monkeypatch)
        go_to_pane(PaneKey("default", target))
        assert tmux("list-clients", "-F", "#{session_name} #{pane_id}") == f"there {target}"
        with pytest.raises(TmuxRefusedError, match="another tmux server"):
            go_to_pane(PaneKey("-L other", "%0"))
        with pytest.raises(TmuxRefusedError, match="%77"):
            go_to_pane(PaneKey("default", "%77"))
    finally:
        client.kill()
        client.wait()
        os.close(master)
        os.close(terminal)


def test_the_version_is_told() -> None:
    version = tmux_version()
    assert version is not None
    assert version.startswith("tmux ")


def test_the_server_that_surrounds_us_is_among_the_defaults(
    tmux: Tmux, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmux("-L", "other", "new-session", "-d", "sleep 1000")
    socket = tmux("-L", "other", "display", "-p", "#{socket_path}")
    monkeypatch.setenv("TMUX", f"{socket},1,0")
    monkeypatch.setenv("TMUX_PANE", "%0")
    assert [server.label for server in servers((), (), default=True)] == ["default", "-L other"]
    assert servers((), (), default=True)[1] == TmuxServer("-L other", ("-L", "other"), Path(socket))
    assert current_pane() == PaneKey("-L other", "%0")
    split("below", "3", shlex.split("sleep 1000"))
    assert tmux("-L", "other", "list-panes", "-F", "#{pane_id}").split() == ["%0", "%1"]
