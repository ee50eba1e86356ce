"""Files that are written to, cut, replaced, moved, compressed and deleted at random, also while they are read: the tail is never wrong for
longer than until its next sweep."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import zstandard
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from agentdash.collect.tail import log_file as log
from agentdash.collect.tail.follower import Change, LogFollower
from tests.unit.replayed import Replayed

LONGEST = 40
NAMES = st.sampled_from(["one/a.jsonl", "one/deep/er/b.jsonl", "two/a.jsonl", "two/c.jsonl"])
PIECES = st.lists(
    st.sampled_from([b"\n", b"x", b"{}\n", b"\xff\x00\r", b"y" * 39, b"z" * 60]), min_size=1, max_size=12
)


class Files(RuleBasedStateMachine):
    """The writer, the tail, and somebody who believes what the tail says."""

    @initialize(skim=st.sampled_from([None, 0]), batch=st.sampled_from([1, 7, 64, 4096]))
    def begin(self, skim: int | None, batch: int) -> None:
        self.small = patch.multiple(log, _HEAD=30, _END=60, _BLOCK=50, _SEAM=64)
        self.small.start()
        self.top = Path(tempfile.mkdtemp())
        self.tail = LogFollower(
            [self.top / "one", self.top / "two"], skim_above=skim, max_line=LONGEST, batch=batch
        )
        self.told = Replayed()
        self.pending: list[Iterator[Change]] = []
        self.written = 0

    def teardown(self) -> None:
        self.small.stop()
        shutil.rmtree(self.top)

    def text(self, pieces: list[bytes]) -> bytes:
        """Text that was never written before, in no 64 bytes of it."""
        self.written += len(pieces)
        return b"".join(b"%d:%s" % (self.written - n, piece) for n, piece in enumerate(pieces))

    def file(self, name: str) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @rule(name=NAMES, pieces=PIECES)
    def append(self, name: str, pieces: list[bytes]) -> None:
        with self.file(name).open("ab") as file:
            file.write(self.text(pieces))

    @rule(name=NAMES, left=st.floats(0, 1), pieces=st.none() | PIECES)
    def cut(self, name: str, left: float, pieces: list[bytes] | None) -> None:
        path = self.top / name
        if path.exists():
            os.truncate(path, int(path.stat().st_size * left))
            if pieces:
                self.append(name, pieces)

    @rule(name=NAMES, pieces=PIECES)
    def replace(self, name: str, pieces: list[bytes]) -> None:
        new = self.file("one/new.tmp")
        new.write_bytes(self.text(pieces) * 3)
        new.replace(self.file(name))

    @rule(name=NAMES, to=NAMES)
    def move(self, name: str, to: str) -> None:
        if (self.top / name).exists():
            (self.top / name).rename(self.file(to))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        (self.top / name).unlink(missing_ok=True)

    @rule(name=NAMES)
    def compress(self, name: str) -> None:
        path = self.top / name
        if path.exists():
            path.with_suffix(".jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
            path.unlink()

    @rule(name=NAMES)
    def unpack(self, name: str) -> None:
        small = (self.top / name).with_suffix(".jsonl.zst")
        if small.exists():
            self.file(name).write_bytes(
                zstandard.ZstdDecompressor().decompressobj().decompress(small.read_bytes())
            )
            small.unlink()

    @rule(filled=st.booleans())
    def poll(self, filled: bool) -> None:
        """Begins to read, without reading much."""
        if filled and self.told.gaps:
            self.pending.append(self.tail.fill(min(self.told.gaps)))
        elif not self.pending:
            self.pending.append(self.tail.sweep())

    @rule(which=st.integers(0, 3), count=st.integers(1, 4))
    def read_on(self, which: int, count: int) -> None:
        """A few answers of what was begun; in between the writer may write."""
        for _ in range(count):
            if self.pending and (change := next(self.pending[which % len(self.pending)], None)) is not None:
                self.told.hear([change])

    @rule()
    def check(self) -> None:
        for begun in self.pending:
            self.told.hear(begun)
        self.pending.clear()
        self.told.hear(self.tail.sweep())
        for path in sorted(self.told.gaps):
            self.told.hear(self.tail.fill(path))
        assert self.told.files == {
            path: self.kept(path) for path in self.top.rglob("*.jsonl*") if self.counts(path)
        }

    def counts(self, path: Path) -> bool:
        return path.suffix == ".jsonl" or not path.with_suffix("").exists()

    def kept(self, path: Path) -> list[bytes]:
        text = path.read_bytes()
        if path.suffix == ".zst":
            text = zstandard.ZstdDecompressor().decompressobj().decompress(text)
        return [line for line in text.split(b"\n")[:-1] if len(line) <= LONGEST]


TestFiles = Files.TestCase
TestFiles.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
