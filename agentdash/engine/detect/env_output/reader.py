"""Compare the output of a command with what its script can print under each hypothesis about the flags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.colors import COLORS, without_colors
from agentdash.engine.detect.env_output.dumps import FLAGS
from agentdash.engine.detect.env_output.flags import Flags
from agentdash.engine.detect.env_output.interpreter import Interpreter
from agentdash.engine.detect.env_output.launchers import SHELLS
from agentdash.engine.detect.env_output.matching import Text
from agentdash.engine.detect.env_output.patterns import ANY, Choice, Hole, Kind, Parts, joined
from agentdash.engine.detect.env_output.streams import (
    FAILED,
    STDERR,
    STDOUT,
    Outcome,
    parts_of,
    variants,
)
from agentdash.engine.detect.env_output.world import (
    FLAG_VALUES,
    Assumption,
    Given,
    State,
    UnreadableError,
    World,
)
from agentdash.engine.detect.env_output.zsh import ZSH_ONLY, as_bash
from agentdash.model.observation import UNSET
from agentdash.model.sandbox_flags import NETWORK_FLAG, SANDBOX_FLAG
from agentdash.sandbox.shell import Assignment, ProcessSubstitution, Redirect, parse


class _Possible(msgspec.Struct, frozen=True):
    """What a script can print in one world, and its exit codes there: None is any."""

    world: World
    endings: tuple[tuple[Parts, int | None], ...]


_MAX_OUTPUT: Final = 64_000
"""Characters of an output that are looked at; the rest is as if it had been cut off. Codex 0.169 keeps 10,000
tokens of an output, others less."""
_TRUNCATION: Final = re.compile(
    r"^.*(?:tokens? truncated|chars? truncated|characters? (?:left out|truncated)"
    r"|lines? (?:truncated|omitted)|output truncated|truncated output|\[\.\.\. omitted).*$",
    re.MULTILINE | re.IGNORECASE,
)
_TRUNCATION_WORDS: Final = ("truncated", "left out", "omitted")
"""One of them is in every text that `_TRUNCATION` matches: looking for them is ten times as fast."""
_SYNTAX_ERROR: Final = re.compile(r"^\S*(?:sh|eval)\b.*: (?:[Ss]yntax|parse) error\b", re.MULTILINE)
"""How shells report a script, or a part of it, that they cannot parse."""
_STOPPED: Final = 124
"""Exit codes from here on, but for `_ENDED`, are those of a script that was stopped (time-out, signals)."""
_ENDED: Final = (126, 127)


@lru_cache(64)
def read(
    script: str, output: str, *, shell: str, exit_code: int | None, truncated: bool, quoted: bool
) -> Flags:
    """Return what an output shows of the flags; see `read_flags`. Agents repeat the commands that show
    them."""
    text = _text(output, exit_code, truncated=truncated)
    if text is None or (possible := _possible(script, shell, _missing(text))) is None:
        return Flags()
    worlds = _consistent(possible, text, exit_code)
    values = {name: _agreed([world.assumption(name) for world in worlds]) for name in FLAGS}
    shown = {name: value for name, value in values.items() if value is not None} if quoted else {}
    quotes = [_quote(name, value, possible, text) for name, value in shown.items()]
    return Flags(
        network=values[NETWORK_FLAG], sandbox=values[SANDBOX_FLAG], quote="; ".join(dict.fromkeys(quotes))
    )


def consistent_worlds(
    script: str, output: str, *, shell: str = "", exit_code: int | None = None
) -> list[World] | None:
    """Return the worlds in which a script can have this output; None where one of them cannot be read."""
    text = _text(output, exit_code, truncated=False)
    if text is None or (possible := _possible(script, shell, _missing(text))) is None:
        return None
    return _consistent(possible, text, exit_code)


def _text(output: str, exit_code: int | None, *, truncated: bool) -> Text | None:
    """Return the output as it is matched; None where it is cut at a place that is not known."""
    text = COLORS.sub("", output.replace("\r\n", "\n"))
    if " error" in text and _SYNTAX_ERROR.search(text):
        return None  # the grammar took the script for another one than the shell did
    if (cut := _truncation(text)) is not None:
        return Text(text[: cut.start()], is_prefix=True)
    if truncated:
        return None
    if len(text) > _MAX_OUTPUT:
        return Text(text[:_MAX_OUTPUT], is_prefix=True)
    stopped = exit_code is not None and (exit_code < 0 or exit_code >= _STOPPED) and exit_code not in _ENDED
    return Text(text, is_prefix=stopped)


def _truncation(text: str) -> re.Match[str] | None:
    """Return the first line that marks a cut."""
    lower = text.lower()
    return _TRUNCATION.search(text) if any(word in lower for word in _TRUNCATION_WORDS) else None


_DIALECTS: Final = ("bash", "zsh", "dash")
"""Shells that users have; Codex starts the user's own."""
_SENSITIVE: Final = re.compile(
    r"\$\{\w+\[|\$\{[!+(]|\$\+|\b(?:declare|typeset|mapfile|readarray|compgen|local|print)\b|\[\[|=\("
    r"|\bread\b"
    r"|\$\([^\n]*\$\?|\bprintf -v\b|\bfor \w+ (?:in \$|\()|\bIFS=|\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}"
)
"""What shells differ in: a script with it is followed in each of them."""

