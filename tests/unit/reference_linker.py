"""A straightforward linker of threads to TUIs: every thread is compared with every TUI."""

from __future__ import annotations

import posixpath

from agentdash.engine.link.candidates import Tui
from agentdash.model.links import PaneLink, ThreadPane
from agentdash.model.thread import Thread


def reference_links(threads: list[Thread], tuis: list[Tui]) -> dict[str, ThreadPane]:
    """Return what `link_by_candidates` has to return."""
    threads, tuis = list(threads), list(tuis)
    linked: dict[str, ThreadPane] = {}
    for find in (_by_arguments, _by_prompt, _only_one):
        for tui in list(tuis):
            if (found := find(tui, threads, tuis)) is not None:
                thread, link = found
                linked[thread.id] = link
                threads.remove(thread)
                tuis.remove(tui)
    return linked


def _by_arguments(tui: Tui, threads: list[Thread], _: list[Tui]) -> tuple[Thread, ThreadPane] | None:
    for thread in threads:
        if thread.id in tui.process.argv:
            by = f"the pane's Codex (pid {tui.process.pid}) was started with its id"
            return thread, ThreadPane(tui.pane.key, by, how=PaneLink.ARGUMENTS)
    return None


def _by_prompt(tui: Tui, threads: list[Thread], _: list[Tui]) -> tuple[Thread, ThreadPane] | None:
    screen = " ".join(" ".join(tui.pane.screen).split())
    shown = []
    for thread in _candidates(tui, threads):
        start = " ".join((thread.last_prompt or "").split())[:24]
        if len(start) >= 6 and start in screen:
            shown.append(thread)
    if len(shown) != 1:
        return None
    return shown[0], ThreadPane(tui.pane.key, "the pane shows its prompt", how=PaneLink.PROMPT)


def _only_one(tui: Tui, threads: list[Thread], tuis: list[Tui]) -> tuple[Thread, ThreadPane] | None:
    rivals = [other for other in tuis if other.process.cwd == tui.process.cwd]
    candidates = _candidates(tui, threads)
    if len(rivals) != 1 or not candidates:
        return None
    folder = posixpath.basename(tui.process.cwd or "?")
    by = f"the only Codex in {folder} (pid {tui.process.pid}), and the thread began after it"
    newest = max(candidates, key=lambda thread: thread.last_at or 0.0)
    return newest, ThreadPane(tui.pane.key, by, how=PaneLink.ONLY_ONE)


def _candidates(tui: Tui, threads: list[Thread]) -> list[Thread]:
    return [
        thread
        for thread in threads
        if thread.cwd == tui.process.cwd
        and (thread.originator or "").startswith(("codex-tui", "codex_cli_rs"))
        and thread.created_at is not None
        and thread.created_at >= tui.process.key.started - 5.0
    ]
