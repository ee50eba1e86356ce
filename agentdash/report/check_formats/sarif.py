"""Results of an audit as SARIF 2.1.0, for code scanning.

It has what GitHub's code scanning needs beyond the schema (its "SARIF support"): a full description and help
for each rule, a region and `primaryLocationLineHash` for each result, and the directory of absolute paths.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from agentdash.agents.codex.home import blocks
from agentdash.guide import sections
from agentdash.model.findings import FINDING_KINDS, FindingKind
from agentdash.model.secrets import mask_fields
from agentdash.report.check import CheckReport
from agentdash.report.check_formats.results import RESULT_KINDS, UNVERIFIED, Result

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {"danger": "error", "warning": "warning", "info": "note"}
_RULE_INDEX: Final = {kind: index for index, kind in enumerate(RESULT_KINDS)}
_FINGERPRINTS: Final = ("agentdash/v1", "primaryLocationLineHash")
"""Names of the hash of kind, thread and `Result.about`; the second is the only one that GitHub reads."""
_WHOLE_FILE: Final = 1
"""The line of results whose own line is not known: GitHub shows none without a region."""
_MAX_DESCRIPTION_CHARS: Final = 1000
"""GitHub's limit of `fullDescription.text`."""


def sarif(report: CheckReport, judged: Sequence[Result], *, version: str, cwd: Path) -> str:
    """Return the document.

    Args:
        cwd: paths below this directory are relative to it.
    """
    has_baseline = report.gate is not None and report.gate.baseline is not None
    run = {
        "tool": {"driver": {"name": "agentdash", "version": version, "rules": _rules()}},
        "invocations": [_invocation(report, cwd)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(result, cwd, has_baseline=has_baseline) for result in judged],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(mask_fields(document)), indent=2).decode()


def _rules() -> list[dict[str, Any]]:
    guide = sections()
    return [_rule(kind, guide.get(kind, meaning)) for kind, meaning in RESULT_KINDS.items()]


def _rule(kind: str, help_text: str) -> dict[str, Any]:
    severity = FINDING_KINDS[FindingKind(kind)].severity if kind in list(FindingKind) else "warning"
    description = " ".join(help_text.partition("\n\n")[0].split())
    return {
        "id": kind,
        "shortDescription": {"text": RESULT_KINDS[kind]},
        "fullDescription": {"text": description[:_MAX_DESCRIPTION_CHARS]},
        "help": {"text": help_text, "markdown": help_text},
        "defaultConfiguration": {"level": _LEVELS[severity]},
    }


def _invocation(report: CheckReport, cwd: Path) -> dict[str, Any]:
    """Return what SARIF has of the run itself: whether everything could be read."""
    return {
        "executionSuccessful": not report.totals.unreadable,
        "exitCode": report.exit_code,
        "workingDirectory": {"uri": f"{cwd.as_uri().rstrip('/')}/"},
        "toolExecutionNotifications": [
            {
                "level": "error",
                "message": {"text": str(problem)},
                "locations": [_location(problem.path, cwd)],
            }
            for problem in report.problems
        ],
    }


def _result(result: Result, cwd: Path, *, has_baseline: bool) -> dict[str, Any]:
    is_undecided = result.kind == UNVERIFIED and not result.is_failing
    thread = result.thread
    identity = f"{result.kind}\0{thread.id}\0{result.about}".encode()
    fingerprint = hashlib.sha256(identity).hexdigest()
    found: dict[str, Any] = {
        "ruleId": result.kind,
        "ruleIndex": _RULE_INDEX[result.kind],
        "kind": "open" if is_undecided else "fail",
        "level": "none" if is_undecided else _LEVELS[result.severity],
        "message": {"text": "\n".join((result.message, *result.details))},
        "locations": [_location(thread.file, cwd, result.line or _WHOLE_FILE)],
        "partialFingerprints": dict.fromkeys(_FINGERPRINTS, fingerprint),
        "properties": {
            "thread": thread.id,
            "agent": f"{thread.agent} {thread.cli_version or '?'}",
            "about": result.about,
            "direction": result.direction,
            "failing": result.is_failing,
        },
    }
    if has_baseline:
        found["baselineState"] = "unchanged" if result.is_known else "new"
    if result.is_known:
        found["suppressions"] = [{"kind": "external", "justification": "known by the baseline"}]
    return found


def _location(file: str, cwd: Path, line: int | None = None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": uri_in(cwd, file)}}
    if line is not None:
        place["region"] = {"startLine": line}
    return {"physicalLocation": place}


# ------------------------------------------------------------
# The places of results: path and line of a rollout, for CI systems that show files of a repository


def path_in(base: Path, file: str) -> str:
    """Return the path of a file relative to a directory if it is below it, else the absolute path.

    Args:
        base: absolute.
        file: relative to `base`, or absolute.
    """
    path = Path(os.path.normpath(base / file))
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else path.as_posix()


def uri_in(base: Path, file: str) -> str:
    """Return the URI of a file: a relative reference if it is below a directory, else a `file:` URI."""
    path = path_in(base, file)
    return f"file://{quote(path)}" if path.startswith("/") else quote(path)


def with_lines(judged: Sequence[Result]) -> list[Result]:
    """Return results with the first line of their file that has their time, where there is one.

    Compressed files have no lines that anything could show, and files of other hosts are not here.
    """
    wanted: dict[str, set[str]] = {}
    for result in judged:
        if result.at is not None and result.thread.host is None and result.thread.file.endswith(".jsonl"):
            wanted.setdefault(result.thread.file, set()).add(result.at)
    found = {file: _first_lines(Path(file), times) for file, times in wanted.items()}
    return [replace(each, line=found.get(each.thread.file, {}).get(each.at or "")) for each in judged]


def _first_lines(path: Path, times: Iterable[str]) -> dict[str, int]:
    """Return the number of the first line with each time; without those that no line has."""
    left = {time.encode() for time in times}
    stamp = re.compile(rb'"timestamp"\s*:\s*"(' + b"|".join(map(re.escape, left)) + rb')"')
    found: dict[str, int] = {}
    number, rest = 1, b""
    try:
        for block in chain(blocks(path), (b"\n",)):
            lines, newline, rest = (rest + block).rpartition(b"\n")
            for match in stamp.finditer(lines):
                if match[1] in left:
                    left.discard(match[1])
                    found[match[1].decode()] = number + lines.count(b"\n", 0, match.start())
            if not left:
                break
            number += lines.count(b"\n") + len(newline)
    except (OSError, ValueError):  # it was read before, and has gone
        return found
    return found
