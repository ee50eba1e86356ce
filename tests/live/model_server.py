"""A scripted model on loopback, to drive real CLIs offline: the Responses API, chat completions, Anthropic's
Messages API, and Gemini's.

A script maps a marker to steps:

    {"parent": [{"spawn": ["child"]}, {"wait": True}, {"say": "done"}],
     "child": [{"run": "touch x", "escalate": "May I?"}, {"say": "ready"}]}

The last `[[name]]` among the prompts of a request is its marker: "[[parent]] go" selects `parent`, and a
child whose task has a marker has a script of its own. The n-th request of a thread of Codex takes the n-th
step; for other CLIs the number of answers behind that prompt selects it. Past the end the answer is "(script
ended)". An automatic reviewer of approvals takes the steps of `reviewer`; requests without tools (titles,
summaries) take none. A step is one of

    {"say": TEXT}                                      the final message: ends the turn
    {"run": CMD, "escalate": REASON?, "yield_ms": N?}  a shell command, by the shell tool offered; with
                                                       `unsandboxed` for Claude Code
    {"patch": TEXT}                                    a patch, by the shell
    {"tool": NAME, "args": {...}, "namespace": NAME?}  any other tool
    {"spawn": [MARKER, ...]}, {"wait": True}           child threads, and waiting for them
    {"hold": NAME, ...}                                waits for `release(NAME)`; its own step or the next
    {"fail": STATUS, "body": {...}?}                   an HTTP error (not to Gemini CLI)
    {"unfinished": TEXT}                               a stream that ends without a finish reason (Gemini)
    {..., "headers": {NAME: VALUE}}                    further headers of the answer
"""

import json
import re
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

Step = Mapping[str, Any]
"""One answer of a model."""
Script = Mapping[str, Sequence[Step]]
"""Steps by marker."""
_SCRIPT_ENDED: Final[Step] = {"say": "(script ended)"}
_TITLE: Final[Step] = {"say": "A title"}
_CODEX_SHELLS: Final = {
    "exec_command": "cmd",
    "shell_command": "command",
    "shell": "argv",
    "container.exec": "argv",
}
"""The shell tools of all Codex versions, newest first, and the form of their command."""
_SHELLS: Final = ("run_shell_command", "bash", "shell")
"""Those of Gemini CLI and Qwen Code, of OpenCode and Copilot CLI."""
_OWN_ITEMS: Final = (
    *(None, "function_call", "function_call_output", "reasoning"),
    *("custom_tool_call", "custom_tool_call_output"),
)
"""Items of Codex without a part of the task."""


