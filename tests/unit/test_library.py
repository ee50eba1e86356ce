"""The library of past sessions: entries, families, filter, full-text search."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest
import zstandard

from agentdash.agents.codex.home import CodexHome
from agentdash.agents.codex.rollout.texts import line_texts
from agentdash.model.events import CallEnded, MessageLogged
from agentdash.model.states import State
from agentdash.model.tokens import ModelUsage, TokenUsage
from agentdash.replay.clock import VirtualClock
from agentdash.replay.library.entry import Entry, group_families
from agentdash.replay.library.library import Library
from agentdash.replay.library.query import Query, complete, parse_period
from agentdash.replay.library.search import Hit, SearchProgress, SearchTerms, find_texts, search
from agentdash.report.audit import audit
from tests.unit.rollout_files import (
    BORN,
    RECORDINGS,
    ROLLOUTS,
    THREAD,
    all_files,
    event,
    events_of,
    files,
    line,
    response,
)

CHILDREN = files("0.114.0", "spawn-leaked-flags")
NOW = 1_795_300_000.0
DAY = 86_400.0


def home_of(folder: Path, *paths: Path) -> CodexHome:
    """Return a Codex home with copies of these rollouts."""
    home = CodexHome(folder)
    for path in paths:
        day = home.sessions / path.name[8:18].replace("-", "/")
        day.mkdir(parents=True, exist_ok=True)
        copied = shutil.copy(path, day)
        os.utime(copied, (NOW - DAY, NOW - DAY))
    return home


def library_of(home: CodexHome) -> Library:
    return Library(home, VirtualClock(NOW))


def filled(library: Library) -> list[Entry]:
    entries = {entry.key: entry for entry in library.entries()}
    entries |= {entry.key: entry for entry in library.fill(list(entries.values()), tuple)}
    return list(entries.values())


def write(
    home: CodexHome, *lines: bytes, thread: str = THREAD, name: str = ".jsonl", end: bytes = b"\n"
) -> Path:
    day = home.sessions / "2026/11/20"
    day.mkdir(parents=True, exist_ok=True)
    path = day / f"rollout-2026-11-20T19-59-47-{thread}{name}"
    data = b"\n".join(lines) + end
    path.write_bytes(zstandard.compress(data) if name.endswith(".zst") else data)
    os.utime(path, (NOW - DAY, NOW - DAY))
    return path


META = line(
    "session_meta",
    {"id": THREAD, "timestamp": "2026-11-20T19:59:47.386Z", "cwd": "/home/dev/api", "cli_version": "0.169.0"},
)
ASKED = event("user_message", message="Fix the Login test")
RAN = response(
    "function_call", name="exec_command", call_id="c1", arguments=json.dumps({"cmd": 'grep -r "needle" src'})
)
PRINTED = response(
    "function_call_output", call_id="c1", output="Exit code: 0\nOutput:\nsrc/a.py: Grüße an alle NEEDLES\n"
)


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize("version", ["0.20.0", "0.58.0", "0.114.0", "0.169.0"])
def test_entry_equals_check(tmp_path: Path, version: str) -> None:
    paths = sorted(RECORDINGS.glob(f"{version}/*/*.jsonl"))
    home = home_of(tmp_path, *paths)
    expected = {t.id: t for t in audit(list(home.rollouts())).threads if t.problem is None}
    rows = {entry.id: entry for entry in filled(library_of(home)) if not entry.helper}
    assert rows.keys() == expected.keys()
    for thread, entry in rows.items():
        assert (str(entry.state), entry.verdict, entry.version) == (
            expected[thread].state,
            expected[thread].verdict,
            expected[thread].cli_version,
        )
        assert entry.depth == "read"
        assert set(entry.findings) == {f.kind for f in expected[thread].findings}


def test_listing_opens_no_file(tmp_path: Path) -> None:
    home = home_of(tmp_path, *CHILDREN)
    for path in home.rollouts():
        path.chmod(0)
    entries = list(library_of(home).entries())
    assert [e.begun for e in entries] == sorted((e.begun for e in entries), reverse=True)
    assert {e.depth for e in entries} == {"listed"}


def test_wanted_entries_are_read_first(tmp_path: Path) -> None:
    library = library_of(home_of(tmp_path, *sorted(RECORDINGS.glob("0.169.0/*/*.jsonl"))))
    entries = list(library.entries())
    first = next(iter(library.fill(entries, lambda: (entries[-1].key,))))
    assert (first.key, first.state is not None) == (entries[-1].key, True)


def test_children_are_grouped_with_their_parent(tmp_path: Path) -> None:
    entries = filled(library_of(home_of(tmp_path, *CHILDREN)))
    (family,) = group_families(entries)
    assert [member.depth for member in family.members] == [0, 1, 1]
    assert [member.last for member in family.members] == [True, False, True]
    assert family.verdict == "mismatch"


def test_cyclic_parents_become_separate_families() -> None:
    a = Entry("a", Path("a"), 1.0, parent="b")
    b = Entry("b", Path("b"), 2.0, parent="a")
    assert [[m.entry.id for m in family.members] for family in group_families([b, a])] == [["b"], ["a"]]


def test_long_chain_of_forks() -> None:
    chain = [Entry(str(n), Path(str(n)), float(n), parent=str(n - 1)) for n in range(3_000)]
    (family,) = group_families(chain[::-1])
    assert family.members[-1].depth == 2_999


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "empty"), (b"not json\n", "no session log: not a"), (b"\xff" * 500, "no session log: not a")],
    ids=["empty", "text", "bytes"],
)
def test_invalid_file_has_a_problem(tmp_path: Path, content: bytes, why: str) -> None:
    home = CodexHome(tmp_path)
    path = write(home)
    path.write_bytes(content)
    os.utime(path, (NOW - 60, NOW - 60))
    (entry,) = filled(library_of(home))
    assert entry.problem is not None
    assert why in entry.problem
    assert (entry.state, entry.is_unreadable) == (State.UNREACHABLE, True)


def test_truncated_compressed_file_has_a_problem(tmp_path: Path) -> None:
    home = CodexHome(tmp_path)
    path = write(home, META, ASKED, name=".jsonl.zst")
    path.write_bytes(path.read_bytes()[:-9])
    (entry,) = filled(library_of(home))
    assert entry.problem


def test_deleted_file_has_a_problem(tmp_path: Path) -> None:
    library = library_of(home_of(tmp_path, CHILDREN[0]))
    entries = list(library.entries())
    entries[0].path.unlink()
    assert [entry.problem for entry in library.fill(entries, tuple)] == ["No such file or directory"] * 2


def test_file_without_owner_is_exited_at_once(tmp_path: Path) -> None:
    """Whatever the time of the file: a copied home has new ones."""
    home = CodexHome(tmp_path)
    path = write(home, META, event("task_started", turn_id="t"), ASKED)
    os.utime(path, (NOW, NOW))
    assert [entry.state for entry in filled(library_of(home))] == [State.EXITED]


@pytest.mark.skipif(sys.platform != "linux", reason="locks are read from /proc/locks")
def test_thread_whose_lock_is_held_is_running(tmp_path: Path) -> None:
    """However long ago it wrote."""
    home = CodexHome(tmp_path)
    write(home, META, event("task_started", turn_id="t"), ASKED)
    lock = tmp_path / "thread-writer-locks" / f"{THREAD}.lock"
    lock.parent.mkdir()
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert [entry.state for entry in filled(library_of(home))] == [State.RUNNING]
    assert [entry.state for entry in filled(library_of(home))] == [State.EXITED]


def write_thread_of(process: str, home: CodexHome) -> tuple[str, Path]:
    """Write a thread for a real process; return its id and file. Tests that run beside see its process."""
    thread = f"{THREAD[:-12]}{process.encode().hex():0>12}"
    meta = META.replace(THREAD.encode(), thread.encode())
    return thread, write(home, meta, event("task_started", turn_id="t"), ASKED, thread=thread)


@pytest.mark.skipif(sys.platform != "linux", reason="open files are read from /proc")
def test_thread_whose_rollout_is_held_open_is_running(tmp_path: Path) -> None:
    """Codex before 0.148 takes no lock."""
    home = CodexHome(tmp_path)
    _, path = write_thread_of("codex", home)
    program = tmp_path / "codex"
    program.symlink_to("/bin/sleep")
    with path.open("ab") as held, subprocess.Popen([program, "60"], stdout=held) as process:
        try:
            wait_until_executed(process, program)
            assert [entry.state for entry in filled(library_of(home))] == [State.RUNNING]
        finally:
            process.kill()
    assert [entry.state for entry in filled(library_of(home))] == [State.EXITED]


@pytest.mark.skipif(sys.platform != "linux", reason="the environment of processes is read from /proc")
@pytest.mark.parametrize("name", ["make", "bwrap"])
def test_processes_that_name_a_thread(tmp_path: Path, name: str) -> None:
    """They are no sign of life without its Codex: any process may name it."""
    home = CodexHome(tmp_path)
    thread, _ = write_thread_of(name, home)
    program = tmp_path / name
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"], env={"CODEX_THREAD_ID": thread}) as process:
        try:
            wait_until_executed(process, program)
            assert [entry.state for entry in filled(library_of(home))] == [State.EXITED]
        finally:
            process.kill()


def wait_until_executed(process: subprocess.Popen[bytes], program: Path) -> None:
    """Wait until the arguments of a new process can be read: `Popen` returns in the middle of its exec."""
    while not Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(bytes(program)):
        time.sleep(0.001)


def test_child_that_got_less_than_its_parent_is_found(tmp_path: Path) -> None:
    """Children are judged before their parents are read: they are newer."""
    rows = {entry.id: entry for entry in filled(library_of(home_of(tmp_path, *drifted_children(tmp_path))))}
    found = [entry for entry in rows.values() if "child-policy-drift" in entry.findings]
    assert len(found) == 2
    assert all(entry.parent in rows for entry in found)


def drifted_children(folder: Path) -> list[Path]:
    """Return rollouts of a parent, and of children that were told that they have less."""
    parent, *children = files("0.114.0", "spawn")
    drifted = [parent]
    for path in children:
        drifted.append(folder / path.name)
        drifted[-1].write_bytes(path.read_bytes().replace(b"danger-full-access", b"read-only"))
    return drifted


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "UTC"])
def test_start_of_an_old_session_in_any_zone(
    tmp_path: Path, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of files have local times; before October 2025 their ids have none."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    (entry,) = filled(library_of(home_of(tmp_path, *files("0.20.0", "read-only"))))
    monkeypatch.undo()
    time.tzset()
    assert entry.begun is not None
    assert datetime.fromtimestamp(entry.begun, UTC).strftime("%H:%M:%S") in entry.path.read_text()[:400]


def test_tokens_of_a_large_session_are_counted_whole(tmp_path: Path) -> None:
    def counted(total: int, last: int) -> bytes:
        usages = {"total_token_usage": total, "last_token_usage": last}
        return event(
            "token_count",
            info={
                name: {"input_tokens": n, "output_tokens": 0, "total_tokens": n} for name, n in usages.items()
            },
        )

    padding = event("agent_message", message="x" * 50_000)
    home = CodexHome(tmp_path)
    write(
        home,
        META,
        line("turn_context", {"model": "gpt-5"}),
        counted(1_000, 1_000),
        *[padding] * 50,
        counted(3_000, 2_000),
        line("turn_context", {"model": "gpt-5.5"}),
        *[padding] * 50,
        counted(10_000, 7_000),
    )
    (entry,) = filled(library_of(home))
    assert entry.depth == "skimmed"
    assert entry.tokens == 10_000
    assert {each.model: each.usage.total for each in entry.by_model} == {"gpt-5": 3_000, "gpt-5.5": 7_000}


def test_changed_file_is_read_again(tmp_path: Path) -> None:
    home = CodexHome(tmp_path)
    path = write(home, META, event("task_started", turn_id="t"), ASKED)
    library = library_of(home)
    (entry,) = filled(library)
    assert library.refresh(entry) is entry
    with path.open("ab") as file:
        file.write(event("task_complete", turn_id="t", last_agent_message="done") + b"\n")
    (entry,) = library.fill([library.read_header(library.refresh(entry))], tuple)
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
    tokens=9_200,
    by_model=(ModelUsage(model="gpt-5-mini", usage=TokenUsage(input=200_000)),),
    took=0.4,
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "login FIX",
        "state:failed",
        "state:failed-provider verdict:mismatch",
        "!state:completed",
        "dir:api",
        "since:2026-11-20 until:2026-11-20",
        "since:2026-11 until:2026",
        "since:2026-11-20t11:59",
        "since:7d",
        "version:0.16 model:mini finding:stale is:archived",
        "since:",
        "stale-network",
        "failed provider",
        "2026-11-20",
        "since:whenever",
        "is:anything",
        "no:such login",
        '"fix the"',
        '"fix the',
        'state:"failed provider"',
        "tokens:>9k tokens:<=9200 took:<1s",
        "cost:>0.04 cost:<0.06",
        '!"no:such"',
        "!https://x !std::y",
    ],
)
def test_query_matches(text: str) -> None:
    assert Query.parse(text, ENTRY.begun + DAY).matches(ENTRY)


@pytest.mark.parametrize(
    "text",
    [
        "logout",
        "!login",
        "state:completed",
        "verdict:match",
        "dir:web",
        "since:2026-11-21",
        "until:2026-11-19",
        "since:12h",
        "is:fork",
        "since:yesterday",
        '"login fix"',
        'dir:"home dev"',
        "verdict:match !state:failed",
        "tokens:<9k",
        "took:>1h",
    ],
)
def test_query_does_not_match(text: str) -> None:
    assert not Query.parse(text, ENTRY.begun + 2 * DAY).matches(ENTRY)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("login since:whenever", "invalid date 'whenever'"),
        ("sttate:failed", "unknown key 'sttate'. Did you mean 'state'?"),
        ("foo:bar", "unknown key 'foo': choose from agent, cost, dir,"),
        ("state:nonsense", "state has no 'nonsense': choose from running, waiting-input,"),
        ("state:complted", "state has no 'complted'. Did you mean 'completed'?"),
        ("verdict:bad", "verdict has no 'bad': choose from match, mismatch, unverified"),
        ("finding:nope", "finding has no 'nope': choose from "),
        ("!is:forked", "is has no 'forked'. Did you mean 'fork'?"),
        ("tokens:many", "tokens has no 'many': use tokens:>10k"),
        ("took:>1y", "took has no '>1y': use took:>1h"),
    ],
)
def test_invalid_query_term_has_a_problem(text: str, problem: str) -> None:
    assert (Query.parse(text, NOW).problem or "").startswith(problem)


@pytest.mark.parametrize("text", ["state:", "20:15", "https://x", "std::vector", '"foo:bar"', 'dir:"a b'])
def test_valid_query_has_no_problem(text: str) -> None:
    assert Query.parse(text, NOW).problem is None


def test_phrase_in_a_directory() -> None:
    spaced, plain = (msgspec.structs.replace(ENTRY, cwd=cwd) for cwd in ("/home/my project", "/my/project"))
    query = Query.parse('dir:"my project"', NOW)
    assert (query.matches(spaced), query.matches(plain)) == (True, False)


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("st", "state:"),
        ("login !ver", "login !verdict:"),
        ("state:fai", "state:failed-provider"),
        ("verdict:m", "verdict:match"),
        ("since:yes", "since:yesterday"),
        ("dir:/home/dev/a", "dir:/home/dev/api"),
        ("dir:ap", "dir:api"),
        ("model:gpt", "model:gpt-5-mini"),
        ("is:fork since:mon", "is:fork since:monday"),
        ('dir:"my', None),
        ("state:", None),
        ("state:failed ", None),
        ("tokens:9", None),
        ("", None),
    ],
)
def test_completion(text: str, completed: str | None) -> None:
    assert complete(text, [ENTRY]) == completed
    assert completed is None or Query.parse(completed, NOW).problem is None


def test_completion_of_a_value_with_spaces_is_quoted() -> None:
    spaced = msgspec.structs.replace(ENTRY, cwd="/home/my project")
    assert complete('dir:"my p', [spaced]) == 'dir:"my project'
    assert complete("dir:my", [spaced]) is None


# ---------------------------------------------------------------- dates


@pytest.fixture(params=["America/New_York", "America/Sao_Paulo", "Asia/Beirut", "Australia/Lord_Howe", "UTC"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ZoneInfo]:
    """Set the local time zone; in Beirut some days have no midnight, in New York the clock changes at two."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield ZoneInfo(request.param)
    monkeypatch.undo()
    time.tzset()


