"""The linker is linear, and links what a straightforward one links."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentdash.engine.link.candidates import Loaded, Tui, link_by_candidates
from agentdash.engine.link.linker import link_fleet
from agentdash.engine.reduce.fleet import reduce
from agentdash.model import events as e
from agentdash.model.fleet import Fleet, FleetLinks, ThreadPane
from agentdash.model.memory import PastWorker
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Process, ProcessKey
from agentdash.model.thread import Thread
from tests.unit.reference_linker import reference_links

IDS = [f"01a1fa8b-0000-7000-8000-{number:012d}" for number in range(8)]
CWDS = ("/w/api", "/w/web", None)
PROMPTS = (
    "fix the flaky test in the parser",
    "fix the flaky test in the printer",
    "fix  the\tflaky\ntest in the parser again",
    "go",
    "repair",
    "repair it",
    "repair the   ",
    "write docs",
    "x" * 30,
    "ein Wort über Umlaute",
    "",
    None,
)
HEADER = "│ >_ OpenAI Codex (v0.169.0) │"
FORKED = tuple(f"• Thread forked from {thread}" for thread in IDS[:3])
FRAGMENTS = (
    "› ",
    "› ",
    "› ",
    "repair",
    "repairs",
    " the ",
    "flaky",
    "fix the flaky test in the",
    "write docs",
    "x" * 25,
)

threads = st.builds(
    Thread,
    id=st.sampled_from(IDS),
    cwd=st.sampled_from(CWDS),
    originator=st.sampled_from(("codex-tui", "codex_cli_rs_x", "codex_exec", None)),
    created_at=st.sampled_from((None, 90.0, 100.0, 104.9, 110.0)),
    last_at=st.sampled_from((None, 100.0, 120.0)),
    last_prompt=st.sampled_from(PROMPTS),
    forked_from=st.sampled_from((None, None, *IDS[:3])),
)
texts = st.sampled_from(tuple(filter(None, PROMPTS)))
rows = st.one_of(
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), texts), max_size=3).map("".join),
    texts.map("› {}".format),
    st.sampled_from((HEADER, *FORKED)),
)
screens = st.lists(rows, max_size=5).map(tuple)
loads = st.none() | st.builds(
    Loaded,
    threads=st.frozensets(st.sampled_from(IDS)),
    new=st.lists(st.sampled_from(CWDS), max_size=2).map(tuple),
)


def make_pane(number: int, screen: tuple[str, ...] = ()) -> Pane:
    return Pane(
        key=PaneKey("default", f"%{number}"),
        session="s",
        window=f"{number}:w",
        pid=1_000 + number,
        command="codex",
        title="",
        width=80,
        height=24,
        active=False,
        server_pid=999,
        screen=screen,
    )


def make_codex(number: int, cwd: str | None, started: float = 95.0, argv: tuple[str, ...] = ()) -> Process:
    return Process(
        key=ProcessKey(2_000 + number, started),
        ppid=1_000 + number,
        name="codex",
        argv=("codex", *argv),
        cwd=cwd,
        agent="codex",
    )


@st.composite
def tui_lists(draw: st.DrawFn) -> list[Tui]:
    return [
        Tui(
            make_pane(number, draw(screens)),
            make_codex(
                number,
                cwd=draw(st.sampled_from(CWDS)),
                started=draw(st.sampled_from((95.0, 105.0))),
                argv=tuple(draw(st.lists(st.sampled_from([*IDS, "resume"]), max_size=2))),
            ),
        )
        for number in range(draw(st.integers(0, 5)))
    ]


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.lists(threads, max_size=8, unique_by=lambda thread: thread.id), tui_lists(), loads)
def test_candidates_as_a_straightforward_linker_links_them(
    given: list[Thread], tuis: list[Tui], loaded: Loaded | None
) -> None:
    found = link_by_candidates(given, tuis, loaded)
    wanted = reference_links(given, tuis, loaded)
    assert found == wanted
    assert list(found) == list(wanted)


# ---------------------------------------------------------------- a thread that starts


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Panes with a Codex, or with a shell that one has left, and threads; few are named by anything."""
    events: list[e.Event] = []
    for tui in draw(tui_lists()):
        shell = Process(key=ProcessKey(tui.pane.pid, 90.0), ppid=999, name="sh")
        named = draw(st.sampled_from((None, None, None, *IDS)))
        rollouts = (f"/h/{named}.jsonl",) if named else ()
        argv = tui.process.argv if draw(st.integers(0, 3)) == 0 else ("codex",)
        session = draw(st.sampled_from((None, None, None, *IDS)))
        screen = tui.pane.screen if session is None else (f"session id: {session}",)
        events += [
            e.PaneSeen(at=100.0, pane=tui.pane),
            e.PaneDrawn(at=100.0, key=tui.pane.key, screen=screen),
            e.ProcessSeen(at=100.0, process=shell),
        ]
        if draw(st.integers(0, 3)):
            codex = replace(tui.process, rollouts=rollouts, argv=argv)
            events.append(e.ProcessSeen(at=100.0, process=codex))
    if draw(st.booleans()):
        past = PastWorker(
            pane=PaneKey("default", f"%{draw(st.integers(0, 2))}"),
            worker=draw(st.sampled_from(IDS)),
            agent="codex",
            seen=99.0,
            server_pid=999,
            own=True,
        )
        events.append(e.PanesRecalled(at=100.0, workers=(past,)))
    holder = draw(st.sampled_from((None, None, *IDS)))
    holders = {holder: draw(st.sampled_from((2_000, 3_000)))} if holder else {}
    if draw(st.booleans()):
        daemon = Process(key=ProcessKey(3_000, 90.0), ppid=1, name="codex", argv=("codex", "app-server"))
        events.append(e.ProcessSeen(at=100.0, process=daemon))
    events.append(e.LocksSeen(at=100.0, holders=holders, readable=True))
    known = draw(st.lists(threads, max_size=6, unique_by=lambda thread: thread.id))
    return replace(reduce(Fleet(), events), threads={thread.id: thread for thread in known})


