"""Reduce what a recording states of a whole fleet: what was known when a part of it began, and its end."""

from __future__ import annotations

from msgspec.structs import replace

from agentdash.engine.reduce.panes import remove_pane
from agentdash.engine.reduce.recall import merge_recalled
from agentdash.engine.reduce.thread import reduce_thread
from agentdash.model import events as e
from agentdash.model.fleet import (
    NOT_RECORDED,
    RESTORED_FIELDS,
    CopyOnWrite,
    FleetDraft,
    FleetKnown,
    Locks,
    RecordingEnded,
    SourceHealth,
)
from agentdash.model.pane import tmux_source
from agentdash.model.thread import Thread


def end_recording(draft: FleetDraft, event: RecordingEnded) -> None:
    """Forget the live processes, of which nothing is known from here on.

    Panes stay, as they were seen last, and threads keep theirs.
    """
    at, links = event.at, draft.links
    draft.sources.update(
        {name: SourceHealth(name, ok=False, detail=NOT_RECORDED, at=at) for name in draft.sources}
    )
    # until it is known that they have ended, `processes_at` is None: then these times do not count
    orphans = dict.fromkeys((*links.commands, *links.owners), at) | links.orphans
    if event.threads_ended:
        orphans = {thread.id: thread.written_at or at for thread in draft.threads.values()} | orphans
    draft.links = replace(links, owners={}, orphans=orphans, commands={}, below={}, nested={})
    for known in (draft.processes, draft.readings, draft.pushed, draft.sessions, draft.busy):
        known.clear()
    draft.locks = Locks(at, {}, readable=event.threads_ended)
    draft.processes_at = draft.files_at = at if event.threads_ended else None


def drop_ended_panes(draft: FleetDraft) -> None:
    """Remove the panes of servers that are not recorded any more: another recording states what there is."""
    for key in list(draft.panes):
        server = draft.sources.get(tmux_source(key.server))
        if server is not None and server.detail == NOT_RECORDED:
            remove_pane(draft, e.PaneGone(at=server.at, key=key))


def restore_known(draft: FleetDraft, event: FleetKnown) -> None:
    """Add the facts that `model.known.known_of` saved to the draft."""
    drop_ended_panes(draft)
    for name in RESTORED_FIELDS:
        value, current = getattr(event, name), getattr(draft, name)
        if isinstance(current, CopyOnWrite):
            if value:
                current.update(value)
        elif value is not None:
            setattr(draft, name, value)
    if event.files_at is None and event.processes_at is not None:  # recordings of 0.1.0
        draft.files_at = event.processes_at
    for memory in draft.recalled.values():
        if (known := draft.threads.get(memory.thread)) is not None:
            draft.threads[memory.thread] = merge_recalled(known, memory)
    for logged in event.logged:
        thread = draft.threads.get(logged.thread) or Thread(logged.thread)
        draft.threads[logged.thread] = reduce_thread(thread, logged)
