"""`agentdash doctor`: what agentdash depends on, and what to do where it is missing, as the document
`agentdash.doctor/1` and as a table.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.command_rules import rule_files
from agentdash.agents.codex.home import CodexHome, default_home, open_lines, problem
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.agents.codex.rollout.records import LAST_VERSION
from agentdash.agents.knowledge import installed_agents, installed_codex, knowledge, screen_versions
from agentdash.collect.clock import SystemClock
from agentdash.collect.processes.linux import confinement
from agentdash.collect.processes.sensor import ProcessSensor
from agentdash.collect.remote.carrier import Carrier
from agentdash.collect.remote.child import CommandFailedError, run_there
from agentdash.collect.tail.fs_events import refusal
from agentdash.collect.tmux.sensor import TmuxSensor
from agentdash.collect.tmux.servers import own_socket, servers, tmux_version
from agentdash.config import Config, config_file
from agentdash.model.events import HostSeen, LineSkipped, PaneSeen, ProcessSeen, SourceSeen, ThreadStarted
from agentdash.model.pane import NO_SERVER, REFUSED, tmux_source
from agentdash.model.process import Process
from agentdash.model.sanitize import clean_line
from agentdash.model.versions import numbers_of, stand_in
from agentdash.report.elements import quantity, unreadable
from agentdash.store.status_file import START, UnpublishedError, outdated, read_published, status_file
from agentdash.version import described_version

_OLDEST_TMUX: Final = (3, 2)
"""Oldest tested version: 3.2a."""
_MIN_VISIBLE_PROCESSES: Final = 3
"""Fewer processes in /proc mean that those of others are hidden."""
_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


class DoctorCheck(msgspec.Struct):
    """The result of one check."""

    name: str
    level: Literal["ok", "warn", "fail"]
    """`warn`: something cannot be observed. `fail`: what is shown may be wrong, or nothing can be shown."""
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


def print_doctor(report: DoctorReport, console: Console) -> None:
    """Print one line per check, with the advice below it."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in report.checks:
        table.add_row(Text(check.level, _COLOURS[check.level]), Text(check.name), Text(check.detail))
        if check.advice:
            table.add_row("", "", Text(f"-> {check.advice}"))
    console.print(table)


def diagnose(config: Config, hosts: Sequence[Carrier] = ()) -> DoctorReport:
    """Run all checks."""
    sandbox = confinement(own_socket() if config.tmux else None)
    home = CodexHome(config.codex_home or default_home())
    probe = _Probe(config, sandbox)
    file = config_file()
    about = f"{described_version()}, Python {platform.python_version()}, {sys.platform}"
    defaults = "" if file.exists() else ": no such file, defaults apply"
    checks = [
        DoctorCheck("agentdash", "ok", about),
        DoctorCheck("config", "ok", f"{clean_line(str(file))}{defaults}"),
        *check_sandbox(sandbox, home, config),
        *check_agents(home, probe.processes.values()),
        *_check_tmux(config, sandbox, probe),
        _check_processes(probe, sandbox),
        *check_hosts(hosts),
        _check_file_events(home),
    ]
    return DoctorReport("agentdash.doctor/1", checks)


class _Probe:
    """The result of polling tmux and the processes once.

    Args:
        sandbox: the sandbox that agentdash runs in, if any.
    """

    def __init__(self, config: Config, sandbox: str | None) -> None:
        now = SystemClock().now()
        wanted = []
        if config.tmux and sandbox is None:
            wanted = servers(config.socket_names, config.socket_paths, default=True)
        # asyncio does not get notified of ended subprocesses inside Codex's sandbox
        events = asyncio.run(TmuxSensor(wanted).poll(now)) if wanted else []
        panes = [event.pane for event in events if isinstance(event, PaneSeen)]
        self.servers = [event for event in events if isinstance(event, SourceSeen)]
        """Health of each tmux server."""
        self.server_pids = {pane.key.server: pane.server_pid for pane in panes if pane.server_pid}
        polled = ProcessSensor().poll(now, {pane.pid for pane in panes})
        self.processes = {each.process.pid: each.process for each in polled if isinstance(each, ProcessSeen)}
        self.own = next(event.kernel for event in polled if isinstance(event, HostSeen))
        """Kernel facts of agentdash itself."""
        self.health = next(event.detail for event in polled if isinstance(event, SourceSeen))
        """Detail of the process source."""


