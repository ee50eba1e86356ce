"""Lines of versions and features without a recording, constructed from the reference."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agentdash.model import events as e
from tests.unit.rollout_files import BORN, PARENT, event, item, line, meta, only, read, response

OWN_TURN = "01a1fa8b-4e20-7000-8000-000000000001"
PARENTS_TURN = "01a1fa8a-4e20-7000-8000-000000000001"


# ---------------------------------------------------------------- messages


def message(role: str, text: str) -> bytes:
    kind = "output_text" if role == "assistant" else "input_text"
    return response("message", role=role, content=[{"type": kind, "text": text}])


def test_copies_in_other_dialects_are_dropped() -> None:
    heard = event("agent_message", message="done <b>")
    written = message("assistant", "done <b><oai-mem-citation>x</oai-mem-citation>")
    told = item("AgentMessage", id="m", content=[{"type": "Text", "text": "done <b>"}])
    for lines in ((heard, written), (written, heard), (told, written), (heard, told, written)):
        assert [said.text for said in only(e.MessageLogged, read(*lines))] == [
            only(e.MessageLogged, read(lines[0]))[0].text
        ]
    assert len(only(e.MessageLogged, read(heard, written, heard, written))) == 2
    assert len(only(e.MessageLogged, read(written, heard, heard, written))) == 2


def test_prompts_without_context() -> None:
    prompts = (
        event("user_message", message="<environment_context>\n<cwd>/p</cwd>\n</environment_context>"),
        event("user_message", message="be nice", kind="user_instructions"),
        event("user_message", message="<b>bold</b> is what I want"),
        item(
            "UserMessage",
            id="u",
            content=[{"type": "text", "text": "and <i>this</i>"}, {"type": "image", "image_url": "data:"}],
        ),
        message("user", "and <i>this</i>"),
        message("developer", "<permissions instructions>"),
    )
    said = [each.text for each in only(e.MessageLogged, read(meta(), *prompts))]
    assert said == ["<b>bold</b> is what I want", "and <i>this</i>"]


# ---------------------------------------------------------------- children, forks, helpers


def fork(*lines: bytes, **header: Any) -> list[str]:
    """Return the commands read from a fork of `PARENT`."""
    parents = line("session_meta", {"id": PARENT, "timestamp": "2026-11-20T19:00:00.000Z"})
    events = read(meta(forked_from_id=PARENT, **header), parents, *lines)
    return [start.text for start in only(e.CallStarted, events)]


def command(text: str, *, second: float = 1.0, ordinal: int | None = None) -> bytes:
    called = {"name": "exec_command", "arguments": json.dumps({"cmd": text}), "call_id": text}
    return line("response_item", {"type": "function_call", **called}, second=second, ordinal=ordinal)


def turn(turn_id: str, *, second: float = 1.0) -> bytes:
    return line("event_msg", {"type": "task_started", "turn_id": turn_id}, second=second)


@pytest.mark.parametrize(
    "lines",
    [
        (turn(PARENTS_TURN), command("old"), turn(OWN_TURN), command("new")),
        (command("old", second=-90), command("older", second=-80), command("new", second=3)),
        (command("old", second=1.001), command("old too", second=1.002), command("new", second=9)),
    ],
    ids=["newer turn id", "old times", "pause"],
)
def test_end_of_a_copied_history(lines: Sequence[bytes]) -> None:
    assert fork(*lines) == ["new"]
    numbered = (command("old", second=5, ordinal=3), command("new", second=5, ordinal=4))
    assert fork(*numbered, subagent_history_start_ordinal=4) == ["new"]


def test_another_session_in_the_file_is_counted_and_not_read() -> None:
    """`cat other.jsonl >> rollout.jsonl`: what follows is not the thread's, until its own header comes."""
    foreign = line("session_meta", {"id": PARENT, "timestamp": "2026-11-20T19:00:00.000Z"})
    others = (foreign, turn(OWN_TURN), command("other", second=90))
    events = read(meta(), command("own"), *others, meta(), command("own too"))
    assert [start.text for start in only(e.CallStarted, events)] == ["own", "own too"]
    assert only(e.TurnStarted, events) == []
    (skipped,) = only(e.LineSkipped, events)
    assert skipped.detail == f"another session follows: {PARENT}"


@pytest.mark.parametrize(
    ("fields", "source", "helper"),
    [
        ({"source": "cli"}, "cli", False),
        ({"source": {"custom": "bench"}}, "bench", False),
        (
            {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}},
            "subagent",
            False,
        ),
        ({"source": {"subagent": "review"}}, "review", True),
        ({"source": "vscode", "thread_source": "guardian_review"}, "vscode", True),
        ({"source": "vscode", "thread_source": {"feature": "thread_title"}}, "vscode", True),
        ({}, None, False),
    ],
)
def test_sources_and_helpers(fields: dict[str, Any], source: str | None, helper: bool) -> None:
    (born,) = only(e.ThreadStarted, read(meta(**fields)))
    assert (born.source, born.helper) == (source, helper)
    assert born.at == BORN


# ---------------------------------------------------------------- turns, settings, tokens


def test_error_of_a_turn() -> None:
    error = {"message": "m", "codex_error_info": {"http_connection_failed": {"http_status_code": None}}}
    (end,) = only(e.TurnEnded, read(event("turn_aborted", reason="interrupted", error=error)))
    assert (end.how, end.reason) == ("aborted", "interrupted")
    assert (end.error, end.error_kind) == ("m", "http_connection_failed")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (
            {
                "limit_id": "codex",
                "plan_type": "plus",
                "primary": {"used_percent": 112.5, "window_minutes": 300, "resets_at": 1795300000},
                "secondary": {"used_percent": 40, "window_minutes": 10080, "resets_at": 1795900000},
            },
            [(112.5, 300, 1795300000, "codex plus"), (40, 10080, 1795900000, "codex plus")],
        ),
        (
            {"primary": {"used_percent": 12.5, "resets_in_seconds": 60}, "secondary": None},
            [(12.5, None, BORN + 61, "")],
        ),
        (
            {"primary": {"used_percent": 12.5, "resets_at": "2026-11-20T20:00:00Z"}},
            [(12.5, None, 1795204800, "")],
        ),
        (
            {"primary_used_percent": 3.0, "secondary_used_percent": 1.0, "primary_window_minutes": 299},
            [(3.0, 299, None, ""), (1.0, None, None, "")],
        ),
        ({"primary": {"used_percent": "much", "window_minutes": 1e99}, "secondary": []}, []),
    ],
)
def test_rate_limit_formats(limits: dict[str, Any], expected: list[tuple[Any, ...]]) -> None:
    count = {"total_token_usage": {"total_tokens": 5}}
    (found,) = only(e.TokensCounted, read(event("token_count", info=count, rate_limits=limits)))
    stated = [(each.used, each.minutes, each.resets_at, each.plan) for each in found.limits]
    assert stated == [
        (used, minutes, resets and pytest.approx(resets), plan) for used, minutes, resets, plan in expected
    ]


def test_error_event_is_the_error_of_its_turn() -> None:
    error = event("error", message="usage limit", codex_error_info="usage_limit_exceeded")
    done = event("task_complete", turn_id="t", last_agent_message=None)
    first, second = only(e.TurnEnded, read(event("task_started"), error, done, event("task_started"), done))
    assert (first.error, first.error_kind) == ("usage limit", "usage_limit_exceeded")
    assert (second.error, second.error_kind) == (None, None)
