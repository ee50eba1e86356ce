"""What may be wrong with tmux: servers that vanish, hang or lie, and hostile names."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from typing import Final

from tests.torture.scenes import scene
from tests.torture.stage import Stage, becomes, quits, source, whole

_HOSTILE: Final = (
    "\x1b]0;x\x07\x1b[2J\x1b[31m",
    "x" * 10_000,
    "a\nb\r\nc",
    "#{pane_id}#(touch PLACE/hostile)#[fg=red]",
    "\u202eright to left\u2066\u200f",
    "\u3164\u115f",
    "<b>&amp;</b>|`x`",
    "%4 -t ; kill-server",
)
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def _server_pid(stage: Stage) -> int:
    return int(stage.tmux("display-message", "-p", "#{pid}").stdout)


@scene("tmux with 500 panes")
def many_panes(stage: Stage) -> Iterator[str]:
    stage.panes(500, "sleep", "1000")
    done = stage.run("status", "--json")
    yield from whole(done)
    if source(done, "tmux") != (True, "500 panes"):
        yield f"tmux: {source(done, 'tmux')}"


@scene("hostile titles and names of tmux windows")
def hostile_names(stage: Stage) -> Iterator[str]:
    worker = stage.worker()
    stage.panes(1, worker, "1000")
    for hostile in _HOSTILE:
        # tmux expands formats in these arguments, and in nothing that it lists
        name = hostile.replace("#", "##").replace("PLACE", str(stage.place.root))
        stage.tmux("new-window", "-d", "-n", name, worker, "1000")
        stage.tmux("new-window", "-d", worker, "1000")
        stage.tmux("select-pane", "-t", ":$", "-T", name)
    raw = stage.place.root / "raw.sh"
    raw.write_bytes(
        b"#!/bin/sh\nprintf '\\033]2;\\377\\376bad\\007\\033]2;\\033[31m\\007'; exec codex 1000\n"
    )
    raw.chmod(0o755)
    env = stage.env | {"PATH": f"{stage.place.root}/bin:{stage.env['PATH']}"}
    stage.tmux("new-window", "-d", "-e", f"PATH={env['PATH']}", str(raw))
    done = stage.run("status", "--json")
    yield from whole(done)
    count = len(stage.tmux("list-panes", "-a", "-F", "x").stdout.split())
    if source(done, "tmux") != (True, f"{count} panes") or count <= 2 * len(_HOSTILE):
        yield f"tmux: {source(done, 'tmux')}"
    texts = [str(worker) for worker in done.document.get("workers", ())]
    if len(texts) < 2 * len(_HOSTILE):
        yield f"{len(texts)} workers"
    for text in (*texts, stage.run("status").out):
        if _FORBIDDEN.search(text):
            yield f"control characters: {_FORBIDDEN.findall(text)[:5]!r}"
    terminal = stage.open_screen()
    for key in (b"j", b"j", b"\r", b"\x1b", b"m", b"\x1b"):
        terminal.press(key)
    yield from quits(terminal)
    if (stage.place.root / "hostile").exists():
        yield "a format was executed"


@scene("tmux is stopped, and continued")
def hangs(stage: Stage) -> Iterator[str]:
    stage.panes(3, stage.worker(), "1000")
    pid = _server_pid(stage)
    terminal = stage.open_screen()
    os.kill(pid, signal.SIGSTOP)
    try:
        done = stage.run("status", "--json")
        yield from whole(done)
        if source(done, "tmux")[0] is not False or "no answer" not in source(done, "tmux")[1]:
            yield f"tmux: {source(done, 'tmux')}"
    finally:
        os.kill(pid, signal.SIGCONT)
    if not becomes(lambda: source(stage.run("status", "--json"), "tmux") == (True, "3 panes")):
        yield "not seen again"
    yield from quits(terminal)


@scene("another tmux is first on PATH")
def other_version(stage: Stage) -> Iterator[str]:
    """A server is asked by its own program, which speaks its protocol."""
    stage.panes(3, stage.worker(), "1000")
    fake = stage.place.root / "bin" / "tmux"
    fake.parent.mkdir(exist_ok=True)
    fake.write_text("#!/bin/sh\necho 'protocol version mismatch (client 8, server 7)' >&2\nexit 1\n")
    fake.chmod(0o755)
    stage.env["PATH"] = f"{fake.parent}:{stage.env['PATH']}"
    done = stage.run("status", "--json")
    yield from whole(done)
    if source(done, "tmux") != (True, "3 panes"):
        yield f"tmux: {source(done, 'tmux')}"
