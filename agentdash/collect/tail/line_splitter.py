"""Split a growing text into numbered whole lines, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

from agentdash.files import is_record


class LineSplitter:
    """Splits data that arrives in pieces.

    Args:
        max_line: bytes of the longest line that is kept; longer ones are skipped, and counted.
        number: of the first line to come; 0 if it is not known, and then for all lines.
        inside: whether the data begins in the middle of a line, which is skipped.
    """

    def __init__(self, max_line: int, number: int = 1, *, inside: bool = False) -> None:
        self.number = number
        self._max_line = max_line
        self._partial = b""
        self._skipping = inside
        self._newline_due = False
        """Whether the newline of a line that was returned already is still to come."""

    @property
    def complete(self) -> bool:
        """Whether the data so far ends with a whole line."""
        return not (self._partial or self._skipping)

    def add(self, data: bytes) -> Iterator[tuple[int, int, tuple[bytes, ...]]]:
        """Yield the lines that `data` completes, without their newlines.

        Yields:
            How many oversized lines were skipped, the number of the first line after these, and the lines
            from there on.
        """
        skipped = 0
        if self._newline_due and data:
            self._newline_due = False
            data = data.removeprefix(b"\n")
        if self._skipping:
            end = data.find(b"\n")
            if end < 0:
                return
            data = data[end + 1 :]
            self._skipping = False
            skipped = 1
        whole, newline, rest = data.rpartition(b"\n")
        if newline:
            lines = whole.split(b"\n")
            lines[0] = self._partial + lines[0]
            self._partial = rest
            for group in self._without_oversized(lines):
                yield self._numbered(skipped, group)
                skipped = 1
        else:
            self._partial += rest
            if skipped:
                yield self._numbered(skipped, [])
        if len(self._partial) > self._max_line:
            self._partial = b""
            self._skipping = True

    def end(self) -> Iterator[tuple[int, int, tuple[bytes, ...]]]:
        """Yield the last line, at the end of a file, if it is a whole record that lacks the newline alone."""
        if not self._skipping and is_record(self._partial):
            line, self._partial = self._partial, b""
            self._newline_due = True
            yield self._numbered(0, [line])

    def _without_oversized(self, lines: list[bytes]) -> Iterator[list[bytes]]:
        """Yield the groups of lines between the oversized ones."""
        start = 0
        for at in [at for at, line in enumerate(lines) if len(line) > self._max_line]:
            yield lines[start:at]
            start = at + 1
        yield lines[start:]

    def _numbered(self, skipped: int, lines: list[bytes]) -> tuple[int, int, tuple[bytes, ...]]:
        first = self.number + skipped if self.number else 0
        self.number = first + len(lines) if self.number else 0
        return skipped, first, tuple(lines)
