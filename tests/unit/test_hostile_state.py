"""The state directory, when something that is watched may write there: links, pipes, foreign databases,
forged texts. Nothing outside it is changed or removed, nothing hangs, and no text is shown as it is."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agentdash.files import write_file, write_private
from agentdash.model.memory import PastWorker
from agentdash.model.pane import PaneKey
from agentdash.store.attention import AttentionFile
from agentdash.store.digests import DigestStore, file_states
from agentdash.store.memory import Memory, MemoryFileError
from agentdash.store.status_file import UnpublishedError, read_published

PAST = PastWorker(pane=PaneKey("default", "%1"), worker="w", agent="codex", seen=5.0)
PRECIOUS = b"what is outside stays as it is\n" * 200


@pytest.fixture
def state(tmp_path: Path) -> Path:
    state = tmp_path / "agentdash"
    state.mkdir(mode=0o700)
    return state


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.write_bytes(PRECIOUS)
    return outside


def remember(state: Path) -> None:
    Memory(state, state).save([], [PAST], 10.0)


def digest(state: Path) -> list[bytes]:
    """Keep a digest, and return those that are read again."""
    session = state.parent / "session"
    session.write_bytes(b"x")
    os.utime(session, (1.0, 1.0))
    states = {path: found._replace(settled=True) for path, found in file_states([session]).items()}
    for _ in range(2):  # what is not believed is dropped at first
        store = DigestStore(state)
        store.save([(path, found, b"body") for path, found in states.items()])
    return list(DigestStore(state).load(states).values())


# ---------------------------------------------------------------- writing


@pytest.mark.parametrize("arrange", [Path.symlink_to, Path.hardlink_to], ids=["symlink", "hardlink"])
def test_link_in_place_of_a_file_is_replaced(
    arrange: Callable[[Path, Path], None], state: Path, outside: Path
) -> None:
    arrange(state / "file", outside)
    write_private(state / "file", b"ours")
    assert (state / "file").read_bytes() == b"ours"
    assert (state / "file").lstat().st_mode & 0o777 == 0o600
    assert outside.read_bytes() == PRECIOUS


@pytest.mark.parametrize("name", ["memory-2.sqlite", "digests.sqlite"])
@pytest.mark.parametrize("suffix", ["", "-journal", "-wal", "-shm"])
@pytest.mark.parametrize(
    "arrange",
    [Path.symlink_to, Path.hardlink_to, lambda path, _: os.mkfifo(path)],
    ids=["sym", "hard", "fifo"],
)
def test_nothing_outside_is_written_through_a_database(
    arrange: Callable[[Path, Path], None], suffix: str, name: str, state: Path, outside: Path
) -> None:
    if suffix:
        remember(state)
        digest(state)
    arrange(state / f"{name}{suffix}", outside)
    if name == "memory-2.sqlite":
        with pytest.raises(MemoryFileError, match="not believed"):
            Memory(state, state).past_workers()
        with pytest.raises(MemoryFileError, match="not believed"):
            remember(state)
    else:
        assert digest(state) == [b"body"]
    assert outside.read_bytes() == PRECIOUS


def test_no_file_is_removed_that_a_journal_names(state: Path, outside: Path) -> None:
    """SQLite removes the file that the end of a hot journal names, if no journal there names it too."""
    remember(state)
    path = state / "memory-2.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA cache_size = 1")
        database.execute("PRAGMA cache_spill = 1")
        database.execute("BEGIN IMMEDIATE")
        row = "INSERT INTO fact SELECT ?, value, 'escape', zeroblob(3000), x'', 1, 1 FROM json_each(?)"
        database.execute(row, ("h", str(list(range(200)))))
        journal = Path(f"{path}-journal").read_bytes()
        content = path.read_bytes()
    name = os.fsencode(outside)
    ends = ((1 << 30) // 4096 + 1, name, len(name), sum(byte - 256 if byte > 127 else byte for byte in name))
    end = b"".join(each if isinstance(each, bytes) else each.to_bytes(4, "big") for each in ends)
    path.write_bytes(content)
    Path(f"{path}-journal").write_bytes(journal + end + bytes.fromhex("d9d505f920a163d7"))
    with pytest.raises(MemoryFileError, match="names another file"):
        remember(state)
    assert outside.read_bytes() == PRECIOUS


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END",
        "ALTER TABLE {table} RENAME TO real; CREATE VIEW {table} AS"
        " WITH RECURSIVE endless(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM endless) SELECT n FROM endless",
        "CREATE TABLE other (a)",
        "DROP TABLE {table}; CREATE TABLE {table} (worker DEFAULT (hex(randomblob(999999999))), fact, last)",
    ],
    ids=["trigger", "view", "table", "default"],
)
def test_foreign_schema_is_not_run(schema: str, state: Path) -> None:
    remember(state)
    assert digest(state) == [b"body"]
    for name, table in (("memory-2.sqlite", "fact"), ("digests.sqlite", "digest")):
        with closing(sqlite3.connect(state / name)) as database:
            database.executescript(schema.format(table=table))
    with pytest.raises(MemoryFileError, match="other tables"):
        Memory(state, state).past_workers()
    with pytest.raises(MemoryFileError, match="other tables"):
        remember(state)
    assert digest(state) == [b"body"]


# ---------------------------------------------------------------- temporary files

_KILLED = """
import os, signal, sys
from pathlib import Path
from agentdash import files
files._write_all = lambda descriptor, content: os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_while_it_writes(statement: str) -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED + statement], check=False)
    assert done.returncode == -signal.SIGKILL


