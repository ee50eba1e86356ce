"""Real Codex workers of other hosts, over sshd and in a container; and which ssh connections are shared."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentdash.collect.remote.carrier import carrier
from agentdash.collect.remote.child import run_there
from agentdash.config import Config, HostSettings
from agentdash.documents.worker import WorkerReport, document
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from tests.live.codex import MENU, Lab
from tests.live.conftest import OpenLab
from tests.live.patience import scaled, until
from tests.live.programs import write_program
from tests.live.ssh_hosts import Container, SshHost, agentdash_for
from tests.live.watched import Watched, thread_in, watching_config
from tests.live.watched import watching as directly

FULL = ("-s", "danger-full-access")
LEAKED = ("-c", 'shell_environment_policy.set={CODEX_SANDBOX="seatbelt"}')
OpenHost = Callable[..., SshHost]


@pytest.fixture
def ssh_host(tmp_path: Path) -> Iterator[OpenHost]:
    """Return a function that starts a host over a lab, with a name."""
    with ExitStack() as hosts:

        def open_host(name: str, lab: Lab, **environment: str) -> SshHost:
            folder = tmp_path / name
            folder.mkdir()
            host = SshHost(name, folder, agentdash_for(folder, lab.home, lab.tmux, **environment))
            hosts.callback(host.stop)
            return host

        yield open_host


@asynccontextmanager
async def watching(
    folder: Path, hosts: Mapping[str, HostSettings], ssh_config: str = ""
) -> AsyncIterator[Watched]:
    """Yield a hub over these hosts, and no workers of this machine."""
    (folder / "ssh_config").write_text(ssh_config)
    (folder / "home").mkdir()
    here = {"codex_home": folder / "home", "claude_home": folder / "home", "tmux": False}
    config = Config(**here, hosts=dict(hosts), ssh_config=folder / "ssh_config")
    async with watching_config(config) as watched:
        yield watched


def ssh_hosts(*hosts: SshHost) -> dict[str, Any]:
    return {
        "hosts": {host.name: host.settings for host in hosts},
        "ssh_config": "".join(host.client_config for host in hosts),
    }


def workers_of(snapshot: Snapshot | None, host: str) -> list[Worker]:
    return [worker for worker in snapshot.workers if worker.host == host] if snapshot else []


def essence(worker: Worker) -> dict[str, Any]:
    """Return what a host states of a worker, without what depends on when or where it was looked at."""
    report = msgspec.to_builtins(document(WorkerReport, worker))
    sandbox = report["sandbox"]
    return {
        "id": report["id"].split(":")[-1],
        **{name: report[name] for name in ("state", "fact", "pane")},
        **{name: sandbox[name] for name in ("verdict", "configured", "got")},
        "findings": [(finding["kind"], finding["message"]) for finding in sandbox["findings"]],
    }


async def test_states_and_verdicts_are_those_of_the_hosts(
    codex: OpenLab, ssh_host: OpenHost, tmp_path: Path
) -> None:
    """Two hosts with real workers; then one is cut off and comes back, and the other is stopped."""
    asking = codex({"ask": [{"run": "touch /opt/x", "escalate": "May I?"}, {"say": "done"}]})
    flagged = codex({"work": [{"run": "env | grep ^CODEX"}, {"say": "all done"}]})
    build1, gpu2 = ssh_host("build1", asking), ssh_host("gpu2", flagged)
    pane = await asking.tui()
    pane.submit("[[ask]] go")
    await pane.shows(MENU)
    # over before anybody looks: who sees a command alive has more evidence than its output
    over = flagged.exec("[[work]] go", *FULL, *LEAKED)
    is_over = ("display-message", "-p", "-t", over.id, "#{pane_dead}")
    await until(lambda: flagged.run_tmux(*is_over).strip() == "1", "the end of the run")

    async with watching(tmp_path, **ssh_hosts(build1, gpu2)) as watched:
        waiting = await watched.until(thread_in(State.WAITING_APPROVAL), host="build1")
        done = await watched.until(thread_in(State.COMPLETED), host="gpu2")
        await watched.until(id=done.id, verdict="mismatch")

        # beside them, another agentdash on each host
        async with directly(asking) as at_build1, directly(flagged) as at_gpu2:
            for name, there in (("build1", at_build1), ("gpu2", at_gpu2)):

                def is_equal(name: str = name, there: Watched = there) -> bool:
                    shown = [essence(w) for w in workers_of(watched.snapshot, name)]
                    seen = [essence(w) for w in (there.snapshot or Snapshot(0.0)).workers]
                    return bool(shown) and shown == seen

                await until(is_equal, f"the workers of {name} as they are seen there")

        # cut: the sshd and its sessions are killed
        gpu2.stop()
        lost = await watched.until(id=done.id, state=State.UNREACHABLE)
        assert "no news from gpu2" in lost.assessment.why
        assert not lost.needs_you
        await watched.until_snapshot(
            lambda each: {w.state for w in workers_of(each, "build1")} == {State.WAITING_APPROVAL}
        )
        gpu2.start()
        await watched.until(id=done.id, state=State.COMPLETED, verdict="mismatch")

        # stopped: the connection stays, and nothing comes over it
        (stopped,) = build1.watches()
        stopped.suspend()
        await watched.until(id=waiting.id, state=State.UNREACHABLE)
        stopped.resume()  # else it would outlive its connection
        await watched.until(id=waiting.id, state=State.WAITING_APPROVAL)


async def test_a_host_without_agentdash_and_one_with_an_old_one_are_said(
    codex: OpenLab, ssh_host: OpenHost, tmp_path: Path
) -> None:
    lab = codex({})
    without, old = ssh_host("without", lab), ssh_host("old", lab)
    without.agentdash.unlink()
    old.agentdash.write_text("#!/bin/sh\necho 'Error: No such option: --no-hosts' >&2\nexit 2\n")
    known = ssh_hosts(without, old)
    known["hosts"]["nowhere"] = HostSettings(ssh="127.0.0.1:1")
    async with watching(tmp_path, **known) as watched:

        def details() -> dict[str, str]:
            links = watched.snapshot.hosts if watched.snapshot else ()
            return {link.name: link.detail for link in links if link.detail}

        reasons = {
            "without": "no agentdash there",
            "old": "too old for this one",
            "nowhere": "Connection refused",
        }
        await until(
            lambda: all(reason in details().get(name, "") for name, reason in reasons.items()), "the reasons"
        )


async def test_workers_in_a_container(codex: OpenLab, tmp_path: Path) -> None:
    """A command template reaches into it; its processes have other numbers there."""
    lab = codex({"work": [{"hold": "end"}, {"say": "all done"}]})
    (tmp_path / "bin").mkdir()
    agentdash = agentdash_for(tmp_path / "bin", lab.home)
    container = Container()
    try:
        command = [str(lab.binary), "exec", *FULL, "--skip-git-repo-check", "-C", str(lab.workspace)]
        worker = container.start([*command, "[[work]] go"], CODEX_HOME=str(lab.home), HOME=str(lab.user))
        settings = HostSettings(carrier=container.carrier, command=str(agentdash))
        async with watching(tmp_path, {"box": settings}) as watched:
            running = await watched.until(thread_in(State.RUNNING))
            assert running.host == "box"
            lab.model.release("end")
            done = await watched.until(thread_in(State.COMPLETED))
            assert done.id == running.id
        worker.wait(timeout=scaled(60))
    finally:
        container.stop()


# ---------------------------------------------------------------- shared connections

_LISTENER = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n"
    "c = s.accept()[0]\n"
    "while data := c.recv(4096): open(sys.argv[2], 'ab').write(data)"
)
"""Writes what it is sent to a file."""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SshHost]:
    host = SshHost("there", tmp_path, write_program(tmp_path / "agentdash", "echo $SSH_CONNECTION"))
    (tmp_path / "config").write_text(
        f"{host.client_config}\n  ControlMaster auto\n  ControlPath {tmp_path}/m\n"
    )
    yield host
    host.stop()


_FALSE = (sys.executable, "-ISc", _LISTENER, "{0}/m", "{0}/told")


@pytest.mark.parametrize(
    ("master", "is_shared"),
    [
        (("ssh", "-F", "{0}/config", "-M", "-N", "there"), True),
        (_FALSE, False),
        (("bwrap", "--dev-bind", "/", "/", "--unshare-user", *_FALSE), False),
        ((), False),
    ],
    ids=["its own", "another program", "in a sandbox", "none"],
)
async def test_only_a_proven_master_is_used(
    host: SshHost, tmp_path: Path, master: tuple[str, ...], is_shared: bool
) -> None:
    """The agentdash there prints its connection: one for all that share it."""
    settings = HostSettings(command=str(host.agentdash))
    argv = carrier("there", settings, tmp_path / "config").argv("")
    with ExitStack() as ends:
        if master:
            command = [word.format(tmp_path) for word in master]
            process = ends.enter_context(subprocess.Popen(command, stdin=subprocess.DEVNULL))  # noqa: ASYNC220
            ends.callback(process.terminate)
            await until((tmp_path / "m").exists, "the master")
        answers = [await run_there(argv, limit_s=scaled(20), max_bytes=1 << 20) for _ in range(2)]
        assert [answer.code for answer in answers] == [0, 0], answers
        assert (answers[0].output == answers[1].output) is is_shared
    assert not (tmp_path / "told").exists()
