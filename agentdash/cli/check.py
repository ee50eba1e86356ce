"""`agentdash check`: audit session logs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from agentdash import __version__
from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome, default_home, problem
from agentdash.agents.session_rows import DATABASES
from agentdash.cli.options import CODEX_HOME_OPTION, NO_CACHE_OPTION, config_of, json_option, not_empty
from agentdash.cli.output import Progress, console, print_document, print_text, warn_unreadable
from agentdash.cli.past_sessions import recalled
from agentdash.cli.stdin import STDIN, STDIN_NAME, without_stdin
from agentdash.config import Config, state_folder
from agentdash.files import file_size
from agentdash.model.memory import ThreadMemory
from agentdash.model.sanitize import clean_line
from agentdash.report.audit import audit, find_logs, thread_name
from agentdash.report.check import (
    FAIL_ON,
    CheckReport,
    denials_report,
    gate_report,
    print_check,
    print_denials,
    print_gate,
    sarif,
)
from agentdash.store.digests import DigestStore


@click.command()
@CODEX_HOME_OPTION
@click.argument("targets", nargs=-1, metavar="[PATH|THREAD]...", callback=not_empty)
@click.option("--denials", is_flag=True, help="List what was denied, by target, instead of findings.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(("text", "json", "sarif")),
    help="Print text, JSON (as --json), or SARIF 2.1.0 for CI.  [default: text]",
)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice(FAIL_ON),
    metavar="KIND",
    help="Exit with 1 only for this: a kind of finding, wider, narrower, label, any (finding or open "
    "denial), or unverified (threads). May be repeated.  [default: any]",
)
@NO_CACHE_OPTION
@json_option("check/2", "check-denials/2")
def check(
    targets: tuple[str, ...],
    denials: bool,
    format_: str | None,
    fail_on: tuple[str, ...],
    no_cache: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Audit session logs: those of PATHs and THREADs, or all of Codex, Claude Code and other CLIs.

    Exit code 0: no findings, and a success after each denial. 1: findings, or denials without one. 2: a file
    cannot be read whole. The last line may be torn: it is still written.

    \b
    agentdash check                        all sessions
    agentdash check 01a1fa8b session.jsonl --json; zstdcat x.zst | agentdash check -
    agentdash check sessions/ --format sarif --fail-on wider --fail-on denied-network
    agentdash check --denials              what sandboxes refused, by target
    """
    if as_json and format_ not in (None, "json"):
        raise click.UsageError(f"--json and --format {format_} contradict each other")
    if denials and (fail_on or format_ == "sarif"):
        option = "--fail-on" if fail_on else "--format sarif"
        raise click.UsageError(f"{option} is about findings: it cannot be used with --denials")
    as_json = as_json or format_ == "json"
    config = config_of(given)
    digests = None if no_cache or STDIN in targets else DigestStore(state_folder())
    with without_stdin(targets) as files:
        report = _audit(config, files, digests)
        _tell_left_out(report, targets, files)
    copies = {file for target, file in zip(targets, files, strict=True) if target == STDIN}
    for thread in report.threads:
        thread.file = STDIN_NAME if thread.file in copies else thread.file
    warn_unreadable(report.problems)
    report.gate = gate_report(report, fail_on) if fail_on else None
    shown = denials_report(report) if denials else report
    if as_json:
        print_document(shown)
    elif format_ == "sarif":
        print_text(sarif(report, version=__version__, cwd=Path.cwd()))
    elif isinstance(shown, CheckReport):
        out = console(soft_wrap=True)
        print_check(report, out)
        if report.gate is not None:
            print_gate(report, report.gate, out)
    else:
        print_denials(shown, console(soft_wrap=True))
    return shown.exit_code


def _tell_left_out(report: CheckReport, targets: Sequence[str], files: Sequence[str]) -> None:
    """Tell of files that were named and are logs of reviews and guardians, which are no workers."""
    audited = {thread.file for thread in report.threads}
    for target, file in zip(targets, files, strict=True):
        is_log = Path(file).is_file() and Path(file).name not in DATABASES
        if is_log and clean_line(file) not in audited:
            name = STDIN_NAME if target == STDIN else clean_line(target)
            what = "a thread that Codex runs for itself (a review, a guardian): left out"
            click.echo(f"agentdash: {name}: {what}", err=True)


def _audit(config: Config, targets: Sequence[str], digests: DigestStore | None) -> CheckReport:
    home = CodexHome(config.codex_home or default_home())
    try:
        paths, unreadable = find_logs(home, ClaudeHome(config.claude_home), targets)
    except LookupError as missing:
        raise click.UsageError(str(missing)) from missing
    if not paths and not targets and (trouble := problem(home)) is not None:
        raise click.UsageError(trouble)
    known = recalled(home, map(thread_name, paths))
    sizes = {path: file_size(path) for path in paths} if sys.stderr.isatty() else dict.fromkeys(paths, 0)
    with Progress(sum(sizes.values())) as progress:
        return audit(
            paths,
            lambda path: progress.add(sizes[path]),
            unreadable,
            recall=lambda thread: known.get(thread) or ThreadMemory(thread),
            digests=digests,
        )
