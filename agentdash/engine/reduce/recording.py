"""Reduce the end of a recording: from here on nothing is known of processes and panes."""

from __future__ import annotations

from msgspec.structs import replace

from agentdash.engine.reduce.panes import remove_pane
from agentdash.model import events as e
from agentdash.model.fleet import NOT_RECORDED, Locks, RecordingEnded, SourceHealth
from agentdash.model.fleet_draft import FleetDraft
from agentdash.model.pane import tmux_source


def end_recording(draft: FleetDraft, event: RecordingEnded) -> None:
    """Forget the live processes. Panes stay, as they were seen last, and threads keep theirs."""
    at, links = event.at, draft.links
    draft.sources.update(
        {name: SourceHealth(name, ok=False, detail=NOT_RECORDED, at=at) for name in draft.sources}
    )
    # until it is known that they have ended, `processes_at` is None: then these times do not count
    orphans = dict.fromkeys((*links.commands, *links.owners), at) | links.orphans
    if event.threads_ended:
        orphans = {thread.id: thread.last_at or at for thread in draft.threads.values()} | orphans
    draft.links = replace(links, owners={}, orphans=orphans, commands={}, below={}, nested={})
    for known in (draft.processes, draft.readings, draft.pushed, draft.sessions, draft.busy):
        known.clear()
    draft.locks = Locks(at, {}, readable=event.threads_ended)
    draft.processes_at = at if event.threads_ended else None


def drop_ended_panes(draft: FleetDraft) -> None:
    """Remove the panes of servers that are not recorded any more: another recording states what there is."""
    for key in list(draft.panes):
        server = draft.sources.get(tmux_source(key.server))
        if server is not None and server.detail == NOT_RECORDED:
            remove_pane(draft, e.PaneGone(at=server.at, key=key))
