"""Completion of the filter of the library."""

from __future__ import annotations

from textual.suggester import Suggester

from agentdash.replay.library.query import complete
from agentdash.tui.library.model import LibraryModel


class QuerySuggester(Suggester):
    """Completes keys and values in a filter, also by the directories and models of the sessions.

    Args:
        model: the entries known by now.
    """

    def __init__(self, model: LibraryModel) -> None:
        super().__init__(use_cache=False, case_sensitive=True)  # the entries change; case is kept as typed
        self._model = model

    async def get_suggestion(self, value: str) -> str | None:
        """Return the completed filter; None if there is nothing to complete."""
        return complete(value, self._model.entries.values())
