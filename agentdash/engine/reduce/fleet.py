"""Reduce events into a fleet: pure, in any batch size, live and replayed alike.

`reduce(fleet, a + b) == reduce(reduce(fleet, a), b)` wherever a stream of events is cut, and a fleet that was
returned never changes. Each event passes the same stages: reduce, link (which processes, panes and threads
belong together), detect (which sandbox the processes show), and the history of states.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from msgspec.structs import replace

from agentdash.engine.judge.states.activity import differs_beyond_clocks
from agentdash.engine.judge.states.state_history import update_history
from agentdash.engine.judge.states.thread_facts import threads_in_front
from agentdash.engine.link.linker import link_fleet
from agentdash.engine.link.process_tree import ProcessTree, home_directory
from agentdash.engine.reduce import recall
from agentdash.engine.reduce.observations import observe_processes
from agentdash.engine.reduce.thread import reduce_thread
from agentdash.model import events as e
from agentdash.model.fleet import (
    NOT_RECORDED,
    RESTORED_FIELDS,
    Fleet,
    FleetKnown,
    PaneOccupant,
    ProviderTrouble,
    RecordingEnded,
    RemoteSeen,
)
from agentdash.model.pane import PaneKey, tmux_source
from agentdash.model.process import Process, ProcessKey
from agentdash.model.source import NO_APP_SERVER
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.model.worker import nested_worker_id

_K = TypeVar("_K")
_V = TypeVar("_V")
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
        TypeError: an event other than `EVENTS`, `FleetKnown`, `RecordingEnded` and `RemoteSeen`.
    """
    draft = fleet.copy()
    for event in events:
        _reduce_event(draft, event)
        if isinstance(event, _LINKING_EVENTS):
            _link_and_detect(draft, event)
        update_history(draft, event)
    draft.share(fleet)
    return draft


def reduce_log(thread: Thread, events: Iterable[e.ThreadEvent]) -> Thread:
    """Return a thread after events of its log, where that is all that is known of it: without the history of
    its states."""
    for event in events:
        home = home_directory(_NOTHING_ELSE, thread) if isinstance(event, e.CallEnded) else None
        thread = reduce_thread(thread, event, home)
    return thread


def _reduce_event(draft: Fleet, event: e.Event) -> None:
    """Apply what the event itself states."""
    match event:
        case e.FileGone(thread=thread):
            draft.threads.pop(thread, None)
            draft.troubles.pop(thread, None)
        case e.ThreadEvent():
            _reduce_thread_event(draft, event)
        case e.PaneSeen():
            _reduce_pane(draft, event)
        case e.PaneDrawn():
            _reduce_screen(draft, event)
        case e.PaneGone():
            recall.keep_pane_worker(draft, event.key, event.at)
            _remove_pane(draft, event.key)
        case e.ScreenRead():
            _reduce_reading(draft, event)
        case e.StatusPushed():
            draft.pushed[event.thread] = recall.with_known_since(draft, event)
        case e.PaneSessionRead():
            recall.recall_session(draft, event)
        case e.SessionSeen():
            is_known = event.status is not None or event.session is not None
            _set(draft.sessions, event.key, event if is_known else None)
        case e.PolicyRequested():
            recall.add_requests(draft, event.worker, (event.requested,))
        case e.ProcessSeen():
            _reduce_process(draft, event)
        case e.ProcessGone():
            _remove_process(draft, event)
        case e.MountsSeen():
            draft.mounts[event.namespace] = event.mounts
        case e.StatePathsSeen():
            _set(draft.state_paths, event.key, event.paths or None)
        case e.RepositorySeen(directory=directory, repository=repository):
            _set(draft.repositories, directory, repository)
        case e.PathsSeen():
            draft.paths.update(event.paths)
        case e.ProcessesCounted():
            draft.processes_at = event.at
            draft.files_at = event.at if event.files_at is None else event.files_at
        case e.LocksSeen():
            draft.locks = event
        case e.HostSeen():
            draft.host = event
        case e.SourceSeen():
            _reduce_source(draft, event)
        case _:
            _reduce_earlier(draft, event)


def _reduce_earlier(draft: Fleet, event: e.Event) -> None:
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
        case FleetKnown():
            _restore_known(draft, event)
        case RecordingEnded():
            _end_recording(draft, event)
        case _:
            raise TypeError(f"not an event that can be reduced: {event!r}")


def _set(known: dict[_K, _V], key: _K, value: _V | None) -> None:
    """Set the value of a key; None removes it."""
    if value is not None:
        known[key] = value
    else:
        known.pop(key, None)


def _reduce_thread_event(draft: Fleet, event: e.ThreadEvent) -> None:
    before = draft.threads.get(event.thread) or Thread(event.thread)
    if isinstance(event, e.FileReset):
        recall.keep_observations(draft, before)
    home = home_directory(draft, before) if isinstance(event, e.CallEnded) else None
    thread = reduce_thread(before, event, home)
    recalled = draft.recalled.get(event.thread)
    if recalled is not None and thread.policies is not before.policies:
        thread = recall.merge_recalled(thread, recalled)
    draft.threads[event.thread] = thread