def check_sandbox(sandbox: str | None, home: CodexHome, config: Config) -> Iterator[DoctorCheck]:
    """Yield whether agentdash itself runs in a sandbox, and whether there is a status file then."""
    path = status_file(home.root)
    now = SystemClock().now()
    try:
        published = read_published(path)
        trouble = outdated(published, now)
        detail = f"{clean_line(str(path))}, {published.age(now):.0f} s old, by pid {published.pid}"
    except UnpublishedError as error:
        trouble, detail = str(error), ""
    detail = (trouble or detail).partition(": start")[0]
    if sandbox is not None:
        advice = "panes and processes are only known from the status file"
        yield DoctorCheck("sandbox", "warn", f"agentdash itself runs inside one: {sandbox}", advice)
        yield DoctorCheck("status file", "fail" if trouble else "ok", detail, START if trouble else None)
        return
    yield DoctorCheck("sandbox", "ok", "agentdash runs outside any sandbox")
    if trouble is not None and config.publish:
        detail += "; agents inside sandboxes need a dashboard that is open, or `agentdash publish`"
    yield DoctorCheck("status file", "ok", detail)


# ---------------------------------------------------------------- tmux


def _check_tmux(config: Config, sandbox: str | None, probe: _Probe) -> Iterator[DoctorCheck]:
    if not config.tmux:
        yield DoctorCheck("tmux", "ok", "is left alone (--no-tmux, or the config file)")
        return
    if (version := tmux_version()) is None:
        advice = "install it to see worker CLIs in panes"
        yield DoctorCheck("tmux", "warn", "is not installed, or does not answer", advice)
        return
    numbers = tuple(map(int, re.findall(r"\d+", version)))  # of `tmux 3.3a`, `tmux next-3.6`
    if numbers and numbers < _OLDEST_TMUX:
        yield DoctorCheck("tmux", "warn", version, "agentdash is tested with 3.2a and later")
    else:
        yield DoctorCheck("tmux", "ok", version)
    if sandbox is not None:
        yield DoctorCheck("tmux server", "warn", "cannot be reached from inside a sandbox")
        return
    any_answers = any(server.ok for server in probe.servers)
    for server in probe.servers:
        if server.ok:
            yield DoctorCheck(server.name, "ok", server.detail)
        elif server.detail.startswith(REFUSED):
            advice = "nothing was sent to it: start the server from a shell outside every sandbox"
            yield DoctorCheck(server.name, "fail", server.detail, advice)
        elif server.name != tmux_source("default") or server.detail != NO_SERVER or not any_answers:
            advice = "start your agents in tmux, or name their server with -L or -S"
            yield DoctorCheck(server.name, "warn", server.detail, advice)
    for name, pid in probe.server_pids.items():
        env = probe.processes[pid].env if pid in probe.processes else None
        if flags := sorted(each for each in env or {} if each.startswith("CODEX_SANDBOX")):
            detail = f"the server's environment has {', '.join(flags)}"
            advice = f"new panes inherit what is not true of them: tmux set-environment -g -r {flags[0]}"
            yield DoctorCheck(f"tmux {name}", "warn", detail, advice)


# ---------------------------------------------------------------- processes, files


def _check_processes(probe: _Probe, sandbox: str | None) -> DoctorCheck:
    if sys.platform != "linux":
        detail = (
            f"{probe.health}; this system does not show the environment and the sandbox of other processes"
        )
        return DoctorCheck("processes", "warn", detail, "verdicts rest on what commands printed")
    if probe.own is None or probe.own.net is None:
        advice = "mount /proc; without it states come from files alone"
        return DoctorCheck("processes", "fail", "/proc does not show the own process", advice)
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    readable = sum(os.access(f"/proc/{pid}/environ", os.R_OK) for pid in pids)
    detail = f"{len(pids)} visible, {readable} with their environment; {probe.health}"
    if sandbox is None and len(pids) < _MIN_VISIBLE_PROCESSES:
        advice = "/proc hides others (hidepid, or a container): run agentdash where the agents run"
        return DoctorCheck("processes", "warn", detail, advice)
    return DoctorCheck("processes", "ok", detail)


