"""`agentdash check --config`: the policy of a Codex before it starts, as the document
`agentdash.check-config/1` and as text."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Literal

import msgspec
from rich.console import Console
from rich.text import Text

from agentdash.agents.codex.config.argv import Arguments, parse_options, refusal
from agentdash.agents.codex.config.effects import ineffective
from agentdash.agents.codex.config.files import ConfigLayers, directory, read_layers
from agentdash.agents.codex.config.precedence import Asked, request
from agentdash.agents.codex.config.versions import LAST_MEASURED, latest_rules, rules_for
from agentdash.model.policy import Policy
from agentdash.model.requested import RequestField, RequestLayer, RequestOrigin
from agentdash.model.versions import numbers_of, stand_in


class ConfigFileReport(msgspec.Struct):
    """A configuration file that exists."""

    path: str
    layer: str
    """`user config`, `project config`, `managed` ..."""
    in_force: bool
    """Whether it counts here."""
    problem: str | None
    """Why it could not be read."""


class PartReport(msgspec.Struct):
    """One part of the policy."""

    part: str
    """`filesystem`, `network`, `writable_roots`, `approval`, `reviewer`, `profile`."""
    value: str
    """What Codex gets."""
    by: str
    """The argument, or the file and line, that decides it."""
    asked: str | None
    """What was asked for, where that is something else."""
    asked_by: str | None
    """Where that was asked for; null where nothing else was."""


class IneffectiveReport(msgspec.Struct):
    """A setting without effect."""

    file: str
    line: int | None
    text: str
    why: str


class CheckConfigReport(msgspec.Struct):
    """The document of `agentdash check --config --json`."""

    schema: Literal["agentdash.check-config/1"]
    version: str
    """The version of Codex whose rules were applied."""
    version_from: str
    """Where it was found."""
    measured: bool
    """Whether the rules of this version were measured; if not, the result is a guess from others."""
    cwd: str
    trust: str | None
    """Whether the project is trusted; null where nothing states it."""
    refusal: str | None
    """Why Codex will not start; null if it will."""
    parts: list[PartReport]
    """The parts of the policy, and what decides each."""
    files: list[ConfigFileReport]
    """The configuration files that exist."""
    no_effect: list[IneffectiveReport]
    """Settings that have no effect."""

    @property
    def exit_code(self) -> int:
        """0: it gets what is asked for. 1: it does not, or does not start. 2: something could not be read, or
        the version was not measured."""
        if not self.measured or any(file.problem for file in self.files):
            return 2
        return 1 if self.refusal or any(part.asked is not None for part in self.parts) else 0


def check_config(
    args: tuple[str, ...], *, home: Path, cwd: Path, version: tuple[str, str]
) -> CheckConfigReport:
    """Return what a Codex with these arguments would get in a directory.

    Args:
        args: as they would be typed after `codex`.
        version: of Codex, and where it was found.

    Raises:
        ValueError: this version refuses the arguments.
    """
    known = rules_for(version[0])
    is_measured = known is not None and stand_in(version[0], LAST_MEASURED) is None
    if is_measured and (problem := refusal(args, numbers_of(version[0])[1])) is not None:
        raise ValueError(f"Codex {version[0]} does not take these arguments: {problem}")
    arguments = parse_options(args)
    rules = known or latest_rules()
    workspace = directory(arguments, str(cwd))
    layers = read_layers(str(home), workspace, arguments, rules)
    wanted, given = request(layers, arguments, rules, cwd=workspace)
    return CheckConfigReport(
        schema="agentdash.check-config/1",
        version=version[0],
        version_from=version[1],
        measured=is_measured,
        cwd=workspace,
        trust=layers.trust,
        refusal=given.refusal,
        parts=[] if given.refusal else _parts(wanted, given, arguments),
        files=_files(layers),
        no_effect=[
            IneffectiveReport(each.file, each.line, each.text, each.why)
            for each in ineffective(layers, arguments, rules, given)
        ],
    )


def default_version() -> tuple[str, str]:
    """Return the newest measured version."""
    return f"{LAST_MEASURED}.0", "the newest that was measured"


def print_check_config(report: CheckConfigReport, console: Console) -> None:
    """Print the parts of the policy, what is not given, and what has no effect."""
    console.print(Text(f"Codex {report.version} ({report.version_from}) in {report.cwd}"))
    if not report.measured:
        console.print(Text(f"this version was not measured: by the rules of {LAST_MEASURED}"))
    if report.refusal:
        console.print(Text(f"will not start: {report.refusal}"))
    for part in report.parts:
        console.print(Text(f"{part.part:<15}{part.value:<12} {part.by}"))
        if part.asked is not None:
            console.print(Text(f"{'':<15}not as asked: {part.asked}   {part.asked_by}"))
    for file in report.files:
        state = f"cannot be read: {file.problem}" if file.problem else "" if file.in_force else "not in force"
        console.print(Text(f"{file.layer:<15}{file.path}  {state}".rstrip()), style="dim")
    for setting in report.no_effect:
        where = f"{setting.file}:{setting.line}" if setting.line is not None else setting.file
        console.print(Text(f"{'no effect':<15}{where}: {setting.text}; {setting.why}"))


def _files(layers: ConfigLayers) -> list[ConfigFileReport]:
    return [
        ConfigFileReport(
            path=file.path,
            layer=file.layer.value,
            in_force=file not in layers.disabled and not file.problem,
            problem=file.problem,
        )
        for file in layers.all
    ]


def _parts(wanted: Asked, given: Asked, arguments: Arguments) -> list[PartReport]:
    found: list[PartReport] = []
    for field in RequestField:
        origin, value = given.origin(field), _value(given.policy, field)
        asked, asked_by = _value(wanted.policy, field), wanted.origin(field)
        is_asked = asked_by is not None and asked_by.layer is not RequestLayer.DEFAULT
        differs = is_asked and asked != value
        if (value is None or origin is None) and not differs:
            continue
        found.append(
            PartReport(
                part=field.value,
                value=value or "not as asked",
                by=_by(origin, arguments),
                asked=asked if differs else None,
                asked_by=str(asked_by) if differs else None,
            )
        )
    return found


def _by(origin: RequestOrigin | None, arguments: Arguments) -> str:
    if origin is not None:
        return str(origin)
    return "codex " + arguments.mode


def _value(policy: Policy, field: RequestField) -> str | None:
    """Return a part of a policy in words; None where it is not stated."""
    if field is RequestField.WRITABLE_ROOTS:
        return ", ".join(root for root in policy.writable_roots if posixpath.isabs(root)) or None
    value = {
        RequestField.FILESYSTEM: policy.filesystem.value,
        RequestField.NETWORK: policy.network.value,
        RequestField.APPROVAL: policy.approval,
        RequestField.REVIEWER: policy.reviewer,
        RequestField.PROFILE: policy.profile,
    }[field]
    return None if value == "unknown" else value
