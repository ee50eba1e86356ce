"""A scripted model for the Messages API of Anthropic: a loopback server, to drive a real Claude Code offline.

A script maps a marker to steps, as in `model_server`: the last `[[name]]` among the prompts of a request
selects the script, and the number of answers behind that prompt the step, so that a sub-agent whose task has
a marker of its own takes steps of its own. A step is one of

    {"say": TEXT}                               the final message: ends the turn
    {"run": CMD, "unsandboxed": bool?}          a call of the tool `Bash`
    {"tool": NAME, "args": {...}}               any other tool
    {"hold": NAME, ...}                         waits for `release(NAME)`, then takes its own step
    {"fail": STATUS}                            an HTTP error

Requests without tools (titles, classifiers) take no step.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from typing import Any

Step = Mapping[str, Any]
Script = Mapping[str, Sequence[Step]]

_USAGE = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000}


class ScriptedAnthropic:
    """The server; listens on a free port from `start` to `close`."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        """Bodies of the requests so far."""
        self._gates: dict[str, threading.Event] = defaultdict(threading.Event)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": self}))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

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

    def step(self, body: Mapping[str, Any]) -> tuple[int, Step]:
        """Return the number and the step of a request; wait at a `hold`."""
        marker, number = _place(body.get("messages", []))
        steps = self.script.get(marker, ())
        step = steps[number] if number < len(steps) else {"say": "(script ended)"}
        if "hold" in step:
            with self._lock:
                gate = self._gates[step["hold"]]
            gate.wait()
        return number, step


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: a CLI may be stopped while it waits for an answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ScriptedAnthropic
    server: BaseServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(200, "application/json", b"")

    def do_GET(self) -> None:
        self._answer(200, "application/json", b'{"data": []}')

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._answer(200, "application/json", b'{"input_tokens": 1200}')
            return
        if not path.endswith("/messages"):
            self._answer(200, "application/json", b"{}")
            return
        self.model.requests.append(body)
        number, step = self.model.step(body) if body.get("tools") else (0, {"say": "A title"})
        if "fail" in step:
            error = {"type": "error", "error": {"type": "api_error", "message": "scripted failure"}}
            self._answer(step["fail"], "application/json", json.dumps(error).encode())
            return
        message = _message(step, body, number)
        if not body.get("stream"):
            self._answer(200, "application/json", json.dumps(message).encode())
            return
        stream = "".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _stream(message)
        )
        self._answer(200, "text/event-stream", stream.encode())

    def _answer(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True


def _place(messages: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """Return the marker in force, and how many answers followed it."""
    marker = "default"
    answers = 0
    for message in messages:
        if message["role"] == "assistant":
            answers += 1
        elif found := re.findall(r"\[\[([\w-]+)\]\]", "\n".join(_prompts(message["content"]))):
            marker = found[-1]
            answers = 0
    return marker, answers


def _prompts(content: str | Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the texts of a user message, without the results of tools."""
    if isinstance(content, str):
        yield content
    else:
        yield from (part["text"] for part in content if part.get("type") == "text")


def _message(step: Step, body: Mapping[str, Any], number: int) -> dict[str, Any]:
    if "run" in step:
        arguments = {"command": step["run"], "description": "Runs it"}
        content = _call("Bash", arguments | _flags(step))
    elif "tool" in step:
        content = _call(step["tool"], step.get("args", {}))
    else:
        content = {"type": "text", "text": step.get("say", "")}
    return {
        "id": f"msg_{uuid.uuid4().hex[:12]}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [content],
        "stop_reason": "tool_use" if content["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10 + number, "output_tokens": 40 + number, **_USAGE},
    }


def _flags(step: Step) -> dict[str, Any]:
    background = {"run_in_background": True} if step.get("background") else {}
    return {"dangerouslyDisableSandbox": True, **background} if step.get("unsandboxed") else background


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:12]}", "name": name, "input": arguments}


def _stream(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events by which the API streams a message."""
    start = {**message, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": message["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": end, "usage": usage}
    yield {"type": "message_stop"}
