"""The places of this machine that are worth protecting from workers: sockets by which commands get out of a
sandbox, files that others run or trust, keys and tokens."""

# ruff: noqa: PTH111, PTH207 - paths are strings here, as processes see them

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from agentdash.collect.processes import linux
from agentdash.model.reach import Action, ReachKind, ReachTarget
from agentdash.model.sanitize import clean_line

_MAX_SOCKETS: Final = 20
"""Of one pattern: users have a few tmux servers and ssh agents."""
_RUNTIME: Final = "$XDG_RUNTIME_DIR"

_SOCKETS: Final = (
    (ReachKind.ESCAPE, "/run/docker.sock", "Docker: root on this machine"),
    (ReachKind.ESCAPE, "/var/run/docker.sock", "Docker: root on this machine"),
    (ReachKind.ESCAPE, f"{_RUNTIME}/docker.sock", "rootless Docker: runs anything as you"),
    (ReachKind.ESCAPE, "~/.docker/run/docker.sock", "Docker Desktop"),
    (ReachKind.ESCAPE, "/run/podman/podman.sock", "Podman: root on this machine"),
    (ReachKind.ESCAPE, f"{_RUNTIME}/podman/podman.sock", "Podman: runs anything as you"),
    (ReachKind.ESCAPE, "/run/containerd/containerd.sock", "containerd: root on this machine"),
    (ReachKind.ESCAPE, "/run/crio/crio.sock", "CRI-O: root on this machine"),
    (ReachKind.ESCAPE, f"{_RUNTIME}/bus", "session bus: systemd runs anything as you"),
    (ReachKind.ESCAPE, "$TMUX_TMPDIR/tmux-$UID/*", "tmux: runs anything in your session"),
    (ReachKind.ESCAPE, "/tmp/tmux-$UID/*", "tmux: runs anything in your session"),  # noqa: S108
    (ReachKind.ESCAPE, "/run/screen/S-$USER/*", "screen: runs anything in your session"),
    (ReachKind.CREDENTIALS, "$SSH_AUTH_SOCK", "ssh agent: signs with your keys"),
    (ReachKind.CREDENTIALS, "/tmp/ssh-*/agent.*", "ssh agent: signs with your keys"),  # noqa: S108
    (ReachKind.CREDENTIALS, "~/.ssh/agent/*", "ssh agent: signs with your keys"),
    (ReachKind.CREDENTIALS, f"{_RUNTIME}/keyring/ssh", "key ring: signs with your keys"),
    (ReachKind.CREDENTIALS, f"{_RUNTIME}/gnupg/S.gpg-agent", "GnuPG agent: signs with your keys"),
    (ReachKind.CREDENTIALS, "~/.gnupg/S.gpg-agent", "GnuPG agent: signs with your keys"),
)
_TAKEOVERS: Final = (
    ("~/.ssh/authorized_keys", "logins as you"),
    ("~/.ssh/config", "what ssh runs"),
    ("~/.bashrc", "each new shell runs it"),
    ("~/.bash_profile", "each login runs it"),
    ("~/.profile", "each login runs it"),
    ("~/.zshrc", "each new shell runs it"),
    ("~/.zshenv", "each new shell runs it"),
    ("~/.config/fish/config.fish", "each new shell runs it"),
    ("~/.gitconfig", "what git runs"),
    ("~/.config/git/config", "what git runs"),
    ("~/.local/bin", "programs on your PATH"),
    ("~/bin", "programs on your PATH"),
    ("~/.config/systemd/user", "services that run as you"),
    ("~/.config/autostart", "each session runs it"),
    ("~/.tmux.conf", "what tmux runs"),
    ("$CODEX_HOME/config.toml", "Codex's own sandbox"),
    ("$CLAUDE_CONFIG_DIR/settings.json", "Claude Code's own sandbox"),
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
        "USER": os.path.basename(home),  # noqa: PTH119
        **environ,
        "UID": str(os.getuid()),
    }
    found = [*_sockets(names), *_secrets(names)]
    for path, what in _TAKEOVERS:
        found += [_target(ReachKind.TAKEOVER, each, what, "write") for each in _filled(path, names)]
    return list({(target.path, target.action): target for target in found}.values())


def with_fleet(
    targets: Iterable[ReachTarget], servers: Iterable[str], own: str | None, trees: Mapping[str, str]
) -> list[ReachTarget]:
    """Return the targets with those that a fleet adds: tmux servers, and the directories of other workers.

    Args:
        targets: of this machine.
        servers: tmux servers, as `PaneKey.server` names them; those named by a path are added.
        own: the directory of the worker: those above and below it are none of others.
        trees: directories of workers, and their names.
    """
    sockets = (
        _target(ReachKind.ESCAPE, server, "tmux: runs anything in your session", "connect")
        for server in sorted(servers)
        if server.startswith("/")
    )
    others = (
        _target(ReachKind.WORKER, path, f"where {name} works", "write")
        for path, name in trees.items()
        if not f"{own}/".startswith(f"{path}/") and not f"{path}/".startswith(f"{own}/")
    )
    found = (*targets, *sockets, *others)
    return list({(target.path, target.action): target for target in found}.values())


def _sockets(names: Mapping[str, str]) -> Iterator[ReachTarget]:
    bound = linux.bound_sockets()
    for kind, pattern, what in _SOCKETS:
        for path in _existing(pattern, names, bound if "*" in pattern else None):
            yield _target(kind, os.path.realpath(path), what, "connect")


def _secrets(names: Mapping[str, str]) -> Iterator[ReachTarget]:
    for pattern, what in _SECRETS:
        for path in _existing(pattern, names):
            if path.endswith(".pub"):
                continue
            yield _target(ReachKind.SECRET, path, what, "read")
            yield _target(ReachKind.SECRET, path, what, "write")


def _existing(pattern: str, names: Mapping[str, str], among: frozenset[str] | None = None) -> list[str]:
    """Return the paths that a pattern matches; those that this user may not list are left out.

    Args:
        pattern: with variables.
        names: their values.
        among: paths of sockets that a server has bound: others were left behind.
    """
    paths = (path for filled in _filled(pattern, names) for path in sorted(glob.glob(filled)))
    return [path for path in paths if among is None or path in among][:_MAX_SOCKETS]


def _filled(pattern: str, names: Mapping[str, str]) -> list[str]:
    """Return the pattern with variables and `~` replaced; nothing where a variable is not set."""
    for name, value in names.items():
        pattern = pattern.replace(f"${name}", value) if value and f"${name}" in pattern else pattern
    path = os.path.expanduser(pattern)
    return [path] if path.startswith("/") and "$" not in path else []


def _target(kind: ReachKind, path: str, what: str, action: Action) -> ReachTarget:
    return ReachTarget(kind=kind, path=clean_line(path), what=what, action=action)
