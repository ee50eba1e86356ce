"""Tool calls of all versions: kinds, texts and endings."""

from typing import Any

import pytest
from msgspec.structs import replace

from agentdash.model import events as e
from tests.unit.rollout_files import answer, call, ending, event, item, meta, only, read, response


def started(*lines: bytes) -> e.CallStarted:
    (start,) = only(e.CallStarted, read(*lines))
    return start


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "text"),
    [
        ("shell", {"command": ["powershell.exe", "-NoProfile", "-Command", "dir"]}, "command", "dir"),
        ("shell_command", {"command": "npm test\nnpm run lint"}, "command", "npm test npm run lint"),
        ("wait", {"cell_id": "3"}, "poll", "cell 3"),
        (
            "shell",
            {"command": ["apply_patch", "*** Begin Patch\n*** Update File: c.py\n*** End Patch"]},
            "patch",
            "update c.py",
        ),
        (
            "request_user_input",
            {"questions": [{"id": "q", "question": "Which one?"}, {"question": "Why?"}]},
            "question",
            "Which one? / Why?",
        ),
        (
            "request_permissions",
            {"reason": "to fetch", "permissions": {"network": {"enabled": True}}},
            "permission",
            'to fetch: {"network":{"enabled":true}}',
        ),
        (
            "spawn_agent",
            {"task_name": "build", "message": "all of it", "fork_turns": "none"},
            "spawn",
            "build: all of it",
        ),
        ("shell", "{not json", "command", "{not json"),
    ],
)
def test_kind_and_text_of_a_tool_call(name: str, arguments: Any, kind: str, text: str) -> None:
    found = started(call(name, arguments))
    assert (found.kind, found.text) == (kind, text)


@pytest.mark.parametrize(
    ("name", "namespace", "tool"),
    [
        ("docs__search", None, "docs.search"),
        ("search", "mcp__docs__", "docs.search"),
        ("spawn_agent", "multi_agent_v1", "spawn_agent"),
        ("sleep", "clock", "clock.sleep"),
    ],
)
def test_tool_names(name: str, namespace: str | None, tool: str) -> None:
    assert started(call(name, {}, namespace=namespace)).tool == tool


@pytest.mark.parametrize(
    ("arguments", "escalation"),
    [
        (
            {"with_escalated_permissions": True, "justification": "to push"},
            e.Escalation("escalated", "to push"),
        ),
        (
            {
                "sandbox_permissions": "require_escalated",
                "justification": "to push",
                "prefix_rule": ["git", "push"],
            },
            e.Escalation("escalated", "to push", ("git", "push")),
        ),
        (
            {
                "sandbox_permissions": "with_additional_permissions",
                "additional_permissions": {"network": {"enabled": True}},
            },
            e.Escalation("additional"),
        ),
    ],
)
def test_three_forms_of_escalation(arguments: dict[str, Any], escalation: e.Escalation | None) -> None:
    found = started(call("shell_command", {"command": "git push", "workdir": "/p", **arguments}))
    assert found.escalation == escalation
    assert found.cwd == "/p"


# ---------------------------------------------------------------- outputs

NEVER = (
    "approval policy is Never; reject command — you cannot ask for escalated permissions if the "
    "approval policy is Never"
)

DENIED = (
    "failed in sandbox LinuxSeccomp with execution error: sandbox denied exec error, exit code: "
    "1, stdout: a\n, stderr: b\n"
)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ('{"output":"hi\\n","metadata":{"exit_code":3,"duration_seconds":0.1}}', ("ended", 3, "hi\n")),
        (("Chunk ID: 1a\nWall time: 0.3 seconds\nProcess exited with code 2\nOriginal token count: 4\n"
         "Output:\nx\n"), ("ended", 2, "x\n")),
        (
            [
                {"type": "input_text", "text": "a"},
                {"type": "input_image"},
                {"type": "input_text", "text": "b"},
            ],
            ("ended", None, "a\nb"),
        ),
        (
            ('{"output":"command timed out after 1000 milliseconds\\n","metadata":{"exit_code":124,'
            '"duration_seconds":1.0}}'),
            ("timed-out", 124, "command timed out after 1000 milliseconds\n"),
        ),
        ("exec command rejected by user", ("refused-by-user", None, "exec command rejected by user")),
        (('exec_command failed for `ls`: CreateProcess { message: "Rejected(\\"rejected by '
         'user\\")" }'), ("refused-by-user", None, None)),
        ("`rm -rf /` rejected: blocked by policy", ("refused-by-policy", None, None)),
        (NEVER, ("refused-by-approval", None, NEVER)),
        ((f'exec_command failed: CreateProcess '
         f'{{ message: "Rejected(\\"{NEVER}\\")" }}'), ("refused-by-approval", None, None)),
        ("This action was rejected due to unacceptable risk.", ("refused-by-approval", None, None)),
        (DENIED, ("denied", 1, "a\nb\n")),
        ("exec_command failed: No such file or directory", ("failed", None, None)),
        ("Wall time: 6.3 seconds\naborted by user", ("aborted", None, "aborted by user")),
        ("the user said: rejected by user", ("ended", None, None)),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nrejected by user", ("ended", 0, "rejected by user")),
    ],
)  # fmt: skip
def test_ending_of_an_output(output: Any, expected: tuple[str, int | None, str | None]) -> None:
    outcome, code, text = ending(call("shell", {"command": ["x"]}), answer(output))
    assert (outcome, code) == expected[:2]
    if expected[2] is not None:
        assert text == expected[2]


