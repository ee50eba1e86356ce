"""Checks of `agentdash doctor` on Codex: its homes, their sessions, and its configuration."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from agentdash.agents.codex.command_rules import rule_files
from agentdash.agents.codex.config.argv import parse_options
from agentdash.agents.codex.config.effects import ineffective
from agentdash.agents.codex.config.files import read_layers
from agentdash.agents.codex.config.precedence import request
from agentdash.agents.codex.config.reader import NEEDED, environment_rules
from agentdash.agents.codex.config.stack import Stack
from agentdash.agents.codex.config.versions import latest_rules, rules_for
from agentdash.agents.codex.home import CodexHome, open_lines, problem
from agentdash.agents.codex.rollout.kinds import LAST_VERSION
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.agents.knowledge import installed_codex
from agentdash.model.events import LineSkipped, ThreadStarted
from agentdash.model.process import Process
from agentdash.model.requested import RequestField
from agentdash.model.sanitize import clean_line
from agentdash.model.versions import numbers_of, stand_in
from agentdash.report.check_config import default_version
from agentdash.report.doctor import DoctorCheck, fail, ok, warn

_MAX_VERSION_SESSIONS: Final = 200
"""Newest sessions whose headers are read for their Codex version: enough for all versions in use."""
_MAX_NEWER_SESSIONS: Final = 5
"""Newest sessions of versions that were not tested in which lines of unknown kinds are counted."""
_MAX_NEWER_LINES: Final = 20_000
"""Lines read of each of them: a second."""


def check_homes(home: CodexHome, processes: Iterable[Process]) -> Iterator[DoctorCheck]:
    """Yield whether the sessions of a Codex home can be read, and the homes that running processes use."""
    if (trouble := problem(home)) is None:
        unlisted: list[OSError] = []
        files = list(home.rollouts(unlisted.append))
        yield _check_versions(home, files)
        yield from _check_listed(unlisted)
        yield from _check_readable(files)
    elif "permission denied" in trouble:
        yield fail("codex home", trouble, "run as the user that owns it")
    else:
        yield warn("codex home", trouble)
    used = {
        Path(process.env["CODEX_HOME"])
        for process in processes
        if process.agent == "codex" and process.env and process.env.get("CODEX_HOME")
    }
    for other in sorted(used - {home.root, home.root.resolve()}):
        detail = f"a running Codex uses {other}, which is not watched"
        yield warn("other codex home", detail, f"agentdash --codex-home {other}")


def check_rules(home: CodexHome) -> Iterator[DoctorCheck]:
    """Yield how many rules a Codex would have here that let commands out of its sandbox, and what in their
    files is not understood."""
    files = rule_files(str(home.root.expanduser().absolute()), str(Path.cwd()))
    for file in files:
        trouble = f"{file.path}: {file.problem}" if file.problem else ""
        if file.unknown:
            statements = f"{len(file.unknown)} statement{'s' * (len(file.unknown) != 1)}"
            trouble = f"{file.path}: {statements} not understood, line {file.unknown[0]} first"
        if trouble:
            yield warn("codex rules", trouble, "what these let out of the sandbox is not known")
    allowing = [rule for file in files for rule in file.rules if rule.decision == "allow"]
    if allowing:
        those = f"{len(allowing)} rule{'s' * (len(allowing) != 1)}"
        detail = f"commands that {those} allow run outside of the sandbox; {allowing[0].place} first"
        yield ok("codex rules", detail)


def _check_versions(home: CodexHome, files: Sequence[Path]) -> DoctorCheck:
    newest = files[:_MAX_VERSION_SESSIONS]
    by_file = {path: _version(path) for path in newest}
    versions = sorted({each or "unknown" for each in by_file.values()}, key=numbers_of, reverse=True)
    listed = ", ".join(versions) or "none"
    shown = clean_line(str(home.root))
    detail = f"{shown}: {len(files)} sessions; of the newest {len(newest)} by Codex {listed}"
    newer = [path for path, version in by_file.items() if stand_in(version, LAST_VERSION)]
    if newer:
        detail += f"; later ones than {LAST_VERSION} are read by its rules"
        unknown = _unknown_lines(newer[:_MAX_NEWER_SESSIONS])
        listed = ", ".join(f"{count} {kind}" for kind, count in unknown.most_common()) or "none"
        detail += f", lines of unknown kinds: {listed}"
    return ok("codex home", detail)


def _unknown_lines(files: Iterable[Path]) -> Counter[str]:
    """Return how many lines of unknown kinds there are in files."""
    found: Counter[str] = Counter()
    for path in files:
        with suppress(OSError):
            for event in RolloutReader("x").read(islice(open_lines(path), _MAX_NEWER_LINES)):
                if isinstance(event, LineSkipped) and event.what == "unknown":
                    found[event.detail] += event.count
    return found


def _check_listed(errors: Sequence[OSError]) -> Iterator[DoctorCheck]:
    if errors:
        first = clean_line(f"{os.fsdecode(errors[0].filename or '?')}: {errors[0].strerror or errors[0]}")
        detail = f"{len(errors)} directories cannot be listed, {first} first"
        yield warn("codex directories", detail, "sessions in them are missing everywhere")


def _check_readable(files: Sequence[Path]) -> Iterator[DoctorCheck]:
    refused = [path for path in files if not os.access(path, os.R_OK)]
    if refused:
        shown = clean_line(str(refused[0]))
        detail = f"{len(refused)} of {len(files)} cannot be read, {shown} first"
        yield warn("codex files", detail, "chown them to yourself")
    elif files:
        yield ok("codex files", "all can be read")


def _version(path: Path) -> str | None:
    try:
        events = RolloutReader("x").read(islice(open_lines(path), 1))
    except OSError:
        return None
    return next((event.version for event in events if isinstance(event, ThreadStarted)), None)


def _needed(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that commands need; `CODEX_HOME` where it is not at its default."""
    return tuple(name for name in NEEDED if name != "CODEX_HOME" or environ.get(name))


def check_config(home: CodexHome, environ: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """Yield the configuration layers of a Codex that would be started here, and what in them has no
    effect."""
    installed = installed_codex()
    version = installed or default_version()[0]
    rules, nothing, cwd = rules_for(version) or latest_rules(), parse_options(()), str(Path.cwd())
    layers = read_layers(str(home.root.expanduser().absolute()), cwd, nothing, rules)
    for file in layers.problems:
        yield warn(
            "codex config", f"{file.path} cannot be read: {file.problem}", "Codex may not start with it"
        )
    counting = [file.path for file in (*layers.files, *layers.managed) if not file.problem]
    _, given = request(layers, nothing, rules, cwd=cwd)
    which = f"Codex {version} here" if installed else f"Codex is not installed; by the rules of {version}"
    detail = f"{which}: {', '.join(counting) or 'no configuration file'}"
    if given.refusal is not None:
        yield warn("codex config", detail, f"Codex will not start: {given.refusal}")
    else:
        decisive = given.origin(RequestField.FILESYSTEM)
        by = f" by {decisive.where}" if decisive else ""
        yield ok(
            "codex config", f"{detail}; files {given.policy.filesystem}, network {given.policy.network}{by}"
        )
    stack = Stack(nothing, layers.files, rules, managed=layers.managed_config)
    for rule in environment_rules(stack, _needed(environ)):
        advice = (
            "workers need these, and agentdash inside of the sandbox: list them in `include_only` or `set`"
        )
        yield warn("codex environment", str(rule), advice if rule.effect == "drops" else None)
    for setting in ineffective(layers, nothing, rules, given):
        yield warn("codex config", str(setting))
