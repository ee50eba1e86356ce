"""Read the screen and title of a worker CLI by its rules. The rule that matches names a state.

A screen is cut into regions first (`Region`), because the same words mean different things in
different places: an old dialog above the prompt, an answer that quotes one, a log that contains one. Rules
are tried in the order of their priority, and the first match is the reading. A menu of which only one half is
visible gives a partial reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Final, Literal

import msgspec

from agentdash.agents.registry import adapters, tables
from agentdash.model.evidence import EvidenceSource
from agentdash.model.pane import ScreenUsage, columns
from agentdash.model.states import State

# ---------------------------------------------------------------- rules as data
#
# The `[screen]`, `[[rules]]` and `[[views]]` tables of `agents/<cli>.toml`, compiled. A rule names the state
# that a screen means; a view names something that hides the program's prompt (a pager, a picker), during
# which the state is unknown.

Region = Literal["title", "top", "tail", "menu", "footer", "turn"]
"""The part of a screen that a rule is matched with. `title`: the pane's title. `top`: the first lines.
`tail`: the last non-empty lines. `footer`: below the input box. `turn`: above it, from the user's last
message on. `menu`: the block at the bottom of a screen without an input box: dialogs replace it. `footer` and
`turn` match nothing without an input box, `menu` with one."""

_CURSORS: Final[Mapping[str, tuple[bool | None, ...]]] = {
    "hidden": (False,),
    "not-hidden": (True, None),
    "not-visible": (False, None),
}
"""Whether the cursor may be visible, by what a rule requires; None: it is not known."""
Cursor = Literal["hidden", "not-hidden", "not-visible"]

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


# ---------------------------------------------------------------- a reading

_MAX_LINES: Final = 200
"""Of a screen, from the bottom: more than a terminal shows."""
_MAX_LINE_CHARS: Final = 400
"""Of a line: bounds the time that patterns take."""
_MAX_BOX_LINES: Final = 25
"""How far above the last line the input box may end: popups of commands and files open below it."""
_TOP_LINES: Final = 3
_TAIL_LINES: Final = 25
_MENU_LINES: Final = 80
"""Sizes of the regions of rules without `lines`."""
_MAX_QUOTE_CHARS: Final = 240
"""Of the matched text."""
_DECORATION: Final = re.compile("[\u2500-\u259f\u2800-\u28ff⬝]+|■(?=[■⬝])|(?<=[■⬝])■")
"""The characters of boxes, rules, logos, spinners and bars: no words, and changing ten times a second."""


class ScreenReading(msgspec.Struct, frozen=True):
    """The result of reading a screen."""

    state: str | None
    """The name of a `State`; None where no rule decides."""
    rule: str | None
    """The id of the rule or view that matched, `codex.approval-command`."""
    text: str
    """The matched text; for half a menu, which half is visible."""
    object: str = ""
    """What the prompt quotes, by the rule's `show`: the command, the file; of work, the command that runs."""
    frozen: bool = False
    """A view hides the prompt: the reading before this one still holds."""
    partial: bool = False
    """Half of a menu is not visible."""
    source: EvidenceSource = EvidenceSource.SCREEN
    """Where the words stand: `screen` or `title`."""
    usage: ScreenUsage | None = None
    """What it states of model, context and cost; None: the line that does is out of sight."""
    front: str = ""
    """The name of the thread in front, of which it is the reading, where the title states that."""


NO_READING: Final = ScreenReading(None, None, "")


def read_screen(
    agent: str,
    screen: Sequence[str],
    *,
    title: str = "",
    cursor_visible: bool | None = None,
    width: int = 0,
    height: int = 0,
) -> ScreenReading:
    """Read a screen by the rules of an agent; an unknown agent has none.

    Args:
        agent: `codex`, `claude` ...: the name of the rules file.
        screen: the visible lines, top to bottom, without escapes.
        title: the pane's title, empty where it is unknown.
        cursor_visible: whether the cursor is shown; None where that is unknown.
        width: columns of the pane, to which lines are cut; 0 where they are unknown.
        height: rows of the pane, to which the screen is cut, from the bottom; 0 where they are unknown.
    """
    known = rules_of(agent)
    if known is None:
        return NO_READING
    front = _front(known.layout, title)
    parts = columns(tuple(screen)) if known.layout.front is not None else (screen,)
    if len(parts) > 1:  # of one without focus nothing is certain: its dialog may not be drawn (Codex 0.171)
        shown = [part for part in parts if front and _has_name(part, front)]
        screen, title, front = (shown[0], title, front) if len(shown) == 1 else (parts[0], "", "")
    page = _Page(screen, title, known.layout, width, height)
    reading = _read(page, known, cursor_visible)
    return msgspec.structs.replace(reading, usage=page.usage, front=front)


