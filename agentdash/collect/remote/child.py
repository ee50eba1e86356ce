"""Child processes that run a command on another host: they end with everything that they have started.

An ssh client hands its terminal and what it is to run to whatever listens at its `ControlPath`, often below
`/tmp`, where a sandboxed worker may put a socket of its own. So a connection is shared only with a master
that is proven to be an ssh of this user outside every sandbox; otherwise ssh connects by itself.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Final, NamedTuple

from agentdash.model.sanitize import clean_line
from agentdash.peers import UnprovenError, prove
from agentdash.programs import environment, find_program

_READ_BYTES: Final = 1 << 16
_MAX_STDERR_BYTES: Final = 4_096
_END_S: Final = 1.0
"""For a process to end by itself."""
_KILL_S: Final = 0.5
"""From SIGTERM to SIGKILL: less than this program has for its own end (`cli.termination`), which a child that
ignores SIGTERM would survive."""


class ChildProcess:
    """A running process in a session of its own: ctrl-c in the terminal is not for it."""

    def __init__(
        self,
        process: Process,
        transport: asyncio.SubprocessTransport,
        stdout: asyncio.StreamReader,
        opened: ExitStack,
    ) -> None:
        self.stdout = stdout
        self._opened = opened
        self._process = process
        self._transport = transport
        self._errors = b""
        self._reading = asyncio.create_task(self._read_errors())

    @classmethod
    async def start(cls, argv: Sequence[str]) -> ChildProcess:
        """Start a process.

        Raises:
            OSError: it cannot be started.
        """
        starting = asyncio.create_task(cls._start(argv))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait((starting,))
            if not starting.cancelled() and starting.exception() is None:
                await starting.result().stop()
            raise

    @classmethod
    async def _start(cls, argv: Sequence[str]) -> ChildProcess:
        loop = asyncio.get_running_loop()
        opened = ExitStack()
        argv = await asyncio.to_thread(share_safely, argv, opened)
        # as `create_subprocess_exec` does, which does not give the transport: without it, the pipes stay open
        # as long as anything else holds them
        with opened:
            transport, protocol = await loop.subprocess_exec(
                lambda: SubprocessStreamProtocol(limit=_READ_BYTES, loop=loop),
                find_program(argv[0]),
                *argv[1:],
                env=environment(argv[0]),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
            )
            if protocol.stdout is None:
                raise OSError("no pipe")
            process = Process(transport, protocol, loop)
            return cls(process, transport, protocol.stdout, opened.pop_all())

    @property
    def last_error(self) -> str:
        """Return the last line that it wrote to stderr."""
        lines = self._errors.decode("utf-8", "replace").splitlines()
        return next((clean for line in reversed(lines) if (clean := clean_line(line, 200))), "")

    async def wait(self) -> int:
        """Return its exit code after its output has ended; it is ended if it does not end by itself."""
        await asyncio.wait((self._reading,), timeout=_END_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                return await self._process.wait()
        await self.stop()
        return self._process.returncode or 0

    async def stop(self) -> None:
        """End it, with those that it has started; also where this is cancelled."""
        ending = asyncio.create_task(self._stop())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await asyncio.wait((ending,))
            raise

    async def _stop(self) -> None:
        self._reading.cancel()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._signal(signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(_KILL_S):
                await self._process.wait()
        self._signal(signal.SIGKILL)
        self._transport.close()
        await self._process.wait()
        self._opened.close()

    def _signal(self, number: int) -> None:
        """Send a signal to its process group, which also outlives it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _read_errors(self) -> None:
        stream = self._process.stderr
        while stream is not None and (data := await stream.read(_READ_BYTES)):
            self._errors = (self._errors + data)[-_MAX_STDERR_BYTES:]


class CommandFailedError(Exception):
    """The command could not be run, or not to its end. The message is one line."""


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    output: bytes
    error: str
    """The last line of stderr, sanitized."""


async def run_there(argv: Sequence[str], *, limit_s: float, max_bytes: int) -> Done:
    """Run a command to its end.

    Args:
        argv: of a carrier.
        limit_s: longest time.
        max_bytes: of its output.

    Raises:
        CommandFailedError: it cannot be started, takes longer, or writes more.
    """
    try:
        process = await ChildProcess.start(argv)
    except OSError as error:
        raise CommandFailedError(clean_line(f"{argv[0]}: {error.strerror or error}")) from error
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limit_s):
            while data := await process.stdout.read(_READ_BYTES):
                chunks.append(data)
                size += len(data)
                if size > max_bytes:
                    raise CommandFailedError(f"it wrote more than {max_bytes >> 20} MB")
            code = await process.wait()
    except TimeoutError:
        raise CommandFailedError(f"no answer within {limit_s:g} s") from None
    finally:
        await process.stop()
    return Done(code, b"".join(chunks), process.last_error)


_PROGRAM: Final = re.compile(r"ssh")
_TIMEOUT_S: Final = 5.0
_ALONE: Final = ("-o", "ControlPath=none")


def share_safely(argv: Sequence[str], opened: ExitStack) -> list[str]:
    """Return a command line that, if it is one of ssh, shares the connection of a proven master, or none.

    Args:
        argv: of a carrier.
        opened: keeps the master's socket open: ssh reaches it through this process, or takes its place.
    """
    program, *options = argv
    if program != "ssh":
        return [*argv]
    return [program, *_sharing(options, opened), *options]


def _sharing(question: Sequence[str], opened: ExitStack) -> tuple[str, ...]:
    try:
        done = subprocess.run(
            [find_program("ssh"), "-G", *question],
            env=environment("ssh"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
        settings = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
        proven = opened.enter_context(prove(settings.get("controlpath", "none"), _PROGRAM))
    except (OSError, UnprovenError, subprocess.TimeoutExpired):
        return _ALONE
    if proven.path.startswith("/proc/"):
        os.set_inheritable(int(proven.path.rpartition("/")[2]), True)
    return "-o", "ControlMaster=no", "-S", proven.path
