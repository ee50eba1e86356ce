"""What `[shell_environment_policy]` does to the variables of Codex's commands.

`inherit` (`all`, `core`, `none`), then `exclude` and `include_only` as patterns that ignore case; `set` adds
variables, of which `include_only` removes some again. Codex adds its own `CODEX_THREAD_ID` and
`CODEX_SANDBOX_NETWORK_DISABLED` after that, but neither `CODEX_HOME` nor `CODEX_SANDBOX` (0.169).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from agentdash.agents.codex.config.stack import Setting, Stack
from agentdash.model.requested import EnvironmentRule

NEEDED: Final = ("PATH", "HOME", "CODEX_HOME")
"""Variables by which commands find programs, worker CLIs their state, and agentdash the status file."""
FLAGS: Final = ("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED")
_CORE: Final = frozenset(
    (
        *("HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"),
        *("LANG", "LC_ALL", "LC_CTYPE", "TERM", "PWD"),
    )
)
"""Variables that `inherit = "core"` keeps (seen in 0.169; `CODEX_HOME` is none of them)."""
_TABLE: Final = "shell_environment_policy"


def environment_rules(stack: Stack, names: Iterable[str] = NEEDED) -> tuple[EnvironmentRule, ...]:
    """Return the rules that keep needed variables from commands, and those that set sandbox flags."""
    return (*_drops(stack, names), *_sets(stack))


def _drops(stack: Stack, names: Iterable[str]) -> Iterator[EnvironmentRule]:
    own = stack.find(_TABLE, "set")
    set_names = _names(own.value if own else None)
    by_setting: dict[tuple[str | None, int | None, str], list[str]] = {}
    for name in names:
        if (setting := _dropped_by(stack, name, set_names)) is not None:
            by_setting.setdefault((setting.file, setting.line, setting.text), []).append(name)
    for (file, line, text), dropped in by_setting.items():
        yield EnvironmentRule(effect="drops", names=tuple(dropped), text=text, file=file, line=line)


def _dropped_by(stack: Stack, name: str, set_names: tuple[str, ...]) -> Setting | None:
    """Return the setting that keeps a variable from commands."""
    only = stack.find(_TABLE, "include_only")
    if only is not None and only.value and not _matches(name, only.value):
        return only
    if name in set_names:
        return None
    inherit = stack.find(_TABLE, "inherit")
    if inherit is not None and (inherit.value == "none" or (inherit.value == "core" and name not in _CORE)):
        return inherit
    exclude = stack.find(_TABLE, "exclude")
    return exclude if exclude is not None and _matches(name, exclude.value) else None


def _sets(stack: Stack) -> Iterator[EnvironmentRule]:
    for name in FLAGS:
        setting = stack.find(_TABLE, "set", name)
        if setting is not None:
            text = f"{_TABLE}.set.{name}"
            yield EnvironmentRule(
                effect="sets", names=(name,), text=text, file=setting.file, line=setting.line
            )


def _matches(name: str, patterns: Any) -> bool:
    if not isinstance(patterns, list):
        return False
    return any(fnmatchcase(name.upper(), each.upper()) for each in patterns if isinstance(each, str))


def _names(table: Any) -> tuple[str, ...]:
    return tuple(table) if isinstance(table, dict) else ()
