"""What may be wrong with /proc and pids."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Final

from tests.torture.scenes import scene
from tests.torture.stage import Stage, becomes, quits, source, whole

_PROCESSES: Final = 10_000
_STOPPED_S: Final = 120.0
_SLEEPERS: Final = (
    f"i=0; while [ $i -lt {_PROCESSES} ]; do sleep 1000 </dev/null >/dev/null 2>&1 & i=$((i+1)); done"
)
"""In a pid namespace: they end with its first process."""
_MOUNT_PROC: Final = "mount -t proc proc /proc"


@scene("/proc hides the processes of others", needs_root=True)
def hidepid(stage: Stage) -> Iterator[str]:
    done = stage.run("status", "--json", setup="mount -t proc -o hidepid=2 proc /proc")
    yield from whole(done)


@scene("in a pid namespace, /proc of the host", needs_root=True)
def foreign_proc(stage: Stage) -> Iterator[str]:
    done = stage.run("status", "--json", setup="true")
    yield from whole(done)
    if source(done, "processes")[0] is not False:
        yield f"processes: {source(done, 'processes')}"


@scene("in a pid namespace, /proc of its own", needs_root=True)
def own_proc(stage: Stage) -> Iterator[str]:
    yield from whole(stage.run("status", "--json", setup=_MOUNT_PROC))


@scene("no /proc", needs_root=True)
def no_proc(stage: Stage) -> Iterator[str]:
    done = stage.run("status", "--json", setup="mount -t tmpfs none /proc")
    yield from whole(done)
    if source(done, "processes")[0] is not False:
        yield f"processes: {source(done, 'processes')}"


@scene(f"{_PROCESSES:,} processes", needs_root=True)
def many_processes(stage: Stage) -> Iterator[str]:
    done = stage.run("status", "--json", setup=f"{_MOUNT_PROC} && {_SLEEPERS}", limit=240)
    yield from whole(done)
    if source(done, "processes")[0] is not True:
        yield f"processes: {source(done, 'processes')}"


@scene("another process gets the pid of a worker", needs_root=True)
def reused_pid(stage: Stage) -> Iterator[str]:
    """In a pid namespace, in which the next pid can be chosen."""
    worker = stage.worker()
    script = (
        f"{_MOUNT_PROC}; $U tmux -f /dev/null new-session -d sh; P=$($U tmux list-panes -F '#{{pane_id}}');"
        f"$U tmux send-keys -t $P '{worker} 1000' Enter;"
        'until N=$(pgrep -x codex); do sleep 0.1; done; sleep 1; "$@" >before.json; kill $N;'
        "while kill -0 $N 2>/dev/null; do sleep 0.1; done;"
        "I=0; while [ $I -lt 50 ]; do echo $((N-1)) >/proc/sys/kernel/ns_last_pid; sleep 1000 & "
        "[ $! = $N ] && break; kill $!; I=$((I+1)); done; [ $! = $N ] || exit 3;"
        '"$@" >after.json; $U tmux kill-server'
    )
    command = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, "sh"]
    os.chown(stage.place.cwd, 0, 0)
    stage.env["U"] = " ".join(stage.as_user(()))
    done = stage.to_its_end([*command, *stage.command("status", "--json")], 120.0)
    if done.code != 0:
        yield f"the scene ends with {done.code}: {done.err[-300:]}"
        return
    before, after = ((stage.place.cwd / f"{name}.json").read_text() for name in ("before", "after"))
    if '"%0"' not in before:
        yield "the worker was not seen"
    if '"%0"' in after:
        yield "the new process is taken for the worker"


@scene("stopped for 2 minutes, and continued")
def stopped(stage: Stage) -> Iterator[str]:
    terminal = stage.open_screen()
    terminal.process.send_signal(signal.SIGSTOP)
    time.sleep(_STOPPED_S)
    terminal.process.send_signal(signal.SIGCONT)
    drawn = len(terminal.output)
    terminal.press(b"?")

    def reacts() -> bool:
        terminal.read()
        return len(terminal.output) > drawn

    if not becomes(reacts):
        yield "does not react"
    terminal.press(b"\x1b")
    yield from quits(terminal)