@pytest.mark.slow
def test_days_end_where_the_next_begins(zone: ZoneInfo) -> None:
    """Every half hour of a year belongs to the day of its local date, and to no other."""
    first = int(datetime(2026, 1, 1, tzinfo=zone).timestamp())
    for at in range(first, first + 365 * 86_400, 1_800):
        local = datetime.fromtimestamp(at, zone)
        start, end = parse_period(f"{local:%Y-%m-%d}", NOW)
        assert start <= at < end, local
        assert parse_period(f"{local + timedelta(days=1):%Y-%m-%d}", NOW)[0] == end


@pytest.mark.parametrize("zone", ["America/New_York"], indirect=True)
@pytest.mark.parametrize(("day", "hours"), [("2026-11-01", 25), ("2026-03-08", 23), ("2026-03-09", 24)])
def test_hours_of_days_on_which_the_clock_changes(zone: ZoneInfo, day: str, hours: int) -> None:
    start, end = parse_period(day, NOW)
    assert (end - start) / 3_600 == hours
    next_noon = datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=zone) + timedelta(days=1)
    assert parse_period("yesterday", next_noon.timestamp()) == (start, end)


def test_months_and_years(zone: ZoneInfo) -> None:
    for text, start, end in (
        ("2026-11", (2026, 11, 1), (2026, 12, 1)),
        ("2026-12", (2026, 12, 1), (2027, 1, 1)),
        ("2024-02", (2024, 2, 1), (2024, 3, 1)),
        ("2026", (2026, 1, 1), (2027, 1, 1)),
    ):
        assert parse_period(text, NOW) == tuple(
            datetime(*day, tzinfo=zone).timestamp() for day in (start, end)
        )


