"""A session of which only head and tail are read has the policy that the whole log states."""

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentdash.agents.claude import home as claude
from agentdash.agents.codex import home as codex
from agentdash.agents.session_logs import reader_of_log
from agentdash.collect.tail.log_file import LinesInForce, LogFile, ReadLimits, lines_in_force
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.events import FileGapSkipped
from agentdash.model.fleet import Fleet
from agentdash.model.limits import MAX_LINE_BYTES, READ_BLOCK_BYTES, SKIM_ABOVE_BYTES
from agentdash.model.line_marks import LineMarks
from agentdash.model.thread import Thread, Turn

DATA = Path(__file__).parent.parent / "data"
ROLLOUT = next(DATA.glob("recordings/0.169.0/killed-mid-command/rollout*"))
TRANSCRIPT = next(DATA.glob("claude/2.1.330/on/projects/*/*.jsonl"))
PROFILES = (
    ({"type": "disabled"}, {"type": "danger-full-access"}),
    ({"type": "managed", "file_system": {"type": "restricted", "entries": []}}, {"type": "read-only"}),
    (None, None),
)
"""Permission profiles and sandbox policies of turns; None: as recorded, the workspace."""
MODES = ("default", "acceptEdits", "plan", "bypassPermissions")

Record = dict[str, Any]


def records(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def stamped(number: int, record: Record) -> Record:
    at = datetime.fromtimestamp(1_795_000_000 + number, UTC)
    return record | {"timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def rollout(chance: random.Random) -> Iterator[Record]:
    """Turns of any policy and length; some change their policy on the way."""
    meta, started, *_ = known = records(ROLLOUT)
    context, settings, done = known[5], known[6], known[13]
    output = next(r for r in known if r["payload"].get("type") == "function_call_output")
    yield meta
    for turn in range(chance.randint(1, 8)):
        profile, sandbox = chance.choice(PROFILES)
        stated = {"permission_profile": profile, "sandbox_policy": sandbox} if profile else {}
        yield started | {"payload": started["payload"] | {"turn_id": f"turn-{turn}"}}
        yield context | {"payload": context["payload"] | stated | {"turn_id": f"turn-{turn}"}}
        yield prompt(known[8], f"do {turn}")
        for number in range(chance.choice((1, 20, 100, 300))):
            payload = output["payload"] | {"call_id": f"{turn}-{number}", "output": "x" * 1_500}
            yield output | {"payload": payload}
            if chance.random() < 0.01:
                yield settings
        if chance.random() < 0.7:
            yield done | {
                "payload": {"type": "task_complete", "turn_id": f"turn-{turn}", "last_agent_message": "x"}
            }


def prompt(record: Record, text: str) -> Record:
    item = record["payload"]["item"] | {"content": [{"type": "text", "text": text}]}
    return record | {"payload": record["payload"] | {"item": item}}


def transcript(chance: random.Random) -> Iterator[Record]:
    """Prompts in any mode, each with results of any size."""
    known = records(TRANSCRIPT)
    first = next(number for number, record in enumerate(known) if "permissionMode" in record)
    yield from known[: first + 1]
    for turn in range(chance.randint(1, 6)):
        message = {"role": "user", "content": f"do {turn}"}
        named = {"uuid": f"prompt-{turn}", "promptId": f"{turn}"}
        yield known[first] | named | {"permissionMode": chance.choice(MODES), "message": message}
        for number in range(chance.choice((1, 20, 400))):
            text = [{"type": "text", "text": "x" * 4_000}]
            message = {"role": "assistant", "id": f"{turn}-{number}", "model": "m", "content": text}
            yield {**known[first], "type": "assistant", "message": message, "permissionMode": None}


def without_line(turn: Turn | None) -> Turn | None:
    return msgspec.structs.replace(turn, line=0) if turn else None


def read(path: Path, thread: str, skim_above: int | None) -> tuple[Thread, bool]:
    marks = claude.LINE_MARKS if claude.thread_id(path) else codex.LINE_MARKS
    limits = ReadLimits(skim_above, MAX_LINE_BYTES, READ_BLOCK_BYTES, marks)
    reader = reader_of_log(path, thread)
    fleet, has_gap = Fleet(), False
    for change in LogFile(str(path), limits).read():
        if change.skimmed and change.first == 0 and not has_gap:
            has_gap = True
            fleet = reduce(fleet, [FileGapSkipped(at=0.0, thread=thread, same_turn=change.same_turn)])
        fleet = reduce(fleet, reader.read(change.lines, change.first))
    return fleet.threads[thread], has_gap


@pytest.mark.slow
@pytest.mark.parametrize(
    ("generate", "name", "limit"),
    [(rollout, ROLLOUT.name, SKIM_ABOVE_BYTES), (transcript, TRANSCRIPT.name, 1 << 18)],
)
def test_policy_of_a_skimmed_log_is_that_of_the_whole_log(
    generate: Callable[[random.Random], Iterator[Record]], name: str, limit: int, tmp_path: Path
) -> None:
    chance = random.Random(14)
    thread = name.removesuffix(".jsonl")[-36:]
    path = tmp_path / name
    skimmed = 0
    for _ in range(40):
        lines = [stamped(number, record) for number, record in enumerate(generate(chance))]
        path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines), "utf-8")
        part, is_skimmed = read(path, thread, limit)
        whole, _ = read(path, thread, None)
        assert (part.policy, part.model, part.last_prompt) == (whole.policy, whole.model, whole.last_prompt)
        assert part.agent == "claude" or without_line(part.turn) == without_line(whole.turn)
        skimmed += is_skimmed
    assert skimmed > 10


MARKS = LineMarks(turn=(b"[A]", b"[C]"), beside=(b"[D]",), later=(b"[B]",))


def found_lines(path: Path, low: int, high: int, max_line: int = 1 << 20) -> LinesInForce:
    with path.open("rb") as file:
        return lines_in_force(file.fileno(), low, high, MARKS, max_line)


def test_newest_lines_of_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "log"
    before = b"[A] first\n[B] before\n" + b"x" * 200_000
    path.write_bytes(before + b"\n[A] second\n" + b"y" * 3_000_000 + b"\n[B] last\n[A] out\n")
    end = path.read_bytes().index(b"[A] out")
    assert found_lines(path, 0, end) == ([b"[A] second", b"[B] last"], True)
    assert found_lines(path, 0, end - len("[B] last\n")) == ([b"[A] second"], True)
    assert found_lines(path, 0, len("[A] first\n[B] before\n")) == ([b"[A] first", b"[B] before"], True)
    assert found_lines(path, len("[A] first\n"), len("[A] first\n[B] before\n")) == ([b"[B] before"], False)
    assert found_lines(path, end, end) == ([], False)


@pytest.mark.parametrize("shift", range(-4, 5))
def test_a_mark_across_two_blocks(tmp_path: Path, shift: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"p" * 1_000 + b"\n[A] here\n" + b"q" * ((1 << 16) + shift) + b"\n")
    assert found_lines(path, 0, path.stat().st_size) == ([b"[A] here"], True)
