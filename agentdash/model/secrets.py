"""Mask secrets by their shape, wherever foreign text is kept or written.

A secret is found by its own form (the prefix of a known kind of token, a JSON Web Token, a private key) or by
what stands before it (an option, a variable, a header, the user part of a URL). References such as `$TOKEN`,
counts, paths and expressions don't count. `secret_shapes.py` has the shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agentdash.model.secret_input import FEED_LITERALS, fed_secrets
from agentdash.model.secret_shapes import (
    AFTER_NAME,
    MASK,
    NAME_LITERALS,
    PRIVATE_KEY,
    PRIVATE_KEY_LITERALS,
    QUOTE,
    SHAPES,
    STRONG_NAME,
    STRONG_NAMES,
    TOKENS,
    WEAK_NAME,
)

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

__all__ = ["MASK", "Masked", "is_secret_name", "mask_beginning", "mask_fields", "mask_lines", "mask_secrets"]

_SECRET_NAME: Final = re.compile(
    rf"(?:.*{STRONG_NAME}|(?:.*[^a-z])?(?:{WEAK_NAME}|access)|.*[a-z](?-i:Key|Auth|Pat|Sig|Pwd))",
    re.IGNORECASE,
)
"""A whole name of a variable or of an option that holds a secret."""
_DIRECTORY_NAMES: Final = frozenset(("PWD", "OLDPWD", "pwd"))
_LITERALS: Final = tuple(
    dict.fromkeys(
        (
            *PRIVATE_KEY_LITERALS,
            *FEED_LITERALS,
            *NAME_LITERALS,
            *(literal for shape in SHAPES for literal in shape.literals),
            *(token.literal for token in TOKENS),
        )
    )
)
"""One of these is in the lower case of every text with a secret."""
_OPENING: Final = re.compile(QUOTE)
_CLOSING: Final = re.compile(rf"{QUOTE}\Z")
_NAME_AS_VALUE: Final = re.compile(rf"(?:[A-Za-z.]*[_.][A-Za-z_.]*)?{STRONG_NAME}s?", re.IGNORECASE)
"""A value that is only a name again, as in `password=db_password` and `token=token`."""
_MIN_SCREEN_COLUMNS: Final = 20
"""Lines of fewer characters are not taken for wrapped ones."""
_CUT_TOKEN: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:{'|'.join(re.escape(token.literal) for token in TOKENS if token.is_prefix)})"
    r"(?P<secret>(?=\D{0,80}\d)(?=[^A-Za-z]{0,80}[A-Za-z])[\w+/=.]{8,})\Z",
    re.IGNORECASE,
)
"""The beginning of a token at the end of a screen, which may have been read while the token was drawn: how
long it becomes is not known."""
_CONTEXT_CHARS: Final = 300
"""Characters behind a cut by which a secret before it is known: a URL names the host behind a password."""
_MAX_CACHED_CHARS: Final = 4_000
"""Longer texts are masked anew each time: they are rare, and must not fill memory."""


def mask_secrets(text: str) -> str:
    """Return `text` with secrets replaced by `…`; what names them stays, and so do all line breaks."""
    return _mask_cached(text) if len(text) <= _MAX_CACHED_CHARS else _mask(text)


def mask_beginning(text: str, length: int) -> str:
    """Return at most `length` characters of a longer text with secrets masked, also one that the cut
    divides."""
    return mask_secrets(text[: length + _CONTEXT_CHARS])[:length]


def mask_lines(lines: Sequence[str]) -> list[str]:
    """Return lines, as those of a screen, with secrets masked, also those that go on in the next line."""
    if any("\n" in line for line in lines):
        return [mask_secrets(line) for line in lines]
    masked = mask_secrets("\n".join(lines)).split("\n")
    drawn = max((number for number, line in enumerate(lines, 1) if line), default=0)
    for start, stop in _wrapped(lines[:drawn]):
        rows = lines[start:stop]
        text = "".join(rows)
        cut = _CUT_TOKEN.search(text, text.rfind(" ") + 1) if stop == drawn else None
        if cut or mask_secrets(text) != text:  # a row alone may show more, or less
            together = _mask_rows(rows, [cut.span("secret")] if cut else [])
            masked[start:stop] = [
                min(pair, key=len) for pair in zip(together, masked[start:stop], strict=True)
            ]
    return masked


def _wrapped(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the lines that are one, wrapped at the edge of a screen, as their range; also the last line."""
    width = max(map(len, lines), default=0)
    start = 0
    for number, line in enumerate(lines, 1):
        if len(line) < width or width < _MIN_SCREEN_COLUMNS or number == len(lines):
            if number > start + 1 or number == len(lines):
                yield start, number
            start = number


def _mask_rows(rows: Sequence[str], more: Sequence[tuple[int, int]]) -> list[str]:
    """Mask the secrets of a text that is wrapped into rows, and `more` places of it, in each of its rows."""
    text = "".join(rows)
    spans = _merged([*_spans(text, _lower(text)), *more])
    out: list[str] = []
    begin = 0
    for row in rows:
        inside = [(max(0, a - begin), min(len(row), b - begin)) for a, b in spans]
        out.append(_replaced(row, [(a, b) for a, b in inside if a < b]))
        begin += len(row)
    return out


def is_secret_name(name: str) -> bool:
    """Return whether a variable or an option of this name holds a secret."""
    return name not in _DIRECTORY_NAMES and _SECRET_NAME.fullmatch(name) is not None


