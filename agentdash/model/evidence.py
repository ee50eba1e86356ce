"""Evidence: one observation, with its source, time and rule."""

from __future__ import annotations

import msgspec


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was seen, and where; also what speaks against the conclusion."""

    source: str
    """`rollout`, `process`, `kernel`, `environment`, `output`, `lock`, `tmux`, `screen`, `title`."""
    at: float
    rule: str
    """Kebab-case name of the rule that used it."""
    text: str
    """What was seen, quoted or in a few words."""
    agrees: bool = True