@pytest.mark.parametrize(("name", "days"), [("sunday", 0), ("sat", 1), ("monday", 6), ("today", 0)])
def test_weekday_is_the_latest_one(zone: ZoneInfo, name: str, days: int) -> None:
    sunday = datetime(2026, 11, 22, 9, tzinfo=zone)
    expected = f"{sunday - timedelta(days=days):%Y-%m-%d}"
    assert parse_period(name, sunday.timestamp()) == parse_period(expected, NOW)


def test_moments() -> None:
    assert parse_period("now", NOW) == (NOW, NOW)
    assert parse_period("7d", NOW) == (NOW - 7 * DAY, NOW - 7 * DAY)
    start, end = parse_period("20:15", NOW)
    assert (time.localtime(start)[:5], end - start) == ((*time.localtime(NOW)[:3], 20, 15), 60)


@pytest.mark.parametrize("text", ["whenever", "2026-13", "24:61", "9999", "", "2026-02-30"])
def test_invalid_date_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid date .*: use 2026-11-01"):
        parse_period(text, NOW)


# ---------------------------------------------------------------- full text


def hits(home: CodexHome, text: str) -> list[Hit]:
    return [found for found in search(home.rollouts(), text) if isinstance(found, Hit)]


@pytest.mark.parametrize("name", [".jsonl", ".jsonl.zst"])
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("LOGIN fix", [("prompt", 2)]),
        ("needle", [("command", 3), ("output", 4)]),
        ('"grep -r"', [("command", 3)]),
        ('"r grep"', []),
        ('"needle', [("command", 3)]),
        ("GRÜSSE", [("output", 4)]),
        ("grüße", [("output", 4)]),
        ("GRÜßE needles", [("output", 4)]),
        ("function_call", []),
        ("exec_command", []),
        ("fix needle", []),
    ],
)
def test_search_kinds_and_lines(tmp_path: Path, name: str, text: str, found: list[tuple[str, int]]) -> None:
    home = CodexHome(tmp_path)
    write(home, META, ASKED, RAN, PRINTED, name=name)
    assert [(hit.what, hit.line) for hit in hits(home, text)] == found


