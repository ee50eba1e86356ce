"""A tmux pane in which a real program runs."""

from __future__ import annotations

from typing import Protocol

from tests.live.patience import until


class TmuxServer(Protocol):
    """A lab with a tmux server of its own."""

    def run_tmux(self, *arguments: str) -> str:
        """Run a tmux command and return its output."""


class TmuxPane:
    """A tmux pane of a lab."""

    def __init__(self, lab: TmuxServer, ident: str) -> None:
        self._lab = lab
        self.id = ident
        """The id in tmux: `%0`."""

    def text(self) -> str:
        """Return the text of the screen."""
        return self._lab.run_tmux("capture-pane", "-p", "-t", self.id)

    def keys(self, *names: str) -> None:
        """Press keys, by tmux's names: `y`, `Enter`, `Escape`."""
        self._lab.run_tmux("send-keys", "-t", self.id, *names)

    def type(self, text: str) -> None:
        """Type a text."""
        self._lab.run_tmux("send-keys", "-t", self.id, "-l", text)

    async def shows(self, text: str) -> None:
        """Wait until `text` is on the screen.

        Raises:
            TimeoutError: it does not appear.
        """
        await until(lambda: text in self.text(), f"{text!r} on the screen of {self.id}")
