"""A fake app-server of Codex that sends new threads and status changes without end.

`codex endless_app_server.py HOME`, where `codex` is a copy of Python: prints `listens`, and `connected` once
a client is initialized.
"""

# ruff: noqa: T201 - the test reads what it prints

import asyncio
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from websockets.asyncio.server import ServerConnection, unix_serve
from websockets.exceptions import ConnectionClosed

from tests.live.clis import new_root


@contextmanager
def serving(home: Path) -> Iterator[BinaryIO]:
    """Serve this home while the block runs; yields what the server prints after `listens`."""
    folder = new_root()
    program = shutil.copy(Path(sys.executable).resolve(), folder / "codex")
    server = subprocess.Popen(
        [program, __file__, home],
        env={"PYTHONHOME": sys.base_prefix, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"listens\n"
        yield server.stdout
    finally:
        server.kill()
        server.communicate()
        shutil.rmtree(folder)


async def serve(connection: ServerConnection) -> None:
    with suppress(ConnectionClosed):
        for _ in range(2):  # initialize, initialized
            request = json.loads(await connection.recv())
            if "id" in request:
                await connection.send(json.dumps({"id": request["id"], "result": {}}))
        request = json.loads(await connection.recv())
        await connection.send(json.dumps({"id": request["id"], "result": {"data": []}}))
        print("connected", flush=True)
        for number in itertools.count():
            ident = f"01a1fb02-ccc5-7602-aebd-{number:012x}"
            thread = {"id": ident, "preview": "x" * 500, "status": {"type": "active", "activeFlags": []}}
            await send(connection, "thread/started", thread=thread)
            await send(connection, "thread/status/changed", threadId=ident, status={"type": "idle"})


async def send(connection: ServerConnection, method: str, **params: Any) -> None:
    await connection.send(json.dumps({"method": method, "params": params}))


async def main(home: Path) -> None:
    place = home / "app-server-control" / "app-server-control.sock"
    place.parent.mkdir(parents=True)
    async with unix_serve(serve, str(place), compression=None):
        locks = home / "thread-writer-locks"
        locks.mkdir()
        (locks / "01a1fb02-ccc5-7602-aebd-da70e407d204.lock").touch()
        print("listens", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
