"""Redaction: every text field of events and workers is walked with canaries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from agentdash.model import events as e
from agentdash.model.fleet import FleetKnown
from agentdash.model.secrets import mask_fields
from agentdash.model.text_uses import TEXTS, TextUse
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.redact import Redaction, Replacements, Scrubber, texts_of
from agentdash.report.schemas import DOCUMENTS
from tests.unit.planted_secrets import LONG, leaks

KEPT_OF_WORKER = {
    "calls.denials.nested",
    "calls.denials.program",
    "id",
    "agent.name",
    "agent.version",
    "parent",
    "children",
    "below",
    "cwd",
    "model",
    "calls.cwd",
    "calls.escalation.prefix_rule",
    "calls.id",
    "calls.let_out_by",
    "calls.script",
    "calls.session",
    "calls.shell",
    "calls.text",
    "calls.tool",
    "moments.call",
    "pane.command",
    "pane.key.id",
    "sandbox.got.network_flag",
    "sandbox.got.sandbox_flag",
    "tokens.by_model.model",
    "tokens.by_model.tier",
}
"""Text fields of a worker that a redacted report shows: identifiers, paths, commands (the canary call is
one)."""
KEPT_BELOW = (
    "policies.",
    "sandbox.requested.policy.",
    "sandbox.requested.given.",
    "sandbox.configured.",
    "sandbox.applied_policy.",
    "sandbox.predicted_denials",
)
"""Structs of a worker that are shown whole: policies, and paths that a policy would deny."""


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
            case inspect.StructType(cls=cls, fields=fields, tag_field=tag_field, tag=tag):
                del cls
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

    def make(self, struct: type[msgspec.Struct]) -> Any:
        """Return a struct of which every field is filled."""
        return msgspec.convert(self.of(inspect.type_info(struct), ""), struct, strict=False)

    def found_in(self, value: Any) -> set[str]:
        """Return the paths of the canaries that a value still contains."""
        text = msgspec.json.encode(value).decode()
        return {self.paths[canary] for canary in re.findall(r"canary\d{3}", text)}


PLAIN_NAMES = frozenset(
    """
    agent approval arguments argv by call calls child clients command commit connection cwd device
    effort env error_kind exe exposed fact flags forked_from fstype holders home host how id labels
    limits lost may_ask model names network_flag nickname originator pane parent path platform point
    prefix_rule profile provider pushed quote reaches recalled repositories requests reviewer role
    rollouts root roots rule rules_of sandbox_flag server session shell source sources state terminal
    thread tier tool troubles turn unreadable unwritable version waiting_for what window words worker
    workers
    """.split()  # noqa: SIM905 - eighty lines otherwise
)
"""Text fields that are kept: identifiers, kinds, versions, paths, command lines of processes."""


def text_fields(struct: type[msgspec.Struct]) -> set[str]:
    """Return the fields of a struct that hold text themselves, not in a struct below."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return {
        field.name for field in info.fields if any(isinstance(t, inspect.StrType) for t in leaves(field.type))
    }


def leaves(found: inspect.Type) -> Iterator[inspect.Type]:
    match found:
        case inspect.UnionType(types=types) | inspect.TupleType(item_types=types):
            for item in types:
                yield from leaves(item)
        case inspect.VarTupleType(item_type=item):
            yield from leaves(item)
        case inspect.DictType(key_type=key, value_type=value):
            yield from (*leaves(key), *leaves(value))
        case _:
            yield found


def reachable_structs() -> set[type[msgspec.Struct]]:
    """Return every struct that an event can contain, and the events."""
    found: set[type[msgspec.Struct]] = set()
    waiting: list[type[msgspec.Struct]] = [*e.EVENTS, FleetKnown]
    while waiting:
        struct = waiting.pop()
        if struct in found:
            continue
        found.add(struct)
        info = inspect.type_info(struct)
        assert isinstance(info, inspect.StructType)
        below = (leaf for field in info.fields for leaf in leaves(field.type))
        waiting += [leaf.cls for leaf in below if isinstance(leaf, inspect.StructType)]
    return found