def _check_file_events(home: CodexHome) -> DoctorCheck:
    if (reason := refusal([str(root) for root in home.roots])) is None:
        return DoctorCheck("file events", "ok", "changes are seen at once")
    advice = "raise fs.inotify.max_user_watches and max_user_instances with sysctl"
    return DoctorCheck("file events", "warn", f"{reason}: changes are seen by polling, within 2 s", advice)


# ------------------------------------------------------------
# Agents: those on PATH, and those that have sessions; the homes and the configuration of Codex


_MAX_VERSION_SESSIONS: Final = 200
"""Newest sessions whose headers are read for their Codex version: enough for all versions in use."""
_MAX_NEWER_SESSIONS: Final = 5
"""Newest sessions of versions that were not tested in which lines of unknown kinds are counted."""
_MAX_NEWER_LINES: Final = 20_000
"""Lines read of each of them: a second."""


def check_agents(home: CodexHome, processes: Iterable[Process]) -> Iterator[DoctorCheck]:
    """Yield a line for each agent that is installed or has sessions, and what stands in the way of reading
    these. Without Codex nothing is said about it."""
    agents = list(_check_installed())
    claude = ClaudeHome()
    if claude.projects.is_dir():
        count = quantity(sum(1 for _ in claude.transcripts()), "session file")
        agents.append(DoctorCheck("claude", "ok", f"{clean_line(str(claude.projects))}: {count}"))
    if home.root.expanduser().is_dir() or installed_codex():
        yield from check_homes(home, processes)
        yield from check_rules(home)
    elif not agents:
        advice = "start one, name a Codex home with CODEX_HOME, or look at `agentdash demo`"
        yield DoctorCheck("agents", "warn", "none is installed, and none has sessions here", advice)
    yield from agents


def _check_installed() -> Iterator[DoctorCheck]:
    """Check how well the agents on PATH are known."""
    for found in installed_agents():
        known, versions = knowledge()[found.agent], screen_versions(found.agent)
        screens = f"screens tested on {', '.join(versions)}" if versions else "screens untested"
        untested = f" ({known.untested})" if known.untested else ""
        sandbox = known.sandbox.replace("`", "")
        version = found.version or "of an unknown version"
        detail = f"{known.name} {version}: {found.path}; {screens}{untested}; sandbox: {sandbox}"
        advice = "its states may be wrong: `agentdash explain --screen` shows what its screen is read as"
        level: Literal["ok", "warn"] = "warn" if known.untested else "ok"
        yield DoctorCheck(found.agent, level, detail, advice if known.untested else None)


def check_homes(home: CodexHome, processes: Iterable[Process]) -> Iterator[DoctorCheck]:
    """Yield whether the sessions of a Codex home can be read, and the homes that running processes use."""
    if (trouble := problem(home)) is None:
        unlisted: list[OSError] = []
        files = list(home.rollouts(unlisted.append))
        yield _check_versions(home, files)
        yield from _check_files(unlisted, files)
    elif "permission denied" in trouble:
        yield DoctorCheck("codex home", "fail", trouble, "run as the user that owns it")
    else:
        yield DoctorCheck("codex home", "warn", trouble)
    codex = (process.env for process in processes if process.agent == "codex" and process.env)
    used = {Path(env["CODEX_HOME"]) for env in codex if env.get("CODEX_HOME")}
    for other in sorted(used - {home.root, home.root.resolve()}):
        detail = f"a running Codex uses {other}, which is not watched"
        yield DoctorCheck("other codex home", "warn", detail, f"agentdash --codex-home {other}")


