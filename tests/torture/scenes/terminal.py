"""What a terminal may send and be: garbage, pastes, odd values of `TERM`."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from typing import Final

from tests.live.terminal import READY, Terminal
from tests.torture.scenes import scene
from tests.torture.scenes.files import answers
from tests.torture.stage import Stage, becomes, quits

_GARBAGE: Final = (
    b"\x1b[<0;-1;5M",
    b"\x1b[<999;99999;99999M",
    b"\x1b[<0;;M",
    b"\x1b[<0;99999999999999999999999;1M",
    b"\x1b[M\xff\xff\xff",
    b"\xff\xfe\xc3(",
    b"\x1b[<64;1;1M" * 200,
    b"\x1b[<35;10;10M" * 500,
    b"\x1b[I\x1b[O" * 50,
    b"\x1b[1;99999999999999999999u",
    b"\x1b[1114112u",
    b"\x1b[55296u",
    b"\x1b[57344;5:3u",
    b"\x1b[27;5;99999999~",
    b"\x1b[99;99;99;99;99~",
    b"\x1b[48;99999;99999;0;0t",
    b"\x1b[24;80R\x1b[?1;2c\x1b[?2026;2$y",
    b"\x1b]11;rgb:zz/zz\x07\x1bP1+r\x1b\\\x1b_Gi=1;OK\x1b\\",
)
"""Mouse, keys and late answers that no terminal should send; some of these ended the screen."""
_PASTE: Final = b"a\tb\n\x1b[31m x' \" ( : ! " * 5_000
_ENVIRONMENTS: Final = (
    {"TERM": "linux", "NO_COLOR": "1"},
    {"TERM": "xterm-mono"},
    {"TERM": "no-such-terminal"},
    {"LC_ALL": "C", "PYTHONUTF8": "0"},
    {"COLUMNS": "1"},
    {"COLUMNS": "-5", "LINES": "x"},
)


def _send(terminal: Terminal, data: bytes) -> None:
    """Send more than a terminal takes at once, and read meanwhile."""
    while data and terminal.process.poll() is None:
        terminal.read()
        if select.select((), (terminal.master,), (), 0.1)[1]:
            data = data[os.write(terminal.master, data[:1_024]) :]


def _is_well(terminal: Terminal) -> Iterator[str]:
    if not answers(terminal, b"?"):
        yield "does not react"
    terminal.press(b"\x1b")
    yield from quits(terminal)
    terminal.close()


@scene("the terminal sends garbage")
def garbage(stage: Stage) -> Iterator[str]:
    for arguments in (("demo",), ("replay",)):
        terminal = stage.open_screen(*arguments)
        for piece in _GARBAGE:
            _send(terminal, piece)
        _send(terminal, b"\x1b")
        yield from _is_well(terminal)


@scene("a large paste into the filter")
def pasted(stage: Stage) -> Iterator[str]:
    for arguments in (("demo",), ("replay",)):
        terminal = stage.open_screen(*arguments)
        for key in (b"/", b"\x1b[200~" + _PASTE + b"\x1b[201~", "é🙂\u202e\u0300".encode() * 2_000):
            _send(terminal, key)
        if not answers(terminal, b"z"):
            yield "does not react"
        yield from quits(terminal)


@scene("odd values of TERM, LANG and COLUMNS")
def environments(stage: Stage) -> Iterator[str]:
    usual = dict(stage.env)
    for environment in _ENVIRONMENTS:
        stage.env = usual | environment
        terminal = stage.screen("--no-tmux")

        def is_open(terminal: Terminal = terminal) -> bool:
            terminal.read()
            return READY in terminal.output or terminal.process.poll() is not None

        if not becomes(is_open) or terminal.process.poll() is not None:
            yield f"{environment}: {terminal.process.poll()} {terminal.output[-200:]!r}"
        else:
            yield from (f"{environment}: {problem}" for problem in _is_well(terminal))
