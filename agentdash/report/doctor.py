"""`agentdash doctor`: what agentdash can see here, for people and as `agentdash.doctor/1` for programs."""

from __future__ import annotations

from typing import Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

Level = Literal["ok", "warn", "fail"]
"""`warn`: something is out of sight. `fail`: what is shown may be wrong, or nothing can be shown."""


class CheckReport(msgspec.Struct):
    """One thing that was looked at."""

    name: str
    level: Level
    detail: str
    """What was found."""
    advice: str | None = None
    """What to do about it; null where there is nothing to do."""


class DoctorReport(msgspec.Struct):
    """The document of `agentdash doctor --json`."""

    schema: Literal["agentdash.doctor/1"]
    checks: list[CheckReport]

    @property
    def exit_code(self) -> int:
        """1: something failed."""
        return int(any(check.level == "fail" for check in self.checks))


def print_doctor(report: DoctorReport, console: Console) -> None:
    """A line for each, and below it what to do."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    for check in report.checks:
        table.add_row(Text(check.level, colours[check.level]), Text(check.name), Text(check.detail))
        if check.advice:
            table.add_row("", "", Text(f"-> {check.advice}"))
    console.print(table)