def test_hit_marks_its_words(tmp_path: Path) -> None:
    home = CodexHome(tmp_path)
    write(home, META, ASKED, RAN, PRINTED)
    (hit,) = hits(home, "needles alle")
    assert [hit.text[a:b] for a, b in hit.marks] == ["alle", "NEEDLES"]
    assert (hit.thread, hit.at) == (THREAD, BORN + 1)


def test_copied_history_is_not_searched(tmp_path: Path) -> None:
    home = home_of(
        tmp_path,
        *files("0.169.0", "full-history-child", ROLLOUTS),
        *files("0.169.0", "user-shell-and-fork", ROLLOUTS),
    )
    expected = {
        (e.thread, e.line)
        for p in home.rollouts()
        for e in events_of(p)
        if isinstance(e, MessageLogged) and "the" in e.text.casefold()
    }
    found = [(hit.thread, hit.line) for hit in hits(home, "the") if hit.what in ("prompt", "message")]
    assert sorted(found) == sorted(expected)


def test_search_finds_what_parsing_finds(tmp_path: Path) -> None:
    """Search finds exactly the outputs that contain the words after parsing the whole file."""
    paths = all_files()
    assert paths
    for path in paths:
        expected = [
            e.line
            for e in events_of(path)
            if isinstance(e, CallEnded) and "codex_sandbox" in e.output.casefold()
        ]
        found = [s.line for s in search([path], "codex_sandbox") if isinstance(s, Hit) and s.what == "output"]
        assert set(found) == set(expected), path


