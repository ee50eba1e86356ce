"""A straightforward linker of threads to TUIs: every thread is compared with every TUI."""

from __future__ import annotations

import posixpath

from agentdash.engine.link.candidates import Loaded, Tui
from agentdash.model.fleet import PaneLink, ThreadPane
from agentdash.model.thread import Thread


def reference_links(
    threads: list[Thread], tuis: list[Tui], loaded: Loaded | None = None
) -> dict[str, ThreadPane]:
    """Return what `link_by_candidates` has to return."""
    threads = [thread for thread in threads if loaded is None or thread.id in loaded.threads]
    tuis = list(tuis)
    linked: dict[str, ThreadPane] = {}
    for find in (_by_fork, _by_prompt, _by_arguments, _only_one):
        for tui in list(tuis):
            if (found := find(tui, threads, tuis, loaded)) is not None:
                thread, link = found
                linked[thread.id] = link
                threads.remove(thread)
                tuis.remove(tui)
    return linked


_Found = tuple[Thread, ThreadPane] | None


def _by_fork(tui: Tui, threads: list[Thread], _: list[Tui], loaded: Loaded | None) -> _Found:
    named, prompts, _ = _read(tui)
    forks = [
        thread for thread in _candidates(tui, threads, loaded) if named and thread.forked_from == named[-1]
    ]
    shown = [fork for fork in forks if fork.last_prompt and _start(fork.last_prompt) in prompts]
    shown = shown or [fork for fork in forks if not fork.last_prompt]
    if len(shown) != 1:
        return None
    by = f"the pane shows that its thread was forked from {named[-1]}"
    return shown[0], ThreadPane(tui.pane.key, by, how=PaneLink.PROMPT)


def _by_prompt(tui: Tui, threads: list[Thread], _: list[Tui], loaded: Loaded | None) -> _Found:
    named, prompts, is_whole = _read(tui)
    candidates = _candidates(tui, threads, loaded)
    for prompt in reversed(prompts):
        shown = [thread for thread in candidates if _start(thread.last_prompt or "") == prompt]
        if len(prompt) < 6 or not shown:
            continue
        forks = [thread for thread in candidates if thread.forked_from and not thread.last_prompt]
        if named or len(shown) > 1 or (forks and not is_whole):
            return None
        return shown[0], ThreadPane(tui.pane.key, "the pane shows its prompt", how=PaneLink.PROMPT)
    return None


def _read(tui: Tui) -> tuple[list[str], list[str], bool]:
    screen = list(tui.pane.screen)
    headers = [number for number, row in enumerate(screen) if ">_ OpenAI Codex (v" in row]
    screen = screen[headers[-1] :] if headers else screen
    named = [row.rpartition(" ")[2] for row in screen if row.startswith("• Thread forked from")]
    return named, [_start(row[2:]) for row in screen if row.startswith("› ")], bool(headers)


def _start(text: str) -> str:
    return " ".join(text.split())[:24]


def _by_arguments(tui: Tui, threads: list[Thread], _: list[Tui], loaded: Loaded | None) -> _Found:
    for thread in threads:
        if thread.id in tui.process.argv and "fork" not in tui.process.argv:
            if loaded is not None and not _is_alone(thread, tui, threads, loaded):
                return None
            by = f"the pane's Codex (pid {tui.process.pid}) was started with its id"
            return thread, ThreadPane(tui.pane.key, by, how=PaneLink.ARGUMENTS)
    return None


def _is_alone(thread: Thread, tui: Tui, threads: list[Thread], loaded: Loaded) -> bool:
    rivals = [other for other in _candidates(tui, threads, loaded) if other is not thread]
    return not rivals and None not in loaded.new and tui.process.cwd not in loaded.new


def _only_one(tui: Tui, threads: list[Thread], tuis: list[Tui], loaded: Loaded | None) -> _Found:
    rivals = [other for other in tuis if other.process.cwd == tui.process.cwd]
    candidates = _candidates(tui, threads, loaded)
    if len(rivals) != 1 or not candidates:
        return None
    newest = max(candidates, key=lambda thread: thread.last_at or 0.0)
    if loaded is not None and not _is_alone(newest, tui, threads, loaded):
        return None
    folder = posixpath.basename(tui.process.cwd or "?")
    why = "the thread began after it" if loaded is None else "no other thread is loaded there"
    by = f"the only Codex in {folder} (pid {tui.process.pid}), and {why}"
    return newest, ThreadPane(tui.pane.key, by, how=PaneLink.ONLY_ONE)


def _candidates(tui: Tui, threads: list[Thread], loaded: Loaded | None) -> list[Thread]:
    """Return the threads that a TUI may have; a daemon's may be older than the TUI, and begun by others."""
    return [
        thread
        for thread in threads
        if thread.cwd == tui.process.cwd
        and (
            loaded is not None
            or (
                (thread.originator or "").startswith(("codex-tui", "codex_cli_rs"))
                and thread.created_at is not None
                and thread.created_at >= tui.process.key.started - 5.0
            )
        )
    ]