def test_every_text_field_has_a_use() -> None:
    fields = {(struct, name) for struct in reachable_structs() for name in text_fields(struct)}
    listed = {(struct, name) for struct, uses in TEXTS.items() for name in uses}
    assert len(fields) > 100
    assert {field for field in fields - listed if field[1] not in PLAIN_NAMES} == set()
    assert listed <= fields
    assert {name for _, name in fields - listed} == PLAIN_NAMES


def uses(struct: type[msgspec.Struct], path: str = "") -> Iterator[tuple[str, TextUse]]:
    """Yield the path and the use of every text field in a struct and below."""
    for name in text_fields(struct):
        yield f"{path}{name}", TEXTS.get(struct, {}).get(name, TextUse.PLAIN)
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        for below in nested(field.type):
            yield from uses(below, f"{path}{field.name}.")


def nested(found: inspect.Type) -> Iterator[type[msgspec.Struct]]:
    match found:
        case inspect.UnionType(types=types) | inspect.TupleType(item_types=types):
            for item in types:
                yield from nested(item)
        case inspect.VarTupleType(item_type=item) | inspect.DictType(value_type=item):
            yield from nested(item)
        case inspect.StructType(cls=cls):
            yield cls


@pytest.mark.parametrize("event_type", e.EVENTS, ids=lambda event: event.__name__)
def test_redacted_event_keeps_the_texts_of_its_uses(event_type: type[e.Event]) -> None:
    canaries = Canaries()
    event = canaries.make(event_type)
    if isinstance(event, e.CallStarted):
        event = msgspec.structs.replace(event, kind="question")
    (redacted,) = Redaction().events([event])
    removed = {TextUse.QUOTED, TextUse.NAME, TextUse.DROPPED}
    expected = {path for path, use in uses(event_type) if use not in removed}
    assert canaries.found_in(redacted) == expected & set(canaries.paths.values())


@pytest.mark.parametrize("event_type", [*e.EVENTS, FleetKnown], ids=lambda event: event.__name__)
def test_words_of_an_event_are_removed_from_texts(event_type: type[e.Event]) -> None:
    canaries = Canaries()
    event = canaries.make(event_type)
    if isinstance(event, e.CallStarted):
        event = msgspec.structs.replace(event, kind="question")
    redaction = Redaction()
    redaction.events([event])
    shown = redaction.text(" ".join(canaries.paths))
    learned = {TextUse.QUOTED, TextUse.NAME, TextUse.SCREEN}
    expected = {path for path, use in uses(event_type) if use in learned} & set(canaries.paths.values())
    assert {canaries.paths[canary] for canary in canaries.paths if canary not in shown} == expected


def test_command_is_kept_with_its_words() -> None:
    canaries = Canaries()
    call = msgspec.structs.replace(canaries.make(e.CallStarted), kind="command")
    redaction = Redaction()
    (redacted,) = redaction.events(
        [
            call,
        ]
    )
    assert canaries.found_in(redacted) == set(canaries.paths.values()) - {"escalation.reason"}
    redaction.events([e.MessageLogged(at=1.0, thread="t", role="user", text=f"run {call.text} secretly")])
    assert redaction.text(f"{call.text} secretly") == f"{call.text} [redacted]"


def test_every_text_of_a_worker_is_redacted_or_meant_to_be_shown() -> None:
    canaries = Canaries()
    worker = canaries.make(Worker)
    redaction = Redaction()
    text = " ".join(canaries.paths)
    redaction.events([e.MessageLogged(at=1.0, thread="t", role="agent", text=text)])
    shown = canaries.found_in(redaction.worker(worker))
    assert len(canaries.paths) > 60
    assert {path for path in shown if not path.startswith(KEPT_BELOW)} == KEPT_OF_WORKER


STRUCTS = [*e.EVENTS, FleetKnown, Snapshot, *TEXTS, *DOCUMENTS.values()]


@pytest.mark.parametrize("struct", dict.fromkeys(STRUCTS), ids=lambda struct: struct.__name__)
def test_secrets_are_masked_in_every_text_of_every_struct(struct: type[msgspec.Struct]) -> None:
    """Without redaction too: what `mask_fields` returns is what is written."""
    canaries = Canaries(prefix=f"ghp_{LONG}")
    value = canaries.make(struct)
    assert len(leaks(msgspec.json.encode(value).decode())) >= len(canaries.paths)
    assert leaks(msgspec.json.encode(mask_fields(value)).decode()) == []


