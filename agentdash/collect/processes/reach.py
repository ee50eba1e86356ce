"""What a process could reach: each target by the path under which the process sees it."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from agentdash.collect.processes import linux
from agentdash.collect.processes.path_rights import PathRights
from agentdash.model.process import Kernel
from agentdash.model.reach import STRENGTH, Action, Reach, Reached, ReachKind, ReachTarget
from agentdash.model.sanitize import clean_line
from agentdash.model.state_paths import Mount

# ruff: noqa: PTH111, PTH116, PTH207 - paths are strings here, as processes see them


_SECCOMP_FILTER: Final = 2
_NETWORK: Final = ReachTarget(
    kind=ReachKind.NETWORK, path="network", what="everything that this machine reaches", action="connect"
)


def reach_of(pid: int, targets: Iterable[ReachTarget]) -> Reach | None:
    """Return what a process could reach, or None if it is gone, or of another user.

    Args:
        pid: of the process, in agentdash's pid namespace.
        targets: places of this machine, as agentdash sees them.
    """
    kernel = linux.kernel(pid)
    if kernel is None or kernel.mnt is None:
        return None
    rights = PathRights(pid)
    limits = _limits(pid, kernel)
    own = linux.own_mounts()
    found = [_reached(pid, rights, target, own, limited=bool(limits)) for target in targets]
    return Reach((*found, _network(pid, kernel, limited=bool(limits))), limits)


def _reached(
    pid: int, rights: PathRights, target: ReachTarget, own: Sequence[Mount], *, limited: bool
) -> Reached:
    """Return whether the process reaches the target itself, and not a copy of its own in its place."""
    results = []
    place = _identities(target.path)
    for path in dict.fromkeys((target.path, *linux.aliases(target.path, own, rights.mounts or ()))):
        right = rights.may(target.action, path)
        if right.granted is None:
            results.append(Reached(target, "unknown", right.how))
        elif not right.granted:
            results.append(Reached(target, "cannot", right.how))
        elif _is_part(pid, right.at, place):
            how = right.how if path == target.path else f"{right.how} as {clean_line(path)}".strip()
            results.append(Reached(target, "may" if limited else "can", how))
        else:
            results.append(Reached(target, "cannot", "it has a copy of its own there"))
    return min(results, key=lambda each: STRENGTH.index(each.certainty))


def _is_part(pid: int, path: str, place: frozenset[tuple[int, int]]) -> bool:
    """Return whether a path of the process is a part of a place of this machine: what is written to a tmpfs
    over a home does not change the home, and an empty file over a key does not give the key away."""
    try:
        theirs = os.stat(f"/proc/{pid}/root{path}", follow_symlinks=False)
    except OSError:
        return True
    return (theirs.st_dev, theirs.st_ino) in place


def _identities(path: str) -> frozenset[tuple[int, int]]:
    """Return device and inode of a path and of the directories above it, as agentdash sees them."""
    found = set()
    for each in {path, os.path.realpath(path)}:
        parts = each.split("/")
        for number in range(1, len(parts) + 1):
            with suppress(OSError):
                entry = os.stat("/".join(parts[:number]) or "/", follow_symlinks=False)
                found.add((entry.st_dev, entry.st_ino))
    return frozenset(found)


def _limits(pid: int, kernel: Kernel) -> tuple[str, ...]:
    """Return what could refuse more than is visible."""
    label = linux.security_label(pid)
    found = (
        "a seccomp filter" if kernel.seccomp == _SECCOMP_FILTER else "",
        "Landlock, which no_new_privs allows" if kernel.no_new_privs else "",
        f"the security module ({clean_line(label, 60)})" if label and "unconfined" not in label else "",
    )
    return tuple(filter(None, found))


def _network(pid: int, kernel: Kernel, *, limited: bool) -> Reached:
    own = linux.kernel(os.getpid())
    if own is not None and kernel.net == own.net:
        return Reached(_NETWORK, "may" if limited else "can", "the same network namespace")
    others = [name for name in linux.interfaces(pid) if name != "lo"]
    if others:
        return Reached(_NETWORK, "may", f"a namespace of its own with {clean_line(', '.join(others[:3]))}")
    return Reached(_NETWORK, "cannot", "a namespace of its own, with loopback alone")


# ------------------------------------------------------------
# The places of this machine that are worth protecting from workers: sockets by which commands get out of a
# sandbox, files that others run or trust, keys and tokens


_MAX_SOCKETS: Final = 20
"""Of one pattern: users have a few tmux servers and ssh agents."""
_TMUX: Final = "tmux: runs anything in your session"
_SOCKETS: Final = (
    (ReachKind.ESCAPE, "/run/docker.sock", "Docker: root on this machine"),
    (ReachKind.ESCAPE, "$XDG_RUNTIME_DIR/docker.sock", "rootless Docker: runs anything as you"),
    (ReachKind.ESCAPE, "~/.docker/run/docker.sock", "Docker Desktop"),
    (ReachKind.ESCAPE, "/run/podman/podman.sock", "Podman: root on this machine"),
    (ReachKind.ESCAPE, "$XDG_RUNTIME_DIR/podman/podman.sock", "Podman: runs anything as you"),
    (ReachKind.ESCAPE, "/run/containerd/containerd.sock", "containerd: root on this machine"),
    (ReachKind.ESCAPE, "/run/crio/crio.sock", "CRI-O: root on this machine"),
    (ReachKind.ESCAPE, "$XDG_RUNTIME_DIR/bus", "session bus: systemd runs anything as you"),
    (ReachKind.ESCAPE, "$TMUX_TMPDIR/tmux-$UID/*", _TMUX),
    (ReachKind.ESCAPE, "/tmp/tmux-$UID/*", _TMUX),  # noqa: S108
    (ReachKind.ESCAPE, "/run/screen/S-$USER/*", "screen: runs anything in your session"),
    (ReachKind.CREDENTIALS, "$SSH_AUTH_SOCK", "ssh agent: signs with your keys"),
    (ReachKind.CREDENTIALS, "/tmp/ssh-*/agent.*", "ssh agent: signs with your keys"),  # noqa: S108
    (ReachKind.CREDENTIALS, "~/.ssh/agent/*", "ssh agent: signs with your keys"),
    (ReachKind.CREDENTIALS, "$XDG_RUNTIME_DIR/keyring/ssh", "key ring: signs with your keys"),
    (ReachKind.CREDENTIALS, "$XDG_RUNTIME_DIR/gnupg/S.gpg-agent", "GnuPG agent: signs with your keys"),
    (ReachKind.CREDENTIALS, "~/.gnupg/S.gpg-agent", "GnuPG agent: signs with your keys"),
)
_SHELL: Final = "each new shell runs it"
_TAKEOVERS: Final = (
    ("~/.ssh/authorized_keys", "logins as you"),
    ("~/.ssh/config", "what ssh runs"),
    *((f"~/{name}", _SHELL) for name in (".bashrc", ".zshrc", ".zshenv", ".config/fish/config.fish")),
    *((f"~/{name}", "each login runs it") for name in (".bash_profile", ".profile")),
    ("~/.gitconfig", "what git runs"),
    ("~/.config/git/config", "what git runs"),
    ("~/.local/bin", "programs on your PATH"),
    ("~/bin", "programs on your PATH"),
    ("~/.config/systemd/user", "services that run as you"),
    ("~/.config/autostart", "each session runs it"),
    ("~/.tmux.conf", "what tmux runs"),
    ("$CODEX_HOME/config.toml", "Codex's own sandbox"),
    ("$CLAUDE_CONFIG_DIR/settings.json", "Claude Code's own sandbox"),
    ("$XDG_STATE_HOME/agentdash", "what agentdash remembers and tells others"),
    ("/usr/local/bin", "programs on everyone's PATH"),
    ("/etc/passwd", "the users of this machine"),
    ("/etc/cron.d", "runs as root"),
)
_SECRETS: Final = (
    ("~/.ssh/id_*", "private key"),
    ("~/.aws/credentials", "keys of AWS"),
    ("~/.config/gcloud/credentials.db", "keys of Google Cloud"),
    ("~/.config/gcloud/application_default_credentials.json", "keys of Google Cloud"),
    ("~/.azure/msal_token_cache.json", "tokens of Azure"),
    ("~/.kube/config", "keys of Kubernetes"),
    ("~/.config/gh/hosts.yml", "token of GitHub"),
    ("~/.git-credentials", "passwords of git"),
    ("~/.netrc", "passwords"),
    ("~/.docker/config.json", "tokens of registries"),
    ("~/.npmrc", "token of npm"),
    ("~/.pypirc", "token of PyPI"),
    ("~/.gnupg/private-keys-v1.d", "private keys"),
    ("$CODEX_HOME/auth.json", "token of Codex"),
    ("$CLAUDE_CONFIG_DIR/.credentials.json", "token of Claude Code"),
    ("/etc/shadow", "passwords of this machine"),
)


def reach_targets(environ: Mapping[str, str] = os.environ) -> list[ReachTarget]:
    """Return the targets of this user: sockets and secrets that exist, and files that could be created.

    Args:
        environ: agentdash's own environment, which workers share.
    """
    home = os.path.expanduser("~")
    names = {
        "CODEX_HOME": f"{home}/.codex",
        "CLAUDE_CONFIG_DIR": f"{home}/.claude",
        "XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}",
        "XDG_STATE_HOME": f"{home}/.local/state",
        "USER": os.path.basename(home),  # noqa: PTH119
        **environ,
        "UID": str(os.getuid()),
    }
    found = []
    bound = linux.bound_sockets()
    for kind, pattern, what in _SOCKETS:
        paths = _existing(pattern, names)
        if "*" in pattern and bound is not None:  # others were left behind by their servers
            paths = [path for path in paths if path in bound]
        real = (os.path.realpath(path) for path in paths[:_MAX_SOCKETS])
        found += [_target(kind, path, what, "connect") for path in real]
    for pattern, what in _SECRETS:
        paths = [path for path in _existing(pattern, names) if not path.endswith(".pub")]
        found += [
            _target(ReachKind.SECRET, path, what, action) for path in paths for action in ("read", "write")
        ]
    for pattern, what in _TAKEOVERS:
        if (path := _filled(pattern, names)) is not None:
            found.append(_target(ReachKind.TAKEOVER, path, what, "write"))
    return _each_once(found)


def with_fleet(
    targets: Iterable[ReachTarget], servers: Iterable[str], own: str | None, trees: Mapping[str, str]
) -> list[ReachTarget]:
    """Return the targets with those that a fleet adds: tmux servers, and the directories of other workers.

    Args:
        targets: of this machine.
        servers: tmux servers, as `PaneKey.server` names them; those named by a path are added.
        own: the directory of the worker; those above and below it are left out.
        trees: directories of workers, and their names.
    """
    sockets = (
        _target(ReachKind.ESCAPE, server, _TMUX, "connect")
        for server in sorted(servers)
        if server.startswith("/")
    )
    others = (
        _target(ReachKind.WORKER, path, f"where {name} works", "write")
        for path, name in trees.items()
        if not f"{own}/".startswith(f"{path}/") and not f"{path}/".startswith(f"{own}/")
    )
    return _each_once([*targets, *sockets, *others])


def _each_once(targets: list[ReachTarget]) -> list[ReachTarget]:
    return list({(target.path, target.action): target for target in targets}.values())


def _existing(pattern: str, names: Mapping[str, str]) -> list[str]:
    """Return the paths that a pattern matches; those that this user may not list are left out."""
    filled = _filled(pattern, names)
    return sorted(glob.glob(filled)) if filled else []


def _filled(pattern: str, names: Mapping[str, str]) -> str | None:
    """Return the pattern with variables and `~` replaced, or None if one is not set."""
    for name, value in names.items():
        pattern = pattern.replace(f"${name}", value) if value and f"${name}" in pattern else pattern
    path = os.path.expanduser(pattern)
    return path if path.startswith("/") and "$" not in path else None


def _target(kind: ReachKind, path: str, what: str, action: Action) -> ReachTarget:
    return ReachTarget(kind=kind, path=clean_line(path), what=what, action=action)
