"""Trace the commands, and list whatever they do beyond reading outside agentdash's own directories.

`python -m tests.torture readonly`: runs each command under strace (which must be installed) with a tmux
server, an app-server of Codex, a log database, credentials, FIFOs and devices around it. A row per command;
exit code 1 where one

- opens a file for writing, creates, renames, removes or changes one outside agentdash's own directories,
- writes another file in the state directory than SECURITY.md lists for it,
- opens anything but regular files and directories below the Codex home, or `auth.json`,
- takes a lock outside its own directories, but for the read locks of SQLite,
- connects to anything but the sockets of tmux and Codex, sends a signal to a process that it has not started,
  or traces one,
- starts another program than tmux (`remote` starts ssh), or gives the server a command that changes something
  (`split` splits a window), by the server's own log.
"""

# ruff: noqa: T201 - it prints its rows

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from agentdash.cli import COMMANDS
from tests.live.clis import new_root
from tests.live.endless_app_server import serving
from tests.live.terminal import READY, Terminal
from tests.live.tmux import panes, write_program
from tests.torture.stage import GOOD, make_place

_DRAWS: Final = """
import itertools, sys, time
for number in itertools.count():
    print(f"\\033]2;title {number % 7}\\a{number} " + "text " * 8, flush=True)
    time.sleep(1)
"""
_TRACED: Final = (
    "%file,connect,bind,listen,kill,tkill,tgkill,ptrace,process_vm_readv,process_vm_writev,"
    "pidfd_send_signal,pidfd_getfd,flock,fcntl,ftruncate,fchmod,fchown,fallocate"
)
_CALL: Final = re.compile(r"(\d+) +(\w+)\((.*)")
_UNFINISHED: Final = " <unfinished ...>"
_RESUMED: Final = re.compile(r"\d+ +<\.\.\. \w+ resumed>(.*)")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_DIRECTORY: Final = re.compile(r"^(?:AT_FDCWD|\d+)<([^>]*)>, ")
_DESCRIPTOR: Final = re.compile(r"^\d+<([^>]*)>")
_CHANGES: Final = re.compile(
    r"creat$|unlink|rename|link|symlink|mkdir|rmdir|f?chmod|l?chown|fchownat|truncate$|mknod|utime|futimesat"
    r"|u?mount|l?setxattr|l?removexattr|pivot_root|chroot"
)
_DESCRIPTOR_CHANGES: Final = frozenset(("ftruncate", "fchmod", "fchown", "fallocate"))
_FORBIDDEN: Final = frozenset(
    ("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_send_signal", "pidfd_getfd", "bind", "listen")
)
_SIGNALS: Final = frozenset(("kill", "tkill", "tgkill"))
_TERMINALS: Final = re.compile(r"/dev/(?:null|tty|pts/\d+)$")
_TMUX_READS: Final = frozenset(
    ("list-panes", "list-windows", "list-sessions", "list-clients", "capture-pane")
)
_PROVEN: Final = re.compile(r"/proc/\d+/fd/(\d+)$")
"""How a proven socket, and the program that listens on it, are reached: by a descriptor that was opened."""
_LOG: Final = ("attach-session", "show-messages", "detach-client")
"""The commands of tmux that print what its server was given."""
_RESULT: Final = re.compile(r" = (\d+)<([^>]*)>")
_NAME_SERVICE: Final = "/var/run/nscd/socket"
"""The C library's cache of user names: `tmux` looks up its user."""
_REFUSED_LOCK: Final = re.compile(r"= -1 EBADF")
"""SQLite tries a write lock on the descriptor that it has opened for reading."""
_SCREEN_S: Final = 12.0
"""For which a screen runs, and keys are pressed: long enough for the slowest of all polls."""


class Surroundings(NamedTuple):
    """What the commands may and may not touch."""

    home: Path
    state: Path
    own: tuple[Path, ...]
    """Further directories that are written."""
    sockets: tuple[str, ...]
    """The beginnings of socket paths that may be connected to."""


