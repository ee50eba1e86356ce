"""Parse the arguments of a `codex` process, and tell which of them a version refuses.

`codex [OPTIONS] [SUBCOMMAND] [OPTIONS]`: options stand before or after the subcommand. The forms `-s X`,
`-sX`, `--sandbox X` and `--sandbox=X` are the same (clap; 0.114 to 0.171).

The options are those of `--help` of each measured version, and what the programs accept besides (`--yolo`,
`--full-auto` and `--experimental-json` are hidden). What is refused is compared with the real programs in
`tests/live/test_requested.py`.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, Literal, NamedTuple

import msgspec

from agentdash.model.secrets import MASK

Mode = Literal["tui", "exec", "other"]
"""`exec`: one task, without questions. `other`: servers, and subcommands that run no turn."""

_PROGRAM: Final = re.compile(r"codex(?:\.js|-(?:x86_64|aarch64)-[\w-]+)?")
_HELP_OF: Final = (114, 120, 125, 130, 133, 134, 138, 141, 145, 147, 150, 155, 160, 166, 169, 171)
"""Minor numbers of the versions (0.N) that options were taken from."""
_FIRST, _LAST = _HELP_OF[0], _HELP_OF[-1]
_ROOT: Final = ""
"""The level of options before any subcommand."""
_TUI: Final = (_ROOT, "resume", "fork")
_EXEC: Final = ("exec",)
_STARTS: Final = (*_TUI, *_EXEC)
_CHILDREN: Final = ("exec resume", "exec fork")
_HEADLESS: Final = (*_EXEC, *_CHILDREN)
_ALL: Final = (*_TUI, *_HEADLESS)
_SUBCOMMANDS: Final = {
    _ROOT: {"exec": "exec", "e": "exec", "resume": "resume", "fork": "fork"},
    "exec": {"resume": "exec resume", "fork": "exec fork", "review": "exec review", "help": "exec help"},
}
"""Subcommands of each level, and the level of their own options."""
_MAX_WORDS: Final = {_ROOT: 1, "exec": 1, "resume": 2, "fork": 2, "exec resume": 2, "exec fork": 2}
"""Words of each level that are no options: a prompt, or a thread and a prompt."""
_EXEC_FORK_SINCE: Final = 150
_PLAIN_PROFILES_SINCE: Final = 134
_OTHER: Final = frozenset(
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


class KnownOption(NamedTuple):
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


def _flag(*names: str, concern: str = "", levels: Sequence[str] = _ALL, since: int = _FIRST) -> KnownOption:
    return KnownOption(names, concern, levels=tuple(levels), since=since)


OPTIONS: Final = (
    KnownOption(("-c", "--config"), "config", "setting", repeats=True),
    KnownOption(("--enable",), "enable", "text", repeats=True),
    KnownOption(("--disable",), "disable", "text", repeats=True),
    KnownOption(("-s", "--sandbox"), "sandbox", "text", _STARTS, choices=_MODES),
    KnownOption(("-a", "--ask-for-approval"), "approval", "text", _TUI, choices=("on-request", "never")),
    KnownOption(("-a", "--ask-for-approval"), "approval", "text", _TUI, until=147, choices=("untrusted",)),
    KnownOption(("-a", "--ask-for-approval"), "approval", "text", _TUI, until=141, choices=("on-failure",)),
    KnownOption(("-p", "--profile"), "profile", "text", _STARTS),
    KnownOption(("--profile-v2",), takes="text", levels=_STARTS, since=133, until=133),
    KnownOption(("-C", "--cd"), "cd", "path", _STARTS),
    KnownOption(("--add-dir",), "add-dir", "path", _STARTS, repeats=True),
    KnownOption(("--full-auto",), "full-auto", levels=_TUI, until=125),
    KnownOption(("--full-auto",), "full-auto", levels=_HEADLESS, until=145),
    _flag("--dangerously-bypass-approvals-and-sandbox", "--yolo", concern="bypass"),
    _flag("--approve-for-me", concern="approve-for-me", levels=_STARTS, since=147),
    _flag("--ignore-user-config", concern="ignore-user-config", levels=_HEADLESS, since=125),
    _flag("--ignore-rules", levels=_HEADLESS, since=125),
    _flag("--dangerously-bypass-hook-trust", since=133),
    _flag("--strict-config", since=133),
    _flag("--worktree", since=155),
    _flag("--oss", levels=_STARTS),
    KnownOption(("--local-provider",), takes="text", levels=_STARTS),
    KnownOption(("-m", "--model"), takes="text"),
    KnownOption(("-i", "--image"), takes="paths", levels=_STARTS, repeats=True),
    KnownOption(("-i", "--image"), takes="path", levels=_CHILDREN, repeats=True),
    KnownOption(("--remote",), "remote", "text", _TUI, since=120),
    KnownOption(("--remote",), "remote", "text", _HEADLESS, since=171),
    KnownOption(("--remote-auth-token-env",), takes="text", levels=_TUI, since=120),
    KnownOption(("--remote-auth-token-env",), takes="text", levels=_HEADLESS, since=171),
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
    KnownOption(("--progress-cursor",), levels=_EXEC, until=114),
    KnownOption(("--color",), takes="text", levels=_EXEC, choices=("always", "never", "auto")),
    KnownOption(("-o", "--output-last-message"), takes="path", levels=_HEADLESS),
    KnownOption(("--output-schema",), takes="path", levels=_EXEC),
    KnownOption(("--output-schema",), takes="path", levels=_CHILDREN, since=133),
    KnownOption(("--thread-source",), takes="text", levels=_HEADLESS, since=150),
    KnownOption(
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


class Option(msgspec.Struct, frozen=True):
    """One option among arguments."""

    name: str
    """What it concerns of the sandbox: `sandbox`, `approval`, `config`, `profile`, `add-dir`, `cd`, `bypass`
    ...; empty: nothing."""
    value: str
    """Empty for an option without one."""
    text: str
    """All of its words, as written: `-s read-only`."""
    level: str
    """The subcommand that it stands after."""
    word: str
    """The option alone, as written."""
    has_value: bool
    before: bool = False
    """Whether it stands before the subcommand."""


class Override(msgspec.Struct, frozen=True):
    """A `-c key=value`."""

    keys: tuple[str, ...]
    value: Any
    text: str


class _Taken(NamedTuple):
    """Arguments, taken apart."""

    level: str
    """The subcommand: empty, `exec`, `exec resume` ..., or one of `_OTHER`."""
    options: tuple[Option, ...]
    words: tuple[str, ...]
    """What is no option, after the subcommand."""


class Arguments(msgspec.Struct, frozen=True):
    """The arguments of one `codex` process."""

    mode: Mode
    resumes: bool = False
    """Whether it goes on with an existing thread (`resume`, `exec resume`); a fork is a new one."""
    options: tuple[Option, ...] = ()

    def last(self, *names: str) -> Option | None:
        """Return the last option of these names, which wins over earlier ones."""
        return next((option for option in reversed(self.options) if option.name in names), None)

    def all(self, name: str) -> tuple[Option, ...]:
        """Return all options of this name, in their order."""
        return tuple(option for option in self.options if option.name == name)

    def overrides(self) -> Iterator[Override]:
        """Yield the overrides of `-c`, `--enable` and `--disable` in their order, the last of which wins."""
        for option in self.options:
            if option.name in ("enable", "disable"):  # the same as -c features.NAME=true
                yield Override(("features", option.value), option.name == "enable", option.text)
            key, equals, value = option.value.partition("=")
            if option.name == "config" and equals:
                keys = tuple(part.strip().strip('"') for part in key.split("."))
                yield Override(keys, _toml_value(value), option.text)


def parse_arguments(argv: Sequence[str]) -> Arguments | None:
    """Parse the argument vector of a process, with its program.

    Returns:
        None where the program is not recognized: `codex`, or a Node that runs `codex.js`; and where the name
        of a profile looked like a secret and was masked before.
    """
    names = (posixpath.basename(arg) for arg in argv[:2])
    start = next((number for number, name in enumerate(names) if _PROGRAM.fullmatch(name)), None)
    found = None if start is None else parse_options(argv[start + 1 :])
    return None if found is None or any(MASK in option.value for option in found.all("profile")) else found


def parse_options(args: Sequence[str]) -> Arguments:
    """Parse arguments after the program, as they would be typed after `codex`."""
    level, given, _ = _take_apart(args)
    mode: Mode = "exec" if level.startswith("exec") else "other" if level in _OTHER else "tui"
    before = level != _ROOT
    return Arguments(
        mode=mode,
        resumes=level.endswith("resume"),
        options=tuple(
            msgspec.structs.replace(each, before=before and each.level == _ROOT)
            for each in given
            if each.name
        ),
    )


def _toml_value(text: str) -> Any:
    """Return a value as Codex reads it: TOML, or else the words themselves."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip().strip("\"'")


