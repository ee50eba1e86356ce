"""The state of the library screen: the known entries, arranged as families, filtered, unfolded. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agentdash.replay.library.entry import NEWEST, SORTS, Entry, SessionFamily, group_families
from agentdash.replay.library.query import Query
from agentdash.tui.library.list import LibraryRow


class LibraryModel:
    """What the library screen shows. It outlives the screen: a reopened library looks as it was left."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        """All entries by their key."""
        self.query = Query()
        self.sort = NEWEST
        """A name of `SORTS`."""
        self.unfolded: set[str] = set()
        """Keys of the heads of families that are shown in full."""
        self.selected_key: str | None = None
        """Key of the entry under the cursor."""
        self.rows: tuple[LibraryRow, ...] = ()
        self.matching: list[SessionFamily] = []
        """The families that match the query."""
        self.families: list[SessionFamily] = []
        """All of them, the newest first."""
        self.unread: Sequence[str] = ()
        """Directories and indexes that cannot be read, and why."""
        self.stale = False
        """Whether entries have changed since the rows were arranged."""

    @property
    def is_by_day(self) -> bool:
        """Whether the rows are in the order of time, so that days have heads."""
        return self.sort == NEWEST

    def put(self, entries: Iterable[Entry]) -> None:
        """Add or replace entries."""
        for entry in entries:
            self.entries[entry.key] = entry
            self.stale = True

    def keep(self, keys: set[str]) -> None:
        """Drop all other entries: their files are gone."""
        if self.entries.keys() - keys:
            self.entries = {key: entry for key, entry in self.entries.items() if key in keys}
            self.stale = True

    def arrange(self) -> None:
        """Gather the families and compute the rows."""
        if self.stale:
            self.families = group_families(list(self.entries.values()))
            self.stale = False
        matching = [family for family in self.families if self.query.matches_family(family)]
        self.matching = sorted(matching, key=SORTS[self.sort])
        self.rows = tuple(row for family in self.matching for row in self._rows_of(family))
        if self.selected_key is not None and all(row.key != self.selected_key for row in self.rows):
            self.selected_key = self._head_of(self.selected_key)

    def fold(self, key: str, unfold: bool | None = None) -> None:
        """Unfold (True) or fold (False) the family of this row's key; None toggles."""
        head = self._head_of(key)
        wanted = head not in self.unfolded if unfold is None else unfold
        if wanted:
            self.unfolded.add(head)
        else:
            self.unfolded.discard(head)
            self.selected_key = head
        self.arrange()

    def searched(self) -> Sequence[Entry]:
        """Return the entries that a full-text search reads: all members of the matching families."""
        return [member.entry for family in self.matching for member in family.members]

    def _head_of(self, key: str) -> str:
        """Return the key of the head of the matching family with this entry, else the entry's own."""
        for family in self.matching:
            if any(member.entry.key == key for member in family.members):
                return family.head.key
        return key

    def _rows_of(self, family: SessionFamily) -> Iterator[LibraryRow]:
        head = family.head.key
        unfolded = head in self.unfolded
        for member in family.members if unfolded else family.members[:1]:
            yield LibraryRow(member.entry.key, family=family, member=member, unfolded=unfolded)
