"""`agentdash status --json=FIELD,...`: chosen fields of each worker, as the document
`agentdash.status-fields/1`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from agentdash.model.suggestions import suggest
from agentdash.model.times import iso
from agentdash.model.worker import Snapshot
from agentdash.report.elements import ViaReport
from agentdash.report.status import SandboxReport, WorkerReport, worker_report

_WORKER: Final = WorkerReport.__struct_fields__
_SANDBOX: Final = tuple(name for name in SandboxReport.__struct_fields__ if name not in _WORKER)
FIELDS: Final = (*_WORKER, *_SANDBOX)
"""The names that can be chosen: the fields of a worker of `agentdash.status/1`, and of its `sandbox`."""


class StatusFieldsReport(msgspec.Struct):
    """The document of `agentdash status --json=FIELD,...`."""

    schema: Literal["agentdash.status-fields/1"]
    """Name and version of the document."""
    generated_at: str
    """When the fleet was read."""
    fields: list[str]
    """The fields that were asked for."""
    workers: list[dict[str, Any]]
    """Of each worker its `id`, and these fields as in `agentdash.status/1`; those of `sandbox` by their own
    name."""
    via: ViaReport | None = None
    """The status file that was read; null if live sources were read."""


class UnknownFieldError(Exception):
    """A field that does not exist; the message names it, and the nearest one."""


def parse_fields(text: str) -> tuple[str, ...]:
    """Return the fields named in `state,why,findings`; `sandbox.findings` is `findings`.

    Raises:
        UnknownFieldError: one does not exist, or none is named.
    """
    names = [name.strip().removeprefix("sandbox.") for name in text.split(",") if name.strip()]
    for name in names:
        if name not in FIELDS:
            raise UnknownFieldError(f"--json: no field {name!r}{suggest(name, FIELDS)}")
    if not names:
        raise UnknownFieldError(f"--json=: choose from {', '.join(FIELDS)}")
    return tuple(dict.fromkeys(names))


def status_fields_report(
    snapshot: Snapshot, fields: Sequence[str], via: ViaReport | None = None
) -> StatusFieldsReport:
    """Return the document of a snapshot with these fields of each worker."""
    return StatusFieldsReport(
        schema="agentdash.status-fields/1",
        generated_at=iso(snapshot.at) or "",
        fields=list(fields),
        workers=[_chosen(worker_report(worker), fields) for worker in snapshot.workers],
        via=via,
    )


def _chosen(report: WorkerReport, fields: Sequence[str]) -> dict[str, Any]:
    values = {name: getattr(report if name in _WORKER else report.sandbox, name) for name in fields}
    return {"id": report.id, **values}
