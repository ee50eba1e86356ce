"""What the command palette offers: every action of the key table, and every worker by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.types import IgnoreReturnCallbackType

from agentdash.tui.keys import KEYS, Key
from agentdash.tui.theme import word

if TYPE_CHECKING:
    from agentdash.tui.app import AgentDash

_OFFERED = tuple(
    key.id for key in KEYS if key.on in ("app", "player") and key.id != "palette" and "{" not in key.action
)


def _help(key: Key) -> str:
    return cast(
        "str", Content(f"{'  '.join(key.shown)}  {key.help}")
    )  # a str would be read as markup, and keys may be brackets


class Actions(Provider):
    """The keys of the app, by what they do."""

    async def discover(self) -> Hits:
        """All of them."""
        for key in self._offered():
            yield DiscoveryHit(Content(key.label), self._run(key), help=_help(key))

    async def search(self, query: str) -> Hits:
        """Those whose label or help fits."""
        matcher = self.matcher(query)
        for key in self._offered():
            if (score := max(matcher.match(key.label), matcher.match(key.help) / 2)) > 0:
                yield Hit(score, Content(key.label), self._run(key), help=_help(key))

    def _offered(self) -> list[Key]:
        """What this app answers."""
        app: AgentDash = self.app  # type: ignore[assignment]
        return [
            key
            for key in map(app.keys.__getitem__, _OFFERED)
            if hasattr(app, "action_" + key.action.partition("(")[0])
        ]

    def _run(self, key: Key) -> IgnoreReturnCallbackType:
        return partial(self.app.run_action, f"app.{key.action}")


class Workers(Provider):
    """The workers: choosing one puts the cursor on it."""

    async def search(self, query: str) -> Hits:
        """Those whose name or id fits."""
        app: AgentDash = self.app  # type: ignore[assignment]
        matcher = self.matcher(query)
        for worker in app.snapshot.workers if app.snapshot else ():
            if (score := max(matcher.match(worker.name), matcher.match(worker.id) / 2)) > 0:
                name = Content(f"{worker.name}  {worker.agent.name}")  # foreign: `Content` reads no markup
                yield Hit(
                    score,
                    name,
                    partial(app.pick, worker.id),
                    text=worker.name,
                    help=f"go to it: {word(worker.state)}",
                )
