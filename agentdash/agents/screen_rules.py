"""Screen rules as data: the `[screen]`, `[[rules]]` and `[[views]]` tables of `agents/<cli>.toml`, read,
checked and compiled.

A rule names the state that a screen means; a view names something that hides the program's prompt (a pager, a
picker), during which the state is unknown. The user's own `agents/<cli>.toml` overrides and extends those of
the package.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

import msgspec

from agentdash.agents.registry import adapters, shared_rules_text
from agentdash.agents.user_patterns import Pattern, UserPattern
from agentdash.files import read_text
from agentdash.model.pane import ScreenUsage
from agentdash.model.states import State

Region = Literal["title", "top", "tail", "menu", "footer", "turn"]
"""The part of a screen that a rule is matched with. `title`: the pane's title. `top`: the first lines.
`tail`: the last non-empty lines. `footer`: below the input box. `turn`: above it, from the user's last
message on. `menu`: the block at the bottom of a screen without an input box: dialogs replace it. `footer` and
`turn` match nothing without an input box, `menu` with one."""

Cursor = Literal["hidden", "not-hidden", "not-visible"]
"""The required cursor. Where it is unknown, only the two negations hold."""

TABLES: Final = frozenset(("known", "identify", "screen", "rules", "views", "state"))
"""The valid tables of such a file."""

_SHARED: Final = "any"
_NEVER: Final = r"(?!)"
"""A pattern that matches nothing."""
_SINGLE_SPACE: Final = re.compile(r"(?<=\w) (?=\w)")
_WRAPPED_SPACE: Final = r"[\\s│┃]+"
"""The pattern for a single space between two words: narrow panes wrap their lines, within frames too."""
_CHOICES: Final = {"state": tuple(State), "region": get_args(Region), "cursor": get_args(Cursor)}
_T = TypeVar("_T")


class RulesProblem(Exception):  # noqa: N818 - a problem of the user's file, not an error of agentdash
    """A rules file is invalid; the message is one line with the file, the line if known, the rule and the
    error."""


class _BareTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    over: str = ""
    under: str = ""


class _ScreenTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    like: str = ""
    tested: tuple[str, ...] = ()
    prompt: str = _NEVER
    over: str = ""
    under: str = ""
    footer: str = r"^  "
    echo: str = _NEVER
    menu: str = _NEVER
    scrollbar: str = _NEVER
    clip: bool = False
    usage: tuple[str, ...] = ()
    front: str = ""
    bare: _BareTable | None = None


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
    show_in: Region | None = None
    tested: tuple[str, ...] | None = None


class _RuleTable(_ViewTable, frozen=True, forbid_unknown_fields=True):
    state: State | None = None


class Layout(msgspec.Struct, frozen=True):
    """The layout of a program's screen: the patterns by which it is cut into regions."""

    prompt: Pattern
    """The first line of the input box."""
    over: Pattern
    """The line above the box."""
    under: Pattern | None
    """The line that closes the box; None where the box is not closed."""
    footer: Pattern
    """Every line below the box. Any other line there means that the box is a quoted one, or an old one."""
    echo: Pattern
    """The user's message as repeated above the box: the beginning of a turn."""
    menu: Pattern
    """Lines that are not part of a menu: the block begins below the last of them."""
    scrollbar: Pattern
    """The scroll bar at the right end of every line above the box."""
    clip: bool
    """Whether text to the right of the box belongs to a sidebar."""
    usage: tuple[Pattern, ...] = ()
    """What the box and the lines below it state of model, context and cost (`screen_usage`)."""
    front: Pattern | None = None
    """The title, with the name of the thread in front as its group; None: the screen shows no others."""
    bare: Layout | None = None
    """The layout with another box, where there is none of this one: as drawn without true colour."""


class ScreenRule(msgspec.Struct, frozen=True):
    """One rule or view, compiled. Empty and None are no condition; all others must hold."""

    id: str
    """Agent and id: `codex.approval-command`."""
    state: str | None
    """The name of a `State`; None: a view, which freezes the reading before it."""
    priority: int
    """Higher first; of equals, the first in the file. In use: 90 questions and approvals, 80 views, 70
    retries after an error of the provider, 60 work, 50 the end of the last turn, or none yet."""
    region: Region
    lines: int
    """Number of non-empty lines at the end of the region (of `top`: at its beginning); 0: the region's
    default."""
    words: tuple[str, ...]
    """Literals that all occur in the region: a cheap test before the patterns."""
    all: tuple[Pattern, ...]
    any: tuple[Pattern, ...]
    none: tuple[Pattern, ...]
    question: tuple[Pattern, ...]
    """Of a menu: any of these, above the first option. With only one half visible, the reading is partial."""
    options: tuple[Pattern, ...]
    """Of a menu: all of these, the mark of the selection first."""
    title: Pattern | None
    cursor: Cursor | None
    prompt: bool | None
    """Whether an input box is required (True) or excluded (False)."""
    show: Pattern | None
    """Further text to quote, such as the command that waits for an approval: the first group."""
    show_in: Region | None
    """Where that stands, nearest to its end; None: in the region of the rule, nearest to its beginning."""
    tested: tuple[str, ...]
    """Versions of the program on real screens of which the rule was tried; empty for rules from what others
    have published."""


