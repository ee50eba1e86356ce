"""Servers at unix sockets that do one thing to whatever connects."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path


def serve(path: Path, behaviour: Callable[[socket.socket], None], cleanup: ExitStack) -> None:
    """Listen on a unix socket until `cleanup`; `behaviour` is called with each connection, in a thread."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(50)
    accepted: list[socket.socket] = []

    def behave(connection: socket.socket) -> None:
        with suppress(OSError, ValueError):
            behaviour(connection)

    def accept() -> None:
        with suppress(OSError):  # the server was closed
            while True:
                accepted.append(server.accept()[0])
                threading.Thread(target=behave, args=(accepted[-1],), daemon=True).start()

    def close() -> None:
        server.shutdown(socket.SHUT_RDWR)
        for each in (server, *accepted):
            each.close()

    threading.Thread(target=accept, daemon=True).start()
    cleanup.callback(close)
