"""How shells split an unquoted expansion into arguments."""

from __future__ import annotations

import re
from itertools import pairwise

from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Hole,
    Kind,
    Names,
    Parts,
    Trimmed,
    Words,
    concrete,
)
from agentdash.engine.detect.env_output.world import State, UnreadableError
from agentdash.engine.detect.env_output.zsh import LINES
from agentdash.sandbox.shell import Item, Parameter, Piece, Script, Simple, Substitution, Text, Word


def split_substitution(parts: Parts, state: State, pieces: tuple[Piece, ...]) -> list[Parts]:
    """Return the arguments that an unquoted substitution becomes: its words, or its lines (`IFS`).

    `pieces` are those of its word.
    """
    if all(
        ("\n" not in part and " " not in part)
        if isinstance(part, str)
        else isinstance(part, Hole) and part.kind in (Kind.OTHER, Kind.DIGITS)
        for part in parts
    ):
        return [parts]
    separators = ("\n",) if is_of_lines(pieces) else dict(state.variables).get("IFS", (" \t\n",))
    if len(pieces) > 1 or separators not in ((" \t\n",), ("\n",)):
        return [(ANY,)]
    return [(Words(parts, is_split=separators != ("\n",)),)]


def may_break(pieces: tuple[Piece, ...], text: str | None, state: State) -> bool:
    """Return whether a character of `IFS` other than a blank may break a word that has more in it.

    `text` is what the word becomes, None where that is not known.
    """
    marks = concrete(dict(state.variables).get("IFS", ()) or ())
    is_split = state.dialect != "zsh" and any(not isinstance(p, Text) and not p.quoted for p in pieces)
    if not is_split or (len(pieces) == 1 and text is not None):
        return False
    return marks is None or any(text is None or mark in text for mark in marks.strip(" \t\n"))


def is_listing(value: Parts | None) -> bool:
    """Return whether a value holds names or lines of an environment."""
    return any(isinstance(part, Dump | Names | Trimmed) for part in value or ())


def is_of_lines(pieces: tuple[Piece, ...]) -> bool:
    """Return whether a word is zsh's `${(f)"$(…)"}`, as it is put into the spelling of bash."""
    match pieces:
        case (Substitution(script=Script(items=(Item(node=Simple(words=(Word(raw=raw),))), *_))),):
            return raw == LINES
        case _:
            return False


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


def has_bare_index(word: Word) -> bool:
    """Return whether a word has `$name[…]` in it."""
    return any(
        isinstance(first, Parameter)
        and not first.raw.startswith("${")
        and isinstance(second, Text)
        and second.text.startswith("[")
        and first.quoted == second.quoted
        for first, second in pairwise(word.pieces)
    )
