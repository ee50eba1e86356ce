"""`check` for CI: what fails it, and the formats as their readers parse them."""

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator
from msgspec.structs import replace

from agentdash.documents.worker import DenialReport, FindingReport
from agentdash.report.audit import audit
from agentdash.report.check import (
    UNVERIFIED,
    CheckReport,
    ThreadReport,
    check_report,
    gate_report,
    is_failing,
    results,
    sarif,
    unreadable_report,
    uri_in,
)
from agentdash.report.elements import UnreadableReport
from tests.unit.rollout_files import DATA, all_files, files
from tests.unit.test_cli import agentdash

SARIF = Draft4Validator(json.loads((DATA / "schemas" / "sarif-2.1.0.json").read_text()))
HOSTILE = "a\x01b ]]> <x> & \"q\" 'p' %0A 100%\r\n::error::x ##[warning]y, z: ç 🙂\ufffe"


@cache
def whole() -> CheckReport:
    """Return the audit of all recordings, of an unreadable file and of an unreadable directory."""
    paths = all_files()
    assert len(paths) > 150
    missing = Path("/nonexistent/rollout-x.jsonl")
    return audit((*paths, missing), unreadable=[UnreadableReport("/closed", "Permission denied")])


def thread(**changes: Any) -> ThreadReport:
    blank = replace(unreadable_report("t1", "s/rollout.jsonl", ""), problem=None, verdict="match")
    return replace(blank, **changes)


def finding(kind: str = "network-open", direction: str = "wider", message: str = "m") -> FindingReport:
    return FindingReport(kind, direction, "danger", message, fields=[], evidence=[], remedy=None)


def denial(what: Any = "filesystem", target: str | None = "/b/x", **changes: Any) -> DenialReport:
    quote = "touch: Read-only file system"
    whole = DenialReport(what, "write", target, "certain", quote, ["c"], 1, None, None, False, None)
    return replace(whole, **changes)


def hostile() -> CheckReport:
    bad = thread(id=HOSTILE, file=f"d/{HOSTILE}", agent=HOSTILE, cli_version=HOSTILE)
    bad = replace(bad, findings=[finding(message=HOSTILE)], denials=[denial(target=HOSTILE, quote=HOSTILE)])
    broken = unreadable_report("t2", f"/d/{HOSTILE}", HOSTILE)
    return check_report([bad, broken], [UnreadableReport(HOSTILE, HOSTILE)])


# ---------------------------------------------------------------- results, and what fails


def test_denial_and_its_finding_are_one_result() -> None:
    report = audit(files("0.169.0", "kanban-board"))
    (result,) = [each for each in results(report) if each.kind != UNVERIFIED]
    assert (result.kind, result.about) == ("denied-filesystem", "/home/dev/board/kanban.db")


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        (denial(), "denied-filesystem"),
        (denial("network", "h.example"), "denied-network"),
        (denial("other", None), "denied-other"),
        (denial("other", None, operation="start"), "sandbox-cannot-start"),
    ],
)
def test_open_denial_has_the_kind_of_its_finding(entry: DenialReport, kind: str) -> None:
    report = check_report([thread(denials=[entry, denial(target="/past", got_past=True)])])
    (result,) = results(report)
    assert (result.kind, is_failing(result, [kind]), result.direction) == (kind, True, "narrower")


def test_fail_on_selects() -> None:
    report = check_report(
        [
            thread(findings=[finding(), finding("stale-network-flag", "label")]),
            thread(id="t2", verdict="unverified"),
        ]
    )

    def failing(*fail_on: str) -> list[str]:
        return [result.kind for result in results(report) if is_failing(result, fail_on)]

    assert failing("any") == ["network-open", "stale-network-flag"]
    assert failing("wider") == failing("network-open") == ["network-open"]
    assert failing("label", "unverified") == ["stale-network-flag", "unverified"]
    assert failing("narrower") == failing("denied-network") == []


# ---------------------------------------------------------------- formats


@pytest.mark.parametrize("make", [whole, hostile], ids=["recordings", "hostile"])
def test_sarif_is_valid(make: Any) -> None:
    report = make()
    found = list(results(report))
    document = json.loads(sarif(report, version="1", cwd=Path("/w")))
    assert [error.message for error in SARIF.iter_errors(document)] == []
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) == len(found)
    assert {result["ruleId"] for result in run["results"]} <= {*rules}
    prints = [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]
    assert len({*prints}) == len({(one.kind, one.thread.id, one.about) for one in found})
    assert run["invocations"][0]["executionSuccessful"] is False
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 2


def test_sarif_says_what_is_undecided() -> None:
    report = check_report([thread(findings=[finding()], denials=[denial()], verdict="unverified")])
    report.gate = gate_report(report, ["any"])
    assert report.gate.failing == 2
    (run,) = json.loads(sarif(report, version="1", cwd=Path("/w")))["runs"]
    danger, new, undecided = run["results"]
    assert (danger["level"], new["kind"]) == ("error", "fail")
    assert (undecided["kind"], undecided["level"]) == ("open", "none")
    assert run["invocations"][0] == {
        "executionSuccessful": True,
        "exitCode": 1,
        "workingDirectory": {"uri": "file:///w/"},
        "toolExecutionNotifications": [],
    }


def test_places() -> None:
    for file, uri in {
        "s/a b.jsonl": "s/a%20b.jsonl",
        "/w/s/a.jsonl": "s/a.jsonl",
        "/v/ä#.jsonl": "file:///v/%C3%A4%23.jsonl",
        "a:b.jsonl": "a%3Ab.jsonl",
    }.items():
        assert uri_in(Path("/w"), file) == uri


# ---------------------------------------------------------------- the command

BOARD = str(files("0.169.0", "kanban-board")[0])
CLEAN = str(files("0.169.0", "full-access")[0])


@pytest.mark.slow
def test_formats_of_the_command() -> None:
    check = partial(agentdash, "check")
    assert check(BOARD, "--format", "json").stdout == check(BOARD, "--json").stdout
    assert check(BOARD, "--format", "text").stdout == check(BOARD).stdout
    code = check(BOARD, CLEAN, "--format", "sarif")
    assert (code.returncode, [*SARIF.iter_errors(json.loads(code.stdout))]) == (1, [])
    assert check(BOARD, CLEAN, "--format", "sarif", "--fail-on", "wider").returncode == 0
    code = check(BOARD, "--format", "sarif", "--fail-on", "denied-filesystem", "--fail-on", "wider")
    assert code.returncode == 1
    assert check(CLEAN, "/dev/null", "--fail-on", "wider", "--format", "sarif").returncode == 2


# ---------------------------------------------------------------- files that are read in part


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        # a block of the disk was never written, after a power loss
        (lambda content: content[:4096] + bytes(512) + content[4608:], "1 malformed line skipped"),
        (lambda content: content + b"\xff\n{}x\n", "2 malformed lines skipped"),
        (lambda content: content + b'{"timestamp":"2026-', None),  # it may still be written
        (lambda content: content.replace(b"\n", b"\r"), "1 malformed line skipped"),
    ],
    ids=["block", "lines", "end", "CR alone"],
)
def test_lost_lines_are_no_clean_result(
    tmp_path: Path, change: Callable[[bytes], bytes], problem: str | None
) -> None:
    (original,) = files("0.169.0", "full-access")
    file = tmp_path / original.name
    file.write_bytes(change(original.read_bytes()))
    report = audit([file])
    assert [each.problem for each in report.threads] == [problem]
    assert report.exit_code == (2 if problem else 0)