def test_unreadable_file_reports_a_problem(tmp_path: Path) -> None:
    home = CodexHome(tmp_path)
    path = write(home, META, ASKED, name=".jsonl.zst")
    path.write_bytes(b"no zstd")
    (step,) = search([path], "login")
    assert isinstance(step, SearchProgress)
    assert step.problem


def test_line_longer_than_a_block_is_searched(tmp_path: Path) -> None:
    home = CodexHome(tmp_path)
    long = response(
        "function_call_output", call_id="c1", output="x" * 3_000_000 + " needle " + "y" * 3_000_000
    )
    write(home, META, RAN, long, ASKED, end=b"")
    assert [(hit.what, hit.line) for hit in hits(home, "login")] == [("prompt", 4)]


# ---------------------------------------------------------------- search: whole texts, letters, phrases

PATCH = "*** Begin Patch\n*** Update File: a.py\n-old_patch_line = 1\n+new_patch_line = 2\n*** End Patch"
LONG = "begin " + "x" * 50_000 + " needle in the middle " + "y" * 50_000 + " end"


def found(home: CodexHome, text: str) -> list[tuple[str, int]]:
    """Return kind and line of all hits."""
    return [(hit.what, hit.line) for hit in search(home.rollouts(), text) if isinstance(hit, Hit)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("new_patch_line", [("patch", 2)]),
        ("old_patch_line", [("patch", 2)]),
        ("heredoc_line", [("patch", 3)]),
        ("pondering", [("reasoning", 4)]),
        ("release notes of zstd", [("search", 5)]),
        ("needle", [("output", 6)]),
        ('"in the middle"', [("output", 6)]),
        ('"middle the in"', []),
        ("tail_of_the_command", [("command", 7)]),
        ("Straße", [("prompt", 8)]),
        ("STRASSE", [("prompt", 8)]),
        ("strasse", [("prompt", 8)]),
        ("efficient", [("prompt", 8)]),
        ("kelvin", [("prompt", 8)]),
        ('"two lines"', [("prompt", 8)]),
        ("ÜBER", [("message", 9)]),
    ],
)
def test_search_of_everything_written(tmp_path: Path, text: str, expected: list[tuple[str, int]]) -> None:
    write(
        home := CodexHome(tmp_path),
        META,
        response("custom_tool_call", name="apply_patch", call_id="p", input=PATCH),
        response(
            "function_call",
            name="exec_command",
            call_id="h",
            arguments=json.dumps({"cmd": f"apply_patch <<'E'\n{PATCH.replace('patch', 'heredoc')}\nE"}),
        ),
        response("reasoning", summary=[{"type": "summary_text", "text": "**Pondering** the layout"}]),
        response("web_search_call", action={"type": "search", "query": "Release notes of zstd"}),
        response("function_call_output", call_id="h", output=f"Exit code: 0\nOutput:\n{LONG}\n"),
        response(
            "function_call",
            name="exec_command",
            call_id="c",
            arguments=json.dumps({"cmd": f"echo {'z' * 9_000} tail_of_the_command"}),
        ),
        event("user_message", message="Die Straße, e\ufb03cient, \u212aelvin, on two\nlines"),
        event("agent_message", message="\u00fcber alles"),
    )
    assert found(home, text) == expected
    replayed = find_texts(home.rollouts(), text)  # what `/` does in a replay
    assert [(hit.what, hit.line) for hit in replayed.hits] == expected


