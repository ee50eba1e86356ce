"""`agentdash explain`: the evidence for a worker's state and verdict."""

from __future__ import annotations

from typing import Any, TextIO

import click
import msgspec

from agentdash.agents.registry import adapters
from agentdash.agents.screen_reader import read_screen, versions_tested
from agentdash.cli.fleet_access import exit_code, read_fleet
from agentdash.cli.options import FLEET_OPTIONS, HOST_OPTIONS, config_of, json_option, not_empty, options
from agentdash.cli.output import console, print_document
from agentdash.guide import sections
from agentdash.model.sanitize import clean_block, clean_line
from agentdash.model.suggestions import did_you_mean, suggest
from agentdash.report.explain import ScreenshotReport, explain_report, print_explained, print_screen


@click.command()
@options(FLEET_OPTIONS, HOST_OPTIONS)
@click.argument("target", required=False, callback=not_empty)
@click.option(
    "--screen",
    type=click.File("r", encoding="utf-8", errors="replace"),
    metavar="FILE",
    help="Explain the captured text of a pane instead of a worker; - for stdin.",
)
@click.option(
    "--agent", metavar="NAME", help="With --screen: the worker CLI, such as codex, opencode or claude."
)
@json_option("explain/3")
def explain(target: str | None, screen: TextIO | None, agent: str | None, as_json: bool, **given: Any) -> int:
    """Explain the state and verdict of TARGET: all evidence, with what disagrees or could not be read.

    TARGET may also be the name of a state or of a kind of finding: what it means, and what to do.

    With --screen: show what the rules of a worker CLI match on a screen, for bug reports and rule writers.
    FILE is the text of a pane, or what `explain %4 --json` printed, which has title, cursor and size.

    \b
    agentdash explain %4
    agentdash explain stale-network-flag
    agentdash explain %4 --json > bug.json; agentdash explain --screen bug.json
    tmux capture-pane -p -t %4 | agentdash explain --screen - --agent opencode
    """
    if screen is not None:
        shot = _screenshot(screen.read(), agent)
        reading = read_screen(
            shot.agent,
            clean_block("\n".join(shot.screen)).split("\n"),
            title=clean_line(shot.title),
            cursor_visible=None if shot.cursor is None else shot.cursor == "visible",
            width=shot.width,
            height=shot.height,
        )
        print_screen(reading, shot.agent, versions_tested(shot.agent, reading.rule), console())
        return 0
    if target is None:
        raise click.UsageError("missing TARGET (a thread id or its prefix, a pane, or a name) or --screen")
    guide = sections()
    if target in guide and not as_json:
        console().print(f"{target}\n\n{guide[target].replace('**', '')}", markup=False)
        return 0
    try:
        snapshot, via = read_fleet(config_of(given), target)
    except click.UsageError as problem:
        raise click.UsageError(f"{problem.message}{did_you_mean(target, guide)}") from problem
    if as_json:
        print_document(explain_report(snapshot, via))
    else:
        print_explained(snapshot, console(soft_wrap=True))
    return exit_code(snapshot, given)


def _screenshot(text: str, agent: str | None) -> ScreenshotReport:
    """Return a screen as it is in a file: its text, or a document of one worker with a pane.

    Raises:
        click.BadParameter: the document has no pane, or there is no such worker CLI.
    """
    shot = ScreenshotReport(
        agent=agent or "", title="", width=0, height=0, cursor=None, screen=text.split("\n")
    )
    if text.lstrip().startswith("{"):
        try:
            shot = msgspec.convert(msgspec.json.decode(text)["workers"][0]["screenshot"], ScreenshotReport)
        except (msgspec.DecodeError, LookupError, TypeError, RecursionError) as error:
            what = "give a screen, or what `explain %4 --json` printed"
            raise click.BadParameter(f"it has no pane: {what}", param_hint="--screen") from error
    shot.agent = agent or shot.agent
    if shot.agent not in adapters():
        wrong = f"{shot.agent!r} is unknown{suggest(shot.agent, sorted(adapters()))}"
        raise click.BadParameter(wrong, param_hint="--agent")
    return shot
