"""Links between threads, processes and panes, with their evidence."""

import pytest
from msgspec.structs import replace

from agentdash.engine.link.candidates import printed_id
from agentdash.engine.link.linker import SESSION_LINE, link_fleet
from agentdash.engine.link.process_tree import home_directory
from agentdash.model import events as e
from agentdash.model.events import FileSeen
from agentdash.model.fleet import Fleet, ThreadPane
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Kernel, ProcessKey
from agentdash.model.state_paths import Mount, PathAccess, WriteAccess
from agentdash.model.states import State
from agentdash.model.thread import Thread
from tests.unit.story import (
    CHILD,
    CWD,
    FULL,
    HOST,
    PANE,
    SANDBOXED,
    T,
    begun,
    done,
    fleet,
    held,
    pane,
    polled,
    process,
    snapshot_after,
    worker,
)

FILE = "/home/dev/.codex/sessions/rollout.jsonl"
STATE = "/home/dev/.local/share/opencode"
DAEMON = ("codex", "app-server", "--listen", "unix://", "--managed-daemon")


def tui(
    pid: int = 11, ppid: int = 10, *, started: float = 95.0, argv: tuple[str, ...] = ("codex",)
) -> e.Event:
    return process(pid, ppid, started=started, agent="codex", cwd=CWD, argv=argv)


def daemon() -> e.Event:
    return process(50, started=96.0, argv=DAEMON)


def panes() -> list[e.Event]:
    return [pane(), process(10, started=80.0)]


def test_open_rollout_links_the_owner() -> None:
    seen = e.FileSeen(thread=T, at=100, path=FILE, size=1, modified=100)
    holder = process(50, started=90.0, agent="codex", rollouts=(FILE,))
    found = link_fleet(fleet(begun(), seen, holder, polled(110)))
    assert (found.owners[T].pid, "open" in found.owners[T].by) == (50, True)


def test_daemon_below_a_pane_is_no_evidence_for_it() -> None:
    """0.169: the daemon is a child of the TUI that started it, and serves the others too."""
    story = (begun(), panes(), tui(), process(50, 11, started=96.0, agent=None, argv=DAEMON), held(110, 50))
    found = link_fleet(fleet(*story))
    assert "only Codex" in found.panes[T].by


@pytest.mark.parametrize(
    ("prompt", "is_linked"), [("fix the tests", True), ("go", False), ("go on", False), ("go on!", True)]
)
def test_of_two_tuis_in_one_directory_a_prompt_decides(prompt: str, is_linked: bool) -> None:
    other = PaneKey("default", "%5")
    second = [
        e.PaneSeen(at=90.0, pane=Pane(other, "work", "2:b", 20, "node")),
        process(20, started=80.0),
        tui(21, 20),
        e.PaneDrawn(at=110, key=other, screen=(f"› {prompt}", "", "• Working (3s • esc to interrupt)")),
    ]
    started = [replace(x, text=prompt) if isinstance(x, e.MessageLogged) else x for x in begun()]
    found = link_fleet(fleet(started, panes(), tui(), second, daemon(), held(110, 50)))
    assert found.panes == ({T: ThreadPane(other, "the pane shows its prompt")} if is_linked else {})


def test_commands_have_the_thread_id_in_their_environment() -> None:
    env = {"CODEX_THREAD_ID": T}
    inside = process(70, 50, started=105.0, env=env)
    helper = process(71, 50, started=105.0, env=env, argv=("/x/codex-linux-sandbox", "--", "sh"))
    server = process(72, 50, started=105.0, env={})
    found = link_fleet(
        fleet(begun(), process(50, started=90.0, agent="codex"), inside, helper, server, held(110))
    )
    assert [p.pid for p in found.commands[T]] == [70]


