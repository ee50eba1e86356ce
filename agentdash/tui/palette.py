"""Providers of the command palette: every action of the key table, and every worker by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.types import IgnoreReturnCallbackType

from agentdash.tui.keys import KEYS, Key
from agentdash.tui.theme import state_name

if TYPE_CHECKING:
    from agentdash.tui.snapshot_app import SnapshotApp

_ACTION_KEYS: Final = tuple(
    key.id
    for key in KEYS
    if key.on in ("app", "fleet", "player") and key.id != "palette" and "{" not in key.action
)


def _help(key: Key) -> str:
    # `Content`, since a str would be parsed as markup, and keys may be brackets
    return cast("str", Content(f"{'  '.join(key.shown)}  {key.help}"))


class ActionProvider(Provider):
    """The actions of the app's keys."""

    async def discover(self) -> Hits:
        """Yield all actions."""
        for key in self._keys():
            yield DiscoveryHit(Content(key.label), self._run(key), help=_help(key))

    async def search(self, query: str) -> Hits:
        """Yield the actions with a matching label or help."""
        matcher = self.matcher(query)
        for key in self._keys():
            if (score := max(matcher.match(key.label), matcher.match(key.help) / 2)) > 0:
                yield Hit(score, Content(key.label), self._run(key), help=_help(key))

    def _keys(self) -> list[Key]:
        """Return the keys that this app has an action for."""
        app: SnapshotApp = self.app  # type: ignore[assignment]
        return [
            key
            for key in map(app.keys.__getitem__, _ACTION_KEYS)
            if hasattr(app, "action_" + key.action.partition("(")[0])
        ]

    def _run(self, key: Key) -> IgnoreReturnCallbackType:
        return partial(self.app.run_action, f"app.{key.action}")


class WorkerProvider(Provider):
    """The workers; running one selects it."""

    async def search(self, query: str) -> Hits:
        """Yield the workers with a matching name or id."""
        app: SnapshotApp = self.app  # type: ignore[assignment]
        matcher = self.matcher(query)
        for worker in app.snapshot.workers if app.snapshot else ():
            if (score := max(matcher.match(worker.name), matcher.match(worker.id) / 2)) > 0:
                name = Content(
                    f"{worker.name}  {worker.agent.name}"
                )  # foreign text: `Content` is not parsed as markup
                yield Hit(
                    score,
                    name,
                    partial(app.select_worker, worker.id),
                    text=worker.name,
                    help=f"go to it: {state_name(worker.state)}",
                )
