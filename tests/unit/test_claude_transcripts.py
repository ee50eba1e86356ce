"""Transcripts of real Claude Code (tests/data/claude): every record is understood, and correctly."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentdash.agents.claude.home import thread_id
from agentdash.agents.claude.transcript.reader import TranscriptReader
from agentdash.engine.reduce.fleet import reduce
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.policy import Filesystem
from agentdash.model.thread import Thread

DATA = Path(__file__).parents[1] / "data" / "claude"
VERSIONS = ("2.1.197", "2.1.240", "2.1.330")
TRANSCRIPTS = sorted(DATA.glob("*/*/projects/**/*.jsonl"))
CASES = sorted(path.parent for path in DATA.glob("*/*/truth.json"))


def events_of(path: Path) -> list[e.Event]:
    return TranscriptReader(thread_id(path) or "").read(path.read_bytes().splitlines())


def threads_of(case: Path) -> dict[str, Thread]:
    """Return the threads of a case, the session first."""
    paths = sorted(case.glob("projects/**/*.jsonl"), key=lambda path: len(path.parts))
    fleet = reduce(Fleet(), [event for path in paths for event in events_of(path)])
    return fleet.threads


def test_corpus_is_whole() -> None:
    assert len(TRANSCRIPTS) >= len(VERSIONS) * 10
    assert {path.parent.name for path in CASES} == set(VERSIONS)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: "/".join(path.parts[-6:-1]))
def test_every_record_is_known(path: Path) -> None:
    skipped = [event for event in events_of(path) if isinstance(event, e.LineSkipped)]
    assert skipped == []


@pytest.mark.parametrize("version", VERSIONS)
def test_sub_agent_has_its_session_as_parent(version: str) -> None:
    threads = threads_of(DATA / version / "child-mode")
    session, child = threads.values()
    assert child.id.startswith("agent-")
    assert child.parent == session.id
    assert session.children == (child.id,)
    assert child.prompt == "[[child]] do your part"
    assert child.last_message == "child done"
    assert [call.kind for call in session.calls] == ["spawn"]


# ---------------------------------------------------------------- made-up records


def record(kind: str, **fields: Any) -> bytes:
    at = {"timestamp": "2026-11-22T06:00:00.000Z", "cwd": "/ws", "sessionId": "s", "version": "9.9.9"}
    return json.dumps({"type": kind, **at, **fields}).encode()


def read(*lines: bytes) -> list[e.Event]:
    return TranscriptReader("t").read(lines)


def of(events: list[e.Event], kind: type[e.Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def user(text: str, **fields: Any) -> bytes:
    return record("user", message={"role": "user", "content": text}, **fields)


def test_unknown_records_are_counted() -> None:
    events = read(record("novelty"), record("attachment", attachment={"type": "surprise"}))
    assert [event.detail for event in of(events, e.LineSkipped)] == ["novelty"]


def test_damaged_records_are_counted() -> None:
    events = read(b'{"type":"user","mess', b"[1]", b'{"type":"user","message":[3]}', b"\xff\xfe", b"null")
    assert [(event.what, event.count) for event in of(events, e.LineSkipped)] == [("malformed", 5)]


def test_interruption_ends_the_turn() -> None:
    events = read(user("go"), user("[Request interrupted by user]"))
    assert [event.how for event in of(events, e.TurnEnded)] == ["aborted"]


def test_what_claude_writes_as_the_user_is_no_prompt() -> None:
    events = read(
        user("<command-name>/clear</command-name>"),
        user("<local-command-stdout></local-command-stdout>"),
        user("a note", isMeta=True),
        user("the story so far", isCompactSummary=True),
        user("<task-notification>\nx</task-notification>", origin={"kind": "task-notification"}),
    )
    assert of(events, e.MessageLogged) == []
    assert len(of(events, e.TurnStarted)) == 1  # the notification is answered


def test_tokens_of_an_answer_are_counted_once() -> None:
    answer = {"id": "m", "model": "x", "usage": {"input_tokens": 3, "output_tokens": 4}}
    text = {**answer, "content": [{"type": "text", "text": "a"}]}
    call = {**answer, "content": [{"type": "tool_use", "id": "c", "name": "Bash", "input": {}}]}
    events = read(record("assistant", message=text), record("assistant", message=call))
    assert [event.total for event in of(events, e.TokensCounted)] == [7]


def test_context_after_compaction_is_the_stated_one() -> None:
    stated = ({"preTokens": 1150, "postTokens": 250}, {"preTokens": 1150}, "odd")
    events = read(*(record("system", subtype="compact_boundary", compactMetadata=each) for each in stated))
    assert [event.context for event in of(events, e.TokensCounted)] == [250]
    assert of(events, e.LineSkipped) == []


def test_unreadable_sandbox_is_unknown() -> None:
    for content in (
        "It is sandboxed.",
        "Filesystem: {",
        'Filesystem: {"write":{"allowOnly":["... and 3 more"]}}',
    ):
        attachment = {"type": "sandbox_instructions", "content": content}
        (policy,) = of(read(record("attachment", attachment=attachment)), e.PolicySet)
        assert policy.policy.filesystem is Filesystem.UNKNOWN
        assert not policy.policy.is_full_access


_ODD = st.sampled_from(
    [None, True, 7, -1.5, "", "x", [], [1], [{}], {}, {"type": 3}, {"content": [{"type": "text"}]}]
)
_FIELDS = (
    "message",
    "attachment",
    "toolUseResult",
    "sandboxed",
    "sandboxViolations",
    "permissionDecision",
    "error",
)
_MORE_FIELDS = ("origin", "content", "permissionMode", "timestamp", "cwd", "sessionId", "isMeta", "subtype")


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(["user", "assistant", "system", "attachment", "permission-mode", "x", ""]),
    fields=st.dictionaries(st.sampled_from(_FIELDS + _MORE_FIELDS), _ODD, max_size=5),
)
def test_no_record_is_fatal(kind: str, fields: dict[str, Any]) -> None:
    line = json.dumps({"type": kind, **fields}).encode()
    TranscriptReader("t").read([line, line])