def check_rules(home: CodexHome) -> Iterator[DoctorCheck]:
    """Yield what is not understood in the rules that let commands out of the sandbox of a Codex here."""
    for file in rule_files(str(home.root.expanduser().absolute()), str(Path.cwd())):
        trouble = file.problem
        if file.unknown:
            statements = quantity(len(file.unknown), "statement")
            trouble = f"{statements} not understood, line {file.unknown[0]} first"
        if trouble:
            advice = "what these let out of the sandbox is not known"
            yield DoctorCheck("codex rules", "warn", f"{file.path}: {trouble}", advice)


def _check_versions(home: CodexHome, files: Sequence[Path]) -> DoctorCheck:
    newest = files[:_MAX_VERSION_SESSIONS]
    by_file = {path: _version(path) for path in newest}
    versions = sorted({each or "unknown" for each in by_file.values()}, key=numbers_of, reverse=True)
    listed = ", ".join(versions) or "none"
    shown = clean_line(str(home.root))
    detail = f"{shown}: {len(files)} sessions; of the newest {len(newest)} by Codex {listed}"
    if newer := [path for path, version in by_file.items() if stand_in(version, LAST_VERSION)]:
        unknown = _unknown_lines(newer[:_MAX_NEWER_SESSIONS])
        listed = ", ".join(f"{count} {kind}" for kind, count in unknown.most_common()) or "none"
        detail += f"; later ones than {LAST_VERSION} are read by its rules, lines of unknown kinds: {listed}"
    return DoctorCheck("codex home", "ok", detail)


def _unknown_lines(files: Iterable[Path]) -> Counter[str]:
    """Return how many lines of unknown kinds there are in files."""
    found: Counter[str] = Counter()
    for path in files:
        with suppress(OSError):
            for event in RolloutReader("x").read(islice(open_lines(path), _MAX_NEWER_LINES)):
                if isinstance(event, LineSkipped) and event.what == "unknown":
                    found[event.detail] += event.count
    return found


def _version(path: Path) -> str | None:
    try:
        events = RolloutReader("x").read(islice(open_lines(path), 1))
    except OSError:
        return None
    return next((event.version for event in events if isinstance(event, ThreadStarted)), None)


def _check_files(errors: Sequence[OSError], files: Sequence[Path]) -> Iterator[DoctorCheck]:
    if errors:
        detail = f"{len(errors)} directories cannot be listed, first {unreadable(errors[0])}"
        yield DoctorCheck("codex directories", "warn", detail, "sessions in them are missing everywhere")
    if refused := [path for path in files if not os.access(path, os.R_OK)]:
        detail = f"{len(refused)} of {len(files)} cannot be read, {clean_line(str(refused[0]))} first"
        yield DoctorCheck("codex files", "warn", detail, "chown them to yourself")
    elif files:
        yield DoctorCheck("codex files", "ok", "all can be read")


# ------------------------------------------------------------
# The hosts of the configuration


_LIMIT_S: Final = 15.0
"""For all hosts together: ssh gives up a connection after 10 s."""
_MAX_OUTPUT_BYTES: Final = 1 << 16


def check_hosts(carriers: Sequence[Carrier]) -> list[DoctorCheck]:
    """Return whether each host can be reached, and has agentdash. All are tried at the same time."""

    async def check_all() -> list[DoctorCheck]:
        return await asyncio.gather(*map(_check_host, carriers))

    return asyncio.run(check_all()) if carriers else []


async def _check_host(carrier: Carrier) -> DoctorCheck:
    name = carrier.source
    try:
        done = await run_there(carrier.argv("--version"), limit_s=_LIMIT_S, max_bytes=_MAX_OUTPUT_BYTES)
    except CommandFailedError as error:
        return DoctorCheck(name, "warn", str(error))
    version = clean_line(done.output.decode("utf-8", "replace").strip().rpartition(" ")[2], 40)
    if done.code or not version:
        reason = done.error or f"{carrier.before[0]} ended with exit code {done.code}"
        return DoctorCheck(name, "warn", reason, "install agentdash there")
    own = described_version()
    differs = f", {own} here" if version != own else ""
    return DoctorCheck(name, "ok", f"reached by {carrier.before[0]}; agentdash {version}{differs}")