_NOT_FOUND: Final = re.compile(
    r"^\S*(?:sh|environment): (?:line \d+: |\d+: )?(?P<name>[\w./+-]+): (?:command )?"
    r"(?:not found|No such file or directory)$"
    r"|^zsh:(?:\d+: )?(?:command not found|no such file or directory): (?P<of_zsh>[\w./+-]+)$",
    re.MULTILINE,
)
"""How shells report a command that is not there."""


def _missing(text: Text) -> frozenset[str]:
    """Return the commands that are not there, by an output."""
    return frozenset(match["name"] or match["of_zsh"] for match in _NOT_FOUND.finditer(text.text))


@lru_cache(256)
def _possible(script: str, shell: str, missing: frozenset[str]) -> tuple[_Possible, ...] | None:
    """Return what a script can print in each world; None where it cannot be read."""
    missing = frozenset(name for name in missing if name in script)
    if (known := SHELLS.get(shell, "")) or not _SENSITIVE.search(script):
        return _in_dialect(script, known, missing)
    found = [_in_dialect(script, dialect, missing) for dialect in _DIALECTS]
    if any(each is None for each in found):
        return None
    return tuple(
        _Possible(same[0].world, tuple(dict.fromkeys(ending for each in same for ending in each.endings)))
        for same in zip(*(each for each in found if each is not None), strict=True)
    )


def _in_dialect(script: str, dialect: str, missing: frozenset[str]) -> tuple[_Possible, ...] | None:
    """Return what a script can print in each world, run by one shell; None where it cannot be read."""
    is_of_zsh = ZSH_ONLY.search(script) is not None
    if is_of_zsh and dialect != "zsh":
        return _unread_by_others()
    if (tree := parse(as_bash(script) if is_of_zsh else script, in_part=True)) is None:
        return None
    if dialect == "dash" and _has_more_syntax(tree):
        return _unread_by_others()
    found: list[_Possible] = []
    for world in _worlds():
        started = tuple((name, world.value(name)) for name in FLAGS)
        state = State(
            started=started, dialect=dialect, is_rewritten=is_of_zsh, source=script, missing=missing
        )
        try:
            outcomes = Interpreter().whole(tree, state)
        except (UnreadableError, RecursionError):
            return None
        endings = [ending for outcome in outcomes for ending in _endings(outcome)]
        found.append(_Possible(world, tuple(dict.fromkeys(endings))))
    return tuple(found)


def _has_more_syntax(node: object) -> bool:
    """Return whether a script holds what dash cannot parse: `<(…)`, `<<<`, arrays."""
    match node:
        case ProcessSubstitution() | Redirect(operator="<<<") | Assignment(elements=tuple()):
            return True
        case tuple():
            return any(_has_more_syntax(each) for each in node)
        case msgspec.Struct():
            return any(_has_more_syntax(getattr(node, name)) for name in node.__struct_fields__)
        case _:
            return False


def _worlds() -> Iterator[World]:
    assumptions: list[tuple[Assumption, ...]] = [
        (Given.UNSET, Given.EMPTY, Given.OTHER, *FLAG_VALUES[name]) for name in FLAGS
    ]
    for network, sandbox in product(*assumptions):
        yield World(network, sandbox)


def _unread_by_others() -> tuple[_Possible, ...]:
    """Return what shells write where a script uses what zsh alone has: anything with an error in it."""
    failed: Parts = (
        ANY,
        Choice((("ad substitution",), ("yntax error",), ("bad option",), ("edirection",))),
        ANY,
    )
    return tuple(_Possible(world, ((failed, None),)) for world in _worlds())


def _endings(outcome: Outcome) -> list[tuple[Parts, int | None]]:
    """Return what the output can hold: both streams as they were written, or standard error last.

    Codex reads the streams from two pipes, so their order is not kept always.
    """
    found = [parts_of(outcome.stream)]
    for stream in variants(outcome.stream) or [outcome.stream]:
        printed, errors = parts_of(stream, STDOUT), parts_of(stream, STDERR)
        if printed and errors:
            found.append(joined((*printed, *errors)))
    return [(without_colors(parts), outcome.status) for parts in dict.fromkeys(found)]


def _consistent(possible: tuple[_Possible, ...], text: Text, exit_code: int | None) -> list[World]:
    return [p.world for p in possible if _is_consistent(p, text, exit_code)]


