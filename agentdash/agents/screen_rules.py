"""Screen rules as data: the `[screen]`, `[[rules]]` and `[[views]]` tables of `agents/<cli>.toml`, read, checked and compiled.

A rule names the state that a screen means; a view names something that hides the program's prompt (a pager, a picker), while which nothing
new can be known. What agentdash ships is overridden and extended by the user's own `agents/<cli>.toml`, table by table: a rule of the same
id replaces ours, a new one is added. Whatever is wrong with a file is said in one line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

import msgspec

from agentdash.agents.registry import adapters, shared_rules_text
from agentdash.model.states import State

Region = Literal["title", "top", "tail", "menu", "footer", "turn"]
"""Where a rule looks. `title`: the pane's title. `top`: the first lines. `tail`: the last lines that are not empty. `footer`: what stands
below the input box. `turn`: what stands above it, from the user's last message on. `menu`: the block at the bottom where no input box is:
dialogs replace it. The last three do not exist, and so match nothing, where the input box is missing, or there."""

Cursor = Literal["hidden", "not-hidden", "not-visible"]
"""What is asked of the cursor. Where it is not known, only the two negations hold."""

TABLES: Final = frozenset(("identify", "screen", "rules", "views", "state"))
"""The tables that such a file may have."""

_ANY: Final = "any"
_NOTHING: Final = r"(?!)"
_BETWEEN_WORDS: Final = re.compile(r"(?<=\w) (?=\w)")
_GAP: Final = r"[\\s│┃]+"
"""What a single space between two words of a pattern stands for: narrow panes wrap their lines, within frames too."""
_NAMES: Final = {"state": tuple(State), "region": get_args(Region), "cursor": get_args(Cursor)}
_T = TypeVar("_T")


class RulesProblem(Exception):  # noqa: N818 - a user's file has a problem, agentdash has no error
    """A rules file cannot be used: one line that names the file, the line where it is known, the rule, and what is wrong."""


class _ScreenTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tested: tuple[str, ...] = ()
    prompt: str = _NOTHING
    over: str = ""
    under: str = ""
    footer: str = r"^  "
    echo: str = _NOTHING
    menu: str = _NOTHING
    scrollbar: str = _NOTHING
    clip: bool = False


class _ViewTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    priority: int = 80
    region: Region = "menu"
    lines: int = 0
    words: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    question: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    title: str | None = None
    cursor: Cursor | None = None
    prompt: bool | None = None
    show: str | None = None
    tested: tuple[str, ...] | None = None


class _RuleTable(_ViewTable, frozen=True, forbid_unknown_fields=True):
    state: State | None = None


class Layout(msgspec.Struct, frozen=True):
    """How a program's screen is built: what is needed to cut it into regions."""

    prompt: re.Pattern[str]
    """The first line of the input box."""
    over: re.Pattern[str]
    """The line above the box."""
    under: re.Pattern[str] | None
    """The line that closes the box; None where the box is not closed."""
    footer: re.Pattern[str]
    """Every line below the box. A line that is none of these means that the box is not the program's own, or not there any more."""
    echo: re.Pattern[str]
    """The user's message, repeated above: where a turn begins."""
    menu: re.Pattern[str]
    """Lines that are no part of a menu: the block begins below the last of them."""
    scrollbar: re.Pattern[str]
    """What is drawn at the right of every line above the box and does not belong to the text."""
    clip: bool
    """What stands to the right of the box belongs to a sidebar."""


class ScreenRule(msgspec.Struct, frozen=True):
    """One rule or view, compiled. What is empty or None asks for nothing; everything else must hold."""

    id: str
    """With the agent's name: `codex.approval-command`."""
    state: str | None
    """A state's name; None: a view, which freezes what was known before."""
    priority: int
    """Higher first; of equals, the one that stands first in the file. Bands in use: 90 asks, 80 views, 70 trouble with the provider while
    it tries again, 60 works, 50 how its last turn ended, or that there was none."""
    region: Region
    lines: int
    """Only the last so many non-empty lines of the region (of `top`: the first); 0: the region's own measure."""
    words: tuple[str, ...]
    """Literals that all stand in the region."""
    all: tuple[re.Pattern[str], ...]
    any: tuple[re.Pattern[str], ...]
    none: tuple[re.Pattern[str], ...]
    question: tuple[re.Pattern[str], ...]
    """Of a menu: any of these, above the first option. Menus have two halves, and one may be out of sight: that is told."""
    options: tuple[re.Pattern[str], ...]
    """Of a menu: all of these, the selection's mark first."""
    title: re.Pattern[str] | None
    cursor: Cursor | None
    prompt: bool | None
    """Whether the input box must be there, or must not."""
    show: re.Pattern[str] | None
    """Further words to quote, such as the command that waits for an approval: the first group."""
    tested: tuple[str, ...]
    """Versions of the program on whose real screens the rule was tried; empty for rules that rest on what others have published."""


class AgentRules(msgspec.Struct, frozen=True):
    """All that is known about the screens of one program."""

    agent: str
    tested: tuple[str, ...]
    layout: Layout
    rules: tuple[ScreenRule, ...]
    """Rules and views, in the order in which they are tried."""


ScreenRules = Mapping[str, AgentRules]


@cache
def package_rules() -> ScreenRules:
    """The rules that ship with agentdash, by agent."""
    return load_rules()


