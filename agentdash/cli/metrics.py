"""`agentdash metrics`: the fleet for Prometheus, once or on a local port."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, get_args

import click

from agentdash import __version__
from agentdash.cli import termination
from agentdash.cli.fleet_access import FleetView, exit_code, follow_fleet, read_fleet, warn_if_indirect
from agentdash.cli.options import FLEET_OPTIONS, config_of, options
from agentdash.cli.output import print_text
from agentdash.config import Config
from agentdash.model.denials import Certainty
from agentdash.model.findings import SEVERITIES, FindingKind, Verdict
from agentdash.model.secrets import mask_secrets
from agentdash.model.states import Group, State
from agentdash.model.worker import Snapshot, Worker

_MAX_HEADER_BYTES: Final = 1 << 13
_REQUEST_TIMEOUT_S: Final = 5.0
_MAX_PORT: Final = 65_535


class _Address(NamedTuple):
    host: str
    port: int


@click.command()
@options(FLEET_OPTIONS)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Keep watching, and serve /metrics there: 127.0.0.1:9147, [::1]:9147; port 0: a free one.",
)
def metrics(listen: str | None, **given: Any) -> int:
    """Print the fleet in Prometheus's text format: workers by state, findings by kind, seconds waiting.

    Served on loopback addresses only. Exit code 2: the engine failed, or the address cannot be used.

    \b
    agentdash metrics > /var/lib/node_exporter/agentdash.prom    for the textfile collector
    agentdash metrics --listen 127.0.0.1:9147                    for a scrape job
    """
    config = config_of(given)
    if listen is not None:
        termination.run(_serve(config, _address(listen)))
        return 0
    snapshot, _ = read_fleet(config, None)
    print_text(metrics_text(snapshot, time.time()), nl=False)
    return exit_code(snapshot)


def _address(text: str) -> _Address:
    """Parse `127.0.0.1:9147`.

    Raises:
        click.UsageError: it is not a loopback address with a port.
    """
    host, _, port = text.rpartition(":")
    with suppress(ValueError):
        named = "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
        if ipaddress.ip_address(named).is_loopback and port.isdecimal() and int(port) <= _MAX_PORT:
            return _Address(named, int(port))
    raise click.UsageError(f"--listen {text!r}: give a loopback address and a port, such as 127.0.0.1:9147")


class _Server:
    """Answers `GET /metrics` with the newest snapshot."""

    def __init__(self) -> None:
        self.view: FleetView | None = None

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._response(request))
                await writer.drain()
        except (TimeoutError, OSError, EOFError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _response(self, request: bytes) -> bytes:
        method, _, rest = request.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "only GET\n", "Allow: GET, HEAD\r\n")
        if not _is_local(request):
            return _response("403 Forbidden", "only by the name localhost, or by an address\n")
        if path != b"/metrics":
            return _response("404 Not Found", "see /metrics\n")
        if self.view is None:
            return _response("503 Service Unavailable", "not read yet\n")
        text = metrics_text(self.view.snapshot, time.time())
        return _response("200 OK", text, with_body=method == b"GET")


def _is_local(request: bytes) -> bool:
    """Return whether the `Host` of a request is an address or `localhost`: a page of the web that made its
    name resolve to this address sends that name."""
    for line in request.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() != b"host":
            continue
        host = value.strip().decode("latin-1")
        host = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if host.lower() == "localhost":
            return True
        try:
            ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return False
    return True


def _response(status: str, text: str, more: str = "", *, with_body: bool = True) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}{more}Connection: close\r\n\r\n".encode() + (body if with_body else b"")


async def _serve(config: Config, address: _Address) -> None:
    """Follow the fleet, and serve it until cancelled.

    Raises:
        OSError: the address cannot be used.
    """
    server = _Server()
    listener = await asyncio.start_server(
        server.answer, address.host, address.port, limit=_MAX_HEADER_BYTES, start_serving=False
    )
    async with listener:
        async for view in follow_fleet(config):
            if server.view is None:
                warn_if_indirect(view.via)
                await listener.start_serving()
                port = listener.sockets[0].getsockname()[1]
                host = f"[{address.host}]" if ":" in address.host else address.host
                click.echo(f"agentdash: serving http://{host}:{port}/metrics until ctrl-c", err=True)
            server.view = view


# ------------------------------------------------------------
# `agentdash metrics`: the fleet in the text format of Prometheus (version 0.0.4)


CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_MAX_LABEL_CHARACTERS: Final = 120
_MAX_WAITING: Final = 200
"""Workers with a series of their own: each label value is a series that Prometheus keeps for weeks."""


class _Sample(NamedTuple):
    value: float
    labels: Mapping[str, str] = {}


def metrics_text(snapshot: Snapshot, now: float) -> str:
    """Return the metrics of a snapshot. Past workers count in `agentdash_past_workers` alone.

    Args:
        now: unix seconds, for what lasts still.
    """
    present = [worker for worker in snapshot.workers if worker.group is not Group.PAST]
    waiting = sorted(
        (worker for worker in present if worker.needs_you and worker.assessment.since is not None),
        key=lambda worker: worker.assessment.since or 0.0,
    )
    past = len(snapshot.workers) - len(present)
    failed = snapshot.failure is not None
    parts = (
        _gauge("build_info", "Version of agentdash.", [_Sample(1, {"version": __version__})]),
        _gauge("engine_failed", "Whether the engine failed, so that the rest is old.", [_Sample(failed)]),
        _gauge("fleet_changed_timestamp_seconds", "When the fleet changed last.", [_Sample(snapshot.at)]),
        _gauge("workers", "Workers by worker CLI and state, without past ones.", _states(present)),
        _gauge("past_workers", "Workers that ended before the user last looked.", [_Sample(past)]),
        _gauge("needs_you_workers", "Workers that need the user.", [_Sample(snapshot.counts()["needs-you"])]),
        _gauge("verdicts", "Workers by the verdict on their sandbox.", _verdicts(present)),
        _gauge("findings", "Findings about sandboxes by kind.", _findings(present)),
        _gauge("findings_by_severity", "Findings about sandboxes by severity.", _severities(present)),
        _gauge("denials", "Denials in the ledgers of workers by certainty.", _denials(present)),
        _gauge(
            "longest_wait_seconds",
            "How long the user has been needed, by the worker that has waited longest; 0 if none does.",
            [_Sample(max((_waited(worker, now) for worker in waiting), default=0.0))],
        ),
        _gauge(
            "worker_wait_seconds",
            "How long each worker has needed the user; those that wait longest.",
            [_Sample(_waited(worker, now), _labels(worker)) for worker in waiting[:_MAX_WAITING]],
        ),
        _gauge(
            "source_up",
            "Whether a source of facts works.",
            [_Sample(source.ok, {"source": source.name}) for source in snapshot.sources],
        ),
    )
    return "".join(line for part in parts for line in part)


def _states(workers: Iterable[Worker]) -> Iterator[_Sample]:
    """Yield the number of workers by CLI and state, also the zeros: a series that vanishes fires no alert."""
    counts = Counter((worker.agent.name, worker.state) for worker in workers)
    for agent in sorted({agent for agent, _ in counts}) or ["codex"]:
        for state in State:
            yield _Sample(counts[agent, state], {"agent": agent, "state": state})


def _verdicts(workers: Iterable[Worker]) -> Iterator[_Sample]:
    counts = Counter(worker.sandbox.verdict for worker in workers)
    for verdict in get_args(Verdict):
        yield _Sample(counts[verdict], {"verdict": verdict})


def _findings(workers: Iterable[Worker]) -> Iterator[_Sample]:
    counts = Counter(finding.kind for worker in workers for finding in worker.sandbox.findings)
    for kind in FindingKind:
        yield _Sample(counts[kind], {"kind": kind})


def _severities(workers: Iterable[Worker]) -> Iterator[_Sample]:
    counts = Counter(finding.severity for worker in workers for finding in worker.sandbox.findings)
    for severity in SEVERITIES:
        yield _Sample(counts[severity], {"severity": severity})


def _denials(workers: Iterable[Worker]) -> Iterator[_Sample]:
    counts: Counter[str] = Counter()
    for worker in workers:
        for entry in worker.sandbox.denials:
            counts[entry.certainty] += entry.count
    for certainty in get_args(Certainty):
        yield _Sample(counts[certainty], {"certainty": certainty})


def _waited(worker: Worker, now: float) -> float:
    return max(0.0, now - (worker.assessment.since or now))


def _labels(worker: Worker) -> dict[str, str]:
    return {"id": worker.id, "name": worker.name, "agent": worker.agent.name, "state": worker.state}


def _gauge(name: str, meaning: str, samples: Iterable[_Sample]) -> Iterator[str]:
    yield f"# HELP agentdash_{name} {meaning}\n# TYPE agentdash_{name} gauge\n"
    for sample in samples:
        labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in sample.labels.items())
        value = int(sample.value) if sample.value == int(sample.value) else round(sample.value, 3)
        yield f"agentdash_{name}{{{labels}}} {value}\n" if labels else f"agentdash_{name} {value}\n"


def _escaped(value: str) -> str:
    masked = mask_secrets(str(value))
    return masked[:_MAX_LABEL_CHARACTERS].translate(_ESCAPES)
