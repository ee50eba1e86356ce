"""Real hosts: an sshd on a loopback port with keys of its own, and a container made by bubblewrap.

Both run the agentdash of this checkout over a lab, as the program `agentdash` in a directory of their own.
"""

import getpass
import os
import random
import shlex
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from agentdash.config import HostSettings
from tests.live.clis import SetupError
from tests.live.patience import wait_until
from tests.live.programs import restore_defaults, run, write_program

_SSHD: Final = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
_SSHD_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
SetEnv "HOME={folder}" "PATH={path}"
"""
"""Another home: a shell reads the profile in it, and what that starts may wait for others, or be killed."""
_CLIENT_CONFIG = """
Host {name}
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
"""


def agentdash_for(folder: Path, home: Path, tmux: Path | None = None, **environment: str) -> Path:
    """Write a program `agentdash` that watches a Codex home and a tmux server, and return its path."""
    environment = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": "/nonexistent", **environment}
    command = ["env", "-u", "TMUX", *(f"{name}={value}" for name, value in environment.items())]
    command += [sys.executable, "-m", "agentdash", "--codex-home", str(home)]
    command += ["-S", str(tmux)] if tmux else ["--no-tmux"]
    return write_program(folder / "agentdash", f'exec {shlex.join(command)} "$@"')


class SshHost:
    """A host behind an sshd.

    Args:
        name: as ssh knows it.
        folder: for keys and configuration.
        agentdash: the program there.
    """

    def __init__(self, name: str, folder: Path, agentdash: Path) -> None:
        if _SSHD is None:
            raise SetupError("the live tests of hosts need an sshd: install openssh-server")
        self.name = name
        self.agentdash = agentdash
        self._folder = folder
        for key in ("host_key", "user_key"):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        self.port = _free_port()
        values = {"name": name, "port": self.port, "user": getpass.getuser(), "folder": folder}
        values["path"] = os.environ["PATH"]
        (folder / "sshd_config").write_text(_SSHD_CONFIG.format(**values))
        self.client_config = _CLIENT_CONFIG.format(**values)
        public = (folder / "host_key.pub").read_text()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}")
        self._sshd: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def settings(self) -> HostSettings:
        return HostSettings(command=str(self.agentdash))

    def start(self) -> None:
        """Start the sshd, and wait until it listens."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # where it drops its privileges
        with (self._folder / "log").open("ab") as log:
            self._sshd = subprocess.Popen(
                [*self._without_tty_group(), str(_SSHD), "-D", "-e", "-f", f"{self._folder}/sshd_config"],
                stdin=subprocess.DEVNULL,
                stderr=log,
                preexec_fn=restore_defaults,  # noqa: PLW1509 - only sets signals
            )
        wait_until(self._listens, f"sshd of {self.name}: {(self._folder / 'log').read_text()}")

    def _without_tty_group(self) -> list[str]:
        """Return the command in which an sshd of an unprivileged user can open terminals.

        It gives them to the group `tty`, which only root may, unless `/dev/pts` is mounted with `gid=5`;
        where there is no such group it leaves them as they are.
        """
        if os.geteuid() == 0:
            return []
        groups = Path("/etc/group").read_text().splitlines(keepends=True)
        group = self._folder / "group"
        group.write_text("".join(line for line in groups if not line.startswith("tty:")))
        return ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(group), "/etc/group", "--"]

    def stop(self) -> None:
        """Kill the sshd with all its sessions."""
        if self._sshd is not None:
            _kill_below(self._sshd)
            self._sshd = None

    def watches(self) -> list[psutil.Process]:
        """Return every agentdash that runs there for another one."""
        assert self._sshd is not None
        found = []
        for process in psutil.Process(self._sshd.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if {"agentdash", "--watch"} <= {*process.cmdline()}:
                    found.append(process)
        return found

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            return connection.recv(4) == b"SSH-"
        return False


def _kill_below(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all that it has started."""
    for each in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            each.kill()
    process.kill()
    process.wait()


def _free_port() -> int:
    """Return a port below those that the system gives out by itself: it stays free without an sshd."""
    for port in random.sample(range(20_000, 32_000), 100):
        with suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            return port
    raise SetupError("no port is free for an sshd")


class Container:
    """A container with processes and users of its own; a command gets into it as by `docker exec`."""

    def __init__(self) -> None:
        command = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--unshare-pid", "--proc", "/proc"]
        self._bwrap = subprocess.Popen(
            [*command, "--die-with-parent", "sleep", "3600"],
            stdin=subprocess.DEVNULL,
            preexec_fn=restore_defaults,  # noqa: PLW1509 - only sets signals
        )
        wait_until(lambda: self._init() is not None, "the container")

    @property
    def carrier(self) -> str:
        """Return the command template that runs a shell line in it."""
        init = self._init()
        assert init is not None
        spaces = f"-t {init} -U -m -p --preserve-credentials"
        return f"nsenter {spaces} sh -c {{}}"

    def start(self, command: list[str], **environment: str) -> subprocess.Popen[bytes]:
        """Start a program in it."""
        words = shlex.split(self.carrier.replace("{}", shlex.quote(f"exec {shlex.join(command)}")))
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        env = {**os.environ, **environment}
        return subprocess.Popen(words, env=env, preexec_fn=restore_defaults, **streams)  # noqa: PLW1509 - signals

    def stop(self) -> None:
        """End it with all that runs in it."""
        _kill_below(self._bwrap)

    def _init(self) -> int | None:
        """Return the pid of its `sleep`, as numbered here."""
        for process in psutil.Process(self._bwrap.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.name() == "sleep":
                    return process.pid
        return None
