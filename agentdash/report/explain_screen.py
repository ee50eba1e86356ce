"""`agentdash explain --screen`: how the rules read a saved screen, as the document
`agentdash.explain-screen/1` and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text


class ScreenReading(Protocol):
    """The result of reading a screen, as `agents.screen_reader.read_screen` returns it."""

    @property
    def state(self) -> str | None:
        """The state; None if no rule decides it."""

    @property
    def rule(self) -> str | None:
        """Id of the rule that matched."""

    @property
    def text(self) -> str:
        """The words that matched."""

    @property
    def frozen(self) -> bool:
        """Whether a view hides the prompt."""

    @property
    def partial(self) -> bool:
        """Whether a part of a menu is not visible."""


class ScreenReport(msgspec.Struct):
    """The document of `agentdash explain --screen FILE --json`. Null: no rule decides it."""

    schema: Literal["agentdash.explain-screen/1"]
    agent: str
    state: str | None
    rule: str | None
    text: str
    """The words that matched; for a partly visible menu, which part is visible."""
    frozen: bool
    """Whether a view hides the prompt."""
    partial: bool
    """Whether a part of a menu is not visible."""
    versions_tested: list[str]
    """Versions of the agent with real screens on which the rule was tested; without a rule, all of these."""


def screen_report(reading: ScreenReading, agent: str, versions_tested: Sequence[str]) -> ScreenReport:
    """Return the document of a reading."""
    return ScreenReport(
        schema="agentdash.explain-screen/1",
        agent=agent,
        state=reading.state,
        rule=reading.rule,
        text=reading.text,
        frozen=reading.frozen,
        partial=reading.partial,
        versions_tested=list(versions_tested),
    )


def print_screen(report: ScreenReport, console: Console) -> None:
    """Print a reading as a table, including why a state is not decided."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("agent", Text(report.agent))
    table.add_row("state", Text(report.state or _undecided(report)))
    table.add_row("rule", Text(report.rule or "none matches"))
    if report.text:
        table.add_row("words", Text(report.text))
    if report.partial and report.state:
        table.add_row("", Text("half of a menu is out of sight"))
    versions = ", ".join(report.versions_tested) or "no real screen: from published descriptions"
    table.add_row("tested on", Text(versions))
    console.print(table)


def _undecided(report: ScreenReport) -> str:
    if report.frozen:
        return "not shown: a view hides the prompt, what was known before still holds"
    return "not decided: half of a menu is out of sight" if report.partial else "not decided by this screen"