class AgentRules(msgspec.Struct, frozen=True):
    """The layout and rules of one program's screens."""

    agent: str
    tested: tuple[str, ...]
    layout: Layout
    rules: tuple[ScreenRule, ...]
    """Rules and views, in the order in which they are tried."""


ScreenRules = Mapping[str, AgentRules]


@cache
def package_rules() -> ScreenRules:
    """Return the rules of the package, by agent."""
    return load_rules()


def load_rules(user_dir: Path | None = None) -> dict[str, AgentRules]:
    """Return the rules of the package, overridden by those of a folder (`<cli>.toml` each); it need not
    exist.

    The rules of a file `any.toml` hold for every agent.

    Raises:
        RulesProblem: a file cannot be read, is not TOML, or contains an invalid table.
    """
    sources = {_SHARED: [_RulesFile(_SHARED, "any.toml", shared_rules_text())]}
    sources |= {name: _package_files(name) for name in adapters()}
    for path in _toml_files(user_dir) if user_dir else ():
        try:
            text = read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            raise RulesProblem(f"{path}: cannot be read: {error}") from error
        sources.setdefault(path.stem, []).append(_RulesFile(path.stem, str(path), text, strict=True))
    shared = sources.pop(_SHARED)
    return {agent: _agent_rules(agent, [*shared, *own]) for agent, own in sources.items()}


def _package_files(agent: str) -> list[_RulesFile]:
    """Return the file of a CLI, behind that of the CLI whose fork it is. The versions on which the rules were
    tested are those of the fork."""
    own = _RulesFile(agent, f"{agent}.toml", adapters()[agent].toml_text)
    screen = own.tables.get("screen", {})
    if "like" not in screen:
        return [own]
    origin = _RulesFile(agent, f"{screen['like']}.toml", adapters()[screen["like"]].toml_text)
    origin.tables["screen"] |= {"tested": screen["tested"]}
    return [origin, own]


def _toml_files(folder: Path) -> list[Path]:
    """Return the TOML files of a folder, which need not exist.

    Raises:
        RulesProblem: it cannot be listed.
    """
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RulesProblem(f"{folder}: cannot be read: {error.strerror}") from error


