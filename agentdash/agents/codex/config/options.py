"""The options of `codex`, by subcommand and version.

From `--help` of each measured version, and from what the programs accept besides (`--yolo`, `--full-auto` and
`--experimental-json` are hidden). Which arguments are refused is compared with the real programs in
`tests/live/test_requested.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, Literal, NamedTuple

_HELP_OF: Final = (114, 120, 125, 130, 133, 134, 138, 141, 145, 147, 150, 155, 160, 166, 169, 171)
"""Minor numbers of the versions (0.N) that options were taken from."""
_FIRST, _LAST = _HELP_OF[0], _HELP_OF[-1]
ROOT: Final = ""
"""The level of options before any subcommand."""
_TUI: Final = (ROOT, "resume", "fork")
_EXEC: Final = ("exec",)
_STARTS: Final = (*_TUI, *_EXEC)
_CHILDREN: Final = ("exec resume", "exec fork")
_HEADLESS: Final = (*_EXEC, *_CHILDREN)
_ALL: Final = (*_TUI, *_HEADLESS)
_SUBCOMMANDS: Final = {
    ROOT: {"exec": "exec", "e": "exec", "resume": "resume", "fork": "fork"},
    "exec": {"resume": "exec resume", "fork": "exec fork", "review": "exec review", "help": "exec help"},
}
"""Subcommands of each level, and the level of their own options."""
_MAX_WORDS: Final = {ROOT: 1, "exec": 1, "resume": 2, "fork": 2, "exec resume": 2, "exec fork": 2}
"""Words of each level that are no options: a prompt, or a thread and a prompt."""
_EXEC_FORK_SINCE: Final = 150
_PLAIN_PROFILES_SINCE: Final = 134
OTHER: Final = frozenset(
    (
        *("agents", "review", "login", "logout", "mcp", "mcp-server", "plugin", "app-server", "app"),
        *("remote-control", "completion", "update", "doctor", "sandbox", "debug", "apply", "a", "queue"),
        *("archive", "delete", "migrate-rollouts", "migrate-nfs-db", "unarchive", "cloud", "cloud-tasks"),
        *("exec-server", "features", "help", "execpolicy", "proto", "responses-api-proxy", "stdio-to-uds"),
    )
)
"""Subcommands that run no turn of their own thread (`--help` of 0.114 to 0.171; some of them are hidden)."""
_INSTEAD: Final = {"--full-auto": ": use -s workspace-write"}
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_SETTING: Final = re.compile(r"\s*[^\s=][^=]*=")
_MODES: Final = ("read-only", "workspace-write", "danger-full-access")


class Option(NamedTuple):
    """An option as one range of versions has it."""

    names: tuple[str, ...]
    concern: str = ""
    """The name under which it concerns the sandbox: `sandbox`, `approval`, `config` ...; empty: it does
    not."""
    takes: Literal["", "text", "path", "paths", "setting"] = ""
    """Its value; `paths` are all words up to the next option, a `setting` is `KEY=VALUE`."""
    levels: tuple[str, ...] = _ALL
    since: int = _FIRST
    """Minor number of the first version that is known to have it."""
    until: int = _LAST
    choices: tuple[str, ...] = ()
    repeats: bool = False

    def may_be_in(self, level: str, minor: int) -> bool:
        """Return whether a version may have it: between two known versions it may be as in either."""
        floor = max((each for each in _HELP_OF if each <= minor), default=_FIRST)
        ceiling = min((each for each in _HELP_OF if each >= minor), default=_LAST)
        return level in self.levels and self.since <= ceiling and floor <= self.until


def _flag(*names: str, concern: str = "", levels: Sequence[str] = _ALL, since: int = _FIRST) -> Option:
    return Option(names, concern, levels=tuple(levels), since=since)


OPTIONS: Final = (
    Option(("-c", "--config"), "config", "setting", repeats=True),
    Option(("--enable",), "enable", "text", repeats=True),
    Option(("--disable",), "disable", "text", repeats=True),
    Option(("-s", "--sandbox"), "sandbox", "text", _STARTS, choices=_MODES),
    Option(("-a", "--ask-for-approval"), "approval", "text", _TUI, choices=("on-request", "never")),
    Option(("-a", "--ask-for-approval"), "approval", "text", _TUI, until=147, choices=("untrusted",)),
    Option(("-a", "--ask-for-approval"), "approval", "text", _TUI, until=141, choices=("on-failure",)),
    Option(("-p", "--profile"), "profile", "text", _STARTS),
    Option(("--profile-v2",), takes="text", levels=_STARTS, since=133, until=133),
    Option(("-C", "--cd"), "cd", "path", _STARTS),
    Option(("--add-dir",), "add-dir", "path", _STARTS, repeats=True),
    Option(("--full-auto",), "full-auto", levels=_TUI, until=125),
    Option(("--full-auto",), "full-auto", levels=_HEADLESS, until=145),
    _flag("--dangerously-bypass-approvals-and-sandbox", "--yolo", concern="bypass"),
    _flag("--approve-for-me", concern="approve-for-me", levels=_STARTS, since=147),
    _flag("--ignore-user-config", concern="ignore-user-config", levels=_HEADLESS, since=125),
    _flag("--ignore-rules", levels=_HEADLESS, since=125),
    _flag("--dangerously-bypass-hook-trust", since=133),
    _flag("--strict-config", since=133),
    _flag("--worktree", since=155),
    _flag("--oss", levels=_STARTS),
    Option(("--local-provider",), takes="text", levels=_STARTS),
    Option(("-m", "--model"), takes="text"),
    Option(("-i", "--image"), takes="paths", levels=_STARTS, repeats=True),
    Option(("-i", "--image"), takes="path", levels=_CHILDREN, repeats=True),
    Option(("--remote",), "remote", "text", _TUI, since=120),
    Option(("--remote",), "remote", "text", _HEADLESS, since=171),
    Option(("--remote-auth-token-env",), takes="text", levels=_TUI, since=120),
    Option(("--remote-auth-token-env",), takes="text", levels=_HEADLESS, since=171),
    _flag("--search", levels=_TUI),
    _flag("--no-alt-screen", levels=_TUI),
    _flag("--no-daemon", levels=_TUI, since=160),
    _flag("--last", levels=("resume", "fork", "exec resume")),
    _flag("--all", levels=("resume", "fork", "exec resume")),
    _flag("--include-non-interactive", levels=("resume",), since=120),
    _flag("--skip-git-repo-check", levels=_HEADLESS),
    _flag("--ephemeral", levels=_HEADLESS),
    _flag("--json", "--experimental-json", levels=_HEADLESS),
    _flag("--trust", levels=_HEADLESS, since=169),
    Option(("--progress-cursor",), levels=_EXEC, until=114),
    Option(("--color",), takes="text", levels=_EXEC, choices=("always", "never", "auto")),
    Option(("-o", "--output-last-message"), takes="path", levels=_HEADLESS),
    Option(("--output-schema",), takes="path", levels=_EXEC),
    Option(("--output-schema",), takes="path", levels=_CHILDREN, since=133),
    Option(("--thread-source",), takes="text", levels=_HEADLESS, since=150),
    Option(
        ("--cyber-access-program",),
        takes="text",
        levels=_HEADLESS,
        since=166,
        choices=("standard", "daybreak_blue", "daybreak_red"),
    ),
    _flag("-h", "--help", concern="help"),
    _flag("-V", "--version", concern="help", levels=(*_STARTS,)),
)
_CONFLICTS: Final = (
    {"bypass", "approval"},
    {"bypass", "full-auto"},
    {"bypass", "approve-for-me"},
    {"approve-for-me", "approval"},
    {"approve-for-me", "sandbox"},
)
"""Options that exclude each other on one level."""


class Given(NamedTuple):
    """An option among arguments."""

    name: str
    """As it was written."""
    value: str | None
    """None: there is none."""
    text: str
    """All of its words: `-s read-only`."""
    level: str
    """The subcommand that it stands after."""

    @property
    def concern(self) -> str:
        """The name under which it concerns the sandbox; empty: it does not."""
        option = _find(self.name, self.level)
        return option.concern if option is not None else ""


class Arguments(NamedTuple):
    """Arguments of `codex`, taken apart."""

    level: str
    """The subcommand: empty, `exec`, `exec resume` ..., or one of `OTHER`."""
    options: tuple[Given, ...]
    words: tuple[str, ...]
    """What is no option, after the subcommand."""


def take_apart(args: Sequence[str], minor: int = _LAST) -> Arguments:
    """Return the subcommand, the options and the other words of arguments, as version 0.`minor` does."""
    level = ROOT
    words: list[str] = []
    options: list[Given] = []
    position = 0
    while position < len(args):
        arg = args[position]
        position += 1
        if arg == "--":
            words += args[position:]
            break
        if arg.startswith("-") and arg != "-":
            given, taken = _take_option(arg, args[position:], level)
            options.append(given)
            position += taken
        elif (below := _subcommand(level, arg, minor)) is not None:
            level, words = below, []
            if level not in _ALL:
                break
        else:
            words.append(arg)
    return Arguments(level, tuple(options), tuple(words))


def refusal(args: Sequence[str], minor: int) -> str | None:
    """Return why a version refuses arguments before it reads its configuration; None where it may take them.

    Whether a feature of `--enable` exists is not looked at.

    Args:
        args: as they would be typed after `codex`.
        minor: N of version 0.N.
    """
    taken = take_apart(args, minor)
    if any(given.concern == "help" for given in taken.options):
        return "--help and --version start nothing"
    if taken.level not in _ALL:
        return f"`codex {taken.level}` starts no thread of which the policy is measured"
    problems = (_problem(given, minor) for given in taken.options)
    clashes = (_clash(taken.options, level) for level in _ALL)
    found = next((each for each in (*problems, *clashes) if each is not None), None)
    if found is None and len(taken.words) > _MAX_WORDS[taken.level]:
        return f"unexpected argument {taken.words[_MAX_WORDS[taken.level]]!r}"
    return found


def _subcommand(level: str, word: str, minor: int) -> str | None:
    if level == ROOT and word in OTHER:
        return word
    if level == "exec" and word == "fork" and minor < _EXEC_FORK_SINCE:
        return None
    return _SUBCOMMANDS.get(level, {}).get(word)


def _take_option(arg: str, following: Sequence[str], level: str) -> tuple[Given, int]:
    """Return an option, and how many of the following arguments are its values."""
    head, equals, joined = arg.partition("=")
    if not arg.startswith("--"):
        head, joined = arg[:2], arg[2:].removeprefix("=")
        equals = joined
    option = _find(head, level)
    if equals or option is None or not option.takes:
        return Given(head, joined if equals else None, arg, level), 0
    values = []
    for value in following:
        if value.startswith("-") and value != "-":
            break
        values.append(value)
        if option.takes != "paths":
            break
    text = " ".join((arg, *values))
    return Given(head, values[0] if values else None, text, level), len(values)


@cache
def _find(name: str, level: str) -> Option | None:
    """Return the option of this name: of any version, and of another level where this one has none."""
    named = [option for option in OPTIONS if name in option.names]
    return next((option for option in named if level in option.levels), named[0] if named else None)


def _problem(given: Given, minor: int) -> str | None:
    options = [each for each in OPTIONS if given.name in each.names and each.may_be_in(given.level, minor)]
    if not options:
        return f"unexpected argument {given.name!r}{_INSTEAD.get(given.name, '')}"
    takes = options[0].takes
    choices = [choice for option in options for choice in option.choices]
    if not takes:
        return f"{given.name} takes no value" if given.value is not None else None
    if given.value is None or (takes in ("path", "paths") and not given.value):
        return f"{given.name} needs a value"
    if takes == "setting" and not _SETTING.match(given.value):
        return f"{given.text}: a setting is KEY=VALUE"
    if choices and given.value not in choices:
        return f"{given.text}: the values are {', '.join(choices)}"
    if (
        options[0].concern == "profile"
        and minor >= _PLAIN_PROFILES_SINCE
        and not _PLAIN_NAME.fullmatch(given.value)
    ):
        return f"{given.text}: a profile has a plain name"
    return None


def _clash(options: Sequence[Given], level: str) -> str | None:
    """Return which options of a level are there twice, or exclude each other."""
    here = [given for given in options if given.level == level]
    seen: set[str] = set()
    for given in here:
        option = _find(given.name, level)
        if option is None or option.repeats:
            continue
        if option.names[-1] in seen:
            return f"{given.name} is there twice"
        seen.add(option.names[-1])
    concerns = {given.concern: given.name for given in here}
    pairs = ([concerns[each] for each in sorted(pair)] for pair in _CONFLICTS if pair <= concerns.keys())
    return next((f"{first} and {second} exclude each other" for first, second in pairs), None)
