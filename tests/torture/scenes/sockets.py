"""An app-server of Codex that is slow, silent, or none at all."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from tests.torture.scenes import scene
from tests.torture.servers import serve
from tests.torture.stage import Stage, quits, whole

_ANSWER = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"


def _drips(connection: socket.socket) -> None:
    for byte in _ANSWER * 100:
        connection.sendall(bytes((byte,)))
        time.sleep(1.0)


def _sends_endless_line(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 101 ")
    while True:
        connection.sendall(b"x" * 65_536)


def _sends_binary(connection: socket.socket) -> None:
    while True:
        connection.sendall(os.urandom(65_536))


def _closes(connection: socket.socket) -> None:
    connection.close()


def _closes_in_the_middle(connection: socket.socket) -> None:
    connection.recv(4_096)
    connection.sendall(_ANSWER)
    connection.close()


def _never_answers(connection: socket.socket) -> None:
    while connection.recv(4_096):
        pass


def _answers_wrongly(connection: socket.socket) -> None:
    connection.recv(4_096)
    connection.sendall(_ANSWER + b"Sec-WebSocket-Accept: wrong\r\n\r\n" + b"\x81\x02{}" * 1_000)
    time.sleep(1.0)


def _drops_reads(connection: socket.socket) -> None:
    """Never read: its buffers fill up."""
    with suppress(OSError):
        time.sleep(3_600.0)


def _place(stage: Stage, behaviour: Callable[[socket.socket], None]) -> None:
    folder = stage.place.home / "app-server-control"
    folder.mkdir(mode=0o700)
    socket_path = folder / "app-server-control.sock"
    serve(socket_path, behaviour, stage.cleanup)
    locks = stage.place.home / "thread-writer-locks"
    locks.mkdir()
    lock = locks / "01a1fb02-ccc5-7602-aebd-da70e407d204.lock"
    lock.touch()
    for each in (folder, socket_path, locks, lock):
        os.chown(each, stage.uid, stage.uid)


for _name, _behaviour in (
    ("sends a byte a second", _drips),
    ("sends an endless line", _sends_endless_line),
    ("sends binary data", _sends_binary),
    ("closes at once", _closes),
    ("closes in the middle of the handshake", _closes_in_the_middle),
    ("never answers", _never_answers),
    ("answers the handshake wrongly", _answers_wrongly),
    ("never reads", _drops_reads),
):

    def _play(stage: Stage, behaviour: Callable[[socket.socket], None] = _behaviour) -> Iterator[str]:
        _place(stage, behaviour)
        done = stage.run("status", "--json", "--no-tmux")
        yield from whole(done)
        if not any("feed" in each["name"] and not each["ok"] for each in done.document.get("sources", ())):
            yield "the failed feed is not stated"
        terminal = stage.open_screen("--no-tmux")
        terminal.press(b"j")
        yield from quits(terminal)

    scene(f"the app-server {_name}")(_play)