def without_words(links: FleetLinks) -> FleetLinks:
    """Links without the words of their evidence: those of a remembered link differ from pass to pass."""
    panes = {
        thread: ThreadPane(link.key, "", own=link.own, how=link.how) for thread, link in links.panes.items()
    }
    return replace(links, panes=panes)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    fleets(),
    st.sampled_from(IDS),
    st.sampled_from(CWDS),
    st.sampled_from([None, IDS[0], IDS[5]]),
    st.sampled_from(("codex-tui", "codex_exec")),
)
def test_a_started_thread_as_if_all_were_linked_again(
    fleet: Fleet, thread: str, cwd: str | None, parent: str | None, originator: str
) -> None:
    before = reduce(fleet, [e.ProcessesCounted(at=110.0), e.ProcessesCounted(at=111.0)])
    started = e.ThreadStarted(
        thread=thread, at=111.5, line=1, cwd=cwd, version="0.169.0", originator=originator, parent=parent
    )
    after = reduce(before, [started])
    wanted = link_fleet(replace(after, links=before.links))
    assert without_words(after.links) == without_words(wanted)
    panes = {key: set(after.links.threads_in(key)) for key in after.panes}
    assert panes == {
        key: {thread for thread, link in wanted.panes.items() if link.key == key} for key in after.panes
    }


def test_the_only_tui_of_a_directory_shows_the_thread_that_was_active_last() -> None:
    codex = make_codex(0, cwd="/w/api")
    shell = Process(key=ProcessKey(1_000, 90.0), ppid=999, name="sh")
    events = [
        e.PaneSeen(at=100.0, pane=make_pane(0)),
        *(e.ProcessSeen(at=100.0, process=each) for each in (shell, codex)),
        *(
            e.ThreadStarted(
                thread=thread, at=at, line=1, cwd="/w/api", version="0.90.0", originator="codex-tui"
            )
            for thread, at in ((IDS[0], 101.0), (IDS[1], 103.0))
        ),
        e.ProcessesCounted(at=102.0),
    ]
    before, after = (
        reduce(Fleet(), [*events[:4], events[5]]),
        reduce(Fleet(), [*events[:4], events[5], events[4]]),
    )
    assert list(before.links.panes) == [IDS[0]]
    assert list(after.links.panes) == [IDS[1]]
