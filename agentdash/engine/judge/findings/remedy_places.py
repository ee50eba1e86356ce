"""Choose the directory that has to be writable for a denied path, and decide whether it may be opened."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from agentdash.engine.judge.findings.policies import newest_request
from agentdash.engine.link.process_tree import home_directory
from agentdash.model.command_rules import codex_home_of
from agentdash.model.denials import Operation, PathFacts, PathKind
from agentdash.model.fleet import Fleet
from agentdash.model.process import Process
from agentdash.model.requested import Requested
from agentdash.model.thread import Thread
from agentdash.sandbox.home_paths import home_of

REPOSITORY: Final = ".git"
_NPM_CACHE: Final = "_cacache"
"""npm writes in several of its directories: with `tmp` alone the next one is denied (npm 11)."""
PROTECTED_NAMES: Final = (REPOSITORY, ".agents", ".codex", ".aws")
"""Codex 0.169 keeps these read-only at the top of every writable root that is not one of them itself."""
_PRIVATE_NAMES: Final = frozenset(
    (".agents", ".codex", ".aws", ".ssh", ".gnupg", ".kube", ".docker", ".password-store")
)
"""Directories of credentials, and of what Codex is allowed to do."""
_SYSTEM: Final = re.compile(
    r"/(?:etc|usr|bin|sbin|lib\w*|boot|dev|proc|sys|run|snap|nix|System|Library|Applications)(?:/|$)"
    r"|/var/(?!(?:www|tmp|opt|local|folders|home)/[^/]+)"
    r"|/opt/[^/]+$"
    r"|/(?:mnt|Volumes)/[^/]+$"
    r"|/media/[^/]+(?:/[^/]+)?$"
    r"|/mnt/[a-z]/(?:Windows|Program[^/]*)(?:/|$)"
)
"""Directories of the system, of installed programs, and of whole disks."""
_SHARED_IN_HOME: Final = frozenset(
    (
        ".config", ".config/systemd", ".config/autostart", ".config/git", ".config/fish",
        ".config/environment.d", ".local", ".local/share", ".local/state", ".local/bin", ".local/lib",
        ".cache", ".cargo", ".cargo/bin", ".rustup", ".npm-global", "bin", "go", "go/bin", "Library",
        "Library/Application Support", "Library/Caches", "Library/LaunchAgents", "Library/Preferences",
    )
)  # fmt: skip
"""Directories below a home that many programs share, or whose programs the user's shell runs."""
_SHELL_FILES: Final = re.compile(
    r"\.(?:bash\w*|profile|zsh\w*|zprofile|zlogin|login|inputrc|netrc|gitconfig)"
)
"""Files that lie directly in a home directory."""
_BELOW_HOME: Final = re.compile(r"(?<![\w/.])(?:~|\$HOME|\$\{HOME\})/([\w./@+-]+)")
_NOTHING: Final[Mapping[str, PathKind]] = {}


def facts_of(fleet: Fleet, thread: Thread | None, processes: Iterable[Process] = ()) -> PathFacts:
    """Return what is known of the places that the remedies of one worker may name.

    Args:
        thread: its thread, or None if the worker is known by its pane.
        processes: its processes: their `HOME` is a home directory.
    """
    homes = [fleet.host.home if fleet.host else None]
    homes += [(process.env or {}).get("HOME") for process in processes]
    if thread is not None:
        homes += [home_directory(fleet, thread), thread.home, *_named_by_tilde(thread)]
    absolute_homes = tuple(dict.fromkeys(home.rstrip("/") for home in homes if home and home[0] == "/"))
    if thread is None:
        return PathFacts(kinds=fleet.paths, homes=absolute_homes)
    directories = [thread.cwd, *(call.cwd for call in thread.calls if call.denials)]
    request, file = request_of(fleet, thread), thread.file.path if thread.file else ""
    states_profile = any(period.policy.profile for period in thread.policies)
    given = request.given if request is not None and not states_profile else None
    transcripts, in_claude_home, _ = file.partition("/projects/")
    asked = fleet.requests.get(thread.id, ()) if thread.agent == "claude" else ()
    return PathFacts(
        kinds=fleet.paths if thread.denials or thread.observations else _NOTHING,
        homes=absolute_homes,
        workspaces=tuple(dict.fromkeys(filter(None, directories))),
        codex_home=codex_home_of(file),
        claude_home=transcripts if in_claude_home else None,
        profile=given.profile if given is not None else None,
        request=request,
        excluded=asked[-1].excluded if asked else (),
    )


def request_of(fleet: Fleet, thread: Thread | None) -> Requested | None:
    """Return what a thread was asked for last, or None if its arguments are not known."""
    found = newest_request(thread, fleet.requests.get(thread.id, ())) if thread is not None else None
    return found if found is not None and found.are_arguments_known else None


def _named_by_tilde(thread: Thread) -> Iterator[str]:
    """Yield the home directories that scripts name: `~/x` was denied as `/srv/ann/x`."""
    for call in thread.calls:
        targets = [denial.target for denial in call.denials if denial.target and denial.target[0] == "/"]
        for named in _BELOW_HOME.finditer(call.script or call.text) if targets else ():
            end = f"/{named[1]}"
            yield from (target.removesuffix(end) for target in targets if target.endswith(end))


