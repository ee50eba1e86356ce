"""The result of reading an output: what it shows of the two sandbox flags."""

from __future__ import annotations

import msgspec


class Flags(msgspec.Struct, frozen=True):
    """The two flags as printed: a value, `unset`, or None where the command did not show it."""

    network: str | None = None
    sandbox: str | None = None
    quote: str = ""
    """The lines of the output that show them."""

    def __bool__(self) -> bool:
        return self.network is not None or self.sandbox is not None
