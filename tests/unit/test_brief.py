"""`status --brief` and `status --json=FIELDS`: documents for readers with little room, and their schemas."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from agentdash.cli.status import status
from agentdash.model.denials import Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind, ObjectForm
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.fleet import SourceHealth
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, Sandbox, Snapshot, Worker
from agentdash.report.brief import MAX_WORKER_BYTES, BriefReport, brief_json, brief_report, brief_worker
from agentdash.report.schemas import DOCUMENTS, schema
from agentdash.report.status import (
    FIELDS,
    UnknownFieldError,
    parse_fields,
    status_fields_report,
    status_report,
)

NOW = 1_763_000_000.0


def finding(kind: FindingKind, remedy: str | None = None) -> Finding:
    return Finding(
        kind=kind,
        direction="narrower",
        severity="warning",
        configured="",
        got="",
        message="",
        since=NOW,
        last=NOW,
        count=1,
        remedy=Remedy(remedy) if remedy else None,
    )


def worker(
    *,
    identifier: str = "01a1fa8b-4086-7a32-8c43-2abbeb466a8c",
    name: str = "build",
    what: str = "write denied /srv/x",
    findings: tuple[Finding, ...] = (),
) -> Worker:
    evidence = (Evidence(EvidenceSource.OUTPUT, NOW, "rule", "text", agrees=True),)
    fact = Fact(FactKind.DENIED, what, "", ObjectForm.TEXT)
    return Worker(
        id=identifier,
        kind="codex-thread",
        name=name,
        agent=Agent("codex", "0.169.0"),
        assessment=Assessment(State.BLOCKED_SANDBOX, NOW, "a long sentence", evidence, fact),
        sandbox=Sandbox("mismatch", findings=findings),
    )


text = st.text(max_size=600)
kinds = st.lists(st.builds(finding, st.sampled_from(FindingKind), st.one_of(st.none(), text)), max_size=8)


@settings(deadline=None)
@given(identifier=text, name=text, what=text, findings=kinds.map(tuple))
def test_no_worker_is_larger(identifier: str, name: str, what: str, findings: tuple[Finding, ...]) -> None:
    report = brief_worker(worker(identifier=identifier, name=name, what=what, findings=findings))
    assert len(msgspec.json.encode(report)) <= MAX_WORKER_BYTES
    assert report.why.removesuffix("…") == what[: len(report.why.removesuffix("…"))]


def test_reason_and_remedy_are_whole_where_they_fit() -> None:
    remedy = 'writable_roots = ["/srv"]'
    report = brief_worker(worker(findings=(finding(FindingKind.DENIED_FILESYSTEM, remedy),)))
    assert (report.why, report.remedy, report.findings) == (
        "write denied /srv/x",
        remedy,
        ["denied-filesystem"],
    )


def test_remedy_is_whole_or_left_out() -> None:
    report = brief_worker(worker(findings=(finding(FindingKind.DENIED_FILESYSTEM, "x" * 300),)))
    assert (report.why, report.remedy) == ("write denied /srv/x", None)


def test_more_findings_are_counted() -> None:
    several = tuple(finding(kind) for kind in list(FindingKind)[:5])
    assert brief_worker(worker(findings=several)).findings == ["network-cut", "network-open", "+3"]


def test_secrets_are_masked_before_they_are_cut() -> None:
    token = "sk-ant-" + "api03-" + "x1Y2" * 20
    report = brief_worker(worker(name=f"curl -H {token}"))
    assert "x1Y2" not in report.name


def test_document_has_a_line_for_each_worker() -> None:
    sources = (SourceHealth("tmux", False, "no server running", NOW), SourceHealth("files", True, "", NOW))
    snapshot = Snapshot(NOW, (worker(), worker(identifier="%4")), sources)
    content = brief_json(brief_report(snapshot))
    assert content.count(b"\n") == 3
    document = msgspec.json.decode(content, type=BriefReport, strict=True)
    assert document.problems == ["tmux: no server running"]
    assert [each.id for each in document.workers] == ["01a1fa8b-4086-7a32-8c43-2abbeb466a8c", "%4"]
    assert json.loads(brief_json(brief_report(Snapshot(NOW))))["workers"] == []


def test_pane_is_a_target() -> None:
    pane = Pane(key=PaneKey("default", "%4"), session="s", window="0:w", pid=1, command="codex")
    report = brief_worker(msgspec.structs.replace(worker(), pane=pane))
    assert report.pane == str(pane.key)


def test_chosen_fields_are_those_of_the_whole_document() -> None:
    snapshot = Snapshot(NOW, (worker(findings=(finding(FindingKind.NETWORK_CUT),)),))
    (chosen,) = status_fields_report(snapshot, FIELDS).workers
    (whole,) = status_report(snapshot).workers
    expected: dict[str, Any] = msgspec.to_builtins(whole)
    expected |= {name: value for name, value in expected["sandbox"].items() if name not in expected}
    assert msgspec.to_builtins(chosen) == expected


@pytest.mark.parametrize(
    ("given_text", "fields"),
    [
        ("state", ("state",)),
        (" why , findings ", ("why", "findings")),
        ("sandbox.findings,sandbox,why,why", ("findings", "sandbox", "why")),
    ],
)
def test_fields(given_text: str, fields: tuple[str, ...]) -> None:
    assert parse_fields(given_text) == fields


@pytest.mark.parametrize(
    ("given_text", "message"),
    [
        ("stat", "no field 'stat'. Did you mean 'state'"),
        ("state,finding", "no field 'finding'. Did you mean 'findings'?"),
        ("zzz", "no field 'zzz': choose from id, kind, name,"),
        (",", "choose from id, kind"),
    ],
)
def test_wrong_fields_are_named(given_text: str, message: str) -> None:
    with pytest.raises(UnknownFieldError, match=message.replace("?", r"\?")):
        parse_fields(given_text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json=stat"], "Did you mean 'state'"),
        (["--json="], "choose from id"),
        (["--fields", "state", "--brief"], "--json= and --brief exclude each other"),
        (["--brief", "--watch"], "--brief and --watch exclude each other"),
    ],
)
def test_wrong_options_are_usage_errors(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(status, arguments)
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_each_field_of_each_schema_is_described(name: str) -> None:
    """Write a docstring below a field that is listed here; `report.descriptions.COMMON` has common ones."""
    definitions = schema(name)["$defs"]
    assert definitions
    assert [
        f"{struct}.{field}"
        for struct, definition in definitions.items()
        for field, properties in definition["properties"].items()
        if not properties.get("description")
    ] == []


def test_descriptions_are_the_docstrings() -> None:
    worker_fields = schema("status")["$defs"]["WorkerReport"]["properties"]
    assert worker_fields["stalled_since"]["description"] == (
        "Time since which a running worker has shown no activity; null if it is active."
    )