# ---------------------------------------------------------------- taking them apart


def _take_apart(args: Sequence[str], minor: int = _LAST) -> _Taken:
    """Return the subcommand, the options and the other words of arguments, as version 0.`minor` does."""
    level = _ROOT
    words: list[str] = []
    options: list[Option] = []
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
    return _Taken(level, tuple(options), tuple(words))


def refusal(args: Sequence[str], minor: int) -> str | None:
    """Return why a version refuses arguments before it reads its configuration; None where it may take them.

    Whether a feature of `--enable` exists is not looked at.

    Args:
        args: as they would be typed after `codex`.
        minor: N of version 0.N.
    """
    taken = _take_apart(args, minor)
    if any(given.name == "help" for given in taken.options):
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
    if level == _ROOT and word in _OTHER:
        return word
    if level == "exec" and word == "fork" and minor < _EXEC_FORK_SINCE:
        return None
    return _SUBCOMMANDS.get(level, {}).get(word)


def _take_option(arg: str, following: Sequence[str], level: str) -> tuple[Option, int]:
    """Return an option, and how many of the following arguments are its values."""
    head, equals, joined = arg.partition("=")
    if not arg.startswith("--"):
        head, joined = arg[:2], arg[2:].removeprefix("=")
        equals = joined
    known = _find(head, level)
    concern = known.concern if known is not None else ""
    if equals or known is None or not known.takes:
        has_value = bool(equals)
        return Option(concern, joined if has_value else "", arg, level, head, has_value), 0
    values: list[str] = []
    for value in following:
        if value.startswith("-") and value != "-":
            break
        values.append(value)
        if known.takes != "paths":
            break
    text = " ".join((arg, *values))
    return Option(concern, values[0] if values else "", text, level, head, bool(values)), len(values)


