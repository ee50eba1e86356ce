"""Bytes that come in pieces, as numbered whole lines, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator


class LineSplitter:
    """Cuts a growing text into lines.

    Args:
        longest: bytes of the longest line that is kept; longer ones are skipped, and counted.
        number: of the first line to come; 0 if nobody knows, and then of all others as well.
        inside: whether the text begins in the middle of a line that is to be skipped.
    """

    def __init__(self, longest: int, number: int = 1, *, inside: bool = False) -> None:
        self.number = number
        self._longest = longest
        self._partial = b""
        self._skipping = inside

    @property
    def complete(self) -> bool:
        """Whether the text so far ends with a whole line."""
        return not (self._partial or self._skipping)

    def add(self, data: bytes) -> Iterator[tuple[int, int, tuple[bytes, ...]]]:
        """The lines that `data` completes, without their newlines.

        Yields:
            How many lines too long were skipped, the number of the first line after these, and the lines from there on.
        """
        skipped = 0
        if self._skipping:
            end = data.find(b"\n")
            if end < 0:
                return
            data, self._skipping, skipped = data[end + 1 :], False, 1
        whole, newline, rest = data.rpartition(b"\n")
        if newline:
            lines = whole.split(b"\n")
            lines[0] = self._partial + lines[0]
            self._partial = rest
            for group in self._groups(lines):
                yield self._numbered(skipped, group)
                skipped = 1
        else:
            self._partial += rest
            if skipped:
                yield self._numbered(skipped, [])
        if len(self._partial) > self._longest:
            self._partial, self._skipping = b"", True

    def _groups(self, lines: list[bytes]) -> Iterator[list[bytes]]:
        """`lines`, cut where one of them is too long and left out."""
        start = 0
        for at in [at for at, line in enumerate(lines) if len(line) > self._longest]:
            yield lines[start:at]
            start = at + 1
        yield lines[start:]

    def _numbered(self, skipped: int, lines: list[bytes]) -> tuple[int, int, tuple[bytes, ...]]:
        first = self.number + skipped if self.number else 0
        self.number = first + len(lines) if self.number else 0
        return skipped, first, tuple(lines)