class _RulesFile:
    """One file: its tables, and the location of rules in it for error messages."""

    def __init__(self, agent: str, name: str, text: str, *, strict: bool = False) -> None:
        self.agent, self.name, self._text = agent, name, text
        self.strict = strict
        """Whether it is the user's."""
        try:
            self.tables: dict[str, Any] = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise RulesProblem(f"{name}: not TOML: {error}") from error
        if strict and (unknown := sorted(self.tables.keys() - TABLES)):
            raise RulesProblem(
                f"{name}: invalid table [{unknown[0]}]: choose from {', '.join(sorted(TABLES))}"
            )

    def rows(self, name: str) -> list[dict[str, Any]]:
        rows = self.tables.get(name, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise RulesProblem(f"{self.name}: {name} must be written [[{name}]]")
        return rows

    def where(self, rule: str) -> str:
        """Return `codex.toml:12: rule "approval"`; without the line where the id is written in another
        way."""
        found = re.search(rf"(?m)^\s*id\s*=\s*[\"']{re.escape(rule)}[\"']", self._text)
        line = f":{self._text.count(chr(10), 0, found.end()) + 1}" if found else ""
        return f'{self.name}{line}: rule "{rule}"'


def _agent_rules(agent: str, sources: list[_RulesFile]) -> AgentRules:
    table: dict[str, Any] = {}
    rules: dict[str, ScreenRule] = {}
    for source in sources:
        where = f"{source.name}: [screen]"
        table |= _convert(source.tables.get("screen", {}), dict[str, Any], where)
        screen = _convert(table, _ScreenTable, where)
        layout = _parse_layout(screen, where, of_user=source.strict)
        here = [
            _parse_rule(source, screen, n, row, view=kind == "views")
            for kind in ("rules", "views")
            for n, row in enumerate(source.rows(kind), 1)
        ]
        rules |= {rule.id: rule for rule in here}
        if twice := next((rule.id for rule in here if rules[rule.id] is not rule), None):
            raise RulesProblem(f"{source.where(twice.partition('.')[2])}: duplicate id")
    return AgentRules(agent, screen.tested, layout, tuple(sorted(rules.values(), key=lambda r: -r.priority)))


def _parse_layout(screen: _ScreenTable, where: str, *, of_user: bool) -> Layout:
    def pattern(name: str) -> Pattern:
        return _compile(getattr(screen, name), f"{where}: {name}", of_user=of_user)

    if screen.bare is not None:
        boxed = msgspec.structs.replace(screen, bare=None)
        other = msgspec.structs.replace(boxed, over=screen.bare.over, under=screen.bare.under)
        bare = _parse_layout(other, f"{where}: bare", of_user=of_user)
        return msgspec.structs.replace(_parse_layout(boxed, where, of_user=of_user), bare=bare)
    return Layout(
        prompt=pattern("prompt"),
        over=pattern("over"),
        under=pattern("under") if screen.under else None,
        footer=pattern("footer"),
        echo=pattern("echo"),
        menu=pattern("menu"),
        scrollbar=pattern("scrollbar"),
        clip=screen.clip,
        usage=tuple(_usage(text, f"{where}: usage", of_user=of_user) for text in screen.usage),
        front=pattern("front") if screen.front else None,
    )


def _usage(text: str, where: str, *, of_user: bool) -> Pattern:
    pattern = _compile(text, where, of_user=of_user)
    names = set(pattern.groupindex)
    if not names or not names <= FIELDS:
        raise RulesProblem(f"{where}: {text!r} needs groups with names: {', '.join(sorted(FIELDS))}")
    return pattern


def _parse_rule(
    source: _RulesFile, screen: _ScreenTable, number: int, row: dict[str, Any], *, view: bool
) -> ScreenRule:
    name = row.get("id", f"number {number}")
    where = source.where(name if isinstance(name, str) else f"number {number}")
    table = _convert(row, _ViewTable if view else _RuleTable, where)
    state = str(table.state) if isinstance(table, _RuleTable) and table.state else None
    if not view and state is None:
        raise RulesProblem(
            f"{where}: a rule needs a state (one that only hides the prompt belongs into [[views]])"
        )
    if bool(table.question) is not bool(table.options):
        raise RulesProblem(f"{where}: question and options are the two halves of a menu: one needs the other")
    if not (table.words or table.all or table.any or table.options) and (
        table.region == "title" or table.prompt is None
    ):
        raise RulesProblem(f"{where}: no condition: it would match any screen")

    def patterns(key: str, given: tuple[str, ...]) -> tuple[Pattern, ...]:
        return tuple(_compile(pattern, f"{where}: {key}", of_user=source.strict) for pattern in given)

    def pattern(key: str, given: str | None) -> Pattern | None:
        return None if given is None else _compile(given, f"{where}: {key}", of_user=source.strict)

    show = pattern("show", table.show)
    if show is not None and not show.groups:
        raise RulesProblem(f"{where}: show needs a group: the first one is quoted")
    if show is None and table.show_in is not None:
        raise RulesProblem(f"{where}: show_in needs show")
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
        show_in=table.show_in,
        tested=screen.tested if table.tested is None else table.tested,
    )


def _convert(raw: Any, to: type[_T], where: str) -> _T:
    try:
        return msgspec.convert(raw, to)
    except msgspec.ValidationError as error:
        known = next(
            (
                f": choose from {', '.join(names)}"
                for key, names in _CHOICES.items()
                if f"$.{key}`" in str(error)
            ),
            "",
        )
        raise RulesProblem(f"{where}: {error}{known}") from error


def _compile(pattern: str, where: str, *, of_user: bool) -> Pattern:
    text = _SINGLE_SPACE.sub(_WRAPPED_SPACE, pattern)
    try:
        return UserPattern(text, re.MULTILINE, where) if of_user else re.compile(text, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        raise RulesProblem(f"{where}: bad regex {pattern!r}: {error}") from error


FIELDS: Final = frozenset(ScreenUsage.__struct_fields__)
_UNITS: Final[Mapping[str, int]] = {"k": 1_000, "m": 1_000_000}
_NUMBER: Final = re.compile(r"([\d.,]+)([kKmM]?)\Z")
_MAX_MODEL_CHARS: Final = 80


def read_usage(text: str, patterns: Iterable[Pattern]) -> ScreenUsage:
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
