"""`agentdash check`: audit session logs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from agentdash import __version__
from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome, default_home, problem
from agentdash.cli.family import recalled
from agentdash.cli.options import (
    CODEX_HOME_OPTION,
    NO_CACHE_OPTION,
    config_of,
    json_option,
    not_empty,
    options,
)
from agentdash.cli.output import console, print_document, print_text, warn_unreadable
from agentdash.cli.paths import PATH
from agentdash.cli.progress import Progress
from agentdash.cli.stdin import STDIN, STDIN_NAME, without_stdin
from agentdash.config import state_folder
from agentdash.files import file_size, read_bytes, write_file
from agentdash.model.memory import ThreadMemory
from agentdash.model.sanitize import clean_line
from agentdash.report.audit import audit, find_logs, thread_name
from agentdash.report.check import CheckReport, print_check
from agentdash.report.check_results import (
    ANY,
    FAIL_ON,
    MAX_BASELINE_BYTES,
    Gate,
    baseline_of,
    parse_baseline,
    print_gate,
)
from agentdash.report.elements import document_json
from agentdash.store.digests import DigestStore

GATE_OPTIONS: Final = (
    click.option(
        "--format",
        "format_",
        type=click.Choice(("text", "json", "sarif")),
        help="Print text, JSON (as --json), or SARIF 2.1.0 for CI.  [default: text]",
    ),
    click.option(
        "--fail-on",
        multiple=True,
        type=click.Choice(FAIL_ON),
        metavar="KIND",
        help="Exit with 1 only for this: a kind of finding, wider, narrower, label, any (finding or open "
        "denial), or unverified (threads). May be repeated.  [default: any]",
    ),
    click.option(
        "--baseline",
        type=PATH,
        metavar="FILE",
        help="Do not fail on what FILE has, which --write-baseline wrote.",
    ),
    click.option(
        "--write-baseline",
        type=PATH,
        metavar="FILE",
        help="Write what is found now to FILE, for --baseline.",
    ),
)


@click.command()
@CODEX_HOME_OPTION
@click.argument("targets", nargs=-1, metavar="[PATH|THREAD]...", callback=not_empty)
@click.option("--denials", is_flag=True, help="List what was denied, by target, instead of findings.")
@options(GATE_OPTIONS)
@NO_CACHE_OPTION
@json_option("check/1", "check-denials/2")
def check(
    targets: tuple[str, ...],
    denials: bool,
    no_cache: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Audit session logs: those of PATHs and THREADs, or all of Codex and Claude Code.

    Exit code 0: no findings, and a success after each denial. 1: findings, or denials without one. 2: a file
    cannot be read whole: --baseline does not change that. The last line may be torn: it is still written.

    With --baseline: findings that FILE has do not fail. An entry of FILE without a thread is known in all.

    \b
    agentdash check                        all sessions
    agentdash check 01a1fa8b session.jsonl --json; zstdcat x.zst | agentdash check -
    agentdash check sessions/ --format sarif --fail-on wider --fail-on denied-network
    agentdash check --write-baseline known.json; agentdash check --baseline known.json
    agentdash check --denials              what sandboxes refused, by target
    """
    format_ = _chosen_format(given, as_json=as_json, denials=denials)
    as_json = format_ == "json"
    config = config_of(given)
    home = CodexHome(config.codex_home or default_home())
    gate = _gate_of(given)
    digests = None if no_cache or STDIN in targets else DigestStore(state_folder())
    with without_stdin(targets) as files:
        report = _audit_here(home, ClaudeHome(config.claude_home), files, digests)
    _tell_left_out(report, targets, files)
    copies = {file for target, file in zip(targets, files, strict=True) if target == STDIN}
    for thread in report.threads:
        thread.file = STDIN_NAME if thread.file in copies else thread.file
    warn_unreadable(report.problems)
    if denials:
        from agentdash.report.check import denials_report, print_denials

        by_target = denials_report(report)
        if as_json:
            print_document(by_target)
        else:
            print_denials(by_target, console(soft_wrap=True))
        return by_target.exit_code
    return _print_audit(report, format_, gate, given["write_baseline"])


