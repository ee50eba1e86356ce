"""Send notices while a hub runs, by bell, terminal and a command; and `agentdash notify`, to try it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import click
import msgspec

from agentdash import programs
from agentdash.cli.options import config_of
from agentdash.cli.output import print_document
from agentdash.config import Config
from agentdash.engine.hub import Hub
from agentdash.model.events import SourceSeen
from agentdash.model.fact import Fact, FactKind, ObjectForm
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, Worker
from agentdash.report.notices import News, NoticeBook, NoticeReport, is_quiet, notice_report
from agentdash.report.redact import Scrubber

SOURCE: Final = "notices"
_TIMEOUT_S: Final = 10.0
"""For the command: then it is ended."""
_LOOK_AGAIN_S: Final = 0.5
"""Between two looks at what has to wait, while nothing changes."""
_MAX_SHOWN_CHARS: Final = 160
"""Of a terminal's notification: desktops show no more."""
_MAX_ERROR_CHARS: Final = 200
_OSC_DELIMITERS: Final = re.compile(r"[;\x00-\x1f\x7f-\x9f]")
"""Characters that end or divide an OSC sequence."""


class Notices:
    """Tells the user of what is configured.

    The command is started without a shell, once for all that came while it ran, and holds nothing up: how it
    fails is a source of the snapshot.

    Args:
        keeper: returns the pid of another agentdash that watches the same home, and runs the command; None:
            there is none.
        write: writes to the terminal; None: there is none.
    """

    def __init__(
        self,
        config: Config,
        hub: Hub,
        keeper: Callable[[], int | None],
        write: Callable[[str], None] | None = None,
    ) -> None:
        self._settings = config.notices
        self._thresholds = config.thresholds
        self._hub = hub
        self._keeper = keeper
        self._write = write
        self._scrubber = None if self._settings.text else Scrubber.of_this_machine(config.hosts)
        self._outbox: list[News] = []
        self._has_mail = asyncio.Event()

    async def keep(self) -> None:
        """Send notices of the hub's snapshots, without end."""
        book, snapshot = NoticeBook(self._settings.on, self._thresholds), None
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run_command())
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_AGAIN_S if book.is_waiting else None):
                        snapshot = await self._hub.wait_for_snapshot(snapshot)
                if snapshot is not None:
                    quiet = is_quiet(self._settings.quiet, time.strftime("%H:%M"))
                    if news := book.due(snapshot, self._hub.now(), is_quiet=quiet):
                        self._tell(news)

    def _tell(self, news: list[News]) -> None:
        if self._write is not None and self._settings.bell:
            self._write("\a")
        if self._write is not None and self._settings.terminal:
            self._write(osc_sequences(notice_report(news, self._hub.now(), None)))
        if self._settings.command and self._keeper() is None:
            self._outbox += news
            self._has_mail.set()

    async def _run_command(self) -> None:
        command = self._settings.command
        while True:
            await self._has_mail.wait()
            self._has_mail.clear()
            news, self._outbox = self._outbox, []
            problem = await run_command(command, notice_report(news, self._hub.now(), self._scrubber))
            detail = clean_line(f"{command[0]}: {problem}" if problem else "sent")
            self._hub.emit([SourceSeen(at=self._hub.now(), name=SOURCE, ok=not problem, detail=detail)])


async def run_command(command: tuple[str, ...], report: NoticeReport) -> str:
    """Run a command with a document on its standard input; return what went wrong, or nothing."""
    try:
        process = await asyncio.create_subprocess_exec(
            programs.find_program(command[0]),
            *command[1:],
            env=programs.environment(command[0]),
            cwd=Path.home(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return error.strerror or str(error)
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            _, errors = await process.communicate(msgspec.json.encode(report) + b"\n")
    except (TimeoutError, asyncio.CancelledError) as end:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        if isinstance(end, TimeoutError):
            return f"it took longer than {_TIMEOUT_S:g} s"
        raise
    last = clean_line(errors.decode("utf-8", "replace").strip().rpartition("\n")[2], _MAX_ERROR_CHARS)
    return f"exit code {process.returncode}: {last}".removesuffix(": ") if process.returncode else ""


def osc_sequences(report: NoticeReport, environ: Mapping[str, str] = os.environ) -> str:
    """Return a notice as OSC 9 and as OSC 777; a terminal supports one and ignores the other.

    OSC 9: iTerm2, Ghostty, WezTerm, Windows Terminal. OSC 777: rxvt, foot, VTE. Inside tmux wrapped for the
    terminal outside (3.3+: only with `allow-passthrough on`).
    """
    title, text = (
        _OSC_DELIMITERS.sub(" ", clean_line(part, _MAX_SHOWN_CHARS)) for part in (report.title, report.text)
    )
    sequences = f"\x1b]9;{title}: {text}\x1b\\", f"\x1b]777;notify;{title};{text}\x1b\\"
    if environ.get("TMUX"):
        return "".join("\x1bPtmux;" + each.replace("\x1b", "\x1b\x1b") + "\x1b\\" for each in sequences)
    return "".join(sequences)


# ------------------------------------------------------------


@click.command()
@click.option("--test", "is_test", is_flag=True, help="Send it, by the command of `[notices]`.")
def notify(is_test: bool) -> int:
    """Print a notice of an invented approval as the command of `[notices]` would get it, or send it.

    Exit code 1: the command failed. 2: none is configured.

    \b
    agentdash notify
    agentdash notify --test
    """
    settings = config_of({}).notices
    report = notice_report([_invented()], time.time(), None if settings.text else Scrubber.of_this_machine())
    if not is_test:
        print_document(report)
        return 0
    if not settings.command:
        raise click.UsageError("no command is configured: set `command` in [notices] of the configuration")
    if problem := asyncio.run(run_command(settings.command, report)):
        click.echo(f"agentdash: {settings.command[0]}: {problem}", err=True)
        return 1
    click.echo(f"sent: {report.title}")
    return 0


def _invented() -> News:
    fact = Fact(FactKind.RUN, "wants to run", "git push --tags", ObjectForm.COMMAND)
    assessment = Assessment(State.WAITING_APPROVAL, time.time(), "a test of notices", fact=fact)
    agent, cwd = Agent("agentdash"), str(Path.home() / "project")
    return News(Worker("test", "pane", "a test", agent, assessment, cwd=cwd), ("needs-you",))
