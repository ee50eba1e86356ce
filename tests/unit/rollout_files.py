"""Rollouts for tests: recorded ones, and constructed lines."""

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from agentdash.agents.codex.home import CodexHome, open_lines, thread_id
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.model.events import CallEnded, Event

DATA = Path(__file__).parents[1] / "data"
RECORDINGS = DATA / "recordings"
ROLLOUTS = DATA / "rollouts"
VERSIONS = sorted((p.name for p in RECORDINGS.iterdir() if p.is_dir()), key=lambda v: int(v.split(".")[1]))
THREAD = "01a1fa8b-2cba-7501-a214-dc60155cd481"
BORN = 1795204787.386
"""The time in `THREAD`, 2026-11-20T19:59:47.386Z."""
PARENT = "01a1fa8a-0000-7501-a214-dc60155cd481"
CHANGED = 1_795_213_600.0
"""When the copies in a home were changed."""
E_ = TypeVar("E_", bound=Event)


def files(version: str, scenario: str, base: Path = RECORDINGS) -> list[Path]:
    """Return the rollouts of a scenario, oldest thread first."""
    found = sorted((base / version / scenario).glob("*.jsonl"))
    assert found
    return found


def all_files() -> list[Path]:
    """Return all stored rollouts."""
    return sorted(DATA.glob("r*/*/*/*.jsonl"))


def home_of(folder: Path, *paths: Path) -> CodexHome:
    """Return a Codex home with copies of these rollouts, long unchanged."""
    home = CodexHome(folder)
    for path in paths:
        day = home.sessions / path.name[8:18].replace("-", "/")
        day.mkdir(parents=True, exist_ok=True)
        os.utime(shutil.copy(path, day), (CHANGED, CHANGED))
    return home


def events_of(path: Path) -> list[Event]:
    """Return the events of a rollout."""
    thread = thread_id(path)
    assert thread is not None
    return RolloutReader(thread).read(open_lines(path))


def only(kind: type[E_], events: list[Event]) -> list[E_]:
    """Return the events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def line(type_: str, payload: dict[str, Any], *, second: float = 1.0, ordinal: int | None = None) -> bytes:
    """Return a line of a rollout, `second` seconds after `THREAD` began."""
    when = (
        datetime.fromtimestamp(BORN + second, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
    numbered = {} if ordinal is None else {"ordinal": ordinal}
    return json.dumps(
        {"timestamp": when, **numbered, "type": type_, "payload": payload}, separators=(",", ":")
    ).encode()


def response(type_: str, **fields: Any) -> bytes:
    """Return a `response_item` line."""
    return line("response_item", {"type": type_, **fields})


def event(type_: str, **fields: Any) -> bytes:
    """Return an `event_msg` line."""
    return line("event_msg", {"type": type_, **fields})


def item(type_: str, **fields: Any) -> bytes:
    """Return an `item_completed` line."""
    return event(
        "item_completed",
        thread_id=THREAD,
        turn_id="turn-1",
        item={"type": type_, **fields},
        completed_at_ms=1,
    )


def call(name: str, arguments: dict[str, Any] | str, *, id_: str = "call_1", **more: Any) -> bytes:
    """Return a `function_call` line."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return response("function_call", name=name, arguments=text, call_id=id_, **more)


def answer(output: Any, *, id_: str = "call_1") -> bytes:
    """Return a `function_call_output` line."""
    return response("function_call_output", call_id=id_, output=output)


def meta(**fields: Any) -> bytes:
    """Return the first line of a new thread."""
    return line(
        "session_meta",
        {"id": THREAD, "timestamp": "2026-11-20T19:59:47.386Z", "cwd": "/home/dev/project", **fields},
    )


def read(*lines: bytes) -> list[Event]:
    """Return the events of lines in a file of `THREAD`."""
    return RolloutReader(THREAD).read(lines)


def ending(*lines: bytes, of: str = "call_1") -> tuple[str, int | None, str]:
    """Return outcome, exit code and output of a call, which must end once."""
    (end,) = [end for end in only(CallEnded, read(*lines)) if end.call == of and end.outcome != "running"]
    return end.outcome, end.exit_code, end.output
