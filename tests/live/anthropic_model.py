"""A scripted model for the Messages API of Anthropic: a loopback server, to drive a real Claude Code offline.

A script maps a marker to steps, as in `model_server`: the last `[[name]]` among the prompts of a request
selects the script, and the number of answers behind that prompt the step, so that a sub-agent whose task has
a marker of its own takes steps of its own. A step is one of

    {"say": TEXT}                               the final message: ends the turn
    {"run": CMD, "unsandboxed": bool?}          a call of the tool `Bash`
    {"tool": NAME, "args": {...}}               any other tool
    {"hold": NAME, ...}                         waits for `release(NAME)`, then takes its own step
    {"fail": STATUS, "body": {...}?}            an HTTP error
    {..., "headers": {NAME: VALUE}}             further headers of the answer

Requests without tools (titles, classifiers) take no step.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.live.scripted_server import SCRIPT_ENDED, Script, ScriptedHandler, ScriptedServer, Step, place

_USAGE = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000}


class ScriptedAnthropic(ScriptedServer):
    """The server of a scripted model."""

    def __init__(self, script: Script) -> None:
        super().__init__(script, _Handler)

    def step(self, body: Mapping[str, Any]) -> tuple[int, Step]:
        """Return the number and the step of a request; wait at a `hold`."""
        messages = body.get("messages", [])
        marker, number = place(
            (each["role"] == "assistant", "\n".join(_prompts(each["content"]))) for each in messages
        )
        steps = self.script.get(marker, ())
        step = steps[number] if number < len(steps) else SCRIPT_ENDED
        self.hold(step)
        return number, step


class _Handler(ScriptedHandler):
    model: ScriptedAnthropic

    def post(self, raw: bytes) -> None:
        body = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self.answer(200, "application/json", b'{"input_tokens": 1200}')
            return
        if not path.endswith("/messages"):
            self.answer(200, "application/json", b"{}")
            return
        self.model.requests.append(body)
        number, step = self.model.step(body) if body.get("tools") else (0, {"say": "A title"})
        self.more = step.get("headers", {})
        if "fail" in step:
            error = {"type": "api_error", "message": "scripted failure"}
            self.fail({"body": {"type": "error", "error": error}, **step}, error)
            return
        message = _message(step, body, number)
        if not body.get("stream"):
            self.answer(200, "application/json", json.dumps(message).encode())
            return
        self.answer_stream(list(_stream(message)))


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
