"""What the rules of a worker CLI make of its screen and title. A rule that matches names a state; nothing more is decided here.

A screen is cut into regions first (`rules.Region`), because the same words mean different things at different places: an old dialog above
the prompt, an answer that quotes one, a log that holds one. Rules are tried in the order of their priority, and the first that matches
gives the reading. Of a menu of which only one half is in sight, the reading says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import msgspec

from agentdash.agents.screen_rules import Layout, Region, ScreenRule, ScreenRules, package_rules
from agentdash.model.evidence import EvidenceSource

_LINES: Final = 200
"""Lines of a screen that are looked at, from the bottom."""
_WIDTH: Final = 400
"""Characters of a line that are looked at."""
_BOX: Final = 25
"""How far above the last line the input box may end: popups of commands and files open below it."""
_TOP: Final = 3
_TAIL: Final = 25
_MENU: Final = 80
"""Lines of these regions, where a rule does not say how many."""
_QUOTE: Final = 240
"""Characters of the text that is quoted."""
_DRAWN: Final = re.compile("[\u2500-\u259f\u2800-\u28ff⬝]+|■(?=[■⬝])|(?<=[■⬝])■")
"""What boxes, rules, logos, spinners and bars are drawn with: no words, and other ones ten times a second."""


class ScreenReading(msgspec.Struct, frozen=True):
    """What a screen was read as."""

    state: str | None
    """A state's name; None where no rule decides."""
    rule: str | None
    """The id of the rule or view that matched, `codex.approval-command`."""
    text: str
    """The words that matched; of half a menu, which half is in sight."""
    frozen: bool = False
    """A view hides the prompt: what was known before still holds."""
    partial: bool = False
    """Half of a menu is out of sight."""
    source: EvidenceSource = EvidenceSource.SCREEN
    """Where the words stand: `screen` or `title`."""


NOTHING: Final = ScreenReading(None, None, "")


def read_screen(
    agent: str,
    screen: Sequence[str],
    *,
    title: str = "",
    cursor_visible: bool | None = None,
    width: int = 0,
    height: int = 0,
    rules: ScreenRules | None = None,
) -> ScreenReading:
    """Read a screen by the rules of an agent. Never raises; an unknown agent has no rules.

    Args:
        agent: `codex`, `claude` ...: the name of the rules file.
        screen: the visible lines, top to bottom, without escapes.
        title: the pane's title, empty where it is not known.
        cursor_visible: whether the cursor is shown; None where that is not known.
        width: columns of the pane, to which lines are cut; 0 where they are not known.
        height: rows of the pane, to which the screen is cut, from the bottom; 0 where they are not known.
        rules: other rules than those of the package.
    """
    known = (package_rules() if rules is None else rules).get(agent)
    if known is None:
        return NOTHING
    page = Page(screen, title, known.layout, width, height)
    half: ScreenReading | None = None
    for rule in known.rules:
        if not _admits(rule, page, cursor_visible):
            continue
        reading = _menu(rule, page) if rule.question else _match(rule, page)
        if reading is None:
            continue
        if reading.partial:
            half = half or reading
        elif half and not rule.question and not reading.frozen:
            return msgspec.structs.replace(reading, partial=True)
        else:
            return reading
    return half or NOTHING


def versions_tested(agent: str, rule: str | None, rules: ScreenRules | None = None) -> tuple[str, ...]:
    """The versions on whose real screens a rule was tried; without a rule, those of the agent."""
    known = (package_rules() if rules is None else rules).get(agent)
    if known is None:
        return ()
    return next((r.tested for r in known.rules if r.id == rule), known.tested)


