"""Run one command on another host, and return what it writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from agentdash.collect.remote.child import ChildProcess
from agentdash.model.sanitize import clean_line

_READ_BYTES: Final = 1 << 16


class CommandFailedError(Exception):
    """The command could not be run, or not to its end. The message is one line."""


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    output: bytes
    error: str
    """The last line of stderr, sanitized."""


async def run_there(
    argv: Sequence[str], *, limit_s: float, max_bytes: int, silence_s: float | None = None
) -> Done:
    """Run a command to its end.

    Args:
        argv: of a carrier.
        limit_s: longest time.
        max_bytes: of its output.
        silence_s: longest time without output or messages; None: it may be silent until `limit_s`.

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
            while data := await _read(process, silence_s):
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


async def _read(process: ChildProcess, silence_s: float | None) -> bytes:
    """Return the next output; empty at its end.

    Raises:
        CommandFailedError: nothing came for so long, also no message.
    """
    reading = asyncio.ensure_future(process.stdout.read(_READ_BYTES))
    try:
        while True:
            done, _ = await asyncio.wait((reading,), timeout=silence_s)
            if done:
                return reading.result()
            if silence_s is not None and asyncio.get_running_loop().time() - process.wrote_at >= silence_s:
                raise CommandFailedError(f"nothing received for {silence_s:g} s")
    finally:
        reading.cancel()
