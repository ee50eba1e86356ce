"""Torn, foreign, hostile and unknown lines: counted, never fatal, and sanitized."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentdash.agents import line_events
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.model import events as e
from tests.unit.rollout_files import (
    THREAD,
    answer,
    call,
    event,
    files,
    item,
    line,
    meta,
    only,
    read,
    response,
)

HOSTILE = "\x1b[2J\x1b]0;owned\x07a\x00\x9b31m\u202eb\u200bc\ud800\U000e0041\r\n\td"
CONTROL_CHARACTERS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def skipped(*lines: bytes) -> list[tuple[str, str]]:
    return [(event.what, event.detail) for event in only(e.LineSkipped, read(*lines))]


@pytest.mark.parametrize(
    ("later", "detail"),
    [
        (line("world_state2", {"full": True}), "world_state2"),
        (response("telepathy", content=[]), "response_item telepathy"),
        (item("Telepathy", id="t"), "item Telepathy"),
        (b'{"record_type":"soul"}', "record soul"),
        (b'{"type":"telepathy","id":null}', "response_item telepathy"),
        (b'{"payload":{},"timestamp":"2026-11-20T20:00:00Z"}', "without a type"),
    ],
)
def test_unknown_kinds_are_counted_by_name(later: bytes, detail: str) -> None:
    assert skipped(meta(), later) == [("unknown", detail)]


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b"[]",
        b"\xff\xfe\x00",
        b'{"timestamp":"2026-11-20T20:00:00.000Z","type":"event_msg","payload":{"type":"task_st',
        event("agent_message", message="?").replace(b"?", b"\xff"),
        line("event_msg", {"type": "agent_message", "message": 7}),
        b'{"timestamp":"2026-11-20T20:00:00.000Z","type":"response_item","payload":' + b"[" * 100_000,
        response("function_call", name="shell", arguments="{}"),
    ],
    ids=lambda line: repr(line[-30:]),
)
def test_malformed_lines_are_counted(broken: bytes) -> None:
    found = skipped(meta(), broken, event("task_started", turn_id="t"))
    assert [what for what, _ in found] == ["malformed"]
    assert all(len(detail) <= 200 for _, detail in found)


def test_record_after_a_torn_one_is_read() -> None:
    events = read(
        event("task_started", turn_id="t")[:70] + event("task_started", turn_id="u"),
        line("world_state", {})[:60] + call("shell", {}),
    )
    assert len(only(e.TurnStarted, events)) == 1
    assert len(only(e.CallStarted, events)) == 1
    assert [event.what for event in only(e.LineSkipped, events)] == ["malformed", "malformed"]


def test_oversized_line_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_events, "MAX_LINE_BYTES", 1000)
    big, start = read(line("compacted", {"message": "x" * 1000}), event("task_started"))
    assert isinstance(big, e.LineSkipped)
    assert isinstance(start, e.TurnStarted)
    assert (big.what, start.line) == ("oversized", 2)


def test_consecutive_skipped_lines_are_one_event() -> None:
    unknown = [line("novelty", {})] * 3
    damaged = [b"{}x", b"{", b"nothing"]
    events = read(*unknown, line("surprise", {}), *damaged, event("task_started"), *unknown)
    skipped = [(each.reason, each.line, each.count) for each in events if isinstance(each, e.LineSkipped)]
    assert skipped == [
        ("unknown novelty", 3, 3),
        ("unknown surprise", 4, 1),
        ("malformed", 7, 3),
        ("unknown novelty", 11, 3),
    ]


def test_record_written_twice_counts_once() -> None:
    ran = call("shell", {"command": ["ls"]})
    events = read(ran, ran, answer("x"), answer("x"))
    assert [type(event) for event in events] == [e.CallStarted, e.CallEnded]


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(key)
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def assert_clean(events: list[e.Event]) -> None:
    for told in events:
        again = e.decode(e.encode(told))
        assert again == told
        for text in strings(msgspec.to_builtins(told)):
            assert not CONTROL_CHARACTERS.search(text)


TAGS = ("type", "id", "kind", "tool", "role", "name", "status", "timestamp", "call_id")


def spoiled(value: Any, text: str) -> Any:
    """Return `value` with all strings replaced but keys and tags."""
    if isinstance(value, dict):
        return {key: inner if key in TAGS else spoiled(inner, text) for key, inner in value.items()}
    if isinstance(value, list):
        return [spoiled(v, text) for v in value]
    return text if isinstance(value, str) else value


def recorded() -> list[dict[str, Any]]:
    """Return one recorded line of every kind."""
    paths = [*files("0.36.0", "read-only"), *files("0.98.0", "read-only"), *files("0.130.0", "spawn")]
    paths += [*files("0.169.0", "spawn"), *files("0.169.0", "provider-401")]
    kinds: dict[Any, dict[str, Any]] = {}
    for found in (json.loads(text) for path in paths for text in path.read_bytes().splitlines()):
        payload = found["payload"]
        kind = payload.get("type"), payload.get("item", {}).get("type"), payload.get("name")
        kinds.setdefault((found["type"], *kind), found)
    return list(kinds.values())


RECORDED = recorded()


def test_texts_are_sanitized() -> None:
    text = HOSTILE.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    lines = [json.dumps(spoiled(found, text)).encode() for found in RECORDED]
    lines += [
        call(text, {"cmd": text, "workdir": text, "justification": text}, id_=text, namespace=text),
        answer(text, id_=text),
        item(text, id=text),
        line(text, {}),
        call("exec_command", {"cmd": text}, id_=text),
    ]
    events = read(*lines)
    assert len(events) > 20
    assert_clean(events)


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Draw a recorded line with one value replaced."""
    found = json.loads(json.dumps(draw(st.sampled_from(RECORDED))))
    place = found["payload"] if draw(st.booleans()) else found
    while isinstance(place, dict) and place:
        key = draw(st.sampled_from(sorted(place)))
        if isinstance(place[key], dict) and place[key] and draw(st.booleans()):
            place = place[key]
            continue
        place[key] = draw(anything)
        break
    return json.dumps(found).encode()


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(mutated() | st.binary(max_size=40), min_size=1, max_size=4))
def test_reading_never_raises(lines: list[bytes]) -> None:
    assert_clean(RolloutReader(THREAD).read(lines))
