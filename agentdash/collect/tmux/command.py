"""Run `tmux` on the event loop."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import suppress
from typing import Final

from agentdash.collect.tmux.servers import TmuxServer
from agentdash.model.pane import NO_SERVER, NO_TMUX
from agentdash.model.sanitize import clean_line

_CANCELLED_CALL_S: Final = 0.2
"""Grace for a cancelled call to end by itself; a call takes milliseconds."""
_NO_SERVER_MESSAGES: Final = (
    "no server running",
    "No such file",
    "Connection refused",
    "server exited",
    "lost server",
)
"""What tmux prints when there is no server, by version and circumstance."""
_MAX_OUTPUT_BYTES: Final = 32 << 20
"""Of one call of `tmux`; 500 panes of 200 columns and 50 lines have 5 MB."""


class NoAnswerError(Exception):
    """A server did not answer; the message is the reason, one clean line."""


async def run_tmux(server: TmuxServer, limit_s: float, *args: str) -> tuple[int, str, str]:
    """Return exit status, stdout and stderr of one call of `tmux`.

    A cancelled call is allowed to end first: asyncio would kill and reap a process that has just ended,
    and log an unknown child.

    Args:
        limit_s: seconds after which the call is given up.
        args: the command, and what is chained to it.

    Raises:
        NoAnswerError: tmux is not installed, or did not answer in time.
    """
    call = asyncio.create_task(_run(server, limit_s, *args))
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        with suppress(NoAnswerError, TimeoutError):
            async with asyncio.timeout(_CANCELLED_CALL_S):
                await call
        raise


async def _run(server: TmuxServer, limit_s: float, *args: str) -> tuple[int, str, str]:
    """Run `tmux`. With `-u`, since tmux replaces non-ASCII characters under a plain locale."""
    try:
        # asyncio waits for ever for a process whose pipes it could not open
        async with asyncio.timeout(limit_s):
            transport, call = await asyncio.get_running_loop().subprocess_exec(
                _TmuxCall, *("tmux", "-u", *server.args, *args), stdin=asyncio.subprocess.DEVNULL
            )
    except TimeoutError:
        raise NoAnswerError(f"tmux does not start within {limit_s:g} s") from None
    except OSError as error:
        # a directory of the PATH that cannot be searched gives EACCES, also where there is no tmux
        is_missing = shutil.which("tmux", mode=os.F_OK) is None
        raise NoAnswerError(NO_TMUX if is_missing else f"tmux cannot be started: {error.strerror}") from None
    try:
        async with asyncio.timeout(limit_s):
            await call.ended.wait()
    except TimeoutError:
        raise NoAnswerError(f"no answer within {limit_s:g} s") from None
    finally:
        transport.close()  # kills the process if it has not ended
        with suppress(TimeoutError):  # reap it here: a loop that is closed next could not
            async with asyncio.timeout(limit_s):
                await call.ended.wait()
    if call.overflowed:
        raise NoAnswerError(f"wrote more than {_MAX_OUTPUT_BYTES >> 20} MB")
    return (
        transport.get_returncode() or 0,
        call.output[1].decode("utf-8", "replace"),
        call.output[2].decode("utf-8", "replace"),
    )


class _TmuxCall(asyncio.SubprocessProtocol):
    """A running `tmux`.

    Not `asyncio.subprocess.Process`, which waits for its pipes to close even after a kill: tmux passes them
    to its server, and one that hangs would never close them.
    """

    def __init__(self) -> None:
        self.output = {1: bytearray(), 2: bytearray()}
        """What it wrote, by file descriptor: 1 stdout, 2 stderr."""
        self.ended = asyncio.Event()
        self.overflowed = False
        """Whether it wrote more than is read."""
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if len(self.output[fd]) + len(data) <= _MAX_OUTPUT_BYTES:
            self.output[fd] += data
        elif not self.overflowed and self._transport is not None:
            self.overflowed = True
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.ended.set()


def failure_reason(stderr: str) -> str:
    """Return why a server could not be reached, from what tmux printed."""
    if "Operation not permitted" in stderr:
        return "may not be connected to from inside of this sandbox (Operation not permitted)"
    if "Permission denied" in stderr:
        return "belongs to another user (Permission denied)"
    if any(message in stderr for message in _NO_SERVER_MESSAGES):
        return NO_SERVER
    return clean_line(stderr.partition("\n")[0]) or "failed without a message"
