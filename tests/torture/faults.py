"""The table of faults in files, names, settings and environments, for `python -m tests.torture`."""

import json
import os
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import zstandard

from agentdash.store.status_file import status_file
from tests.torture.stage import BAD, GOOD, GOOD_FILE, Place, Row, Stage

Arrange = Callable[[Place], object]
Write = Callable[[Path], object]
"""Puts something at a path."""
Codes = Mapping[str, tuple[int, ...]]
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
_MAX_STDERR_LINES: Final = 8
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


def no_fault(place: Place) -> None:
    """Leave a place as it is: what is wrong is in the commands."""


def at(place: str, name: str, write: Write) -> Arrange:
    """Return what puts something at a name in one of the directories of a place."""

    def arrange(where: Place) -> None:
        folder: Path = getattr(where, place)
        folder.mkdir(mode=0o700, exist_ok=True)
        write(folder / name)

    return arrange


def setting(name: str, value: object) -> Arrange:
    """Return what sets an attribute of a place."""
    return lambda place: setattr(place, name, value)


def content(data: bytes) -> Write:
    """Return what writes a file."""
    return lambda path: path.write_bytes(data)


def sparse(path: Path) -> None:
    """Write 3 GB of nothing."""
    with path.open("wb") as file:
        file.truncate(3 << 30)


def unreadable(path: Path) -> None:
    path.touch()
    path.chmod(0)


# ---------------------------------------------------------------- rollouts

_BAD: Final = GOOD_FILE.read_bytes().replace(GOOD.encode(), BAD.encode())
_MIDDLE: Final = len(_BAD) // 2
_PACKED: Final = zstandard.compress(_BAD)
_ODD_PAYLOADS: Final = (
    rb'"type":"user_message","message":"\ud800 \udfff"',
    rb'"type":"agent_message","message":"x\udc80"',
    b'"type":"agent_message","message":"a","message":"b"',
    b'"type":"token_count","info":{"total_token_usage":{"input_tokens":1e999,"total_tokens":NaN}}',
    b'"type":"token_count","info":{"total_token_usage":{"input_tokens":' + b"9" * 10_000 + b"}}",
)


def line(payload: bytes = b"{}", timestamp: bytes = b"2026-11-20T22:04:00Z") -> bytes:
    return b'{"timestamp":"%b","type":"event_msg","payload":%b}\n' % (timestamp, payload)


def add_rollout(name: str, data: bytes, *how: object) -> None:
    """Add a row of a faulty rollout beside the good one."""
    add(f"rollout {name}", lambda place: place.bad.write_bytes(data), *how)  # type: ignore[arg-type]


def packed(data: Callable[[], bytes]) -> Arrange:
    """Return what writes a compressed rollout beside the good one."""
    return lambda place: place.bad.with_name(f"{place.bad.name}.zst").write_bytes(data())


def bomb() -> bytes:
    """Return frames of zeros: a few kB that become 30 GB."""
    return zstandard.ZstdCompressor(level=19).compress(bytes(1 << 27)) * 240


def unreadable_rollout(place: Place) -> None:
    place.bad.write_bytes(_BAD)
    place.bad.chmod(0)


