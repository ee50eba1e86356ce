"""`agentdash since`: what happened since a time."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import replace

from agentdash.cli.options import FLEET_OPTIONS, config_of, json_option, options

if TYPE_CHECKING:
    from agentdash.config import Config
    from agentdash.model.worker import Snapshot

_DAY_S: Final = 86_400.0
_FILE_WIDTH: Final = 200
"""Columns where stdout is a file or a pipe."""


@click.command()
@options(FLEET_OPTIONS)
@click.argument("when", metavar="TIME")
@json_option("since/1")
def since(when: str, as_json: bool, **given: Any) -> int:
    """Summarize what happened since TIME, in 20 lines, each with the command that shows it again.

    TIME is a time of day (22:00), a date and a time (2026-03-11 20:14), a span (8h, 90m, 2d, 1w), today or
    yesterday.
    It reads the session files that were written since then, and what a running dashboard saw: only the latter
    knows of waits for approval.

    Exit code 2: something could not be read.

    \b
    agentdash since 22:00
    agentdash since 8h --json | jq '.rows[] | select(.kind == "waited")'
    """
    from agentdash.cli.fleet_access import exit_code, read_fleet
    from agentdash.cli.output import print_document, print_text, warn_unreadable
    from agentdash.report.since import since_lines, since_report

    now = time.time()
    begin, config = _begin(when, now), config_of(given)
    if now - begin > _DAY_S:  # by default the sessions of the last day are read
        config = replace(config, sessions=None)
    live = read_fleet(config, None, whole_since=begin).snapshot
    report = since_report(live, _seen_by_dashboard(config), begin, now)
    if as_json:
        print_document(report)
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _FILE_WIDTH
        print_text("\n".join(since_lines(report, width)))
    warn_unreadable(report.problems)
    return 2 if report.problems else exit_code(live, given)


def _begin(text: str, now: float) -> float:
    """Return the begin in unix seconds; a time of day is that of the last 24 hours.

    Raises:
        click.UsageError: it is not a time, or lies in the future.
    """
    from agentdash.replay.clock import parse_period

    begin, _ = parse_period(text, now) or (None, None)
    if begin is None:
        raise click.UsageError(f"{text!r} is not a time: give 22:00, 8h, yesterday, or '2026-03-11 20:14'")
    if begin > now:
        raise click.UsageError(f"{text!r} is in the future")
    return begin


def _seen_by_dashboard(config: Config) -> Snapshot | None:
    """Return what a running dashboard or `agentdash publish` has seen, or None if none runs."""
    from agentdash.agents.codex.home import default_home
    from agentdash.store.status_file import UnpublishedError, read_published, status_file

    try:
        return read_published(status_file((config.codex_home or default_home()).expanduser())).snapshot
    except UnpublishedError:
        return None
