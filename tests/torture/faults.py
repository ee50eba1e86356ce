"""The table of faults in files, names, settings and environments, for `python -m tests.torture`."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
import zstandard

from agentdash.store.status_file import status_file
from tests.torture.stage import BAD, GOOD, GOOD_FILE, Place, Row, Stage

_MAX_STDERR_LINES: Final = 8
Arrange = Callable[[Place], object]
Codes = Mapping[str, tuple[int, ...]]


# ---------------------------------------------------------------- what is in the way


def _line(timestamp: str, payload: str = "{}") -> bytes:
    return f'{{"timestamp":"{timestamp}","type":"event_msg","payload":{payload}}}\n'.encode()


def _bad_content() -> bytes:
    return GOOD_FILE.read_bytes().replace(GOOD.encode(), BAD.encode())


def _session(change: Callable[[bytes], bytes]) -> Arrange:
    """Return what writes a faulty rollout beside the good one."""
    return lambda place: place.bad.write_bytes(change(_bad_content()))


def _lose_block(content: bytes) -> bytes:
    """Write zeros where a block never reached the disk: what a power loss leaves."""
    middle = len(content) // 2
    return content[:middle] + bytes(4_096) + content[middle + 4_096 :]


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30)


def _packed(change: Callable[[bytes], bytes]) -> Arrange:
    return lambda place: place.bad.with_name(f"{place.bad.name}.zst").write_bytes(change(_bad_content()))


def _torn(content: bytes) -> bytes:
    packed = zstandard.compress(content)
    return packed[: len(packed) // 2]


def _bomb(_: bytes) -> bytes:
    """Return frames of zeros: a few kB that become 30 GB."""
    return zstandard.ZstdCompressor(level=19).compress(b"\0" * (1 << 27)) * 240


def _chain(place: Place) -> None:
    """Write a family in which each thread is the child of the one before it."""
    meta = msgspec.json.decode(GOOD_FILE.read_bytes().partition(b"\n")[0])
    ids = [f"01a1fafc-c823-7e21-b4b7-{number:012x}" for number in range(2_000)]
    for parent, ident in zip([None, *ids], ids, strict=False):
        meta["payload"]["id"] = ident
        if parent:
            meta["payload"]["source"] = {"subagent": {"thread_spawn": {"parent_thread_id": parent}}}
        path = place.day / f"rollout-2026-11-20T22-03-52-{ident}.jsonl"
        path.write_bytes(msgspec.json.encode(meta) + b"\n")


def _bad_status_file(place: Place) -> None:
    place.state.mkdir(mode=0o700, exist_ok=True)
    os.environ["XDG_STATE_HOME"] = str(place.state.parent)
    (place.state / status_file(place.home).name).write_bytes(b"\xff")


def _environment(**env: str | None) -> Arrange:
    def arrange(place: Place) -> None:
        for name, value in env.items():
            place.env.pop(name, None)
            if value is not None:
                place.env[name] = value

    return arrange


def _strange_ids(place: Place) -> None:
    """Write rollouts whose first lines name other threads, or none that could be one."""
    meta = msgspec.json.decode(GOOD_FILE.read_bytes().partition(b"\n")[0])
    odd = ("../../etc/passwd", "a\0b", "a\nb\r\x1b[31m", "", "%4", "x" * 100_000, "\u3164", "a|b,c;d\te")
    for number, ident in enumerate((*odd, GOOD)):
        meta["payload"] |= {"id": ident, "session_id": ident, "forked_from_id": ident, "cwd": ident}
        meta["payload"]["source"] = {"subagent": {"thread_spawn": {"parent_thread_id": ident}}}
        name = f"rollout-2026-11-20T22-03-52-01a1fafc-c823-7e21-b4b5-{number:012x}.jsonl"
        (place.day / name).write_bytes(msgspec.json.encode(meta) + b"\n" + _line("2026-11-20T22:04:00Z"))


_NAMES: Final = ("\n", "\x1b]0;x\x07", "\u202e", "\udcff\udcfe", "%s{}", "\r", "\x9b31m")


def _strange_names(place: Place) -> None:
    for number, name in enumerate(_NAMES):
        ident = f"01a1fafc-c823-7e21-b4b7-bad00000000{number}"
        (place.day / f"rollout-2026-11-20T22-03-53-{ident}{name}.jsonl").touch()
        (place.day / f"rollout-{name}.jsonl").write_bytes(_bad_content())
        (place.day.with_name(f"2{name}") / place.bad.name).mkdir(parents=True)
        place.day.with_name(f"3{name}").touch()


def _many(place: Place) -> None:
    """Copy the rollout, by links: each has the time of now, as after a restore."""
    source = place.root / "many.jsonl"
    source.write_bytes(b"".join(GOOD_FILE.read_bytes().splitlines(keepends=True)[:8]))
    for number in range(50_000):
        ident = f"01a1fafc-c823-7e21-b4b6-{number:012x}"
        os.link(source, place.day / f"rollout-2026-11-20T22-03-52-{ident}.jsonl")
    (place.day / GOOD_FILE.name).touch()
    place.limits = {resource.RLIMIT_DATA: 400 << 20}


def _year_is_a_link(place: Place) -> None:
    shutil.move(place.day.parents[1], place.root / "year")
    place.day.parents[1].symlink_to(place.root / "year")


def _in_place_of_home(write: Callable[[Path], object]) -> Arrange:
    def arrange(place: Place) -> None:
        shutil.rmtree(place.home)
        write(place.home)

    return arrange


def _sqlite(script: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        database = sqlite3.connect(path)
        database.executescript(script)
        database.commit()
        database.close()
        path.chmod(0o600)

    return write


_LOCKED: Final[list[object]] = []
"""Connections that hold locks until the end."""


def _locked(path: Path) -> None:
    _sqlite("CREATE TABLE logs (id INTEGER, ts INTEGER)")(path)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    _LOCKED.append(database)


def _left_log(path: Path) -> None:
    """Write a database with a write-ahead log, as a killed writer leaves it."""
    database = sqlite3.connect(path)
    database.executescript("PRAGMA journal_mode = WAL; CREATE TABLE digest (view)")
    wal = Path(f"{path}-wal").read_bytes()
    database.close()
    Path(f"{path}-wal").write_bytes(wal[: len(wal) // 2])
    path.chmod(0o600)


def _cut(path: Path) -> None:
    _sqlite("CREATE TABLE logs (id INTEGER, ts INTEGER); CREATE INDEX i ON logs (ts)")(path)
    os.truncate(path, 5_000)


def _of_another(path: Path) -> None:
    path.write_text("ascii = true\n")
    if os.geteuid() == 0:
        os.chown(path, 12_345, 12_345)


def _unreadable(path: Path) -> None:
    path.touch()
    path.chmod(0)


def _unreadable_day(place: Place) -> None:
    other = place.day.with_name("21")
    other.mkdir()
    other.chmod(0)


def _unreadable_rollout(place: Place) -> None:
    place.bad.write_bytes(_bad_content())
    place.bad.chmod(0)


def _xdg_files(place: Place) -> None:
    for name in ("f1", "f2"):
        (place.root / name).touch()
    place.env |= {"XDG_STATE_HOME": f"{place.root}/f1", "XDG_CONFIG_HOME": f"{place.root}/f2"}


def _set(name: str, value: object) -> Arrange:
    return lambda place: setattr(place, name, value)


def _limited(kind: int, value: int) -> Arrange:
    return _set("limits", {kind: value})


def _at(place: str, name: str, write: Callable[[Path], object]) -> Arrange:
    """Return what puts something at a name in one of the directories of a place."""

    def arrange(where: Place) -> None:
        folder: Path = getattr(where, place)
        folder.mkdir(mode=0o700, exist_ok=True)
        write(folder / name)

    return arrange


def _settings(write: Callable[[Path], object]) -> Arrange:
    """Return what writes the settings of Codex and of the project."""

    def arrange(place: Place) -> None:
        (place.cwd / ".codex").mkdir()
        for folder in (place.home, place.cwd / ".codex"):
            write(folder / "config.toml")

    return arrange


# ---------------------------------------------------------------- the rows

UNREAD: Final[Codes] = {"check": (2,), "sessions": (2,), "status": (0,), "replay": (2,)}
"""Something was not read, and all commands that read the past say so."""
CLEAN: Final[Codes] = {"check": (0, 1), "sessions": (0,), "status": (0,), "replay": (0,)}
NAMELESS: Final[Codes] = {**CLEAN, "replay": (2,)}
"""The names of threads were not read, and what shows names states it."""
REFUSED: Final[Codes] = {
    "check": (2,), "sessions": (0, 2), "status": (0, 2), "replay": (2,), "config": (2,)
}  # fmt: skip
_READERS: Final = (
    "check --json",
    "check",
    "sessions --json",
    "sessions",
    "status --json --no-tmux",
    "replay {good} --export {root}/out.md --force",
)
"""Commands that read rollouts."""
_CONFIG_COMMANDS: Final = ("status --json --no-tmux", "config check")
_KERNEL_FILES: Final = ("/proc/kmsg", "/proc/self/mem", "/sys/kernel/debug/tracing/trace_pipe", "/dev/stdin")
_OTHER_TABLES: Final = """
CREATE TABLE pane (fact); INSERT INTO pane VALUES (7);
CREATE TABLE digest (view); INSERT INTO digest VALUES (7);
PRAGMA user_version = 1
"""
_ENDLESS_VIEW: Final = """
CREATE VIEW logs AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r)
SELECT id, 1 ts, 1 ts_nanos, 'codex_sandboxing::violation' target, 'x' thread_id, 'y' feedback_log_body FROM r
"""
_OTHER_TYPES: Final = """
sandbox_mode = 3
profile = [1]
projects = "x"
profiles = 7
permissions = [[]]
features = "no"
[sandbox_workspace_write]
writable_roots = 3
network_access = "no"
"""
_ODD_PAYLOADS: Final = (
    rb'"type":"user_message","message":"\ud800 \udfff"',
    rb'"type":"agent_message","message":"x\udc80"',
    b'"type":"agent_message","message":"a","message":"b"',
    b'"type":"token_count","info":{"total_token_usage":{"input_tokens":1e999,"total_tokens":NaN}}',
    b'"type":"token_count","info":{"total_token_usage":{"input_tokens":' + b"9" * 10_000 + b"}}",
)
_ODD_LINES: Final = b"".join(
    b'{"timestamp":"2026-11-20T22:04:00Z","type":"event_msg","payload":{%b}}\n' % payload
    for payload in _ODD_PAYLOADS
)
_LONG_LINE: Final = _line("2026-11-20T22:04:00Z", '"' + "x" * 5_000_000 + '"')
_GARBAGE: Final = b"\xff" * 9_000
FAULTS: Final[list[Row]] = []


def add(
    name: str,
    arrange: Arrange,
    codes: Codes | None = None,
    says: str | None = None,
    *,
    commands: tuple[str, ...] = _READERS,
    goes_on: bool = True,
    unprivileged: bool = False,
) -> None:
    """Add a row of a fault.

    Args:
        name: of the row.
        arrange: puts it into a place.
        codes: accepted exit codes by command; 0, 1 and 2 for others.
        says: text on stderr of every command that exits with 2.
        commands: what is run.
        goes_on: whether the good thread must still be in every document.
        unprivileged: whether the fault is none for root.
    """

    def play(stage: Stage) -> Iterator[str]:
        for command in commands:
            arguments = [part.format(good=GOOD, root=stage.place.root) for part in command.split()]
            done = stage.run(*arguments)
            if done.code is None:
                yield f"`{command}` hangs"
            elif done.code not in (codes or {}).get(command.split()[0], (0, 1, 2)):
                yield f"`{command}` exits with {done.code}: {done.err.strip()[-200:]}"
            elif "Traceback" in done.err:
                yield f"`{command}`: {done.err.strip().splitlines()[-1]}"
            elif done.err.count("\n") > _MAX_STDERR_LINES:
                yield f"`{command}` prints {done.err.count(chr(10))} lines on stderr"
            elif says is not None and done.code == 2 and says not in done.err:
                yield f"`{command}` does not say {says!r}: {done.err.strip()[-200:]}"
            elif "--json" in command and (done.out or goes_on):
                try:
                    json.loads(done.out)
                except ValueError as error:
                    yield f"`{command}`: no JSON: {error}: {done.err.strip()[-200:]}"
                if goes_on and GOOD not in done.out:
                    yield f"`{command}`: the thread beside the fault is missing"

    FAULTS.append(Row(name, play, arrange, unprivileged=unprivileged))


def add_files(place: str, name: str, writers: Mapping[str, Callable[[Path], object]], **how: object) -> None:
    """Add a row for each way to spoil a file of a directory of the place."""
    for what, write in writers.items():
        add(f"{name} {what}", _at(place, name, write), **how)  # type: ignore[arg-type]


add("nothing is wrong", lambda place: None, CLEAN)
# rollouts
add("rollout is a FIFO", lambda p: os.mkfifo(p.bad), UNREAD, "not a regular file")
add("rollout is a link to /dev/zero", lambda p: p.bad.symlink_to("/dev/zero"), UNREAD, "not a regular file")
add("rollout is a dangling link", lambda p: p.bad.symlink_to("nowhere"), UNREAD)
add("rollout is empty", lambda p: p.bad.touch(), {"check": (2,)})
add("rollout is no UTF-8", _session(lambda c: c + b"\xff\xfe{}\n\xc3(\n"))
add("rollout is UTF-16", _session(lambda c: c.decode().encode("utf-16")), {"check": (2,)})
add("rollout's lines end in CRLF", _session(lambda c: c.replace(b"\n", b"\r\n")), CLEAN)
add("rollout has lone surrogates, two equal keys and no numbers", _session(lambda c: c + _ODD_LINES))
add("rollout has 100,000 nested arrays", _session(lambda c: c + b"[" * 100_000 + b"\n"))
add("rollout has a line of 5 MB", _session(lambda c: c + _LONG_LINE))
add("rollout lost a block in its middle", _session(_lose_block), {"check": (2,)}, "malformed")
add("rollout has 3 GB of nothing", lambda p: _sparse(p.bad), commands=_READERS[2:5])
add("line of the year 9999", _session(lambda c: c + _line("9999-12-31T23:59:59-23:59")), CLEAN)
add("compressed rollout is torn", _packed(_torn), {"check": (2,), "status": (0,)})
add(
    "compressed rollout becomes 30 GB",
    _packed(_bomb),
    commands=("status --json --no-tmux", "sessions --json"),
)
add("rollout's file cannot be read", _unreadable_rollout, UNREAD, "Permission denied", unprivileged=True)
# the home
add("a day cannot be listed", _unreadable_day, UNREAD, "Permission denied", unprivileged=True)
add("a day is a FIFO", lambda p: os.mkfifo(p.day.with_name("21")), UNREAD, "Not a directory")
add("a day is a loop of links", lambda p: p.day.with_name("21").symlink_to("21"), UNREAD)
add("a year is a link", _year_is_a_link, CLEAN)
add("50,000 rollouts, all changed now", _many, commands=("status --json --no-tmux", "status"))
add_files("home", "session_index.jsonl", {"is a FIFO": os.mkfifo}, codes=NAMELESS)
add_files("home", "session_index.jsonl", {"has 3 GB and no line": _sparse}, codes=CLEAN)
add_files(
    "home",
    "logs_2.sqlite",
    {
        "is a FIFO": os.mkfifo,
        "is garbage": lambda path: path.write_bytes(_GARBAGE),
        "is locked": _locked,
        "is cut": _cut,
        "is a view without end": _sqlite(_ENDLESS_VIEW),
    },
    codes=CLEAN,
)
for _what, _write in (("a FIFO", os.mkfifo), ("a loop", lambda path: path.symlink_to("codex"))):
    add(f"--codex-home is {_what}", _in_place_of_home(_write), REFUSED, goes_on=False)
add(
    "--codex-home does not exist",
    lambda place: None,
    dict.fromkeys(("status", "sessions", "check", "replay", "line"), (2,)),
    "does not exist",
    commands=tuple(
        f"{command} --codex-home {{root}}/nowhere"
        for command in ("status --json", "sessions", "check", "replay {good} --export {root}/out.md", "line")
    ),
    goes_on=False,
)
# names, ids and families
add(
    "rollout's id is of the year 10889",
    lambda p: shutil.copy(
        GOOD_FILE, p.day / "rollout-2026-11-20T20-00-00-ffffffff-ffff-7fff-8fff-ffffffffffff.jsonl"
    ),
)
add("ids have separators, newlines and escapes", _strange_ids)
add("rollouts and days have names with escapes, newlines and no UTF-8", _strange_names)
add(
    "a chain of 2,000 parents",
    _chain,
    commands=("sessions --json --limit 0", "status --json --no-tmux --all", "check --json"),
)
# configuration
add_files(
    "config",
    "config.toml",
    {
        "is a FIFO": os.mkfifo,
        "is a directory": Path.mkdir,
        "is no UTF-8": lambda path: path.write_bytes(b"\xff"),
        "has infinite seconds": lambda path: path.write_text("stalled_after = inf\n"),
    },
    codes=REFUSED,
    commands=_CONFIG_COMMANDS,
    goes_on=False,
)
for _what, _text, _says in (
    ("has 100 MB", b"a = 1\n" * (100_000_000 // 6), "larger than"),
    ("has no number of seconds", b"stalled_after = nan\n[notices]\nquiet = -inf\n", "stalled_after"),
):
    _written = _at("config", "config.toml", lambda path, text=_text: path.write_bytes(text))
    add(f"config.toml {_what}", _written, REFUSED, _says, commands=_CONFIG_COMMANDS, goes_on=False)
add(
    "config.toml belongs to another user",
    lambda p: _of_another(p.config / "config.toml"),
    commands=_CONFIG_COMMANDS,
)
for _what, _write in (
    ("has other types", lambda path: path.write_text(_OTHER_TYPES)),
    ("is a FIFO", os.mkfifo),
):
    add(
        f"Codex's config.toml {_what}",
        _settings(_write),
        {"doctor": (0, 1), "status": (0,)},
        commands=("doctor --json", "preflight --json", "status --json --no-tmux"),
        goes_on=False,
    )
add(
    "no numbers on the command line",
    lambda place: None,
    dict.fromkeys(("wait", "replay", "demo", "sessions"), (2,)),
    commands=(
        *(f"wait nothing --timeout {number}" for number in ("nan", "inf", "1e300", "-1")),
        *("replay {good} --idle nan", "demo --speed nan", "sessions --limit -1"),
    ),
)
# state
add("the state directory is a FIFO", lambda p: os.mkfifo(p.state), CLEAN)
for _name, _commands, _codes in (
    (
        "memory-2.sqlite",
        ("status --json --no-tmux", "doctor", "explain {good} --json"),
        {"status": (0,), "explain": (0,)},
    ),
    ("digests.sqlite", ("check --json", "check", "check --json"), {}),
):
    add_files(
        "state",
        _name,
        {
            "is a FIFO": os.mkfifo,
            "is a directory": Path.mkdir,
            "is garbage": lambda path: path.write_bytes(_GARBAGE),
            "is cut": _cut,
            "is locked": _locked,
            "has other tables": _sqlite(_OTHER_TABLES),
            "has a log that is left": _left_log,
            "cannot be read": _unreadable,
        },
        codes=_codes,
        commands=_commands,
    )
add(
    "digests.sqlite is in a directory that cannot be written",
    lambda p: p.state.mkdir(mode=0o500),
    commands=("check --json", "check"),
)
add(
    "the status file is no UTF-8",
    _bad_status_file,
    commands=("doctor --json", "status --json --no-tmux"),
    goes_on=False,
)
# arguments
for _what, _write in (("a FIFO", os.mkfifo), ("a directory", Path.mkdir)):
    add(
        f"export onto {_what}",
        lambda p, write=_write: write(p.root / "x.md"),
        {"replay": (2,)},
        commands=("replay {good} --export {root}/x.md --force", "replay {good} --export {root}/x.md"),
    )
add(
    "FIFO as an argument",
    lambda p: os.mkfifo(p.root / "f"),
    dict.fromkeys(("check", "replay", "config"), (2,)),
    commands=("check {root}/f", "replay {root}/f --export {root}/o.md", "config check {root}/f"),
)
add(
    "files of the kernel as arguments",
    lambda place: None,
    dict.fromkeys(("check", "replay", "config"), (2,)),
    commands=(
        *(f"check {file}" for file in _KERNEL_FILES),
        *("replay /proc/kmsg --export {root}/out.md", "config check /proc/kmsg"),
    ),
    goes_on=False,
)
# environment
_nothing = dict.fromkeys(("CODEX_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"))
add("no HOME, no CODEX_HOME", _environment(HOME=None, **_nothing), goes_on=False)
add("everything is below /dev/null", _environment(HOME="/dev/null", **_nothing), REFUSED, goes_on=False)
add("XDG directories are files", _xdg_files, CLEAN)
for _env in (
    {"LC_ALL": "C", "PYTHONUTF8": "0"},
    {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
    {"TZ": "/dev/zero"},
    {"LC_ALL": "tr_TR.UTF-8"},
    {"XDG_STATE_HOME": "relative"},
    {"COLUMNS": "99999999999"},
):
    _what = ", ".join(f"{name} is {value!r}" for name, value in _env.items())
    add(_what, _environment(**_env), CLEAN)
add("PATH is empty", _environment(PATH=""), commands=(*_READERS, "doctor", "status --json"))
for _what, _numbers in (("input", (0,)), ("output", (1,)), ("errors", (2,)), ("all streams", (0, 1, 2))):
    add(f"closed: {_what}", _set("closed", _numbers), goes_on=1 not in _numbers)
add("64 descriptors", _limited(resource.RLIMIT_NOFILE, 64), CLEAN)
add(
    "16 descriptors",
    _limited(resource.RLIMIT_NOFILE, 16),
    {"check": (0, 1, 2), "sessions": (0, 2), "status": (0, 2)},
    commands=_READERS[:5],
    goes_on=False,
)
add("300 MB of address space", _limited(resource.RLIMIT_AS, 300 << 20), goes_on=False)
add(
    "the current directory is deleted",
    _set("cwd_is_deleted", True),
    commands=("preflight --worker codex", "doctor", *_READERS[1::2], "status --no-tmux"),
)
