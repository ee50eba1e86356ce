"""Looks at what agentdash depends on, one thing after the other, and says what to do where something is missing."""

from __future__ import annotations

import asyncio
import locale
import os
import platform
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from agentdash import __version__
from agentdash.agents.codex.home import CodexHome, default_home, locks, open_lines, problem
from agentdash.agents.codex.rollout.kinds import LAST_VERSION
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.collect.clock import SystemClock
from agentdash.collect.processes.confinement import confinement
from agentdash.collect.processes.sensor import ProcessSensor
from agentdash.collect.tail.fs_events import refusal
from agentdash.collect.tmux.sensor import TmuxSensor, own_socket, servers, tmux_version
from agentdash.config import Config, config_file, state_folder
from agentdash.engine.judge.findings.tmux_boundary import is_sandboxed
from agentdash.model.events import HostSeen, PaneSeen, ProcessSeen, SourceSeen, ThreadStarted
from agentdash.model.process import Kernel, Process
from agentdash.model.sanitize import clean_line
from agentdash.report.doctor import CheckReport, DoctorReport
from agentdash.store.status_file import START, UnpublishedError, outdated, read_published, status_file

_NEWEST: Final = 200
"""Sessions whose heads are read for the versions that wrote them."""
_SMALLEST: Final = (30, 8)
"""Columns and lines under which a screen shows counts alone."""
_OLDEST_TMUX: Final = (3, 2)


def diagnose(config: Config, settings: str, environ: Mapping[str, str] = os.environ) -> DoctorReport:
    """All checks.

    Args:
        config: what is watched.
        settings: how the config file is, in a few words.
        environ: agentdash's own environment.
    """
    sandboxed = confinement(own_socket() if config.tmux else None)
    home = CodexHome(config.codex_home or default_home())
    world = _World(config, sandboxed)
    checks = [
        CheckReport("agentdash", "ok", f"{__version__}, Python {platform.python_version()}, {sys.platform}"),
        CheckReport("config", "ok", f"{clean_line(str(config_file(environ)))}: {settings}"),
        *_sandbox(sandboxed, home, config),
        *_homes(home, world),
        *_tmux(config, sandboxed, world),
        *_process_facts(home, world, sandboxed),
        *_file_events(home),
        *_terminal(environ),
        _state(),
        _debug_log(config),
    ]
    return DoctorReport("agentdash.doctor/1", checks)


class _World:
    """What a look at tmux and at processes gave."""

    def __init__(self, config: Config, sandboxed: str | None) -> None:
        now = SystemClock().now()
        wanted = (
            servers(config.socket_names, config.socket_paths, default=True)
            if config.tmux and sandboxed is None
            else []
        )
        panes = (
            asyncio.run(TmuxSensor(wanted).poll(now)) if wanted else []
        )  # subprocesses are not heard of inside of Codex's sandbox
        self.servers = [event for event in panes if isinstance(event, SourceSeen)]
        seen = [event.pane for event in panes if isinstance(event, PaneSeen)]
        self.server_pids = {pane.key.server: pane.server_pid for pane in seen if pane.server_pid}
        events = ProcessSensor().poll(now, {pane.pid for pane in seen})
        self.processes = {
            event.process.pid: event.process for event in events if isinstance(event, ProcessSeen)
        }
        self.own = next(event.kernel for event in events if isinstance(event, HostSeen))
        self.health = next(event.detail for event in events if isinstance(event, SourceSeen))


# ---------------------------------------------------------------- agentdash's own place


def _sandbox(sandboxed: str | None, home: CodexHome, config: Config) -> Iterator[CheckReport]:
    path = status_file(home.root)
    now = SystemClock().now()
    try:
        published = read_published(path)
        trouble = outdated(published, now)
        told = trouble or f"{clean_line(str(path))}, {published.age(now):.0f} s old, by pid {published.pid}"
    except UnpublishedError as error:
        trouble = told = str(error)
    if sandboxed is None:
        yield CheckReport("sandbox", "ok", "agentdash runs outside of any sandbox")
        advice = (
            None
            if trouble is None or not config.publish
            else "agents inside of sandboxes need it: keep the dashboard open, or run `agentdash publish`"
        )
        yield CheckReport(
            "status file",
            "ok" if trouble is None or not config.publish else "warn",
            told.partition(": start")[0],
            advice,
        )
        return
    yield CheckReport(
        "sandbox",
        "warn",
        f"agentdash itself runs inside of one: {sandboxed}",
        "panes and processes can only be told by the status file",
    )
    yield CheckReport(
        "status file",
        "ok" if trouble is None else "fail",
        told.partition(": start")[0],
        START if trouble else None,
    )


