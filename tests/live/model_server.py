"""A scripted model: a loopback server for the Responses API and chat completions, to drive real CLIs offline.

A script maps a marker to the steps that a thread takes:

    {"parent": [{"spawn": ["child"]}, {"wait": True}, {"say": "done"}],
     "child": [{"run": "touch x", "escalate": "May I?"}, {"say": "ready"}]}

The marker of a thread is the last `[[name]]` in its messages: the prompt "[[parent]] go" selects `parent`,
and a child has a script of its own. The n-th request of a thread takes the n-th step; past the end the answer
is "(script ended)". An automatic reviewer of approvals takes the steps of `reviewer`. Requests without tools
(chat completions for a title) take no step. A step is one of

    {"say": TEXT}                                      the final message: ends the turn
    {"run": CMD, "escalate": REASON?, "yield_ms": N?}  a shell command, by the shell tool offered
    {"patch": TEXT}                                    a patch, by the tool offered, or by the shell
    {"tool": NAME, "args": {...}, "namespace": NAME?}  any other function tool
    {"spawn": [MARKER, ...]}, {"wait": True}           child threads, and waiting for them
    {"hold": NAME}                                     waits for `release(NAME)`, then takes the next step
    {"fail": STATUS, "body": {...}?}                   an HTTP error
    {..., "headers": {NAME: VALUE}}                    further headers of the answer
    {"drop": True}                                     the stream breaks off before `response.completed`
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import zstandard

from tests.live.scripted_server import SCRIPT_ENDED, Script, ScriptedHandler, ScriptedServer, Step
from tests.live.worker_model import completion

_SHELLS = {"exec_command": "cmd", "shell_command": "command", "shell": "argv", "container.exec": "argv"}
"""The shell tools of all Codex versions, newest first, and the form of their command."""
_FAILURE = {"message": "scripted failure", "type": "server_error"}
_OWN = (
    None,
    "function_call",
    "function_call_output",
    "reasoning",
    "custom_tool_call",
    "custom_tool_call_output",
)
"""Items without a part of the task."""


class ScriptedModel(ScriptedServer):
    """The server of a scripted model."""

    def __init__(self, script: Script) -> None:
        super().__init__(script, _Handler)
        self._taken: dict[str, int] = defaultdict(int)
        self._counting = threading.Lock()

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def next_step(self, body: dict[str, Any], thread: str) -> tuple[int, Step]:
        """Return the number and the step of this request of a thread; wait at a `hold`."""
        marker = "reviewer" if _is_review(body) else _marker(body)
        steps = self.script.get(marker, ())
        while True:
            with self._counting:
                number = self._taken[f"{marker}/{thread}"]
                self._taken[f"{marker}/{thread}"] += 1
            step = steps[number] if number < len(steps) else SCRIPT_ENDED
            if "hold" not in step:
                return number, step
            self.hold(step)


class _Handler(ScriptedHandler):
    model: ScriptedModel

    def post(self, raw: bytes) -> None:
        if self.headers.get("content-encoding") == "zstd":
            raw = zstandard.ZstdDecompressor().decompress(raw, max_output_size=1 << 28)
        body = json.loads(raw)
        if self.path.endswith("/chat/completions"):
            self._chat(body)
            return
        self.model.requests.append(body)
        self.model.heads.append(dict(self.headers.items()))
        names = ("thread-id", "session-id", "session_id", "conversation_id")
        number, step = self.model.next_step(
            body, next((self.headers[name] for name in names if self.headers[name]), "")
        )
        self.more = step.get("headers", {})
        if "fail" in step:
            self.fail(step, _FAILURE)
            return
        response = f"resp_{uuid.uuid4().hex[:12]}"
        events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": response}}]
        events += ({"type": "response.output_item.done", "item": item} for item in _items(step, body))
        if not step.get("drop"):
            usage = {
                "input_tokens": 1200 + 300 * number,
                "output_tokens": 40 + number,
                "total_tokens": 1240 + 301 * number,
            }
            details = {
                "input_tokens_details": {"cached_tokens": 1000},
                "output_tokens_details": {"reasoning_tokens": 8},
            }
            events.append(
                {"type": "response.completed", "response": {"id": response, "usage": usage | details}}
            )
        self.answer_stream(events)

    def _chat(self, body: dict[str, Any]) -> None:
        body["input"] = body["messages"]
        tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
        step: Step = {"say": "A title"}
        if tools:
            self.model.requests.append(body)
            _, step = self.model.next_step(body, "")
        if "fail" in step:
            self.fail(step, _FAILURE)
        else:
            self.answer_stream(list(completion(step, tools)), "data: [DONE]\n\n")


def _is_review(body: dict[str, Any]) -> bool:
    """Return whether an automatic reviewer asks if an action may be done (0.169: the form of its answer)."""
    form = (body.get("text") or {}).get("format") or {}
    return "outcome" in (form.get("schema") or {}).get("properties", {})


def _marker(body: dict[str, Any]) -> str:
    """Return the last marker: a child forked with its parent's context has its own task last."""
    items = body.get("input", [])
    asked = [
        item for item in items if item.get("role") == "user" or item.get("type") not in ("message", *_OWN)
    ]
    found = re.findall(r"\[\[([\w-]+)\]\]", "\n".join(text for item in asked for text in _texts(item)))
    return found[-1] if found else "default"


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for value in node.values() if isinstance(node, dict) else node:
            yield from _texts(value)


