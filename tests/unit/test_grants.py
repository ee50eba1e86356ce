"""What `request_permissions` granted is part of the policy in force, for its scope; shapes as of 0.171.0."""

import json
from typing import Any

import pytest

from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.events import Event
from agentdash.model.fleet import Fleet
from agentdash.model.thread import PolicyPeriod
from agentdash.model.worker import Worker
from tests.unit.rollout_files import PARENT, THREAD, event, line, response

CWD = "/home/dev/project"
BOARD = "/data/board"
NET, FILES = {"network": {"enabled": True}}, {"file_system": {"write": [BOARD]}}
ENTRIES = {"file_system": {"entries": [{"path": {"type": "path", "path": BOARD}, "access": "write"}]}}
ENV = "HOME=/home/dev\nPATH=/usr/bin\nPWD=/home/dev/project\nCODEX_THREAD_ID=x\n"
NO_HOST = "curl: (6) Could not resolve host: git.example\n"


def begun(turn: str = "t1", mode: str = "workspace-write") -> list[bytes]:
    """Return the lines that begin a turn."""
    policy = {"type": mode, "network_access": False}
    context = {"turn_id": turn, "cwd": CWD, "approval_policy": "on-request", "sandbox_policy": policy}
    return [
        event("task_started", turn_id=turn),
        line("turn_context", context),
        event("user_message", message=turn),
    ]


def ended(turn: str = "t1") -> list[bytes]:
    return [event("task_complete", turn_id=turn, last_agent_message="Done.")]


def asked(output: Any, call: str = "p1") -> list[bytes]:
    """Return a call of `request_permissions` with its output."""
    text = output if isinstance(output, str) else json.dumps(output)
    wanted = json.dumps({"permissions": NET, "reason": "to clone"})
    return [
        response("function_call", name="request_permissions", arguments=wanted, call_id=call),
        response("function_call_output", call_id=call, output=text),
    ]


def granted(*parts: dict[str, Any], scope: str = "turn", call: str = "p1") -> list[bytes]:
    permissions: dict[str, Any] = {"network": None, "file_system": None}
    for part in parts:
        permissions |= part
    return asked({"permissions": permissions, "scope": scope}, call)


def ran(script: str, output: str, code: int = 0, call: str = "c1") -> list[bytes]:
    printed = f"Chunk ID: a\nProcess exited with code {code}\nOutput:\n{output}"
    return [
        response("function_call", name="exec_command", arguments=json.dumps({"cmd": script}), call_id=call),
        response("function_call_output", call_id=call, output=printed),
    ]


def begins(thread: str = THREAD, **more: Any) -> list[bytes]:
    head = {"id": thread, "cwd": CWD, "cli_version": "0.171.0", "source": "cli", **more}
    return [line("session_meta", head)]


def events(*parts: list[bytes], thread: str = THREAD, **meta: Any) -> list[Event]:
    lines = [each for part in (begins(thread, **meta), *parts) for each in part]
    return RolloutReader(thread).read(lines)


def worker(*parts: list[bytes]) -> Worker:
    (found,) = build_snapshot(reduce(Fleet(), events(*parts)), 4e9).workers
    return found


def in_words(period: PolicyPeriod) -> str:
    more = " +board" if period.policy.may_write(f"{BOARD}/x") else ""
    return f"{period.origin}: {period.policy.filesystem}/{period.policy.network}{more}"


MISSING = "missing-network-flag"
TOLD = "turn_context: workspace/off"


@pytest.mark.parametrize(
    ("story", "periods"),
    [
        ([begun(), granted(NET)], [TOLD, "request_permissions: workspace/on"]),
        ([begun(), granted(ENTRIES)], [TOLD, "request_permissions: workspace/off +board"]),
        ([begun(), granted(NET, FILES)], [TOLD, "request_permissions: workspace/on +board"]),
        (
            [begun(), granted(FILES), granted(NET, call="p2")],
            [
                TOLD,
                "request_permissions: workspace/off +board",
                "request_permissions: workspace/on +board",
            ],
        ),
        (  # the process has died in the turn: another one has no grants
            [begun(), granted(NET, scope="session"), begun("t2")],
            [TOLD, "request_permissions: workspace/on", "end of the grant: workspace/off"],
        ),
        (  # the next turn may be of another process
            [begun(), granted(NET, FILES, scope="session"), ended(), begun("t2")],
            [
                TOLD,
                "request_permissions: workspace/on +board",
                "end of the grant: workspace/unknown +board",
            ],
        ),
        (
            [begun(), granted(NET), ended(), begun("t2", "danger-full-access")],
            [
                TOLD,
                "request_permissions: workspace/on",
                "end of the grant: workspace/off",
                "turn_context: unrestricted/on +board",
            ],
        ),
        ([begun(), granted()], [TOLD]),  # denied
        ([begun(), asked("request_permissions was cancelled before receiving a response")], [TOLD]),
        ([begun(), asked({"permissions": {"network": True}, "scope": "turn"})], [TOLD]),
        ([begun(), asked("[" * 100_000)], [TOLD]),
        (
            [begun(mode="danger-full-access"), granted(NET)],
            ["turn_context: unrestricted/on +board"],
        ),
    ],
)
def test_policy_in_force(story: list[list[bytes]], periods: list[str]) -> None:
    assert [in_words(period) for period in worker(*story).policies] == periods


def test_a_granted_network_denies_nothing() -> None:
    fetch = ran("curl https://git.example", NO_HOST, 6)
    assert worker(begun(), granted(NET), fetch, ended()).sandbox.denials == ()
    assert len(worker(begun(), granted(), fetch, ended()).sandbox.denials) == 1


def test_children_have_no_grants() -> None:
    """Measured on 0.171.0: a child that is spawned after a grant has the policy without it."""
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    fleet = reduce(
        Fleet(),
        [
            *events(begun(), granted(NET, scope="session"), thread=PARENT),
            *events(begun("k"), ran("env", ENV), ended("k"), source=spawn, parent_thread_id=PARENT),
        ],
    )
    child = next(each for each in build_snapshot(fleet, 4e9).workers if each.id == THREAD)
    assert child.parent == PARENT
    assert [finding.kind for finding in child.sandbox.findings] == [MISSING]
