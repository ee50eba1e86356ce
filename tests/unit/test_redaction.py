"""Redaction: every text field of a report is walked with canaries."""

import re
from enum import Enum
from typing import Any

import msgspec
import pytest
from msgspec import inspect
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.conversation import Conversation, ConversationTurn, Message
from agentdash.model.fleet import FleetKnown
from agentdash.model.secrets import mask_fields
from agentdash.model.thread import Call
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.exports import ExportReport, redacted
from agentdash.report.redact import Scrubber
from agentdash.report.schemas import DOCUMENTS
from tests.unit.planted_secrets import LONG, leaks

KEPT = {
    *("call.id", "call.tool", "call.cwd", "call.text", "call.script"),
    *("call.escalation.prefix_rule", "call.changes.path", "call.changes.moved_to"),
    *("worker.id", "worker.name", "worker.agent.name", "worker.agent.version"),
    *("worker.cwd", "worker.model", "worker.tokens.by_model.model", "worker.tokens.by_model.tier"),
    *("worker.tokens.limits.plan", "worker.tokens.before_day.model", "worker.tokens.before_day.tier"),
    *("worker.history.state", "worker.sandbox.findings.evidence.rule"),
    *("worker.sandbox.findings.fields.expected", "worker.sandbox.findings.fields.actual"),
}
"""Text fields that a redacted report shows, besides policies: identifiers, paths, commands."""


class Canaries:
    """Values for a type, with a different word in every text."""

    def __init__(self, prefix: str = "") -> None:
        self.paths: dict[str, str] = {}
        self._prefix = prefix

    def of(self, found: inspect.Type, path: str) -> Any:
        match found:
            case inspect.UnionType(types=types):
                return self.of(next(t for t in types if not isinstance(t, inspect.NoneType)), path)
            case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
                return [self.of(item, path)]
            case inspect.TupleType(item_types=items):
                return [self.of(item, path) for item in items]
            case inspect.DictType(key_type=key, value_type=value):
                return {self.of(key, path): self.of(value, path)}
            case inspect.StructType(fields=fields, tag_field=tag_field, tag=tag):
                values = {field.encode_name: self.of(field.type, f"{path}.{field.name}") for field in fields}
                return values | ({tag_field: tag} if tag_field else {})
            case inspect.StrType() | inspect.AnyType():
                canary = f"canary{len(self.paths):03}"
                self.paths[canary] = path.lstrip(".")
                return f"{self._prefix}{canary}"
            case inspect.LiteralType(values=values):
                return values[0]
            case inspect.EnumType(cls=enum):
                return next(iter(enum)).value if issubclass(enum, Enum) else None
            case inspect.BoolType():
                return True
            case inspect.FloatType() | inspect.IntType():
                return 1
        raise AssertionError(f"no value for {found}")

    def make(self, struct: type[msgspec.Struct], path: str = "") -> Any:
        """Return a struct of which every field is filled."""
        return msgspec.convert(self.of(inspect.type_info(struct), path), struct, strict=False)

    def found_in(self, value: Any) -> set[str]:
        """Return the paths of the canaries that a value still contains."""
        text = msgspec.json.encode(value).decode()
        return {self.paths[canary] for canary in re.findall(r"canary\d{3}", text)}


@pytest.mark.parametrize("kind", ["command", "question"])
def test_every_text_of_a_report_is_left_out_or_meant_to_be_shown(kind: Any) -> None:
    canaries = Canaries()
    worker, message = canaries.make(Worker, "worker"), canaries.make(Message, "message")
    call = replace(canaries.make(Call, "call"), kind=kind)
    turn = ConversationTurn(number=1, at=1.0, entries=(call, message), error=message.text)
    talk = Conversation(thread="t", turns=(turn,), problem=message.text)
    notes = [message.text]
    report = ExportReport("t", 1.0, 2.0, [worker], [talk], redacted=True, notes=notes, sources="x")
    shown = canaries.found_in(redacted(report, Scrubber()))
    assert len(canaries.paths) > 100
    policies = ("worker.sandbox.configured.", "worker.policies.")
    kept = KEPT if kind == "command" else KEPT - {"call.text", "call.script"}
    assert {path for path in shown if not path.startswith(policies)} == kept


STRUCTS = [*e.EVENTS, FleetKnown, Snapshot, *DOCUMENTS.values()]


@pytest.mark.parametrize("struct", dict.fromkeys(STRUCTS), ids=lambda struct: struct.__name__)
def test_secrets_are_masked_in_every_text_of_every_struct(struct: type[msgspec.Struct]) -> None:
    """Without redaction too: what `mask_fields` returns is what is written."""
    canaries = Canaries(prefix=f"ghp_{LONG}")
    value = canaries.make(struct)
    assert len(leaks(msgspec.json.encode(value).decode())) >= len(canaries.paths)
    assert leaks(msgspec.json.encode(mask_fields(value)).decode()) == []


# ---------------------------------------------------------------- homes, users, hosts


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/mallory/api /Users/mallory /root/x /root", "~/api ~ ~/x ~"),
        ("/opt/ci/.ssh/id and /opt/ci/work, not /opt/cinder", "~/.ssh/id and ~/work, not /opt/cinder"),
        (r"C:\Users\mallory\x and C:/Users/mallory/x", r"~\x and ~/x"),
        ("chown mallory:staff x; ssh mallory@build7.corp", "chown [user]:staff x; ssh [user]@[host]"),
        ("on build7 and build7.corp, not build77", "on [host] and [host], not build77"),
        ("/opt/homes/me/.cache/x; /opt/homes/me2", "~/.cache/x; /opt/homes/me2"),
        ("/srv/x/.codex/config.toml .config /rootfs", "/srv/x/.codex/config.toml .config /rootfs"),
        ("https://example.org/home/ ./home/x", "https://example.org/home/ ./home/x"),
    ],
)
def test_homes_users_and_hosts_are_replaced(text: str, shown: str) -> None:
    scrubber = Scrubber(homes=["/home/mallory"], hosts=["build7.corp"])
    scrubber.learn(text)
    assert scrubber.text(text) == shown


@pytest.mark.parametrize("user", ["root", "mallory"])
def test_secrets_of_users_are_masked_before_the_users_are_replaced(user: str) -> None:
    """A URL without its user does not look like one with a password any more."""
    scrubber = Scrubber(homes=["/home/mallory", "/root"])
    shown = scrubber.text(f"mysql -u x mysql://{user}:Tr0ub4dor@db.example/x")
    assert "Tr0ub4dor" not in shown
    assert "db.example/x" in shown


def test_home_of_a_process_and_of_the_host_are_learned() -> None:
    canaries = Canaries()
    host = replace(canaries.make(e.HostSeen), home="/data/u/7")
    seen = canaries.make(e.ProcessSeen)
    scrubber = Scrubber()
    scrubber.learn(host)
    scrubber.learn(replace(seen, process=replace(seen.process, env={"HOME": "/data/u/8"})))
    assert scrubber.text("ls /data/u/7/x /data/u/8 /data/u/9") == "ls ~/x ~ /data/u/9"
