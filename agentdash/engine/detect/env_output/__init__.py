"""What the output of a command proves about the sandbox flags in its environment.

`read_flags` runs the script, without running it, once for each hypothesis about the two flags, and keeps the hypotheses under which it could have
printed what it printed. A flag is read where all of those agree on it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dumps import FLAG_STEM, NETWORK_FLAG, SANDBOX_FLAG
from agentdash.engine.detect.env_output.interpreter import Interpreter
from agentdash.engine.detect.env_output.patterns import Choice, Parts, Text, joined
from agentdash.engine.detect.env_output.streams import (
    STDERR,
    STDOUT,
    Fork,
    Outcome,
    all_parts,
    parts_of,
    variants,
)
from agentdash.engine.detect.env_output.world import (
    FLAG_VALUES,
    FLAGS,
    Assumption,
    Given,
    State,
    Unreadable,
    World,
)
from agentdash.engine.detect.shell import parse

UNSET: Final = "unset"


class Flags(msgspec.Struct, frozen=True):
    """The two flags as printed: a value, `unset`, or None where the command did not show it; `quote` is the text that does."""

    network: str | None = None
    sandbox: str | None = None
    quote: str = ""

    def __bool__(self) -> bool:
        return self.network is not None or self.sandbox is not None


class _Possible(msgspec.Struct, frozen=True):
    """What a script can print in one world, and its exit codes there: None is any."""

    world: World
    endings: tuple[tuple[Parts, int | None], ...]


_RELEVANT: Final = re.compile(r"CODEX_SANDBOX|env|ENV|\bset\b|export|declare|typeset|compgen")
"""Without one of these a script prints no environment."""
_MAX_OUTPUT: Final = 200_000
"""Characters of an output that are looked at; the rest is as if it had been cut off."""
_TRUNCATION: Final = re.compile(
    r"^.*(?:tokens? truncated|chars? truncated|characters? (?:left out|truncated)|lines? (?:truncated|omitted)"
    r"|output truncated|truncated output|\[\.\.\. omitted).*$",
    re.MULTILINE | re.IGNORECASE,
)
_CONTROL: Final = re.compile(r"\x1b\[[0-9;]*[mK]")
_STOPPED: Final = 124
"""Exit codes from here on (time-out, 126 and 127 apart: signals) are those of a script that did not run to its end."""
_ENDED: Final = (126, 127)


def read_flags(script: str, output: str, *, exit_code: int | None = None, truncated: bool = False) -> Flags:
    """Read the sandbox flags of a command's environment from what it printed.

    Args:
        script: the shell script as the model gave it, with its newlines.
        output: what it printed, both streams, without header lines of Codex.
        exit_code: its exit code; None where it is not known. A command that still runs has a truncated output.
        truncated: the output is not whole. Texts of Codex and others that mark a cut are recognized besides.
    """
    if not _RELEVANT.search(script):
        return Flags()
    text = _text(output, exit_code, truncated=truncated)
    if text is None or (possible := _possible(script)) is None:
        return Flags()
    worlds = [p.world for p in possible if _is_consistent(p, text, exit_code)]
    network = _agreed([world.network for world in worlds])
    sandbox = _agreed([world.sandbox for world in worlds])
    quotes = [
        _quote(name, value, possible, worlds, output)
        for name, value in ((NETWORK_FLAG, network), (SANDBOX_FLAG, sandbox))
        if value is not None
    ]
    return Flags(network, sandbox, "; ".join(dict.fromkeys(quotes)))


def _text(output: str, exit_code: int | None, *, truncated: bool) -> Text | None:
    """Return the output as it is matched; None where it is cut at a place that is not known."""
    text = _CONTROL.sub("", output.replace("\r\n", "\n"))
    cut = _TRUNCATION.search(text)
    if cut is not None:
        return Text(text[: cut.start()], is_prefix=True)
    if truncated:
        return None
    if len(text) > _MAX_OUTPUT:
        return Text(text[:_MAX_OUTPUT], is_prefix=True)
    stopped = exit_code is not None and (exit_code < 0 or exit_code >= _STOPPED) and exit_code not in _ENDED
    return Text(text, is_prefix=stopped)


@lru_cache(256)
def _possible(script: str) -> tuple[_Possible, ...] | None:
    """Return what a script can print in each world; None where it cannot be read."""
    if (tree := parse(script)) is None:
        return None
    assumptions = [(Given.UNSET, Given.EMPTY, Given.OTHER, *FLAG_VALUES[name]) for name in FLAGS]
    found: list[_Possible] = []
    for network, sandbox in product(*assumptions):
        world = World(network, sandbox)
        state = State(started=tuple((name, world.value(name)) for name in FLAGS))
        try:
            outcomes = Interpreter().script(tree, state)
        except (Unreadable, RecursionError):
            return None
        endings = [ending for outcome in outcomes for ending in _endings(outcome)]
        found.append(_Possible(world, tuple(dict.fromkeys(endings))))
    return tuple(found)


def _endings(outcome: Outcome) -> list[tuple[Parts, int | None]]:
    """Return what is in the output: both streams as they were written, or standard error behind standard output.

    Codex reads the streams from two pipes, so their order is not kept always.
    """
    found = [all_parts(outcome.stream)]
    for stream in variants(outcome.stream) or [outcome.stream]:
        printed, errors = parts_of(stream, STDOUT), parts_of(stream, STDERR)
        if printed and errors:
            found.append(joined((*printed, *errors)))
    return [(parts, outcome.status) for parts in dict.fromkeys(found)]


def _is_consistent(possible: _Possible, text: Text, exit_code: int | None) -> bool:
    for parts, status in possible.endings:
        if not text.is_prefix and None not in (exit_code, status) and exit_code != status:
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


def _agreed(assumed: list[Assumption]) -> str | None:
    """Return what all consistent worlds agree on."""
    if not assumed:
        return None
    found = set(assumed)
    if found <= {Given.UNSET, Given.EMPTY}:
        return UNSET if Given.UNSET in found else None
    return found.pop() if len(found) == 1 and isinstance(assumed[0], str) else None  # type: ignore[return-value]


def _quote(name: str, value: str, possible: tuple[_Possible, ...], worlds: list[World], output: str) -> str:
    """Return the line of the output that shows a flag."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if value != UNSET and (named := next((x for x in lines if re.search(rf"{name}\b", x)), None)):
        return named
    for label in _labels(name, possible, worlds):
        found = next(
            (x for x in lines if x.startswith(label) and (value == UNSET or value in x[len(label) :])), None
        )
        if found:
            return found
    return f"{name} is not in what it printed" if value == UNSET else value


def _labels(name: str, possible: tuple[_Possible, ...], worlds: list[World]) -> list[str]:
    """Return the texts that stand before a flag's value on its line."""
    return []


_ = (FLAG_STEM, Choice, Fork)
