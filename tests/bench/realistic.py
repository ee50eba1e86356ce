"""Generate a Codex home as real work leaves it: source, listings and builds in the outputs, encrypted
reasoning, patches, token counts, compactions; few commands print an environment or are denied.

Sizes are heavy-tailed. A modelled home, not one of a user; the same for one seed and one Python.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tests.bench.figures import RECORDINGS

_VERSIONS = {"0.114.0": 3, "0.130.0": 3, "0.169.0": 2}
"""Recordings whose heads are used, and how often."""
_DAYS = 200
_OUTPUTS = 2_500
"""Different outputs."""
_MAX_OUTPUT = 40_000
"""Characters of the longest output: Codex cuts at 10,000 tokens."""
_TURN_ROUNDS, _COMPACTION_ROUNDS = 40, 300
_SHARES = (0.70, 0.10, 0.185, 0.01, 0.005)
"""Of the outputs: source, listing, build, denials, environments."""


class _Output(NamedTuple):
    command: str
    text: str
    code: int


class _Head(NamedTuple):
    """What a recording begins and ends a session with."""

    lines: list[str]
    turn_context: str
    token_lines: list[str]
    marks: list[str]
    """The end of a turn and the start of the next one."""
    thread: str


def make_realistic_home(out: Path, files: int, megabytes: float, seed: int = 7) -> Path:
    """Write `files` sessions with a total size of `megabytes` under `out`; return `out`. Their modification
    times are those of their last lines."""
    rng = random.Random(seed)
    weights = [rng.paretovariate(1.1) for _ in range(files)]
    scale = megabytes * 1e6 / sum(weights)
    texts = _Texts(rng)
    heads = {version: _head(version) for version in _VERSIONS}
    start = datetime(2026, 5, 1, 9, tzinfo=UTC)
    for number, weight in enumerate(weights):
        at = start + timedelta(minutes=number * _DAYS * 24 * 60 / files)
        thread = _uuid7(at, rng)
        path = out / "sessions" / f"{at:%Y/%m/%d}" / f"rollout-{at:%Y-%m-%dT%H-%M-%S}-{thread}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        (version,) = rng.choices(list(heads), list(_VERSIONS.values()))
        writer = _Session(version, heads[version], thread, at, texts, rng)
        with path.open("w") as file:
            for line in writer.lines(weight * scale):
                file.write(line + "\n")
        os.utime(path, (writer.at.timestamp(),) * 2)
    return out


def _uuid7(at: datetime, rng: random.Random) -> str:
    bits = (
        (int(at.timestamp() * 1000) << 80)
        | (0x7 << 76)
        | (rng.getrandbits(12) << 64)
        | (0b10 << 62)
        | rng.getrandbits(62)
    )
    return str(uuid.UUID(int=bits))


def _head(version: str) -> _Head:
    path = min((RECORDINGS / version / "workspace-write").glob("*.jsonl"))
    lines = path.read_text().splitlines()
    first_call = next(n for n, line in enumerate(lines) if '_call"' in line)
    marks = [
        next((line for line in lines if f'"{name}"' in line), "")
        for name in ("task_complete", "task_started")
    ]
    counts = [line for line in lines if '"token_count"' in line and '"total_tokens"' in line][-1:]
    records = [line for line in lines if '"token_usage_record"' in line][:1]
    return _Head(
        lines=lines[:first_call],
        turn_context=next(line for line in lines if '"turn_context"' in line),
        token_lines=[*records, *counts],
        marks=[line for line in marks if line],
        thread=path.stem[-36:],
    )


class _Texts:
    """What the sessions are made of."""

    def __init__(self, rng: random.Random) -> None:
        sources = sorted(
            p for p in Path(os.__file__).parent.rglob("*.py") if 2_000 < p.stat().st_size < 200_000
        )
        rng.shuffle(sources)
        self._sources = [path.read_text(errors="replace") for path in sources[:250]]
        self._names = [path.name for path in sources[:250]]
        self._rng = rng
        self._listing = "\n".join(
            f"-rw-r--r-- 1 dev dev {p.stat().st_size:>7} Nov 20 20:00 {p}" for p in sources
        )
        self._build = "\n".join(self._build_line() for _ in range(4_000))
        self.outputs = [self._output() for _ in range(_OUTPUTS)]
        self.sayings = [self._piece(rng.choice(self._sources), rng.randint(80, 900)) for _ in range(400)]
        self.titles = [re.sub(r"[^\w .,]", " ", each)[:120] for each in self.sayings]
        self.patches = [self._patch() for _ in range(400)]
        sizes = [min(12_000, int(rng.lognormvariate(6.9, 0.8))) for _ in range(400)]
        self.encrypted = [base64.b64encode(rng.randbytes(size)).decode() for size in sizes]

    def _piece(self, text: str, size: int) -> str:
        start = self._rng.randrange(max(1, len(text) - size))
        return text[start : start + size]

    def _build_line(self) -> str:
        rng = self._rng
        if rng.random() < 0.8:
            name = rng.choice(("serde", "tokio", "syn", "clap", "regex", "hyper"))
            return f"   Compiling {name} v{rng.randint(0, 3)}.{rng.randint(0, 99)}.{rng.randint(0, 99)}"
        place = f"src/{rng.choice(('main', 'lib', 'io', 'net'))}.rs:{rng.randint(1, 900)}"
        return f"warning: unused variable: `x`\n  --> {place}\n   = note: `#[warn(unused_variables)]`"

    def _output(self) -> _Output:
        rng = self._rng
        size = min(_MAX_OUTPUT, int(rng.lognormvariate(7.0, 1.5)))
        number = rng.randrange(len(self._sources))
        source, name = self._sources[number], self._names[number]
        piece = self._piece
        environment = "CODEX_SANDBOX_NETWORK_DISABLED=1\nHOME=/home/dev\nPWD=/home/dev/p\n"
        makers: tuple[Callable[[], _Output], ...] = (
            lambda: _Output(f"sed -n '1,{rng.randint(100, 800)}p' src/{name}", piece(source, size), 0),
            lambda: _Output("ls -la src tests", piece(self._listing, size), 0),
            lambda: _Output("cargo build 2>&1 | tail -200", piece(self._build, size), 0),
            lambda: _Output("cat /etc/shadow", "cat: /etc/shadow: Permission denied\n", 1),
            lambda: _Output("env | sort", environment, 0),
        )
        return rng.choices(makers, _SHARES)[0]()

    def _patch(self) -> str:
        size = min(9_000, int(self._rng.lognormvariate(7, 1)))
        changes = "\n".join(
            f"+{line}" for line in self._piece(self._rng.choice(self._sources), size).split("\n")
        )
        return f"*** Begin Patch\n*** Update File: a.py\n@@\n{changes}\n*** End Patch"


class _Session:
    """The lines of one session.

    Args:
        version: of the recording that it begins as.
        head: of that recording.
        thread: its id.
        at: when it begins.
        texts: what it is made of.
        rng: random numbers.
    """

    def __init__(
        self, version: str, head: _Head, thread: str, at: datetime, texts: _Texts, rng: random.Random
    ) -> None:
        self.at = at
        self._has_items = version == "0.169.0"
        self._head = head
        self._thread = thread
        self._texts = texts
        self._rng = rng
        self._ordinal = 0

    def lines(self, size: float) -> Iterator[str]:
        """Yield its lines, about `size` bytes of them."""
        written = 0
        for line in self._head.lines:
            written += len(line)
            yield self._stamped(line)
        rounds = 0
        while written < size:
            rounds += 1
            for line in self._round(rounds):
                written += len(line) + 1
                yield line
        yield from map(self._stamped, self._head.marks[:1])

    def _round(self, number: int) -> Iterator[str]:
        rng, texts = self._rng, self._texts
        call = f"call_{rng.getrandbits(96):024x}"
        if rng.random() < 0.75:
            yield from self._reasoning()
        kind = rng.random()
        if kind < 0.10:
            yield from self._patched(call, rng.choice(texts.patches))
        elif kind < 0.95:
            yield from self._ran(call, rng.choice(texts.outputs))
        else:
            said = rng.choice(texts.sayings)
            yield self._record("event_msg", type="agent_message", message=said)
            content = [{"type": "output_text", "text": said}]
            yield self._record("response_item", type="message", role="assistant", content=content)
        for line in self._head.token_lines:
            yield self._stamped(re.sub(r'"total_tokens":\d+', f'"total_tokens":{number * 1500}', line))
        if number % _TURN_ROUNDS == 0:
            yield from map(self._stamped, (*self._head.marks, self._head.turn_context))
            yield self._record("event_msg", type="user_message", message=rng.choice(texts.titles))
        if number % _COMPACTION_ROUNDS == 0:
            history = [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
                for text in rng.sample(texts.sayings, 80)
            ]
            yield self._record("compacted", message="", replacement_history=history)

    def _reasoning(self) -> Iterator[str]:
        title = f"**{self._rng.choice(self._texts.titles)}**"
        yield self._record(
            "response_item",
            type="reasoning",
            summary=[{"type": "summary_text", "text": title}],
            content=None,
            encrypted_content=f"gAAAAAB{self._rng.choice(self._texts.encrypted)}",
        )
        if not self._has_items:
            yield self._record("event_msg", type="agent_reasoning", text=title)

    def _patched(self, call: str, patch: str) -> Iterator[str]:
        yield self._record(
            "response_item",
            type="custom_tool_call",
            status="completed",
            call_id=call,
            name="apply_patch",
            input=patch,
        )
        result = {
            "output": "Success. Updated the following files:\nM a.py\n",
            "metadata": {"exit_code": 0, "duration_seconds": 0.0},
        }
        yield self._record(
            "response_item", type="custom_tool_call_output", call_id=call, output=json.dumps(result)
        )

    def _ran(self, call: str, ran: _Output) -> Iterator[str]:
        arguments = json.dumps({"cmd": ran.command, "workdir": "/home/dev/project", "yield_time_ms": 10_000})
        header = f"Chunk ID: 0bc055\nWall time: 0.3 seconds\nProcess exited with code {ran.code}\n"
        output = f"{header}Output:\n{ran.text}"
        yield self._record(
            "response_item", type="function_call", name="exec_command", arguments=arguments, call_id=call
        )
        if self._has_items:
            item = {
                "type": "CommandExecution",
                "id": call,
                "command": ["/bin/bash", "-lc", ran.command],
                "cwd": "file:///home/dev/project",
                "status": "completed" if ran.code == 0 else "failed",
                "aggregated_output": ran.text,
                "exit_code": ran.code,
                "source": "agent",
            }
            yield self._record("event_msg", type="item_completed", thread_id=self._thread, item=item)
        yield self._record("response_item", type="function_call_output", call_id=call, output=output)

    def _record(self, kind: str, /, **payload: object) -> str:
        ordinal = f'"ordinal":{self._next_ordinal()},' if self._has_items else ""
        body = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        return f'{{"timestamp":"{self._time()}",{ordinal}"type":"{kind}","payload":{body}}}'

    def _stamped(self, line: str) -> str:
        line = line.replace(self._head.thread, self._thread)
        line = re.sub(r'"timestamp":"[^"]+"', f'"timestamp":"{self._time()}"', line, count=1)
        return re.sub(r'"ordinal":\d+', lambda _: f'"ordinal":{self._next_ordinal()}', line, count=1)

    def _next_ordinal(self) -> int:
        self._ordinal += 1
        return self._ordinal

    def _time(self) -> str:
        self.at += timedelta(seconds=self._rng.uniform(0.005, 2))
        return f"{self.at:%Y-%m-%dT%H:%M:%S}.{self.at.microsecond // 1000:03d}Z"
