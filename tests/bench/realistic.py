"""Generate a Codex home as real work leaves it: source, listings and builds in the outputs, encrypted
reasoning, patches, token counts, compactions; few commands print an environment or are denied.

Sizes are heavy-tailed. A modelled home, not one of a user; the same for one seed and one Python.
"""

import base64
import json
import os
import random
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.bench.meter import RECORDINGS

_VERSIONS = {"0.114.0": 3, "0.130.0": 3, "0.169.0": 2}
"""Recordings whose heads are used, and how often."""
_DAYS = 200
_MAX_OUTPUT = 40_000
"""Characters of the longest output: Codex cuts at 10,000 tokens."""
_TURN_ROUNDS, _COMPACTION_ROUNDS = 40, 300
_SHARES = (0.70, 0.10, 0.185, 0.01, 0.005)
"""Of the outputs: source, listing, build, denials, environments."""
_ENVIRONMENT = "CODEX_SANDBOX_NETWORK_DISABLED=1\nHOME=/home/dev\nPWD=/home/dev/p\n"


def make_realistic_home(out: Path, files: int, megabytes: float, seed: int = 7) -> Path:
    """Write `files` sessions with a total size of `megabytes` under `out`; return `out`. Their modification
    times are those of their last lines."""
    rng = random.Random(seed)
    weights = [rng.paretovariate(1.1) for _ in range(files)]
    scale = megabytes * 1e6 / sum(weights)
    texts = _Texts(rng)
    heads = {version: _Head(version) for version in _VERSIONS}
    start = datetime(2026, 5, 1, 9, tzinfo=UTC)
    for number, weight in enumerate(weights):
        at = start + timedelta(minutes=number * _DAYS * 24 * 60 / files)
        bits = int(at.timestamp() * 1000) << 80 | 7 << 76 | 2 << 62
        thread = str(uuid.UUID(int=bits | rng.getrandbits(12) << 64 | rng.getrandbits(62)))
        path = out / "sessions" / f"{at:%Y/%m/%d}" / f"rollout-{at:%Y-%m-%dT%H-%M-%S}-{thread}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        (version,) = rng.choices(list(heads), list(_VERSIONS.values()))
        session = _Session(heads[version], thread, at, texts, rng)
        path.write_text("".join(f"{line}\n" for line in session.lines(weight * scale)))
        os.utime(path, (session.at.timestamp(),) * 2)
    return out


class _Head:
    """What a recording begins a session with, and its lines that recur."""

    def __init__(self, version: str) -> None:
        path = min((RECORDINGS / version / "workspace-write").glob("*.jsonl"))
        lines = path.read_text().splitlines()

        def having(*words: str) -> list[str]:
            return [line for line in lines if all(word in line for word in words)]

        self.has_items = version == "0.169.0"
        self.thread = path.stem[-36:]
        self.lines = lines[: lines.index(having('_call"')[0])]
        self.turn_end = having('"task_complete"')[:1]
        self.turn_start = [*having('"task_started"')[:1], having('"turn_context"')[0]]
        self.tokens = [*having('"token_usage_record"')[:1], *having('"token_count"', '"total_tokens"')[-1:]]


