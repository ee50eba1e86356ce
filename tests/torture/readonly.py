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
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from agentdash.cli import COMMANDS
from tests.bench.meter import drain
from tests.live.clis import new_root
from tests.live.endless_app_server import serving
from tests.live.programs import write_program
from tests.live.terminal import READY, Terminal
from tests.live.tmux import panes
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
_OF_DESCRIPTORS: Final = frozenset(("ftruncate", "fchmod", "fchown", "fallocate", "flock", "fcntl"))
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
_LASTS_S: Final = 12.0
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
                if not self._is_allowed(call[2], call[3]):
                    yield f"{call[2]}({call[3][:160]}"

    def _is_allowed(self, name: str, arguments: str) -> bool:
        path = next(_paths(arguments), "")
        if name in ("open", "openat", "openat2"):
            return self._may_open(name, path, arguments)
        if name == "execve":
            return self._may_start(path)
        if name == "connect":
            return self._examined(path).startswith((*self._around.sockets, _NAME_SERVICE))
        if name in _SIGNALS:
            target, number = arguments.partition(",")[0], arguments.rpartition(",")[2]
            return target.removeprefix("-") in self._started or number.strip().startswith("0)")
        if name in _OF_DESCRIPTORS:
            found = _DESCRIPTOR.match(arguments)
            held = found[1] if found else ""
            return _changes_nothing(name, arguments) or self._is_own(held) or _is_of_sqlite(name, held)
        if _CHANGES.match(name):
            return all(self._is_own(each) or _is_tmux_directory(name, each) for each in _paths(arguments))
        return name not in _FORBIDDEN

    def _may_open(self, name: str, path: str, arguments: str) -> bool:
        if re.search(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)", arguments):
            return self._is_own(path) or _is_of_sqlite(name, path)
        if "O_PATH" in arguments:
            if (found := _RESULT.search(arguments)) is not None:
                self._proven[found[1]] = found[2]
            return True
        return not self._is_foreign_oddity(path)

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
        is_odd = place.exists() and not (place.is_file() or place.is_dir())
        return is_odd and self._around.home in place.parents


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
    is_log = path.endswith(("sqlite-wal", "sqlite-shm", ".db-wal", ".db-shm"))
    return is_log and name in ("open", "openat", "fchown")


def _changes_nothing(name: str, arguments: str) -> bool:
    """Return whether a call takes no lock of a writer, or is refused one."""
    if name == "flock":
        return "LOCK_UN" in arguments
    return name == "fcntl" and ("F_WRLCK" not in arguments or _REFUSED_LOCK.search(arguments) is not None)


def _is_tmux_directory(name: str, path: str) -> bool:
    """Return whether a call is what each `tmux` does first: it creates the directory of its sockets."""
    return name == "mkdir" and Path(path).name == f"tmux-{os.getuid()}"


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
        if command.end:
            _in_terminal(argv, env, command)
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


def _in_terminal(argv: Sequence[str], env: Mapping[str, str], command: Command) -> None:
    with closing(Terminal(argv, env, columns=120, lines=36)) as terminal:
        if command.keys:
            terminal.until(lambda: READY in terminal.output, "the screen")
        for key in (*command.keys, command.end):
            drain([terminal], _LASTS_S / (len(command.keys) + 1))
            terminal.press(key)
        terminal.exit_code()


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
        assert not (missing := set(COMMANDS) - {run.line.split()[0] for run in runs}), missing
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
CTRL_C, CTRL_Q = b"\x03", b"\x11"
_SCREEN: Final = (b"j", b"w", b"\x1b", b"\r", b"?", b"\x1b", b"\t")
_LIBRARY: Final = (b"j", b"/", b"a", b"\x1b", b"\r", b"]", b"$")
_CLIENT: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}
_CALLS: Final = [{"name": name, "arguments": {}} for name in ("status", "check", "sessions")]
_REQUESTS: Final = (
    {"method": "initialize", "params": _CLIENT},
    {"method": "tools/list"},
    *({"method": "tools/call", "params": params} for params in _CALLS),
)


class Command(msgspec.Struct, frozen=True):
    """One run of agentdash."""

    line: str
    writes: tuple[str, ...] = ()
    """Beginnings of the names in the state directory that it may write."""
    end: bytes = b""
    """The key that ends it, in a terminal."""
    keys: tuple[bytes, ...] = ()
    """What is pressed before, on its screen."""
    stdin: bytes = b""
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
        yield Command(line, MEMORY, CTRL_C)
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
    yield Command("publish", (*STATUS, *MEMORY), CTRL_C)
    yield Command(f"--record {root}/journal", (*STATUS, *MEMORY, "attention"), CTRL_Q, _SCREEN)
    yield Command("replay", DIGESTS, CTRL_Q, _LIBRARY)
    yield Command(f"replay {GOOD} --journal {root}/journal", end=CTRL_Q, keys=(b"]", b"$", b"0", b"?"))
    yield Command("demo", end=CTRL_Q, keys=_SCREEN)
