"""The tmux sensor over a scripted `tmux`: rows, screens and errors of several versions and systems."""

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from agentdash.collect.tmux import sensor as sensor_module
from agentdash.collect.tmux.sensor import TmuxSensor
from agentdash.collect.tmux.servers import NoAnswerError, TmuxServer, current_pane, server_of, servers
from agentdash.model.events import PaneDrawn, PaneSeen, SourceSeen
from agentdash.model.pane import PaneKey
from agentdash.peers import ProvenSocket

PANE = {
    "pane_id": "%1",
    "pane_pid": "42",
    "pid": "41",
    "pane_width": "80",
    "pane_height": "24",
    "pane_active": "1",
    "window_active": "1",
    "pane_in_mode": "0",
    "cursor_flag": "0",
    "pane_dead": "0",
    "window_activity": "5",
    "session_name": "s",
    "window_index": "2",
    "window_name": "api",
    "pane_current_command": "node",
    "pane_title": "t",
}
FAKE_TMUX = """#!{python} -IS
import re, sys
panes, screen, error = {panes!r}, {screen!r}, {error!r}
commands = sys.stdin.read().splitlines()
with open(__file__ + ".calls", "a") as calls:
    print(len([each for each in commands if each.startswith("capture-pane")]), file=calls)
if error:
    sys.exit(error)
for command in commands:
    name, _, rest = command.partition(" ")
    if name == "list-panes":
        for pane in panes:
            print(re.sub(r"#\\{{(\\w+)\\}}", lambda m: pane.get(m[1], ""), rest.split("'")[1]))
    if name == "capture-pane":
        print(screen)
    if name == "display-message":
        print(rest.split("'")[1])
"""

FakeTmux = Callable[..., TmuxSensor]


@pytest.fixture
def fake_tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTmux:
    """Return a function that makes a scripted `tmux`, and returns a sensor whose server is one."""
    program, socket = tmp_path / "tmux", tmp_path / "socket"

    def connect(server: TmuxServer) -> ProvenSocket:
        if not server.socket.exists():
            raise NoAnswerError("no server running")
        return ProvenSocket(str(socket), str(program), 1, ExitStack())

    def make(*panes: dict[str, str], screen: str = "", error: str = "", listens: bool = True) -> TmuxSensor:
        program.write_text(
            FAKE_TMUX.format(python=sys.executable, panes=panes, screen=screen, error=error), "utf-8"
        )
        program.chmod(0o755)
        if listens and not socket.exists():
            socket.touch()
        monkeypatch.setattr(sensor_module, "connect", connect)
        return TmuxSensor([TmuxServer("default", socket)])

    return make


async def test_all_panes_of_a_large_server_are_captured(fake_tmux: FakeTmux, tmp_path: Path) -> None:
    """tmux refuses more than 16 kB of arguments; its input has no such limit."""
    sensor = fake_tmux(*({**PANE, "pane_id": f"%{10_000 + n}"} for n in range(1_100)), screen="one")
    events = await sensor.poll(6.0)
    assert sum(isinstance(event, PaneDrawn) for event in events) == 1_100
    assert (tmp_path / "tmux.calls").read_text("utf-8").split() == ["0", "500", "500", "100"]
    await sensor.poll(6.1)  # those that have drawn probably have again
    assert (tmp_path / "tmux.calls").read_text("utf-8").split()[4:] == ["500", "500", "100"]


async def test_malformed_rows_are_skipped(fake_tmux: FakeTmux) -> None:
    malformed = [
        {"pane_id": "nonsense"},
        {"pane_pid": ""},
        {"pane_width": "8O"},
        {"window_activity": "-"},
        {"pane_dead_status": "x"},
    ]
    panes = [PANE | {"pane_id": f"%{n}"} | change for n, change in enumerate(malformed, 10)]
    sensor = fake_tmux(*panes, PANE)
    events = await sensor.poll(7.0)
    assert [event.pane.key.id for event in events if isinstance(event, PaneSeen)] == ["%1"]
    assert events[-1] == SourceSeen(at=7.0, name="tmux", ok=True, detail="1 pane, 5 not understood")


@pytest.mark.parametrize(
    ("status", "killed_by", "expected"),
    [
        ("3", "", (3, None)),
        ("", "9", (None, 9)),
        ("", "KILL", (None, 9)),
        ("", "term", (None, 15)),
        ("", "what", (None, None)),
    ],
)
async def test_exit_status_and_signal_of_a_dead_pane(
    fake_tmux: FakeTmux, status: str, killed_by: str, expected: tuple[int | None, int | None]
) -> None:
    events = await fake_tmux(
        PANE | {"pane_dead": "1", "pane_dead_status": status, "pane_dead_signal": killed_by}
    ).poll(7.0)
    (pane,) = [event.pane for event in events if isinstance(event, PaneSeen)]
    assert (pane.dead, (pane.dead_status, pane.dead_signal)) == (True, expected)


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        ("\x1b[1;38;2;1;2;3mbold\x1b[39m  \x1b[0m", ("bold",)),
        # a run continues over colours and lines
        ("\x0elqk\x0f lqk\n\x0ex\x1b[31mx\n\x1b[39mx\x0f x", ("┌─┐ lqk", "││", "│ x")),
        ("\x0emqj", ("└─┘",)),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x9b31m\u202ebidi\u200b\x07", ("link bidi",)),
        ("  kept  ▌ ✳ 日本\n\n", ("  kept  ▌ ✳ 日本", "", "")),
    ],
    ids=["colours", "line-drawing", "unended", "escapes", "blanks"],
)
async def test_screens_are_clean(fake_tmux: FakeTmux, raw: str, lines: tuple[str, ...]) -> None:
    events = await fake_tmux(PANE, screen=raw).poll(7.0)
    (drawn,) = [event for event in events if isinstance(event, PaneDrawn)]
    assert (drawn.screen, drawn.since) == (lines, 6.0)


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        ("no server running on /tmp/tmux-0/default", "no server running"),
        ("\x1b[31mwhat\tis\x07 this\nand more", "what    is this"),
    ],
)
async def test_error_is_one_clean_line(fake_tmux: FakeTmux, error: str, detail: str) -> None:
    assert await fake_tmux(error=error).poll(7.0) == [
        SourceSeen(at=7.0, name="tmux", ok=False, detail=detail)
    ]


# ---------------------------------------------------------------- servers


def test_servers_each_once_under_one_label(tmp_path: Path) -> None:
    folder = tmp_path / f"tmux-{os.getuid()}"
    env = {"TMUX_TMPDIR": str(tmp_path), "TMUX": f"{folder}/work,1,0", "TMUX_PANE": "%3"}
    found = servers(["api", "work", "default"], [folder / "api", tmp_path / "x" / "sock"], True, env)
    assert [(server.label, server.socket, server.source) for server in found] == [
        ("default", folder / "default", "tmux"),
        ("-L work", folder / "work", "tmux work"),
        ("-L api", folder / "api", "tmux api"),
        (f"{tmp_path}/x/sock", tmp_path / "x" / "sock", f"tmux {tmp_path}/x/sock"),
    ]
    assert [server_of(server.label, env) for server in found] == found
    assert current_pane(env) == PaneKey("-L work", "%3")
    assert servers([], [], False, env) == []