def test_every_letter_that_folds_to_ascii_is_found_by_it() -> None:
    """Whether the JSON has the letter itself or its escape; what is plain ASCII stays fast."""
    letters = [chr(code) for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000]
    folding = [letter for letter in letters if any(part.isascii() for part in letter.casefold())]
    assert {"ß", "ﬁ", "\u212a", "ſ"} <= set(folding)
    for letter in folding:
        word = "".join(part for part in letter.casefold() if part.isascii())
        for raw in (
            json.dumps(f"ab {letter}").encode(),
            json.dumps(f"ab {letter}", ensure_ascii=False).encode(),
        ):
            assert SearchTerms(word).may_match(raw), letter
    assert not SearchTerms("zzz").may_match("Grüße — …".encode())


@pytest.mark.parametrize("text", ["straße", "STRASSE"])
def test_marks_of_letters_that_fold_to_two(tmp_path: Path, text: str) -> None:
    write(home := CodexHome(tmp_path), META, event("user_message", message="Die große Straße hier"))
    (hit,) = (hit for hit in search(home.rollouts(), text) if isinstance(hit, Hit))
    assert [hit.text[start:end] for start, end in hit.marks] == ["Straße"]


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


def test_search_finds_what_a_compaction_left(tmp_path: Path) -> None:
    write(home := CodexHome(tmp_path), META, line("compacted", {"message": "the tests are green"}))
    assert found(home, "tests green") == [("message", 2)]


def test_search_finds_every_text_of_the_recordings() -> None:
    """Of each file the words of one text of each kind, by a second reader: all texts of all lines."""
    checked = 0
    for path in all_files()[::5]:
        texts: dict[str, tuple[int, str]] = {}
        for number, raw in enumerate(path.read_bytes().splitlines(), 1):
            for kind, text in line_texts(raw):
                if len(text.split()) > 2:
                    texts[kind] = (number, text)
        for kind, (number, text) in texts.items():
            words = [word for word in text.split() if '"' not in word][:6]
            hits = [hit for hit in search([path], " ".join(words)) if isinstance(hit, Hit)]
            assert number in {hit.line for hit in hits}, (path, kind, number, words)
            checked += 1
    assert checked > 20
