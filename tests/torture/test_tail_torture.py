"""Files that are appended to, truncated, replaced, moved, compressed and deleted at random, also while they
are read: after each sweep the follower is right."""

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
from agentdash.collect.tail.follower import Change
from tests.unit.replayed import Replayed, log_follower, log_name

MAX_LINE = 40


def rank(path: Path) -> tuple[bool, int, str]:
    """Return by what a follower chooses among the files of one log: it reads the greatest."""
    return path.suffix == ".jsonl", path.stat().st_mtime_ns, str(path)


NAMES = st.sampled_from(["one/a.jsonl", "one/deep/er/b.jsonl", "two/a.jsonl", "two/c.jsonl"])
"""Two of them are of one log."""

PIECES = st.lists(
    st.sampled_from([b"\n", b"x", b"{}\n", b"\xff\x00\r", b"y" * 39, b"z" * 60]), min_size=1, max_size=12
)


class Files(RuleBasedStateMachine):
    """A writer, a follower, and a consumer of its changes."""

    @initialize(skim=st.sampled_from([None, 0]), batch=st.sampled_from([1, 7, 64, 4096]))
    def start(self, skim: int | None, batch: int) -> None:
        self.patched = patch.multiple(log, _HEAD_BYTES=30, _TAIL_BYTES=60, _FINGERPRINT_BYTES=64)
        self.patched.start()
        self.top = Path(tempfile.mkdtemp())
        self.follower = log_follower(
            [self.top / "one", self.top / "two"], skim_above=skim, max_line=MAX_LINE, batch=batch
        )
        self.replayed = Replayed()
        self.filling: Iterator[Change] | None = None
        self.written = 0

    def teardown(self) -> None:
        self.patched.stop()
        shutil.rmtree(self.top)

    def text(self, pieces: list[bytes]) -> bytes:
        """Return text of which no 64 bytes were written before: the fingerprint is as long."""
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
    def truncate(self, name: str, left: float, pieces: list[bytes] | None) -> None:
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
        packed = (self.top / name).with_suffix(".jsonl.zst")
        if packed.exists():
            self.file(name).write_bytes(
                zstandard.ZstdDecompressor().decompressobj().decompress(packed.read_bytes())
            )
            packed.unlink()

    @rule()
    def sweep(self) -> None:
        self.replayed.apply(self.follower.sweep())

    @rule(count=st.integers(1, 4))
    def fill(self, count: int) -> None:
        """Read a part of a skimmed file; before the rest, the writer may write and the tree be swept."""
        if self.filling is None and self.replayed.gaps:
            self.filling = self.follower.fill(log_name(min(self.replayed.gaps)) or "")
        for _ in range(count):
            if self.filling is not None and (change := next(self.filling, None)) is not None:
                self.replayed.apply([change])
            else:
                self.filling = None

    @rule()
    def check(self) -> None:
        self.replayed.apply(self.filling or ())
        self.filling = None
        self.replayed.apply(self.follower.sweep())
        for path in sorted(self.replayed.gaps):
            self.replayed.apply(self.follower.fill(log_name(path) or ""))
        files = {}
        for path in sorted(self.top.rglob("*.jsonl*"), key=rank):
            files[log_name(path)] = path
        assert self.replayed.files == {path: self.kept_lines(path) for path in files.values()}

    def kept_lines(self, path: Path) -> list[bytes]:
        text = path.read_bytes()
        if path.suffix == ".zst":
            text = zstandard.ZstdDecompressor().decompressobj().decompress(text)
        return [line for line in text.split(b"\n")[:-1] if len(line) <= MAX_LINE]


TestFiles = Files.TestCase
TestFiles.settings = settings(
    max_examples=80, stateful_step_count=40, suppress_health_check=list(HealthCheck)
)
