"""The denial record: what a sandbox refused, as far as an output proves it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Literal

import msgspec

from agentdash.model.evidence import EvidenceSource
from agentdash.model.patterns import Pattern
from agentdash.model.requested import Requested

# ------------------------------------------------------------
# Remedies: what to change so that a denied operation succeeds, and the facts about places that decide it


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The narrowest change that would help."""

    text: str
    """Lines of a configuration file to paste, or a command, or words."""
    where: str | None = None
    """The file and the place in it for the lines, or None if `text` is not configuration."""
    once: str | None = None
    """The shell command that starts Codex with this change for one run, or None."""


def with_directories(where: str, directories: Iterable[str]) -> str:
    """Return the place of a remedy with the command that has to create these directories first."""
    quoted = " ".join(map(shlex.quote, directories))
    before = f"; before that, `mkdir -p {quoted}`: Codex ignores a directory that does not exist"
    return f"{where}{before}" if quoted else where


class PathKind(StrEnum):
    """What is at a path."""

    DIRECTORY = "directory"
    HOME = "home"
    """A home directory: of a user of this machine, or one that has the files of a login shell."""
    MOUNT = "mount"
    """A mount point."""
    FILE = "file"
    LINK = "link"
    """A symbolic link: what it opens lies elsewhere."""
    OTHER = "other"
    """A socket, a device, a pipe."""
    MISSING = "missing"

    @property
    def is_directory(self) -> bool:
        """Return whether it is a directory of any kind."""
        return self in (PathKind.DIRECTORY, PathKind.HOME, PathKind.MOUNT)


class PathFacts(msgspec.Struct, frozen=True):
    """What is known of the places that the remedies of one worker may name."""

    kinds: Mapping[str, PathKind] = {}
    """What is at absolute paths. A path that is not in it is not known."""
    homes: tuple[str, ...] = ()
    """Known home directories."""
    workspaces: tuple[str, ...] = ()
    """Working directories of the thread."""
    codex_home: str | None = None
    """The directory of Codex's `config.toml`; None: `~/.codex`."""
    claude_home: str | None = None
    """The directory of Claude Code's `settings.json`; None: `~/.claude`."""
    profile: str | None = None
    """The permission profile that was asked for and is given by the rules of the CLI's version; for policies
    that do not state theirs (Codex 0.138 to 0.150)."""
    request: Requested | None = None
    """What the thread was asked for last, and what its CLI makes of that; None: not known."""
    excluded: tuple[str, ...] = ()
    """Commands that are to run without the sandbox (Claude Code, `excludedCommands`)."""

    def has_link(self, path: str) -> bool:
        """Return whether a symbolic link is known at an absolute path or above it: the kernel, and the
        arguments of launchers, have another name for what is there."""
        parts = path.split("/")
        return any(
            self.kinds.get("/".join(parts[:count])) is PathKind.LINK for count in range(2, len(parts) + 1)
        )


# ------------------------------------------------------------


What = Literal["filesystem", "network", "sandbox", "other"]
"""`sandbox`: the sandbox itself could not be started."""
Certainty = Literal["certain", "likely"]
Operation = Literal[
    "read", "write", "create", "mkdir", "rename", "delete", "chmod", "sqlite", "git",
    "connect", "resolve", "bind", "exec", "start",
]  # fmt: skip
"""`write`: also where only an open for writing is known. `git`: a change of a repository's own files.
`start`: of the sandbox."""

_MAY_NOT: Final[Mapping[Operation, str]] = {
    "mkdir": "may not create",
    "chmod": "may not change the mode of",
    "sqlite": "may not write",
    "git": "may not change",
    "connect": "may not connect to",
    "resolve": "may not look up",
    "bind": "may not listen on",
    "exec": "may not run",
    "start": "cannot start the sandbox of",
}


def may_not(operation: Operation) -> str:
    """Return what a worker may not do with the target of a denied operation: `may not write`."""
    return _MAY_NOT.get(operation, f"may not {operation}")


