"""All mistakes of a config file: where each is, what is expected there, and what was probably meant."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect as types

from agentdash.model.sanitize import clean_line
from agentdash.model.suggestions import did_you_mean, suggest

_MAX_SHOWN_CHARS: Final = 40
"""Of a wrong value, in a message."""
_ORDINARY: Final = {
    types.BoolType: "true or false",
    types.StrType: "a text in quotes",
    types.CustomType: "a path in quotes",
    types.DictType: "a table",
    types.StructType: "a table",
}
"""What a value of each kind is, in the words of TOML."""


class Problem(NamedTuple):
    """One mistake."""

    line: int
    """From 1."""
    column: int
    """From 1."""
    message: str

    def at(self, file: str) -> str:
        """Return the message behind its place: `config.toml:3:9: ...`."""
        return f"{file}:{self.line}:{self.column}: {self.message}"


def find_problems(table: Mapping[str, Any], text: str, options: type[msgspec.Struct]) -> list[Problem]:
    """Return the mistakes of a parsed file, in the order of its lines.

    Args:
        table: the file, parsed.
        text: its text, for the places.
        options: what it may set, and of which type each is.
    """
    return sorted(_of_struct(table, options, (), text))


def place_of(text: str, path: Sequence[str]) -> tuple[int, int]:
    """Return line and column of the value of a key, or of the key where its value is not found."""
    *tables, key = path
    start = _table_start(text, tables)
    for name, begin in ((key, start), (".".join(map(_quoted, path)), 0), (".".join(path), 0)):
        found = re.compile(rf"(?m)^[ \t]*[\"']?{re.escape(name)}[\"']?\s*=\s*").search(text, begin)
        if found is not None:
            return _place(text, found.end())
    inline = re.compile(rf"[{{,\s][\"']?{re.escape(key)}[\"']?\s*=\s*").search(text, start)
    if inline is not None and tables:
        return _place(text, inline.end())
    header = re.compile(rf"(?m)^[ \t]*\[+\s*{re.escape('.'.join(path))}\s*\]").search(text)
    return _place(text, header.start() if header else start)


# ---------------------------------------------------------------- values


def _of_struct(
    table: Mapping[str, Any], struct: type[msgspec.Struct], path: tuple[str, ...], text: str
) -> Iterator[Problem]:
    info = types.type_info(struct)
    fields = {field.name: _plain(field.type) for field in getattr(info, "fields", ())}
    for name, value in table.items():
        here = (*path, name)
        if name not in fields:
            yield _problem(here, f"unknown option{suggest(name, fields)}", text)
        else:
            yield from _of_value(value, fields[name], here, text)


def _of_value(value: Any, kind: types.Type, path: tuple[str, ...], text: str) -> Iterator[Problem]:
    if isinstance(kind, types.StructType) and isinstance(value, Mapping):
        yield from _of_struct(value, kind.cls, path, text)
    elif isinstance(kind, types.DictType) and isinstance(value, Mapping):
        for name, each in value.items():
            yield from _of_value(each, _plain(kind.value_type), (*path, name), text)
    elif isinstance(kind, types.VarTupleType) and isinstance(value, list):
        element = _plain(kind.item_type)
        wrong = [each for each in value if not _is_valid(each, element)]
        for each in wrong:
            yield _problem(path, _unexpected(each, element), text)
    elif not _is_valid(value, kind):
        yield _problem(path, _unexpected(value, kind), text)


def _unexpected(value: Any, kind: types.Type) -> str:
    shown = clean_line(msgspec.json.encode(value, enc_hook=str).decode(), _MAX_SHOWN_CHARS)
    choices = _choices(kind)
    if isinstance(value, str) and (meant := did_you_mean(value, choices)):
        return f"{shown} is none of {', '.join(choices)}{meant}"
    if isinstance(value, str) and isinstance(kind, types.CustomType) and (problem := _home_problem(value)):
        return problem
    return f"expected {_expected(kind)}, got {shown}"


def _expected(kind: types.Type) -> str:
    if choices := _choices(kind):
        return f"one of {', '.join(choices)}"
    if isinstance(kind, types.IntType | types.FloatType):
        number = "a whole number" if isinstance(kind, types.IntType) else "a number"
        low, above, high = kind.ge, kind.gt, kind.le
        bounds = [f"at least {low:g}"] if low is not None else []
        bounds += [f"more than {above:g}"] if above is not None else []
        bounds += [f"at most {high:,.0f}"] if high is not None else []
        return number + (f" of {' and '.join(bounds)}" if bounds else "")
    if isinstance(kind, types.VarTupleType):
        return f"a list, each {_expected(_plain(kind.item_type))}"
    return _ORDINARY[type(kind)]


def _choices(kind: types.Type) -> list[str]:
    if isinstance(kind, types.EnumType):
        return [str(member.value) for member in kind.cls]
    return [str(value) for value in kind.values] if isinstance(kind, types.LiteralType) else []


def _is_valid(value: Any, kind: types.Type) -> bool:
    if choices := _choices(kind):
        return value in choices
    match kind:
        case types.BoolType():
            return isinstance(value, bool)
        case types.IntType():
            return isinstance(value, int) and not isinstance(value, bool) and _is_in_range(value, kind)
        case types.FloatType():
            return (
                isinstance(value, int | float) and not isinstance(value, bool) and _is_in_range(value, kind)
            )
        case types.StrType():
            return isinstance(value, str)
        case types.CustomType():
            return isinstance(value, str) and _home_problem(value) is None
        case types.VarTupleType():
            return isinstance(value, list)
        case _:
            return isinstance(value, Mapping)


def _is_in_range(value: float, kind: types.IntType | types.FloatType) -> bool:
    return (
        (kind.ge is None or value >= kind.ge)
        and (kind.gt is None or value > kind.gt)
        and (kind.le is None or value <= kind.le)
    )


def _home_problem(path: str) -> str | None:
    """Return what is wrong with the `~` or `~user` of a path, or None."""
    if not os.path.expanduser(path).startswith("~"):  # noqa: PTH111 - it has no error to be caught
        return None
    return f"no home directory {clean_line(path.partition('/')[0])}"


def _plain(kind: types.Type) -> types.Type:
    """Return a type without its metadata, and without None, which a file cannot express."""
    while isinstance(kind, types.Metadata):
        kind = kind.type
    if isinstance(kind, types.UnionType):
        (kind,) = (each for each in kind.types if not isinstance(each, types.NoneType))
        return _plain(kind)
    return kind


# ---------------------------------------------------------------- places


def _problem(path: tuple[str, ...], message: str, text: str) -> Problem:
    line, column = place_of(text, path)
    return Problem(line, column, f"{clean_line('.'.join(path))}: {message}")


def _table_start(text: str, tables: Sequence[str]) -> int:
    """Return the offset behind the header of a table, or 0."""
    if not tables:
        return 0
    for name in (".".join(tables), ".".join(map(_quoted, tables))):
        if found := re.compile(rf"(?m)^[ \t]*\[\s*{re.escape(name)}\s*\]").search(text):
            return found.end()
    found = re.compile(rf"(?m)^[ \t]*{re.escape(tables[0])}\s*[.=]").search(text)
    return found.start() if found else 0


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1
