"""Parse calls that are written when they have ended: items (0.150+), end events, and the user's own
commands."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentdash.agents.codex.rollout import outputs, tools
from agentdash.agents.codex.rollout import tools as command_lines
from agentdash.agents.codex.rollout.outputs import Ending
from agentdash.agents.codex.rollout.records import Command, Invocation, McpCall, Patch
from agentdash.agents.codex.rollout.tools import Tool, applied_changes, changes_text


class Finished(NamedTuple):
    """A call with its ending."""

    call: str
    tool: Tool
    ending: Ending
    by_user: bool = False


def command(item: Command) -> Finished | None:
    """Parse a command that has exited; None for a poll of one, which has a call of its own."""
    if item.source == "unified_exec_interaction":
        return None
    by_user = item.source == "user_shell"
    tool = Tool(
        kind="command",
        name="user_shell" if by_user else "exec_command",
        text=command_lines.command_text(item.command),
        script=command_lines.command_script(item.command),
        shell=command_lines.shell_name(item.command),
        cwd=tools.plain_path(item.cwd),
    )
    output = item.aggregated_output
    if output is None:
        output = (item.stdout or "") + (item.stderr or "")
    ending = outputs.item_ending(item.status, item.exit_code, output)
    return Finished(item.call_id or item.id, tool, ending, by_user)


def patch(item: Patch) -> Finished:
    """Parse the application of a patch."""
    status = item.status or ("failed" if item.success is False else "completed")
    ending = outputs.item_ending(status, None, (item.stdout or "") + (item.stderr or ""))
    tool = Tool(
        kind="patch",
        name="apply_patch",
        text=changes_text(item.changes),
        changes=applied_changes(item.changes),
    )
    return Finished(item.call_id or item.id, tool, ending)


def mcp_call(item: McpCall) -> Finished:
    """Parse a call of an MCP server, or of a dynamic tool of an app."""
    invocation = item.invocation or Invocation(item.server or item.namespace or "", item.tool, item.arguments)
    result = item.result if isinstance(item.result, dict) else {}
    printed = result.get("Ok", result)
    is_error = isinstance(printed, dict) and printed.get("isError") is True
    error = item.error or result.get("Err")
    output = error if isinstance(error, str) else tools.brief(error)
    if is_error:
        output = output or _text_of_result(printed.get("content"))
    ending = outputs.item_ending("failed" if error or is_error else item.status, None, output)
    if is_error and ending.outcome == "aborted":
        ending = ending._replace(outcome="failed")  # without words
    name = tools.mcp_name(invocation.server, invocation.tool)
    return Finished(item.call_id or item.id, Tool("other", name, tools.brief(invocation.arguments)), ending)


def _text_of_result(content: Any) -> str:
    """Return the text of what an MCP server's tool returns."""
    parts = content if isinstance(content, list) else ()
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def user_command(message: str, at: float) -> Finished | None:
    """Parse a `!cmd` from the message that informs the model, its only record in legacy files; None for other
    messages.

    Args:
        message: a user message.
        at: its time (unix seconds), of which the id of the call is made: the message has none.
    """
    if not message.lstrip().startswith("<user_shell_command>"):
        return None
    text, _, rest = message.partition("<command>")[2].partition("</command>")
    result = rest.partition("<result>")[2].rpartition("</result>")[0]
    tool = Tool(
        "command", "user_shell", command_lines.command_text(text), script=command_lines.command_script(text)
    )
    ending = outputs.parse_text(result.removeprefix("\n").removesuffix("\n"))
    return Finished(f"user-{at:.3f}", tool, ending, by_user=True)
