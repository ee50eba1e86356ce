"""20 hosts with 50 workers each: CPU and memory of the hub that watches them, and the delay of a change.

Each host is a process that writes the lines of `agentdash status --watch`: a worker changes about every ten
seconds, half of them are active in each heartbeat. The delay is from the line to the snapshot; over ssh, that
of a real sshd on loopback comes to it.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec
import psutil

from agentdash.collect.clock import SystemClock
from agentdash.collect.remote.carrier import carrier
from agentdash.collect.remote.source import RemoteSource
from agentdash.config import HostSettings
from agentdash.demo.day import demo_events
from agentdash.documents.worker import ChangeReport, TickReport, WorkerReport, worker_report
from agentdash.engine.hub import Hub
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.fleet import Fleet
from agentdash.model.worker import Snapshot
from tests.bench.figures import spread
from tests.live.ssh_hosts import SshHost

_HOSTS: Final = 20
_WORKERS: Final = 50
_CHANGES_PER_SECOND: Final = 5.0
"""Of one host: each worker changes every ten seconds."""
_HEARTBEAT_S: Final = 4.0
_SECONDS: Final = 30.0
_STATES: Final = ("running", "waiting-approval", "completed", "blocked-sandbox")


def measure(home: Path) -> None:
    """Print the figures."""
    del home
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_many(Path(folder)))
        for name in ("build1", "gpu2"):
            (Path(folder) / name).mkdir()
        hosts = [
            SshHost(name, Path(folder) / name, _program(Path(folder) / name)) for name in ("build1", "gpu2")
        ]
        try:
            config = Path(folder) / "ssh_config"
            config.write_text("".join(host.client_config for host in hosts))
            asyncio.run(_over_ssh(hosts, config))
        finally:
            for host in hosts:
                host.stop()


async def _many(folder: Path) -> None:
    program = _program(folder)
    settings = HostSettings(carrier="sh -c {}", command=str(program))
    carriers = [carrier(f"host{number}", settings) for number in range(_HOSTS)]
    before = psutil.Process().memory_info().rss
    cpu, delays, hub = await _watched(RemoteSource(carriers, SystemClock()), _HOSTS * _WORKERS)
    grown = (psutil.Process().memory_info().rss - before) / 1e6
    print(f"{_HOSTS} hosts x {_WORKERS} workers: {cpu:.1%} of a core, {grown:.0f} MB more memory")
    print(f"  changes/s {_HOSTS * _CHANGES_PER_SECOND:.0f}; line to snapshot {spread(delays)}")
    del hub


async def _over_ssh(hosts: list[SshHost], config: Path) -> None:
    carriers = [carrier(host.name, host.settings, config) for host in hosts]
    cpu, delays, _ = await _watched(RemoteSource(carriers, SystemClock()), len(hosts) * _WORKERS)
    print(f"2 hosts over ssh: {cpu:.1%} of a core; line to snapshot {spread(delays)}")


async def _watched(source: RemoteSource, workers: int) -> tuple[float, list[float], Hub]:
    """Return the share of a core, the delays of changes in milliseconds, and the hub."""
    hub = Hub([source], SystemClock())
    running = asyncio.create_task(hub.run())
    async for snapshot in hub.snapshots():
        if len(snapshot.workers) == workers:
            break
    delays: list[float] = []
    began, cpu, last = time.monotonic(), time.process_time(), hub.snapshot
    while time.monotonic() - began < _SECONDS:
        snapshot_now = await hub.wait_for_snapshot(last)
        if snapshot_now is not None:
            delays += _delays(last, snapshot_now)
        last = snapshot_now
    share = (time.process_time() - cpu) / (time.monotonic() - began)
    running.cancel()
    await asyncio.wait((running,))
    return share, delays, hub


def _delays(old: Snapshot | None, new: Snapshot) -> list[float]:
    """Return how old the changes of a snapshot are (milliseconds); a reason is the time of its line."""
    before = {worker.id: worker.assessment.why for worker in old.workers} if old else {}
    changed = (worker for worker in new.workers if before.get(worker.id) != worker.assessment.why)
    return [1000 * (time.time() - float(worker.assessment.why)) for worker in changed]


def _program(folder: Path) -> Path:
    """Write a program that stands for the agentdash of a host."""
    program = folder / "fake-agentdash"
    root = Path(__file__).parents[2]
    program.write_text(f"#!/bin/sh\ncd {root} && exec {sys.executable} -m tests.bench.hosts\n")
    program.chmod(0o755)
    return program


# ---------------------------------------------------------------- the program


def _reports() -> list[WorkerReport]:
    """Return the workers of the demo, as often as needed."""
    _, events = demo_events()
    fleet = reduce(Fleet(), events)
    workers = [worker_report(worker) for worker in build_snapshot(fleet, events[-1].at).workers]
    return [
        msgspec.structs.replace(
            workers[number % len(workers)], id=f"worker-{number}", parent=None, children=[]
        )
        for number in range(_WORKERS)
    ]


def _write(change: ChangeReport) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(change) + b"\n")
    sys.stdout.buffer.flush()


def _stand_for_a_host() -> None:
    rng = random.Random()
    workers = _reports()
    now = time.time()
    for worker in workers:
        _write(_change("added", msgspec.structs.replace(worker, why=str(now))))
    beat = 0.0
    while True:
        if time.monotonic() >= beat:
            active = rng.sample(workers, len(workers) // 2)
            ticks = [
                TickReport(worker.id, "2026-01-01T00:00:00.000Z", rng.randrange(10_000)) for worker in active
            ]
            _write(
                ChangeReport(schema="agentdash.change/1", at=_iso(), change="alive", version="0", ticks=ticks)
            )
            beat = time.monotonic() + _HEARTBEAT_S
        time.sleep(rng.expovariate(_CHANGES_PER_SECOND))
        worker = rng.choice(workers)
        _write(
            _change(
                "changed", msgspec.structs.replace(worker, state=rng.choice(_STATES), why=str(time.time()))
            )
        )


def _change(kind: str, worker: WorkerReport) -> ChangeReport:
    return ChangeReport(schema="agentdash.change/1", at=_iso(), change=kind, worker=worker)


def _iso() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())


if __name__ == "__main__":
    _stand_for_a_host()
