"""Choose the directory that has to be writable for a denied path, and decide whether it may be opened."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from agentdash.engine.detect.home_paths import home_of
from agentdash.engine.judge.findings.requests import newest_request
from agentdash.engine.link.process_tree import home_directory
from agentdash.model.command_rules import codex_home_of
from agentdash.model.denials import Operation, PathFacts, PathKind
from agentdash.model.fleet import FleetView
from agentdash.model.process import Process
from agentdash.model.requested import Requested
from agentdash.model.thread import Thread

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
"""Directories below a home that many programs share, or of which the user's shell runs programs."""
_SHELL_FILES: Final = re.compile(
    r"\.(?:bash\w*|profile|zsh\w*|zprofile|zlogin|login|inputrc|netrc|gitconfig)"
)
"""Files that lie directly in a home directory."""
_BELOW_HOME: Final = re.compile(r"(?<![\w/.])(?:~|\$HOME|\$\{HOME\})/([\w./@+-]+)")
_NOTHING: Final[Mapping[str, PathKind]] = {}


def facts_of(fleet: FleetView, thread: Thread | None, processes: Iterable[Process] = ()) -> PathFacts:
    """Return what is known of the places that the remedies of one worker may name.

    Args:
        thread: its thread; None of a worker that is known by its pane.
        processes: its processes: their `HOME` is a home directory.
    """
    homes = [fleet.host.home if fleet.host else None]
    homes += [(process.env or {}).get("HOME") for process in processes]
    directories: list[str | None] = []
    if thread is not None:
        homes += [home_directory(fleet, thread), thread.home, *_named_by_tilde(thread)]
        directories = [thread.cwd, *(call.cwd for call in thread.calls if call.denials)]
    request = request_of(fleet, thread)
    has_paths = thread is None or bool(thread.denials or thread.observations)
    return PathFacts(
        kinds=fleet.paths if has_paths else _NOTHING,
        homes=tuple(dict.fromkeys(home.rstrip("/") for home in homes if home and home.startswith("/"))),
        workspaces=tuple(dict.fromkeys(filter(None, directories))),
        codex_home=_codex_home(thread),
        claude_home=_claude_home(thread),
        profile=_given_profile(thread, request),
        request=request,
        excluded=_excluded(fleet, thread),
    )


def request_of(fleet: FleetView, thread: Thread | None) -> Requested | None:
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


def _given_profile(thread: Thread | None, request: Requested | None) -> str | None:
    """Return the permission profile that a Codex was asked for; None where its policies state theirs."""
    if thread is None or any(period.policy.profile for period in thread.policies):
        return None
    return request.given.profile if request is not None and request.given is not None else None


def _excluded(fleet: FleetView, thread: Thread | None) -> tuple[str, ...]:
    """Return the commands that a Claude Code was to run without its sandbox."""
    requests = fleet.requests.get(thread.id, ()) if thread is not None and thread.agent == "claude" else ()
    return requests[-1].excluded if requests else ()


def _codex_home(thread: Thread | None) -> str | None:
    """Return the Codex home that a thread's rollout lies in."""
    if thread is None:
        return None
    return codex_home_of(thread.path or (thread.file.path if thread.file else ""))


def _claude_home(thread: Thread | None) -> str | None:
    """Return the configuration directory of Claude Code that a thread's transcript lies in."""
    path = thread.file.path if thread is not None and thread.file is not None else ""
    home, projects, _ = path.partition("/projects/")
    return home if projects else None


class Place(NamedTuple):
    """The directory that has to be writable."""

    directory: str
    create: bool = False
    """Whether it has to be created first: what exists above it is too wide."""
    known: bool = True
    """Whether it is known to exist, or to be missing."""
    obstacle: str | None = None
    """Why it must not be opened, `/etc is a system directory`; None where it may be."""


def place_of(path: str, operation: Operation, facts: PathFacts) -> Place:
    """Return the nearest existing directory that has to be writable for an operation on an absolute path.

    Databases and locks put siblings beside a file, so that it is never the file alone. Where nothing is
    known of the disk, it is the directory of the path: the operation was denied in it, so it was there.
    """
    path = posixpath.normpath(path)
    start, may_create = _start(path, operation, facts)
    if private := _private_part(path, facts):
        return Place(start, obstacle=private)
    repository = repository_of(path)
    if repository and facts.kinds.get(repository) is PathKind.MISSING:
        # Codex keeps the name read-only also where nothing is there: what is above it would not help
        obstacle = _obstacle(repository, path, facts)
        return Place(repository, create=obstacle is None, obstacle=obstacle)
    directory = start
    while facts.kinds.get(directory) in (PathKind.MISSING, PathKind.FILE, PathKind.OTHER):
        directory = posixpath.dirname(directory)
    obstacle = _obstacle(directory, path, facts)
    if obstacle is None:
        return Place(directory, known=directory in facts.kinds)
    created = next(_openable_below(directory, path if may_create else start, facts), None)
    if created is not None:
        return Place(created, create=True)
    return Place(directory, obstacle=obstacle)