class Place(NamedTuple):
    """The directory that has to be writable."""

    directory: str
    create: bool = False
    """Whether it has to be created first: what exists above it is too wide."""
    known: bool = True
    """Whether it is known to exist, or to be missing."""
    obstacle: str | None = None
    """Why it must not be opened, `/etc is a system directory`; None if it may be."""


def place_of(path: str, operation: Operation, facts: PathFacts) -> Place:
    """Return the nearest existing directory that has to be writable for an operation on an absolute path.

    Databases and locks put siblings beside a file, so that it is never the file alone. If nothing is known of
    the disk, it is the directory of the path: the operation was denied in it, so it was there.
    """
    path = posixpath.normpath(path)
    kind, start, goal = facts.kinds.get(path), posixpath.dirname(path), posixpath.dirname(path)
    repository = _up_to(path, REPOSITORY) if operation == "git" or f"/{REPOSITORY}/" in path else None
    cache = _up_to(path, _NPM_CACHE)
    if repository or cache:
        start = goal = repository or cache or ""  # a commit writes in several of its directories
    elif kind is not None and kind.is_directory and operation not in ("rename", "delete"):
        start = goal = path  # one that was to be made: it has been made since
    elif operation == "mkdir" and kind in (None, PathKind.MISSING):
        goal = path
    if private := _private_part(path, facts):
        return Place(start, obstacle=private)
    if repository and facts.kinds.get(repository) is PathKind.MISSING:
        # Codex keeps the name read-only also where nothing is there: what is above it would not help
        obstacle = _obstacle(repository, path, facts)
        return Place(repository, create=obstacle is None, obstacle=obstacle)
    directory = start
    while facts.kinds.get(directory) in (PathKind.MISSING, PathKind.FILE, PathKind.OTHER):
        directory = posixpath.dirname(directory)
    obstacle, below = _obstacle(directory, path, facts), directory
    if obstacle is None:
        return Place(directory, known=directory in facts.kinds)
    # the upper one of the missing directories on the way down that may be opened
    for name in filter(None, goal.removeprefix(directory).split("/")):
        below = posixpath.join(below, name)
        if facts.kinds.get(below, PathKind.MISSING) is PathKind.MISSING and not _obstacle(below, goal, facts):
            return Place(below, create=True)
    return Place(directory, obstacle=obstacle)


def _up_to(path: str, name: str) -> str | None:
    """Return the outermost directory of a name that a path is, or lies in."""
    parts = path.split("/")
    return "/".join(parts[: parts.index(name) + 1]) if name in parts else None


def _obstacle(directory: str, path: str, facts: PathFacts) -> str | None:
    """Return why a directory must not be opened for a path."""
    plain, kind = directory.removeprefix("/private") or "/", facts.kinds.get(directory)
    homes = _homes(directory, path, facts)
    names = {posixpath.relpath(directory, home) for home in homes if _is_below(directory, home)}
    if directory in homes:
        return f"{directory} is a home directory"
    if directory == "/":
        return "it is the whole disk"
    if any(_is_below(home, directory) for home in homes):
        return f"{directory} contains home directories"
    if private := _private_part(directory, facts):
        return private
    if any(_is_below(workspace, directory) for workspace in facts.workspaces):
        return f"{directory} contains the working directory, and what lies beside it"
    if not names.isdisjoint(_SHARED_IN_HOME):
        return f"{directory} is shared by many programs"
    if kind is PathKind.MOUNT:
        return f"{directory} is a whole disk"
    if kind is PathKind.LINK:
        return f"{directory} is a symbolic link, which may lead anywhere"
    if plain.count("/") == 1 or _SYSTEM.match(plain):
        return f"{directory} is a system directory"
    return None


def _private_part(path: str, facts: PathFacts) -> str | None:
    """Return why nothing at or below a part of this path must be opened."""
    private = min(filter(None, (_up_to(path, name) for name in _PRIVATE_NAMES)), key=len, default=None)
    if private is not None:
        return f"{private} has credentials or rules that commands must not change"
    if facts.codex_home and _is_below(path + "/", facts.codex_home):
        return f"{facts.codex_home} has the rules of Codex itself"
    return None


def _homes(directory: str, path: str, facts: PathFacts) -> set[str]:
    """Return the home directories at, above and below a directory, as far as they are known."""
    parts = path.split("/")
    above = ["/".join(parts[:count]) or "/" for count in range(1, len(parts) + 1)]
    homes = {each for each in above if facts.kinds.get(each) is PathKind.HOME or home_of(each) == each}
    if posixpath.dirname(path) == directory and _SHELL_FILES.fullmatch(posixpath.basename(path)):
        homes.add(directory)
    return homes | set(facts.homes)


def is_at_or_below(path: str, directory: str) -> bool:
    """Return whether a path is a directory, or lies in it."""
    return path == directory or _is_below(path, directory)


def _is_below(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")
