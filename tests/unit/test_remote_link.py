"""The link to a host, against commands that behave as hosts do: well, badly, and not at all."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import psutil
import pytest

from agentdash.collect.clock import SystemClock
from agentdash.collect.remote import link as link_module
from agentdash.collect.remote.carrier import CarrierError, carrier
from agentdash.collect.remote.link import Link, RemoteSource
from agentdash.config import HostSettings
from agentdash.documents.worker import WorkerReport, document
from agentdash.model.events import SourceSeen
from agentdash.model.fleet import Fleet, RemoteSeen
from agentdash.model.remote import LinkState, RemoteHost
from agentdash.model.source import NO_CODEX_HOME
from agentdash.model.states import State
from agentdash.model.times import iso
from agentdash.model.worker import Agent, Assessment, Worker
from tests.live.patience import until

CLOCK = SystemClock()


class FakeHost:
    """A host whose agentdash writes the lines that a test adds; by default one worker, and a heartbeat.

    Args:
        folder: for its script and its lines.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.lines = folder / "lines"
        self.lines.write_bytes(worker("a") + alive())
        self.script("tail -n +1 -f lines")

    def script(self, text: str) -> None:
        (self._folder / "agentdash").write_text(f"echo $$ >> pids\n{text}\n")

    def add(self, *lines: bytes) -> None:
        with self.lines.open("ab", buffering=0) as file:
            file.write(b"".join(lines))

    @property
    def starts(self) -> int:
        """Return how often it was started."""
        path = self._folder / "pids"
        return len(path.read_text().split()) if path.exists() else 0

    @property
    def settings(self) -> HostSettings:
        # the command that it is asked for does not matter
        return HostSettings(carrier=f"sh -c 'cd {self._folder} && exec sh ./agentdash' {{}}")


def worker(ident: str, state: str = "running", change: str = "added", **more: object) -> bytes:
    whole = Worker(
        ident, "codex-thread", f"task {ident}", Agent("codex"), Assessment(State.UNKNOWN, None, "")
    )
    fields = {**msgspec.to_builtins(document(WorkerReport, whole)), "state": state, **more}
    return message(change=change, worker=fields)


def alive(at: float | None = None, version: str = "9.9") -> bytes:
    return message(change="alive", at=iso(CLOCK.now() if at is None else at), version=version)


def message(schema: str = "agentdash.change/2", **fields: object) -> bytes:
    return msgspec.json.encode({"schema": schema, "at": "", **fields}) + b"\n"


@pytest.fixture
def fake(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "_RETRY_DELAYS_S", (0.05, 0.1))


@asynccontextmanager
async def linked(fake: FakeHost) -> AsyncIterator[tuple[Link, list[RemoteHost]]]:
    """Yield a running link to a fake host, and all that it has shown."""
    shown: list[RemoteHost] = []
    link = Link(carrier("build1", fake.settings), CLOCK, shown.append)
    task = asyncio.create_task(link.run())
    try:
        yield link, shown
    finally:
        task.cancel()
        await asyncio.wait((task,))


