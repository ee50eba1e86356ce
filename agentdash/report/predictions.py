"""What `agentdash preflight` predicts: the policy of a Codex before it starts, as the document
`agentdash.preflight/1`; with `--worker` what it would deny another agent, as `agentdash.preflight-worker/1`.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from agentdash.agents.codex.config.argv import Arguments, parse_options
from agentdash.agents.codex.config.files import directory, read_layers
from agentdash.agents.codex.config.precedence import Asked, request, rules_of
from agentdash.agents.codex.policy_formats import from_sandbox_policy
from agentdash.collect.sources.denied_paths import path_kinds
from agentdash.documents.worker import document, remedy_fields
from agentdash.engine.judge.findings.remedies import filesystem_remedy
from agentdash.model.denials import PathFacts, PathKind
from agentdash.model.policy import Network, Policy
from agentdash.model.requested import RequestField, RequestLayer
from agentdash.model.state_paths import DEFAULTS, StatePath, resolve_path
from agentdash.report.elements import say

if TYPE_CHECKING:
    from rich.console import Console


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


class PreflightReport(msgspec.Struct):
    """The document of `agentdash preflight --json`."""

    schema: Literal["agentdash.preflight/1"]
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

    @property
    def exit_code(self) -> int:
        """0: it gets what is asked for. 1: it does not, or does not start. 2: something could not be read, or
        the version was not measured."""
        if not self.measured or any(file.problem for file in self.files):
            return 2
        return 1 if self.refusal or any(part.asked is not None for part in self.parts) else 0


def predict_policy(
    args: tuple[str, ...], *, home: Path, cwd: Path, version: tuple[str, str]
) -> PreflightReport:
    """Return what a Codex with these arguments would get in a directory.

    Args:
        args: as they would be typed after `codex`.
        version: of Codex, and where it was found.

    Raises:
        ValueError: the arguments start no thread, or have options that no version knows.
    """
    is_measured = rules_of(version[0]) is None
    arguments = parse_options(args)
    if arguments.mode == "other" or (is_measured and arguments.unknown):
        what = ", ".join(arguments.unknown) or "a subcommand that starts no thread"
        raise ValueError(f"Codex {version[0]} has no policy for these arguments: {what}")
    workspace = directory(arguments, str(cwd))
    layers = read_layers(str(home), workspace, arguments)
    wanted, given = request(layers, arguments, cwd=workspace)
    return PreflightReport(
        schema="agentdash.preflight/1",
        version=version[0],
        version_from=version[1],
        measured=is_measured,
        cwd=workspace,
        trust=layers.trust,
        refusal=given.refusal,
        parts=[] if given.refusal else list(_parts(wanted, given, arguments)),
        files=[
            document(ConfigFileReport, file, in_force=file not in layers.disabled and not file.problem)
            for file in layers.all
        ],
    )


def print_policy(report: PreflightReport, console: Console) -> None:
    """Print the parts of the policy, and what is not given."""
    say(console, f"Codex {report.version} ({report.version_from}) in {report.cwd}")
    if not report.measured:
        say(console, f"this version was not measured: by the rules of {rules_of(report.version)}")
    if report.refusal:
        say(console, f"will not start: {report.refusal}")
    for part in report.parts:
        say(console, f"{part.part:<15}{part.value:<12} {part.by}")
        if part.asked is not None:
            say(console, f"not as asked: {part.asked}   {part.asked_by}", 15)
    for file in report.files:
        state = f"cannot be read: {file.problem}" if file.problem else "" if file.in_force else "not in force"
        say(console, f"{file.layer:<15}{file.path}  {state}".rstrip(), style="dim")


def _parts(wanted: Asked, given: Asked, arguments: Arguments) -> Iterator[PartReport]:
    for field in RequestField:
        origin, value = given.origin(field), _value(given.policy, field)
        asked, asked_by = _value(wanted.policy, field), wanted.origin(field)
        is_asked = asked_by is not None and asked_by.layer is not RequestLayer.DEFAULT
        differs = is_asked and asked != value
        if differs or (value is not None and origin is not None):
            yield PartReport(
                part=field.value,
                value=value or "not as asked",
                by=str(origin or f"codex {arguments.mode}"),
                asked=asked if differs else None,
                asked_by=str(asked_by) if differs else None,
            )


def _value(policy: Policy, field: RequestField) -> str | None:
    """Return a part of a policy in words, or None if it is not stated."""
    value = getattr(policy, field.value)
    if field is RequestField.WRITABLE_ROOTS:
        value = ", ".join(filter(posixpath.isabs, value))
    return None if value in ("unknown", "", None) else str(value)


# ------------------------------------------------------------
# `agentdash preflight --worker NAME`: which state paths of a worker CLI a policy would deny


_PATH_VARIABLES: Final = ("HOME", "PWD", *DEFAULTS)
"""Environment variables that state paths depend on."""


class PathReport(msgspec.Struct):
    """A state path of the worker."""

    path: str
    what: str
    """What the worker keeps there."""
    allowed: bool | None
    """Null: the policy does not state it."""
    needed: bool
    """Whether the worker fails or stalls without it, given the files that exist."""
    remedy: str | None
    remedy_where: str | None = None
    remedy_once: str | None = None


class WorkerPathsReport(msgspec.Struct):
    """The document of `agentdash preflight --worker NAME --json`."""

    schema: Literal["agentdash.preflight-worker/1"]
    worker: str
    """The worker CLI."""
    cwd: str
    mode: str
    """The sandbox mode of the Codex that starts it."""
    network: bool
    """Whether the network is allowed, which the worker needs for its model."""
    paths: list[PathReport]
    """Where the worker CLI keeps its state."""

    @property
    def exit_code(self) -> int:
        """0: nothing needed is denied. 1: something is."""
        return int(not self.network or any(path.needed and path.allowed is False for path in self.paths))


def worker_paths_report(worker: str, rows: Sequence[StatePath], mode: str, cwd: Path) -> WorkerPathsReport:
    """Return what `codex --sandbox MODE` would deny a worker CLI in `cwd` with the environment of this
    process."""
    policy = from_sandbox_policy({"type": mode}, str(cwd))
    env = {name: value for name in _PATH_VARIABLES if (value := os.environ.get(name))}
    placed = [path for row in rows if (path := resolve_path(row.path, env, str(cwd)))]
    home = env.get("HOME")
    places = PathFacts(
        kinds=path_kinds(placed),
        homes=(home,) if home else (),
        workspaces=(str(cwd),),
        codex_home=env.get("CODEX_HOME"),
    )
    return WorkerPathsReport(
        schema="agentdash.preflight-worker/1",
        worker=worker,
        cwd=str(cwd),
        mode=mode,
        network=policy.network is Network.ON,
        paths=paths_under_policy(policy, rows, env, str(cwd), places),
    )


def paths_under_policy(
    policy: Policy, rows: Iterable[StatePath], env: Mapping[str, str], cwd: str | None, places: PathFacts
) -> list[PathReport]:
    """Return the state paths of one worker CLI, and whether a policy lets them be written; unplaced ones are
    left out.

    Args:
        env: the environment that it would get: `HOME`, `XDG_*`, `TMPDIR` ...
        cwd: where it would run.
        places: of what kind the paths are.
    """
    found = []
    for row in rows:
        if (path := resolve_path(row.path, env, cwd)) is None:
            continue
        allowed, remedy = policy.may_write(path, env.get("TMPDIR")), None
        is_missing = places.kinds.get(path) is PathKind.MISSING
        if allowed is False:
            remedy = filesystem_remedy(path, "mkdir" if is_missing else "write", policy, places)
        needed = row.needed == "always" or (row.needed == "at-first" and is_missing)
        found.append(PathReport(path, row.what, allowed, needed, **remedy_fields(remedy)))
    return found


def print_worker_paths(report: WorkerPathsReport, console: Console) -> None:
    """Print what would be denied, and what would help."""
    say(console, f"{report.worker} in {report.cwd}, started by codex --sandbox {report.mode}")
    if not report.network:
        say(console, "DENIED  network: its model, needed", 2)
    for path in report.paths:
        denied = "DENIED" if path.needed else "denied"
        allowed = {None: "?", True: "may", False: denied}[path.allowed]
        say(console, f"{allowed:<7} {path.path}: {path.what}{', needed' if path.needed else ''}", 2)
        if path.remedy:
            say(console, f"helps: {' '.join(path.remedy.split())}", 10, style="dim")
