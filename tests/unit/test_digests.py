"""Digests of session files: what a second run knows without reading, and when it reads again."""

import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agentdash.model.memory import ThreadMemory
from agentdash.report import audit as audit_module
from agentdash.report import file_audit
from agentdash.report.audit import audit
from agentdash.report.check import CheckReport
from agentdash.report.file_audit import FileRead
from agentdash.store import digests
from agentdash.store.digests import DigestStore, file_state, file_states
from tests.unit.test_cli import agentdash

DATA = Path(__file__).parents[1] / "data"
ODD_NAMES = ("rollouts", "recordings", "claude")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a copy of a family, of a thread with denials, and of one that matches; all long unchanged."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    for scenario in ("spawn-leaked-flags", "kanban-board", "workspace-write"):
        for path in (DATA / "recordings" / "0.169.0" / scenario).glob("*.jsonl"):
            shutil.copy(path, folder)
    settle()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> DigestStore:
    return DigestStore(tmp_path / "state")


@pytest.fixture
def read_paths(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Record the files that are read."""
    found: list[Path] = []
    original = file_audit.read_file

    def read_file(path: Path, *rest: ThreadMemory) -> FileRead:
        found.append(path)
        return original(path, *rest)

    monkeypatch.setattr(file_audit, "read_file", read_file)
    return found


def settle() -> None:
    """Wait until files that were just written count as settled."""
    time.sleep(digests._SETTLED_NS / 1e9 * 1.5)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def encoded(report: CheckReport) -> bytes:
    """Return a report without the times at which configuration files were read."""
    return re.sub(rb'"as_of":"[^"]+"', b'"as_of":"then"', msgspec.json.encode(report))


@pytest.mark.slow
def test_all_recordings_give_the_same_reports_with_digests(store: DigestStore) -> None:
    paths = [
        path
        for name in ODD_NAMES
        for path in sorted((DATA / name).rglob("*.jsonl*"))
        if path.is_file() and audit_module.thread_of_log(path)
    ]
    assert len(paths) > 190
    plain = encoded(audit(paths))
    assert [encoded(audit(paths, digests=store)) for _ in range(2)] == [plain, plain]
    assert len(store.load(file_states(paths))) > 0.9 * len(paths)


def _append(path: Path) -> None:
    with path.open("a") as file:
        file.write('{"timestamp":"2026-11-20T20:00:00.000Z","type":"world_state2","payload":{}}\n')


def _rewrite_in_place(path: Path) -> None:
    """Change a byte; size and modification time stay as they were."""
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b'"on-request"', b'"untrusted."').replace(b"e", b"f", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replace(path: Path) -> None:
    copy = path.with_suffix(".new")
    copy.write_bytes(path.read_bytes()[:-200])
    copy.replace(path)


@pytest.mark.parametrize("change", [_append, _rewrite_in_place, _replace])
def test_a_changed_file_is_read_again(
    home: Path, store: DigestStore, read_paths: list[Path], change: Callable[[Path], None]
) -> None:
    audit(files(home), digests=store)
    changed = files(home)[0]
    change(changed)
    settle()
    read_paths.clear()
    again = encoded(audit(files(home), digests=store))
    assert read_paths == [changed]
    assert again == encoded(audit(files(home)))


def test_a_file_that_has_just_changed_gets_no_digest(
    home: Path, store: DigestStore, read_paths: list[Path]
) -> None:
    changed = files(home)[0]
    later = time.time_ns() + 3_600_000_000_000
    os.utime(changed, ns=(later, later))
    for _ in range(2):
        audit(files(home), digests=store)
    assert read_paths == [*files(home), changed]


def test_a_child_is_judged_again_when_its_parent_is_there(tmp_path: Path, store: DigestStore) -> None:
    for path in (DATA / "recordings" / "0.114.0" / "spawn-leaked-flags").glob("*.jsonl"):
        shutil.copy(path, tmp_path)
    parent, child, _ = files(tmp_path)
    parent.write_text(parent.read_text().replace('"danger-full-access"', '"read-only"'))
    settle()
    drifts = [encoded(audit(wanted)).count(b"child-policy-drift") for wanted in ([child], [parent, child])]
    assert (drifts[0], drifts[1] > 0) == (0, True)
    for wanted in ([child], [parent, child], [child], [child, parent], [parent, child]):
        assert encoded(audit(wanted, digests=store)) == encoded(audit(wanted))


def test_other_rules_read_everything_again(
    home: Path, store: DigestStore, read_paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        audit(files(home), digests=store)
    assert read_paths == files(home)
    monkeypatch.setattr(digests, "rules", lambda: b"12345678")
    audit(files(home), digests=store)
    assert read_paths == files(home) * 2


def _damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = bytes(byte ^ 0x55 for byte in content[4096:])
    path.write_bytes(content)


def _change_bodies(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE digest SET body = substr(body, 1, length(body) - 1) || x'00'")
    database.close()


@pytest.mark.parametrize(
    "harm",
    [
        _damage,
        _change_bodies,
        lambda path: path.write_bytes(b"no database" * 1000),
        lambda path: path.chmod(0o666),
    ],
)
def test_doubted_digests_are_not_used(
    home: Path, store: DigestStore, read_paths: list[Path], harm: Callable[[Path], object]
) -> None:
    plain = encoded(audit(files(home), digests=store))
    harm(store.path)
    read_paths.clear()
    assert encoded(audit(files(home), digests=DigestStore(store.path.parent))) == plain
    assert read_paths == files(home)
    assert encoded(audit(files(home), digests=DigestStore(store.path.parent))) == plain


def test_digests_with_secrets_are_not_written(home: Path, store: DigestStore) -> None:
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    for path in files(home):
        path.write_text(path.read_text().replace("/home/dev", f"/home/dev/{secret}"))
    settle()
    assert secret in encoded(audit(files(home), digests=store)).decode()
    assert not store.path.exists() or secret.encode() not in store.path.read_bytes()


def test_old_digests_are_dropped_and_a_large_file_is_begun_anew(
    tmp_path: Path, store: DigestStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{number}.jsonl" for number in range(40)]
    for path in paths:
        path.touch()
    settle()
    states = {path: state for path in paths if (state := file_state(path))}
    for number, path in enumerate(paths):
        monkeypatch.setattr(digests.time, "time", lambda number=number: number * 10 * 86_400.0)
        store.save([(path, states[path], b"body" * 100)])
    assert set(store.load(states)) == set(paths[-10:])
    with monkeypatch.context() as patch:
        patch.setattr(digests, "_MAX_BYTES", 1)
        store.save([(paths[0], states[paths[0]], b"")])
    assert store.load(states) == {}


@pytest.mark.slow
def test_the_command_keeps_digests_unless_it_must_not(home: Path, tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "xdg"), "CODEX_HOME": str(tmp_path)}
    found = tmp_path / "xdg" / "agentdash" / digests.NAME

    def check(*options: str) -> str:
        return agentdash("check", "--json", *options, str(home), **environ).stdout

    plain = check("--no-cache")
    assert (found.exists(), bool(plain)) == (False, True)
    assert (check(), found.exists()) == (plain, True)
    assert check() == plain