def test_children_follow_their_parent_which_shows_their_needs() -> None:
    child = begun(CHILD, at=101, parent=T, nickname="Pasteur")
    failed = done(None, thread=CHILD, error="quota", error_kind="usage_limit_exceeded")
    spawned = e.ChildSpawned(thread=T, at=101, line=7, child=CHILD)
    rows = snapshot_after(begun(), spawned, child, failed, held(110)).workers
    assert [(w.id, w.depth) for w in rows] == [(T, 0), (CHILD, 1)]
    assert rows[0].children == (CHILD,)
    assert rows[0].below == (f"{State.FAILED_PROVIDER} Pasteur",)


def test_threads_with_circular_parents_are_shown() -> None:
    rows = snapshot_after(begun(parent=CHILD), begun(CHILD, parent=T), polled(110)).workers
    assert {w.id for w in rows} == {T, CHILD}


# ---------------------------------------------------------------- tmux servers inside sandboxes


@pytest.mark.parametrize(("kernel", "kinds"), [(SANDBOXED, ["sandboxed-tmux-server"]), (HOST, [])])
def test_a_worker_below_a_sandboxed_server(kernel: Kernel, kinds: list[str]) -> None:
    """Its pane is not known: that server is not asked."""
    server = process(9, name="tmux: server", kernel=kernel)
    host = e.HostSeen(at=90, platform="linux", kernel=HOST)
    found = worker(begun(policy=FULL), host, server, process(10, 9), tui(), held(110, 11))
    assert [finding.kind for finding in found.sandbox.findings] == kinds


def test_mounts_and_state_paths_are_dropped_with_their_processes() -> None:
    path = PathAccess(STATE, "sessions", WriteAccess("read-only-mount"), needed=True)
    key = ProcessKey(41, 90.0)
    seen = [
        e.MountsSeen(at=90.0, namespace=2, mounts=(Mount(1, 0, "/"),)),
        process(41, kernel=SANDBOXED, agent="opencode"),
        e.StatePathsSeen(at=91.0, key=key, paths=(path,)),
        e.ProcessesCounted(at=91.0),
    ]
    there = fleet(seen)
    assert (there.mounts, there.state_paths) == ({2: (Mount(1, 0, "/"),)}, {key: (path,)})
    assert path.denied
    gone = fleet(seen, e.ProcessGone(at=92.0, key=key), e.ProcessesCounted(at=92.0))
    assert (gone.mounts, gone.state_paths) == ({}, {})
    assert [e.decode(e.encode(event)) for event in seen] == seen


def test_thread_keeps_the_pane_that_its_codex_has_left() -> None:
    """As after `codex exec`: one row, not one for the thread and one for the pane."""
    gone = [e.ProcessGone(at=120, key=ProcessKey(11, 95.0)), *polled(121), *polled(122)]
    story = (begun(), panes(), tui(), held(110, 11), done(), gone)
    found = link_fleet(fleet(*story))
    assert (found.panes[T].key, found.panes[T].by) == (PANE, "its Codex ran in the pane, and has left it")
    assert [w.id for w in snapshot_after(*story).workers] == [T]
    assert worker(*story).state is State.COMPLETED
    another = (*story, tui(12, started=125.0), *polled(126))
    assert {w.id for w in snapshot_after(*another).workers} == {T, str(PANE)}


def printed(*rows: str, at: float = 90.0, key: PaneKey = PANE) -> list[e.Event]:
    """A pane without a worker, and what it shows."""
    return [
        e.PaneSeen(at=at, pane=Pane(key, "work", "0:x", 10, "podman")),
        e.PaneDrawn(at=at, key=key, screen=rows),
    ]


