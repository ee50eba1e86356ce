"""The library of past sessions: entries, families, filter, full-text search."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import zstandard

from agentdash.agents.codex.home import CodexHome
from agentdash.agents.session_logs import line_texts
from agentdash.model.states import State
from agentdash.replay.clock import VirtualClock
from agentdash.replay.library.entry import Entry, group_families
from agentdash.replay.library.library import Library
from agentdash.replay.library.query import Query
from agentdash.replay.library.search import Hit, TextSearch
from tests.unit.rollout_files import (
    BORN,
    CHANGED,
    THREAD,
    all_files,
    answer,
    call,
    event,
    files,
    home_of,
    line,
    meta,
    response,
)

CHILDREN = files("0.114.0", "spawn-leaked-flags")
DAY = 86_400.0
NOW = CHANGED + DAY


def library_of(home: CodexHome) -> Library:
    return Library(home, VirtualClock(NOW))


def filled(library: Library) -> list[Entry]:
    entries = {entry.key: entry for entry in library.entries()}
    entries |= {entry.key: entry for entry in library.fill(list(entries.values()))}
    return list(entries.values())


def write(
    home: CodexHome, *lines: bytes, thread: str = THREAD, name: str = ".jsonl", end: bytes = b"\n"
) -> Path:
    day = home.sessions / "2026/11/20"
    day.mkdir(parents=True, exist_ok=True)
    path = day / f"rollout-2026-11-20T19-59-47-{thread}{name}"
    data = b"\n".join(lines) + end
    path.write_bytes(zstandard.compress(data) if name.endswith(".zst") else data)
    os.utime(path, (CHANGED, CHANGED))
    return path


META = meta(cwd="/home/dev/api", cli_version="0.169.0")
ASKED = event("user_message", message="Fix the Login test")
RAN = call("exec_command", {"cmd": 'grep -r "needle" src'})
PRINTED = answer("Exit code: 0\nOutput:\nsrc/a.py: Grüße an alle NEEDLES\n")


# ---------------------------------------------------------------- rows


def test_listing_opens_no_file(tmp_path: Path) -> None:
    home = home_of(tmp_path, *CHILDREN)
    for path in home.rollouts():
        path.chmod(0)
    entries = list(library_of(home).entries())
    assert [e.begun for e in entries] == sorted((e.begun for e in entries), reverse=True)
    assert not any(e.is_read for e in entries)


def test_children_are_grouped_with_their_parent(tmp_path: Path) -> None:
    entries = filled(library_of(home_of(tmp_path, *CHILDREN)))
    (family,) = group_families(entries)
    assert [member.depth for member in family.members] == [0, 1, 1]
    assert [member.last for member in family.members] == [True, False, True]
    assert family.worst.verdict == "mismatch"


def test_long_chain_of_forks() -> None:
    chain = [Entry(str(n), Path(str(n)), float(n), parent=str(n - 1)) for n in range(3_000)]
    (family,) = group_families(chain[::-1])
    assert family.members[-1].depth == 2_999


@pytest.mark.skipif(sys.platform != "linux", reason="locks and open files are read from /proc")
def test_thread_is_running_while_a_process_holds_its_lock_or_its_file(tmp_path: Path) -> None:
    """However long ago it wrote; Codex before 0.148 takes no lock. Else it has exited: a copied home has new
    files."""
    home = CodexHome(tmp_path)
    path = write(home, META, event("task_started", turn_id="t"), ASKED)

    def states() -> list[State | None]:
        return [entry.state for entry in filled(library_of(home))]

    lock = tmp_path / "thread-writer-locks" / f"{THREAD}.lock"
    lock.parent.mkdir()
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert states() == [State.RUNNING]
    os.utime(path, (NOW, NOW))
    assert states() == [State.EXITED]
    program = tmp_path / "codex"
    program.symlink_to("/bin/sleep")
    with path.open("ab") as held, subprocess.Popen([program, "60"], stdout=held) as process:
        try:
            wait_until_executed(process, program)
            assert states() == [State.RUNNING]
        finally:
            process.kill()
    assert states() == [State.EXITED]


def wait_until_executed(process: subprocess.Popen[bytes], program: Path) -> None:
    """Wait until the arguments of a new process can be read: `Popen` returns in the middle of its exec."""
    while not Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(bytes(program)):
        time.sleep(0.001)


def test_changed_file_is_read_again(tmp_path: Path) -> None:
    home = CodexHome(tmp_path)
    path = write(home, META, event("task_started", turn_id="t"), ASKED)
    library = library_of(home)
    (entry,) = filled(library)
    assert library.refresh(entry) is entry
    with path.open("ab") as file:
        file.write(event("task_complete", turn_id="t", last_agent_message="done") + b"\n")
    (entry,) = library.fill([library.refresh(entry)])
    assert entry.state is State.COMPLETED


# ---------------------------------------------------------------- filter

ENTRY = Entry(
    "01a1",
    Path("x"),
    time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1)),
    title="Fix the login",
    cwd="/home/dev/Api",
    version="0.169.0",
    model="gpt-5-mini",
    state=State.FAILED_PROVIDER,
    verdict="mismatch",
    findings=("stale-network-flag",),
    archived=True,
    denied=True,
    reason="may not write /etc/hosts",
)


@pytest.mark.parametrize(
    ("text", "matches", "problem"),
    [
        ("", True, None),
        ("!login", False, None),
        ("FIX archived denied failed provider stale-network 0.16 mini /api", True, None),
        ("friday 20 nov", True, None),
        ("since:2026-11-20 until:2026-11-20", True, None),
        ("since:7d", True, None),
        ('"fix the', True, None),
        ('"login fix"', False, None),
        ("!https://x !std::y", True, None),
        ("login since:whenever", True, "invalid date 'whenever': use 2026-11-01"),
        ("since:2026-02-30", True, "invalid date '2026-02-30'"),
        ("until:9999-12-31", True, "invalid date '9999-12-31'"),
    ],
)
def test_query(text: str, matches: bool, problem: str | None) -> None:
    query = Query.parse(text, ENTRY.begun + DAY)
    assert query.matches(ENTRY) == matches
    assert (query.problem or "").startswith(problem) if problem else query.problem is None


# ---------------------------------------------------------------- full text


def hits(home: CodexHome, text: str) -> list[Hit]:
    job = TextSearch(text, list(home.rollouts()))
    assert len(list(job.steps())) >= len(job.hits)
    return job.hits


def found(home: CodexHome, text: str) -> list[tuple[str, int]]:
    """Return kind and line of all hits."""
    return [(hit.what, hit.line) for hit in hits(home, text)]


@pytest.mark.parametrize("name", [".jsonl", ".jsonl.zst"])
def test_search_kinds_and_lines(tmp_path: Path, name: str) -> None:
    home = CodexHome(tmp_path)
    write(home, META, ASKED, RAN, PRINTED, name=name)
    for text, expected in (
        ("LOGIN fix", [("prompt", 2)]),
        ("needle", [("command", 3), ("output", 4)]),
        ('"grep -r"', [("command", 3)]),
        ('"r grep"', []),
        ("GRÜßE needles", [("output", 4)]),
        ('""', []),
        ("function_call", []),
        ("fix needle", []),
    ):
        assert found(home, text) == expected
    (hit,) = hits(home, "needles alle")
    assert [hit.text[a:b] for a, b in hit.marks] == ["alle", "NEEDLES"]
    assert (hit.thread, hit.at) == (THREAD, BORN + 1)


def test_unreadable_file_reports_a_problem(tmp_path: Path) -> None:
    home = CodexHome(tmp_path)
    path = write(home, META, ASKED, name=".jsonl.zst")
    path.write_bytes(b"no zstd")
    job = TextSearch("login", [path])
    list(job.steps())
    assert job.problems == 1


def test_copied_reasoning_is_not_searched(tmp_path: Path) -> None:
    """The file of a fork begins with the lines of its parent; the first own line may be one of any kind."""
    parent = "01a1fa8a-0000-7501-a214-dc60155cd481"
    copied = response("reasoning", summary=[{"type": "summary_text", "text": "pondering of the parent"}])
    own = line(
        "response_item",
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "pondering of its own"}]},
        second=60,
    )
    write(
        home := CodexHome(tmp_path),
        META,
        line("session_meta", {"id": parent, "timestamp": "2026-11-20T19:50:00Z"}),
        copied,
        own,
    )
    assert found(home, "pondering") == [("reasoning", 4)]


def test_search_finds_every_text_of_the_recordings() -> None:
    """Of each file the words of one text of each kind, by a second reader: all texts of all lines."""
    checked = 0
    for path in all_files()[::5]:
        lines = enumerate(path.read_bytes().splitlines(), 1)
        found = ((kind, number, text) for number, raw in lines for kind, text in line_texts(raw))
        texts = {kind: (number, text) for kind, number, text in found if len(text.split()) > 2}
        for kind, (number, text) in texts.items():
            words = [word for word in text.split() if '"' not in word][:6]
            job = TextSearch(" ".join(words), [path])
            list(job.steps())
            assert number in {hit.line for hit in job.hits}, (path, kind, number, words)
            checked += 1
    assert checked > 20