class ScriptedModel:
    """The server of a scripted model, on a free port until `close`."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        """Bodies of the requests with tools so far."""
        self.heads: list[dict[str, str]] = []
        """Their headers."""
        self.answers: list[str] = []
        """Time, path and status of the answers so far, for the report of a test that fails."""
        self._gates: dict[str, threading.Event] = defaultdict(threading.Event)
        self._taken: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def counted(self, marker: str, thread: str) -> int:
        """Return how many requests of a thread with a marker there were before this one."""
        with self._lock:
            self._taken[f"{marker}/{thread}"] += 1
            return self._taken[f"{marker}/{thread}"] - 1

    def step(self, marker: str, number: int) -> Step:
        """Return a step by its number, and wait at what holds it."""
        for step in self.script.get(marker, ()):
            if number == 0 and "hold" in step:
                with self._lock:
                    gate = self._gates[step["hold"]]
                gate.wait()
            if step.keys() == {"hold"}:
                continue
            if number == 0:
                return step
            number -= 1
        return _SCRIPT_ENDED

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


class _Handler(BaseHTTPRequestHandler):
    """Sends answers, one to a connection."""

    protocol_version = "HTTP/1.1"
    model: ScriptedModel
    more: Mapping[str, str] = {}
    """Further headers of the answer: `headers` of its step."""

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(200, "application/json", b"")

    def do_GET(self) -> None:
        self._answer_json({"object": "list", "data": [], "models": []})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/responses"):
            self._respond(body)
        elif path.endswith("/messages"):
            self._message(body)
        elif path.endswith("/chat/completions"):
            self._chat(body)
        elif path.endswith(":streamGenerateContent"):
            self._gemini(body)
        else:
            self._answer_json({})

    def _step(self, body: dict[str, Any], prompts: Sequence[tuple[bool, str]]) -> tuple[int, Step]:
        """Return the number and the step of a request.

        Args:
            body: the request.
            prompts: for each of its messages whether it is an answer of the model, and its text.
        """
        marker, answers = "default", 0
        for is_answer, text in prompts:
            if is_answer:
                answers += 1
            elif found := re.findall(r"\[\[([\w-]+)\]\]", text):
                marker, answers = found[-1], 0
        return (answers, self._take(body, marker, answers)) if body.get("tools") else (0, _TITLE)

    def _take(self, body: dict[str, Any], marker: str, number: int) -> Step:
        """Return a step for a request, which is recorded."""
        self.model.requests.append(body)
        self.model.heads.append(dict(self.headers.items()))
        step = self.model.step(marker, number)
        self.more = step.get("headers", {})
        return step

    def _respond(self, body: dict[str, Any]) -> None:
        """Answer Codex: a request of any kind takes a step."""
        names = ("thread-id", "session-id", "session_id", "conversation_id")
        thread = next((self.headers[name] for name in names if self.headers[name]), "")
        marker = "reviewer" if _is_review(body) else _marker(body)
        number = self.model.counted(marker, thread)
        step = self._take(body, marker, number)
        if "fail" in step:
            self._fail(step, {"message": "scripted failure", "type": "server_error"})
            return
        response = f"resp_{_hex()}"
        counts = {"input": 1200 + 300 * number, "output": 40 + number, "total": 1240 + 301 * number}
        usage = {f"{name}_tokens": count for name, count in counts.items()}
        usage |= {
            "input_tokens_details": {"cached_tokens": 1000},
            "output_tokens_details": {"reasoning_tokens": 8},
        }
        items = [{"type": "response.output_item.done", "item": item} for item in _items(step, body)]
        created = {"type": "response.created", "response": {"id": response}}
        completed = {"type": "response.completed", "response": {"id": response, "usage": usage}}
        self._answer_stream([created, *items, completed])

    def _message(self, body: dict[str, Any]) -> None:
        """Answer Claude Code."""
        prompts = [(each["role"] == "assistant", _text(each["content"])) for each in body.get("messages", [])]
        number, step = self._step(body, prompts)
        if "fail" in step:
            error = {"type": "api_error", "message": "scripted failure"}
            self._fail({"body": {"type": "error", "error": error}, **step}, error)
            return
        self._answer_stream(list(_claude_stream(_claude_message(step, body, number))))

    def _chat(self, body: dict[str, Any]) -> None:
        """Answer OpenCode, Kilo, Qwen Code and Copilot CLI."""
        tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
        _, step = self._step(body, _spoken(body["messages"]))
        if "fail" in step:
            self._fail(step, {"message": "scripted failure", "code": step["fail"]})  # retried with a `type`
        elif body.get("stream"):
            self._answer_stream(list(_chat_stream(step, tools)), "data: [DONE]\n\n")
        else:
            message = {"role": "assistant", "content": step.get("say", "ok")}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._answer_json(
                {**_CHAT, "object": "chat.completion", "choices": [choice], "usage": _CHAT_USAGE}
            )

    def _gemini(self, body: dict[str, Any]) -> None:
        tools = [
            declared["name"]
            for tool in body.get("tools") or ()
            for declared in tool.get("functionDeclarations") or tool.get("function_declarations") or ()
        ]
        _, step = self._step(body if tools else {}, _spoken(body.get("contents") or []))
        self._answer_stream([_gemini_answer(step, tools)])

    # ------------------------------------------------------------ sending

    def _fail(self, step: Step, error: Mapping[str, Any]) -> None:
        """Answer with the HTTP error of a step; its body is that of the step, or has this error."""
        body = step.get("body") or {"error": error}
        self._answer(step["fail"], "application/json", json.dumps(body).encode())

    def _answer_json(self, document: Mapping[str, Any]) -> None:
        self._answer(200, "application/json", json.dumps(document).encode())

    def _answer_stream(self, events: Sequence[Mapping[str, Any]], end: str = "") -> None:
        """Send events as a stream; those with a `type` are named by it."""
        names = (f"event: {event['type']}\n" if "type" in event else "" for event in events)
        parts = (f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(names, events, strict=True))
        self._answer(200, "text/event-stream", f"{''.join(parts)}{end}".encode())

    def _answer(self, status: int, kind: str, data: bytes) -> None:
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


def _hex() -> str:
    return uuid.uuid4().hex[:12]


def _text(content: str | Sequence[Mapping[str, Any]] | None) -> str:
    """Return the texts of a message, without the results of tools."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if isinstance(part.get("text"), str))


