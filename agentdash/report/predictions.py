"""What `agentdash check` predicts: `--config`, the policy of a Codex before it starts, as the document
`agentdash.check-config/1`; `--worker`, what that would deny a worker CLI, as `agentdash.check-worker/1`.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from rich.console import Console
from rich.text import Text

from agentdash.agents.codex.config.argv import Arguments, parse_options
from agentdash.agents.codex.config.effects import ineffective
from agentdash.agents.codex.config.files import ConfigLayers, directory, read_layers
from agentdash.agents.codex.config.precedence import LAST_MEASURED, Asked, request, rules_of
from agentdash.agents.codex.home import CodexHome, thread_id
from agentdash.agents.codex.policy_formats import from_sandbox_policy
from agentdash.collect.sources.denied_paths import path_kinds
from agentdash.documents.worker import ConfiguredReport, configured_report, remedy_fields
from agentdash.engine.judge.findings.remedies import filesystem_remedy, network_access_remedy
from agentdash.engine.judge.findings.write_access import paths_under_policy
from agentdash.model.denials import PathFacts, PathKind
from agentdash.model.policy import SANDBOX_MODES, Network, Policy
from agentdash.model.requested import RequestField, RequestLayer, RequestOrigin
from agentdash.model.state_paths import DEFAULTS, PathAccess, StatePath, resolve_path

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
            for each in ineffective(layers, given)
        ],
    )


def default_version() -> tuple[str, str]:
    """Return the newest measured version."""
    return f"{LAST_MEASURED}.0", "the newest that was measured"


def print_check_config(report: CheckConfigReport, console: Console) -> None:
    """Print the parts of the policy, what is not given, and what has no effect."""
    console.print(Text(f"Codex {report.version} ({report.version_from}) in {report.cwd}"))
    if not report.measured:
        console.print(Text(f"this version was not measured: by the rules of {rules_of(report.version)}"))
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
    """Return a part of a policy in words, or None if it is not stated."""
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


# ------------------------------------------------------------
# `agentdash check --worker NAME`: which state paths of a worker CLI a policy would deny


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
    """The document of `agentdash check --worker NAME --json`."""

    schema: Literal["agentdash.check-worker/1"]
    worker: str
    """The worker CLI."""
    cwd: str
    policy: ConfiguredReport
    """The policy that it would run under."""
    policy_of: str
    """Origin of the policy: the name of a mode, or `thread ID`."""
    network: bool | None
    """Whether the network is allowed, which the worker needs for its model. Null: the policy does not state
    it."""
    network_remedy: str | None
    """What opens the network; null where it is open."""
    paths: list[PathReport]
    """Where the worker CLI keeps its state."""
    network_remedy_where: str | None = None
    """File and place for its lines."""
    network_remedy_once: str | None = None
    """Shell command that starts Codex with it for one run."""

    @property
    def exit_code(self) -> int:
        """0: nothing needed is denied. 1: something is."""
        return int(self.network is False or any(p.needed and p.allowed is False for p in self.paths))


def policy_of_mode(mode: str, cwd: Path) -> Policy:
    """Return the policy of `codex --sandbox MODE` in a directory."""
    return from_sandbox_policy({"type": mode}, str(cwd))


def policy_of_thread(
    home: CodexHome, target: str | None, on_error: Callable[[OSError], None] = lambda _: None
) -> tuple[str, Policy]:
    """Return the origin and the policy in force of a thread: an id, a prefix of one, or a file.

    Without a target: of the newest thread that states a policy.

    Args:
        home: searched for threads.
        target: the thread, or its file.
        on_error: called with the error of each directory and file before it that cannot be read.

    Raises:
        LookupError: no thread states a policy.
    """
    from agentdash.report.file_audit import read_rollout  # noqa: PLC0415 - the engine takes long to import

    paths = [Path(target)] if target and Path(target).is_file() else home.rollouts(on_error)
    for path in paths:
        ident = thread_id(path) or path.stem
        if target and path != Path(target) and not ident.startswith(target):
            continue
        try:
            threads = read_rollout(path).threads.values()
        except OSError as error:
            on_error(error)
            continue
        for thread in threads:
            if not thread.helper and (policy := thread.policy) is not None:
                return f"thread {ident}", policy
    which = f" {target!r}" if target else ""
    raise LookupError(f"no thread{which} here states a policy: give --policy {', '.join(SANDBOX_MODES)}")


def worker_paths_report(
    worker: str, rows: Sequence[StatePath], policy: Policy, origin: str, cwd: Path
) -> WorkerPathsReport:
    """Return the document for a worker started in `cwd` with the environment of this process."""
    env = {name: value for name in _PATH_VARIABLES if (value := os.environ.get(name))}
    placed = [path for row in rows if (path := resolve_path(row.path, env, str(cwd)))]
    missing = [path for path in placed if not os.path.lexists(path)]
    reached = {Network.OFF: False, Network.ON: True}.get(policy.network)
    home = env.get("HOME")
    places = PathFacts(
        kinds=path_kinds(placed),
        homes=(home,) if home else (),
        workspaces=(str(cwd),),
        codex_home=env.get("CODEX_HOME"),
    )
    online = network_access_remedy(policy, places)
    return WorkerPathsReport(
        schema="agentdash.check-worker/1",
        worker=worker,
        cwd=str(cwd),
        policy=configured_report(policy),
        policy_of=origin,
        network=reached,
        network_remedy=online.text if online else None,
        network_remedy_where=online.where if online else None,
        network_remedy_once=online.once if online else None,
        paths=[
            _path_report(access, policy, places)
            for access in paths_under_policy(policy, rows, env, str(cwd), missing)
        ],
    )


def print_worker_paths(report: WorkerPathsReport, console: Console) -> None:
    """Print the paths and the network as a table."""
    from rich.table import Table  # noqa: PLC0415 - documents need no tables
    from rich.text import Text  # noqa: PLC0415 - documents need no tables

    policy = report.policy
    permissions = f"files {policy.filesystem}, network {policy.network}"
    console.print(Text(f"{report.worker} in {report.cwd}, under {report.policy_of}: {permissions}"))
    table = Table(box=None, pad_edge=False, show_header=False)
    for path in report.paths:
        purpose = path.what + (", needed" if path.needed else "")
        table.add_row(Text(_permission(path)), Text(path.path), Text(purpose), Text(path.remedy or ""))
    network_allowed = {None: "not stated", True: "has", False: "DENIED"}[report.network]
    remedy = Text(report.network_remedy or "")
    table.add_row(Text(network_allowed), Text("network"), Text("its model, needed"), remedy)
    console.print(table)


def _permission(path: PathReport) -> str:
    if path.allowed is None:
        return "not stated"
    if path.allowed:
        return "may write"
    return "DENIED" if path.needed else "denied"


def _path_report(access: PathAccess, policy: Policy, places: PathFacts) -> PathReport:
    allowed = {"allowed": True, "policy": False}.get(access.access.verdict)
    missing = places.kinds.get(access.path) is PathKind.MISSING
    remedy = None
    if allowed is False:
        remedy = filesystem_remedy(access.path, "mkdir" if missing else "write", policy, places)
    return PathReport(
        path=access.path,
        what=access.what,
        allowed=allowed,
        needed=access.needed,
        **remedy_fields(remedy),
    )