@pytest.mark.parametrize(
    ("story", "is_claimed"),
    [
        # as `podman exec BOX codex exec` prints it: no process of it is below the pane
        (printed(f"session id: {T}"), True),
        ((printed(f"session id: {T}"), polled(105), printed("$ clear", at=106)), True),
        ((printed(f"session id: {T}"), polled(105), printed(f"session id: {CHILD}", at=106)), False),
        ((printed(f"session id: {T}"), printed(f"session id: {T}", key=PaneKey("default", "%9"))), False),
        ((printed(f"session id: {T}"), process(10), process(11, 10, agent="claude")), False),
    ],
)
def test_a_pane_that_prints_the_line_of_a_session_claims_it(
    story: tuple[e.Event, ...], is_claimed: bool
) -> None:
    found = link_fleet(fleet(begun(), *story, polled(110), polled(111)))
    assert (T in found.panes) is is_claimed
    if is_claimed:
        assert (found.panes[T].key, found.panes[T].own, found.panes[T].claimed) == (PANE, False, True)
        assert "claimed, not proven" in found.panes[T].by


def test_a_claim_hides_no_other_worker_of_the_pane() -> None:
    """A worker that has ended prints the id of somebody else's session."""
    ended = (
        process(10, started=80.0),
        tui(started=85.0),
        polled(95),
        e.ProcessGone(at=96, key=ProcessKey(11, 85.0)),
    )
    story = (begun(), printed(f"session id: {T}"), *ended, polled(110), polled(111))
    assert {each.id for each in snapshot_after(*story).workers} == {T, str(PANE)}


@pytest.mark.parametrize("width", [20, 26, 47, 80])
def test_the_line_of_a_session_in_a_narrow_pane(width: int) -> None:
    printed = [f"session id: {T}", "--------", "user", "session ids are listed in the docs"]
    rows = [line[at : at + width].rstrip() for line in printed for at in range(0, len(line), width)]
    assert printed_id(tuple(rows), SESSION_LINE) == T


@pytest.mark.parametrize(
    "rows",
    [
        [f"session id: {T[:-1]}"],
        [f"session id: {T}0"],
        [f"session id: {T[:20]}", T[20:28], T[28:]],
        [f"  session id: {T}"],
        ["session id: none", "of those below", T],
        ["session id:"],
    ],
)
def test_what_is_no_line_of_a_session(rows: list[str]) -> None:
    assert printed_id(tuple(rows), SESSION_LINE) is None


# ---------------------------------------------------------------- the home directory of a thread


@pytest.mark.parametrize(
    ("cwd", "rollout", "home"),
    [
        ("/home/dev/project", "/srv/codex/sessions/r.jsonl", "/home/dev"),
        ("/root/x", "", "/root"),
        ("/srv/build", "/data/people/jo/.codex/sessions/2026/r.jsonl", "/data/people/jo"),
        ("/srv/build", "/var/lib/codex/sessions/r.jsonl", None),
        ("/srv/build", "/exotic/me/codex-home/sessions/r.jsonl", "/exotic/me"),
        ("/srv/build", "copied/.codex/sessions/r.jsonl", None),
    ],
)
def test_home_directory_by_customs(cwd: str, rollout: str, home: str | None) -> None:
    host = e.HostSeen(at=1.0, platform="linux", kernel=HOST, home="/exotic/me")
    thread = Thread(T, cwd=cwd, file=FileSeen(at=1.0, thread=T, path=rollout, size=1, modified=1.0))
    assert home_directory(Fleet(host=host), thread) == home


def test_home_directory_of_its_processes() -> None:
    command = process(61, 60, env={"CODEX_THREAD_ID": T, "HOME": "/exotic/jo/"}, started=101.0)
    after = fleet(begun(), process(60, agent="codex", name="codex"), command, held(102, pid=60))
    assert home_directory(after, after.threads[T]) == "/exotic/jo"
    owner = process(60, agent="codex", name="codex", env={"HOME": "/exotic/owner"})
    after = fleet(begun(), owner, held(102, pid=60))
    assert home_directory(after, after.threads[T]) == "/exotic/owner"


# ---------------------------------------------------------------- worker CLIs that a command has started


def opencode(agent: str = "opencode", **about: object) -> e.Event:
    return process(62, 61, name="node", agent=agent, started=102.2, **about)