def _spoken(messages: Sequence[Mapping[str, Any]]) -> list[tuple[bool, str]]:
    """Return the prompts and answers among messages; a system message or the result of a tool has no text."""
    return [
        (
            each.get("role") in ("assistant", "model"),
            _text(each.get("content", each.get("parts"))) if each.get("role") == "user" else "",
        )
        for each in messages
    ]


# ---------------------------------------------------------------- Codex


def _is_review(body: Mapping[str, Any]) -> bool:
    """Return whether an automatic reviewer asks if an action may be done (0.169: the form of its answer)."""
    form = (body.get("text") or {}).get("format") or {}
    return "outcome" in (form.get("schema") or {}).get("properties", {})


def _marker(body: Mapping[str, Any]) -> str:
    """Return the last marker: a child forked with its parent's context has its own task last."""
    asked = [
        item
        for item in body.get("input", [])
        if item.get("role") == "user" or item.get("type") not in ("message", *_OWN_ITEMS)
    ]
    found = re.findall(r"\[\[([\w-]+)\]\]", "\n".join(text for item in asked for text in _texts(item)))
    return found[-1] if found else "default"


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for value in node.values() if isinstance(node, dict) else node:
            yield from _texts(value)


def _items(step: Step, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the output items of a step."""
    offered = dict(_offered(body))
    if "run" in step:
        return [_command(step, offered)]
    if "patch" in step:
        return [_command({"run": f"apply_patch <<'EOF'\n{step['patch']}\nEOF\n"}, offered)]
    if "spawn" in step:
        tasks = ((f"[[{name}]] do your part", name.replace("-", "_")) for name in step["spawn"])
        return [_agent("spawn_agent", {"message": text, "task_name": name}, offered) for text, name in tasks]
    if "wait" in step:
        agents = r'\\*"(?:agent_id|agent|thread_id|receiver_thread_id)\\*":\s*\\*"([0-9a-f-]{36})'
        ids = sorted(set(re.findall(agents, json.dumps(body))))
        name = "wait_agent" if any(tool.endswith("wait_agent") for tool in offered) else "wait"
        return [_agent(name, {"ids": ids, "targets": ids, "timeout_ms": 30_000}, offered)]
    if "tool" in step:
        return [_call(step["tool"], step.get("args", {}), step.get("namespace"))]
    text = {"type": "output_text", "text": step.get("say", "")}
    return [{"type": "message", "role": "assistant", "id": f"msg_{_hex()}", "content": [text]}]


def _offered(body: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tools of a request, by full name."""
    for tool in body.get("tools", []):
        if tool["type"] == "namespace":
            yield from ((f"{tool['name']}.{inner['name']}", inner) for inner in tool["tools"])
        else:
            yield tool.get("name") or tool["type"], tool


def _command(step: Step, offered: Mapping[str, Any]) -> dict[str, Any]:
    command = step["run"]
    name = next((name for name in _CODEX_SHELLS if name in offered), None)
    if name is None:
        raise LookupError(f"no known shell tool among {sorted(offered)}")
    way = _CODEX_SHELLS[name]
    arguments: dict[str, Any] = {"command": ["bash", "-lc", command]} if way == "argv" else {way: command}
    arguments["yield_time_ms" if way == "cmd" else "timeout_ms"] = step.get("yield_ms", 10_000)
    if why := step.get("escalate"):
        old = "with_escalated_permissions" in _parameters(offered[name])
        ask = {"with_escalated_permissions": True} if old else {"sandbox_permissions": "require_escalated"}
        arguments |= ask | {"justification": why}
    return _call(name, arguments)


def _agent(name: str, arguments: Mapping[str, Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return a multi-agent call, in the namespace of this version, with the arguments that it takes."""
    full = next((tool for tool in offered if tool.rpartition(".")[2] == name), name)
    space, _, short = full.rpartition(".")
    taken = _parameters(offered.get(full, {}))
    return _call(short, {key: value for key, value in arguments.items() if key in taken}, space or None)


def _parameters(tool: Mapping[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = (tool.get("parameters") or {}).get("properties") or {}
    return properties


def _call(name: str, arguments: Mapping[str, Any], namespace: str | None = None) -> dict[str, Any]:
    ids = {"id": f"fc_{_hex()}", "call_id": f"call_{_hex()}"}
    more = {"namespace": namespace} if namespace else {}
    return {"type": "function_call", "name": name, "arguments": json.dumps(arguments), **ids, **more}


# ---------------------------------------------------------------- Claude Code


def _claude_message(step: Step, body: Mapping[str, Any], number: int) -> dict[str, Any]:
    content = {"type": "text", "text": step.get("say", "")}
    if "run" in step or "tool" in step:
        name, given = step.get("tool", "Bash"), step.get("args", {})
        if "run" in step:
            given = {"command": step["run"], "description": "Runs it"}
            given |= {"dangerouslyDisableSandbox": True} if step.get("unsandboxed") else {}
        content = {"type": "tool_use", "id": f"toolu_{_hex()}", "name": name, "input": given}
    cached = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000}
    return {
        "id": f"msg_{_hex()}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [content],
        "stop_reason": "tool_use" if content["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10 + number, "output_tokens": 40 + number, **cached},
    }


def _claude_stream(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events by which the API streams a message."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    (block,) = message["content"]
    if block["type"] == "text":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": message["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": end, "usage": usage}
    yield {"type": "message_stop"}


# ---------------------------------------------------------------- other CLIs

_CHAT: Final = {"id": "c1", "created": 1, "model": "mock"}
_CHAT_USAGE: Final = {"prompt_tokens": 1200, "completion_tokens": 40, "total_tokens": 1240}


def _tool_call(step: Step, tools: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    if "tool" in step:
        return step["tool"], step["args"]
    name = next(name for name in _SHELLS if name in tools)
    return name, {"command": step["run"], "description": "Runs it"}


def _gemini_answer(step: Step, tools: Sequence[str]) -> dict[str, Any]:
    if "run" in step:
        name, arguments = _tool_call(step, tools)
        part: dict[str, Any] = {"functionCall": {"id": _hex(), "name": name, "args": arguments}}
    else:
        part = {"text": step.get("say") or step.get("unfinished") or ""}
    content = {"content": {"role": "model", "parts": [part]}, "index": 0}
    if "unfinished" not in step:
        content["finishReason"] = "STOP"
    counts = {"promptTokenCount": 1200, "candidatesTokenCount": 40, "totalTokenCount": 1240}
    return {"candidates": [content], "usageMetadata": counts, "modelVersion": "scripted"}


def _chat_stream(step: Step, tools: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed chat completion."""
    base = {**_CHAT, "id": f"c{_hex()}", "object": "chat.completion.chunk"}
    delta: dict[str, Any] = {"role": "assistant", "content": step.get("say", "")}
    reason = "stop"
    if "run" in step or "tool" in step:
        name, arguments = _tool_call(step, tools)
        function = {"name": name, "arguments": json.dumps(arguments)}
        delta["tool_calls"] = [{"index": 0, "id": f"call_{_hex()}", "type": "function", "function": function}]
        reason = "tool_calls"
    yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    yield {**base, "choices": [], "usage": _CHAT_USAGE}
