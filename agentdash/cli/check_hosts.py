"""`agentdash check --host`: audit the rollouts of other hosts. The agentdash there reads the files."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Final

import click
import msgspec

from agentdash.cli import termination
from agentdash.cli.hosts import carrier_named
from agentdash.collect.remote.carrier import Carrier
from agentdash.collect.remote.child import CommandFailedError, Done, run_there
from agentdash.collect.remote.documents import clean_document
from agentdash.config import Config
from agentdash.model.sanitize import clean_line
from agentdash.report.check import CheckReport, ThreadReport, check_report
from agentdash.report.elements import UnreadableReport

_LIMIT_S: Final = 3600.0
"""For an audit there: a home of many gigabytes on a slow disk."""
_SILENCE_S: Final = 30.0
"""Without a heartbeat from there: the host is gone, or the way to it. To connect, ssh has 10 s."""
_FIRST_LINE_AFTER_S: Final = 10.0
_LINE_EVERY_S: Final = 60.0
_MAX_OUTPUT_BYTES: Final = 256 << 20
_AUDITED: Final = (0, 1, 2)
"""Exit codes of `agentdash check` that come with a document."""


def audit_hosts(
    names: Sequence[str], config: Config, targets: Sequence[str], *, no_cache: bool
) -> CheckReport:
    """Return the audit of several hosts as one; a host that gives none is something that cannot be read.

    Raises:
        click.UsageError: a host is not valid.
    """
    carriers = [carrier_named(name, config) for name in dict.fromkeys(names)]
    arguments = shlex.join(["check", "--json", *(["--no-cache"] if no_cache else []), "--", *targets])

    async def run() -> list[Done | CommandFailedError | BaseException]:
        runs = {carrier.name: asyncio.create_task(_audit(carrier, arguments)) for carrier in carriers}
        telling = asyncio.create_task(_tell(runs))
        try:
            return await asyncio.gather(*runs.values(), return_exceptions=True)
        finally:
            telling.cancel()

    threads: list[ThreadReport] = []
    unreadable: list[UnreadableReport] = []
    for carrier, done in zip(carriers, termination.run(run()), strict=True):
        try:
            report = _report(carrier, done)
        except CommandFailedError as error:
            unreadable.append(UnreadableReport(carrier.name, str(error)))
            continue
        threads += (_placed(thread, carrier) for thread in report.threads)
        unreadable += (
            UnreadableReport(f"{carrier.name}:{each.path}", each.problem)
            for each in report.unreadable_directories
        )
    return check_report(threads, unreadable)


async def _audit(carrier: Carrier, arguments: str) -> Done:
    argv = carrier.argv_with_heartbeat(arguments)
    return await run_there(argv, limit_s=_LIMIT_S, max_bytes=_MAX_OUTPUT_BYTES, silence_s=_SILENCE_S)


async def _tell(runs: Mapping[str, asyncio.Task[Done]]) -> None:
    """Print on stderr which hosts have not answered yet: after a while, then now and then."""
    waited = 0.0
    for pause in chain((_FIRST_LINE_AFTER_S,), repeat(_LINE_EVERY_S)):
        await asyncio.sleep(pause)
        waited += pause
        names = ", ".join(name for name, run in runs.items() if not run.done())
        click.echo(f"agentdash: waiting for {names} ({waited:.0f} s)", err=True)


def _report(carrier: Carrier, done: Done | BaseException) -> CheckReport:
    if isinstance(done, BaseException):
        raise done
    try:
        if done.code in _AUDITED and done.output:
            return clean_document(msgspec.json.decode(done.output, type=CheckReport))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CommandFailedError(f"its document is not understood: {clean_line(str(error))}") from error
    reason = done.error or f"{carrier.before[0]} ended with exit code {done.code}"
    raise CommandFailedError(reason.removeprefix("agentdash: "))


def _placed(thread: ThreadReport, carrier: Carrier) -> ThreadReport:
    """Return the report of a thread with its host; its file is not a path of this machine."""
    return msgspec.structs.replace(thread, host=carrier.name, file=f"{carrier.name}:{thread.file}")
