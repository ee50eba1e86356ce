"""`status --json=FIELDS`, and the schemas of documents."""

from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from agentdash.cli.status import status
from agentdash.model.states import State
from agentdash.model.worker import Sandbox, Snapshot
from agentdash.report.schemas import DOCUMENTS, schema
from agentdash.report.status import FIELDS, status_fields_report, status_report
from tests.unit.story import row

NOW = 1_763_000_000.0


WORKER = row(
    "01a1fa8b-4086-7a32-8c43-2abbeb466a8c",
    State.BLOCKED_SANDBOX,
    since=NOW,
    sandbox=Sandbox("mismatch", applied="bwrap", unread=("3 lines skipped",)),
)


def test_chosen_fields_are_those_of_the_whole_document() -> None:
    snapshot = Snapshot(NOW, (WORKER,))
    (chosen,) = status_fields_report(snapshot, FIELDS).workers
    (whole,) = status_report(snapshot).workers
    expected: dict[str, Any] = msgspec.to_builtins(whole)
    expected |= {name: value for name, value in expected["sandbox"].items() if name not in expected}
    assert msgspec.to_builtins(chosen) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json=stat"], "no field 'stat'. Did you mean 'state'"),
        (["--json=state,finding"], "no field 'finding'. Did you mean 'findings'?"),
        (["--json=zzz"], "no field 'zzz': choose from id, kind, name,"),
        (["--json="], "choose from id"),
        (["--json=state", "--watch"], "--json= and --watch exclude each other"),
    ],
)
def test_wrong_fields_are_usage_errors(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(status, arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_each_field_of_each_schema_is_described(name: str) -> None:
    """Write a docstring below a field that is listed here; `report.schemas.COMMON` has common ones."""
    definitions = schema(name)["$defs"]
    assert definitions
    assert [
        f"{struct}.{field}"
        for struct, definition in definitions.items()
        for field, properties in definition["properties"].items()
        if not properties.get("description")
    ] == []
