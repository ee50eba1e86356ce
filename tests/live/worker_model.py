"""A scripted model for worker CLIs: Gemini's API and chat completions, on loopback.

A script maps a marker to steps, as in `anthropic_model`: the last `[[name]]` among the prompts of a request
selects the script, and the number of answers behind that prompt the step. A step is one of

    {"say": TEXT}              the final message: ends the turn
    {"run": CMD}               a call of the shell tool that is offered
    {"hold": NAME, ...}        waits for `release(NAME)`, then takes its own step
    {"fail": STATUS}           an HTTP error
    {"unfinished": TEXT}       a stream that ends without a finish reason (Gemini)

Requests without tools (titles, summaries) take no step.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.live.scripted_server import SCRIPT_ENDED, Script, ScriptedHandler, ScriptedServer, Step, place

_SHELLS = ("run_shell_command", "bash", "shell")
"""The shell tools of Gemini CLI and Qwen Code, of OpenCode and Copilot CLI."""
_USAGE = {"prompt_tokens": 1200, "completion_tokens": 40, "total_tokens": 1240}


class ScriptedWorkerModel(ScriptedServer):
    """The server of a scripted model."""

    def __init__(self, script: Script) -> None:
        super().__init__(script, _Handler)

    def step(self, messages: Sequence[Mapping[str, Any]]) -> Step:
        """Return the step of a request; wait at a `hold`."""
        marker, number = place(
            (each.get("role") in ("assistant", "model"), "\n".join(_texts(each))) for each in messages
        )
        steps = self.script.get(marker, ())
        step = steps[number] if number < len(steps) else SCRIPT_ENDED
        self.hold(step)
        return step


class _Handler(ScriptedHandler):
    model: ScriptedWorkerModel

    def post(self, raw: bytes) -> None:
        body = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith(":countTokens"):
            self.answer(200, "application/json", b'{"totalTokens": 100}')
            return
        is_gemini = ":" in path.rpartition("/")[2]
        messages = body.get("contents" if is_gemini else "messages") or []
        tools = list(_tools(body))
        step = self.model.step(messages) if tools else {"say": "A title"}
        if "fail" in step:
            self.fail(step, {"code": step["fail"], "message": "scripted failure", "status": "SCRIPTED"})
            return
        events = list(_gemini(step, tools) if is_gemini else completion(step, tools))
        if body.get("stream") or ":stream" in path:
            self.answer_stream(events, "" if is_gemini else "data: [DONE]\n\n")
        else:
            whole = events[-1] if is_gemini else _whole(step)
            self.answer(200, "application/json", json.dumps(whole).encode())


def _tools(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the tools that a request offers."""
    for tool in body.get("tools") or ():
        for declared in tool.get("functionDeclarations") or tool.get("function_declarations") or ():
            yield declared["name"]
        if "function" in tool:
            yield tool["function"]["name"]


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a prompt; a system message or the result of a tool has none."""
    content = message.get("content", message.get("parts")) if message.get("role") == "user" else ()
    if isinstance(content, str):
        yield content
    else:
        yield from (part["text"] for part in content or () if isinstance(part.get("text"), str))


def _call(step: Step, tools: Sequence[str]) -> tuple[str, dict[str, Any]]:
    name = next(name for name in _SHELLS if name in tools)
    return name, {"command": step["run"], "description": "Runs it"}


def _gemini(step: Step, tools: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed answer of Gemini's API."""
    if "run" in step:
        name, arguments = _call(step, tools)
        part: dict[str, Any] = {"functionCall": {"id": uuid.uuid4().hex[:8], "name": name, "args": arguments}}
    else:
        part = {"text": step.get("say") or step.get("unfinished") or ""}
    content = {"content": {"role": "model", "parts": [part]}, "index": 0}
    if "unfinished" not in step:
        content["finishReason"] = "STOP"
    counts = {"promptTokenCount": 1200, "candidatesTokenCount": 40, "totalTokenCount": 1240}
    yield {"candidates": [content], "usageMetadata": counts, "modelVersion": "scripted"}


def completion(step: Step, tools: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed chat completion."""
    base = {
        "id": f"c{uuid.uuid4().hex[:8]}",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "mock",
    }
    if "run" in step or "tool" in step:
        name, arguments = (step["tool"], step["args"]) if "tool" in step else _call(step, tools)
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{uuid.uuid4().hex[:8]}", "type": "function", "function": function}
        delta: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [call]}
        reason = "tool_calls"
    else:
        delta = {"role": "assistant", "content": step.get("say", "")}
        reason = "stop"
    yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    yield {**base, "choices": [], "usage": _USAGE}


def _whole(step: Step) -> dict[str, Any]:
    message = {"role": "assistant", "content": step.get("say", "ok")}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "mock",
        "choices": [choice],
        "usage": _USAGE,
    }
