"""`agentdash doctor`: the checks of the environment, as the document `agentdash.doctor/1` and as a table.

`diagnose.py` runs the checks.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

Level = Literal["ok", "warn", "fail"]
"""`warn`: something cannot be observed. `fail`: what is shown may be wrong, or nothing can be shown."""


class DoctorCheck(msgspec.Struct):
    """The result of one check."""

    name: str
    level: Level
    """`ok`, `warn`, or `fail`."""
    detail: str
    """What was found."""
    advice: str | None = None
    """What to do about it; null if there is nothing to do."""


class DoctorReport(msgspec.Struct):
    """The document of `agentdash doctor --json`."""

    schema: Literal["agentdash.doctor/1"]
    checks: list[DoctorCheck]
    """The checks."""

    @property
    def exit_code(self) -> int:
        """0: no check failed. 1: a check failed."""
        return int(any(check.level == "fail" for check in self.checks))


def ok(name: str, detail: str, advice: str | None = None) -> DoctorCheck:
    """Return a check that passed."""
    return DoctorCheck(name=name, level="ok", detail=detail, advice=advice)


def warn(name: str, detail: str, advice: str | None = None) -> DoctorCheck:
    """Return a check that found what cannot be observed."""
    return DoctorCheck(name=name, level="warn", detail=detail, advice=advice)


def fail(name: str, detail: str, advice: str | None = None) -> DoctorCheck:
    """Return a check that failed."""
    return DoctorCheck(name=name, level="fail", detail=detail, advice=advice)


def print_doctor(report: DoctorReport, console: Console) -> None:
    """Print one line per check, with the advice below it."""
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
