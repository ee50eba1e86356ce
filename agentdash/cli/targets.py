"""Find the workers that a command line means: by thread id or its prefix, name, or pane.

A pane id alone (`%4`) is that of the caller's own tmux server, if that has such a pane. `NAME:%4` (or, as
documents print it, `-L NAME %4`) names the server too. Panes keep their answer after they have gone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

import click
from msgspec.structs import replace

from agentdash.collect.tmux.servers import own_server, server_of
from agentdash.config import Config
from agentdash.model.pane import REFUSED, PaneKey
from agentdash.model.sanitize import clean_line
from agentdash.model.worker import Snapshot, Worker

_MIN_PREFIX_CHARS: Final = 4
"""Shorter prefixes of a thread id match too many threads, as ids begin with the time."""
_PANE_ID: Final = re.compile(r"%\d+", re.ASCII)
_FULL_PANE: Final = re.compile(r"(?:-L )?(?P<server>[^:]+?)(?::| )%\d+", re.ASCII)


class Found(NamedTuple):
    """The workers that match a target."""

    workers: tuple[Worker, ...]
    pane: PaneKey | None = None
    """The pane that the target names."""
    has_ended: bool = False
    """Whether the worker is known by its past pane alone, and cannot change any more."""


def find(snapshot: Snapshot, target: str) -> Found:
    """Return the workers that match a target, as given on the command line.

    Raises:
        click.UsageError: panes of several tmux servers match, and none of them is the caller's own.
    """
    for is_stale in (False, True):
        if (key := _pane_of(snapshot, target, is_stale=is_stale)) is not None:
            return _workers_in(snapshot, key)
    is_prefix = len(target) >= _MIN_PREFIX_CHARS
    for match in (
        [w for w in snapshot.workers if target in (w.id, w.name)],
        [w for w in snapshot.workers if is_prefix and w.id.startswith(target)],
        [w for w in snapshot.workers if w.host and _is_there(w, target, is_prefix=is_prefix)],
    ):
        if match:
            return Found(tuple(match))
    return Found(())


def _is_there(worker: Worker, target: str, *, is_prefix: bool) -> bool:
    """Return whether a target means a worker of another host: by its id there, or by its pane there."""
    host = f"{worker.host}:"
    return (
        (worker.pane_there is not None and target == host + worker.pane_there)
        or worker.id == host + target
        or (is_prefix and worker.id.startswith(host + target))
    )


def with_server_of(config: Config, target: str | None) -> Config:
    """Return the configuration that also watches the tmux server that a target names."""
    named = _FULL_PANE.fullmatch(target or "")
    if named is None or named["server"] == "default":
        return config
    server = named["server"]
    if server.startswith("/"):
        return replace(config, socket_paths=tuple(dict.fromkeys((*config.socket_paths, Path(server)))))
    return replace(config, socket_names=tuple(dict.fromkeys((*config.socket_names, server))))


def refusal(snapshot: Snapshot, target: str) -> str | None:
    """Return why a tmux server in which a target may be was refused, with its name, or None."""
    if not is_pane(target):
        return None
    named = _FULL_PANE.fullmatch(target)
    sources = {each.name: each.detail for each in snapshot.sources if each.detail.startswith(REFUSED)}
    wanted = [server_of(named["server"]).source] if named is not None else sources
    return next((f"{name} is {sources[name]}" for name in wanted if name in sources), None)


def _pane_of(snapshot: Snapshot, target: str, *, is_stale: bool) -> PaneKey | None:
    """Return the pane that a target names; of a bare id the caller's own, else the only one with a worker."""
    past = {past.key for past in snapshot.past if past.is_stale is is_stale}
    present = set() if is_stale else {worker.pane.key for worker in snapshot.workers if worker.pane}
    idle = set() if is_stale else set(snapshot.idle_panes)
    named = {key for key in (*past, *present, *idle) if key.has_name(target)}
    here = own_server()
    if own := {key for key in named if key.server == here}:
        return own.pop()
    with_worker = named & (past | present)
    if len(with_worker) > 1:
        forms = ", ".join(sorted(key.full for key in with_worker))
        raise click.UsageError(clean_line(f"ambiguous target {target!r}: choose from {forms}"))
    return next(iter(with_worker or named), None)


def _workers_in(snapshot: Snapshot, key: PaneKey) -> Found:
    if present := [worker for worker in snapshot.workers if worker.pane and worker.pane.key == key]:
        return Found(tuple(present), key)
    past = next((past for past in snapshot.past if past.key == key), None)
    if past is None:
        return Found((), key)
    if past.shown is not None:
        return Found((past.shown,), key, has_ended=True)
    return Found(tuple(worker for worker in snapshot.workers if worker.id == past.worker), key)


def is_pane(target: str) -> bool:
    """Return whether a target is the id of a pane."""
    return bool(_PANE_ID.fullmatch(target) or _FULL_PANE.fullmatch(target))