def nested(*more: e.Event, at: float = 105.0) -> list[e.Event]:
    """A Codex in a pane whose command has started OpenCode in the sandbox."""
    env = {"CODEX_THREAD_ID": T, "HOME": "/home/dev"}
    return [
        *begun(),
        pane(),
        process(10, 1),
        process(50, 10, name="codex", agent="codex", argv=("codex",)),
        process(60, 50, name="codex-linux-sandbox", argv=("codex-linux-sandbox",), started=102.0, env=env),
        process(61, 60, name="bash", kernel=SANDBOXED, started=102.1, env=env),
        opencode(kernel=SANDBOXED, argv=("node", "/usr/bin/opencode", "run", "go"), env=env),
        *more,
        *held(at),
    ]


def test_a_worker_that_a_command_has_started_is_a_child_of_its_thread() -> None:
    parent, child = snapshot_after(nested(), now=105.0).workers
    assert (parent.id, parent.children, child.parent, child.depth) == (T, ("pid:62",), T, 1)
    assert (child.kind, child.agent.name, child.state) == ("process", "opencode", State.RUNNING)
    assert (child.name, child.pane, child.pids) == ("node /usr/bin/opencode run go", None, (62,))
    assert child.sandbox.got.sandboxed is True


@pytest.mark.parametrize(("shell", "is_below"), [("bash", True), ("tmux: server", False)])
def test_a_codex_that_a_command_has_started_is_below_its_thread(shell: str, is_below: bool) -> None:
    env = {"CODEX_THREAD_ID": T}
    above = process(61, 60, name=shell, kernel=SANDBOXED, started=102.1, env=env)
    before = nested(above, opencode(kernel=SANDBOXED, env=env, agent="codex"))
    assert [found.id for found in snapshot_after(before, now=105.0).workers] == [T, "pid:62"][: 1 + is_below]
    locks = e.LocksSeen(at=106.0, holders={T: 50, CHILD: 62})
    after = [*before, *begun(CHILD, at=103.0), locks, e.ProcessesCounted(at=106.0)]
    rows = {found.id: (found.parent, found.kind) for found in snapshot_after(after, now=106.0).workers}
    assert rows == {T: (None, "codex-thread"), CHILD: (T if is_below else None, "codex-thread")}


def state_path(*, needed: bool = True) -> e.Event:
    access = PathAccess(STATE, "log", WriteAccess("read-only-mount"), needed)
    return e.StatePathsSeen(at=103.0, key=ProcessKey(62, 102.2), paths=(access,))


def test_what_its_sandbox_denies_it_is_shown_while_it_runs_and_blocks_it_where_it_sits_still() -> None:
    _, child = snapshot_after(nested(state_path()), now=105.0).workers
    (finding,) = child.sandbox.findings
    assert (child.state, finding.kind) == (State.RUNNING, "denied-filesystem")
    assert f"may not write {STATE}" in finding.message
    assert finding.remedy is not None
    _, child = snapshot_after(nested(state_path(), at=118.0), now=118.0).workers
    assert (child.state, STATE in child.assessment.why) == (State.BLOCKED_SANDBOX, True)
    _, child = snapshot_after(nested(state_path(needed=False), at=118.0), now=118.0).workers
    assert (child.state, child.sandbox.findings) == (State.RUNNING, ())


@pytest.mark.parametrize(
    "more",
    [
        e.ProcessGone(at=104.0, key=ProcessKey(62, 102.2)),
        opencode(zombie=True, env={"CODEX_THREAD_ID": T}),
        opencode(env={}),
        opencode(env={"CODEX_THREAD_ID": CHILD}),
        process(61, 60, name="tmux: server", kernel=SANDBOXED, started=102.1),
    ],
    ids=["gone", "zombie", "no thread", "another thread", "in a tmux server"],
)
def test_what_is_no_nested_worker(more: e.Event) -> None:
    assert [found.id for found in snapshot_after(nested(more), now=105.0).workers] == [T]
