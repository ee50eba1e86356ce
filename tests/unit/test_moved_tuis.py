"""TUIs that have left their thread for another by `/new`, `/fork` or `/resume`, beside a daemon (0.160+).

The screens are those of Codex 0.169.0, at 120 columns, without their empty rows.
"""

import pytest

from agentdash.engine.link.linker import link_fleet
from agentdash.model import events as e
from agentdash.model.fleet import Fleet, FleetLinks
from agentdash.model.pane import Pane, PaneKey
from tests.unit.story import CWD, PANE, T, begun, fleet, pane, process

FORK = "01a2058c-4f3a-7961-be94-5d14ebb9a9e3"
OTHER = "01a2058c-8c05-7f92-a3a1-38d91e851713"
DAEMON = ("codex", "app-server", "--listen", "unix://", "--managed-daemon")
HEADER = ("  >_ OpenAI Codex (v0.169.0)", "     /home/dev/project")
COMPOSER = ("› Ask Codex to do anything", "  mock-model default · /home/dev/project", "  ← for agents")
TURN = ("› fix the tests", "• Ran echo one", "  └ one", "• a done", "  Worked for <1s • 23:16")
FIRST = (*HEADER, *TURN, *COMPOSER)
FORKED = (*HEADER, f"• Thread forked from {T}", *TURN, "• Fork created. You can continue here.", *COMPOSER)
NAMED = (*HEADER, "• Thread forked from tidy up", f"  ({T})", *TURN, *COMPOSER)
NEW = (*HEADER, "   ⠈⠙⠛⠿⠿⠿⠿⠛⠉", *COMPOSER)
MENU = (
    " Resume a previous session",
    " Filter:  Cwd  All    Status:  Active  Archived    Sort:  Updated  Created",
    "  › 31s ago     fix the tests",
    "    37s ago     write the docs",
    " enter resume   ^a archive   esc exit   ^c exit   tab focus sort/filter   ←/→ change option",
)
SCROLLED = (*TURN[1:], *COMPOSER)


def forked(prompt: str | None = None, *, thread: str = FORK) -> list[e.Event]:
    return [
        e.ThreadStarted(
            thread=thread, at=105.0, line=1, cwd=CWD, version="0.169.0", originator="codex-tui", forked_from=T
        ),
        *([e.MessageLogged(thread=thread, at=106.0, line=4, role="user", text=prompt)] if prompt else ()),
    ]


def other(prompt: str = "write the docs", *, cwd: str = CWD) -> list[e.Event]:
    return [
        e.ThreadStarted(thread=OTHER, at=107.0, line=1, cwd=cwd, version="0.169.0", originator="codex-tui"),
        e.MessageLogged(thread=OTHER, at=108.0, line=4, role="user", text=prompt),
    ]


def seen(
    screen: tuple[str, ...],
    *threads: list[e.Event],
    loaded: tuple[str, ...] = (T,),
    argv: tuple[str, ...] = (),
    pushed: tuple[e.Event, ...] = (),
) -> Fleet:
    """A TUI that started at 95 in the pane, and a daemon that has loaded threads."""
    return fleet(
        *threads,
        pane(),
        e.PaneDrawn(at=109.0, key=PANE, screen=screen),
        process(10, started=80.0),
        process(11, 10, started=95.0, agent="codex", cwd=CWD, argv=("codex", *argv)),
        process(50, 11, started=96.0, argv=DAEMON),
        *pushed,
        e.LocksSeen(at=110.0, holders=dict.fromkeys(loaded, 50)),
        e.ProcessesCounted(at=110.0),
    )


def shown(links: FleetLinks) -> list[str]:
    return list(links.threads_in(PANE))


@pytest.mark.parametrize(
    ("screen", "fork", "wanted"),
    [
        (FORKED, None, FORK),
        (NAMED, None, FORK),
        ((*FORKED[:-3], "› add a test", "• b done", *COMPOSER), "add a test", FORK),
        (FIRST, None, T),
        (FIRST, "add a test", T),
        (TURN + COMPOSER, "add a test", T),
        (TURN + COMPOSER, None, None),  # the line that would name the fork has left the screen
        (SCROLLED, "add a test", None),
        (NEW, None, None),
    ],
)
def test_a_fork_and_the_thread_that_it_was_forked_from(
    screen: tuple[str, ...], fork: str | None, wanted: str | None
) -> None:
    found = link_fleet(seen(screen, begun(), forked(fork), loaded=(T, FORK)))
    assert shown(found) == ([wanted] if wanted else [])