def repository_of(path: str) -> str | None:
    """Return the `.git` directory that a path is, or lies in; the outermost one."""
    return _up_to(path, REPOSITORY)


def _up_to(path: str, name: str) -> str | None:
    """Return the outermost directory of a name that a path is, or lies in."""
    parts = path.split("/")
    return "/".join(parts[: parts.index(name) + 1]) if name in parts else None


def _start(path: str, operation: Operation, facts: PathFacts) -> tuple[str, bool]:
    """Return where to look for the directory, and whether the path itself may be one to create."""
    kind = facts.kinds.get(path)
    if repository := repository_of(path):
        return repository, False  # a commit writes in several of its directories
    if cache := _up_to(path, _NPM_CACHE):
        return cache, False
    if kind is not None and kind.is_directory and operation not in ("rename", "delete"):
        return path, False  # one that was to be made: it has been made since
    return posixpath.dirname(path), operation == "mkdir" and kind in (None, PathKind.MISSING)


def _openable_below(directory: str, goal: str, facts: PathFacts) -> Iterator[str]:
    """Yield the missing directories on the way from a directory down to `goal` that may be opened, the upper
    ones first."""
    rest = goal.removeprefix(directory).strip("/")
    if goal == directory or not rest:
        return
    below = directory
    for name in rest.split("/"):
        below = posixpath.join(below, name)
        if facts.kinds.get(below, PathKind.MISSING) is PathKind.MISSING and not _obstacle(below, goal, facts):
            yield below


def _obstacle(directory: str, path: str, facts: PathFacts) -> str | None:
    """Return why a directory must not be opened."""
    plain = directory.removeprefix("/private") or "/"
    homes = _homes(directory, path, facts)
    if directory in homes:
        return f"{directory} is a home directory"
    if directory == "/" or any(_is_below(home, directory) for home in homes):
        return f"{directory} contains home directories" if directory != "/" else "it is the whole disk"
    if private := _private_part(directory, facts):
        return private
    if any(_is_below(workspace, directory) for workspace in facts.workspaces):
        return f"{directory} contains the working directory, and what lies beside it"
    if any(
        posixpath.relpath(directory, home) in _SHARED_IN_HOME for home in homes if _is_below(directory, home)
    ):
        return f"{directory} is shared by many programs"
    if facts.kinds.get(directory) is PathKind.MOUNT:
        return f"{directory} is a whole disk"
    if facts.kinds.get(directory) is PathKind.LINK:
        return f"{directory} is a symbolic link, which may lead anywhere"
    if plain.count("/") == 1 or _SYSTEM.match(plain):
        return f"{directory} is a system directory"
    return None


def _private_part(path: str, facts: PathFacts) -> str | None:
    """Return why nothing at or below a part of this path must be opened."""
    parts = path.split("/")
    number = next((number for number, part in enumerate(parts) if part in _PRIVATE_NAMES), None)
    if number is not None:
        return f"{'/'.join(parts[: number + 1])} has credentials or rules that commands must not change"
    if facts.codex_home and _is_below(path + "/", facts.codex_home):
        return f"{facts.codex_home} has the rules of Codex itself"
    return None


def _homes(directory: str, path: str, facts: PathFacts) -> set[str]:
    """Return the home directories at, above and below a directory, as far as they are known."""
    homes = set(facts.homes)
    for above in _with_parents(path):
        if facts.kinds.get(above) is PathKind.HOME or home_of(above) == above:
            homes.add(above)
    if posixpath.dirname(path) == directory and _SHELL_FILES.fullmatch(posixpath.basename(path)):
        homes.add(directory)
    return homes


def _with_parents(path: str) -> Iterator[str]:
    while True:
        yield path
        parent = posixpath.dirname(path)
        if parent == path:
            return
        path = parent


def absolute(path: str, facts: PathFacts) -> str:
    """Return a path with its `~` replaced, where a single home is known, and normalised; else as it is."""
    if path.startswith("~/") and len(facts.homes) == 1:
        return facts.homes[0] + path[1:]
    return posixpath.normpath(path) if path.startswith("/") else path


def is_at_or_below(path: str, directory: str) -> bool:
    """Return whether a path is a directory, or lies in it."""
    return path == directory or _is_below(path, directory)


def _is_below(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")
