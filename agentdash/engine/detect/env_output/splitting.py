"""How shells split an unquoted expansion into arguments."""

from __future__ import annotations

import re

from agentdash.engine.detect.env_output.patterns import ANY, Hole, Kind, Parts, Words, concrete
from agentdash.engine.detect.env_output.world import State, UnreadableError


def split_substitution(parts: Parts, state: State, *, is_alone: bool) -> list[Parts]:
    """Return the arguments that an unquoted substitution becomes: its words, or lines where `IFS` says so.

    `is_alone`: nothing else stands in the word.
    """
    if all(
        ("\n" not in part and " " not in part)
        if isinstance(part, str)
        else isinstance(part, Hole) and part.kind in (Kind.OTHER, Kind.DIGITS)
        for part in parts
    ):
        return [parts]
    separators = dict(state.variables).get("IFS", (" \t\n",))
    if not is_alone or separators not in ((" \t\n",), ("\n",)):
        return [(ANY,)]
    return [(Words(parts, is_split=separators != ("\n",)),)]


def split_text(text: str, state: State, *, is_parameter: bool) -> list[str]:
    """Return the arguments that an unquoted text becomes; zsh does not split the values of variables."""
    if is_parameter and state.dialect == "zsh" and not state.is_rewritten:
        return [text] if text else []
    separators = concrete(dict(state.variables).get("IFS", (" \t\n",)) or ())
    if separators is None:
        raise UnreadableError
    if separators.strip(" \t\n"):
        if len(separators) > 1:
            raise UnreadableError  # blanks are dropped, others make empty fields
        return text.removesuffix(separators).split(separators) if text else []
    return [field for field in re.split(f"[{separators}]+", text) if field] if separators else [text]
