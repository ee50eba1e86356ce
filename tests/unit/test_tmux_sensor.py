"""The tmux sensor over a program that only says what tmux could say, in some version, on some system."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentdash.collect.tmux import sensor as tmux
from agentdash.collect.tmux.sensor import TmuxSensor, TmuxServer, current_pane, servers, tmux_version
from agentdash.model.events import PaneDrawn, PaneSeen, SourceSeen
from agentdash.model.pane import Pane, PaneKey

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
SAYS = """#!{python} -IS
import re, sys
panes, screen, complaint = {panes!r}, {screen!r}, {complaint!r}
if complaint:
    sys.exit(complaint)
if "list-panes" in sys.argv:
    for pane in panes:
        print(re.sub(r"#\\{{(\\w+)\\}}", lambda m: pane.get(m[1], ""), sys.argv[-1]))
for at, arg in enumerate(sys.argv):
    if arg == "capture-pane":
        print(screen)
    if arg == "display-message":
        print(sys.argv[at + 2])
"""

Says = Callable[..., TmuxSensor]


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Says:
    """Makes a `tmux` that says so, and a sensor that asks it."""

    def make(*panes: dict[str, str], screen: str = "", complaint: str = "") -> TmuxSensor:
        program = tmp_path / "tmux"
        program.write_text(
            SAYS.format(python=sys.executable, panes=panes, screen=screen, complaint=complaint), "utf-8"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return TmuxSensor([TmuxServer("default", ("-L", "default"), tmp_path / "socket")])

    return make


async def test_a_row_field_by_field(says: Says) -> None:
    seen, drawn, health = await says(PANE, screen="one \ntwo").poll(7.0)
    pane = Pane(
        PaneKey("default", "%1"),
        "s",
        "2:api",
        42,
        "node",
        "t",
        80,
        24,
        True,
        cursor_visible=False,
        server_pid=41,
    )
    assert seen == PaneSeen(at=7.0, pane=pane)
    assert drawn == PaneDrawn(at=7.0, key=pane.key, screen=("one", "two"))
    assert health == SourceSeen(at=7.0, name="tmux", ok=True, detail="1 pane")


async def test_where_there_was_no_server_and_is_no_socket_tmux_is_not_even_started(
    says: Says, tmp_path: Path
) -> None:
    sensor = says(complaint="no server running")
    nobody = [SourceSeen(at=7.0, name="tmux", ok=False, detail="no server running")]
    assert await sensor.poll(7.0) == nobody
    says(PANE)  # from now on tmux would tell of a pane
    assert await sensor.poll(7.0) == nobody
    (tmp_path / "socket").touch()
    assert (await sensor.poll(7.0))[-1] == SourceSeen(at=7.0, name="tmux", ok=True, detail="1 pane")


async def test_a_malformed_row_loses_only_itself(says: Says) -> None:
    odd = [
        {"pane_id": "nonsense"},
        {"pane_pid": ""},
        {"pane_width": "8O"},
        {"window_activity": "-"},
        {"pane_dead_status": "x"},
    ]
    sensor = says(*(PANE | {"pane_id": f"%{n}"} | change for n, change in enumerate(odd, 10)), PANE)
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
        ("", "", (None, None)),
        ("", "what", (None, None)),
    ],
)
async def test_how_a_pane_died(
    says: Says, status: str, killed_by: str, expected: tuple[int | None, int | None]
) -> None:
    events = await says(
        PANE | {"pane_dead": "1", "pane_dead_status": status, "pane_dead_signal": killed_by}
    ).poll(7.0)
    (pane,) = [event.pane for event in events if isinstance(event, PaneSeen)]
    assert (pane.dead, (pane.dead_status, pane.dead_signal)) == (True, expected)


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        ("\x1b[1;38;2;1;2;3mbold\x1b[39m  \x1b[0m", ("bold",)),
        (
            "\x0elqk\x0f lqk\n\x0ex\x1b[31mx\n\x1b[39mx\x0f x",
            ("┌─┐ lqk", "││", "│ x"),
        ),  # a run goes on over colours and lines
        ("\x0emqj", ("└─┘",)),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x9b31m\u202ebidi\u200b\x07", ("link bidi",)),
        ("  kept  ▌ ✳ 日本\n\n", ("  kept  ▌ ✳ 日本", "", "")),
    ],
    ids=["colours", "line-drawing", "unended", "escapes", "blanks"],
)
async def test_screens_are_clean(says: Says, raw: str, lines: tuple[str, ...]) -> None:
    (drawn,) = [event for event in await says(PANE, screen=raw).poll(7.0) if isinstance(event, PaneDrawn)]
    assert drawn.screen == lines


@pytest.mark.parametrize(
    ("complaint", "detail"),
    [
        ("no server running on /tmp/tmux-0/default", "no server running"),
        ("error connecting to /tmp/tmux-0/x (No such file or directory)", "no server running"),
        ("error connecting to /tmp/tmux-0/x (Connection refused)", "no server running"),
        ("server exited unexpectedly", "no server running"),
        ("error connecting to /tmp/x (Permission denied)", "belongs to another user (Permission denied)"),
        (
            "error connecting to /tmp/x (Operation not permitted)",
            "may not be connected to from inside of this sandbox (Operation not permitted)",
        ),
        ("\x1b[31mwhat\tis\x07 this\nand more", "what    is this"),
    ],
)
async def test_no_answer_is_told_in_one_clean_line(says: Says, complaint: str, detail: str) -> None:
    assert await says(complaint=complaint).poll(7.0) == [
        SourceSeen(at=7.0, name="tmux", ok=False, detail=detail)
    ]


async def test_without_tmux(says: Says, tmp_path: Path) -> None:
    sensor = says()
    (tmp_path / "tmux").unlink()
    assert await sensor.poll(7.0) == [
        SourceSeen(at=7.0, name="tmux", ok=False, detail="tmux is not installed")
    ]
    assert tmux_version() is None


# ---------------------------------------------------------------- which servers


def test_servers_each_once_under_one_label(tmp_path: Path) -> None:
    folder = tmp_path / f"tmux-{os.getuid()}"
    env = {"TMUX_TMPDIR": str(tmp_path), "TMUX": f"{folder}/work,1,0", "TMUX_PANE": "%3"}
    found = servers(["api", "work", "default"], [folder / "api", tmp_path / "x" / "sock"], True, env)
    assert [(server.label, server.args, server.source) for server in found] == [
        ("default", ("-L", "default"), "tmux"),
        ("-L work", ("-L", "work"), "tmux work"),
        ("-L api", ("-L", "api"), "tmux api"),
        (f"{tmp_path}/x/sock", ("-S", f"{tmp_path}/x/sock"), f"tmux {tmp_path}/x/sock"),
    ]
    assert current_pane(env) == PaneKey("-L work", "%3")
    assert servers([], [], False, env) == []


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"TMUX": "/tmp/x,1,0"},
        {"TMUX": "nonsense", "TMUX_PANE": "%1"},
        {"TMUX": "/tmp/x,1,0", "TMUX_PANE": "%1; kill-server"},
    ],
)
def test_outside_of_tmux(env: dict[str, str]) -> None:
    assert current_pane(env) is None


def test_a_socket_with_commas_in_its_path() -> None:
    assert current_pane({"TMUX": "/tmp/a,b/sock,12,0", "TMUX_PANE": "%1"}) == PaneKey(
        str(Path("/tmp").resolve() / "a,b/sock"), "%1"
    )


async def test_a_call_that_nobody_waits_for_any_more_comes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed just as it ends, its status would be taken from the loop, which then complains of an unknown child."""
    monkeypatch.setattr(tmux, "_LAST", 20.0)
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    os.mkfifo(begun)
    program = tmp_path / "tmux"
    program.write_text(f"#!/bin/sh\n: >{begun}\n/bin/sleep 0.1\n: >{ended}\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    looking = asyncio.create_task(TmuxSensor([TmuxServer("default", (), Path("default"))]).poll(7.0))
    await asyncio.to_thread(begun.read_bytes)  # waits for its writer
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert ended.exists()