class _Texts:
    """What the sessions are made of."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        paths = [p for p in Path(os.__file__).parent.rglob("*.py") if 2_000 < p.stat().st_size < 200_000]
        rng.shuffle(paths := sorted(paths))
        self._sources = {path.name: path.read_text(errors="replace") for path in paths[:250]}
        self._listing = "\n".join(
            f"-rw-r--r-- 1 dev dev {p.stat().st_size:>7} Nov 20 20:00 {p}" for p in paths
        )
        self._build = "\n".join(self._build_line() for _ in range(4_000))
        self.outputs = [self._output() for _ in range(2_500)]
        self.sayings = [self._piece(rng.randint(80, 900)) for _ in range(400)]
        self.titles = [re.sub(r"[^\w .,]", " ", each)[:120] for each in self.sayings]
        self.patches = [self._patch() for _ in range(400)]
        sizes = [min(12_000, int(rng.lognormvariate(6.9, 0.8))) for _ in range(400)]
        self.encrypted = [base64.b64encode(rng.randbytes(size)).decode() for size in sizes]

    def _piece(self, size: int, text: str | None = None) -> str:
        text = text or self._rng.choice(list(self._sources.values()))
        start = self._rng.randrange(max(1, len(text) - size))
        return text[start : start + size]

    def _build_line(self) -> str:
        rng = self._rng
        if rng.random() < 0.8:
            name = rng.choice(("serde", "tokio", "syn", "clap", "regex", "hyper"))
            return f"   Compiling {name} v{rng.randint(0, 3)}.{rng.randint(0, 99)}.{rng.randint(0, 99)}"
        place = f"src/{rng.choice(('main', 'lib', 'io', 'net'))}.rs:{rng.randint(1, 900)}"
        return f"warning: unused variable: `x`\n  --> {place}\n   = note: `#[warn(unused_variables)]`"

    def _output(self) -> tuple[str, str, int]:
        """Return a command, its output and its exit code."""
        rng = self._rng
        size = min(_MAX_OUTPUT, int(rng.lognormvariate(7.0, 1.5)))
        name = rng.choice(list(self._sources))
        outputs = (
            (f"sed -n '1,{rng.randint(100, 800)}p' src/{name}", self._piece(size, self._sources[name]), 0),
            ("ls -la src tests", self._piece(size, self._listing), 0),
            ("cargo build 2>&1 | tail -200", self._piece(size, self._build), 0),
            ("cat /etc/shadow", "cat: /etc/shadow: Permission denied\n", 1),
            ("env | sort", _ENVIRONMENT, 0),
        )
        return rng.choices(outputs, _SHARES)[0]

    def _patch(self) -> str:
        lines = self._piece(min(9_000, int(self._rng.lognormvariate(7, 1)))).split("\n")
        changes = "\n".join(f"+{line}" for line in lines)
        return f"*** Begin Patch\n*** Update File: a.py\n@@\n{changes}\n*** End Patch"


class _Session:
    """The lines of one session.

    Args:
        head: of the recording that it begins as.
        thread: its id.
        at: when it begins.
        texts: what it is made of.
        rng: random numbers.
    """

    def __init__(self, head: _Head, thread: str, at: datetime, texts: _Texts, rng: random.Random) -> None:
        self.at = at
        self._head, self._thread, self._texts, self._rng = head, thread, texts, rng
        self._ordinal = 0

    def lines(self, size: float) -> Iterator[str]:
        """Yield its lines, about `size` bytes of them."""
        yield from map(self._stamped, self._head.lines)
        written, rounds = sum(map(len, self._head.lines)), 0
        while written < size:
            rounds += 1
            for line in self._round(rounds):
                written += len(line) + 1
                yield line
        yield from map(self._stamped, self._head.turn_end)

    def _round(self, number: int) -> Iterator[str]:
        rng, texts = self._rng, self._texts
        if rng.random() < 0.75:
            yield from self._reasoning()
        call = f"call_{rng.getrandbits(96):024x}"
        kind = rng.random()
        if kind < 0.10:
            patch, done = rng.choice(texts.patches), "Success. Updated the following files:\nM a.py\n"
            output = json.dumps({"output": done, "metadata": {"exit_code": 0, "duration_seconds": 0.0}})
            tool = {"name": "apply_patch", "input": patch, "status": "completed"}
            yield self._item("custom_tool_call", call_id=call, **tool)
            yield self._item("custom_tool_call_output", call_id=call, output=output)
        elif kind < 0.95:
            yield from self._ran(call, *rng.choice(texts.outputs))
        else:
            said = rng.choice(texts.sayings)
            yield self._record("event_msg", type="agent_message", message=said)
            yield self._item("message", role="assistant", content=[{"type": "output_text", "text": said}])
        for line in self._head.tokens:
            yield self._stamped(re.sub(r'"total_tokens":\d+', f'"total_tokens":{number * 1500}', line))
        if number % _TURN_ROUNDS == 0:
            yield from map(self._stamped, (*self._head.turn_end, *self._head.turn_start))
            yield self._record("event_msg", type="user_message", message=rng.choice(texts.titles))
        if number % _COMPACTION_ROUNDS == 0:
            kept = [[{"type": "input_text", "text": text}] for text in rng.sample(texts.sayings, 80)]
            history = [{"type": "message", "role": "user", "content": content} for content in kept]
            yield self._record("compacted", message="", replacement_history=history)

    def _reasoning(self) -> Iterator[str]:
        title = f"**{self._rng.choice(self._texts.titles)}**"
        hidden = f"gAAAAAB{self._rng.choice(self._texts.encrypted)}"
        summary = [{"type": "summary_text", "text": title}]
        yield self._item("reasoning", summary=summary, content=None, encrypted_content=hidden)
        if not self._head.has_items:
            yield self._record("event_msg", type="agent_reasoning", text=title)

    def _ran(self, call: str, command: str, text: str, code: int) -> Iterator[str]:
        arguments = json.dumps({"cmd": command, "workdir": "/home/dev/project", "yield_time_ms": 10_000})
        header = f"Chunk ID: 0bc055\nWall time: 0.3 seconds\nProcess exited with code {code}\n"
        yield self._item("function_call", name="exec_command", arguments=arguments, call_id=call)
        if self._head.has_items:
            item = {
                "type": "CommandExecution",
                "id": call,
                "command": ["/bin/bash", "-lc", command],
                "cwd": "file:///home/dev/project",
                "status": "completed" if code == 0 else "failed",
                "aggregated_output": text,
                "exit_code": code,
                "source": "agent",
            }
            yield self._record("event_msg", type="item_completed", thread_id=self._thread, item=item)
        yield self._item("function_call_output", call_id=call, output=f"{header}Output:\n{text}")

    def _item(self, kind: str, **payload: object) -> str:
        return self._record("response_item", type=kind, **payload)

    def _record(self, kind: str, /, **payload: object) -> str:
        ordinal = f'"ordinal":{self._next_ordinal()},' if self._head.has_items else ""
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
