"""Options of `agentdash check` for CI: its format, what fails it, and the baseline of known results."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
import msgspec

from agentdash import __version__
from agentdash.cli.output import console, print_document, print_text
from agentdash.cli.paths import PATH
from agentdash.files import read_bytes, write_file
from agentdash.model.sanitize import clean_line
from agentdash.report.check import CheckReport, print_check
from agentdash.report.check_formats.results import (
    ANY,
    FAIL_ON,
    FORMER_DIRECTIONS,
    MAX_BASELINE_BYTES,
    Gate,
    baseline_of,
    invalid_value,
    parse_baseline,
    print_gate,
)
from agentdash.report.elements import document_json

FORMATS: Final = ("text", "json", "sarif")


# generic since click 8.3 only
class _FailOn(click.ParamType):  # type: ignore[type-arg]
    """A kind or direction of findings, `any`, or `unverified`."""

    name = "kind"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if (problem := invalid_value(str(value))) is not None:
            self.fail(problem, param, ctx)
        return FORMER_DIRECTIONS.get(str(value), str(value))


def _completions(context: click.Context, parameter: click.Parameter, prefix: str) -> list[str]:
    del context, parameter
    return [value for value in FAIL_ON if value.startswith(prefix)]


GATE_OPTIONS: Final = (
    click.option(
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        help="Print text, JSON (as --json), or SARIF 2.1.0 for CI.  [default: text]",
    ),
    click.option(
        "--fail-on",
        multiple=True,
        type=_FailOn(),
        shell_complete=_completions,
        metavar="KIND",
        help="Exit with 1 only for this: a kind of finding, wider, narrower, label, any (finding or open "
        "denial), or unverified (threads). May be repeated; looser and stricter, their former names, still "
        "work.  [default: any]",
    ),
    click.option(
        "--baseline",
        type=PATH,
        metavar="FILE",
        help="Do not fail on what FILE has: a baseline, or a document of an earlier check --json.",
    ),
    click.option(
        "--write-baseline",
        type=PATH,
        metavar="FILE",
        help="Write what is found now to FILE, for --baseline.",
    ),
)


def chosen_format(given: dict[str, Any], *, as_json: bool, subject: str | None) -> str:
    """Take the format from the options of a command.

    Args:
        given: the options; those of the gate are removed where they do not apply.
        as_json: whether `--json` was given.
        subject: the option by which no audit is printed (`--denials`), if any.

    Raises:
        click.UsageError: options contradict each other.
    """
    format_: str = given.pop("format_") or ("json" if as_json else "text")
    if as_json and format_ != "json":
        raise click.UsageError(f"--json and --format {format_} contradict each other")
    if subject is not None:
        gated = [name for name in ("fail_on", "baseline", "write_baseline") if given.get(name)]
        if format_ == "sarif" or gated:
            option = f"--format {format_}" if not gated else f"--{gated[0].replace('_', '-')}"
            raise click.UsageError(f"{option} is about findings: it cannot be used with {subject}")
    return format_


def gate_of(given: dict[str, Any]) -> Gate | None:
    """Return what fails the check by its options; None without them.

    Raises:
        click.UsageError: the baseline cannot be read.
    """
    fail_on, baseline, written = given["fail_on"], given["baseline"], given["write_baseline"]
    if baseline is not None and written is not None:
        raise click.UsageError("--baseline and --write-baseline contradict each other: choose one")
    if written is not None:
        _check_replaceable(written)
    if not fail_on and baseline is None and written is None:
        return None
    return Gate(
        fail_on=tuple(dict.fromkeys(fail_on)) or (ANY,),
        known=frozenset() if baseline is None else _read_baseline(baseline, "--baseline"),
        baseline=None if baseline is None else clean_line(str(baseline)),
    )


def print_audit(report: CheckReport, format_: str, gate: Gate | None, written: Path | None) -> int:
    """Print an audit, and write the baseline; return the exit code.

    Raises:
        click.UsageError: the baseline cannot be written.
    """
    judges = gate is not None or format_ == "sarif"
    judged = (gate or Gate()).judge(report) if judges else []
    if written is not None:
        baseline = baseline_of(judged)
        _write(written, document_json(baseline) + b"\n")
        gate = Gate(fail_on=gate.fail_on if gate else (ANY,), known=frozenset(baseline.known))
        gate = msgspec.structs.replace(gate, baseline=clean_line(str(written)))
        judged = gate.judge(report)
    report.gate = gate.report(judged) if gate is not None else None
    match format_:
        case "json":
            print_document(report)
        case "sarif":
            from agentdash.report.check_formats.sarif import sarif, with_lines

            print_text(sarif(report, with_lines(judged), version=__version__, cwd=Path.cwd()))
        case _:
            print_check(report, console(soft_wrap=True))
            if report.gate is not None:
                print_gate(report.gate, judged, console(soft_wrap=True))
    return report.exit_code


def _read_baseline(path: Path, option: str) -> frozenset[Any]:
    name = clean_line(str(path))
    try:
        return parse_baseline(read_bytes(path, MAX_BASELINE_BYTES))
    except OSError as error:
        reason = clean_line(error.strerror or str(error))
        raise click.UsageError(f"{option}: {name} cannot be read: {reason}") from error
    except (ValueError, RecursionError) as error:
        raise click.UsageError(
            f"{option}: {name} is no baseline: {clean_line(str(error))} (write one with --write-baseline)"
        ) from error


def _check_replaceable(path: Path) -> None:
    """Refuse to overwrite a file that is no baseline.

    Raises:
        click.UsageError: there is such a file.
    """
    if path.exists():
        _read_baseline(path, "--write-baseline")


def _write(path: Path, content: bytes) -> None:
    try:
        write_file(path, content, replace=True)
    except OSError as error:
        reason = clean_line(error.strerror or str(error))
        raise click.UsageError(f"--write-baseline: {clean_line(str(path))}: {reason}") from error