def _is_consistent(possible: _Possible, text: Text, exit_code: int | None) -> bool:
    for parts, status in possible.endings:
        if not text.is_prefix and not _can_be(exit_code, status):
            continue
        if text.matches(parts):
            return True
        if (
            not text.is_prefix
            and not text.text.endswith("\n")
            and Text(text.text + "\n", is_prefix=False).matches(parts)
        ):
            return True
    return False


def _can_be(exit_code: int | None, status: int | None) -> bool:
    """Return whether a script that ended with an exit code can have ended with a status."""
    if exit_code is None or status is None:
        return True
    return exit_code != 0 if status == FAILED else exit_code == status


def _agreed(assumed: list[Assumption]) -> str | None:
    """Return what all consistent worlds agree on."""
    if not assumed:
        return None
    found = set(assumed)
    if found <= {Given.UNSET, Given.EMPTY}:
        return UNSET if Given.UNSET in found else None
    return found.pop() if len(found) == 1 and isinstance(assumed[0], str) else None  # type: ignore[return-value]


# ---------------------------------------------------------------- quotes

_MAX_TRIED_CHARACTERS: Final = 600
"""Characters of an output up to which the line that shows a flag is searched for by changing it."""
_MAX_TRIED_ENDINGS: Final = 64
"""Endings of a script, over all worlds, up to which it is compared with changed outputs."""
_MAX_TRIALS: Final = 16
"""Changed outputs that are compared with the script, for one flag."""
_MAX_QUOTE_CHARACTERS: Final = 200
_PLACES: Final = re.compile(r"<[^<>]*>|\([^()]*\)|[\w/.-]+|(?<=[=:\[\s'\"])(?=\W|$)|^$")
"""Where on a line a value can stand that is not there."""


def _quote(name: str, value: str, possible: tuple[_Possible, ...], text: Text) -> str:
    """Return the line of the output that shows a flag."""
    lines = text.text.split("\n")
    found = _labelled(name, value, possible, lines) or _telling(name, value, possible, text)
    missing = f"{name} is not in what it printed" if value == UNSET else value
    return found.strip()[:_MAX_QUOTE_CHARACTERS] or missing


def _labelled(name: str, value: str, possible: tuple[_Possible, ...], lines: list[str]) -> str:
    """Return the line with a flag's name and value, or with what the script prints before its value."""
    named = re.compile(rf"\b{name}\b.*{re.escape(value)}")
    if value != UNSET and (found := next((line for line in lines if named.search(line)), None)):
        return found
    for label in _labels(name, possible):
        for line in lines:
            if line.startswith(label) and (value == UNSET or value in line[len(label) :]):
                return line
    return ""


def _labels(name: str, possible: tuple[_Possible, ...]) -> list[str]:
    """Return the texts that stand before a flag's value on its line, longest first."""
    labels: set[str] = set()
    for world in possible:
        if world.world.assumption(name) is Given.OTHER:
            for parts, _ in world.endings:
                _collect_labels(parts, name, "", labels)
            break
    return sorted((label for label in labels if label.strip()), key=lambda label: (-len(label), label))


def _collect_labels(parts: Parts, name: str, before: str, labels: set[str]) -> str:
    """Add the labels in a sequence; return the text of the last line that is known."""
    for part in parts:
        match part:
            case str():
                before = (before + part).rpartition("\n")[2]
            case Hole(kind=Kind.OTHER, key=key) if key == name:
                labels.add(before)
            case Choice(options=options):
                ends = {_collect_labels(option, name, before, labels) for option in options}
                before = ends.pop() if len(ends) == 1 else ""
            case _:
                before = ""
    return before


def _telling(name: str, value: str, possible: tuple[_Possible, ...], text: Text) -> str:
    """Return the line of a short output that, changed, would show another value."""
    if len(text.text) > _MAX_TRIED_CHARACTERS or sum(len(p.endings) for p in possible) > _MAX_TRIED_ENDINGS:
        return ""
    lines = text.text.split("\n")
    trials = [(n, changed) for n, line in enumerate(lines) for changed in _changed(line, name, value)]
    for number, changed in trials[:_MAX_TRIALS]:
        other = "\n".join((*lines[:number], changed, *lines[number + 1 :]))
        worlds = _consistent(possible, Text(other, is_prefix=text.is_prefix), None)
        after = [world.assumption(name) for world in worlds]
        if after and not _shows(after, value):
            return lines[number]
    return ""


def _changed(line: str, name: str, value: str) -> Iterator[str]:
    """Yield a line with another value in each place where this one can stand."""
    if value == UNSET:
        for place in _PLACES.finditer(line[:_MAX_QUOTE_CHARACTERS]):
            yield line[: place.start()] + FLAG_VALUES[name][0] + line[place.end() :]
    else:
        for place in re.finditer(re.escape(value), line):
            yield line[: place.start()] + "other" + line[place.end() :]


def _shows(assumed: list[Assumption], value: str) -> bool:
    """Return whether one of some assumptions is a flag's value."""
    return bool({Given.UNSET, Given.EMPTY} & set(assumed)) if value == UNSET else value in assumed
