"""Rules that decide on commands by their first words, and what they let out of Codex's sandbox.

Measured on 0.171.0. A command that a rule allows runs outside the sandbox under every sandbox mode and
approval policy, with no mark in the rollout; `CODEX_SANDBOX_NETWORK_DISABLED` stays set. A profile that hides
paths from reading keeps it inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

Decision = Literal["allow", "prompt", "forbidden"]
_STRICTNESS: Final = ("allow", "prompt", "forbidden")
_BARE: Final = r"[^\s'\"\\$`*?\[\]{}~#^<>()&|;]"
_WORD: Final = re.compile(rf"(?:{_BARE}|'[^']*'|\"[^\"$`\\]*\")+")
_PROGRAM: Final = re.compile(rf"(?!!|\w+\+?=){_BARE}+")
"""The first word of a command: neither quoted, nor an assignment, nor `!`."""
_QUOTED: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_BLANK: Final = re.compile(r"(?:[ \t]|\\\n)+")
_BETWEEN: Final = re.compile(r"(?:&&|\|\||;|\|(?!&)|\n)\s*")
_OTHER_SYNTAX: Final = frozenset(
    ("if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select",
     "function", "time", "coproc", "export", "declare", "typeset", "local", "readonly", "unset")
)  # fmt: skip
"""First words that begin something else than a plain command."""


class CommandRule(msgspec.Struct, frozen=True):
    """A `prefix_rule`."""

    pattern: tuple[tuple[str, ...], ...]
    """The first words of a command, each with its alternatives."""
    decision: Decision
    place: str
    """`/home/u/.codex/rules/default.rules:3`."""

    def fits(self, words: tuple[str, ...]) -> bool:
        """Return whether a command begins with the pattern."""
        if len(words) < len(self.pattern):
            return False
        return all(word in allowed for word, allowed in zip(words, self.pattern, strict=False))


class CommandRules(msgspec.Struct, frozen=True):
    """All rules of one Codex."""

    rules: tuple[CommandRule, ...] = ()
    programs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """`host_executable`: names, and the only absolute paths for which rules of these names hold."""

    def letting_out(self, script: str) -> CommandRule | None:
        """Return the rule that lets a script run outside the sandbox, or None.

        All commands of the script have to be allowed. Only plain ones are looked at: words, also quoted
        ones, divided by `&&`, `||`, `;`, `|` and line breaks.
        """
        if not self.rules:
            return None
        decisive = [self._decisive(words) for words in plain_commands(script)]
        if any(rule is None or rule.decision != "allow" for rule in decisive):
            return None
        return next(iter(decisive), None)

    def _decisive(self, words: tuple[str, ...]) -> CommandRule | None:
        """Return the strictest rule that fits a command; by the name of a program only where none has its
        path."""
        fitting = [rule for rule in self.rules if rule.fits(words)]
        name = words[0].rpartition("/")[2]
        if not fitting and words[0].startswith("/") and self._is_known(name, words[0]):
            fitting = [rule for rule in self.rules if rule.fits((name, *words[1:]))]
        return max(fitting, key=lambda rule: _STRICTNESS.index(rule.decision), default=None)

    def _is_known(self, name: str, path: str) -> bool:
        return all(path in paths for known, paths in self.programs if known == name)


def allow(words: Iterable[str], place: str) -> CommandRules:
    """Return the rule that lets commands out which begin with these words."""
    return CommandRules((CommandRule(tuple((word,) for word in words), "allow", place),))


def codex_home_of(path: str) -> str | None:
    """Return the Codex home that the path of a rollout lies in, whose rules it was written under, or None;
    `.` if the path is relative and begins in it."""
    parts = path.split("/")
    above = [n for n, part in enumerate(parts) if part in ("sessions", "archived_sessions")]
    return ("/".join(parts[: above[-1]]) or ("/" if path.startswith("/") else ".")) if above else None


def plain_commands(script: str) -> list[tuple[str, ...]]:
    """Return the words of each command of a script, or nothing if it is more than plain commands."""
    script = script.strip(" \t\n")
    commands: list[tuple[str, ...]] = []
    words: list[str] = []
    at = 0
    while at < len(script):
        if (found := _BLANK.match(script, at)) is not None:
            pass
        elif (found := _BETWEEN.match(script, at)) is not None and words:
            commands.append(tuple(words))
            words = []
        elif (found := _WORD.match(script, at)) is not None and (
            words or (_PROGRAM.fullmatch(found[0]) and found[0] not in _OTHER_SYNTAX)
        ):
            words.append(_QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or "", found[0]))
        else:
            return []
        at = found.end()
    return [*commands, tuple(words)] if words else commands