def _tell_left_out(report: CheckReport, targets: Sequence[str], files: Sequence[str]) -> None:
    """Tell of files that were named and are logs of reviews and guardians, which are no workers."""
    audited = {thread.file for thread in report.threads}
    for target, file in zip(targets, files, strict=True):
        if Path(file).is_file() and clean_line(file) not in audited:
            name = STDIN_NAME if target == STDIN else clean_line(target)
            what = "a thread that Codex runs for itself (a review, a guardian): left out"
            click.echo(f"agentdash: {name}: {what}", err=True)


def _chosen_format(given: dict[str, Any], *, as_json: bool, denials: bool) -> str:
    """Return the format to print.

    Args:
        given: the options of `GATE_OPTIONS`.
        as_json: whether `--json` was given.
        denials: whether denials are listed, and no findings.

    Raises:
        click.UsageError: options contradict each other.
    """
    format_: str = given["format_"] or ("json" if as_json else "text")
    if as_json and format_ != "json":
        raise click.UsageError(f"--json and --format {format_} contradict each other")
    if given["baseline"] is not None and given["write_baseline"] is not None:
        raise click.UsageError("--baseline and --write-baseline contradict each other: choose one")
    if denials:
        gated = [name for name in ("fail_on", "baseline", "write_baseline") if given[name]]
        if format_ == "sarif" or gated:
            option = f"--format {format_}" if not gated else f"--{gated[0].replace('_', '-')}"
            raise click.UsageError(f"{option} is about findings: it cannot be used with --denials")
    return format_


def _gate_of(given: dict[str, Any]) -> Gate | None:
    """Return what fails the check by its options; None without them.

    Raises:
        click.UsageError: the baseline cannot be read, or a file to be written exists and is not one.
    """
    fail_on, baseline, written = given["fail_on"], given["baseline"], given["write_baseline"]
    if written is not None and written.exists():
        _read_baseline(written, "--write-baseline")
    if not fail_on and baseline is None and written is None:
        return None
    return Gate(
        fail_on=tuple(dict.fromkeys(fail_on)) or (ANY,),
        known=frozenset() if baseline is None else _read_baseline(baseline, "--baseline"),
        baseline=None if baseline is None else clean_line(str(baseline)),
    )


def _read_baseline(path: Path, option: str) -> frozenset[Any]:
    name = clean_line(str(path))
    try:
        return parse_baseline(read_bytes(path, MAX_BASELINE_BYTES))
    except OSError as error:
        reason = clean_line(error.strerror or str(error))
        raise click.UsageError(f"{option}: {name} cannot be read: {reason}") from error
    except (ValueError, RecursionError) as error:
        raise click.UsageError(
            f"{option}: {name} is not a baseline: {clean_line(str(error))} (write one with --write-baseline)"
        ) from error


def _print_audit(report: CheckReport, format_: str, gate: Gate | None, written: Path | None) -> int:
    """Print an audit, and write the baseline; return the exit code.

    Raises:
        click.UsageError: the baseline cannot be written.
    """
    if written is not None and gate is not None:
        baseline = baseline_of(gate.judge(report))
        name = clean_line(str(written))
        try:
            write_file(written, document_json(baseline) + b"\n", replace=True)
        except OSError as error:
            reason = clean_line(error.strerror or str(error))
            raise click.UsageError(f"--write-baseline: {name}: {reason}") from error
        gate = Gate(fail_on=gate.fail_on, known=frozenset(baseline.known), baseline=name)
    judged = (gate or Gate()).judge(report) if gate is not None or format_ == "sarif" else []
    report.gate = gate.report(judged) if gate is not None else None
    match format_:
        case "json":
            print_document(report)
        case "sarif":
            from agentdash.report.check_results import sarif

            print_text(sarif(report, judged, version=__version__, cwd=Path.cwd()))
        case _:
            print_check(report, console(soft_wrap=True))
            if report.gate is not None:
                print_gate(report.gate, judged, console(soft_wrap=True))
    return report.exit_code


def _audit_here(
    home: CodexHome, claude: ClaudeHome, targets: Sequence[str], digests: DigestStore | None
) -> CheckReport:
    try:
        paths, unreadable = find_logs(home, claude, targets)
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
