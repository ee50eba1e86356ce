"""Sum up denials by day, version or directory: where sandboxes cost most."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from agentdash.model.denials import split_directories, with_directories


class DeniedCalls(NamedTuple):
    """Denied calls of a thread that belong to one day, version or directory."""

    name: str
    """The day, version or directory."""
    thread: str
    calls: int
    is_open: bool
    """Whether no success came after."""


class DenialSum(NamedTuple):
    """The denials of one day, version or directory."""

    name: str
    calls: int
    threads: int
    """Threads with denials."""
    open: int
    """Threads that did not get past one."""


def sum_denials(denied: Iterable[DeniedCalls]) -> list[DenialSum]:
    """Return the sums by name, those with most calls first."""
    found: dict[str, list[DeniedCalls]] = {}
    for each in denied:
        found.setdefault(each.name, []).append(each)
    sums = [
        DenialSum(
            name=name,
            calls=sum(each.calls for each in group),
            threads=len({each.thread for each in group}),
            open=len({each.thread for each in group if each.is_open}),
        )
        for name, group in found.items()
    ]
    return sorted(sums, key=lambda each: (-each.calls, -each.open, each.name))


# ------------------------------------------------------------
# Join the remedies of many denials into one set: settings that differ in their entries are one block


_JOINED_LISTS: Final = frozenset(("writable_roots",))
_JOINED_TABLES: Final = frozenset(("filesystem", "domains"))
"""Tables whose entries each open one path, or one host."""
_ADDS: Final = "add the path to"
"""Where the present entries are not known, the place states that (`remedies`)."""
_IF_IT_EXISTS: Final = ", if that directory exists"
_Tables = dict[tuple[str, ...], dict[str, Any]]
"""The entries of tables by their path."""


class Denied(Protocol):
    """A denial with what would have avoided it."""

    @property
    def target(self) -> str | None:
        """What was denied."""

    @property
    def count(self) -> int:
        """In how many calls."""

    @property
    def remedy(self) -> str | None:
        """Lines of a configuration file, or words, or None if nothing narrow enough is known."""

    @property
    def remedy_where(self) -> str | None:
        """The file and the place in it for the lines."""


class CommonRemedy(NamedTuple):
    """A remedy, and what it would have let through."""

    remedy: str
    where: str | None
    targets: list[str | None]
    """The targets that it opens."""
    calls: int
    """Denied calls that it would have avoided."""


def common_remedies(denials: Iterable[Denied]) -> list[CommonRemedy]:
    """Return the remedies that would have avoided the denials, each once; joined where they can be."""
    found: dict[object, list[Denied]] = {}
    for denial in denials:
        if denial.remedy is not None:
            found.setdefault(_cause(denial), []).append(denial)
    reports = [_join(group) for group in found.values()]
    return sorted(reports, key=lambda report: "writable_roots" not in report.remedy)


def _cause(denial: Denied) -> object:
    """Return what the remedies have in common that can be joined: their file, and what is set in it."""
    tables = _tables(denial.remedy or "")
    if not tables:
        return denial.remedy  # words
    file = (denial.remedy_where or "").partition(", ")[0]
    return file, tuple((path, *_set_alone(path, entries)) for path, entries in tables.items())


def _set_alone(path: tuple[str, ...], entries: dict[str, Any]) -> Iterator[str]:
    """Yield the entries of a table that are the same in all remedies of one cause."""
    if path and path[-1] in _JOINED_TABLES:
        return
    for key, value in entries.items():
        yield key if key in _JOINED_LISTS else f"{key} = {_value(value)}"


def _join(denials: list[Denied]) -> CommonRemedy:
    texts = list(dict.fromkeys(denial.remedy or "" for denial in denials))
    places = [split_directories(denial.remedy_where) for denial in denials if denial.remedy_where]
    directories = list(dict.fromkeys(name for _, names in places for name in names))
    where = _where([place for place, _ in places])
    return CommonRemedy(
        remedy=texts[0] if len(texts) == 1 else _text(_merged(map(_tables, texts))),
        where=with_directories(where, directories) if where else None,
        targets=list(dict.fromkeys(denial.target for denial in denials)),
        calls=sum(denial.count for denial in denials),
    )


def _where(places: list[str]) -> str | None:
    """Return the place for all: entries are added where any of them has to be, and without a condition that
    does not hold for all."""
    places.sort(key=lambda place: (_ADDS not in place, _IF_IT_EXISTS in place))
    place = next(iter(places), None)
    all_assumed = all(_IF_IT_EXISTS in each for each in places)
    return place if place is None or all_assumed else place.replace(_IF_IT_EXISTS, "")


def _tables(text: str) -> _Tables:
    """Return the tables of a configuration, the outer ones first; of other texts, none."""
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
    return dict(_walk((), settings))


def _walk(path: tuple[str, ...], table: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    entries = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if entries:
        yield path, entries
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _walk((*path, key), value)


def _merged(many: Iterable[_Tables]) -> _Tables:
    merged: _Tables = {}
    for tables in many:
        for path, entries in tables.items():
            known = merged.setdefault(path, {})
            for key, value in entries.items():
                before = known.get(key)
                is_list = isinstance(before, list) and isinstance(value, list)
                known[key] = list(dict.fromkeys((*before, *value))) if is_list else value  # type: ignore[misc]
    return merged


def _text(tables: _Tables) -> str:
    """Return tables as TOML."""
    return "\n\n".join(
        "\n".join((*_header(path), *(f"{_key(key)} = {_value(value)}" for key, value in entries.items())))
        for path, entries in tables.items()
    )


def _header(path: tuple[str, ...]) -> list[str]:
    return [f"[{'.'.join(map(_key, path))}]"] if path else []


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else _value(name)


def _value(value: Any) -> str:
    """Return a string, a boolean or a list of strings as TOML, which writes these as JSON does."""
    return json.dumps(value, ensure_ascii=False)