def load_rules(user_dir: Path | None = None) -> dict[str, AgentRules]:
    """The rules of the package, and over them those of a folder of the user's (`<cli>.toml` each); a folder that is missing is empty.

    A file `any.toml` of the user's holds for every agent, as the package's own `views.toml` does.

    Raises:
        RulesProblem: a file cannot be read, is not TOML, or holds something that is no rule.
    """
    sources = {_ANY: [_Source(_ANY, "any.toml", shared_rules_text())]}
    sources |= {name: [_Source(name, f"{name}.toml", cli.toml_text)] for name, cli in adapters().items()}
    for path in sorted(user_dir.glob("*.toml")) if user_dir else ():
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RulesProblem(f"{path}: cannot be read: {error}") from error
        sources.setdefault(path.stem, []).append(_Source(path.stem, str(path), text, strict=True))
    shared = sources.pop(_ANY)
    return {agent: _agent(agent, [*shared, *own]) for agent, own in sources.items()}


class _Source:
    """One file: its tables, and the means to say where in it something stands."""

    def __init__(self, agent: str, name: str, text: str, *, strict: bool = False) -> None:
        self.agent, self.name, self._text = agent, name, text
        try:
            self.tables: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise RulesProblem(f"{name}: not TOML: {error}") from error
        if strict and (unknown := sorted(self.tables.keys() - TABLES)):
            raise RulesProblem(
                f"{name}: [{unknown[0]}] is no table of a rules file (there are: {', '.join(sorted(TABLES))})"
            )

    def rows(self, name: str) -> list[dict[str, Any]]:
        rows = self.tables.get(name, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise RulesProblem(f"{self.name}: {name} must be written [[{name}]]")
        return rows

    def where(self, rule: str) -> str:
        """`codex.toml:12: rule "approval"`, or without the line where the id is not found as it would be written."""
        found = re.search(rf"(?m)^\s*id\s*=\s*[\"']{re.escape(rule)}[\"']", self._text)
        line = f":{self._text.count(chr(10), 0, found.end()) + 1}" if found else ""
        return f'{self.name}{line}: rule "{rule}"'


def _agent(agent: str, sources: list[_Source]) -> AgentRules:
    table: dict[str, Any] = {}
    rules: dict[str, ScreenRule] = {}
    for source in sources:
        where = f"{source.name}: [screen]"
        table |= _convert(source.tables.get("screen", {}), dict[str, Any], where)
        screen = _convert(table, _ScreenTable, where)
        layout = _layout(screen, where)
        here = [
            _rule(source, screen, n, row, view=kind == "views")
            for kind in ("rules", "views")
            for n, row in enumerate(source.rows(kind), 1)
        ]
        rules |= {rule.id: rule for rule in here}
        if twice := next((rule.id for rule in here if rules[rule.id] is not rule), None):
            raise RulesProblem(f"{source.where(twice.partition('.')[2])}: is there twice")
    return AgentRules(agent, screen.tested, layout, tuple(sorted(rules.values(), key=lambda r: -r.priority)))


def _layout(screen: _ScreenTable, where: str) -> Layout:
    return Layout(
        prompt=_compile(screen.prompt, f"{where}: prompt"),
        over=_compile(screen.over, f"{where}: over"),
        under=_compile(screen.under, f"{where}: under") if screen.under else None,
        footer=_compile(screen.footer, f"{where}: footer"),
        echo=_compile(screen.echo, f"{where}: echo"),
        menu=_compile(screen.menu, f"{where}: menu"),
        scrollbar=_compile(screen.scrollbar, f"{where}: scrollbar"),
        clip=screen.clip,
    )


def _rule(
    source: _Source, screen: _ScreenTable, number: int, row: dict[str, Any], *, view: bool
) -> ScreenRule:
    name = row.get("id", f"number {number}")
    where = source.where(name if isinstance(name, str) else f"number {number}")
    table = _convert(row, _ViewTable if view else _RuleTable, where)
    state = str(table.state) if isinstance(table, _RuleTable) and table.state else None
    if not view and state is None:
        raise RulesProblem(
            f"{where}: a rule needs a state (what only hides the prompt belongs into [[views]])"
        )
    if bool(table.question) is not bool(table.options):
        raise RulesProblem(f"{where}: question and options are the two halves of a menu: one needs the other")
    if not (table.words or table.all or table.any or table.options) and (
        table.region == "title" or table.prompt is None
    ):
        raise RulesProblem(f"{where}: would match any screen")

    def patterns(key: str, given: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
        return tuple(_compile(pattern, f"{where}: {key}") for pattern in given)

    def pattern(key: str, given: str | None) -> re.Pattern[str] | None:
        return None if given is None else _compile(given, f"{where}: {key}")

    show = pattern("show", table.show)
    if show is not None and not show.groups:
        raise RulesProblem(f"{where}: show quotes its first group, and has none")
    return ScreenRule(
        id=f"{source.agent}.{table.id}",
        state=state,
        priority=table.priority,
        region=table.region,
        lines=table.lines,
        words=table.words,
        all=patterns("all", table.all),
        any=patterns("any", table.any),
        none=patterns("none", table.none),
        question=patterns("question", table.question),
        options=patterns("options", table.options),
        title=pattern("title", table.title),
        cursor=table.cursor,
        prompt=table.prompt,
        show=show,
        tested=screen.tested if table.tested is None else table.tested,
    )


def _convert(raw: Any, to: type[_T], where: str) -> _T:
    try:
        return msgspec.convert(raw, to)
    except msgspec.ValidationError as error:
        known = next(
            (
                f" (there are: {', '.join(names)})"
                for key, names in _NAMES.items()
                if f"$.{key}`" in str(error)
            ),
            "",
        )
        raise RulesProblem(f"{where}: {error}{known}") from error


def _compile(pattern: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(_BETWEEN_WORDS.sub(_GAP, pattern), re.MULTILINE)
    except re.error as error:
        raise RulesProblem(f"{where}: bad regex {pattern!r}: {error}") from error
