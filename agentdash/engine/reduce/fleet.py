"""Reduce events into a fleet: pure, in any batch size, live and replayed alike.

`reduce(fleet, a + b) == reduce(reduce(fleet, a), b)` wherever a stream of events is cut, and a fleet that was
returned never changes. Each event passes the same stages: reduce, link (which processes, panes and threads
belong together), detect (which sandbox the processes show), and the history of states.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from agentdash.engine.judge.states.state_history import may_change_state, update_history
from agentdash.engine.link.linker import link_fleet
from agentdash.engine.link.process_tree import ProcessTree, home_directory
from agentdash.engine.reduce import panes, processes, recall
from agentdash.engine.reduce.observations import observe_processes
from agentdash.engine.reduce.panes import remove_pane
from agentdash.engine.reduce.recall import merge_recalled
from agentdash.engine.reduce.thread import reduce_thread
from agentdash.model import events as e
from agentdash.model.fleet import (
    NOT_RECORDED,
    RESTORED_FIELDS,
    CopyOnWrite,
    Fleet,
    FleetDraft,
    FleetKnown,
    Locks,
    RecordingEnded,
    RemoteSeen,
    SourceHealth,
    ThreadRestored,
)
from agentdash.model.pane import tmux_source
from agentdash.model.source import NO_APP_SERVER
from agentdash.model.thread import Thread

_STARTUP_TOLERANCE_S: Final = 5.0
"""Age of a thread's first line, before the newest pass over processes, up to which the thread counts as just
started: clocks of the file and of the pass differ, and lines arrive late."""
_NOTHING_ELSE: Final = Fleet()
_LINKING_EVENTS: Final = (e.ProcessesCounted, FleetKnown, e.ThreadStarted, e.SessionSeen)
"""Events after which links may differ."""
STATUS_FEED: Final = "codex feed"
"""Name of the source that emits `StatusPushed`."""


def reduce(fleet: Fleet, events: Iterable[e.Event]) -> Fleet:
    """Return `fleet` after `events`, in their order.

    Raises:
        TypeError: an event other than `EVENTS`, `FleetKnown`, `RecordingEnded`, `RemoteSeen` and
            `ThreadRestored`.
    """
    draft = FleetDraft(fleet)
    for event in events:
        _reduce_event(draft, event)
        if isinstance(event, _LINKING_EVENTS):
            _link_and_detect(draft, event)
        if may_change_state(event, draft.threads, draft.histories):
            update_history(draft, event)
    return draft.freeze()


def reduce_log(thread: Thread, events: Iterable[e.ThreadEvent]) -> Thread:
    """Return a thread after events of its log, where that is all that is known of it: without the history of
    its states."""
    for event in events:
        home = home_directory(_NOTHING_ELSE, thread) if isinstance(event, e.CallEnded) else None
        thread = reduce_thread(thread, event, home)
    return thread


def _reduce_event(draft: FleetDraft, event: e.Event) -> None:
    """Apply what the event itself states."""
    match event:
        case e.FileGone(thread=thread):
            draft.threads.discard(thread)
            draft.troubles.discard(thread)
        case e.ThreadEvent():
            _reduce_thread_event(draft, event)
        case e.PaneSeen():
            panes.reduce_pane(draft, event)
        case e.PaneDrawn():
            panes.reduce_screen(draft, event)
        case e.PaneGone():
            recall.keep_pane_worker(draft, event.key, event.at)
            panes.remove_pane(draft, event)
        case e.ScreenRead() | e.LabelRead():
            panes.reduce_reading(draft, event)
        case e.StatusPushed():
            draft.pushed[event.thread] = recall.with_known_since(draft, event)
        case e.PaneSessionRead():
            recall.recall_session(draft, event)
        case e.SessionSeen():
            _reduce_session(draft, event)
        case e.PolicyRequested():
            recall.add_requests(draft, event.worker, (event.requested,))
        case e.ProcessSeen():
            processes.reduce_process(draft, event)
        case e.ProcessGone():
            processes.remove_process(draft, event)
        case e.MountsSeen():
            draft.mounts[event.namespace] = event.mounts
        case e.StatePathsSeen():
            processes.reduce_state_paths(draft, event)
        case e.RepositorySeen(directory=directory, repository=repository):
            processes.update_known(draft.repositories, directory, repository)
        case e.ReachSeen(worker=worker, reach=reach):
            processes.update_known(draft.reaches, worker, reach)
        case e.PathsSeen():
            draft.paths.update(event.paths)
        case e.ProcessesCounted():
            draft.processes_at, draft.files_at = event.at, event.files_read_at
        case e.LocksSeen():
            draft.locks = Locks(event.at, event.holders, event.readable)
        case e.HostSeen():
            draft.host = event
        case e.SourceSeen():
            _reduce_source(draft, event)
        case _:
            _reduce_earlier(draft, event)


def _reduce_earlier(draft: FleetDraft, event: e.Event) -> None:
    """Apply what an earlier agentdash, a recording or another host knows."""
    match event:
        case e.ObservationsRecalled(memory=memory):
            recall.recall_observations(draft, memory)
        case e.PanesRecalled(workers=workers):
            recall.recall_panes(draft, workers)
        case e.AttentionRecalled(attention=attention):
            draft.attention = attention
        case RemoteSeen():
            draft.remotes[event.host.link.name] = event.host
        case ThreadRestored(thread=thread, history=history):
            draft.threads[thread.id] = thread
            draft.histories[thread.id] = history
        case FleetKnown():
            restore_known(draft, event)
        case RecordingEnded():
            end_recording(draft, event)
        case _:
            raise TypeError(f"not an event that can be reduced: {event!r}")


def _reduce_thread_event(draft: FleetDraft, event: e.ThreadEvent) -> None:
    before = draft.threads.get(event.thread) or Thread(event.thread)
    if isinstance(event, e.FileReset):
        recall.keep_observations(draft, before)
    home = home_directory(draft, before) if isinstance(event, e.CallEnded) else None
    thread = reduce_thread(before, event, home)
    recalled = draft.recalled.get(event.thread)
    if recalled is not None and thread.policies is not before.policies:
        thread = recall.merge_recalled(thread, recalled)
    draft.threads[event.thread] = thread


def _reduce_source(draft: FleetDraft, event: e.SourceSeen) -> None:
    if event.name == STATUS_FEED and not event.ok:
        draft.pushed.clear()  # what it pushed holds no longer
        if event.detail == NO_APP_SERVER:  # it ends with its last client, which is not a failure
            draft.sources.discard(STATUS_FEED)
            return
    draft.sources[event.name] = SourceHealth(event.name, event.ok, event.detail, event.at)


def _link_and_detect(draft: FleetDraft, event: e.Event) -> None:
    """Link after each pass over processes, and at once when a thread starts; detect sandboxes after each
    pass."""
    if isinstance(event, e.ProcessesCounted | FleetKnown) and draft.processes_at is not None:
        tree = ProcessTree(draft.processes.values(), draft.panes)
        processes.drop_unused_mounts(draft)
        processes.update_occupants(draft, tree)
        draft.links = link_fleet(draft, tree)
        recall.tie_past_workers(draft)
        observe_processes(draft, tree, event.at)
    elif _is_just_started(draft, event) or _names_a_thread(draft, event):
        draft.links = link_fleet(draft)


def _reduce_session(draft: FleetDraft, event: e.SessionSeen) -> None:
    if event.status is None and event.session is None:
        draft.sessions.discard(event.key)
    else:
        draft.sessions[event.key] = event


def _names_a_thread(draft: FleetDraft, event: e.Event) -> bool:
    """Return whether a session file names a thread that is not linked to its process yet."""
    if not isinstance(event, e.SessionSeen) or event.session not in draft.threads:
        return False
    owner = draft.links.owners.get(event.session or "")
    return draft.processes_at is not None and (owner is None or owner.key != event.key)


def _is_just_started(draft: FleetDraft, event: e.Event) -> bool:
    """Return whether a thread has just started."""
    if not isinstance(event, e.ThreadStarted) or draft.processes_at is None:
        return False
    return event.at > draft.processes_at - _STARTUP_TOLERANCE_S


# ------------------------------------------------------------
# Reduce what a recording states of a whole fleet: what was known when a part of it began, and its end


def end_recording(draft: FleetDraft, event: RecordingEnded) -> None:
    """Forget the live processes: nothing is known of them from here on.

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
    """Add the facts that `known_of` saved to the draft."""
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