class Trace:
    """Checks the lines of a trace.

    Args:
        around: what may be touched.
        command: what is traced.
    """

    def __init__(self, around: Surroundings, command: Command) -> None:
        self._around = around
        self._command = command
        self.calls = 0
        self._started: set[str] = set()
        """Processes and threads that the trace shows."""
        self._proven: dict[str, str] = {}
        """The files that were opened to be examined only, by their descriptors."""

    def violations(self, lines: Sequence[str]) -> Iterator[str]:
        """Yield the calls that are not allowed."""
        self._started = {line.split(None, 1)[0] for line in lines}
        for line in _whole(lines):
            if (call := _CALL.match(line)) is not None:
                self.calls += 1
                yield from self._check(call[2], call[3])

    def _check(self, name: str, arguments: str) -> Iterator[str]:
        shown = f"{name}({arguments[:160]}"
        path = _path(arguments)
        if name in ("open", "openat", "openat2"):
            if re.search(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)", arguments) and not (
                self._is_own(path) or _is_of_sqlite(name, path)
            ):
                yield shown
            elif "O_PATH" in arguments:
                if (found := _RESULT.search(arguments)) is not None:
                    self._proven[found[1]] = found[2]
            elif self._is_foreign_oddity(path):
                yield f"{shown}: not to be opened"
        elif name == "execve":
            if not self._may_start(path):
                yield shown
        elif name in _DESCRIPTOR_CHANGES or (name == "flock" and "LOCK_UN" not in arguments):
            found = _DESCRIPTOR.match(arguments)
            if found is None or not (self._is_own(found[1]) or _is_of_sqlite(name, found[1])):
                yield shown
        elif _CHANGES.match(name):
            for changed in _paths(arguments):
                if not self._is_own(changed) and not _is_tmux_directory(name, changed):
                    yield shown
        elif name == "fcntl":
            found = _DESCRIPTOR.match(arguments)
            is_own = found is not None and self._is_own(found[1])
            if "F_WRLCK" in arguments and not is_own and not _REFUSED_LOCK.search(arguments):
                yield shown
        elif name in _FORBIDDEN:
            yield shown
        elif name == "connect":
            socket = self._examined(next(_paths(arguments), ""))
            if not socket.startswith((*self._around.sockets, _NAME_SERVICE)):
                yield shown
        elif name in _SIGNALS:
            target, number = arguments.partition(",")[0], arguments.rpartition(",")[2]
            if target.removeprefix("-") not in self._started and not number.strip().startswith("0)"):
                yield shown

    def _may_start(self, path: str) -> bool:
        program = Path(self._examined(path))
        is_python = str(program) == sys.executable or program.name.startswith("python")
        return is_python or program.name in self._command.programs

    def _examined(self, path: str) -> str:
        """Return the file that a path leads to which may be that of a descriptor."""
        found = _PROVEN.match(path)
        return self._proven.get(found[1], path) if found else path

    def _is_own(self, path: str) -> bool:
        if _TERMINALS.match(path):
            return True
        place, state = Path(path), self._around.state
        if state in place.parents:
            name = place.relative_to(state).parts[0].lstrip(".")
            return name.startswith(self._command.writes)
        return any(place == own or own in place.parents for own in (state, *self._around.own))

    def _is_foreign_oddity(self, path: str) -> bool:
        """Return whether a path is `auth.json`, or a FIFO or device below the Codex home."""
        place = Path(path)
        if place.name == "auth.json":
            return True
        return (
            self._around.home in place.parents and not (place.is_file() or place.is_dir()) and place.exists()
        )


def _whole(lines: Sequence[str]) -> Iterator[str]:
    """Yield the calls of a trace, each in one line: those that another thread has interrupted are in two."""
    begun: dict[str, str] = {}
    for line in lines:
        pid = line.split(None, 1)[0]
        if line.endswith(_UNFINISHED):
            begun[pid] = line.removesuffix(_UNFINISHED)
        elif (resumed := _RESUMED.match(line)) is not None:
            yield begun.pop(pid, "") + resumed[1]
        else:
            yield line
    yield from begun.values()


def _is_of_sqlite(name: str, path: str) -> bool:
    """Return whether a call is what SQLite does even in read-only mode where a database has a `-wal` file.

    It opens the `-wal` with O_RDWR|O_CREAT (it exists, else the database is opened as immutable); as root it
    sets the owner of `-wal` and `-shm` to that of the database.
    """
    return path.endswith(("sqlite-wal", "sqlite-shm", ".db-wal", ".db-shm")) and name in (
        "open",
        "openat",
        "fchown",
    )


def _is_tmux_directory(name: str, path: str) -> bool:
    """Return whether a call is what each `tmux` does first: it creates the directory of its sockets."""
    return name == "mkdir" and Path(path).name == f"tmux-{os.getuid()}"


