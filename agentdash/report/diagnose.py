"""Run the checks of `agentdash doctor`: what agentdash depends on, and what to do if it is missing.

`doctor.py` has the document and its rendering.
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
from typing import Final

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
from agentdash.report.doctor import DoctorCheck, DoctorReport, fail, ok, warn
from agentdash.report.elements import quantity
from agentdash.store.status_file import START, UnpublishedError, outdated, read_published, status_file
from agentdash.version import described_version

_OLDEST_TMUX: Final = (3, 2)
"""Oldest tested version: 3.2a."""
_MIN_VISIBLE_PROCESSES: Final = 3
"""Fewer processes in /proc mean that those of others are hidden."""


def diagnose(config: Config, hosts: Sequence[Carrier] = ()) -> DoctorReport:
    """Run all checks."""
    sandbox = confinement(own_socket() if config.tmux else None)
    home = CodexHome(config.codex_home or default_home())
    probe = _Probe(config, sandbox)
    file = config_file()
    checks = [
        ok("agentdash", f"{described_version()}, Python {platform.python_version()}, {sys.platform}"),
        ok("config", f"{clean_line(str(file))}{'' if file.exists() else ': no such file, defaults apply'}"),
        *_check_sandbox(sandbox, home, config),
        *check_agents(home, probe.processes.values()),
        *_check_tmux(config, sandbox, probe),
        *_check_processes(probe, sandbox),
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
        self.processes = {
            event.process.pid: event.process for event in polled if isinstance(event, ProcessSeen)
        }
        self.own = next(event.kernel for event in polled if isinstance(event, HostSeen))
        """Kernel facts of agentdash itself."""
        self.health = next(event.detail for event in polled if isinstance(event, SourceSeen))
        """Detail of the process source."""


# ---------------------------------------------------------------- agentdash itself


def _check_sandbox(sandbox: str | None, home: CodexHome, config: Config) -> Iterator[DoctorCheck]:
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
        inside = f"agentdash itself runs inside one: {sandbox}"
        yield warn("sandbox", inside, "panes and processes are only known from the status file")
        yield fail("status file", detail, START) if trouble else ok("status file", detail)
        return
    yield ok("sandbox", "agentdash runs outside any sandbox")
    if trouble is not None and config.publish:
        detail += "; agents inside sandboxes need a dashboard that is open, or `agentdash publish`"
    yield ok("status file", detail)


# ---------------------------------------------------------------- tmux


def _check_tmux(config: Config, sandbox: str | None, probe: _Probe) -> Iterator[DoctorCheck]:
    if not config.tmux:
        yield ok("tmux", "is left alone (--no-tmux, or the config file)")
        return
    if (version := tmux_version()) is None:
        advice = "install it to see worker CLIs in panes"
        yield warn("tmux", "is not installed, or does not answer", advice)
        return
    numbers = tuple(map(int, re.findall(r"\d+", version)))  # of `tmux 3.3a`, `tmux next-3.6`
    if numbers and numbers < _OLDEST_TMUX:
        yield warn("tmux", version, "agentdash is tested with 3.2a and later")
    else:
        yield ok("tmux", version)
    if sandbox is not None:
        yield warn("tmux server", "cannot be reached from inside a sandbox")
        return
    any_answers = any(server.ok for server in probe.servers)
    for server in probe.servers:
        if server.ok:
            yield ok(server.name, server.detail)
        elif server.detail.startswith(REFUSED):
            advice = "nothing was sent to it: start the server from a shell outside every sandbox"
            yield fail(server.name, server.detail, advice)
        elif server.name != tmux_source("default") or server.detail != NO_SERVER or not any_answers:
            advice = "start your agents in tmux, or name their server with -L or -S"
            yield warn(server.name, server.detail, advice)
    for name, pid in probe.server_pids.items():
        if (process := probe.processes.get(pid)) is not None:
            yield from _check_server(name, process)


def _check_server(server: str, process: Process) -> Iterator[DoctorCheck]:
    flags = sorted(name for name in process.env or {} if name.startswith("CODEX_SANDBOX"))
    if flags:
        yield warn(
            f"tmux {server}",
            f"the server's environment has {', '.join(flags)}",
            f"new panes inherit what is not true of them: tmux set-environment -g -r {flags[0]}",
        )


# ---------------------------------------------------------------- processes, files


def _check_processes(probe: _Probe, sandbox: str | None) -> Iterator[DoctorCheck]:
    if sys.platform != "linux":
        reason = "this system does not show the environment and the sandbox of other processes"
        yield warn("processes", f"{probe.health}; {reason}", "verdicts rest on what commands printed")
        return
    if probe.own is None or probe.own.net is None:
        advice = "mount /proc; without it states come from files alone"
        yield fail("processes", "/proc does not show the own process", advice)
        return
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    readable = sum(os.access(f"/proc/{pid}/environ", os.R_OK) for pid in pids)
    detail = f"{len(pids)} visible, {readable} with their environment; {probe.health}"
    if sandbox is None and len(pids) < _MIN_VISIBLE_PROCESSES:
        advice = "/proc hides others (hidepid, or a container): run agentdash where the agents run"
        yield warn("processes", detail, advice)
    else:
        yield ok("processes", detail)


def _check_file_events(home: CodexHome) -> DoctorCheck:
    if (reason := refusal([str(root) for root in home.roots])) is None:
        return ok("file events", "changes are seen at once")
    advice = "raise fs.inotify.max_user_watches and max_user_instances with sysctl"
    return warn("file events", f"{reason}: changes are seen by polling, within 2 s", advice)


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
        agents.append(ok("claude", f"{clean_line(str(claude.projects))}: {count}"))
    if home.root.expanduser().is_dir() or installed_codex():
        yield from check_homes(home, processes)
        yield from check_rules(home)
    elif not agents:
        advice = "start one, name a Codex home with CODEX_HOME, or look at `agentdash demo`"
        yield warn("agents", "none is installed, and none has sessions here", advice)
    yield from agents


def _check_installed() -> Iterator[DoctorCheck]:
    """Check how well the agents on PATH are known."""
    for found in installed_agents():
        known, versions = knowledge()[found.agent], screen_versions(found.agent)
        version = found.version or "of an unknown version"
        detail = f"{known.name} {version}: {found.path}"
        sandbox = f"sandbox: {known.sandbox.replace('`', '')}"
        screens = f"screens tested on {', '.join(versions)}" if versions else "screens untested"
        if not known.untested:
            yield ok(found.agent, f"{detail}; {screens}; {sandbox}")
        else:
            advice = "its states may be wrong: `agentdash explain --screen` shows what its screen is read as"
            yield warn(found.agent, f"{detail}; {screens} ({known.untested}); {sandbox}", advice)


def check_homes(home: CodexHome, processes: Iterable[Process]) -> Iterator[DoctorCheck]:
    """Yield whether the sessions of a Codex home can be read, and the homes that running processes use."""
    if (trouble := problem(home)) is None:
        unlisted: list[OSError] = []
        files = list(home.rollouts(unlisted.append))
        yield _check_versions(home, files)
        yield from _check_files(unlisted, files)
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
    """Yield what is not understood in the rules that let commands out of the sandbox of a Codex here."""
    for file in rule_files(str(home.root.expanduser().absolute()), str(Path.cwd())):
        trouble = file.problem
        if file.unknown:
            statements = quantity(len(file.unknown), "statement")
            trouble = f"{statements} not understood, line {file.unknown[0]} first"
        if trouble:
            advice = "what these let out of the sandbox is not known"
            yield warn("codex rules", f"{file.path}: {trouble}", advice)


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


def _check_files(errors: Sequence[OSError], files: Sequence[Path]) -> Iterator[DoctorCheck]:
    if errors:
        first = clean_line(f"{os.fsdecode(errors[0].filename or '?')}: {errors[0].strerror or errors[0]}")
        detail = f"{len(errors)} directories cannot be listed, {first} first"
        yield warn("codex directories", detail, "sessions in them are missing everywhere")
    if refused := [path for path in files if not os.access(path, os.R_OK)]:
        detail = f"{len(refused)} of {len(files)} cannot be read, {clean_line(str(refused[0]))} first"
        yield warn("codex files", detail, "chown them to yourself")
    elif files:
        yield ok("codex files", "all can be read")


def _version(path: Path) -> str | None:
    try:
        events = RolloutReader("x").read(islice(open_lines(path), 1))
    except OSError:
        return None
    return next((event.version for event in events if isinstance(event, ThreadStarted)), None)


# ------------------------------------------------------------
# Checks of `agentdash doctor` on the hosts of the configuration


_LIMIT_S: Final = 15.0
"""For all hosts together: ssh gives up a connection after 10 s."""
_MAX_OUTPUT_BYTES: Final = 1 << 16


def check_hosts(carriers: Sequence[Carrier]) -> list[DoctorCheck]:
    """Return whether each host can be reached, and has agentdash. All are tried at the same time."""

    async def check_all() -> list[DoctorCheck]:
        return await asyncio.gather(*map(_check_host, carriers))

    return asyncio.run(check_all()) if carriers else []


async def _check_host(carrier: Carrier) -> DoctorCheck:
    name = clean_line(f"host {carrier.name}")
    try:
        done = await run_there(carrier.argv("--version"), limit_s=_LIMIT_S, max_bytes=_MAX_OUTPUT_BYTES)
    except CommandFailedError as error:
        return warn(name, str(error))
    version = clean_line(done.output.decode("utf-8", "replace").strip().rpartition(" ")[2], 40)
    if done.code or not version:
        reason = done.error or f"{carrier.before[0]} ended with exit code {done.code}"
        return warn(name, reason, "install agentdash there")
    own = described_version()
    differs = f", {own} here" if version != own else ""
    return ok(name, f"reached by {carrier.before[0]}; agentdash {version}{differs}")
