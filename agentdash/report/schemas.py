"""All documents by name, and their JSON Schemas."""

from __future__ import annotations

from typing import Any, Final, get_args, get_type_hints

import msgspec

from agentdash.report.brief import BriefReport
from agentdash.report.change import ChangeReport
from agentdash.report.check import CheckReport
from agentdash.report.check_config import CheckConfigReport
from agentdash.report.check_formats.gate import BaselineReport
from agentdash.report.check_worker import WorkerPathsReport
from agentdash.report.denials import DenialsReport
from agentdash.report.descriptions import describe
from agentdash.report.doctor import DoctorReport
from agentdash.report.explain import ExplainReport
from agentdash.report.explain_screen import ScreenReport
from agentdash.report.reach import ReachReport
from agentdash.report.remote_check import RemoteCheckReport
from agentdash.report.sessions import SessionsReport
from agentdash.report.settings import ConfigCheckReport, SettingsReport
from agentdash.report.since import SinceReport
from agentdash.report.status import StatusReport
from agentdash.report.status_fields import StatusFieldsReport
from agentdash.report.wait import WaitReport

_DOCUMENTS: Final = (
    StatusReport,
    BriefReport,
    StatusFieldsReport,
    ChangeReport,
    WaitReport,
    ExplainReport,
    CheckReport,
    BaselineReport,
    DenialsReport,
    WorkerPathsReport,
    CheckConfigReport,
    SessionsReport,
    SinceReport,
    ReachReport,
    ScreenReport,
    SettingsReport,
    ConfigCheckReport,
    DoctorReport,
    RemoteCheckReport,
)


def name_of(document: type[msgspec.Struct]) -> str:
    """Return the name of a document: `status` for `agentdash.status/1`."""
    (schema,) = get_args(get_type_hints(document)["schema"])
    return str(schema).removeprefix("agentdash.").partition("/")[0]


DOCUMENTS: Final = {name_of(document): document for document in _DOCUMENTS}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a document.

    Raises:
        KeyError: no document has this name.
    """
    document = DOCUMENTS[name]
    (identifier,) = get_args(get_type_hints(document)["schema"])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identifier}
    body = msgspec.json.schema(document)
    describe(body, document)
    return head | body