def _reduce_source(draft: Fleet, event: e.SourceSeen) -> None:
    if event.name == STATUS_FEED and not event.ok:
        draft.pushed.clear()  # what it pushed holds no longer
        if event.detail == NO_APP_SERVER:  # it ends with its last client, which is not a failure
            draft.sources.pop(STATUS_FEED, None)
            return
    draft.sources[event.name] = event


def _link_and_detect(draft: Fleet, event: e.Event) -> None:
    """Link after each pass over processes, and at once when a thread starts; detect sandboxes after each
    pass."""
    if isinstance(event, e.ProcessesCounted | FleetKnown) and draft.processes_at is not None:
        tree = ProcessTree(draft.processes.values(), draft.panes)
        used = {process.kernel.mnt for process in draft.processes.values() if process.kernel}
        draft.mounts = {space: mounts for space, mounts in draft.mounts.items() if space in used}
        _update_occupants(draft, tree)
        draft.links = link_fleet(draft, tree)
        recall.tie_past_workers(draft)
        observe_processes(draft, tree, event.at)
    elif _may_link(draft, event):
        draft.links = link_fleet(draft)


def _may_link(draft: Fleet, event: e.Event) -> bool:
    """Return whether a thread has just started, or a session file names one that is not linked to its process
    yet."""
    if draft.processes_at is None:
        return False
    if isinstance(event, e.ThreadStarted):
        return event.at > draft.processes_at - _STARTUP_TOLERANCE_S
    if not isinstance(event, e.SessionSeen) or event.session not in draft.threads:
        return False
    owner = draft.links.owners.get(event.session or "")
    return owner is None or owner.key != event.key


# ------------------------------------------------------------
# Reduce what a recording states of a whole fleet: what was known when a part of it began, and its end


def _end_recording(draft: Fleet, event: RecordingEnded) -> None:
    """Forget the live processes: nothing is known of them from here on.

    Panes stay, as they were seen last, and threads keep theirs.
    """
    at, links = event.at, draft.links
    draft.sources = {
        name: e.SourceSeen(at=at, name=name, ok=False, detail=NOT_RECORDED) for name in draft.sources
    }
    # until it is known that they have ended, `processes_at` is None: then these times do not count
    orphans = dict.fromkeys((*links.commands, *links.owners), at) | links.orphans
    if event.threads_ended:
        orphans = {thread.id: thread.written_at or at for thread in draft.threads.values()} | orphans
    draft.links = replace(links, owners={}, orphans=orphans, commands={}, below={}, nested={})
    for known in (draft.processes, draft.readings, draft.pushed, draft.sessions, draft.busy):
        known.clear()
    draft.locks = e.LocksSeen(at=at, holders={})
    draft.processes_at = draft.files_at = at if event.threads_ended else None


def _drop_ended_panes(draft: Fleet) -> None:
    """Remove the panes of servers that are not recorded any more: another recording states what there is."""
    for key in list(draft.panes):
        server = draft.sources.get(tmux_source(key.server))
        if server is not None and server.detail == NOT_RECORDED:
            _remove_pane(draft, key)


def _restore_known(draft: Fleet, event: FleetKnown) -> None:
    """Add the facts that `known_of` saved to the draft."""
    _drop_ended_panes(draft)
    for name in RESTORED_FIELDS:
        value, current = getattr(event, name), getattr(draft, name)
        if isinstance(current, dict):
            if value:
                current.update(value)
        elif value is not None:
            setattr(draft, name, value)
    if event.files_at is None and event.processes_at is not None:  # recordings of 0.1.0
        draft.files_at = event.processes_at
    for memory in draft.recalled.values():
        if (known := draft.threads.get(memory.thread)) is not None:
            draft.threads[memory.thread] = recall.merge_recalled(known, memory)
    for logged in event.logged:
        thread = draft.threads.get(logged.thread) or Thread(logged.thread)
        draft.threads[logged.thread] = reduce_thread(thread, logged)


# ------------------------------------------------------------
# Reduce events of tmux panes: where they are, what is on their screens, how the screens were read


_PROVIDER_ANSWERS: Final = (State.RUNNING, State.COMPLETED, State.WAITING_APPROVAL)
"""States of a screen which show that the model provider answers again."""


def _reduce_pane(draft: Fleet, event: e.PaneSeen) -> None:
    """Add or update a pane. `list-panes` has no screen: the one that was drawn last stays."""
    pane, before = event.pane, draft.panes.get(event.pane.key)
    dead_at = None
    if pane.dead:
        dead_at = (before.dead_at if before else None) or pane.dead_at or event.at
    if before is None:
        draft.panes[pane.key] = replace(pane, titled_at=event.at, dead_at=dead_at)
        return
    draft.panes[pane.key] = replace(
        pane,
        screen=before.screen,
        drawn_at=before.drawn_at,
        moved_at=before.moved_at,
        titled_at=before.titled_at if before.title == pane.title else event.at,
        dead_at=dead_at,
    )


