"""`agentdash explain --screen`: what the rules make of one saved screen, for people and as `agentdash.explain-screen/1` for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text


class Reading(Protocol):
    """What a screen was read as; the hub's sensors make it."""

    @property
    def state(self) -> str | None: ...  # noqa: D102 - see sensors.screens.Reading
    @property
    def rule(self) -> str | None: ...  # noqa: D102
    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def frozen(self) -> bool: ...  # noqa: D102
    @property
    def partial(self) -> bool: ...  # noqa: D102


class ScreenReport(msgspec.Struct):
    """The document of `agentdash explain --screen FILE --json`. What no rule decides is null."""

    schema: Literal["agentdash.explain-screen/1"]
    agent: str
    state: str | None
    rule: str | None
    text: str
    """The words that matched; of half a menu, which half is in sight."""
    frozen: bool
    partial: bool
    versions_tested: list[str]
    """Versions of the agent on whose real screens the rule was tried; without a rule, all that were."""


def screen_report(reading: Reading, agent: str, versions_tested: Sequence[str]) -> ScreenReport:
    """A reading as a document."""
    return ScreenReport(
        "agentdash.explain-screen/1",
        agent,
        reading.state,
        reading.rule,
        reading.text,
        reading.frozen,
        reading.partial,
        list(versions_tested),
    )


def print_screen(report: ScreenReport, console: Console) -> None:
    """The reading in a few lines, with what it leaves open."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("agent", Text(report.agent))
    table.add_row("state", Text(report.state or _open(report)))
    table.add_row("rule", Text(report.rule or "none matches"))
    if report.text:
        table.add_row("words", Text(report.text))
    if report.partial and report.state:
        table.add_row("", Text("half of a menu is out of sight"))
    table.add_row(
        "tested on", Text(", ".join(report.versions_tested) or "no real screen: from published descriptions")
    )
    console.print(table)


def _open(report: ScreenReport) -> str:
    if report.frozen:
        return "not shown: a view hides the prompt, what was known before still holds"
    return "not decided: half of a menu is out of sight" if report.partial else "not decided by this screen"