def _state() -> CheckReport:
    folder = state_folder()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if os.access(nearest, os.W_OK | os.X_OK):
        return CheckReport("state", "ok", f"{clean_line(str(folder))} can be written")
    return CheckReport(
        "state",
        "warn",
        f"{clean_line(str(folder))} cannot be written",
        "without it there is no status file: set XDG_STATE_HOME",
    )


# ---------------------------------------------------------------- Codex


def _homes(home: CodexHome, world: _World) -> Iterator[CheckReport]:
    shown = clean_line(str(home.root))
    if trouble := problem(home):
        denied = "permission denied" in trouble
        yield CheckReport(
            "codex home",
            "fail" if denied else "warn",
            trouble,
            "run as the user whose Codex it is" if denied else None,
        )
    else:
        files = list(home.rollouts())
        versions: Counter[str] = Counter(_version(path) or "unknown" for path in files[:_NEWEST])
        newest = max(versions, key=_numbers, default="")
        told = ", ".join(sorted(versions, key=_numbers, reverse=True)) or "none"
        late = _numbers(newest)[:2] > _numbers(LAST_VERSION)
        yield CheckReport(
            "codex home",
            "warn" if late else "ok",
            f"{shown}: {len(files)} sessions; of the newest {min(len(files), _NEWEST)} by Codex {told}",
            f"agentdash was tested up to {LAST_VERSION}: look for a newer agentdash" if late else None,
        )
        yield from _unreadable(files)
    used = {
        Path(p.env["CODEX_HOME"])
        for p in world.processes.values()
        if p.agent == "codex" and p.env and p.env.get("CODEX_HOME")
    }
    for other in sorted(used - {home.root, home.root.resolve()}):
        yield CheckReport(
            "other codex home",
            "warn",
            f"a running Codex uses {other}, which is not watched",
            f"agentdash --codex-home {other}",
        )


def _unreadable(files: list[Path]) -> Iterator[CheckReport]:
    refused = [path for path in files if not os.access(path, os.R_OK)]
    if refused:
        shown = clean_line(str(refused[0]))
        yield CheckReport(
            "codex files",
            "warn",
            f"{len(refused)} of {len(files)} cannot be read, {shown} first",
            "chown them to yourself",
        )
    elif files:
        yield CheckReport("codex files", "ok", "all can be read")


def _version(path: Path) -> str | None:
    try:
        events = RolloutReader("x").read(islice(open_lines(path), 1))
    except OSError:
        return None
    return next((event.version for event in events if isinstance(event, ThreadStarted)), None)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("-")[0].split(".") if part.isdecimal())


# ---------------------------------------------------------------- tmux


def _tmux(config: Config, sandboxed: str | None, world: _World) -> Iterator[CheckReport]:
    if not config.tmux:
        yield CheckReport("tmux", "ok", "is left alone (--no-tmux, or the config file)")
        return
    if (version := tmux_version()) is None:
        yield CheckReport(
            "tmux", "warn", "is not installed, or does not answer", "install it to see worker CLIs in panes"
        )
        return
    old = (_numbers("".join(c for c in version if c.isdecimal() or c == ".")) or _OLDEST_TMUX) < _OLDEST_TMUX
    yield CheckReport(
        "tmux", "warn" if old else "ok", version, "agentdash is tested with 3.2a and later" if old else None
    )
    if sandboxed is not None:
        yield CheckReport("tmux server", "warn", "cannot be reached from inside of a sandbox")
        return
    for server in world.servers:
        advice = None if server.ok else "start your agents in tmux, or name their server with -L or -S"
        yield CheckReport(server.name, "ok" if server.ok else "warn", server.detail, advice)
    for name, pid in world.server_pids.items():
        if (process := world.processes.get(pid)) is not None:
            yield from _server(name, process, world.own)