@pytest.mark.parametrize(
    ("title", "more", "wanted"),
    [
        ("fix the tests", other(), T),
        ("write the docs of all modules, and ...", other("write the docs of all modules, and tests"), OTHER),
        ("fix the tests", other("fix the tests"), None),
        ("fix the tests", forked("add a test"), None),  # a fork keeps the name of its origin
        ("my own title", other(), None),
        ("", other(), None),
    ],
)
def test_the_title_names_the_thread_where_the_screen_is_scrolled(
    title: str, more: list[e.Event], wanted: str | None
) -> None:
    titled = e.ScreenRead(at=109.5, key=PANE, agent="codex", state=None, front=title)
    found = link_fleet(seen(SCROLLED, begun(), more, loaded=(T, OTHER, FORK), pushed=(titled,)))
    assert shown(found) == ([wanted] if wanted else [])


def test_two_forks_without_prompts_are_not_distinguished() -> None:
    both = (begun(), forked(), forked(thread=OTHER))
    assert not shown(link_fleet(seen(FORKED, *both, loaded=(T, FORK, OTHER))))
    assert shown(link_fleet(seen(FORKED, *both, loaded=(T, OTHER)))) == [OTHER]


@pytest.mark.parametrize("argv", [(), ("resume", T)])
def test_a_new_thread_has_no_rollout_yet(argv: tuple[str, ...]) -> None:
    assert shown(link_fleet(seen(NEW, begun(), argv=argv))) == [T]  # not drawn yet, or scrolled
    assert not shown(link_fleet(seen(NEW, begun(), argv=argv, loaded=(T, OTHER))))
    here, elsewhere = (
        e.StatusPushed(thread=OTHER, at=109.0, status="idle", cwd=cwd) for cwd in (CWD, "/home/dev/web")
    )
    assert not shown(link_fleet(seen(NEW, begun(), argv=argv, loaded=(T, OTHER), pushed=(here,))))
    assert shown(link_fleet(seen(NEW, begun(), argv=argv, loaded=(T, OTHER), pushed=(elsewhere,)))) == [T]


def test_a_menu_with_prompts_shows_none_of_their_threads() -> None:
    assert not shown(link_fleet(seen(MENU, begun(), other(), loaded=(T, OTHER))))


def test_a_resumed_thread_may_be_older_than_the_tui() -> None:
    assert shown(link_fleet(seen(FIRST, begun(at=50.0), other(), loaded=(T, OTHER)))) == [T]
    assert not shown(link_fleet(seen(FIRST, begun(at=50.0), loaded=())))


def test_what_was_left_is_not_what_the_tui_was_started_with() -> None:
    resumed = ("resume", T)
    screen = (*HEADER, "› write the docs", "• b done", *COMPOSER)
    assert shown(link_fleet(seen(screen, begun(), other(), argv=resumed, loaded=(T, OTHER)))) == [OTHER]
    assert not shown(link_fleet(seen(SCROLLED, begun(), other(), argv=resumed, loaded=(T, OTHER))))
    assert shown(link_fleet(seen(SCROLLED, begun(), other(), argv=resumed, loaded=(T,)))) == [T]


def test_the_argument_of_fork_is_another_thread() -> None:
    started = ("fork", T)
    assert shown(link_fleet(seen(FORKED, begun(), forked(), argv=started, loaded=(FORK,)))) == [FORK]
    assert not shown(link_fleet(seen(SCROLLED, begun(), forked(), argv=started, loaded=(T, FORK))))


def test_a_thread_that_a_tui_resumed_has_left_the_pane_of_its_exec() -> None:
    left = PaneKey("default", "%9")
    screen = (f"session id: {T}",)
    exec_pane = [
        e.PaneSeen(at=90.0, pane=Pane(left, "work", "2:b", 90, "sh")),
        e.PaneDrawn(at=90.0, key=left, screen=screen),
    ]
    before = link_fleet(seen(NEW, begun(at=50.0), exec_pane, loaded=(OTHER,)))
    assert before.panes[T].key == left
    assert link_fleet(seen(FIRST, begun(at=50.0), exec_pane)).panes[T].key == PANE
