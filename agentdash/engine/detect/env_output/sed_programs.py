"""Programs of `sed` that change each line by itself, as functions of a line."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.regexes import compiled

_SPACE: Final = re.compile(r"[\s;]*")
_ADDRESS: Final = re.compile(r"/(?P<pattern>(?:[^/\\\n]|\\.)*)/(?P<flags>I?)\s*(?P<not>!?)\s*")
_SUBSTITUTION: Final = re.compile(
    r"s(?P<mark>[^\w\s\\])(?P<pattern>(?:(?!(?P=mark))[^\\\n]|\\.)*)(?P=mark)"
    r"(?P<text>(?:(?!(?P=mark))[^\\\n]|\\.)*)(?P=mark)(?P<flags>[gpIi]*)"
)
_REFERENCE: Final = re.compile(r"\\(.)|(&)")
_KEEPING: Final = re.compile(
    r"\^|\$|\$\$|=(?:[^\\|]|\\.)*"
    r"|\^?(?:\\\(|\()[^()\\]*(?:\\\)|\))=(?:\\\(|\()\.\*(?:\\\)|\))\$?"
    r"|(?P<name>\^(?:\\\(|\()[\w\[\]-]*[*+]?(?:\\\)|\))=(?:[^\\|]|\\.)*)"
)
"""Patterns whose match leaves the name before the first equals sign as it is."""
_DECLARATION: Final = re.compile(r"\^?(?:declare|typeset|export) (?:-x )?")
_MASK: Final = re.compile(r"\^?(?:\\\(|\()[^()]*(?:\([^()]*\)[^()]*)?(?:\\\)|\))=\.[*+]\$?")
"""Patterns of `(…)=.*`: what stands before the equals sign is written again as `\\1`."""
_ALTERNATIVES: Final = re.compile(r"\([A-Za-z_]+(?:\|[A-Za-z_]+)+\)")
_START: Final = re.compile(r"\^(?P<name>\w+)=(?!.*\|)")
"""The beginning of a pattern that matches the line of one variable alone."""
_MAX_COMMANDS: Final = 20


class _Step(msgspec.Struct, frozen=True):
    """One command; `wants` are the addresses around it, each with whether a line has to match."""

    wants: tuple[tuple[re.Pattern[str], bool], ...]
    name: str
    pattern: re.Pattern[str] | None = None
    text: str = ""
    flags: str = ""


class SedProgram(msgspec.Struct, frozen=True):
    """A program that depends on no other lines."""

    steps: tuple[_Step, ...]
    is_silent: bool
    keeps_names: bool
    """Of `NAME=value` it leaves the name as it is, and where it is."""

    def names(self) -> set[str]:
        """Return the variables whose lines alone are changed or written; an empty text for any line."""
        patterns = (
            step.wants[0][0] if step.wants and step.wants[0][1] else step.pattern for step in self.steps
        )
        starts = [
            _START.match(pattern.pattern) if pattern and not pattern.flags & re.IGNORECASE else None
            for pattern in patterns
        ]
        return {start["name"] if start else "" for start in starts}

    def change(self, line: str) -> str | None:
        """Return what is written of a line, without the line break at its end; None for nothing."""
        written: list[str] = []
        for step in self.steps:
            if any((pattern.search(line) is not None) is not wanted for pattern, wanted in step.wants):
                continue
            if step.name == "d":
                return "\n".join(written) if written else None
            if step.name == "p":
                written.append(line)
            elif step.pattern is not None:
                count = 0 if "g" in step.flags else 1
                line, number = step.pattern.subn(partial(_replaced, step.text), line, count)
                if number and "p" in step.flags:
                    written.append(line)
        if not self.is_silent:
            written.append(line)
        return "\n".join(written) if written else None


def _replaced(text: str, match: re.Match[str]) -> str:
    def referred(reference: re.Match[str]) -> str:
        if reference[2]:
            return match[0]
        if reference[1].isdecimal():
            return match[int(reference[1])] or "" if int(reference[1]) else match[0]
        return {"n": "\n", "t": "\t"}.get(reference[1], reference[1])

    return _REFERENCE.sub(referred, text)


def _is_ambiguous(source: str) -> bool:
    """Return whether more than one alternative of a pattern may match at a place."""
    groups = [match[0][1:-1].split("|") for match in _ALTERNATIVES.finditer(source)]
    starts = any(a != b and a.startswith(b) for words in groups for a in words for b in words)
    return starts or "|" in _ALTERNATIVES.sub("", source)


def sed_program(script: str, *, is_extended: bool, is_silent: bool) -> SedProgram | None:
    """Return a program of `sed`; None for one that counts lines or uses more than is known here."""
    reader = _Reader(script, "extended" if is_extended else "basic")
    steps = reader.block(())
    if steps is None or reader.at < len(script):
        return None
    return SedProgram(steps=tuple(steps), is_silent=is_silent, keeps_names=reader.keeps_names)


class _Reader:
    """Reads the commands of a program."""

    def __init__(self, script: str, syntax: str) -> None:
        self._script = script
        self._syntax = syntax
        self.at = 0
        self.keeps_names = True

    def block(self, wants: tuple[tuple[re.Pattern[str], bool], ...]) -> list[_Step] | None:
        """Return the commands up to a closing brace; None where one is not known."""
        steps: list[_Step] = []
        while len(steps) <= _MAX_COMMANDS:
            self._skip(_SPACE)
            if self.at >= len(self._script) or self._script[self.at] == "}":
                return steps
            inner = wants
            if address := _ADDRESS.match(self._script, self.at):
                pattern = compiled(address["pattern"], self._syntax, ignores_case=bool(address["flags"]))
                if pattern is None:
                    return None
                inner = (*wants, (pattern, not address["not"]))
                self.at = address.end()
            found = self._command(inner)
            if found is None:
                return None
            steps += found
        return None

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._script, self.at)
        self.at = match.end() if match else self.at

    def _command(self, wants: tuple[tuple[re.Pattern[str], bool], ...]) -> list[_Step] | None:
        letter = self._script[self.at : self.at + 1]
        if letter == "{":
            self.at += 1
            steps = self.block(wants)
            if steps is None or self._script[self.at : self.at + 1] != "}":
                return None
            self.at += 1
            return steps
        if letter in ("p", "d") and re.match(r"\s*(?:[;}\n]|$)", self._script[self.at + 1 :]):
            self.at += 1
            return [_Step(wants, letter)]
        match = _SUBSTITUTION.match(self._script, self.at)
        if match is None:
            return None
        self.at = match.end()
        step = self._substitution(match, wants)
        return None if step is None else [step]

    def _substitution(
        self, match: re.Match[str], wants: tuple[tuple[re.Pattern[str], bool], ...]
    ) -> _Step | None:
        source, text, mark = match["pattern"], match["text"], match["mark"]
        if (
            _is_ambiguous(source)
            or mark in source
            or not re.fullmatch(r"(?:[^\\]|\\[\\&nt./\[\]|*$^\d\"'-])*", text)
        ):
            return None  # the longest of alternatives, which Python does not look for
        keeps = (
            _KEEPING.fullmatch(source)
            or (text == "" and _DECLARATION.fullmatch(source))
            or text == "&"
            or (text.startswith("\\1=") and _MASK.fullmatch(source))
        )
        is_known = bool(keeps) and "\\n" not in text and not re.search("CODEX|SANDBOX", text)
        if isinstance(keeps, re.Match) and keeps.re is _KEEPING and keeps["name"] is not None:
            is_known = is_known and "\\1" in text
        self.keeps_names = self.keeps_names and is_known
        flags = match["flags"]
        pattern = compiled(source, self._syntax, ignores_case="i" in flags.lower())
        return None if pattern is None else _Step(wants, "s", pattern=pattern, text=text, flags=flags)


_BY_NUMBER: Final = re.compile(
    r"(?P<silent>-n )?(?:-E )?(?P<first>\d+|\$)(?:,(?P<last>\d+|\$))?(?P<command>[pd])"
)


def numbered_lines(script: str, count: int) -> list[int] | None:
    """Return which of some lines a program like `2,$p` writes, counted from 0; None for other programs."""
    match = _BY_NUMBER.fullmatch(script)
    if match is None or (match["command"] == "p") is not bool(match["silent"]):
        return None
    first = count if match["first"] == "$" else int(match["first"])
    last = first if match["last"] is None else count if match["last"] == "$" else int(match["last"])
    chosen = set(range(first - 1, max(first, min(last, count))))
    return [number for number in range(count) if (number in chosen) is (match["command"] == "p")]
