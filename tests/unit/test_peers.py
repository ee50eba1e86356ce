"""Who listens on a Unix socket: by real processes, confined and not."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from agentdash.peers import UnprovenError, prove


def _has_namespaces() -> bool:
    return shutil.which("unshare") is not None and subprocess.call(["unshare", "--user", "true"]) == 0


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")

INTERPRETER = Path(sys.executable).resolve()
PROGRAM = re.compile(r"python[\d.]*")
LISTEN = """
import contextlib, os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
{before}
listener.listen(8)
{after}
print("listens", flush=True)
while True:
    connection, _ = listener.accept()
    with connection, contextlib.suppress(OSError):
        connection.sendall(sys.argv[2].encode())
"""
"""A server; `before` and `after` are what it does around `listen`."""
NO_NEW_PRIVILEGES = "import ctypes; assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0"
SECCOMP = NO_NEW_PRIVILEGES.replace("== 0", "== 0; import struct") + (
    "; code = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7FFF0000))"  # allow everything
    "; program = ctypes.create_string_buffer(struct.pack('HxxxxxxP', 1, ctypes.addressof(code)))"
    "; assert ctypes.CDLL(None).prctl(22, 2, program) == 0"
)
FORK = "if os.fork(): os._exit(0)"
"""The listener ends, and leaves its socket to a child."""

Serve = Callable[..., Path]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "socket"


@pytest.fixture
def serve(place: Path) -> Iterator[Serve]:
    """Yield a function that starts a server, and returns once it listens."""
    servers: list[subprocess.Popen[bytes]] = []

    def start(
        *prefix: str, program: Path = INTERPRETER, at: Path = place, before: str = "", after: str = ""
    ) -> Path:
        script = LISTEN.format(before=before, after=after)
        command = [*prefix, str(program), "-c", script, str(at), f"server {len(servers)}"]
        environment = {"PYTHONHOME": sys.base_prefix}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, start_new_session=True)
        servers.append(server)
        assert server.stdout is not None
        assert server.stdout.readline() == b"listens\n"
        return at

    yield start
    for server in servers:
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()


def answer(path: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        return client.recv(100)


def refused(reason: str | None) -> AbstractContextManager[object]:
    return pytest.raises(UnprovenError, match=reason) if reason else nullcontext()


def test_a_server_of_this_user_is_proven(serve: Serve) -> None:
    with prove(serve(), PROGRAM) as proven:
        assert Path(f"/proc/{proven.pid}/cmdline").read_bytes().startswith(os.fsencode(INTERPRETER))
        assert answer(proven.path) == b"server 0"


def test_what_is_put_in_its_place_is_not_reached(serve: Serve, place: Path) -> None:
    with prove(serve(), PROGRAM) as proven:
        place.unlink()
        serve()
        assert answer(str(place)) == b"server 1"
        assert answer(proven.path) == b"server 0"
    assert proven.path == ""  # its number is another file's next


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        pytest.param(NO_NEW_PRIVILEGES, "in a sandbox or container: it has NoNewPrivs 1", id="privileges"),
        pytest.param(SECCOMP, "in a sandbox or container: it has (NoNewPrivs 1|Seccomp)", id="seccomp"),
        pytest.param("if not os.fork(): import signal; signal.pause()", None, id="control: with a child"),
    ],
)
def test_a_confined_listener_is_refused(serve: Serve, before: str, reason: str | None) -> None:
    with refused(reason):
        prove(serve(before=before), PROGRAM).close()


@pytest.mark.skipif(not _has_namespaces(), reason="a chroot, or not allowed")
@pytest.mark.parametrize("kind", ["user", "net", "mount", "pid"])
def test_a_listener_in_another_namespace_is_refused(serve: Serve, kind: str) -> None:
    options = ["--user", "--map-root-user", f"--{kind}", *(["--fork"] if kind == "pid" else [])]
    with pytest.raises(UnprovenError, match="in a sandbox or container: it has another user namespace"):
        prove(serve("unshare", *options), PROGRAM)


def test_a_listener_that_has_ended_is_refused(serve: Serve) -> None:
    """Its pid may be another's by now, while a child that holds its socket answers."""
    with pytest.raises(UnprovenError, match=r"which (has ended|cannot be examined)"):
        prove(serve(after=FORK), PROGRAM)


def test_another_program_is_refused(serve: Serve) -> None:
    with pytest.raises(UnprovenError, match=f"belongs to another program, {INTERPRETER}"):
        prove(serve(), re.compile("tmux"))


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (0o755, None),
        (0o775, None),  # where each user has a group of their own
        (0o777, "everyone may write to .*/bin"),
        (0o1777, "everyone may write to .*/bin"),
    ],
)
def test_a_program_that_others_may_replace_is_refused(
    serve: Serve, place: Path, program_folder: Path, mode: int, reason: str | None
) -> None:
    folder = program_folder / "bin"
    folder.mkdir()
    program = Path(shutil.copy(INTERPRETER, folder / "python3"))
    folder.chmod(mode)
    serve(program=program)
    with refused(reason):
        prove(place, PROGRAM).close()


def test_a_program_that_was_replaced_is_still_known(serve: Serve, place: Path, program_folder: Path) -> None:
    program = Path(shutil.copy(INTERPRETER, program_folder / "python3"))
    serve(program=program)
    program.unlink()
    prove(place, PROGRAM).close()


def test_a_link_is_followed_where_it_is_expected(serve: Serve, tmp_path: Path) -> None:
    serve()
    link = tmp_path / "link"
    link.symlink_to("socket")
    with pytest.raises(UnprovenError, match="is a symbolic link"):
        prove(link, PROGRAM)
    with prove(link, PROGRAM, may_be_link=True) as proven:
        assert answer(proven.path) == b"server 0"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels"):
        prove(tmp_path / "loop", PROGRAM, may_be_link=True)


def test_no_socket_and_no_listener(place: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        prove(place, PROGRAM)
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(place))
    with pytest.raises(ConnectionRefusedError):
        prove(place, PROGRAM)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for other in (fifo, tmp_path):
        with pytest.raises(UnprovenError, match="is not a socket"):
            prove(other, PROGRAM)


def test_a_full_queue_does_not_block(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as waiting:
        listener.bind(str(place))
        listener.listen(0)
        waiting.connect(str(place))
        with pytest.raises(BlockingIOError):
            prove(place, PROGRAM)
