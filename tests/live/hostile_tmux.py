"""A tmux server of a sandboxed worker: it keeps what clients send, and tells them to run a script.

    python hostile_tmux.py SOCKET SCRIPT RECEIVED

Runs with any Python, inside sandboxes.
"""

import os
import socket
import struct
import sys
import threading
from contextlib import suppress
from pathlib import Path

SHELL = 209
"""`MSG_SHELL` of tmux's protocol 8: the client executes this shell in its own place."""


def answer(client: socket.socket, script: str, received: str) -> None:
    message = script.encode() + b"\0"
    header = struct.pack("=IHHII", SHELL, 16 + len(message), 0, 8, os.getpid())
    with client, suppress(OSError):
        while True:
            data, descriptors, *_ = socket.recv_fds(client, 65_536, 8)
            for descriptor in descriptors:  # the client's own streams
                os.close(descriptor)
            if not data:
                break
            with Path(received).open("ab") as file:
                file.write(data)
            if struct.pack("=I", 200) in data:  # MSG_COMMAND: it has introduced itself
                client.sendall(header + message)


def serve(path: str, script: str, received: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        Path(path).chmod(0o660)
        listener.listen(20)
        sys.stdout.write("listens\n")
        sys.stdout.flush()
        while True:
            client, _ = listener.accept()
            threading.Thread(target=answer, args=(client, script, received), daemon=True).start()


if __name__ == "__main__":
    serve(*sys.argv[1:])