def aged(path: Path) -> None:
    """Give a file an age at which its writer has ended."""
    os.utime(path, (time.time() - 3_600, time.time() - 3_600))


def test_what_killed_writers_left_is_removed(state: Path, tmp_path: Path) -> None:
    named = tmp_path / "export.md"
    named.write_bytes(b"old")
    named.chmod(0o644)
    killed_while_it_writes(f"files.write_private(Path({str(state)!r}) / 'file', b'x')")
    killed_while_it_writes(f"files.write_file(Path({str(named)!r}), b'x', replace=True)")
    (state / ".status-of-0.1.0").touch()
    left = [*state.glob(".*"), *tmp_path.glob(".*")]
    assert len(left) == 3
    other = tmp_path / ".other.md.12345678.new"
    for path in (*left, other):
        path.touch()
        aged(path)
    write_private(state / "file", b"x")
    assert [path.name for path in state.iterdir()] == ["file"]
    write_file(named, b"new", replace=True)
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"export.md", other.name}
    assert (named.read_bytes(), named.stat().st_mode & 0o777) == (b"new", 0o644)


def test_what_is_being_written_stays(state: Path) -> None:
    writing = state / ".file.12345678.new"
    writing.touch()
    write_private(state / "file", b"x")
    assert writing.exists()


@pytest.mark.parametrize("replace", [False, True])
def test_export_is_private_whatever_the_umask(replace: bool, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        write_file(tmp_path / "x.md", b"x", replace=replace)
    finally:
        os.umask(old)
    assert (tmp_path / "x.md").stat().st_mode & 0o777 == 0o600


# ---------------------------------------------------------------- texts


@pytest.mark.parametrize("text", [r"\u001b]0;x", "\x9b31m", "\u202e"], ids=["escape", "C1", "bidi"])
def test_text_with_control_characters_is_not_believed(text: str, state: Path) -> None:
    status = state / "status-x.json"
    write_private(status, f'{{"schema":"agentdash.published/1","home":"{text}"}}'.encode())
    with pytest.raises(UnpublishedError, match="control characters"):
        read_published(status)
    attention = AttentionFile(state, state)
    write_private(attention.path, f'{{"homes":{{"{text}":{{}}}}}}'.encode())
    with pytest.raises(OSError, match="control characters"):
        attention.read()
    remember(state)
    with closing(sqlite3.connect(state / "memory-2.sqlite")) as database, database:
        database.execute("UPDATE fact SET fact = replace(CAST(fact AS TEXT), 'codex', ?)", (text,))
    assert Memory(state, state).past_workers() == []


def test_database_of_another_program_is_left_alone(state: Path) -> None:
    with closing(sqlite3.connect(state / "memory-2.sqlite")) as database:
        database.execute("CREATE TABLE bookmarks (url)")
    (state / "memory-2.sqlite").chmod(0o600)
    before = (state / "memory-2.sqlite").read_bytes()
    with pytest.raises(MemoryFileError, match="other tables"):
        remember(state)
    assert (state / "memory-2.sqlite").read_bytes() == before


def test_odd_hidden_files_are_no_obstacle(state: Path, outside: Path) -> None:
    (state / ".link").symlink_to(outside)
    (state / ".folder").mkdir()
    os.mkfifo(state / ".pipe")
    write_private(state / "file", b"x")
    assert outside.read_bytes() == PRECIOUS