add("nothing is wrong", no_fault, CLEAN)
add("rollout is a FIFO", lambda p: os.mkfifo(p.bad), UNREAD, "not a regular file")
add("rollout is a link to /dev/zero", lambda p: p.bad.symlink_to("/dev/zero"), UNREAD, "not a regular file")
add("rollout is a dangling link", lambda p: p.bad.symlink_to("nowhere"), UNREAD)
add_rollout("is empty", b"", {"check": (2,)})
add_rollout("is no UTF-8", _BAD + b"\xff\xfe{}\n\xc3(\n")
add_rollout("is UTF-16", _BAD.decode().encode("utf-16"), {"check": (2,)})
add_rollout("has lines that end in CRLF", _BAD.replace(b"\n", b"\r\n"), CLEAN)
add_rollout(
    "has lone surrogates, two equal keys and no numbers",
    _BAD + b"".join(line(b"{%b}" % payload) for payload in _ODD_PAYLOADS),
)
add_rollout("has 100,000 nested arrays", _BAD + b"[" * 100_000 + b"\n")
add_rollout("has a line of 5 MB", _BAD + line(b'"' + b"x" * 5_000_000 + b'"'))
# what a power loss leaves
add_rollout(
    "lost a block", _BAD[:_MIDDLE] + bytes(4_096) + _BAD[_MIDDLE + 4_096 :], {"check": (2,)}, "malformed"
)
add_rollout("has a line of the year 9999", _BAD + line(timestamp=b"9999-12-31T23:59:59-23:59"), CLEAN)
add("rollout has 3 GB of nothing", lambda p: sparse(p.bad), commands=_READERS[2:5])
add(
    "compressed rollout is torn",
    packed(lambda: _PACKED[: len(_PACKED) // 2]),
    {"check": (2,), "status": (0,)},
)
add("compressed rollout becomes 30 GB", packed(bomb), commands=("status --json --no-tmux", "sessions --json"))
add("rollout's file cannot be read", unreadable_rollout, UNREAD, "Permission denied", unprivileged=True)

# ---------------------------------------------------------------- the home

_ENDLESS_VIEW: Final = """
CREATE VIEW logs AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r)
SELECT id, 1 ts, 1 ts_nanos, 'codex_sandboxing::violation' target, 'x' thread_id, 'y' feedback_log_body FROM r
"""
_LOCKED: Final[list[object]] = []
"""Connections that hold locks until the end."""


def sqlite(script: str) -> Write:
    """Return what writes a database."""

    def write(path: Path) -> None:
        database = sqlite3.connect(path)
        database.executescript(script)
        database.commit()
        database.close()
        path.chmod(0o600)

    return write


def locked(path: Path) -> None:
    sqlite("CREATE TABLE logs (id INTEGER, ts INTEGER)")(path)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    _LOCKED.append(database)


def cut(path: Path) -> None:
    sqlite("CREATE TABLE logs (id INTEGER, ts INTEGER); CREATE INDEX i ON logs (ts)")(path)
    os.truncate(path, 5_000)


DAMAGED: Final[dict[str, Write]] = {
    "is a FIFO": os.mkfifo,
    "is garbage": content(b"\xff" * 9_000),
    "is locked": locked,
    "is cut": cut,
}
"""Ways to spoil a database."""


def unreadable_day(place: Place) -> None:
    place.day.with_name("21").mkdir(mode=0)


def many(place: Place) -> None:
    """Copy the rollout, by links: each has the time of now, as after a restore."""
    source = place.root / "many.jsonl"
    source.write_bytes(b"".join(GOOD_FILE.read_bytes().splitlines(keepends=True)[:8]))
    for number in range(50_000):
        ident = f"01a1fafc-c823-7e21-b4b6-{number:012x}"
        os.link(source, place.day / f"rollout-2026-11-20T22-03-52-{ident}.jsonl")
    (place.day / GOOD_FILE.name).touch()
    place.limits = {resource.RLIMIT_DATA: 400 << 20}


def year_is_a_link(place: Place) -> None:
    shutil.move(place.day.parents[1], place.root / "year")
    place.day.parents[1].symlink_to(place.root / "year")


def in_place_of_home(write: Write) -> Arrange:
    def arrange(place: Place) -> None:
        shutil.rmtree(place.home)
        write(place.home)

    return arrange


add("a day cannot be listed", unreadable_day, UNREAD, "Permission denied", unprivileged=True)
add("a day is a FIFO", lambda p: os.mkfifo(p.day.with_name("21")), UNREAD, "Not a directory")
add("a day is a loop of links", lambda p: p.day.with_name("21").symlink_to("21"), UNREAD)
add("a year is a link", year_is_a_link, CLEAN)
add("50,000 rollouts, all changed now", many, commands=("status --json --no-tmux", "status"))
add("session_index.jsonl is a FIFO", at("home", "session_index.jsonl", os.mkfifo), NAMELESS)
add("session_index.jsonl has 3 GB and no line", at("home", "session_index.jsonl", sparse), CLEAN)
for _what, _write in {**DAMAGED, "is a view without end": sqlite(_ENDLESS_VIEW)}.items():
    add(f"logs_2.sqlite {_what}", at("home", "logs_2.sqlite", _write), CLEAN)
for _what, _write in {"a FIFO": os.mkfifo, "a loop": lambda path: path.symlink_to("codex")}.items():
    add(f"--codex-home is {_what}", in_place_of_home(_write), REFUSED, goes_on=False)
_lines = ("status --json", "sessions", "check", "replay {good} --export {root}/out.md", "line")
add(
    "--codex-home does not exist",
    no_fault,
    {each.split()[0]: (2,) for each in _lines},
    "does not exist",
    commands=tuple(f"{each} --codex-home {{root}}/nowhere" for each in _lines),
    goes_on=False,
)

# ---------------------------------------------------------------- names, ids and families

_NAMES: Final = ("\n", "\x1b]0;x\x07", "\u202e", "\udcff\udcfe", "%s{}", "\r", "\x9b31m")
_IDS: Final = ("../../etc/passwd", "a\0b", "a\nb\r\x1b[31m", "", "%4", "x" * 100_000, "\u3164", "a|b,c;d\te")
_OF_10889: Final = "rollout-2026-11-20T20-00-00-ffffffff-ffff-7fff-8fff-ffffffffffff.jsonl"


def first_line(ident: str, parent: str | None, **more: str) -> bytes:
    """Return the first line of the good rollout with another id, and with a parent."""
    meta = msgspec.json.decode(GOOD_FILE.read_bytes().partition(b"\n")[0])
    meta["payload"] |= {"id": ident, **more}
    if parent is not None:
        meta["payload"]["source"] = {"subagent": {"thread_spawn": {"parent_thread_id": parent}}}
    return msgspec.json.encode(meta) + b"\n"


def chain(place: Place) -> None:
    """Write a family in which each thread is the child of the one before it."""
    ids = [f"01a1fafc-c823-7e21-b4b7-{number:012x}" for number in range(2_000)]
    for parent, ident in zip([None, *ids], ids, strict=False):
        path = place.day / f"rollout-2026-11-20T22-03-52-{ident}.jsonl"
        path.write_bytes(first_line(ident, parent))


def strange_ids(place: Place) -> None:
    """Write rollouts whose first lines name other threads, or none that could be one."""
    for number, ident in enumerate((*_IDS, GOOD)):
        name = f"rollout-2026-11-20T22-03-52-01a1fafc-c823-7e21-b4b5-{number:012x}.jsonl"
        meta = first_line(ident, ident, session_id=ident, forked_from_id=ident, cwd=ident)
        (place.day / name).write_bytes(meta + line())


def strange_names(place: Place) -> None:
    for number, name in enumerate(_NAMES):
        ident = f"01a1fafc-c823-7e21-b4b7-bad00000000{number}"
        (place.day / f"rollout-2026-11-20T22-03-53-{ident}{name}.jsonl").touch()
        (place.day / f"rollout-{name}.jsonl").write_bytes(_BAD)
        (place.day.with_name(f"2{name}") / place.bad.name).mkdir(parents=True)
        place.day.with_name(f"3{name}").touch()


add("rollout's id is of the year 10889", lambda p: shutil.copy(GOOD_FILE, p.day / _OF_10889))
add("ids have separators, newlines and escapes", strange_ids)
add("rollouts and days have names with escapes, newlines and no UTF-8", strange_names)
_lines = ("sessions --json --limit 0", "status --json --no-tmux --all", "check --json")
add("a chain of 2,000 parents", chain, commands=_lines)

# ---------------------------------------------------------------- configuration

_OTHER_TYPES: Final = b"""
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


def of_another(path: Path) -> None:
    path.write_text("ascii = true\n")
    if os.geteuid() == 0:
        os.chown(path, 12_345, 12_345)


def settings(write: Write) -> Arrange:
    """Return what writes the settings of Codex and of the project."""

    def arrange(place: Place) -> None:
        (place.cwd / ".codex").mkdir()
        for folder in (place.home, place.cwd / ".codex"):
            write(folder / "config.toml")

    return arrange


_add = partial(add, commands=("status --json --no-tmux", "config check"))
_add("config.toml belongs to another user", at("config", "config.toml", of_another))
_bad_numbers = b"stalled_after = nan\n[notices]\nquiet = -inf\n"
for _what, _write, _says in (
    ("is a FIFO", os.mkfifo, None),
    ("is a directory", Path.mkdir, None),
    ("is no UTF-8", content(b"\xff"), None),
    ("has infinite seconds", content(b"stalled_after = inf\n"), None),
    ("has 100 MB", content(b"a = 1\n" * (100_000_000 // 6)), "larger than"),
    ("has no number of seconds", content(_bad_numbers), "stalled_after"),
):
    _add(f"config.toml {_what}", at("config", "config.toml", _write), REFUSED, _says, goes_on=False)
_lines = ("doctor --json", "preflight --json", "status --json --no-tmux")
_add = partial(add, codes={"doctor": (0, 1), "status": (0,)}, commands=_lines, goes_on=False)
_add("Codex's config.toml has other types", settings(content(_OTHER_TYPES)))
_add("Codex's config.toml is a FIFO", settings(os.mkfifo))

# ---------------------------------------------------------------- state

_OTHER_TABLES: Final = """
CREATE TABLE pane (fact); INSERT INTO pane VALUES (7);
CREATE TABLE digest (view); INSERT INTO digest VALUES (7);
PRAGMA user_version = 1
"""


def left_log(path: Path) -> None:
    """Write a database with a write-ahead log, as a killed writer leaves it."""
    database = sqlite3.connect(path)
    database.executescript("PRAGMA journal_mode = WAL; CREATE TABLE digest (view)")
    wal = Path(f"{path}-wal").read_bytes()
    database.close()
    Path(f"{path}-wal").write_bytes(wal[: len(wal) // 2])
    path.chmod(0o600)


def bad_status_file(place: Place) -> None:
    place.state.mkdir(mode=0o700, exist_ok=True)
    os.environ["XDG_STATE_HOME"] = str(place.state.parent)
    (place.state / status_file(place.home).name).write_bytes(b"\xff")


_OWN: Final = {
    **DAMAGED,
    "is a directory": Path.mkdir,
    "has other tables": sqlite(_OTHER_TABLES),
    "has a log that is left": left_log,
    "cannot be read": unreadable,
}
add("the state directory is a FIFO", lambda p: os.mkfifo(p.state), CLEAN)
_lines = ("status --json --no-tmux", "doctor", "explain {good} --json")
for _what, _write in _OWN.items():
    _codes: Codes = {"status": (0,), "explain": (0,)}
    add(f"memory-2.sqlite {_what}", at("state", "memory-2.sqlite", _write), _codes, commands=_lines)
    _checks = ("check --json", "check", "check --json")
    add(f"digests.sqlite {_what}", at("state", "digests.sqlite", _write), commands=_checks)
add(
    "the state directory cannot be written",
    lambda p: p.state.mkdir(mode=0o500),
    commands=("check --json", "check"),
)
add(
    "the status file is no UTF-8",
    bad_status_file,
    commands=("doctor --json", "status --json --no-tmux"),
    goes_on=False,
)

# ---------------------------------------------------------------- arguments

_KERNEL_FILES: Final = ("/proc/kmsg", "/proc/self/mem", "/sys/kernel/debug/tracing/trace_pipe", "/dev/stdin")
_add = partial(add, codes=dict.fromkeys(("check", "replay", "config", "wait", "demo", "sessions"), (2,)))
_lines = ("replay {good} --export {root}/x.md --force", "replay {good} --export {root}/x.md")
_add("export onto a FIFO", at("root", "x.md", os.mkfifo), commands=_lines)
_add("export onto a directory", at("root", "x.md", Path.mkdir), commands=_lines)
_lines = ("check {root}/f", "replay {root}/f --export {root}/o.md", "config check {root}/f")
_add("FIFO as an argument", at("root", "f", os.mkfifo), commands=_lines)
_add(
    "files of the kernel as arguments",
    no_fault,
    commands=(
        *(f"check {file}" for file in _KERNEL_FILES),
        *("replay /proc/kmsg --export {root}/out.md", "config check /proc/kmsg"),
    ),
    goes_on=False,
)
_add(
    "no numbers on the command line",
    no_fault,
    commands=(
        *(f"wait nothing --timeout {number}" for number in ("nan", "inf", "1e300", "-1")),
        *("replay {good} --idle nan", "demo --speed nan", "sessions --limit -1"),
    ),
)

# ---------------------------------------------------------------- environment


def environment(**env: str | None) -> Arrange:
    def arrange(place: Place) -> None:
        for name, value in env.items():
            place.env.pop(name, None)
            if value is not None:
                place.env[name] = value

    return arrange


def xdg_files(place: Place) -> None:
    for name in ("f1", "f2"):
        (place.root / name).touch()
    place.env |= {"XDG_STATE_HOME": f"{place.root}/f1", "XDG_CONFIG_HOME": f"{place.root}/f2"}


def limited(kind: int, value: int) -> Arrange:
    return setting("limits", {kind: value})


_nothing = dict.fromkeys(("CODEX_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"))
add("no HOME, no CODEX_HOME", environment(HOME=None, **_nothing), goes_on=False)
add("everything is below /dev/null", environment(HOME="/dev/null", **_nothing), REFUSED, goes_on=False)
add("XDG directories are files", xdg_files, CLEAN)
for _env in (
    {"LC_ALL": "C", "PYTHONUTF8": "0"},
    {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
    {"TZ": "/dev/zero"},
    {"LC_ALL": "tr_TR.UTF-8"},
    {"XDG_STATE_HOME": "relative"},
    {"COLUMNS": "99999999999"},
):
    _what = ", ".join(f"{name} is {value!r}" for name, value in _env.items())
    add(_what, environment(**_env), CLEAN)
add("PATH is empty", environment(PATH=""), commands=(*_READERS, "doctor", "status --json"))
for _what, _numbers in (("input", (0,)), ("output", (1,)), ("errors", (2,)), ("all streams", (0, 1, 2))):
    add(f"closed: {_what}", setting("closed", _numbers), goes_on=1 not in _numbers)
add("64 descriptors", limited(resource.RLIMIT_NOFILE, 64), CLEAN)
_codes = {"check": (0, 1, 2), "sessions": (0, 2), "status": (0, 2)}
add("16 descriptors", limited(resource.RLIMIT_NOFILE, 16), _codes, commands=_READERS[:5], goes_on=False)
add("300 MB of address space", limited(resource.RLIMIT_AS, 300 << 20), goes_on=False)
_lines = ("preflight --worker codex", "doctor", *_READERS[1::2], "status --no-tmux")
add("the current directory is deleted", setting("cwd_is_deleted", True), commands=_lines)
