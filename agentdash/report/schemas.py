"""All documents by name, and their JSON Schemas."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise
from typing import Any, Final, get_args, get_type_hints

import msgspec

from agentdash.documents.worker import ChangeReport, fields_of
from agentdash.report.check import CheckReport, DenialsReport
from agentdash.report.doctor import DoctorReport
from agentdash.report.explain import ExplainReport
from agentdash.report.notices import NoticeReport
from agentdash.report.predictions import PreflightReport, WorkerPathsReport
from agentdash.report.reach import ReachReport
from agentdash.report.sessions import SessionsReport
from agentdash.report.since import SinceReport
from agentdash.report.status import StatusFieldsReport, StatusReport, WaitReport

_DOCUMENTS: Final = (
    StatusReport,
    StatusFieldsReport,
    ChangeReport,
    WaitReport,
    ExplainReport,
    CheckReport,
    DenialsReport,
    WorkerPathsReport,
    PreflightReport,
    SessionsReport,
    SinceReport,
    ReachReport,
    DoctorReport,
    NoticeReport,
)


def name_of(document: type[msgspec.Struct]) -> str:
    """Return the name of a document: `status` for `agentdash.status/2`."""
    (schema,) = get_args(get_type_hints(document)["schema"])
    return str(schema).removeprefix("agentdash.").partition("/")[0]


DOCUMENTS: Final = {name_of(document): document for document in _DOCUMENTS}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a document, with a description of each field.

    Raises:
        KeyError: no document has this name.
    """
    document = DOCUMENTS[name]
    (identifier,) = get_args(get_type_hints(document)["schema"])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identifier}
    body = msgspec.json.schema(document)
    structs = {each.__name__: each for each in _structs(document)}
    for struct, definition in body["$defs"].items():
        described = field_docstrings(structs[struct])
        for field, properties in definition.get("properties", {}).items():
            if text := described.get(field) or COMMON.get(field):
                properties.setdefault("description", text)
    return head | body


def _structs(document: type[msgspec.Struct]) -> set[type[msgspec.Struct]]:
    """Return the structs that a document consists of."""
    parts = (field.struct for field in fields_of(document) if field.struct is not None)
    return {document}.union(*map(_structs, parts))


# ------------------------------------------------------------
# Descriptions of the fields of documents, from the docstrings below them


COMMON: Final = {
    "schema": "Name and version of the document.",
    "generated_at": "When the document was made: ISO 8601, UTC.",
    "at": "When: ISO 8601, UTC; null where it is not known.",
    "since": "When it began: ISO 8601, UTC; null where it is not known.",
    "until": "When it ended: ISO 8601, UTC; null while it lasts.",
    "first": "When it was seen first: ISO 8601, UTC.",
    "last": "When it was seen last: ISO 8601, UTC.",
    "count": "How often it was seen.",
    "id": "Thread id, pane, or `pid:PID`: a TARGET of the commands.",
    "name": "Its name, for people.",
    "agent": "The worker CLI.",
    "version": "Version of the worker CLI; null where it is not known.",
    "parent": "Id of the thread that started it; null where it has none.",
    "state": "What the worker does now, one of those that the documentation describes.",
    "why": "The reason, in one sentence.",
    "verdict": "`match`, `mismatch`, or `unverified` where nothing was observed.",
    "file": "Path of the file it was read from.",
    "line": "Line in that file, from 1; null or 0 where it is not known.",
    "cwd": "Its working directory; null where it is not known.",
    "findings": "Differences between the layers of its sandbox, and denials that it did not get past.",
    "denials": "The denial ledger: what its sandbox refused, also what it got past.",
    "evidence": "What supports it, and what disagrees.",
    "requested": "What was asked for, and where; null where that is not known.",
    "configured": "The policy that the agent was told it has; null where that is not known.",
    "applied": "How the newest command was started, in words; null where that was not observed.",
    "got": "What was observed of the newest command.",
    "policies": "Its policies, oldest first.",
    "filesystem": "Files of the policy: `read-only`, `workspace`, `unrestricted`, `custom` or `unknown`.",
    "network": "Network of the policy: `off`, `on`, `mediated` or `unknown`.",
    "writable_roots": "Directories that the policy makes writable.",
    "approval": "Approval policy; null where it is not known.",
    "reviewer": "What answers approvals: the user, or an automatic reviewer; null where it is not known.",
    "remedy": "The narrowest change that would help: lines of configuration, or words; null: none.",
    "remedy_where": "File and place for the lines of `remedy`; null where it is no configuration.",
    "remedy_once": "Shell command that starts the CLI with the remedy for one run; null where there is none.",
    "kind": "Its kind, one of those that the documentation describes.",
    "direction": "`narrower`, `wider` or `label`: what it got, compared with what was configured.",
    "severity": "`danger`, `warning` or `info`.",
    "message": "One or two sentences for people.",
    "path": "The path.",
    "text": "The text, on one line.",
    "source": "Where it was read.",
    "rule": "Name of the rule that drew the conclusion.",
    "quote": "The lines that show it.",
    "what": "What was denied: `filesystem`, `network` or `other`.",
    "operation": "`read`, `write`, `create`, `connect`, `resolve` ...",
    "calls": "Ids of the calls that show it.",
    "pids": "Processes that show it, or that belong to it.",
    "problem": "What went wrong, and what to do.",
    "detail": "More, in words.",
    "ok": "Whether it works.",
    "threads": "The threads that were read.",
    "workers": "The workers.",
    "network_flag": "`CODEX_SANDBOX_NETWORK_DISABLED` in its environment: `1`, or `unset`.",
    "sandbox_flag": "`CODEX_SANDBOX` in its environment: its value, or `unset`.",
    "seccomp": "Seccomp mode of the kernel: 0 none, 1 strict, 2 filter.",
    "no_new_privs": "Whether the kernel lets it gain no privileges.",
    "network_namespace": "`host`, or `own`.",
    "sandboxed": "Whether it was in a sandbox.",
    "match": "Threads without a difference.",
    "mismatch": "Threads with a difference.",
    "unverified": "Threads of which nothing was observed.",
}
"""Of names that mean the same in all documents; a docstring below a field is more exact, and counts first."""


@cache
def field_docstrings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the docstrings below the fields of a struct, on one line each; none where its source is not
    installed."""
    found: dict[str, str] = {}
    for owner in reversed(struct.__mro__):
        if owner.__module__.startswith("agentdash."):
            found |= _own_docstrings(owner)
    return found


def _own_docstrings(struct: type) -> dict[str, str]:
    try:
        (tree,) = ast.parse(inspect.getsource(struct)).body
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    found = {}
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found
