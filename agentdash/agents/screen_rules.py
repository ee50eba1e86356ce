"""Screen rules as data: the `[screen]`, `[[rules]]` and `[[views]]` tables of `agents/<cli>.toml`, compiled.

A rule names the state that a screen means; a view names something that hides the program's prompt (a pager, a
picker), during which the state is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, Literal

import msgspec

from agentdash.agents.registry import adapters, tables
from agentdash.model.pane import ScreenUsage
from agentdash.model.states import State

Region = Literal["title", "top", "tail", "menu", "footer", "turn"]
"""The part of a screen that a rule is matched with. `title`: the pane's title. `top`: the first lines.
`tail`: the last non-empty lines. `footer`: below the input box. `turn`: above it, from the user's last
message on. `menu`: the block at the bottom of a screen without an input box: dialogs replace it. `footer` and
`turn` match nothing without an input box, `menu` with one."""

Cursor = Literal["hidden", "not-hidden", "not-visible"]
"""The required cursor. Where it is unknown, only the two negations hold."""

_Pattern = re.Pattern[str]
_SHARED: Final = "any"
_SINGLE_SPACE: Final = re.compile(r"(?<=\w) (?=\w)")
_WRAPPED_SPACE: Final = r"[\\s│┃]+"
"""The pattern for a single space between two words: narrow panes wrap their lines, within frames too."""


def _compile(pattern: str) -> _Pattern:
    return re.compile(_SINGLE_SPACE.sub(_WRAPPED_SPACE, pattern), re.MULTILINE)


def _decoded(_kind: type, value: object) -> _Pattern:
    return _compile(str(value))


_NEVER: Final = re.compile(r"(?!)")
"""A pattern that matches nothing."""


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The layout of a program's screen: the patterns by which it is cut into regions."""

    prompt: _Pattern = _NEVER
    """The first line of the input box."""
    over: _Pattern = _compile("")
    """The line above the box."""
    under: _Pattern | None = None
    """The line that closes the box; None where the box is not closed."""
    footer: _Pattern = _compile(r"^  ")
    """Every line below the box. Any other line there means that the box is a quoted one, or an old one."""
    echo: _Pattern = _NEVER
    """The user's message as repeated above the box: the beginning of a turn."""
    menu: _Pattern = _NEVER
    """Lines that are not part of a menu: the block begins below the last of them."""
    scrollbar: _Pattern = _NEVER
    """The scroll bar at the right end of every line above the box."""
    clip: bool = False
    """Whether text to the right of the box belongs to a sidebar."""
    usage: tuple[_Pattern, ...] = ()
    """What the box and the lines below it state of model, context and cost: the groups are fields of
    `ScreenUsage`."""
    front: _Pattern | None = None
    """The title, with the name of the thread in front as its group; None: the screen shows no others."""
    bare: Layout | None = None
    """The layout with another box, where there is none of this one: as drawn without true colour."""


class ScreenRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule or view. Empty and None are no condition; all others must hold."""

    id: str
    """Agent and id: `codex.approval-command`."""
    state: State | None = None
    """None: a view, which freezes the reading before it."""
    priority: int = 80
    """Higher first; of equals, the first in the file. In use: 90 questions and approvals, 80 views, 70
    retries after an error of the provider, 60 work, 50 the end of the last turn, or none yet."""
    region: Region = "menu"
    lines: int = 0
    """Number of non-empty lines at the end of the region (of `top`: at its beginning); 0: the region's
    default."""
    words: tuple[str, ...] = ()
    """Literals that all occur in the region: a cheap test before the patterns."""
    all: tuple[_Pattern, ...] = ()
    any: tuple[_Pattern, ...] = ()
    none: tuple[_Pattern, ...] = ()
    question: tuple[_Pattern, ...] = ()
    """Of a menu: any of these, above the first option. With only one half visible, the reading is partial."""
    options: tuple[_Pattern, ...] = ()
    """Of a menu: all of these, the mark of the selection first."""
    title: _Pattern | None = None
    cursor: Cursor | None = None
    prompt: bool | None = None
    """Whether an input box is required (True) or excluded (False)."""
    show: _Pattern | None = None
    """Further text to quote, such as the command that waits for an approval: the first group."""
    show_in: Region | None = None
    """Where that stands, nearest to its end; None: in the region of the rule, nearest to its beginning."""
    tested: tuple[str, ...] | None = None
    """Versions of the program on real screens of which the rule was tried; empty for rules from what others
    have published. In a file: None for those of the program."""


class AgentRules(msgspec.Struct, frozen=True):
    """The layout and rules of one program's screens."""

    tested: tuple[str, ...]
    layout: Layout
    rules: tuple[ScreenRule, ...]
    """Rules and views, in the order in which they are tried."""


@cache
def rules_of(agent: str) -> AgentRules | None:
    """Return the rules of a worker CLI; None for one that is not known.

    A fork has those of the CLI that it is `like`, below its own. The versions on which they were tested are
    those of the fork.
    """
    if agent not in adapters():
        return None
    screen = dict(tables(agent).get("screen", {}))
    origin = screen.pop("like", None)
    files = [(_SHARED, _SHARED), *([(agent, origin)] if origin else []), (agent, agent)]
    if origin:
        screen = tables(origin)["screen"] | screen
    tested = tuple(screen.pop("tested", ()))
    rules: dict[str, ScreenRule] = {}
    for name, file in files:
        for row in (*tables(file).get("rules", ()), *tables(file).get("views", ())):
            rule = msgspec.convert(row, ScreenRule, dec_hook=_decoded)
            versions = rule.tested
            if versions is None:
                versions = () if file == _SHARED else tested
            rule = msgspec.structs.replace(rule, id=f"{name}.{rule.id}", tested=versions)
            rules[rule.id] = rule
    ordered = sorted(rules.values(), key=lambda rule: -rule.priority)
    return AgentRules(tested, _layout(screen), tuple(ordered))


def _layout(screen: Mapping[str, Any]) -> Layout:
    boxed: dict[str, Any] = {name: value for name, value in screen.items() if name != "bare"}
    if "bare" in screen:
        boxed["bare"] = boxed | {"over": "", "under": None} | screen["bare"]
    return msgspec.convert(boxed, Layout, dec_hook=_decoded)


# ------------------------------------------------------------
# What a screen states of model, context and cost


_UNITS: Final[Mapping[str, int]] = {"k": 1_000, "m": 1_000_000}
_NUMBER: Final = re.compile(r"([\d.,]+)([kKmM]?)\Z")
_MAX_MODEL_CHARS: Final = 80


def read_usage(text: str, patterns: Iterable[_Pattern]) -> ScreenUsage:
    """Return what the text states."""
    found: dict[str, str] = {}
    for pattern in patterns:
        if (match := pattern.search(text)) is not None:
            found |= {name: value for name, value in match.groupdict().items() if value}
    model = found.pop("model", "")[:_MAX_MODEL_CHARS]
    numbers = {name: number for name, value in found.items() if (number := _number(value)) is not None}
    whole = {name: round(numbers[name]) for name in ("context", "window", "total") if name in numbers}
    return ScreenUsage(model=model or None, percent=numbers.get("percent"), cost=numbers.get("cost"), **whole)


def _number(text: str) -> float | None:
    """Return `1.2K`, `1,240`, `195k`, `0.05` as a number; None for anything else."""
    match = _NUMBER.match(text)
    if match is None:
        return None
    try:
        return float(match[1].replace(",", "")) * _UNITS.get(match[2].lower(), 1)
    except ValueError:
        return None
