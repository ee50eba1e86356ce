"""The commands: flags in, exit code out. Nothing heavy is imported before it is needed; Textual only when a screen opens."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click
from msgspec.structs import replace

from agentdash import __version__
from agentdash.config import THEMES, Config

if TYPE_CHECKING:
    from rich.console import Console

    from agentdash.clock import Clock
    from agentdash.facts.pane import PaneKey
    from agentdash.facts.worker import Snapshot
    from agentdash.hub import Hub

_F = TypeVar("_F", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)
_FLEET = (
    click.option("--codex-home", type=_PATH, metavar="DIR", help="Codex home to watch (default: $CODEX_HOME or ~/.codex)."),
    click.option("-L", "socket_names", multiple=True, metavar="NAME", help="Also watch this tmux server, as for `tmux -L`."),
    click.option("-S", "socket_paths", multiple=True, type=_PATH, metavar="PATH", help="Also watch this tmux socket, as for `tmux -S`."),
    click.option("--no-tmux", is_flag=True, default=None, help="Leave tmux alone."),
    click.option("--all", "everything", is_flag=True, default=None, help="Read all sessions, not only the newest 50 and the last day's."),
)
_LOOK = (
    click.option("--ascii", is_flag=True, default=None, help="Draw with plain ASCII characters."),
    click.option("--theme", type=click.Choice(THEMES), metavar="NAME", help=f"Colours: {', '.join(THEMES)}."),
)


def _options(*groups: tuple[Callable[[_F], _F], ...]) -> Callable[[_F], _F]:
    def add(command: _F) -> _F:
        for group in reversed(groups):
            for option in reversed(group):
                command = option(command)
        return command

    return add


def _config(given: dict[str, Any]) -> Config:
    """Flags before the subcommand and after it are the same flags; the later one wins."""
    context = click.get_current_context()
    flags = {**(context.find_object(dict) or {}), **{k: v for k, v in given.items() if v not in (None, ())}}
    return Config(
        codex_home=flags.get("codex_home"),
        tmux=not flags.get("no_tmux"),
        socket_names=tuple(flags.get("socket_names", ())),
        socket_paths=tuple(flags.get("socket_paths", ())),
        ascii=bool(flags.get("ascii")),
        theme=flags.get("theme"),
        sessions=None if flags.get("everything") else Config().sessions,
    )


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@_options(_FLEET, _LOOK)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context, /, **given: Any) -> None:
    """What every coding agent is doing, why, and in which sandbox: configured beside got.

    Without a command: the live dashboard.
    """
    context.obj = {k: v for k, v in given.items() if v not in (None, ())}
    if context.invoked_subcommand is None:
        _dashboard(_config({}))


@app.command()
@_options(_LOOK)
@click.option("--speed", type=click.FloatRange(0.1, 100), default=1.0, show_default=True, help="How fast the day goes by.")
def demo(speed: float, **given: Any) -> None:
    """The dashboard over sessions that ship with agentdash, moving. Needs neither tmux nor Codex."""
    from agentdash.demo.play import demo_hub

    config = _config(given)
    hub, clock = demo_hub(speed)
    _screen(hub, clock, config, banner="DEMO")


@app.command()
@_options(_FLEET, _LOOK)
@click.option("--right/--below", "right", default=True, help="Where the dashboard goes.  [default: right]")
@click.option("--size", default="40%", show_default=True, metavar="SIZE", help="Columns or rows, or a share with %.")
def split(right: bool, size: str, **given: Any) -> None:
    """Open the dashboard in a tmux split beside this pane."""
    from agentdash.sensors.tmux_actions import TmuxRefusedError
    from agentdash.sensors.tmux_actions import split as open_split

    try:
        open_split("right" if right else "below", size, [sys.executable, "-m", "agentdash", *_flags(_config(given))])
    except TmuxRefusedError as refusal:
        raise click.UsageError(str(refusal)) from refusal


@app.command()
@_options(_FLEET)
@click.argument("target", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.status/1.")
def status(target: str | None, as_json: bool, **given: Any) -> None:
    """One look at the whole fleet, or at TARGET: a thread id or its beginning, a pane (%4), or a name."""
    from agentdash.report.status import print_status, status_json

    config = _config(given)
    snapshot = _chosen(_look(config), target)
    if snapshot is None and config.sessions is not None:  # it may be older than those that are read at first
        snapshot = _chosen(_look(replace(config, sessions=None)), target)
    if snapshot is None:
        raise click.UsageError(f"no worker is called {target!r}; `agentdash status` lists them all")
    if as_json:
        click.echo(status_json(snapshot))
        return
    print_status(snapshot, _console())


@app.command()
@click.option("--codex-home", type=_PATH, metavar="DIR", help="Codex home to audit, or to find threads in.")
@click.argument("targets", nargs=-1, metavar="[PATH|THREAD]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.check/1.")
def check(targets: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Audit rollouts from their files alone: some, or all of a Codex home.

    Exit code 0: nothing was found. 1: there are findings. 2: something could not be read.
    """
    from agentdash.codex.home import CodexHome, default_home, problem
    from agentdash.report.check import check as audit
    from agentdash.report.check import find_rollouts, print_check
    from agentdash.report.document import document_json

    home = CodexHome(_config(given).codex_home or default_home())
    if not targets and (trouble := problem(home)) is not None:
        raise click.UsageError(trouble)
    try:
        report = audit(find_rollouts(home, targets))
    except LookupError as missing:
        raise click.UsageError(str(missing)) from missing
    if as_json:
        click.echo(document_json(report))
        return report.exit_code
    print_check(report, _console(soft_wrap=True))
    return report.exit_code


