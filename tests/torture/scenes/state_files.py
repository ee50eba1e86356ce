"""State files that cannot be written: a failing disk, a used-up quota, and a disk that runs no programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tests.torture.injection import missing
from tests.torture.scenes import scene
from tests.torture.scenes.store import mounted
from tests.torture.stage import Stage, becomes, quits, source, whole

_ERRORS: Final = ("EIO", "EDQUOT", "EROFS")
_SQLITE: Final = ("", "-journal", "-wal", "-shm")
"""What SQLite adds to the name of a database, for its own files beside it."""
_WRITES: Final = "write,pwrite64,ftruncate,fsync,fdatasync"
_RENAMES: Final = "?rename,?renameat,renameat2"


def _failing(error: str, calls: str, paths: Sequence[str] = ()) -> list[str]:
    """Return a prefix of a command by which calls on some files fail; on all without any."""
    options = [word for path in paths for word in ("-P", path)]
    return ["strace", "-f", "-qq", "-o", "/dev/null", *options, "-e", f"inject={calls}:error={error}"]


def _database(stage: Stage, name: str) -> list[str]:
    return [f"{stage.place.state / name}{suffix}" for suffix in _SQLITE]


@scene("state files cannot be written: EIO, EDQUOT, EROFS", missing=missing)
def unwritable(stage: Stage) -> Iterator[str]:
    stage.panes(1, stage.worker(), "1000")
    plain = stage.run("check", "--json", "--no-cache")
    for error in _ERRORS:
        memory = _failing(error, _WRITES, _database(stage, "memory.sqlite"))
        done = stage.to_its_end([*memory, *stage.command("status", "--json")], 60.0)
        yield from (f"{error}: status {problem}" for problem in whole(done))
        if source(done, "memory")[0] is not False:
            yield f"{error}: status does not state that nothing is remembered: {source(done, 'memory')}"
        digests = _failing(error, _WRITES, _database(stage, "digests.sqlite"))
        done = stage.to_its_end([*digests, *stage.command("check", "--json")], 60.0)
        if (done.code, done.out) != (plain.code, plain.out):
            yield f"{error}: check exits with {done.code}: {done.err[-200:]}"
        done = stage.to_its_end([*_failing(error, _RENAMES), *stage.command("publish")], 60.0)
        if done.code != 2 or "cannot be written" not in done.err or done.err.count("\n") != 1:
            yield f"{error}: publish exits with {done.code}: {done.err[-200:]}"
        for path in stage.place.state.glob("*.sqlite*"):
            path.unlink()


@scene("the status file cannot be written any more under the dashboard: EDQUOT", missing=missing)
def in_the_middle(stage: Stage) -> Iterator[str]:
    stage.panes(1, stage.worker(), "1000")
    terminal = stage.terminal([*_failing("EDQUOT:when=2+", _RENAMES), *stage.command()])

    def is_stated() -> bool:
        terminal.read()
        return b"status file" in terminal.output

    if not becomes(is_stated):
        yield "the failed file is not stated"
    yield from quits(terminal)


@scene("state on a disk that runs no programs", needs_root=True)
def no_programs(stage: Stage) -> Iterator[str]:
    folder = stage.place.root / "noexec"
    with mounted(folder, f"noexec,nosuid,nodev,uid={stage.uid},gid={stage.uid},mode=700"):
        stage.env |= {"XDG_STATE_HOME": str(folder), "TMPDIR": str(folder)}
        yield from whole(stage.run("status", "--json", "--no-tmux"))
        yield from whole(stage.run("check", "--json"), (0, 1, 2))
        yield from quits(stage.open_screen("--no-tmux"))