def alive_members(group: int) -> list[int]:
    """Return the processes of a process group that are no zombies."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def is_lost(link: Link, words: str = "") -> bool:
    return link.host.link.state is LinkState.LOST and words in link.host.link.detail


def is_connected(link: Link) -> bool:
    return link.host.link.state is LinkState.CONNECTED


async def test_workers_are_added_changed_and_removed(fake: FakeHost) -> None:
    fake.lines.write_bytes(worker("a"))
    async with linked(fake) as (link, shown):
        await until(lambda: fake.starts == 1)
        assert (shown, link.host.link.state) == ([], LinkState.CONNECTING)  # it has not stated all yet
        fake.add(alive())
        await until(lambda: is_connected(link))
        assert {id_: w.state for id_, w in link.host.workers.items()} == {"a": "running"}
        assert link.host.link.version == "9.9"
        fake.add(worker("b"), worker("a", "completed", "changed"))
        await until(lambda: len(link.host.workers) == 2)
        await until(lambda: link.host.workers["a"].state == "completed")
        ticks = [{"id": "b", "last_activity": "2026-01-01T00:00:00.000Z", "tokens": 7}]
        fake.add(message(change="alive", at=iso(CLOCK.now()), ticks=ticks))
        await until(lambda: link.host.workers["b"].tokens.total == 7)
        assert link.host.workers["b"].last_activity == 1767225600.0
        fake.add(worker("a", "completed", "removed"))
        await until(lambda: set(link.host.workers) == {"b"})
        before = len(shown)
        fake.add(alive(), alive(), worker("c"))
        await until(lambda: "c" in link.host.workers)
        assert len(shown) == before + 1  # heartbeats alone change nothing
    assert fake.starts == 1


async def test_a_silent_host_is_lost_and_connected_again(
    fake: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "SILENCE_S", 0.3)
    async with linked(fake) as (link, shown):
        await until(lambda: is_lost(link, "nothing received for 0.3 s"))
        news_at = link.host.link.news_at
        assert set(link.host.workers) == {"a"}
        assert CLOCK.now() - news_at >= 0.3
        await until(lambda: any(host.link.state is LinkState.CONNECTED for host in shown[2:]))
    assert fake.starts > 1


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        ("echo 'ssh: connect to host x port 22: Connection refused' >&2; exit 255", "Connection refused"),
        ("exit 3", "exit code 3: no message"),
        ("agentdash-is-not-here", "no agentdash there"),
        ("echo 'Error: No such option: --heartbeat' >&2; exit 2", "too old for this one: update it there"),
        ("echo 'Welcome to build1'; exit 1", "Welcome to build1"),
        ('echo \'{"schema": "agentdash.change/7", "change": "alive"}\'; sleep 9', "update it here"),
        ("kill -9 $$", "exit code -9"),
    ],
)
async def test_why_a_link_is_lost_is_said(fake: FakeHost, script: str, detail: str) -> None:
    fake.script(script)
    async with linked(fake) as (link, _):
        await until(lambda: is_lost(link, detail), f"{detail} in {link.host.link.detail}")
        assert link.host.workers == {}
        assert link.host.link.news_at is None


async def test_garbage_is_counted(fake: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "MAX_LINE_BYTES", 10_000)
    fake.lines.write_bytes(b"\x1b[31mWelcome\n" + b"x" * 100_000 + b"\n" + worker("a") + b"{}\n" + alive())
    async with linked(fake) as (link, _):
        await until(lambda: is_connected(link))
        assert link.host.link.detail == "3 lines not understood (first 'Welcome')"
        assert set(link.host.workers) == {"a"}


async def test_an_endless_line_takes_no_memory(fake: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "START_LIMIT_S", 1.0)
    fake.script("yes | tr -d '\\n'")
    async with linked(fake) as (link, _):
        await until(lambda: is_lost(link, "no answer within 1 s"))
        assert link._reader.workers == {}


async def test_workers_of_one_host_are_bounded(fake: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "_MAX_WORKERS", 3)
    fake.lines.write_bytes(b"".join(worker(str(number)) for number in range(9)) + alive())
    async with linked(fake) as (link, _):
        await until(lambda: is_connected(link))
        assert (len(link.host.workers), link.host.link.detail) == (3, "6 workers left out")


async def test_no_process_is_left(fake: FakeHost, tmp_path: Path) -> None:
    fake.script("trap '' TERM; sleep 100 & cat lines; wait; sleep 100")
    async with linked(fake) as (link, _):
        await until(lambda: is_connected(link))
    group = int((tmp_path / "pids").read_text())
    await until(lambda: not alive_members(group), "the end of all processes")


# ---------------------------------------------------------------- the source


async def test_a_slow_host_delays_no_other(tmp_path: Path) -> None:
    (tmp_path / "slow").mkdir()
    (tmp_path / "fast").mkdir()
    slow, fast = FakeHost(tmp_path / "slow"), FakeHost(tmp_path / "fast")
    slow.script("sleep 100")
    source = RemoteSource([carrier(name, each.settings) for name, each in (("s", slow), ("f", fast))], CLOCK)
    emitted: list[RemoteSeen | SourceSeen] = []
    task = asyncio.create_task(source.stream(emitted.extend, None))
    await until(lambda: any(isinstance(e, RemoteSeen) and e.host.workers for e in emitted))
    hosts = {e.host.link.name: e.host.link.state for e in emitted if isinstance(e, RemoteSeen)}
    assert hosts == {"s": LinkState.CONNECTING, "f": LinkState.CONNECTED}
    task.cancel()
    await asyncio.wait((task,))


async def test_a_poll_waits_for_every_host(fake: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "START_LIMIT_S", 0.5)
    gone = HostSettings(carrier="sh -c 'sleep 100'")
    source = RemoteSource([carrier("a", fake.settings), carrier("b", gone)], CLOCK)
    events = await source.poll(Fleet())
    hosts = {e.host.link.name: e.host.link for e in events if isinstance(e, RemoteSeen)}
    assert {name: link.state for name, link in hosts.items()} == {
        "a": LinkState.CONNECTED,
        "b": LinkState.LOST,
    }
    assert hosts["b"].detail == "no answer within 0.5 s"
    await source.close()


@pytest.mark.parametrize(
    ("detail", "is_well"),
    [(f"/root/.codex {NO_CODEX_HOME}", True), ("/root/.codex cannot be read: permission denied", False)],
)
async def test_a_host_needs_no_codex(fake: FakeHost, *, detail: str, is_well: bool) -> None:
    source = {"name": "codex", "ok": False, "detail": detail}
    fake.lines.write_bytes(worker("a") + message(change="source", source=source) + alive())
    remote = RemoteSource([carrier("a", fake.settings)], CLOCK)
    (health,) = (e for e in await remote.poll(Fleet()) if isinstance(e, SourceSeen))
    assert (health.ok, detail in health.detail) == (is_well, not is_well)
    await remote.close()


# ---------------------------------------------------------------- carriers


@pytest.mark.parametrize("text", ["-oProxyCommand=x", "a b", "x@", "me@-x", "h:x", "a:1:2"])
def test_what_is_no_destination_is_refused(text: str) -> None:
    with pytest.raises(CarrierError):
        carrier("name", HostSettings(ssh=text))


@pytest.mark.parametrize(
    ("settings", "argv"),
    [
        (HostSettings(container="podman:dev"), "podman exec -i dev sh -c LINE"),
        (HostSettings(carrier="kubectl exec -i pod --"), "kubectl exec -i pod -- sh -c LINE"),
        (HostSettings(carrier="bwrap --dev-bind / / sh -c {}"), "bwrap --dev-bind / / sh -c LINE"),
        (HostSettings(carrier="run {} --now"), "run LINE --now"),
    ],
)
def test_what_carries_one_line(settings: HostSettings, argv: str) -> None:
    made = carrier("x", settings).argv("status")
    assert [each if each in argv.split() else "LINE" for each in made] == argv.split()


def test_ssh_asks_nothing(tmp_path: Path) -> None:
    argv = carrier("me@h:22", HostSettings(), tmp_path / "config").argv("status")
    assert argv[:4] == ["ssh", "-T", "-F", str(tmp_path / "config")]
    assert "BatchMode=yes" in argv
    assert argv[-3:-1] == ["--", "ssh://me@h:22"]
    assert argv[-1].startswith("sh -c 'PATH=")


@pytest.mark.parametrize(
    ("settings", "pane", "command"),
    [
        (HostSettings(ssh="me@h:22"), "%4", "ssh -t ssh://me@h:22 'tmux attach -t %4'"),
        (HostSettings(ssh="h"), "-L work %4", "ssh -t h 'tmux -L work attach -t %4'"),
        (HostSettings(ssh="h"), "/run/t-1/work %4", "ssh -t h 'tmux -S /run/t-1/work attach -t %4'"),
        (HostSettings(ssh="h"), "-L $(reboot) %4", "ssh -t h"),
        (HostSettings(ssh="h"), "/run/$(reboot) %4", "ssh -t h"),
        (HostSettings(ssh="h"), "%4; reboot", "ssh -t h"),
        (HostSettings(ssh="h"), None, "ssh -t h"),
        (HostSettings(container="docker:dev"), "%4", "docker exec -it dev tmux attach -t %4"),
        (HostSettings(container="docker:dev"), None, "docker exec -it dev sh"),
    ],
)
def test_commands_that_show_a_pane_there(settings: HostSettings, pane: str | None, command: str) -> None:
    assert carrier("x", settings).attach_command(pane) == command