@app.command()
@click.option(
    "--screen",
    type=click.File("r", encoding="utf-8", errors="replace"),
    required=True,
    metavar="FILE",
    help="What a pane showed, as text; - for stdin.",
)
@click.option("--agent", required=True, metavar="NAME", help="Which worker CLI it was: codex, opencode, claude ...")
@click.option("--title", default="", metavar="TEXT", help="The pane's title.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.explain-screen/1.")
def explain(screen: TextIO, agent: str, title: str, as_json: bool) -> None:
    """What the rules for a worker CLI make of a screen: for bug reports, and for writing rules.

    tmux capture-pane -p -t %4 | agentdash explain --screen - --agent opencode
    """
    from agentdash.config import agents_folder
    from agentdash.facts.text import clean_block, clean_line
    from agentdash.report.document import document_json
    from agentdash.report.screen import print_screen, screen_report
    from agentdash.sensors.rules import RulesProblem, load_rules
    from agentdash.sensors.screens import read_screen, versions_tested

    try:
        rules = load_rules(agents_folder())
    except RulesProblem as problem:
        raise click.UsageError(str(problem)) from problem
    if agent not in rules:
        raise click.BadParameter(f"{agent!r} is none of {', '.join(sorted(rules))}", param_hint="--agent")
    reading = read_screen(agent, clean_block(screen.read()).split("\n"), title=clean_line(title), rules=rules)
    report = screen_report(reading, agent, versions_tested(agent, reading.rule, rules))
    if as_json:
        click.echo(document_json(report))
        return
    from rich.console import Console

    print_screen(report, Console(highlight=False))


@app.command()
@_options(_FLEET)
@click.option("--limit", type=click.IntRange(0), default=50, show_default=True, help="How many, newest first; 0 for all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.sessions/1.")
def sessions(limit: int, as_json: bool, **given: Any) -> None:
    """The sessions of a Codex home, newest first: live, past, archived and compressed ones."""
    from agentdash.report.document import document_json
    from agentdash.report.sessions import print_sessions, read_sessions

    home = _config(given).codex_home
    found = read_sessions(home, limit or None)
    if as_json:
        click.echo(document_json(found))
        return
    print_sessions(found, _console())


def _dashboard(config: Config) -> None:
    from agentdash.clock import SystemClock
    from agentdash.hub import Hub
    from agentdash.live import live_sources

    clock = SystemClock()
    _screen(Hub(live_sources(config, clock), clock), clock, config)


def _screen(hub: Hub, clock: Clock, config: Config, banner: str | None = None) -> None:
    import asyncio

    from agentdash.tui.app import AgentDash
    from agentdash.tui.options import Options

    async def jump(key: PaneKey) -> str | None:
        from agentdash.sensors.tmux_actions import TmuxRefusedError
        from agentdash.sensors.tmux_actions import jump as go

        try:
            await asyncio.to_thread(go, key)
        except TmuxRefusedError as refusal:
            return str(refusal)
        return None

    async def show() -> None:
        running = asyncio.create_task(hub.run())
        try:
            await AgentDash(hub, clock, options=Options(config.ascii, config.theme, banner), jump=jump).run_async()
        finally:
            running.cancel()

    asyncio.run(show())


def _look(config: Config) -> Snapshot:
    import asyncio

    from agentdash.clock import SystemClock
    from agentdash.hub import Hub
    from agentdash.live import live_sources

    clock = SystemClock()
    return asyncio.run(Hub(live_sources(config, clock), clock).once())


def _console(*, soft_wrap: bool = False) -> Console:
    """As wide as the terminal; wide enough for a whole row where the output goes to a file or a program."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200, highlight=False, soft_wrap=soft_wrap)


def _chosen(snapshot: Snapshot, target: str | None) -> Snapshot | None:
    """The snapshot of the workers that are meant; None where there are none."""
    if target is None:
        return snapshot
    workers = snapshot.workers
    for match in (
        [w for w in workers if w.is_called(target)],
        [w for w in workers if len(target) >= 4 and w.id.startswith(target)],
    ):
        if match:
            return replace(snapshot, workers=tuple(match))
    return None


def _flags(config: Config) -> list[str]:
    """The flags that make a new agentdash have this configuration."""
    flags = ["--codex-home", str(config.codex_home)] if config.codex_home else []
    flags += [part for name in config.socket_names for part in ("-L", name)]
    flags += [part for path in config.socket_paths for part in ("-S", str(path))]
    flags += ["--theme", config.theme] if config.theme else []
    switches = {"--no-tmux": not config.tmux, "--ascii": config.ascii, "--all": config.sessions is None}
    return flags + [flag for flag, on in switches.items() if on]


def main() -> None:
    """The console script: every problem is one line on stderr and exit 2."""
    try:
        sys.exit(app.main(standalone_mode=False, prog_name="agentdash"))
    except click.ClickException as problem:
        click.echo(f"agentdash: {problem.format_message().rstrip('.')} (agentdash --help shows what there is)", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read has left; nothing is wrong
        sys.exit(0)
