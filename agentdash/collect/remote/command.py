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
