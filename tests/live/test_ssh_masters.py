"""A shared ssh connection is used only where its master is proven to be the user's own ssh."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agentdash.collect.remote.carrier import carrier
from agentdash.collect.remote.child import run_there
from agentdash.config import HostSettings
from tests.live.patience import scaled, wait_until
from tests.live.ssh_hosts import SshHost

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sshd and bubblewrap as Debian has them")
_LISTENER = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n"
    "c = s.accept()[0]\n"
    "while data := c.recv(4096): open(sys.argv[2], 'ab').write(data)"
)
"""Writes what it is sent to a file."""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SshHost]:
    program = tmp_path / "agentdash"
    program.write_text("#!/bin/sh\necho $SSH_CONNECTION\n")
    program.chmod(0o755)
    host = SshHost("there", tmp_path, program)
    (tmp_path / "config").write_text(
        f"{host.client_config}\n  ControlMaster auto\n  ControlPath {tmp_path}/m\n"
    )
    yield host
    host.stop()


@contextmanager
def own_master(folder: Path) -> Iterator[None]:
    ssh = ("ssh", "-F", str(folder / "config"), "-M", "-N", "there")
    with subprocess.Popen(ssh, stdin=subprocess.DEVNULL) as master:
        try:
            wait_until((folder / "m").exists, "the master")
            yield
        finally:
            master.terminate()


@contextmanager
def false_master(folder: Path, *wrapper: str) -> Iterator[None]:
    command = (*wrapper, sys.executable, "-ISc", _LISTENER, str(folder / "m"), str(folder / "told"))
    with subprocess.Popen(command) as listener:
        try:
            wait_until((folder / "m").exists, "the listener")
            yield
            assert not (folder / "told").exists()
        finally:
            listener.kill()


@pytest.mark.parametrize(
    ("master", "is_shared"),
    [
        (own_master, True),
        (false_master, False),
        (lambda folder: false_master(folder, "bwrap", "--dev-bind", "/", "/", "--unshare-user"), False),
        (lambda _: ExitStack(), False),
    ],
    ids=["its own", "another program", "in a sandbox", "none"],
)
async def test_only_a_proven_master_is_used(
    host: SshHost, tmp_path: Path, master: Callable[[Path], contextmanager[None]], is_shared: bool
) -> None:
    """The agentdash there prints its connection: one for all that share it."""
    settings = HostSettings(command=str(host.agentdash))
    argv = carrier("there", settings, tmp_path / "config").argv("")
    with master(tmp_path):
        answers = [await run_there(argv, limit_s=scaled(20), max_bytes=1 << 20) for _ in range(2)]
        assert [answer.code for answer in answers] == [0, 0], answers
        assert (answers[0].output == answers[1].output) is is_shared
