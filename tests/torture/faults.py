"""The table of faults for `python -m tests.torture`."""

# ruff: noqa: PLC0415 - nothing of the package is imported before `preload`

from __future__ import annotations

import importlib
import os
import pkgutil
import resource
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

GOOD: Final = "01a1fafc-c823-7e21-b4b7-1bc0b7cb0525"
"""The thread beside the faults."""
BAD: Final = "01a1fafc-c823-7e21-b4b7-bad000000000"
_GOOD_FILE: Final = (
    Path(__file__).parents[1]
    / "data/rollouts/0.169.0/code-mode"
    / f"rollout-2026-11-20T22-03-52-{GOOD}.jsonl"
)
_READERS: Final = (
    "check --json",
    "check",
    "sessions --json",
    "sessions",
    "status --json --no-tmux",
    "replay {good} --export {root}/out.md --force",
)
"""Commands that read rollouts."""


_IMPORTED_LATE: Final = """
encodings.ascii encodings.idna html platformdirs.unix tomllib zstandard multiprocessing.pool
websockets.asyncio.client watchfiles rich.table sqlite3 ahocorasick_rs
"""
"""Modules that commands import when they run."""


class Place(msgspec.Struct):
    """Where the commands of one fault run."""

    root: Path
    home: Path
    """The Codex home."""
    day: Path
    """The directory of the good rollout."""
    state: Path
    """agentdash's state directory."""
    config: Path
    """agentdash's config directory."""
    cwd: Path
    env: dict[str, str]
    cwd_is_deleted: bool = False
    closed: tuple[int, ...] = ()
    """Descriptors that the commands do not have."""
    limits: dict[int, int] = {}
    """Resource limits of the commands."""

    @property
    def bad(self) -> Path:
        """The path of a faulty rollout beside the good one."""
        return self.day / f"rollout-2026-11-20T22-03-53-{BAD}.jsonl"


class Fault(msgspec.Struct):
    """A fault, and what the commands must do about it."""

    name: str
    arrange: Callable[[Place], object]
    commands: tuple[str, ...] = _READERS
    codes: Mapping[str, tuple[int, ...]] = {}
    """Accepted exit codes by command; 0, 1 and 2 for others."""
    says: str | None = None
    """Text on stderr of every command that exits with 2."""
    goes_on: bool = True
    """Whether the good thread must still be in every document."""
    unprivileged: bool = False
    """Whether the fault is none for root."""


def preload() -> None:
    """Import everything now: an unprivileged user may not be able to read the files of this Python."""
    import agentdash

    for module in pkgutil.walk_packages(agentdash.__path__, "agentdash."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in _IMPORTED_LATE.split():
        importlib.import_module(name)


def make_place(root: Path) -> Place:
    """Create a Codex home with one rollout, and empty state and config directories."""
    root.chmod(0o711)
    home = root / "codex"
    day = home / "sessions/2026/11/20"
    day.mkdir(parents=True)
    shutil.copy(_GOOD_FILE, day)
    folders = [root / name for name in ("state", "config/agentdash", "cwd", "user")]
    for folder in folders:
        folder.mkdir(parents=True)
    state, config, cwd, user = folders
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(user),
        "CODEX_HOME": str(home),
        "XDG_STATE_HOME": str(state),
        "XDG_CONFIG_HOME": str(config.parent),
        "LC_ALL": "C.UTF-8",
    }
    return Place(root=root, home=home, day=day, state=state / "agentdash", config=config, cwd=cwd, env=env)


# ---------------------------------------------------------------- what is in the way


def _fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _link(path: Path, target: str) -> None:
    path.symlink_to(target)


def _line(timestamp: str, payload: str = "{}") -> bytes:
    return f'{{"timestamp":"{timestamp}","type":"event_msg","payload":{payload}}}\n'.encode()


def _session(place: Place, bad: bytes) -> None:
    place.bad.write_bytes(_GOOD_FILE.read_bytes().replace(GOOD.encode(), BAD.encode()) + bad)


