"""What may be wrong with /proc and pids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.torture.scenes import scene
from tests.torture.stage import Stage, source, whole

_PROCESSES: Final = 10_000
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
