"""The policy in a launcher's arguments, in all of their formats."""

import json

import pytest

from agentdash.agents.codex.policy_formats import read_launcher
from agentdash.collect.processes.env_filter import clean_arguments
from agentdash.engine.link.process_tree import ProcessTree, find_launcher
from agentdash.model.policy import Filesystem
from agentdash.model.process import Process, ProcessKey

CWD = "/home/dev/project"
HELPER = "/home/dev/.codex/tmp/arg0-linux/codex-arg0jDYRHr/codex-linux-sandbox"
ROOT = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}
WRITE = {"path": {"type": "path", "path": CWD}, "access": "write"}
FILES = {"type": "restricted", "entries": [ROOT, WRITE]}
PROFILE = json.dumps({"type": "managed", "file_system": FILES, "network": "restricted"})
WORKSPACE = (
    '{"type":"workspace-write","writable_roots":["/srv/data"],"network_access":true,'
    '"exclude_slash_tmp":true,"exclude_tmpdir_env_var":true}'
)
SEATBELT = (
    "(version 1)\n(deny default)\n(allow file-read*)\n(allow file-write* (subpath (param "
    '"WRITABLE_ROOT_0")))\n'
)
BWRAP = tuple(f"bwrap --as-pid-1 --new-session --ro-bind / / --dev /dev --bind {CWD} {CWD}".split())
KINDS = json.dumps({"kind": "restricted", "entries": [ROOT, WRITE]})
SPLIT = (
    *("codex-linux-sandbox", "--sandbox-policy", '{"type":"read-only"}', "--network-sandbox-policy"),
    *('"enabled"', "--file-system-sandbox-policy", KINDS),
)


def chain(*argvs: tuple[str, ...]) -> tuple[Process, ProcessTree]:
    """Return Codex, the given launchers below it, outermost first, and a command."""
    processes = [Process(ProcessKey(10, 1.0), 1, "codex", argv=("codex",), agent="codex")]
    for argv in (*argvs, ("bash", "-c", "make")):
        last = processes[-1]
        key = ProcessKey(last.pid + 1, 1.0)
        processes.append(Process(key, last.pid, "3", argv=argv, launcher=read_launcher("3", argv)))
    return processes[-1], ProcessTree(processes, {})


@pytest.mark.parametrize(
    ("argv", "by", "brief", "roots"),
    [
        (
            (HELPER, "--sandbox-policy-cwd", CWD, "--permission-profile", PROFILE, "--", "make"),
            "codex-linux-sandbox",
            "workspace, no network",
            (CWD,),
        ),
        (SPLIT, "codex-linux-sandbox", "workspace, network on", (CWD,)),
        (
            ("codex-linux-sandbox", "--sandbox-policy-cwd", CWD, "--sandbox-policy", WORKSPACE, "--", "make"),
            "codex-linux-sandbox",
            "workspace, network on",
            (CWD, "/srv/data"),
        ),
        ((*BWRAP, "--unshare-net", "--", "make"), "bwrap", "workspace, no network", (CWD,)),
        ((*BWRAP, "--", "make", "--unshare-net"), "bwrap", "workspace, network on", (CWD,)),
        (("bwrap", "--dev-bind", "/", "/", "--", "bash"), "bwrap", "full access", ("/",)),
        (
            ("bwrap", "--ro-bind-try", "/", "/", "--unshare-all", "--share-net", "--", "make"),
            "bwrap",
            "read-only, network on",
            (),
        ),
        (
            ("/usr/bin/sandbox-exec", "-p", SEATBELT, f"-DWRITABLE_ROOT_0={CWD}", "--", "make"),
            "sandbox-exec",
            "workspace, no network",
            (CWD,),
        ),
        (
            ("sandbox-exec", "-p", "(allow network-outbound)\n", "--", "make"),
            "sandbox-exec",
            "read-only, network on",
            (),
        ),
    ],
)
def test_policy(argv: tuple[str, ...], by: str, brief: str, roots: tuple[str, ...]) -> None:
    found = find_launcher(*chain(argv))
    assert found is not None
    assert found.policy is not None
    assert (found.by, found.policy.brief(), found.policy.writable_roots) == (by, brief, roots)


@pytest.mark.parametrize(
    "profile",
    ["", "{", '{"type":"managed"', "[1]", "null", '{"type":"of-2030"}', '{"type":"managed","file_system":3}'],
)
def test_unreadable_policy(profile: str) -> None:
    found = find_launcher(*chain((HELPER, "--permission-profile", profile, "--", "make")))
    assert found is not None
    assert found.policy is None or found.policy.filesystem is Filesystem.UNKNOWN


@pytest.mark.parametrize(
    "argv",
    [
        (HELPER, "--sandbox-policy-cwd", CWD, "--permission-profile", PROFILE, "--", "make"),
        (HELPER, "--sandbox-policy", WORKSPACE, "--", "make"),
        BWRAP,
    ],
)
def test_policies_are_no_secrets(argv: tuple[str, ...]) -> None:
    """Arguments are read after they were filtered: `"access": "read"` must not be masked."""
    assert clean_arguments(argv) == argv
