"""Compare the output of a command with what its script can print under each hypothesis about the flags."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from typing import Final

from agentdash.model.observation import NETWORK_FLAG, SANDBOX_FLAG, UNSET
from agentdash.sandbox.flags import Flags
from agentdash.sandbox.flags.parts import FLAGS, Hole, Other, Parts, Text, TooLongError, arrivals, literal
from agentdash.sandbox.flags.state import ASSUMPTIONS, MAX_STEPS, OTHER, State, UnreadableError, World
from agentdash.sandbox.flags.statements import follow
from agentdash.sandbox.shell import parse

Assumed = tuple[str | None, ...]
"""What a hypothesis says of the flags, in the order of `FLAGS`."""


Ending = tuple[Parts, int | None]
"""What a script can print, and its exit code: 0, or 1 for any failure; None if that is not known."""

_MAX_OUTPUT: Final = 64_000
"""Characters of an output that is read: Codex 0.169 keeps 10,000 tokens of one, others less."""
_CUT: Final = re.compile(r"truncated|omitted|left out", re.IGNORECASE)
_SYNTAX_ERROR: Final = re.compile(
    r"^\S{0,200}(?:sh|eval)\b.{0,300}: (?:[Ss]yntax|parse) error\b", re.MULTILINE
)
"""How shells report that they cannot parse a script: the grammar took it for another one."""
_COLORS: Final = re.compile(r"\x1b\[[0-9;]*[mK]")
_STOPPED: Final = 124
"""Exit codes from here on are those of a script that was stopped, or of one whose last command is missing."""
_DIALECTS: Final = {"bash": "bash", "zsh": "zsh", "dash": "dash"}
_NAMED: Final = {name: re.compile(rf"\b{name}\b(.*)") for name in FLAGS}
_MAX_QUOTE: Final = 200


@lru_cache(64)
def read(script: str, output: str, *, shell: str, exit_code: int | None) -> Flags:
    """Return what an output shows of the flags; see `read_flags`. Agents repeat the commands that show
    them."""
    text = _readable(output, exit_code)
    if text is None or (endings := _endings(script, _DIALECTS.get(shell, ""))) is None:
        return Flags()
    consistent = _consistent(endings, text, exit_code)
    values = {name: _agreed({each[n] for each in consistent}) for n, name in enumerate(FLAGS)}
    shown = {name: value for name, value in values.items() if value is not None}
    quotes = [_quote(name, value, endings, text) for name, value in shown.items()]
    return Flags(values[NETWORK_FLAG], values[SANDBOX_FLAG], "; ".join(dict.fromkeys(quotes)))


def consistent_hypotheses(
    script: str, output: str, *, shell: str = "", exit_code: int | None = None
) -> list[Assumed]:
    """Return the hypotheses under which a script can have this output; none if it is not read."""
    text = _readable(output, exit_code)
    endings = _endings(script, _DIALECTS.get(shell, ""))
    return [] if text is None or endings is None else _consistent(endings, text, exit_code)


def _readable(output: str, exit_code: int | None) -> str | None:
    """Return an output without its colours; None if it is not whole, or not that of the script as parsed."""
    if exit_code is not None and not 0 <= exit_code < _STOPPED:
        return None
    text = _COLORS.sub("", output.replace("\r\n", "\n"))
    if len(text) > _MAX_OUTPUT or "\x1b" in text or _CUT.search(text):
        return None
    return None if " error" in text and _SYNTAX_ERROR.search(text) else text


@lru_cache(256)
def _endings(script: str, dialect: str) -> dict[Assumed, tuple[Ending, ...]] | None:
    """Return how a script can end under each hypothesis; None if it is not followed."""
    if (tree := parse(script)) is None:
        return None
    found: dict[Assumed, tuple[Ending, ...]] = {}
    # by the numbers of the flags that the script asked for, and by what was assumed of these
    followed: dict[tuple[int, ...], dict[Assumed, tuple[Ending, ...]]] = {}
    steps = iter(range(MAX_STEPS))
    for assumed in product(*ASSUMPTIONS.values()):
        endings = None
        for asked, known in followed.items():
            endings = endings or known.get(tuple(map(assumed.__getitem__, asked)))
        if endings is None:
            world = World(dict(zip(FLAGS, assumed, strict=True)), steps)
            try:
                outcomes = follow(tree, State(world, dialect=dialect, source=script))
            except (UnreadableError, RecursionError):
                return None
            endings = tuple([(each, o.status) for o in outcomes for each in arrivals(o.printed)])
            asked = tuple([number for number, name in enumerate(FLAGS) if name in world.asked])
            followed.setdefault(asked, {})[tuple(map(assumed.__getitem__, asked))] = endings
        found[assumed] = endings
    return found


def _consistent(
    endings: dict[Assumed, tuple[Ending, ...]], text: str, exit_code: int | None
) -> list[Assumed]:
    """Return the hypotheses under which an output is possible."""
    different = set(endings.values())
    texts = [Text(text)] if text.endswith("\n") else [Text(text), Text(text + "\n")]
    try:
        possible = {each for each in different if _is_possible(each, texts, exit_code)}
    except TooLongError:
        return []
    return [assumed for assumed, each in endings.items() if each in possible]


def _is_possible(endings: tuple[Ending, ...], texts: list[Text], exit_code: int | None) -> bool:
    for printed, status in endings:
        if exit_code is not None and status is not None and (exit_code == 0) != (status == 0):
            continue
        if (whole := literal(printed)) is not None:
            if any(text.text == whole for text in texts):
                return True
            continue
        is_late = Hole.QUIET in printed or Hole.ANY in printed  # their errors may arrive late
        if any(text.matches((*printed, Hole.QUIET) if is_late else printed) for text in texts):
            return True
    return False


def _agreed(assumed: set[str | None]) -> str | None:
    """Return what all consistent hypotheses say of a flag; an empty one counts as unset."""
    if assumed and assumed <= {None, ""}:
        return UNSET if None in assumed else None
    value = assumed.pop() if len(assumed) == 1 else None
    return None if value == OTHER else value


# ---------------------------------------------------------------- quotes


def _quote(name: str, value: str, endings: dict[Assumed, tuple[Ending, ...]], text: str) -> str:
    """Return the line of the output that shows a flag."""
    lines = text.split("\n")
    named = (line for line in lines if (match := _NAMED[name].search(line)) and value in match[1])
    found = "" if value == UNSET else next(named, "")
    for label in [] if found else _labels(name, endings):
        shown = (line for line in lines if line.startswith(label))
        found = found or next((line for line in shown if value == UNSET or value in line[len(label) :]), "")
    missing = f"{name} is not in what it printed" if value == UNSET else value
    return found.strip()[:_MAX_QUOTE] or missing


def _labels(name: str, endings: dict[Assumed, tuple[Ending, ...]]) -> list[str]:
    """Return the texts that stand before a flag's value on its line, longest first."""
    other = next(assumed for assumed in endings if assumed[FLAGS.index(name)] == OTHER)
    labels: set[str] = set()
    for printed, _ in endings[other]:
        before = ""
        for part in printed:
            if isinstance(part, Other) and part.name == name:
                labels.add(before)
            before = (before + part).rpartition("\n")[2] if isinstance(part, str) else ""
    return sorted((label for label in labels if label.strip()), key=lambda label: (-len(label), label))
