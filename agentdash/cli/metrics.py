"""`agentdash metrics`: the fleet for Prometheus, once or on a local port."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from contextlib import suppress
from typing import Any, Final, NamedTuple

import click

from agentdash.cli import termination
from agentdash.cli.fleet_access import FleetView, exit_code, follow_fleet, read_fleet, warn_if_indirect
from agentdash.cli.options import FLEET_OPTIONS, config_of, options
from agentdash.cli.output import print_text
from agentdash.config import Config
from agentdash.report.metrics import CONTENT_TYPE, metrics_text

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
        click.UsageError: it is no loopback address with a port.
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