def _reduce_screen(draft: Fleet, event: e.PaneDrawn) -> None:
    """Update the screen of a known pane, and, of a pane with a worker, whether more than a clock moved on
    it."""
    pane = draft.panes.get(event.key)
    if pane is None:
        return
    moved_at = pane.moved_at
    if event.key in draft.occupants:
        moved_at = pane.drawn_at if moved_at is None else moved_at
        if differs_beyond_clocks(pane.screen, event.screen):
            moved_at = event.at
    drawn_at = event.at if event.since is None else event.since
    draft.panes[event.key] = replace(pane, screen=event.screen, drawn_at=drawn_at, moved_at=moved_at)


def _remove_pane(draft: Fleet, key: PaneKey) -> None:
    """Remove a pane and everything that is known by its key."""
    for known in (draft.panes, draft.occupants, draft.readings):
        known.pop(key, None)
    draft.troubles.pop(str(key), None)


def _reduce_reading(draft: Fleet, event: e.ScreenRead) -> None:
    """Update the reading of a screen, and the provider trouble that it shows for the pane and the threads in
    it."""
    before = draft.readings.get(event.key)
    if before is None:
        event = replace(event, at=_shown_since(draft, event))
    draft.readings[event.key] = _merge_readings(before, event)
    for worker in (str(event.key), *threads_in_front(draft, draft.links, event.key)):
        _update_trouble(draft, worker, event)


def _shown_since(draft: Fleet, reading: e.ScreenRead) -> float:
    """Return since when a screen that is read for the first time has shown its state, at the latest."""
    if (since := recall.known_since(draft, reading)) is not None:
        return min(since, reading.at)
    pane, occupant = draft.panes.get(reading.key), draft.occupants.get(reading.key)
    if pane is None or pane.drawn_at is None or occupant is None:
        return reading.at
    return min(reading.at, max(pane.drawn_at, occupant.key.started))


def _merge_readings(old: e.ScreenRead | None, new: e.ScreenRead) -> e.ScreenRead:
    """A pager or a picker hides the prompt: the reading before it still holds. An unchanged state keeps its
    time, and figures that a dialog hides are kept."""
    if old is None or old.agent != new.agent:
        return new
    if new.usage is None:
        new = replace(new, usage=old.usage)
    if new.frozen:
        return replace(old, frozen=True)
    return replace(new, at=old.at) if (new.state, new.rule) == (old.state, old.rule) else new


def _update_trouble(draft: Fleet, worker: str, reading: e.ScreenRead) -> None:
    """Keep trouble that only a screen shows, since it is shown; when it shows work or an answer again, the
    trouble may be over."""
    known = draft.troubles.get(worker)
    if reading.state == State.FAILED_PROVIDER or reading.is_retrying:
        at = reading.at
        if known is not None and known.over is None and known.text == reading.text:
            at = known.at
        draft.troubles[worker] = ProviderTrouble(at, reading.source, reading.text)
    elif known is not None and known.over is None and reading.state in _PROVIDER_ANSWERS:
        draft.troubles[worker] = replace(known, over=reading.at)


# ------------------------------------------------------------
# Reduce events of processes: which live, which worker CLI occupies which pane, which mounts are still
# needed


def _reduce_process(draft: Fleet, event: e.ProcessSeen) -> None:
    """Add or update a process; its sandbox is observed again in the next pass."""
    process, before = event.process, draft.processes.get(event.process.key)
    if before is not None and (process.cpu > before.cpu or process.io > before.io):
        draft.busy[process.key] = event.at
    draft.processes[process.key] = process
    draft.observed.pop(process.key, None)
    if process.zombie and (process.agent or (before is not None and before.agent)):
        _mark_gone(draft, process.key, event.at)


def _remove_process(draft: Fleet, event: e.ProcessGone) -> None:
    """Remove a process and everything that is known by its key."""
    process = draft.processes.get(event.key)
    for known in (draft.processes, draft.busy, draft.sessions, draft.state_paths, draft.observed):
        known.pop(event.key, None)
    if process is not None:
        draft.requests.pop(nested_worker_id(process.pid), None)
    if process is None or process.agent:
        _mark_gone(draft, event.key, event.at)


def _update_occupants(draft: Fleet, tree: ProcessTree) -> None:
    """Set the worker CLI that lives in each pane; panes without a living one keep the last."""
    outermost: dict[PaneKey, Process] = {}
    for process in draft.processes.values():
        if not process.agent or process.zombie or (pane := tree.pane(process)) is None:
            continue
        # a wrapper and the program that it starts are both recognized: the worker is the outer one
        known = outermost.get(pane)
        if known is None or process.key.started < known.key.started:
            outermost[pane] = process
    for pane, process in outermost.items():
        draft.occupants[pane] = PaneOccupant(
            agent=process.agent or "",
            key=process.key,
            process=process,
            paths=draft.state_paths.get(process.key, ()),
        )


def _mark_gone(draft: Fleet, gone: ProcessKey, at: float) -> None:
    """Note when an occupant ended, whether its parent has collected it or not."""
    for pane, occupant in list(draft.occupants.items()):
        if occupant.key == gone and occupant.gone_at is None:
            draft.occupants[pane] = replace(occupant, gone_at=at)
