"""`agentdash config show`: the options in force, as the document `agentdash.config/1` and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from rich.console import Console

from agentdash.config import Setting
from agentdash.model.sanitize import clean_line
from agentdash.report.elements import text_table


class SettingReport(msgspec.Struct):
    """One option."""

    name: str
    value: Any
    """Null if it is not set."""
    source: Literal["default", "file", "env", "flag"]
    """What sets it."""
    where: str | None
    """File and line, or the environment variable."""


class SettingsReport(msgspec.Struct):
    """The document of `agentdash config show --json`."""

    schema: Literal["agentdash.config/1"]
    options: list[SettingReport]
    """All options, with where each value comes from."""


class ConfigCheckReport(msgspec.Struct):
    """The document of `agentdash config check --json`."""

    schema: Literal["agentdash.config-check/1"]
    file: str
    options: int
    """Number of options that it sets; 0 where it is invalid."""
    problems: list[str]
    """One line for each mistake, with file, line and column; none: it is valid."""


def config_check_report(file: Path, options: int, problems: Sequence[str]) -> ConfigCheckReport:
    """Return the document of a checked file."""
    return ConfigCheckReport(
        schema="agentdash.config-check/1",
        file=clean_line(str(file)),
        options=options,
        problems=list(problems),
    )


def settings_report(settings: Sequence[Setting]) -> SettingsReport:
    """Return the document of options."""
    return SettingsReport(
        "agentdash.config/1",
        [
            SettingReport(
                name=setting.name,
                value=_json_value(setting.value),
                source=setting.source,
                where=setting.where or None,
            )
            for setting in settings
        ],
    )


def print_settings(report: SettingsReport, console: Console) -> None:
    """Print the options as a table."""
    rows = [
        (option.name, _shown(option.value), f"{option.source}  {option.where or ''}".rstrip())
        for option in report.options
    ]
    console.print(text_table(("OPTION", "VALUE", "FROM"), rows, folded=("VALUE", "FROM")))


def _shown(value: Any) -> str:
    return "-" if value in (None, [], {}) else msgspec.json.encode(value).decode()


def _json_value(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_json_value(item) for item in value]
    return clean_line(str(value)) if isinstance(value, Path) else value