def _server(server: str, process: Process, own: Kernel | None) -> Iterator[CheckReport]:
    restart = "what is started in its panes stays so, whatever is approved: restart it outside"
    if process.kernel is not None and own is not None and is_sandboxed(process.kernel, own):
        yield CheckReport(
            f"tmux {server}",
            "fail",
            f"the server (pid {process.pid}) itself runs inside of a sandbox",
            restart,
        )
    flags = sorted(name for name in process.env or {} if name.startswith("CODEX_SANDBOX"))
    if flags:
        advice = f"new panes inherit what is not true of them: tmux set-environment -g -r {flags[0]}"
        yield CheckReport(
            f"tmux {server}", "warn", f"the server's environment has {', '.join(flags)}", advice
        )


# ---------------------------------------------------------------- processes, files, terminal


def _process_facts(home: CodexHome, world: _World, sandboxed: str | None) -> Iterator[CheckReport]:
    if sys.platform != "linux":
        why = "this system tells nobody the environment and the sandbox of other processes"
        yield CheckReport(
            "processes", "warn", f"{world.health}; {why}", "verdicts rest on what commands printed"
        )
        return
    if world.own is None or world.own.net is None:
        yield CheckReport(
            "processes",
            "fail",
            "/proc does not tell of our own process",
            "mount /proc; states are guessed from files alone",
        )
        return
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    readable = sum(os.access(f"/proc/{pid}/environ", os.R_OK) for pid in pids)
    hidden = sandboxed is None and len(pids) < 3
    advice = (
        "/proc hides others (hidepid, or a container): run agentdash where the agents run" if hidden else None
    )
    told = f"{len(pids)} seen, the environment of {readable} can be read; {world.health}"
    yield CheckReport("processes", "warn" if hidden else "ok", told, advice)
    if not locks(home, 0.0).readable:
        yield CheckReport(
            "locks", "warn", "/proc/locks cannot be read", "who works on a thread is told by open files alone"
        )


def _file_events(home: CodexHome) -> Iterator[CheckReport]:
    limits = {
        name: _number(Path("/proc/sys/fs/inotify", name))
        for name in ("max_user_watches", "max_user_instances")
    }
    told = ", ".join(f"{name} {value}" for name, value in limits.items() if value is not None)
    if (why := refusal([str(root) for root in home.roots])) is not None:
        advice = "changes are seen by polling, within 2 s; raise fs.inotify.max_user_watches and max_user_instances with sysctl"
        yield CheckReport("file events", "warn", f"{why} ({told})" if told else why, advice)
        return
    yield CheckReport("file events", "ok", told or "there are some")


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None


def _terminal(environ: Mapping[str, str]) -> Iterator[CheckReport]:
    if not sys.stdout.isatty():
        yield CheckReport("terminal", "ok", "the output goes to a file or a program")
        return
    size = shutil.get_terminal_size()
    small = size.columns < _SMALLEST[0] or size.lines < _SMALLEST[1]
    yield CheckReport(
        "terminal",
        "warn" if small else "ok",
        f"{size.columns}x{size.lines}",
        "under 30x8 only counts are shown" if small else None,
    )
    term, deep = environ.get("TERM", ""), environ.get("COLORTERM", "")
    if environ.get("NO_COLOR"):
        yield CheckReport("colours", "ok", "none: NO_COLOR is set")
    elif deep in ("truecolor", "24bit"):
        yield CheckReport("colours", "ok", "16 million")
    elif "256color" in term:
        yield CheckReport("colours", "ok", "256")
    else:
        yield CheckReport(
            "colours", "warn", f"16 or fewer (TERM={clean_line(term)})", "agentdash --theme terminal"
        )
    encoding = locale.getencoding()
    unicode = encoding.lower().replace("-", "") == "utf8"
    yield CheckReport(
        "characters",
        "ok" if unicode else "warn",
        encoding,
        None if unicode else "agentdash --ascii, or set LANG to a UTF-8 locale",
    )


def _debug_log(config: Config) -> CheckReport:
    if config.debug_log is None:
        return CheckReport("debug log", "ok", "off; --debug-log FILE writes tracebacks")
    return CheckReport("debug log", "ok", clean_line(str(config.debug_log)))