_ASIDE: Final = Pattern(
    r"^(?:npm )?warn(?:ing)?\b.*(?:cache|\blogs?\b)|^npm \S+ Log files were not written", re.IGNORECASE
)
"""Other warnings don't count: pip has one for each failed attempt, curl for a file that it cannot write."""
_RANDOM: Final = r"(?=[A-Za-z_]*(?:\d|[a-z][A-Z]))\w"
"""A character of a random name: such a name has digits, or capitals within."""
_RANDOM_PARTS: Final = Pattern(
    rf"(?<=/)(?P<rsync>\.[^/]+\.){_RANDOM}{{6}}$"
    rf"|(?P<below>/te?mp/)(?=[a-z0-9]*[A-Z]){_RANDOM}{{6}}$"
    rf"|(?P<prefix>[/._-](?:te?mp|sed)[._-]?){_RANDOM}{{6,}}(?=\.|$)"
    r"|(?P<process>\.te?mp[._-])\d+(?:\.\d+)*(?=\.|$)"
    r"|(?P<piece>[._-]|/te?mp/)(?!(?:19|20)\d\d[01]\d[0-3]\d(?!\w))"
    r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=\w*\d)[0-9a-f]{8,32}|\d{5,})(?=[._-][^/]*$|$)"
)
"""What programs make up anew for each temporary file: rsync's suffix, mktemp's, mkdtemp's and Python's names,
sed's; and hexadecimal, decimal and UUID parts that Node's packages append to a file's name. Excludes
dates, SHA sums, and whole names outside `tmp`: those name what is kept."""


def stable_target(target: str | None) -> str | None:
    """Return a target with `*` for random parts of its name: the same one for each attempt of a program."""
    if target is None or "/" not in target:
        return target
    return _RANDOM_PARTS.sub(lambda match: f"{next(filter(None, match.groups()))}*", target)


class Denial(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation that a sandbox refused."""

    what: What
    operation: Operation
    certainty: Certainty
    """`likely`: a failure that the policy explains, in words that other causes have as well (`Could not
    resolve host`)."""
    quote: str
    """The line or lines that show it, at most `MAX_QUOTE_CHARACTERS`."""
    target: str | None = None
    """An absolute path, a host name or address, or the path of a socket; of an execution also the name of the
    program. None where neither output nor script names it."""
    program: str | None = None
    """Base name of the program that printed it, where the line or the script shows which one it was."""
    nested: str | None = None
    """Name of the coding agent's CLI which ran inside the sandbox and failed there (`opencode`,
    `codex`, …)."""
    source: EvidenceSource = EvidenceSource.OUTPUT
    """Where it was read: in what was printed, in the CLI's own log, or in the kernel's facts of a process."""

    @property
    def is_certain(self) -> bool:
        """Return whether no other cause has these words."""
        return self.certainty == "certain"

    @property
    def is_aside(self) -> bool:
        """Return whether what runs goes on without: in a warning of its cache, or of its log; a program that
        only a start-up file of the shell was to run."""
        if self.operation == "exec":
            return not self.is_certain
        return self.what == "filesystem" and _ASIDE.search(self.quote) is not None

    @property
    def path(self) -> str | None:
        """Return the path that was refused; None for other targets."""
        return self.target if self.what == "filesystem" else None


class LedgerEntry(Denial, frozen=True, kw_only=True, omit_defaults=True):
    """All denials of one operation on one target in a thread: the newest, certain if one of them is."""

    first: float
    """When it was denied first (unix seconds)."""
    last: float
    count: int = 1
    """In how many calls."""
    calls: tuple[str, ...] = ()
    """The newest call ids."""
    got_past: bool = False
    """Whether the same command, or a change of the same target, succeeded afterwards."""
    policy: int = -1
    """Index into the thread's policies: the one in force when the newest of its calls was made; -1 before the
    first."""
    by_mcp: bool = False
    """Whether its newest call went to an MCP server: Codex (through 0.169) and Claude Code start these
    outside their sandbox, so something else refused it."""
    remedy: Remedy | None = None
    """What would have avoided it, as judged."""