# ---------------------------------------------------------------- texts


def _mask(text: str) -> str:
    return _replaced(text, _merged(_spans(text, _lower(text))))


def _lower(text: str) -> str:
    """Return the text in lower case, of the same length: `İ` stays."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the places in order; of overlapping ones what the first leaves."""
    merged: list[tuple[int, int]] = []
    end = 0
    for start, stop in sorted(spans):
        if stop > start >= end:
            merged.append((start, stop))
        elif merged and stop > end:
            merged[-1] = (merged[-1][0], stop)
        end = max(end, stop)
    return merged


def _replaced(text: str, spans: Sequence[tuple[int, int]]) -> str:
    pieces: list[str] = []
    end = 0
    for start, stop in spans:
        secret = text[start:stop]
        # a mask for each line, so that lines stay as they are
        pieces += (text[end:start], _MASKED_LINE.sub(MASK, secret) if "\n" in secret else MASK)
        end = stop
    return "".join((*pieces, text[end:])) if pieces else text


_mask_cached = lru_cache(maxsize=8_192)(_mask)


_MASKED_LINE: Final = re.compile(r"[^\n]*[^\s][^\n]*")


def _spans(text: str, lower: str) -> Iterator[tuple[int, int]]:
    """Yield the places of secrets in a text, in no order; they may overlap."""
    literals = _literals_in(lower)
    if not literals:
        return
    if not literals.isdisjoint(PRIVATE_KEY_LITERALS):
        yield from (match.span(match.lastgroup or 0) for match in PRIVATE_KEY.finditer(text))
    for token in TOKENS:
        if token.literal in literals:
            yield from (match.span("secret") for match in token.pattern.finditer(text))
    if not literals.isdisjoint(FEED_LITERALS):
        for place in fed_secrets(text):
            yield from _unquoted(text, *place)
    end = 0
    for name in () if literals.isdisjoint(NAME_LITERALS) else STRONG_NAMES.finditer(lower):
        if name.start() >= end and (match := AFTER_NAME.match(text, name.end())) is not None:
            for value in _value(match):
                word = text[slice(*value)]
                is_longer = "_" in word or "." in word or word.lower() == name[0]
                if not (is_longer and _NAME_AS_VALUE.fullmatch(word)):
                    end = value[1]
                    yield value
    for shape in SHAPES:
        if not literals.isdisjoint(shape.literals):
            for match in shape.pattern.finditer(text):
                yield from _value(match)


def _literals_in(lower: str) -> frozenset[str]:
    """Return those of `_LITERALS` that are in a text."""
    search = _search()
    if search is None:
        return frozenset(literal for literal in _LITERALS if literal in lower)
    found = search.find_matches_as_indexes(lower.encode("utf-8", "surrogatepass"), overlapping=True)
    return frozenset(_LITERALS[number] for number, _, _ in found)


@cache
def _search() -> BytesAhoCorasick | None:
    """Return the search for all literals at once, or None without the library: much slower."""
    try:
        from ahocorasick_rs import BytesAhoCorasick, Implementation  # noqa: PLC0415
    except ImportError:
        return None
    encoded = [literal.encode() for literal in _LITERALS]
    return BytesAhoCorasick(encoded, implementation=Implementation.ContiguousNFA)  # built at once


def _value(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the place of a value, as `_unquoted`."""
    yield from _unquoted(match.string, *match.span(match.lastgroup or 0))


def _unquoted(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the place of a value, without the quotation marks around it; nothing if it is empty."""
    opening = _OPENING.match(text, start, stop)
    if opening is not None:
        start = opening.end()
        closing = _CLOSING.search(text, start, stop)
        stop = closing.start() if closing is not None else stop
    if stop > start:
        yield start, stop


# ---------------------------------------------------------------- values


class Masked:
    """Base of structs whose texts have been masked: they are not searched again."""

    __slots__ = ()


def mask_fields(value: Any) -> Any:
    """Return a struct, a collection or a text in which secrets are masked in all texts; the same object where
    there are none."""
    masked: Any = _mask_any(value)
    return masked


def _mask_any(value: Any) -> Any:
    match value:
        case Masked():
            return value
        case str():
            masked = mask_secrets(value) if type(value) is str else value
            return value if masked == value else masked
        case msgspec.Struct():
            changes = {
                name: masked
                for name in value.__struct_fields__
                if (masked := _mask_any(old := getattr(value, name))) is not old
            }
            return msgspec.structs.replace(value, **changes) if changes else value
        case tuple() if hasattr(value, "_fields"):
            return _mask_items(value, lambda items: type(value)(*items))
        case tuple() | list() | frozenset():
            return _mask_items(value, type(value))
        case dict():
            items = {_mask_any(key): _mask_item(key, item) for key, item in value.items()}
            return value if items == value else items
    return value


def _mask_items(value: Any, rebuild: Callable[[list[Any]], Any]) -> Any:
    items = list(value)
    if len(items) > 1 and all(type(item) is str for item in items):
        masked = mask_lines(items)
        return value if masked == items else rebuild(masked)
    masked = [_mask_any(item) for item in items]
    return rebuild(masked) if any(new is not old for new, old in zip(masked, items, strict=True)) else value


def _mask_item(key: object, item: Any) -> Any:
    """Return the item of a mapping; the name of a variable or header may be its key."""
    if isinstance(key, str) and type(item) is str and is_secret_name(key):
        return mask_secrets(f"{key}={item}").removeprefix(f"{key}=")
    return _mask_any(item)
