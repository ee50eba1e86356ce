"""The table of faults for `python -m tests.torture`."""

# ruff: noqa: PLC0415 - nothing of the package is imported before `preload`

from __future__ import annotations

import importlib
import os
import pkgutil
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
    for name in ("encodings.ascii", "encodings.idna", "html", "platformdirs.unix", "tomllib", "zstandard"):
        importlib.import_module(name)
    for name in ("multiprocessing.pool", "websockets.asyncio.client", "watchfiles", "rich.table", "sqlite3"):
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


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def _torn_zst(place: Place) -> None:
    import zstandard

    packed = zstandard.compress(_GOOD_FILE.read_bytes().replace(GOOD.encode(), BAD.encode()))
    place.bad.with_name(f"{place.bad.name}.zst").write_bytes(packed[: len(packed) // 2])


def _chain(place: Place, length: int, *, circle: bool = False) -> None:
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


def _unreadable(path: Path) -> None:
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


UNREAD: Final = {"check": (2,), "sessions": (2,), "status": (0,), "replay": (2,)}
"""Something was not read, and all commands that read the past say so."""
CLEAN: Final = {"check": (0, 1), "sessions": (0,), "status": (0,), "replay": (0,)}
REFUSED: Final = {"check": (2,), "sessions": (0, 2), "status": (0, 2), "replay": (2,), "config": (2,)}
_NO_FILE: Final = "not a regular file"
_DENIED: Final = "Permission denied"
_CONFIG_COMMANDS: Final = ("status --json --no-tmux", "config check", "config show")
_DEEP: Final = b"[" * 100_000

FAULTS: Final = (
    Fault("nothing is wrong", lambda p: None, codes=CLEAN),
    # rollouts
    Fault("rollout is a FIFO", lambda p: _fifo(p.bad), codes=UNREAD, says=_NO_FILE),
    Fault("rollout is a link to /dev/zero", lambda p: _link(p.bad, "/dev/zero"), codes=UNREAD, says=_NO_FILE),
    Fault("rollout is a directory", lambda p: p.bad.mkdir(), codes=UNREAD),
    Fault("rollout is a loop of links", lambda p: _link(p.bad, p.bad.name), codes=UNREAD),
    Fault("rollout is a dangling link", lambda p: _link(p.bad, "nowhere"), codes=UNREAD),
    Fault("compressed rollout is a FIFO", lambda p: _fifo(p.bad.with_suffix(".jsonl.zst")), codes=UNREAD),
    Fault("compressed rollout is torn", _torn_zst, codes={"check": (2,), "status": (0,)}),
    Fault("rollout is empty", lambda p: p.bad.touch(), codes={"check": (2,)}),
    Fault("rollout is no UTF-8", lambda p: _session(p, b"\xff\xfe{}\n\xc3(\n")),
    Fault("rollout has 100,000 nested arrays", lambda p: _session(p, _DEEP + b"\n")),
    Fault(
        "rollout has a line of 5 MB",
        lambda p: _session(p, _line("2026-11-20T22:04:00Z", '"' + "x" * 5_000_000 + '"')),
    ),
    Fault("rollout has 3 GB of nothing", lambda p: _sparse(p.bad, 3 << 30), commands=_READERS[2:5]),
    Fault(
        "rollout's directory has a name that is no UTF-8",
        lambda p: Path(os.fsdecode(os.fsencode(p.day.parent) + b"/\xff\xfe")).mkdir(),
    ),
    Fault("rollout's file cannot be read", _unreadable_file, codes=UNREAD, says=_DENIED, unprivileged=True),
    Fault("a day cannot be listed", _unreadable_day, codes=UNREAD, says=_DENIED, unprivileged=True),
    Fault(
        "the exported rollout cannot be read",
        lambda p: _unreadable(next(p.day.iterdir())),
        codes=UNREAD,
        says=_DENIED,
        goes_on=False,
        unprivileged=True,
    ),
    # the home
    Fault("a day is a FIFO", lambda p: _fifo(p.day.with_name("21")), codes=CLEAN),
    Fault("a day is a loop of links", lambda p: _link(p.day.with_name("21"), "21"), codes=UNREAD),
    Fault("archived_sessions is a FIFO", lambda p: _fifo(p.home / "archived_sessions"), codes=UNREAD),
    Fault("session_index.jsonl is a FIFO", lambda p: _fifo(p.home / "session_index.jsonl"), codes=CLEAN),
    Fault(
        "session_index.jsonl is /dev/zero",
        lambda p: _link(p.home / "session_index.jsonl", "/dev/zero"),
        codes=CLEAN,
    ),
    Fault(
        "session_index.jsonl has 3 GB",
        lambda p: _sparse(p.home / "session_index.jsonl", 3 << 30),
        codes=CLEAN,
    ),
    Fault(
        "session_index.jsonl is deep",
        lambda p: (p.home / "session_index.jsonl").write_bytes(_DEEP),
        codes=CLEAN,
    ),
    Fault("logs_2.sqlite is a FIFO", lambda p: _fifo(p.home / "logs_2.sqlite"), codes=CLEAN),
    Fault(
        "logs_2.sqlite-wal is a FIFO",
        lambda p: ((p.home / "logs_2.sqlite").touch(), _fifo(p.home / "logs_2.sqlite-wal")),
        codes=CLEAN,
    ),
    Fault(
        "logs_2.sqlite is garbage",
        lambda p: (p.home / "logs_2.sqlite").write_bytes(b"\xff" * 9_000),
        codes=CLEAN,
    ),
    Fault(
        "--codex-home is a FIFO",
        lambda p: (shutil.rmtree(p.home), _fifo(p.home)),
        codes=REFUSED,
        goes_on=False,
    ),
    Fault(
        "--codex-home is /dev/zero",
        lambda p: _environment(p, CODEX_HOME="/dev/zero"),
        codes=REFUSED,
        goes_on=False,
    ),
    Fault(
        "--codex-home is a loop",
        lambda p: (shutil.rmtree(p.home), _link(p.home, "codex")),
        codes=REFUSED,
        goes_on=False,
    ),
    # times
    Fault(
        "rollout's id is of the year 10889",
        lambda p: (
            p.day / "rollout-2026-11-20T20-00-00-ffffffff-ffff-7fff-8fff-ffffffffffff.jsonl"
        ).write_bytes(_GOOD_FILE.read_bytes()),
    ),
    Fault("line of the year 9999", lambda p: _session(p, _line("9999-12-31T23:59:59-23:59")), codes=CLEAN),
    Fault("line of the year 1", lambda p: _session(p, _line("0001-01-01T00:00:00+23:59")), codes=CLEAN),
    Fault(
        "rollout was changed in the year 2400",
        lambda p: (_session(p, b""), os.utime(p.bad, (13_569_465_600, 13_569_465_600))),
        codes=CLEAN,
    ),
    # families
    Fault("a circle of 50 parents", lambda p: _chain(p, 50, circle=True), commands=_READERS[:5]),
    Fault(
        "a chain of 2,000 parents",
        lambda p: _chain(p, 2_000),
        commands=("sessions --json --limit 0", "status --json --no-tmux --all", "check --json"),
    ),
    # configuration, rules, state
    Fault(
        "config.toml is a FIFO",
        lambda p: _fifo(p.config / "config.toml"),
        commands=_CONFIG_COMMANDS,
        codes=REFUSED,
        goes_on=False,
    ),
    Fault(
        "config.toml is /dev/zero",
        lambda p: _link(p.config / "config.toml", "/dev/zero"),
        commands=_CONFIG_COMMANDS,
        codes=REFUSED,
        goes_on=False,
    ),
    Fault(
        "config.toml is a directory",
        lambda p: (p.config / "config.toml").mkdir(),
        commands=_CONFIG_COMMANDS,
        codes=REFUSED,
        goes_on=False,
    ),
    Fault(
        "config.toml is no UTF-8",
        lambda p: (p.config / "config.toml").write_bytes(b"\xff"),
        commands=_CONFIG_COMMANDS,
        codes=REFUSED,
        goes_on=False,
    ),
    Fault(
        "config.toml is deep",
        lambda p: (p.config / "config.toml").write_bytes(b"x=" + _DEEP),
        commands=_CONFIG_COMMANDS,
        codes=REFUSED,
        goes_on=False,
    ),
    Fault(
        "config.toml has 3 GB",
        lambda p: _sparse(p.config / "config.toml", 3 << 30),
        commands=_CONFIG_COMMANDS,
        codes=REFUSED,
        goes_on=False,
    ),
    Fault(
        "config.toml has infinite seconds",
        lambda p: (p.config / "config.toml").write_text("stalled_after = inf\n"),
        commands=_CONFIG_COMMANDS,
    ),
    Fault(
        "rules are a FIFO",
        lambda p: ((p.config / "agents").mkdir(), _fifo(p.config / "agents/codex.toml")),
        codes=CLEAN,
    ),
    Fault("the directory of rules is a FIFO", lambda p: _fifo(p.config / "agents"), codes=CLEAN),
    Fault(
        "rules are deep",
        lambda p: (
            (p.config / "agents").mkdir(),
            (p.config / "agents/codex.toml").write_bytes(b"x=" + _DEEP),
        ),
        codes=CLEAN,
    ),
    Fault("the state directory is a FIFO", lambda p: _fifo(p.state), codes=CLEAN),
    Fault(
        "the status file is no UTF-8",
        lambda p: _status_file(p, b"\xff"),
        commands=("doctor --json", "status --json --no-tmux"),
        goes_on=False,
    ),
    Fault(
        "the journal directory is a FIFO",
        lambda p: _fifo(p.root / "j"),
        commands=("replay {good} --journal {root}/j --export {root}/out.md",),
    ),
    Fault(
        "FIFO as an argument",
        lambda p: _fifo(p.root / "f"),
        commands=("check {root}/f", "replay {root}/f --export {root}/o.md", "config check {root}/f"),
        codes={"check": (2,), "replay": (2,), "config": (2,)},
    ),
    # environment
    Fault(
        "no HOME, no CODEX_HOME",
        lambda p: _environment(p, HOME=None, CODEX_HOME=None, XDG_STATE_HOME=None, XDG_CONFIG_HOME=None),
        goes_on=False,
    ),
    Fault("no HOME", lambda p: _environment(p, HOME=None)),
    Fault("ASCII encoding", lambda p: _environment(p, LC_ALL="C", PYTHONIOENCODING="ascii"), codes=CLEAN),
    Fault(
        "the current directory is deleted",
        _deleted_cwd,
        commands=(
            "check --worker codex --policy read-only",
            "sessions",
            "status --no-tmux",
            "check",
            "replay {good} --export {root}/out.md --force",
        ),
    ),
)
