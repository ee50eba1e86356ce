"""The sandbox of worker CLIs in panes: what was asked for against the kernel, and what built a sandbox."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentdash.agents.launchers import read_launcher
from agentdash.model import events as e
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Kernel
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.worker import Worker
from tests.unit.story import HOST, PANE, SANDBOXED, pane, polled, process, worker

CWD = "/home/dev/ws"
ON = Policy(
    filesystem=Filesystem.WORKSPACE,
    rules=(PolicyRule("/", "read"), PolicyRule(CWD, "write")),
    enforced_by="agent",
)
OFF = Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")


def origin(text: str, layer: RequestLayer = RequestLayer.ARGV, file: str | None = None) -> RequestOrigin:
    return RequestOrigin(field=RequestField.FILESYSTEM, layer=layer, text=text, file=file)


def asked(policy: Policy, *, mark: str | None = None, **more: object) -> Requested:
    """A request of the process that `seen` has, perhaps with an inherited mark."""
    by = origin(mark, RequestLayer.ENVIRONMENT) if mark else None
    return Requested(policy=policy, origins=(origin("-s"),), since=85.0, dropped_by=by, **more)


def seen(
    request: Requested | None,
    *others: e.Event,
    kernel: Kernel | None = HOST,
    host: Kernel = HOST,
    agent: str = "gemini",
    parent: int = 10,
    env: dict[str, str] | None = None,
) -> Worker:
    """A worker in a pane with this request, beside other processes."""
    one = process(11, parent, started=85.0, agent=agent, kernel=kernel, env=env or {})
    known = [e.PolicyRequested(at=86.0, worker=str(PANE), requested=request)] if request else []
    around = [e.HostSeen(at=80, platform="linux", kernel=host), pane(), process(10, started=80.0)]
    return worker(around, others, one, known, polled(110))


def kinds(found: Worker) -> list[str]:
    return [finding.kind.value for finding in found.sandbox.findings]


def test_inherited_mark_that_drops_the_sandbox_is_a_finding_with_both_sides() -> None:
    found = seen(asked(ON, mark="SANDBOX=0"))
    (finding,) = found.sandbox.findings
    assert (found.sandbox.verdict, finding.kind) == ("mismatch", "sandbox-silently-off")
    assert (finding.severity, finding.direction) == ("danger", "wider")
    (cell,) = finding.fields
    assert (cell.expected, cell.actual) == ("workspace", "no sandbox")
    assert (cell.reference, cell.layer) == ("requested", "observed")
    assert [(x.source.value, x.text) for x in finding.evidence] == [
        ("process", "argv: -s"),
        ("environment", "environment: SANDBOX=0"),
        ("kernel", "pid 11 (sh): no sandbox (no seccomp, no namespaces of its own)"),
    ]
    assert finding.remedy is not None
    assert finding.remedy.text == "unset SANDBOX"


@pytest.mark.parametrize(
    ("request_", "kernel", "host"),
    [
        pytest.param(asked(OFF, mark="SANDBOX=0"), HOST, HOST, id="no sandbox was asked for"),
        pytest.param(asked(ON), HOST, HOST, id="no mark: the sandbox may be a container elsewhere"),
        pytest.param(asked(ON, mark="SANDBOX=0"), SANDBOXED, HOST, id="in a sandbox all the same"),
        pytest.param(asked(ON, mark="SANDBOX=0"), None, HOST, id="kernel facts not known"),
        pytest.param(
            asked(ON, mark="SANDBOX=sandbox-0.61.0-1"),
            replace(HOST, seccomp=2),
            replace(HOST, seccomp=2),
            id="its own mark, in a container that agentdash runs in as well",
        ),
    ],
)
def test_no_finding(request_: Requested, kernel: Kernel | None, host: Kernel) -> None:
    found = seen(request_, kernel=kernel, host=host)
    assert (kinds(found), found.sandbox.verdict == "mismatch") == ([], False)


def test_settings_that_are_newer_than_the_process_decide_nothing() -> None:
    file = origin('"sandbox": true', RequestLayer.USER, "/home/dev/.gemini/settings.json")
    request = replace(asked(ON, mark="SANDBOX=0", read_at=120.0), origins=(file,))
    assert kinds(seen(request)) == []
    assert kinds(seen(replace(request, read_at=None))) == ["sandbox-silently-off"]


def test_agreement_is_a_match() -> None:
    assert seen(asked(OFF)).sandbox.verdict == "match"
    assert seen(asked(OFF), agent="opencode").sandbox.verdict == "match"
    assert seen(None).sandbox.verdict == "unverified"


# ---------------------------------------------------------------- what built a sandbox


@pytest.mark.parametrize(
    ("above", "env", "expected"),
    [
        (["bwrap", "--unshare-net", "--bind", CWD, CWD, "--", "x"], {}, "bwrap: workspace, no network"),
        (["node", "/usr/bin/srt", "opencode"], {"SANDBOX_RUNTIME": "1"}, "sandbox runtime (srt)"),
        (["bwrap", "--args", "8", "--", "x"], {"SANDBOX_RUNTIME": "1"}, "sandbox runtime (srt) by bwrap"),
        (["bash"], {"SANDBOX_RUNTIME": "1", "CLAUDE_CODE_SESSION_ID": "x"}, "Claude Code"),
        (["bash"], {"CODEX_SANDBOX_NETWORK_DISABLED": "1"}, "Codex"),
    ],
)
def test_foreign_sandbox_is_named_and_is_no_finding(
    above: list[str], env: dict[str, str], expected: str
) -> None:
    launcher = process(
        12, 10, started=84.0, name=above[0], argv=tuple(above), launcher=read_launcher(above[0], above)
    )
    found = seen(asked(OFF), launcher, kernel=SANDBOXED, agent="opencode", parent=12, env=env)
    assert (found.sandbox.applied or "").startswith(expected)
    assert (found.sandbox.verdict, kinds(found)) == ("unverified", [])


def test_container_that_it_started_itself_in() -> None:
    docker = process(12, 11, started=86.0, name="docker", argv=("docker", "run", "-i", "sandbox"))
    found = seen(asked(ON), docker)
    assert (found.sandbox.verdict, found.sandbox.applied) == ("unverified", "a container, by docker")
    assert found.sandbox.unread == ("what runs in the container that docker started",)


@pytest.mark.parametrize(("agent", "env"), [("gemini", {"GEMINI_CLI": "1"}), ("opencode", {})])
def test_container_of_a_command_is_none_of_the_worker(agent: str, env: dict[str, str]) -> None:
    argv = ("podman", "run", "-i", "--rm", "image")
    client = process(12, 11, started=86.0, name="podman", argv=argv, env=env)
    found = seen(asked(OFF), client, agent=agent)
    assert (found.sandbox.verdict, found.sandbox.applied, found.sandbox.unread) == ("match", None, ())
