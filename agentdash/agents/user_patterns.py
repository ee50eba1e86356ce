"""Regular expressions of users, matched within a time limit.

A pattern such as `(a+)+$` takes longer than the screen that it is matched with will last, and Python's `re`
cannot be stopped. The patterns of the package need no limit: they were tried with every screen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

_TIMEOUT_S: Final = 0.2
"""Of one search: those of the package take less than a thousandth of it."""
_MAX_CHARS: Final = 2_000
_MAX_REPEATS: Final = 10_000
"""The product of all counts (`{20}`): each is written out when a pattern is compiled."""
_COUNT: Final = re.compile(r"\{(\d*),?(\d*)\}")


class SlowPatternError(Exception):
    """A search took too long. The message is one line with the place of the pattern."""


class UserPattern:
    """A compiled pattern with what is used of `re.Pattern`.

    Args:
        pattern: as for `re`.
        flags: as for `re`.
        where: its place, for error messages.

    Raises:
        re.error: it is invalid, or too large.
    """

    def __init__(self, pattern: str, flags: int, where: str) -> None:
        import regex  # noqa: PLC0415 - most users have no patterns

        counts = [int(number) for found in _COUNT.findall(pattern) for number in found if number]
        if len(pattern) > _MAX_CHARS or math.prod(filter(None, counts)) > _MAX_REPEATS:
            raise re.error(f"longer than {_MAX_CHARS} characters, or with more than {_MAX_REPEATS} repeats")
        try:
            re.compile(pattern, flags)  # the syntax of both
            self._compiled = regex.compile(pattern, flags & re.MULTILINE)
        except (regex.error, RecursionError, OverflowError) as error:
            raise re.error(str(error)) from error
        self._where = where
        self.pattern = pattern
        self.groups = self._compiled.groups
        self.groupindex: Mapping[str, int] = self._compiled.groupindex

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match, or None.

        Raises:
            SlowPatternError: it took too long.
        """
        return cast("re.Match[str] | None", self._limited(self._compiled.search, text))

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield all matches.

        Raises:
            SlowPatternError: it took too long.
        """
        try:
            yield from self._compiled.finditer(text, timeout=_TIMEOUT_S)
        except TimeoutError:
            raise self._slow() from None

    def sub(self, replacement: str, text: str) -> str:
        """Return the text with all matches replaced.

        Raises:
            SlowPatternError: it took too long.
        """
        return cast("str", self._limited(self._compiled.sub, replacement, text))

    def _limited(self, method: Any, *arguments: str) -> Any:
        try:
            return method(*arguments, timeout=_TIMEOUT_S)
        except TimeoutError:
            raise self._slow() from None

    def _slow(self) -> SlowPatternError:
        return SlowPatternError(f"{self._where}: a search takes longer than {_TIMEOUT_S:g} s")


Pattern = re.Pattern[str] | UserPattern
"""A pattern of the package, or of the user."""
