"""Run `tmux` on a server: the only place that does.

A tmux client does what its server tells it: run a shell command, start a program in its own place. It hands
over its environment, too. So a server is proven first to be a tmux of this user outside every sandbox
(`agentdash.peers`), and the client is the very program that the server runs, which always speaks its
protocol. Commands go through its standard input: arguments can be read by every process.
"""

from __future__ import annotations

import asyncio
import errno
import re
import subprocess
from contextlib import suppress
from typing import Final

from agentdash.collect.tmux.servers import TmuxServer
from agentdash.model.pane import NO_SERVER, REFUSED
from agentdash.model.sanitize import clean_line
from agentdash.peers import ProvenSocket, UnprovenError, prove
from agentdash.programs import environment

_PROGRAM: Final = re.compile(r"\.?tmux(?:[-_.\d].*)?")
"""`tmux`, `tmux-3.4`, `.tmux-wrapped`."""
_TIMEOUT_S: Final = 2.0
"""A server that does not answer within it hangs, or is stopped."""
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


def connect(server: TmuxServer) -> ProvenSocket:
    """Return the socket of a server that is proven to be one.

    Raises:
        NoAnswerError: there is none, it cannot be connected to, or it is refused: nothing was sent to it.
    """
    try:
        return prove(server.socket, _PROGRAM)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        reason = NO_SERVER
    except UnprovenError as error:
        reason = f"{REFUSED}: the socket {error}"
    except OSError as error:
        reason = _reason(error)
    raise NoAnswerError(reason)


def _reason(error: OSError) -> str:
    match error.errno:
        case errno.EPERM:
            return "may not be connected to from inside this sandbox (Operation not permitted)"
        case errno.EACCES:
            return "belongs to another user (Permission denied)"
        case errno.EAGAIN:
            return "does not accept connections"
        case _:
            return clean_line(error.strerror or str(error))


def ask(server: TmuxServer, *command: str, given: str | None = None) -> str:
    """Return the output of one tmux command.

    Args:
        given: its standard input.

    Raises:
        NoAnswerError: the server did not answer, was refused, or the command failed.
    """
    with connect(server) as proven:
        try:
            done = subprocess.run(
                [*_client(proven), *command],
                executable=proven.program,
                env=environment("tmux"),
                input=given or "",
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NoAnswerError(f"no answer within {_TIMEOUT_S:g} s") from None
        except OSError as error:
            raise NoAnswerError(f"tmux cannot be started: {error.strerror}") from None
    if done.returncode:
        raise NoAnswerError(clean_line(done.stderr) or f"tmux {command[0]} failed")
    return done.stdout


def _client(proven: ProvenSocket) -> list[str]:
    """Return the arguments of a client. With `-u`, since tmux replaces non-ASCII characters under a plain
    locale."""
    return ["tmux", "-u", "-S", proven.path]


async def run_commands(proven: ProvenSocket, limit_s: float, *commands: str) -> tuple[int, str, str]:
    """Return exit status, stdout and stderr of one call of `tmux` with several commands; one that fails does
    not keep the next ones from being run.

    A cancelled call is allowed to end first: asyncio would kill and reap a process that has just ended,
    and log an unknown child.

    Args:
        limit_s: seconds after which the call is given up.
        commands: lines in the syntax of `tmux.conf`.

    Raises:
        NoAnswerError: tmux did not answer in time.
    """
    script = "".join(f"{command}\n" for command in commands).encode()
    call = asyncio.create_task(_run(proven, limit_s, script))
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        with suppress(NoAnswerError, TimeoutError):
            async with asyncio.timeout(_CANCELLED_CALL_S):
                await call
        raise


async def _run(proven: ProvenSocket, limit_s: float, script: bytes) -> tuple[int, str, str]:
    try:
        # asyncio waits for ever for a process whose pipes it could not open
        async with asyncio.timeout(limit_s):
            transport, call = await asyncio.get_running_loop().subprocess_exec(
                lambda: _TmuxCall(script),
                *_client(proven),
                "source-file",
                "-",
                executable=proven.program,
                env=environment("tmux"),
            )
    except TimeoutError:
        raise NoAnswerError(f"tmux does not start within {limit_s:g} s") from None
    except OSError as error:
        raise NoAnswerError(f"tmux cannot be started: {error.strerror}") from None
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

    def __init__(self, script: bytes) -> None:
        self._script = script
        self.output = {1: bytearray(), 2: bytearray()}
        """What it wrote, by file descriptor: 1 stdout, 2 stderr."""
        self.ended = asyncio.Event()
        self.overflowed = False
        """Whether it wrote more than is read."""
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        if isinstance(transport, asyncio.SubprocessTransport):
            stdin = transport.get_pipe_transport(0)
            if isinstance(stdin, asyncio.WriteTransport):
                stdin.write(self._script)
                stdin.close()

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
    """Return why a proven server did not answer, from what tmux printed."""
    if any(message in stderr for message in _NO_SERVER_MESSAGES):
        return NO_SERVER
    return clean_line(stderr.partition("\n")[0]) or "failed without a message"
