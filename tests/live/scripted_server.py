"""The loopback server of the scripted models: it runs, holds requests at gates, and sends answers."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from typing import Any

Step = Mapping[str, Any]
"""One answer of a model; the module of each model says which there are."""
Script = Mapping[str, Sequence[Step]]
"""Steps by marker."""
SCRIPT_ENDED: Step = {"say": "(script ended)"}
"""What follows the last step of a script."""


def place(messages: Iterable[tuple[bool, str]]) -> tuple[str, int]:
    """Return the marker in force, the last `[[name]]` of a prompt, and how many answers followed it.

    Args:
        messages: of each whether it is an answer of the model, and its text.
    """
    marker, answers = "default", 0
    for is_answer, text in messages:
        if is_answer:
            answers += 1
        elif found := re.findall(r"\[\[([\w-]+)\]\]", text):
            marker, answers = found[-1], 0
    return marker, answers


class ScriptedServer:
    """A server on a free port from `start` to `close`.

    Args:
        script: the steps by marker.
        handler: answers the requests; it has this server as `model`.
    """

    def __init__(self, script: Script, handler: type[BaseHTTPRequestHandler]) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        """Bodies of the requests so far."""
        self.heads: list[dict[str, str]] = []
        """Headers of the requests so far."""
        self.answers: list[str] = []
        """Time, path and status of the answers so far, for the report of a test that fails."""
        self._gates: dict[str, threading.Event] = defaultdict(threading.Event)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (handler,), {"model": self}))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def hold(self, step: Step) -> None:
        """Wait until the gate of `{"hold": name}` is open; return at once for other steps."""
        if "hold" in step:
            with self._lock:
                gate = self._gates[step["hold"]]
            gate.wait()

    def release(self, name: str) -> None:
        """Let every request continue that is at `{"hold": name}`, or gets there later."""
        with self._lock:
            self._gates[name].set()

    def close(self) -> None:
        with self._lock:
            for gate in self._gates.values():
                gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: a CLI may be stopped while it waits for an answer."""


class ScriptedHandler(BaseHTTPRequestHandler):
    """Sends answers, one to a connection."""

    protocol_version = "HTTP/1.1"
    server: BaseServer
    model: ScriptedServer
    more: Mapping[str, str] = {}
    """Further headers of the answer: `headers` of its step."""

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(200, "application/json", b"")

    def do_GET(self) -> None:
        self.answer(200, "application/json", b'{"object": "list", "data": [], "models": []}')

    def do_POST(self) -> None:
        self.post(self.rfile.read(int(self.headers.get("content-length") or 0)))

    def post(self, raw: bytes) -> None:
        """Answer a request with this body."""
        raise NotImplementedError

    def fail(self, step: Step, error: Mapping[str, Any]) -> None:
        """Answer with the HTTP error of a step; its body is that of the step, or has this error."""
        body = step.get("body") or {"error": error}
        self.answer(step["fail"], "application/json", json.dumps(body).encode())

    def answer_stream(self, events: Sequence[Mapping[str, Any]], end: str = "") -> None:
        """Send events as a stream; those with a `type` are named by it.

        Args:
            events: in their order.
            end: what follows the last one.
        """
        names = (f"event: {event['type']}\n" if "type" in event else "" for event in events)
        parts = (f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(names, events, strict=True))
        self.answer(200, "text/event-stream", f"{''.join(parts)}{end}".encode())

    def answer(self, status: int, kind: str, data: bytes) -> None:
        """Send an answer and end the connection."""
        self.model.answers.append(f"{time.strftime('%T')} {self.path} {status}")
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.send_header("connection", "close")
        for name, value in self.more.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True
