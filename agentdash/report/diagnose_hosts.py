"""Checks of `agentdash doctor` on the hosts of the configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from agentdash import __version__
from agentdash.collect.remote.carrier import Carrier
from agentdash.collect.remote.command import CommandFailedError, run_there
from agentdash.model.sanitize import clean_line
from agentdash.report.doctor import DoctorCheck, ok, warn

_LIMIT_S: Final = 15.0
"""For all hosts together: ssh gives up a connection after 10 s."""
_MAX_OUTPUT_BYTES: Final = 1 << 16


def check_hosts(carriers: Sequence[Carrier]) -> list[DoctorCheck]:
    """Return whether each host can be reached, and has agentdash. All are tried at the same time."""

    async def check_all() -> list[DoctorCheck]:
        return await asyncio.gather(*map(_check_host, carriers))

    return asyncio.run(check_all()) if carriers else []


async def _check_host(carrier: Carrier) -> DoctorCheck:
    name = clean_line(f"host {carrier.name}")
    try:
        done = await run_there(carrier.argv("--version"), limit_s=_LIMIT_S, max_bytes=_MAX_OUTPUT_BYTES)
    except CommandFailedError as error:
        return warn(name, str(error), carrier.check_command)
    version = clean_line(done.output.decode("utf-8", "replace").strip().rpartition(" ")[2], 40)
    if done.code or not version:
        reason = done.error or f"{carrier.before[0]} ended with exit code {done.code}"
        return warn(name, reason, carrier.check_command)
    differs = f", {__version__} here" if version != __version__ else ""
    return ok(name, f"reached by {carrier.before[0]}; agentdash {version}{differs}")
