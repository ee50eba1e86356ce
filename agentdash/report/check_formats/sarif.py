"""Results of an audit as SARIF 2.1.0, for code scanning.

It has what GitHub's code scanning needs beyond the schema (its "SARIF support"): a full description and help
for each rule, a region and `primaryLocationLineHash` for each result, and the directory of absolute paths.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from agentdash.guide import sections
from agentdash.model.findings import FINDING_KINDS, FindingKind
from agentdash.model.secrets import mask_fields
from agentdash.report.check import CheckReport
from agentdash.report.check_formats.places import uri_in
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
