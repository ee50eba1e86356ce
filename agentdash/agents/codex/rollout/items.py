"""Calls that are told when they are over: items of paginated files (0.150+), end events of extended ones, and the user's own commands."""

from __future__ import annotations

from typing import NamedTuple

from agentdash.agents.codex.rollout import outputs, tools
from agentdash.agents.codex.rollout.outputs import Ending
from agentdash.agents.codex.rollout.records import Command, Invocation, McpCall, Patch
from agentdash.agents.codex.rollout.tools import Tool


class Finished(NamedTuple):
    """A call with its end."""

    call: str
    tool: Tool
    ending: Ending
    by_user: bool = False


def command(item: Command) -> Finished | None:
    """A command that has exited; None for a poll of one, which is told by its own call."""
    if item.source == "unified_exec_interaction":
        return None
    by_user = item.source == "user_shell"
    tool = Tool(
        "command",
        "user_shell" if by_user else "exec_command",
        tools.command_text(item.command),
        tools.plain_path(item.cwd),
    )
    output = (
        item.aggregated_output
        if item.aggregated_output is not None
        else (item.stdout or "") + (item.stderr or "")
    )
    return Finished(
        item.call_id or item.id, tool, outputs.item_ending(item.status, item.exit_code, output), by_user
    )


def patch(item: Patch) -> Finished:
    """A patch that was applied, or was not."""
    status = item.status or ("failed" if item.success is False else "completed")
    ending = outputs.item_ending(status, None, (item.stdout or "") + (item.stderr or ""))
    return Finished(
        item.call_id or item.id, Tool("patch", "apply_patch", tools.changes_text(item.changes)), ending
    )


def mcp_call(item: McpCall) -> Finished:
    """An answer of an MCP server, or of a tool that an app brought along."""
    of = item.invocation or Invocation(item.server or item.namespace or "", item.tool, item.arguments)
    error = item.error or (item.result.get("Err") if isinstance(item.result, dict) else None)
    ending = outputs.item_ending(
        "failed" if error else item.status, None, error if isinstance(error, str) else tools.brief(error)
    )
    return Finished(
        item.call_id or item.id,
        Tool("other", tools.mcp_name(of.server, of.tool), tools.brief(of.arguments)),
        ending,
    )


def user_command(message: str, at: float) -> Finished | None:
    """A `!cmd` as the model is told of it, the only trace of it in legacy files. None if the message is none.

    Args:
        message: a user message.
        at: its time, which makes the call's id: the message has none.
    """
    if not message.lstrip().startswith("<user_shell_command>"):
        return None
    text, _, rest = message.partition("<command>")[2].partition("</command>")
    result = rest.partition("<result>")[2].rpartition("</result>")[0]
    tool = Tool("command", "user_shell", tools.command_text(text))
    return Finished(
        f"user-{at:.3f}", tool, outputs.read_text(result.removeprefix("\n").removesuffix("\n")), by_user=True
    )