def _path(arguments: str) -> str:
    return next(_paths(arguments), "")


def _paths(arguments: str) -> Iterator[str]:
    """Yield the paths among the arguments of a call, absolute where `strace -y` shows their directories."""
    directory = _DIRECTORY.match(arguments)
    for quoted in _QUOTED.findall(arguments):
        yield os.path.join(directory[1], quoted) if directory else quoted  # noqa: PTH118 - strings


class Server:
    """The log of the tmux server.

    Args:
        env: by which the server is found.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        limit = ["tmux", "set-option", "-s", "message-limit", "1000000"]
        subprocess.run(limit, env=env, check=True)
        self._seen = len(self._given())

    def violations(self, command: Command) -> Iterator[str]:
        """Yield the commands since the last call that are not allowed."""
        given = self._given()
        allowed = (*_TMUX_READS, "source-file", *command.tmux)
        for each in given[self._seen + 1 : -2]:  # but for what reads the log: the last one follows it
            name, *arguments = each.split()
            if name not in allowed and not (name == "display-message" and "-p" in arguments):
                yield f"tmux {each}"
        self._seen = len(given)

    def _given(self) -> list[str]:
        """Return all commands, in order: the last ones are those by which the log is read."""
        client = ["tmux", "-C", *" ; ".join(_LOG).split()]
        # a client whose input has ended is not shown the log
        with subprocess.Popen(
            client, env=self._env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            lines = process.stdout.read().splitlines()
        return [line.partition(" command: ")[2] for line in reversed(lines) if " command: " in line]


def trace(command: Command, env: Mapping[str, str], around: Surroundings, server: Server) -> bool:
    """Run a command under strace and print its row; return whether all it did is allowed."""
    with tempfile.NamedTemporaryFile("r", errors="backslashreplace") as log:
        traced = ["strace", "-f", "-y", "-qq", "-s", "400", "-e", f"trace={_TRACED}", "-o", log.name]
        argv = [*traced, sys.executable, "-m", "agentdash", *command.line.split()]
        if command.keys:
            _in_terminal(argv, env, command.keys)
        elif command.lasts:
            _for_a_while(argv, env)
        else:
            subprocess.run(argv, env=env, check=False, capture_output=True, input=command.stdin)
        checked = Trace(around, command)
        found = list(dict.fromkeys(checked.violations(log.read().splitlines())))
        found += server.violations(command)
    outcome = f"{len(found)} VIOLATIONS" if found else "reads only"
    name = command.line.replace(str(around.state.parent), "")
    print(f"  {name:60} {checked.calls:7} calls: {outcome}", flush=True)
    for violation in found[:10]:
        print(f"      {violation}")
    return not found


def _for_a_while(argv: Sequence[str], env: Mapping[str, str]) -> None:
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(argv, env=env, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    time.sleep(_SCREEN_S)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGTERM)  # strace does not pass it on
    process.wait()


def _in_terminal(argv: Sequence[str], env: Mapping[str, str], keys: Sequence[bytes]) -> None:
    terminal = Terminal(argv, env, columns=120, lines=36)
    try:
        terminal.until(lambda: READY in terminal.output, "the screen")
        for key in keys:
            end = time.monotonic() + _SCREEN_S / len(keys)
            while time.monotonic() < end:
                terminal.read()
            terminal.press(key)
        terminal.press(b"\x11")
        terminal.exit_code()
    finally:
        terminal.close()


def main() -> int:
    """Print the rows; return the exit code."""
    root = Path(tempfile.mkdtemp(prefix="readonly-"))
    programs = new_root()  # none is started below /tmp
    try:
        place = make_place(root)
        (place.home / "auth.json").write_text('{"OPENAI_API_KEY": "secret"}')
        os.mkfifo(place.bad)
        place.bad.with_name(place.bad.name.replace("22-03-53", "22-03-54")).symlink_to("/dev/zero")
        database = sqlite3.connect(place.home / "logs_2.sqlite")
        database.executescript("PRAGMA journal_mode = WAL; CREATE TABLE logs (id INTEGER, ts INTEGER)")
        env = {
            **place.env,
            "TERM": "xterm-256color",
            "TMUX_TMPDIR": str(root),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        own = (root / "journal", root / "export")
        sockets = (f"{root}/tmux-", str(place.home / "app-server-control"))
        around = Surroundings(home=place.home, state=place.state, own=own, sockets=sockets)
        (root / "export").mkdir()
        (root / "export/out.md").touch()
        # an ssh that reaches no host: what the real one reads and writes is its own
        write_program(programs / "ssh", "exit 1")
        env["PATH"] = f"{programs}:{env['PATH']}"
        runs = list(commands(root))
        assert not (missing := missing_commands(runs)), missing
        with panes(3, env, [sys.executable, "-ISc", _DRAWS]), serving(place.home):
            pane = {"TMUX": f"{root}/tmux-{os.getuid()}/default,1,0", "TMUX_PANE": "%0"}
            server = Server(env)
            allowed = [trace(run, env | pane if run.in_pane else env, around, server) for run in runs]
        database.close()
        return int(not all(allowed))
    finally:
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(programs)


MEMORY: Final = ("memory-2.sqlite",)
DIGESTS: Final = ("digests.sqlite",)
STATUS: Final = ("status-",)
"""Beginnings of names in the state directory, as SECURITY.md lists them; SQLite has files beside its own."""
_SCREEN: Final = (b"j", b"w", b"\x1b", b"\r", b"?", b"\x1b", b"\t")
_LIBRARY: Final = (b"j", b"/", b"a", b"\x1b", b"\r", b"]", b"$")
_CLIENT: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}
_REQUESTS: Final = (
    {"method": "initialize", "params": _CLIENT},
    {"method": "tools/list"},
    *(
        {"method": "tools/call", "params": {"name": name, "arguments": {}}}
        for name in ("status", "check", "sessions")
    ),
)


class Command(msgspec.Struct, frozen=True):
    """One run of agentdash."""

    line: str
    writes: tuple[str, ...] = ()
    """Beginnings of the names in the state directory that it may write."""
    keys: tuple[bytes, ...] = ()
    """What is pressed; with any, it runs in a terminal."""
    stdin: bytes = b""
    lasts: bool = False
    """Whether it runs until a signal ends it."""
    programs: tuple[str, ...] = ("tmux",)
    """The programs that it may start."""
    tmux: tuple[str, ...] = ()
    """The commands of tmux that change something, and that it may give."""
    in_pane: bool = False
    """Whether it runs in a pane of the tmux server."""


def commands(root: Path) -> Iterator[Command]:
    """Yield the runs, of which some read what those before have written.

    Args:
        root: has the directories `export` and `journal`.
    """
    for line in ("status --json", f"explain {GOOD} --json", "reach --json", "metrics", "since 1h"):
        yield Command(line, (*MEMORY, *DIGESTS))
    for line in (f"wait {GOOD} --timeout 3", "doctor --json"):
        yield Command(line, MEMORY)
    for line in ("status --follow", "status --watch"):
        yield Command(line, MEMORY, lasts=True)
    for line in ("line", "schema status", "config default", "config check", "completion zsh", "--version"):
        yield Command(line)
    yield Command("completion bash", programs=("bash",))  # click asks for its version
    for line in ("sessions --json", "check --json", "check --denials", "check --format=sarif"):
        yield Command(line, DIGESTS)
    for suffix in ("md", "html"):
        yield Command(f"replay {GOOD} --export {root}/export/out.{suffix} --force")
    for line in ("preflight --worker opencode", "check --json --no-cache"):
        yield Command(line)
    lines = (json.dumps({"jsonrpc": "2.0", "id": number, **each}) for number, each in enumerate(_REQUESTS))
    yield Command("mcp", (*MEMORY, *DIGESTS), stdin="".join(f"{line}\n" for line in lines).encode())
    yield Command("remote check build1", programs=("ssh",))
    yield Command("known", MEMORY)
    yield Command(f"label {GOOD} text", (*MEMORY, "attention"))
    yield Command("notify --test")
    yield Command("back", in_pane=True)
    yield Command("split", ("split",), in_pane=True, tmux=("split-window", "select-pane"))
    yield Command("publish", (*STATUS, *MEMORY), lasts=True)
    yield Command(f"--record {root}/journal", (*STATUS, *MEMORY, "attention"), _SCREEN)
    yield Command("replay", DIGESTS, _LIBRARY)
    yield Command(f"replay {GOOD} --journal {root}/journal", keys=(b"]", b"$", b"0", b"?"))
    yield Command("demo", keys=_SCREEN)


def missing_commands(runs: list[Command]) -> set[str]:
    """Return the commands of agentdash that no run has."""
    return set(COMMANDS) - {run.line.split()[0] for run in runs}
