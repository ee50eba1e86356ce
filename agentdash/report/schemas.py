"""Every document that agentdash prints, by name, and its JSON Schema."""

from __future__ import annotations

from typing import Any, Final, get_args, get_type_hints

import msgspec

from agentdash.report.check import CheckReport
from agentdash.report.doctor import DoctorReport
from agentdash.report.explain import ExplainReport
from agentdash.report.screen_reading import ScreenReport
from agentdash.report.sessions import SessionsReport
from agentdash.report.settings import SettingsReport
from agentdash.report.status import StatusReport
from agentdash.report.wait import ChangeReport, WaitReport
from agentdash.report.worker_paths import WorkerPathsReport

_DOCUMENTS: Final = (
    StatusReport,
    ChangeReport,
    WaitReport,
    ExplainReport,
    CheckReport,
    WorkerPathsReport,
    SessionsReport,
    ScreenReport,
    SettingsReport,
    DoctorReport,
)


def name_of(document: type[msgspec.Struct]) -> str:
    """`status` of `agentdash.status/1`."""
    (schema,) = get_args(get_type_hints(document)["schema"])
    return str(schema).removeprefix("agentdash.").partition("/")[0]


DOCUMENTS: Final = {name_of(document): document for document in _DOCUMENTS}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document.

    Raises:
        KeyError: there is no such document.
    """
    document = DOCUMENTS[name]
    (told,) = get_args(get_type_hints(document)["schema"])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": told}
    return head | msgspec.json.schema(document)