# ---------------------------------------------------------------- homes, users, hosts, replacements


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/mallory/api /Users/mallory /root/x /root", "~/api ~ ~/x ~"),
        (
            "/var/lib/ci/.ssh/id and /var/lib/ci/work, not /var/lib/cinder",
            "~/.ssh/id and ~/work, not /var/lib/cinder",
        ),
        (r"C:\Users\mallory\x and C:/Users/mallory/x", r"~\x and ~/x"),
        ("chown mallory:staff x; ssh mallory@build7.corp", "chown [user]:staff x; ssh [user]@[host]"),
        ("on build7 and build7.corp, not build77", "on [host] and [host], not build77"),
        ("/opt/homes/me/.cache/x; /opt/homes/me2", "~/.cache/x; /opt/homes/me2"),
        (
            "/srv/project/.codex/config.toml .config /rootfs",
            "/srv/project/.codex/config.toml .config /rootfs",
        ),
        ("https://example.org/home/ ./home/x", "https://example.org/home/ ./home/x"),
    ],
)
def test_homes_users_and_hosts_are_replaced(text: str, shown: str) -> None:
    scrubber = Scrubber(homes=["/home/mallory"], hosts=["build7.corp"])
    scrubber.learn(text)
    assert scrubber.text(text) == shown


@pytest.mark.parametrize("replacements", [(), [("root", "R")]], ids=["homes", "replacements"])
@pytest.mark.parametrize("user", ["root", "mallory"])
def test_secrets_of_users_are_masked_before_the_users_are_replaced(
    user: str, replacements: Replacements
) -> None:
    """A URL without its user does not look like one with a password any more."""
    scrubber = Scrubber(homes=["/home/mallory", "/root"], replacements=replacements)
    for method in (scrubber.text, scrubber.replaced) if replacements else (scrubber.text,):
        shown = method(f"mysql -u x mysql://{user}:Tr0ub4dor@db.example/x")
        assert "Tr0ub4dor" not in shown
        assert "db.example/x" in shown


def test_home_of_a_process_and_of_the_host_are_learned() -> None:
    canaries = Canaries()
    host = msgspec.structs.replace(canaries.make(e.HostSeen), home="/data/u/7")
    seen = canaries.make(e.ProcessSeen)
    process = msgspec.structs.replace(seen.process, env={"HOME": "/data/u/8"})
    redaction = Redaction()
    redaction.events([host, msgspec.structs.replace(seen, process=process)])
    assert redaction.scrubber.text("ls /data/u/7/x /data/u/8 /data/u/9") == "ls ~/x ~ /data/u/9"


def test_replacements_come_first_and_longest_first() -> None:
    scrubber = Scrubber(
        homes=["/home/mallory"],
        replacements=[("/home/mallory/acme", "/x"), ("/home/mallory/acme/api", "/y"), ("Phoenix", r"P\1")],
    )
    text = "/home/mallory/acme/api/a /home/mallory/acme2 /home/mallory/acme phoenix PhoenixBird"
    assert scrubber.text(text) == r"/y/a ~/acme2 /x P\1 PhoenixBird"
    assert scrubber.replaced("/home/mallory/acme ~") == "/x ~"


def test_no_text_of_a_worker_names_its_machine() -> None:
    """Each text of a worker once holds a home, a user and a host."""
    marks = "/data/u/mallory/x build7 "
    canaries = Canaries(prefix=marks)
    worker = canaries.make(Worker)
    redaction = Redaction(Scrubber(homes=["/data/u/mallory"], hosts=["build7"]))
    text = msgspec.json.encode(redaction.worker(worker)).decode()
    assert "~/x [host]" in text
    assert "mallory" not in text
    assert "build7" not in text


def test_texts_of_a_value_are_found_in_all_collections() -> None:
    assert texts_of({"a": ("b", ["c", None, 1])}) == ["a", "b", "c"]