# ---------------------------------------------------------------- several dialects


def run(status: str, exit_code: int, output: str) -> bytes:
    """Return the item of a command that has ended."""
    told = {"status": status, "exit_code": exit_code, "aggregated_output": output}
    started = {"command": ["/bin/bash", "-lc", "make"], "cwd": "file:///home/dev/my%20project"}
    return item("CommandExecution", id="call_1", source="unified_exec_startup", **started, **told)


def test_item_and_output_end_a_call_once() -> None:
    done = run("failed", 2, "boom\n")
    aborted = answer("Wall time: 0.1 seconds\naborted by user")
    assert ending(call("exec_command", {"cmd": "make"}), done, aborted) == ("ended", 2, "boom\n")
    refused = ending(call("exec_command", {"cmd": "make"}), run("declined", -1, ""), answer(NEVER))
    assert refused == ("refused-by-approval", None, NEVER)


SCRIPT = "env | grep CODEX_SANDBOX; touch /opt/x; sleep 3; echo q"
SHOWN = "CODEX_SANDBOX_NETWORK_DISABLED=1\ntouch: cannot touch '/opt/x': Read-only file system\nq\n"


@pytest.mark.parametrize("recorded", [SHOWN, "q\n", ""])
def test_an_item_that_lacks_the_beginning_of_an_output(recorded: str) -> None:
    """As 0.155 wrote them under load: the model got the whole, its item has what was printed later."""
    printed = f"Chunk ID: a779d2\nWall time: 2.9723 seconds\nProcess exited with code 0\nOutput:\n{SHOWN}"
    done = run("completed", 0, recorded)
    begun = call("exec_command", {"cmd": SCRIPT})
    (ended,) = only(e.CallEnded, read(meta(), begun, done, answer(printed)))
    assert (ended.output, ended.exit_code) == (SHOWN, 0)
    beside = call("exec_command", {"cmd": "sleep 9"}, id_="call_2")
    assert only(e.CallEnded, read(meta(), begun, beside, done, answer(printed))) == [replace(ended, line=4)]
    (cut_off,) = only(e.CallEnded, read(meta(), begun, done, event("task_complete", turn_id="t")))
    assert (cut_off.output, cut_off.exit_code) == (recorded, 0)


# ---------------------------------------------------------------- background commands


def test_unknown_session_has_ended() -> None:
    events = read(
        call("exec_command", {"cmd": "make"}, id_="run"),
        answer("Process running with session ID 42\nOutput:\n", id_="run"),
        call("write_stdin", {"session_id": 42}, id_="poll"),
        answer("write_stdin failed: Unknown process id 42", id_="poll"),
    )
    assert [(end.call, end.outcome) for end in only(e.CallEnded, events)] == [
        ("run", "running"),
        ("poll", "failed"),
        ("run", "ended"),
    ]


def test_notification_of_a_script_is_not_its_end() -> None:
    script = response("custom_tool_call", name="exec", call_id="call_1", input="notify('x')")
    notice = response("custom_tool_call_output", call_id="call_1", name="exec", output="half way")
    end = response(
        "custom_tool_call_output",
        call_id="call_1",
        output=[{"type": "input_text", "text": "Script terminated\nWall time 1.0 seconds\nOutput:\n"}],
    )
    assert ending(script, notice, end, notice) == ("aborted", None, "")


MCP_FAILURE = {"content": [{"type": "text", "text": "attempt to write a readonly database"}], "isError": True}


@pytest.mark.parametrize(
    "failed",
    [
        item("McpToolCall", id="m", server="board", tool="done", status="failed", result=MCP_FAILURE),
        event("mcp_tool_call_end", call_id="m", invocation={"server": "board"}, result={"Ok": MCP_FAILURE}),
    ],
)
def test_mcp_tool_that_reports_an_error_has_failed(failed: bytes) -> None:
    """0.169: the item has `isError`, the output that follows only the text; a nested call has no output."""
    parts = ("Wall time: 32.0510 seconds\nOutput:", "attempt to write a readonly database")
    output = answer([{"type": "input_text", "text": text} for text in parts], id_="m")
    for lines in ((call("done", {}, id_="m", namespace="mcp__board"), failed, output), (failed,)):
        (end,) = only(e.CallEnded, read(meta(), *lines))
        assert (end.outcome, end.output) == ("failed", "attempt to write a readonly database")