def _front(layout: Layout, title: str) -> str:
    """Return the name of the thread in front, with `...` where the title cuts it; empty if it has none."""
    found = layout.front.search(title.strip()) if layout.front is not None else None
    return found[1] if found else ""


def _has_name(part: Sequence[str], name: str) -> bool:
    """Return whether a column shows a name, which may be wrapped."""
    return "".join(name.removesuffix("...").split()) in "".join("".join(part).split())


def _read(page: _Page, known: AgentRules, cursor_visible: bool | None) -> ScreenReading:
    """Return the reading of the first rule that matches."""
    half: ScreenReading | None = None
    for rule in known.rules:
        if not _preconditions_hold(rule, page, cursor_visible) or (reading := _match(rule, page)) is None:
            continue
        if reading.partial:
            half = half or reading
        elif half and not rule.question and not reading.frozen:
            return msgspec.structs.replace(reading, partial=True)
        else:
            return reading
    return half or NO_READING


def versions_tested(agent: str, rule: str | None) -> tuple[str, ...]:
    """Return the versions on real screens of which a rule was tried; without a rule, those of the agent."""
    known = rules_of(agent)
    if known is None:
        return ()
    return next((each.tested or () for each in known.rules if each.id == rule), known.tested)


class _Page:
    """One screen, cut into the regions that rules match."""

    def __init__(
        self, screen: Sequence[str], title: str, layout: Layout, width: int = 0, height: int = 0
    ) -> None:
        lines = [
            line[: min(width, _MAX_LINE_CHARS) or _MAX_LINE_CHARS].rstrip() for line in screen[-_MAX_LINES:]
        ]
        while lines and not lines[-1]:
            lines.pop()
        self.lines = lines[-height:] if height > 0 else lines
        self.title = title.strip()
        self._layout = layout
        self._texts: dict[tuple[Region, int], str | None] = {}

    @cached_property
    def box(self) -> tuple[int, int] | None:
        """The first line of the input box, and the index after its last; only a footer may be below it."""
        bare = self._layout.bare
        return self._find_box(self._layout) or (self._find_box(bare) if bare else None)

    def _find_box(self, layout: Layout) -> tuple[int, int] | None:
        lines = self.lines
        end = len(lines)
        if layout.under is not None:
            end = self._find_above(layout.under, end) + 1
        first = self._find_above(layout.prompt, end - (layout.under is not None), layout.under)
        if first < 0:
            return None
        last = end if layout.under is not None else first + 1
        while first and layout.prompt.search(lines[first - 1]):
            first -= 1
        over = lines[first - 1] if first else ""
        is_footer = all(layout.footer.search(line) for line in lines[last:] if line)
        if not layout.over.search(over) or not is_footer:
            return None
        has_border = bool(layout.over.pattern) and bool(over) and not _without_decoration(over)
        return first - has_border, last

    def _find_above(self, pattern: re.Pattern[str], end: int, stop: re.Pattern[str] | None = None) -> int:
        """Return the nearest matching line above `end`, within the height of a box; -1 where there is none,
        or a line that matches `stop` comes first."""
        for i in range(end - 1, max(-1, end - 1 - _MAX_BOX_LINES), -1):
            if pattern.search(self.lines[i]):
                return i
            if stop is not None and stop.search(self.lines[i]):
                return -1
        return -1

    @property
    def prompt(self) -> Sequence[str]:
        """The lines of the input box; none where there is no box."""
        return self.lines[slice(*self.box)] if self.box else ()

    @property
    def usage(self) -> ScreenUsage | None:
        """What the box and the lines below it state of model, context and cost; None without a box."""
        if self.box is None or not self._layout.usage:
            return None
        return read_usage("\n".join(self.lines[self.box[0] :]), self._layout.usage)

    @cached_property
    def _turn(self) -> Sequence[str]:
        """The lines above the input box, from the user's last message on, without sidebar and scroll bar."""
        if self.box is None:
            return ()
        top, bottom = self.box
        start = next((i for i in range(top - 1, -1, -1) if self._layout.echo.search(self.lines[i])), 0)
        bar = self._layout.scrollbar
        edge = len(self.lines[bottom - 1]) if self._layout.clip else _MAX_LINE_CHARS
        return [bar.sub("", line[:edge].rstrip()).rstrip() for line in self.lines[start:top]]

    @cached_property
    def _block(self) -> Sequence[str]:
        """The block at the bottom, below the last line that is not part of a menu."""
        search = self._layout.menu.search
        return self.lines[next((i for i in range(len(self.lines), 0, -1) if search(self.lines[i - 1])), 0) :]

    def text(self, region: Region, lines: int = 0) -> str | None:
        """Return a region's lines, joined; None where this screen has no such region."""
        key = (region, lines)
        if key not in self._texts:
            found = self._region(region, lines)
            self._texts[key] = None if found is None else "\n".join(found)
        return self._texts[key]

    def _region(self, region: Region, lines: int) -> Sequence[str] | None:
        match region:
            case "title":
                return (self.title,)
            case "top":
                return self.lines[: lines or _TOP_LINES]
            case "tail":
                return _last_lines(self.lines, lines or _TAIL_LINES)
            case "menu":
                return None if self.box else _last_lines(self._block, lines or _MENU_LINES)
            case "footer":
                return _last_lines(self.lines[self.box[1] :], lines) if self.box else None
            case "turn":
                return _last_lines(self._turn, lines) if self.box else None