@cache
def _find(word: str, level: str) -> KnownOption | None:
    """Return what is known of an option: of any version, and of another level where this one has none."""
    named = [option for option in OPTIONS if word in option.names]
    return next((option for option in named if level in option.levels), named[0] if named else None)


def _problem(given: Option, minor: int) -> str | None:
    options = [each for each in OPTIONS if given.word in each.names and each.may_be_in(given.level, minor)]
    if not options:
        return f"unexpected argument {given.word!r}{_INSTEAD.get(given.word, '')}"
    takes = options[0].takes
    choices = [choice for option in options for choice in option.choices]
    if not takes:
        return f"{given.word} takes no value" if given.has_value else None
    if not given.has_value or (takes in ("path", "paths") and not given.value):
        return f"{given.word} needs a value"
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


def _clash(options: Sequence[Option], level: str) -> str | None:
    """Return which options of a level are there twice, or exclude each other."""
    here = [given for given in options if given.level == level]
    seen: set[str] = set()
    for given in here:
        known = _find(given.word, level)
        if known is None or known.repeats:
            continue
        if known.names[-1] in seen:
            return f"{given.word} is there twice"
        seen.add(known.names[-1])
    concerns = {given.name: given.word for given in here}
    pairs = ([concerns[each] for each in sorted(pair)] for pair in _CONFLICTS if pair <= concerns.keys())
    return next((f"{first} and {second} exclude each other" for first, second in pairs), None)
