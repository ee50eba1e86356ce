"""What the library screen shows: entries as they become known, arranged as families, filtered, unfolded. Pure; no screen is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agentdash.replay.library.families import SessionFamily, group_families
from agentdash.replay.library.library import Entry
from agentdash.replay.library.query import Query
from agentdash.tui.library.list import LibraryRow


class LibraryModel:
    """The library in front of somebody. It outlives the screen: whoever comes back finds it as it was left."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.query = Query()
        self.unfolded: set[str] = set()
        """Keys of the heads of families that are shown in full."""
        self.picked: str | None = None
        """Key of the entry that the cursor is on."""
        self.places: tuple[LibraryRow, ...] = ()
        self.matching: list[SessionFamily] = []
        self._families: list[SessionFamily] = []
        self.stale = False
        """Whether more is known than is arranged."""

    @property
    def families(self) -> int:
        """How many there are, shown or not."""
        return len(self._families)

    def put(self, entries: Iterable[Entry]) -> None:
        """Takes entries in, new or better known ones."""
        for entry in entries:
            self.entries[entry.key] = entry
            self.stale = True

    def keep(self, keys: set[str]) -> None:
        """Forgets all other entries: their files are gone."""
        if self.entries.keys() - keys:
            self.entries = {key: entry for key, entry in self.entries.items() if key in keys}
            self.stale = True

    def counts(self) -> tuple[int, int, int]:
        """Entries; those of which something was read; those that cannot be read."""
        read = sum(
            entry.depth in ("skimmed", "read") or entry.problem is not None for entry in self.entries.values()
        )
        return len(self.entries), read, sum(entry.problem is not None for entry in self.entries.values())

    def arrange(self) -> None:
        """Puts families together and the rows in order."""
        if self.stale:
            self._families = group_families(list(self.entries.values()))
            self.stale = False
        self.matching = [family for family in self._families if self.query.matches_family(family)]
        self.places = tuple(place for family in self.matching for place in self._places(family))
        if self.picked is not None and all(place.key != self.picked for place in self.places):
            heads = (f.head.key for f in self.matching if any(m.entry.key == self.picked for m in f.members))
            self.picked = next(heads, self.picked)  # its family has come together, folded

    def fold(self, key: str, unfold: bool | None = None) -> None:
        """Shows all of the family in whose first or further rows this entry stands, or its head alone; None: the other way round."""
        head = next((place.family.head.key for place in self.places if place.key == key), key)
        wanted = head not in self.unfolded if unfold is None else unfold
        (self.unfolded.add if wanted else self.unfolded.discard)(head)
        if not wanted:
            self.picked = head
        self.arrange()

    def searched(self) -> Sequence[Entry]:
        """What a search goes through: all members of the families that are listed."""
        return [member.entry for family in self.matching for member in family.members]

    def _places(self, family: SessionFamily) -> Iterator[LibraryRow]:
        head = family.head.key
        unfolded = head in self.unfolded
        for member in family.members if unfolded else family.members[:1]:
            yield LibraryRow(member.entry.key, family, member, unfolded)
