"""Results of an audit as workflow commands of GitHub Actions, which become annotations.

Escaped as the toolkit of GitHub Actions does (`@actions/core`, `command.ts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from agentdash.model.secrets import mask_secrets
from agentdash.report.check import CheckReport
from agentdash.report.check_formats.places import path_in
from agentdash.report.check_formats.results import UNVERIFIED, Result

_COMMANDS: Final = {"danger": "warning", "warning": "warning", "info": "notice"}
"""Of results that fail nothing, by severity."""
_ESCAPES_OF_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_ESCAPES_OF_PROPERTIES: Final = {**_ESCAPES_OF_DATA, **str.maketrans({":": "%3A", ",": "%2C"})}


def github(report: CheckReport, judged: Sequence[Result], cwd: Path) -> str:
    """Return one annotation on each line, and the totals on the last.

    What fails the check, and what cannot be read, is an error; other results are warnings and notices by
    their severity. Known ones, and unverified threads that fail nothing, are only counted.
    """
    return "\n".join((*_annotations(report, judged, cwd), _totals(report, judged)))


def _annotations(report: CheckReport, judged: Sequence[Result], cwd: Path) -> Iterator[str]:
    for problem in report.problems:
        yield _command("error", path_in(cwd, problem.path), "unreadable", str(problem))
    for result in judged:
        if result.is_known or (result.kind == UNVERIFIED and not result.is_failing):
            continue
        command = "error" if result.is_failing else _COMMANDS[result.severity]
        text = "\n".join((result.message, f"thread {result.thread.id}", *result.details))
        yield _command(command, path_in(cwd, result.thread.file), result.kind, text, result.line)


def _command(command: str, file: str, title: str, message: str, line: int | None = None) -> str:
    properties = {"file": file, **({"line": str(line)} if line else {}), "title": f"agentdash: {title}"}
    listed = ",".join(
        f"{name}={mask_secrets(value).translate(_ESCAPES_OF_PROPERTIES)}"
        for name, value in properties.items()
    )
    return f"::{command} {listed}::{mask_secrets(message).translate(_ESCAPES_OF_DATA)}"


def _totals(report: CheckReport, judged: Sequence[Result]) -> str:
    failing = sum(result.is_failing for result in judged)
    known = sum(result.is_known for result in judged)
    totals = report.totals
    verdicts = f"{totals.match} match, {totals.mismatch} mismatch, {totals.unverified} unverified"
    return (
        f"{totals.threads} threads: {verdicts}, {totals.unreadable} unreadable; "
        f"{failing} of {len(judged)} results fail, {known} known"
    )