def _lost_block(place: Place) -> None:
    """Write zeros where a block never reached the disk: what a power loss leaves."""
    _session(place, b"")
    with place.bad.open("r+b") as file:
        file.seek(place.bad.stat().st_size // 2)
        file.write(bytes(4_096))


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def _torn_zst(place: Place) -> None:
    import zstandard

    packed = zstandard.compress(_GOOD_FILE.read_bytes().replace(GOOD.encode(), BAD.encode()))
    place.bad.with_name(f"{place.bad.name}.zst").write_bytes(packed[: len(packed) // 2])


def chain(place: Place, length: int, *, circle: bool = False) -> None:
    """Write a family in which each thread is the child of the one before it."""
    head = _GOOD_FILE.read_bytes().partition(b"\n")[0]
    meta = msgspec.json.decode(head)
    ids = [f"01a1fafc-c823-7e21-b4b7-{number:012x}" for number in range(length)]
    for number, ident in enumerate(ids):
        parent = ids[number - 1] if number or circle else None
        meta["payload"]["id"] = ident
        if parent:
            meta["payload"]["source"] = {"subagent": {"thread_spawn": {"parent_thread_id": parent}}}
        path = place.day / f"rollout-2026-11-20T22-03-52-{ident}.jsonl"
        path.write_bytes(msgspec.json.encode(meta) + b"\n")


def _status_file(place: Place, content: bytes) -> None:
    from agentdash.store.status_file import status_file

    place.state.mkdir(mode=0o700, exist_ok=True)
    os.environ["XDG_STATE_HOME"] = str(place.state.parent)
    (place.state / status_file(place.home).name).write_bytes(content)


def _environment(place: Place, **env: str | None) -> None:
    for name, value in env.items():
        place.env.pop(name, None)
        if value is not None:
            place.env[name] = value


def _strange_ids(place: Place) -> None:
    """Write rollouts whose first lines name other threads, or none that could be one."""
    meta = msgspec.json.decode(_GOOD_FILE.read_bytes().partition(b"\n")[0])
    odd = ("../../etc/passwd", "a\0b", "a\nb\r\x1b[31m", "", "%4", "x" * 100_000, "\u3164", "a|b,c;d\te")
    for number, ident in enumerate((*odd, GOOD)):
        meta["payload"] |= {"id": ident, "session_id": ident, "forked_from_id": ident, "cwd": ident}
        meta["payload"]["source"] = {"subagent": {"thread_spawn": {"parent_thread_id": ident}}}
        name = f"rollout-2026-11-20T22-03-52-01a1fafc-c823-7e21-b4b5-{number:012x}.jsonl"
        (place.day / name).write_bytes(msgspec.json.encode(meta) + b"\n" + _line("2026-11-20T22:04:00Z"))


def _many(place: Place, count: int) -> None:
    """Copy the rollout, by links: each has the time of now, as after a restore."""
    source = place.root / "many.jsonl"
    lines = _GOOD_FILE.read_bytes().splitlines(keepends=True)
    source.write_bytes(b"".join(lines[:8]))
    for number in range(count):
        os.link(
            source, place.day / f"rollout-2026-11-20T22-03-52-01a1fafc-c823-7e21-b4b6-{number:012x}.jsonl"
        )
    (place.day / _GOOD_FILE.name).touch()


def _in_state(place: Place, name: str) -> Path:
    place.state.mkdir(mode=0o700, exist_ok=True)
    return place.state / name


def _sqlite(path: Path, script: str) -> None:
    import sqlite3

    database = sqlite3.connect(path)
    database.executescript(script)
    database.commit()
    database.close()
    path.chmod(0o600)


_LOCKED: Final[list[object]] = []
"""Connections that hold locks until the end."""


def _locked(path: Path) -> None:
    import sqlite3

    _sqlite(path, "CREATE TABLE logs (id INTEGER, ts INTEGER)")
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    _LOCKED.append(database)


def _left_log(path: Path) -> None:
    """Write a database with a write-ahead log, as a killed writer leaves it."""
    import sqlite3

    database = sqlite3.connect(path)
    database.executescript("PRAGMA journal_mode = WAL; CREATE TABLE digest (view)")
    wal = Path(f"{path}-wal").read_bytes()
    database.close()
    Path(f"{path}-wal").write_bytes(wal[: len(wal) // 2])
    path.chmod(0o600)


def _of_another(path: Path) -> None:
    path.write_text("ascii = true\n")
    if os.geteuid() == 0:
        os.chown(path, 12_345, 12_345)


def _cut_sqlite(path: Path) -> None:
    _sqlite(path, "CREATE TABLE logs (id INTEGER, ts INTEGER); CREATE INDEX i ON logs (ts)")
    os.truncate(path, 5_000)


def _bomb(place: Place) -> None:
    """Write a file of frames of zeros: a few kB that become 30 GB."""
    import zstandard

    frame = zstandard.ZstdCompressor(level=19).compress(b"\0" * (1 << 27))
    place.bad.with_name(f"{place.bad.name}.zst").write_bytes(frame * 240)


def _xdg_files(place: Place) -> None:
    for name in ("f1", "f2"):
        (place.root / name).touch()
    _environment(place, XDG_STATE_HOME=f"{place.root}/f1", XDG_CONFIG_HOME=f"{place.root}/f2")


def _closed(*numbers: int) -> Callable[[Place], None]:
    def arrange(place: Place) -> None:
        place.closed = numbers

    return arrange


def _limited(kind: int, value: int) -> Callable[[Place], None]:
    def arrange(place: Place) -> None:
        place.limits = {kind: value}

    return arrange


_STREAMS: Final = (("input", (0,)), ("output", (1,)), ("errors", (2,)), ("all streams", (0, 1, 2)))


def _unreadable(path: Path) -> None:
    path.touch()
    path.chmod(0)


def _unreadable_day(place: Place) -> None:
    other = place.day.with_name("21")
    other.mkdir()
    other.chmod(0)


def _unreadable_file(place: Place) -> None:
    _session(place, b"")
    place.bad.chmod(0)


def _deleted_cwd(place: Place) -> None:
    place.cwd_is_deleted = True


def _at(place: str, name: str, write: Callable[[Path], object]) -> Callable[[Place], object]:
    """Return what puts something at a name in one of the directories of a place."""

    def arrange(where: Place) -> None:
        folder: Path = getattr(where, place)
        folder.mkdir(mode=0o700, exist_ok=True)
        write(folder / name)

    return arrange


UNREAD: Final = {"check": (2,), "sessions": (2,), "status": (0,), "replay": (2,)}
"""Something was not read, and all commands that read the past say so."""
CLEAN: Final = {"check": (0, 1), "sessions": (0,), "status": (0,), "replay": (0,)}
NAMELESS: Final = {"check": (0, 1), "sessions": (0,), "status": (0,), "replay": (2,)}
"""The names of threads were not read, and what shows names states it."""
REFUSED: Final = {"check": (2,), "sessions": (0, 2), "status": (0, 2), "replay": (2,), "config": (2,)}
_NO_FILE: Final = "not a regular file"
_DENIED: Final = "Permission denied"
_CONFIG_COMMANDS: Final = ("status --json --no-tmux", "config check")
_DEEP: Final = b"[" * 100_000
_OTHER_TABLES: Final = """
CREATE TABLE pane (fact); INSERT INTO pane VALUES (7);
CREATE TABLE digest (view); INSERT INTO digest VALUES (7);
PRAGMA user_version = 1
"""

FAULTS: Final = (
    Fault("nothing is wrong", lambda p: None, codes=CLEAN),
    # rollouts
    Fault("rollout is a FIFO", lambda p: _fifo(p.bad), codes=UNREAD, says=_NO_FILE),
    Fault("rollout is a link to /dev/zero", lambda p: _link(p.bad, "/dev/zero"), codes=UNREAD, says=_NO_FILE),
    Fault("rollout is a dangling link", lambda p: _link(p.bad, "nowhere"), codes=UNREAD),
    Fault("compressed rollout is torn", _torn_zst, codes={"check": (2,), "status": (0,)}),
    Fault("rollout is empty", lambda p: p.bad.touch(), codes={"check": (2,)}),
    Fault("rollout is no UTF-8", lambda p: _session(p, b"\xff\xfe{}\n\xc3(\n")),
    Fault("rollout has 100,000 nested arrays", lambda p: _session(p, _DEEP + b"\n")),
    Fault(
        "rollout has a line of 5 MB",
        lambda p: _session(p, _line("2026-11-20T22:04:00Z", '"' + "x" * 5_000_000 + '"')),
    ),
    Fault("rollout lost a block in its middle", _lost_block, codes={"check": (2,)}, says="malformed"),
    Fault("rollout has 3 GB of nothing", lambda p: _sparse(p.bad, 3 << 30), commands=_READERS[2:5]),
    Fault("rollout's file cannot be read", _unreadable_file, codes=UNREAD, says=_DENIED, unprivileged=True),
    Fault("a day cannot be listed", _unreadable_day, codes=UNREAD, says=_DENIED, unprivileged=True),
    # the home
    Fault("a day is a FIFO", lambda p: _fifo(p.day.with_name("21")), codes=UNREAD, says="Not a directory"),
    Fault(
        "a year is a link",
        lambda p: (
            shutil.move(p.day.parents[1], p.root / "year"),
            _link(p.day.parents[1], str(p.root / "year")),
        ),
        codes=CLEAN,
    ),
    Fault(
        "50,000 rollouts, all changed now",
        lambda p: (_many(p, 50_000), _limited(resource.RLIMIT_DATA, 400 << 20)(p)),
        commands=("status --json --no-tmux", "status"),
    ),
    Fault("a day is a loop of links", lambda p: _link(p.day.with_name("21"), "21"), codes=UNREAD),
    *(
        Fault(f"session_index.jsonl {what}", _at("home", "session_index.jsonl", write), codes=codes)
        for what, write, codes in (
            ("is a FIFO", _fifo, NAMELESS),
            ("has 3 GB and no line", lambda path: _sparse(path, 3 << 30), CLEAN),
        )
    ),
    Fault("logs_2.sqlite is a FIFO", lambda p: _fifo(p.home / "logs_2.sqlite"), codes=CLEAN),
    Fault(
        "logs_2.sqlite is garbage",
        lambda p: (p.home / "logs_2.sqlite").write_bytes(b"\xff" * 9_000),
        codes=CLEAN,
    ),
    *(
        Fault(f"--codex-home is {what}", arrange, codes=REFUSED, goes_on=False)
        for what, arrange in (
            ("a FIFO", lambda p: (shutil.rmtree(p.home), _fifo(p.home))),
            ("a loop", lambda p: (shutil.rmtree(p.home), _link(p.home, "codex"))),
        )
    ),
    # times
    Fault(
        "rollout's id is of the year 10889",
        lambda p: (
            p.day / "rollout-2026-11-20T20-00-00-ffffffff-ffff-7fff-8fff-ffffffffffff.jsonl"
        ).write_bytes(_GOOD_FILE.read_bytes()),
    ),
    Fault("line of the year 9999", lambda p: _session(p, _line("9999-12-31T23:59:59-23:59")), codes=CLEAN),
    # names and ids
    Fault("ids have separators, newlines and escapes", _strange_ids),
    # families
    Fault(
        "a chain of 2,000 parents",
        lambda p: chain(p, 2_000),
        commands=("sessions --json --limit 0", "status --json --no-tmux --all", "check --json"),
    ),
    # configuration, rules, state
    *(
        Fault(
            f"config.toml {what}",
            _at("config", "config.toml", write),
            commands=_CONFIG_COMMANDS,
            codes=REFUSED,
            says=says,
            goes_on=False,
        )
        for what, write, says in (
            ("is a FIFO", _fifo, None),
            ("is a directory", Path.mkdir, None),
            ("is no UTF-8", lambda path: path.write_bytes(b"\xff"), None),
            ("has 100 MB", lambda path: path.write_bytes(b"a = 1\n" * (100_000_000 // 6)), "larger than"),
            ("has infinite seconds", lambda path: path.write_text("stalled_after = inf\n"), None),
            (
                "has no number of seconds",
                lambda path: path.write_text("stalled_after = nan\n[notices]\nquiet = -inf\n"),
                "stalled_after",
            ),
        )
    ),
    Fault(
        "no numbers on the command line",
        lambda p: None,
        commands=(
            "wait nothing --timeout nan",
            "wait nothing --timeout inf",
            "wait nothing --timeout 1e300",
            "wait nothing --timeout -1",
            "replay {good} --idle nan",
            "demo --speed nan",
            "sessions --limit -1",
        ),
        codes={"wait": (2,), "replay": (2,), "demo": (2,), "sessions": (2,)},
    ),
    Fault(
        "config.toml belongs to another user",
        lambda p: _of_another(p.config / "config.toml"),
        commands=_CONFIG_COMMANDS,
    ),
    Fault(
        "--codex-home does not exist",
        lambda p: None,
        commands=tuple(
            f"{command} --codex-home {{root}}/nowhere"
            for command in (
                "status --json",
                "sessions",
                "check",
                "replay {good} --export {root}/out.md",
                "line",
            )
        ),
        codes=dict.fromkeys(("status", "sessions", "check", "replay", "line"), (2,)),
        says="does not exist",
        goes_on=False,
    ),
    Fault("the state directory is a FIFO", lambda p: _fifo(p.state), codes=CLEAN),
    *(
        Fault(f"{name} {what}", _at("state", name, write), commands=commands, codes=codes)
        for name, commands, codes in (
            (
                "memory-2.sqlite",
                ("status --json --no-tmux", "doctor", "explain {good} --json"),
                {"status": (0,), "explain": (0,)},
            ),
            ("digests.sqlite", ("check --json", "check", "check --json"), {}),
        )
        for what, write in (
            ("is a FIFO", _fifo),
            ("is a directory", Path.mkdir),
            ("is garbage", lambda path: path.write_bytes(b"\xff" * 9_000)),
            ("is cut", _cut_sqlite),
            ("is locked", _locked),
            ("has other tables", lambda path: _sqlite(path, _OTHER_TABLES)),
            ("has a log that is left", _left_log),
            ("cannot be read", _unreadable),
        )
    ),
    Fault(
        "digests.sqlite is in a directory that cannot be written",
        lambda p: _in_state(p, "x").parent.chmod(0o500),
        commands=("check --json", "check"),
    ),
    Fault(
        "the status file is no UTF-8",
        lambda p: _status_file(p, b"\xff"),
        commands=("doctor --json", "status --json --no-tmux"),
        goes_on=False,
    ),
    *(
        Fault(
            f"export onto {what}",
            arrange,
            commands=("replay {good} --export {root}/x.md --force", "replay {good} --export {root}/x.md"),
            codes={"replay": (2,)},
            says=says,
        )
        for what, arrange, says in (
            ("a FIFO", lambda p: _fifo(p.root / "x.md"), ""),
            ("a directory", lambda p: (p.root / "x.md").mkdir(), ""),
        )
    ),
    Fault(
        "FIFO as an argument",
        lambda p: _fifo(p.root / "f"),
        commands=("check {root}/f", "replay {root}/f --export {root}/o.md", "config check {root}/f"),
        codes={"check": (2,), "replay": (2,), "config": (2,)},
    ),
    # databases of Codex
    *(
        Fault(f"logs_2.sqlite {what}", arrange, codes=CLEAN)
        for what, arrange in (
            ("is locked", lambda p: _locked(p.home / "logs_2.sqlite")),
            ("is cut", lambda p: _cut_sqlite(p.home / "logs_2.sqlite")),
        )
    ),
    # what is compressed
    Fault("compressed rollout becomes 30 GB", _bomb, commands=("status --json --no-tmux", "sessions --json")),
    # environment
    Fault(
        "no HOME, no CODEX_HOME",
        lambda p: _environment(p, HOME=None, CODEX_HOME=None, XDG_STATE_HOME=None, XDG_CONFIG_HOME=None),
        goes_on=False,
    ),
    Fault(
        "everything is below /dev/null",
        lambda p: _environment(
            p, HOME="/dev/null", CODEX_HOME=None, XDG_STATE_HOME=None, XDG_CONFIG_HOME=None
        ),
        codes=REFUSED,
        goes_on=False,
    ),
    Fault("XDG directories are files", _xdg_files, codes=CLEAN),
    Fault("LANG=C without UTF-8 mode", lambda p: _environment(p, LC_ALL="C", PYTHONUTF8="0"), codes=CLEAN),
    Fault(
        "PATH is empty", lambda p: _environment(p, PATH=""), commands=(*_READERS, "doctor", "status --json")
    ),
    *(
        Fault(f"closed: {name}", _closed(*numbers), goes_on=bool(1 not in numbers))
        for name, numbers in _STREAMS
    ),
    Fault("64 descriptors", _limited(resource.RLIMIT_NOFILE, 64), codes=CLEAN),
    Fault(
        "16 descriptors",
        _limited(resource.RLIMIT_NOFILE, 16),
        commands=_READERS[:5],
        codes={"check": (0, 1, 2), "sessions": (0, 2), "status": (0, 2)},
        goes_on=False,
    ),
    Fault(
        "300 MB of address space",
        _limited(resource.RLIMIT_AS, 300 << 20),
        goes_on=False,
    ),
    Fault("ASCII encoding", lambda p: _environment(p, LC_ALL="C", PYTHONIOENCODING="ascii"), codes=CLEAN),
    Fault(
        "the current directory is deleted",
        _deleted_cwd,
        commands=(
            "preflight --worker codex",
            "sessions",
            "status --no-tmux",
            "check",
            "doctor",
            "replay {good} --export {root}/out.md --force",
        ),
    ),
)