def _last_lines(lines: Sequence[str], count: int) -> Sequence[str]:
    """Return the last `count` non-empty lines and the empty ones between them; 0: all."""
    if not count:
        return lines
    for i in range(len(lines) - 1, -1, -1):
        count -= bool(lines[i])
        if not count:
            return lines[i:]
    return lines


def _preconditions_hold(rule: ScreenRule, page: _Page, cursor_visible: bool | None) -> bool:
    """Return whether prompt, title and cursor are as a rule requires."""
    return (
        rule.prompt in (None, page.box is not None)
        and (rule.title is None or rule.title.search(page.title) is not None)
        and (rule.cursor is None or cursor_visible in _CURSORS[rule.cursor])
    )


def _match(rule: ScreenRule, page: _Page) -> ScreenReading | None:
    """Return the reading by a rule, or None if the screen is not as it says."""
    text = page.text(rule.region, rule.lines)
    if text is None or not all(word in text for word in rule.words) or _first(rule.none, text):
        return None
    if rule.question:
        return _menu(rule, page, text)
    conditions = (*((pattern,) for pattern in rule.all), *((rule.any,) if rule.any else ()))
    matches = [_first(patterns, text) for patterns in conditions]
    return None if None in matches else _reading(rule, page, matches[0] if matches else None)


def _menu(rule: ScreenRule, page: _Page, text: str) -> ScreenReading | None:
    """Match a question and the options below it; the screen may have had no room for both."""
    mark, *others = (pattern.search(text) for pattern in rule.options)
    question = _first(rule.question, text)
    options = mark if all(others) else None
    if question and options and question.start() < options.start():
        return _reading(rule, page, question)
    if options and not question:
        which, found = "options without the question", options
    elif question and not mark and not any(others):
        which, found = "question without the options", question
    else:
        return None
    text = f"{which}: {_without_decoration(_whole_lines(found))}"
    return ScreenReading(None, rule.id, text, partial=True)


def _first(patterns: Iterable[_Pattern], text: str) -> re.Match[str] | None:
    """Return the match of the first pattern that has one."""
    return next((match for pattern in patterns if (match := pattern.search(text))), None)


def _reading(rule: ScreenRule, page: _Page, match: re.Match[str] | None) -> ScreenReading:
    """Return the reading of a rule that holds, by what it has matched."""
    shown = _shown(rule, page, match)
    quoted = _without_decoration(_whole_lines(match)) if match else ""
    text = " · ".join(part for part in (quoted, "" if rule.show_in else shown) if part)[:_MAX_QUOTE_CHARS]
    return ScreenReading(
        state=rule.state,
        rule=rule.id,
        text=text or _without_decoration("\n".join(page.prompt)),
        object=shown,
        frozen=rule.state is None,
        source=EvidenceSource.TITLE if rule.region == "title" else EvidenceSource.SCREEN,
    )


def _shown(rule: ScreenRule, page: _Page, match: re.Match[str] | None) -> str:
    """Return what a rule's `show` finds: first where the rule has matched, or last in its `show_in`."""
    if rule.show is None or (match is None and rule.show_in is None):
        return ""
    text = match.string if match and rule.show_in is None else page.text(rule.show_in or rule.region) or ""
    found = list(rule.show.finditer(text))
    return _without_decoration(found[-1 if rule.show_in else 0][1] or "") if found else ""


def _whole_lines(match: re.Match[str]) -> str:
    """Return the whole lines that a match touches."""
    text = match.string
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", max(match.end() - 1, match.start()))
    return text[start : end if end >= 0 else len(text)]


def _without_decoration(text: str) -> str:
    """Return a text on one line, without decoration."""
    return " ".join(_DECORATION.sub(" ", text).split())[:_MAX_QUOTE_CHARS]


# ------------------------------------------------------------
# What a screen states of model, context and cost


_UNITS: Final[Mapping[str, int]] = {"k": 1_000, "m": 1_000_000}
_NUMBER: Final = re.compile(r"(\d[\d,]*(?:\.\d*)?|\.\d+)([kKmM]?)", re.ASCII)
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
    match = _NUMBER.fullmatch(text)
    return float(match[1].replace(",", "")) * _UNITS.get(match[2].lower(), 1) if match else None
