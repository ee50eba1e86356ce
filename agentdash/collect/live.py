"""Choose and connect the live sources that the configuration enables; only these are imported."""

# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Container

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome, default_home
from agentdash.collect.git import GitSource
from agentdash.collect.processes.sensor import ProcessSource
from agentdash.collect.scheduler import PollScheduler
from agentdash.collect.sources.codex import CodexLogSource, StatusFeedSource
from agentdash.collect.sources.denied_paths import DeniedPathSource
from agentdash.collect.sources.session_logs import SessionLogSource, rollouts_of
from agentdash.collect.sources.workers import RequestSource, SessionFileSource
from agentdash.config import Config
from agentdash.model.source import Clock, Source


def live_sources(config: Config, clock: Clock, whole: Container[str] = ()) -> list[Source]:
    """Return the sources that the configuration enables, in the order in which a single pass polls them.

    Rollouts come before processes, so that a thread without an owner has really been left; so does the status
    feed, which has the directories of threads without a rollout; session files name the threads of processes,
    whose requests are read then; screens come last.

    Args:
        whole: threads whose logs are read whole at first.
    """
    scheduler = PollScheduler(clock)
    home = CodexHome(config.codex_home or default_home())
    sources: list[Source] = [SessionLogSource(rollouts_of(home), config.sessions, clock, scheduler, whole)]
    claude_home = ClaudeHome(config.claude_home)
    if claude_home.root.is_dir():  # without Claude Code there is nothing to be said about it
        from agentdash.collect.sources.session_logs import transcripts_of

        logs = transcripts_of(claude_home)
        sources.append(SessionLogSource(logs, config.sessions, clock, scheduler, whole))
    if config.tmux:
        sources.append(_tmux_panes(config, clock, scheduler))
    sources += [
        StatusFeedSource(home, clock, scheduler),
        ProcessSource(home, clock, scheduler),
        CodexLogSource(home, clock, scheduler),
    ]
    sources += [SessionFileSource(clock), RequestSource(clock), DeniedPathSource(clock)]
    sources += [GitSource(clock)]
    if config.tmux:
        from agentdash.collect.sources.workers import ScreenReadingSource

        sources.append(ScreenReadingSource(clock))
    if config.hosts:
        from agentdash.collect.remote.carrier import carrier
        from agentdash.collect.remote.link import RemoteSource

        carriers = [carrier(name, each, config.ssh_config) for name, each in config.hosts.items()]
        sources.append(RemoteSource(carriers, clock))
    return sources


def _tmux_panes(config: Config, clock: Clock, scheduler: PollScheduler) -> Source:
    from agentdash.collect.tmux.sensor import TmuxPaneSource, TmuxSensor
    from agentdash.collect.tmux.servers import current_pane, own_server, servers

    sensor = TmuxSensor(servers(config.socket_names, config.socket_paths, default=True), skip=current_pane())
    others = bool(config.socket_names or config.socket_paths or own_server() not in (None, "default"))
    return TmuxPaneSource(sensor, clock, scheduler, default_optional=others)