class Page:
    """One screen, cut into the regions that rules look at."""

    def __init__(
        self, screen: Sequence[str], title: str, layout: Layout, width: int = 0, height: int = 0
    ) -> None:
        lines = [line[: min(width, _WIDTH) or _WIDTH].rstrip() for line in screen[-_LINES:]]
        while lines and not lines[-1]:
            lines.pop()
        self.lines = lines[-height:] if height > 0 else lines
        self.title = title.strip()
        self._layout = layout
        self._texts: dict[tuple[Region, int], str | None] = {}

    @cached_property
    def box(self) -> tuple[int, int] | None:
        """Where the program's input box begins and ends (index after its last line): it has nothing but a footer below it."""
        layout, lines = self._layout, self.lines
        end = len(lines)
        if layout.under is not None:
            end = self._up(layout.under, end) + 1
        first = self._up(layout.prompt, end - (layout.under is not None), layout.under)
        if first < 0:
            return None
        last = end if layout.under is not None else first + 1
        while first and layout.prompt.search(lines[first - 1]):
            first -= 1
        over = lines[first - 1] if first else ""
        if not layout.over.search(over) or not all(
            layout.footer.search(line) for line in lines[last:] if line
        ):
            return None
        return first - (bool(layout.over.pattern) and bool(over) and not _clean(over)), last

    def _up(self, wanted: re.Pattern[str], end: int, stop: re.Pattern[str] | None = None) -> int:
        """The nearest line above `end` that is wanted, no further than a box is tall; -1 where there is none, or `stop` comes first."""
        for i in range(end - 1, max(-1, end - 1 - _BOX), -1):
            if wanted.search(self.lines[i]):
                return i
            if stop is not None and stop.search(self.lines[i]):
                return -1
        return -1

    @property
    def prompt(self) -> Sequence[str]:
        """The lines of the input box; none where there is no box."""
        return self.lines[slice(*self.box)] if self.box else ()

    @cached_property
    def _turn(self) -> Sequence[str]:
        """What stands above the input box, from the user's last message on, without a sidebar and a scroll bar."""
        if self.box is None:
            return ()
        top, bottom = self.box
        start = next((i for i in range(top - 1, -1, -1) if self._layout.echo.search(self.lines[i])), 0)
        edge = len(self.lines[bottom - 1]) if self._layout.clip else _WIDTH
        return [
            self._layout.scrollbar.sub("", line[:edge].rstrip()).rstrip() for line in self.lines[start:top]
        ]

    @cached_property
    def _block(self) -> Sequence[str]:
        """The block at the bottom, below the last line that is no part of it."""
        search = self._layout.menu.search
        return self.lines[next((i for i in range(len(self.lines), 0, -1) if search(self.lines[i - 1])), 0) :]

    def text(self, region: Region, lines: int = 0) -> str | None:
        """A region's lines, joined; None where this screen has no such region."""
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
                return self.lines[: lines or _TOP]
            case "tail":
                return _last(self.lines, lines or _TAIL)
            case "menu":
                return None if self.box else _last(self._block, lines or _MENU)
            case "footer":
                return _last(self.lines[self.box[1] :], lines) if self.box else None
            case "turn":
                return _last(self._turn, lines) if self.box else None


def _last(lines: Sequence[str], count: int) -> Sequence[str]:
    """The last so many non-empty lines, and what is between them; 0: all."""
    if not count:
        return lines
    for i in range(len(lines) - 1, -1, -1):
        count -= bool(lines[i])
        if not count:
            return lines[i:]
    return lines


def _admits(rule: ScreenRule, page: Page, cursor_visible: bool | None) -> bool:
    """What a rule asks besides its region."""
    if rule.prompt is not None and rule.prompt is (page.box is None):
        return False
    if rule.title is not None and not rule.title.search(page.title):
        return False
    match rule.cursor:
        case "hidden":
            return cursor_visible is False
        case "not-hidden":
            return cursor_visible is not False
        case "not-visible":
            return cursor_visible is not True
        case None:
            return True


def _searched(rule: ScreenRule, page: Page) -> str | None:
    """The text that a rule looks into; None where there is none, or where the rule is out of the question."""
    text = page.text(rule.region, rule.lines)
    if (
        text is None
        or any(word not in text for word in rule.words)
        or any(pattern.search(text) for pattern in rule.none)
    ):
        return None
    return text


def _match(rule: ScreenRule, page: Page) -> ScreenReading | None:
    if (text := _searched(rule, page)) is None:
        return None
    found: list[re.Match[str]] = []
    for alternatives in (*((pattern,) for pattern in rule.all), *((rule.any,) if rule.any else ())):
        match = next((match for pattern in alternatives if (match := pattern.search(text))), None)
        if match is None:
            return None
        found.append(match)
    words = _quote(found[0], rule) if found else ""
    return ScreenReading(
        state=rule.state,
        rule=rule.id,
        text=words or _clean("\n".join(page.prompt)),
        frozen=rule.state is None,
        source=EvidenceSource.TITLE if rule.region == "title" else EvidenceSource.SCREEN,
    )


def _menu(rule: ScreenRule, page: Page) -> ScreenReading | None:
    """A menu has a question and options below it; the program may have had no room for both."""
    if (text := _searched(rule, page)) is None:
        return None
    first = rule.options[0].search(text)
    question = next((match for pattern in rule.question if (match := pattern.search(text))), None)
    if first is None and question is None:
        return None
    others = [bool(pattern.search(text)) for pattern in rule.options[1:]]
    mark = first if all(others) else None
    if question and mark and question.start() < mark.start():
        return ScreenReading(rule.state, rule.id, _quote(question, rule), frozen=rule.state is None)
    if mark and not question:
        return ScreenReading(
            None, rule.id, f"options without the question: {_clean(_lines_of(mark))}", partial=True
        )
    if question and first is None and not any(others):
        return ScreenReading(
            None, rule.id, f"question without the options: {_clean(_lines_of(question))}", partial=True
        )
    return None


def _lines_of(match: re.Match[str]) -> str:
    """The lines that a match touches, whole."""
    text = match.string
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", max(match.end() - 1, match.start()))
    return text[start : end if end >= 0 else len(text)]


def _quote(match: re.Match[str], rule: ScreenRule) -> str:
    more = rule.show.search(match.string) if rule.show else None
    parts = (_clean(_lines_of(match)), _clean(more.group(1) or "") if more else "")
    return " · ".join(part for part in parts if part)[:_QUOTE]


def _clean(text: str) -> str:
    """On one line, without what is only drawn."""
    return " ".join(_DRAWN.sub(" ", text).split())[:_QUOTE]