def _items(step: Step, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the output items of a step."""
    offered = dict(_tools(body))
    if "run" in step:
        return [_command(step, offered)]
    if "patch" in step:
        return [_patch(step["patch"], offered)]
    if "spawn" in step:
        task = "[[{0}]] do your part"
        return [
            _agent(
                "spawn_agent", {"message": task.format(name), "task_name": name.replace("-", "_")}, offered
            )
            for name in step["spawn"]
        ]
    if "wait" in step:
        ids = re.findall(
            r'\\*"(?:agent_id|agent|thread_id|receiver_thread_id)\\*":\s*\\*"([0-9a-f-]{36})',
            json.dumps(body),
        )
        name = "wait_agent" if any(tool.endswith("wait_agent") for tool in offered) else "wait"
        return [
            _agent(
                name, {"ids": sorted(set(ids)), "targets": sorted(set(ids)), "timeout_ms": 30_000}, offered
            )
        ]
    if "tool" in step:
        return [_call(step["tool"], step.get("args", {}), step.get("namespace"))]
    text = {"type": "output_text", "text": step.get("say", "")}
    return [{"type": "message", "role": "assistant", "id": f"msg_{uuid.uuid4().hex[:12]}", "content": [text]}]


def _tools(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tools of a request, by full name."""
    for tool in body.get("tools", []):
        if tool["type"] == "namespace":
            yield from ((f"{tool['name']}.{inner['name']}", inner) for inner in tool["tools"])
        else:
            yield tool.get("name") or tool["type"], tool


def _command(step: Step, offered: dict[str, Any]) -> dict[str, Any]:
    command = step["run"]
    name = next((name for name in _SHELLS if name in offered), None)
    if name is None:
        raise LookupError(f"no known shell tool among {sorted(offered)}")
    way = _SHELLS[name]
    arguments: dict[str, Any] = {"command": ["bash", "-lc", command]} if way == "argv" else {way: command}
    arguments["yield_time_ms" if way == "cmd" else "timeout_ms"] = step.get("yield_ms", 10_000)
    if why := step.get("escalate"):
        old = "with_escalated_permissions" in _parameters(offered[name])
        ask = {"with_escalated_permissions": True} if old else {"sandbox_permissions": "require_escalated"}
        arguments |= ask | {"justification": why}
    return _call(name, arguments)


def _patch(text: str, offered: dict[str, Any]) -> dict[str, Any]:
    """Return a call of the tool for patches: it takes free text, or a JSON object; or of a script that has
    this tool, or of a shell."""
    if "apply_patch" not in offered and "exec" not in offered:
        return _command({"run": f"apply_patch <<'EOF'\n{text}\nEOF\n"}, offered)
    name = "apply_patch" if "apply_patch" in offered else "exec"
    if offered[name]["type"] != "custom":
        return _call(name, {"input": text})
    script = f"await tools.apply_patch({json.dumps(text)}); text('ok')"
    ids = {"id": f"ctc_{uuid.uuid4().hex[:12]}", "call_id": f"call_{uuid.uuid4().hex[:12]}"}
    return {
        "type": "custom_tool_call",
        "name": name,
        "input": text if name == "apply_patch" else script,
        **ids,
    }


def _agent(name: str, arguments: dict[str, Any], offered: dict[str, Any]) -> dict[str, Any]:
    """Return a multi-agent call, in the namespace of this version, with the arguments that it takes."""
    full = next((tool for tool in offered if tool.rpartition(".")[2] == name), name)
    space, _, short = full.rpartition(".")
    return _call(
        short, {k: v for k, v in arguments.items() if k in _parameters(offered.get(full, {}))}, space or None
    )


def _parameters(tool: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = (tool.get("parameters") or {}).get("properties") or {}
    return properties


def _call(name: str, arguments: dict[str, Any], namespace: str | None = None) -> dict[str, Any]:
    ids = {"id": f"fc_{uuid.uuid4().hex[:12]}", "call_id": f"call_{uuid.uuid4().hex[:12]}"}
    more = {"namespace": namespace} if namespace else {}
    return {"type": "function_call", "name": name, "arguments": json.dumps(arguments), **ids, **more}
