"""Read the rules by which a Codex decides on commands (execpolicy; `*.rules`, 0.171.0).

| files | count |
|---|---|
| `/etc/codex/rules`, `$CODEX_HOME/rules` | always, except with `--ignore-rules` |
| `.codex/rules`, from the project's root to the working directory | if the project is trusted |
| `[rules] prefix_rules` of `/etc/codex/requirements.toml` | they can only forbid, or ask |

The files are Starlark. Calls with literal arguments are understood; what else a file does is counted.
Codex reads them when it starts, and adds to `default.rules` what is approved for good: what is there now may
not have been there when a command ran.
"""

from __future__ import annotations

import ast
import os
import posixpath
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path, PurePath
from typing import Any, Final

import msgspec

from agentdash.agents.codex.config.files import ETC, trusted_folders
from agentdash.files import read_text
from agentdash.model.command_rules import CommandRule, CommandRules, codex_home_of
from agentdash.model.sanitize import clean_line

_MAX_RULES_BYTES: Final = 1 << 18
"""Of one file; 489 rules, the most seen, have 40 kB."""
_MAX_FILES: Final = 100
"""Of one directory."""
_REREAD_S: Final = 2.0
"""Age after which the directories are looked at again."""
_DECISIONS: Final = {"allow": "allow", "prompt": "prompt", "prompt-user": "prompt", "forbidden": "forbidden"}
_SILENT: Final = ("network_rule",)
"""Calls that do not concern which commands run outside."""


class RuleFile(msgspec.Struct, frozen=True):
    """What a file of rules has."""

    path: str
    rules: tuple[CommandRule, ...] = ()
    programs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unknown: tuple[int, ...] = ()
    """Lines of statements that are not understood."""
    problem: str | None = None
    """Why it cannot be read; Codex does not start with such a file."""


def rules_beside(path: PurePath) -> Callable[[str], CommandRules] | None:
    """Return the rules of a working directory for the Codex that wrote a rollout, or None if it lies in no
    Codex home."""
    home = codex_home_of(os.path.abspath(path))  # noqa: PTH100 - links are not resolved
    return None if home is None else partial(command_rules, home)


def command_rules(home: str, cwd: str) -> CommandRules:
    """Return the rules of a Codex in a working directory. Never raises."""
    return _command_rules(home, cwd, int(time.monotonic() / _REREAD_S))


@lru_cache(maxsize=512)
def _command_rules(home: str, cwd: str, _period: int) -> CommandRules:
    files = rule_files(home, cwd)
    rules = tuple(rule for file in files for rule in file.rules)
    if not any(rule.decision == "allow" for rule in rules):
        return CommandRules()
    return CommandRules((*rules, *_required()), tuple(each for file in files for each in file.programs))


def rule_files(home: str, cwd: str) -> list[RuleFile]:
    """Return the files of rules of a Codex in a working directory, those of the system first. Never
    raises."""
    projects = (posixpath.join(folder, ".codex") for folder in trusted_folders(home, cwd, _has_rules))
    folders = dict.fromkeys((ETC, posixpath.normpath(home), *projects))
    return [_read_file(path) for folder in folders for path in _paths(posixpath.join(folder, "rules"))]


def _has_rules(folder: str) -> bool:
    return bool(_paths(posixpath.join(folder, ".codex/rules")))


def _paths(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as listing:
            names = sorted(entry.name for entry in listing if entry.name.endswith(".rules"))
    except OSError:
        return []
    return [posixpath.join(folder, name) for name in names[:_MAX_FILES]]


def _read_file(path: str) -> RuleFile:
    shown = clean_line(path)
    try:
        return parse_rules(read_text(path, _MAX_RULES_BYTES), shown)
    except (OSError, UnicodeDecodeError) as error:
        return RuleFile(shown, problem=clean_line(getattr(error, "strerror", None) or str(error)))


@lru_cache(maxsize=64)
def parse_rules(text: str, path: str) -> RuleFile:
    """Return what the text of a file has."""
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        return RuleFile(path, problem=clean_line(f"not understood: {reason}"))
    rules: list[CommandRule] = []
    programs: list[tuple[str, tuple[str, ...]]] = []
    unknown: list[int] = []
    for statement in statements:
        name, arguments = _call(statement)
        if name == "prefix_rule" and (rule := _rule(arguments, f"{path}:{statement.lineno}")) is not None:
            rules.append(rule)
        elif name == "host_executable" and (program := _program(arguments)) is not None:
            programs.append(program)
        elif name not in _SILENT and not _is_text(statement):
            unknown.append(statement.lineno)
    return RuleFile(path, tuple(rules), tuple(programs), tuple(unknown))


def _call(statement: ast.stmt) -> tuple[str, dict[str, Any]]:
    """Return the function that a statement calls, and its literal arguments; an empty name for others."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        return "", {}
    try:
        return call.func.id, {each.arg or "": ast.literal_eval(each.value) for each in call.keywords}
    except (ValueError, TypeError, RecursionError, MemoryError):
        return "", {}


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _rule(arguments: dict[str, Any], place: str) -> CommandRule | None:
    """Return a rule, or None if Codex would not accept it."""
    pattern = arguments.get("pattern")
    decision = _DECISIONS.get(str(arguments.get("decision", "allow")))
    if not isinstance(pattern, list) or not pattern or decision is None:
        return None
    words = [_alternatives(each) for each in pattern]
    if not all(words):
        return None
    return CommandRule(tuple(words), decision, place)  # type: ignore[arg-type]


def _alternatives(element: Any) -> tuple[str, ...]:
    """Return the words that an element of a pattern stands for; none where it is neither word nor list."""
    words = [element] if isinstance(element, str) else element
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return ()
    return tuple(words)


def _program(arguments: dict[str, Any]) -> tuple[str, tuple[str, ...]] | None:
    name, paths = arguments.get("name"), _alternatives(arguments.get("paths"))
    return (name, paths) if isinstance(name, str) and paths else None


def _required() -> Iterator[CommandRule]:
    """Yield the rules of `requirements.toml`: `{pattern = [{token = "git"}], decision = "prompt"}`."""
    path = f"{ETC}/requirements.toml"
    try:
        rules = tomllib.loads(read_text(Path(path))).get("rules")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        return
    listed = rules.get("prefix_rules") if isinstance(rules, dict) else None
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, dict) and isinstance(elements := each.get("pattern"), list):
            pattern = [e.get("token", e.get("any_of")) for e in elements if isinstance(e, dict)]
            if rule := _rule({"pattern": pattern, "decision": each.get("decision")}, path):
                yield rule
