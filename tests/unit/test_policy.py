"""Policies of every era in one shape, and what they let a command write."""

from typing import Any

import pytest

from agentdash.agents.codex.policy_formats import from_turn
from agentdash.model import events as e
from agentdash.model.policy import TMPDIR, Filesystem, Network, Policy
from tests.unit.rollout_files import VERSIONS, events_of, files, only

CWD = "/home/dev/project"
MANAGED: dict[str, Any] = {"type": "managed"}
ENTRY = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}


def recorded(version: str, scenario: str) -> Policy:
    (path,) = files(version, scenario)
    return only(e.PolicySet, events_of(path))[-1].policy


def managed(*entries: Any, online: str = "restricted", **more: Any) -> Policy:
    files = {"type": "restricted", "entries": list(entries)}
    profile = MANAGED | {"file_system": files, "network": online}
    found = from_turn({"cwd": CWD, "permission_profile": profile, **more})
    assert found is not None
    return found


def entry(access: str, path: str) -> dict[str, Any]:
    return {"path": {"type": "path", "path": path}, "access": access}


def special(access: str, kind: str, subpath: str | None = None) -> dict[str, Any]:
    return {"path": {"type": "special", "value": {"kind": kind, "subpath": subpath}}, "access": access}


@pytest.mark.parametrize("version", [v for v in VERSIONS if v != "0.20.0"])
def test_recorded_versions_have_equal_policies(version: str) -> None:
    workspace, full = recorded(version, "workspace-write"), recorded(version, "full-access")
    assert set(workspace.writable_roots) - {"/home/dev/.codex/memories"} == {CWD, "/tmp", TMPDIR}
    assert (full.writable_roots, full.enforced_by) == (("/",), "nobody")
    assert not workspace.has_deny


@pytest.mark.parametrize(
    ("payload", "brief", "enforced_by"),
    [
        ({"sandbox_policy": {"mode": "read-only"}}, "read-only, no network", "codex"),
        (
            {"sandbox_policy": {"type": "external-sandbox", "network_access": "restricted"}},
            "all files, no network",
            "external",
        ),
        ({"permission_profile": {"type": "disabled"}}, "full access", "nobody"),
        (
            {"permission_profile": MANAGED | {"file_system": {"type": "unrestricted"}, "network": "enabled"}},
            "full access",
            "nobody",
        ),
        (
            {"permission_profile": MANAGED | {"network": "sometimes"}},
            "files unknown, network unknown",
            "codex",
        ),
        ({"approval_policy": "never"}, "files unknown, network unknown", "codex"),
    ],
)
def test_policy_formats_of_other_versions(payload: dict[str, Any], brief: str, enforced_by: str) -> None:
    found = from_turn({"cwd": CWD, **payload})
    assert found is not None
    assert (found.brief(), found.enforced_by) == (brief, enforced_by)


@pytest.mark.parametrize("access", ["deny", "none"])
def test_policy_with_hidden_paths_is_custom(access: str) -> None:
    hidden = {"path": {"type": "glob_pattern", "pattern": f"{CWD}/**/*.pem"}, "access": access}
    found = managed(ENTRY, entry("write", CWD), hidden)
    assert (found.filesystem, found.has_deny) == (Filesystem.CUSTOM, True)
    assert found.may_write(f"{CWD}/a.py")
    assert not found.may_write(f"{CWD}/keys/deep/a.pem")
    assert not found.may_write(f"{CWD}/a.pem")


@pytest.mark.parametrize(
    "strange", [entry("append", CWD), {"path": {"type": "special"}, "access": "write"}, None]
)
def test_unknown_entry_makes_the_policy_unknown(strange: Any) -> None:
    found = managed(ENTRY, strange)
    assert found.filesystem is Filesystem.UNKNOWN
    assert found.may_write("/etc/passwd") is None
    assert managed(ENTRY, special("read", "minimal")).filesystem is Filesystem.READ_ONLY


def test_most_specific_rule_decides_and_strictest_of_equals() -> None:
    rules = (("write", "/a"), ("read", "/a/b"), ("write", "/a/b/c"), ("write", "/d"), ("read", "/d"))
    found = managed(ENTRY, *(entry(*rule) for rule in rules))
    writable = [path for path in ("/a/x", "/a/b/x", "/a/b/c/x", "/a/b", "/d/x") if found.may_write(path)]
    assert writable == ["/a/x", "/a/b/c/x"]


@pytest.mark.parametrize(
    ("value", "approval"),
    [("on-request", "on-request"), ({"granular": {"rules": False}}, "granular"), ({"later": {}}, None)],
)
def test_approval_policy(value: Any, approval: str | None) -> None:
    profile = {"id": ":workspace"}
    found = managed(
        ENTRY, approval_policy=value, approvals_reviewer="auto_review", active_permission_profile=profile
    )
    assert (found.approval, found.reviewer, found.profile) == (approval, "auto_review", ":workspace")


def test_list_of_domains_means_mediated_network() -> None:
    assert managed(ENTRY, online="enabled").network is Network.ON
    proxied = managed(ENTRY, online="enabled", network={"allowed_domains": ["example.com"]})
    assert (proxied.network, proxied.brief()) == (Network.MEDIATED, "read-only, network via proxy")
