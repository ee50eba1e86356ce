"""Ways to ask Codex for a sandbox, by arguments and configuration files, for `test_requested.py`."""

from __future__ import annotations

from typing import NamedTuple

READ_ONLY, WORKSPACE, FULL = "read-only", "workspace-write", "danger-full-access"
NETWORK = "[sandbox_workspace_write]\nnetwork_access = true\n"
NO_NETWORK = "[sandbox_workspace_write]\nnetwork_access = false\n"
ALL_PROFILES = (
    '[allowed_permission_profiles]\n":read-only" = true\n":workspace" = true\n":danger-full-access" = true\n'
)
PROXY = "features.network_proxy=true"
TWO_PROFILES = '[allowed_permission_profiles]\n":read-only" = true\n":workspace" = true\n'
READ_ONLY_PROFILE = '[allowed_permission_profiles]\n":read-only" = true\n'


class Settings(NamedTuple):
    """One way to ask."""

    name: str
    args: tuple[str, ...] = ("exec",)
    """Arguments after `codex`; the prompt follows."""
    top: str = ""
    """Top-level lines of the user's `config.toml`."""
    tables: str = ""
    """Tables at its end."""
    project: str | None = None
    """`.codex/config.toml` of the workspace."""
    trust: str | None = "trusted"
    profile: str | None = None
    """`x.config.toml` in the Codex home."""
    requirements: str | None = None
    managed: str | None = None
    system: str | None = None


def mode(value: str) -> str:
    """Return a line that sets `sandbox_mode`."""
    return f'sandbox_mode = "{value}"\n'


def permissions(value: str) -> str:
    """Return a line that sets `default_permissions`."""
    return f'default_permissions = "{value}"\n'


_E = "exec"
ARGUMENTS = (
    Settings("nothing"),
    Settings("-s read-only", (_E, "-s", READ_ONLY)),
    Settings("yolo", (_E, "--yolo")),
    Settings("approve-for-me", (_E, "--approve-for-me")),
    Settings("-c mode", (_E, "-c", f"sandbox_mode={WORKSPACE}")),
    Settings("-c mode twice", (_E, "-c", f"sandbox_mode={READ_ONLY}", "-c", f"sandbox_mode={FULL}")),
    Settings(
        "-c permissions before -c mode",
        (_E, "-c", 'default_permissions=":workspace"', "-c", f"sandbox_mode={READ_ONLY}"),
    ),
    Settings("-c mode below -s", (_E, "-s", READ_ONLY, "-c", f'sandbox_mode="{FULL}"')),
    Settings("-c profile below -s", (_E, "-s", WORKSPACE, "-c", 'default_permissions=":read-only"')),
    Settings("-s before exec", ("-s", FULL, _E)),
    Settings("-s before and after exec", ("-s", FULL, _E, "-s", READ_ONLY)),
    Settings("add-dir", (_E, "--add-dir", "/var/tmp")),
    Settings("add-dir with -s", (_E, "-s", WORKSPACE, "--add-dir", "/var/tmp")),
    Settings("add-dir with read-only", (_E, "-s", READ_ONLY, "--add-dir", "/var/tmp")),
)
USER = (
    Settings("undecided trust", trust=None),
    Settings("user mode", top=mode(FULL)),
    Settings("user mode below -c", (_E, "-c", f"sandbox_mode={READ_ONLY}"), top=mode(FULL)),
    Settings("user network", top=mode(WORKSPACE), tables=NETWORK),
    Settings("user network with -s", (_E, "-s", WORKSPACE), tables=NETWORK),
    Settings(
        "user roots", top=mode(WORKSPACE), tables='[sandbox_workspace_write]\nwritable_roots = ["/var/tmp"]\n'
    ),
    Settings("user approval", top='approval_policy = "on-request"\n'),
    Settings(
        "user reviewer",
        (_E, "-s", READ_ONLY),
        top='approvals_reviewer = "auto_review"\napproval_policy = "on-request"\n',
    ),
    Settings("unknown mode", top=mode("bogus")),
    Settings("system mode", system=mode(FULL)),
)
PROJECT = (
    Settings("project mode above user", project=mode(WORKSPACE), top=mode(READ_ONLY)),
    Settings("project mode, untrusted", project=mode(FULL), trust="untrusted"),
    Settings("project mode, undecided", project=mode(FULL), trust=None),
    Settings("project mode, user profile", project=mode(READ_ONLY), top=permissions(":workspace")),
    Settings("project profile, user mode", project=permissions(":workspace"), top=mode(READ_ONLY)),
)
PROFILES = (
    Settings("profile file above user", (_E, "-p", "x"), top=mode(FULL), profile=mode(WORKSPACE)),
    Settings("profile file below project", (_E, "-p", "x"), project=mode(FULL), profile=mode(WORKSPACE)),
    Settings(
        "profile file, user profile", (_E, "-p", "x"), top=permissions(":read-only"), profile=mode(WORKSPACE)
    ),
    Settings(":workspace", top=permissions(":workspace")),
    Settings(":danger-full-access", top=permissions(":danger-full-access")),
    Settings("permissions above mode", top=permissions(":workspace") + mode(READ_ONLY)),
    Settings(
        "-c mode, user permissions", (_E, "-c", f"sandbox_mode={READ_ONLY}"), top=permissions(":workspace")
    ),
    Settings("proxy by -c", (_E, "-c", PROXY, "-s", WORKSPACE), tables=NETWORK),
    Settings(
        "proxy by table",
        (_E, "-s", WORKSPACE),
        tables=NETWORK + "[features.network_proxy]\nenabled = true\n",
    ),
    Settings(
        "proxy of a file below -c",
        (_E, "-c", "features.network_proxy=false", "-s", WORKSPACE),
        tables=NETWORK + "[features]\nnetwork_proxy = true\n",
    ),
)
MANAGED = (
    Settings(
        "forced full access, -s",
        (_E, "-s", READ_ONLY),
        requirements=permissions(":danger-full-access") + ALL_PROFILES,
    ),
    Settings(
        "forced full access, user permissions",
        top=permissions(":read-only"),
        requirements=permissions(":danger-full-access") + ALL_PROFILES,
    ),
    Settings(
        "forced workspace, -s read-only",
        (_E, "-s", READ_ONLY),
        requirements=permissions(":workspace") + TWO_PROFILES,
    ),
    Settings("forced workspace, yolo", (_E, "--yolo"), requirements=permissions(":workspace") + TWO_PROFILES),
    Settings(
        "listed profiles, other asked for", top=permissions(":danger-full-access"), requirements=TWO_PROFILES
    ),
    Settings(
        "one profile, other asked for",
        top=permissions(":workspace"),
        requirements=permissions(":read-only") + READ_ONLY_PROFILE,
    ),
    Settings(
        "allowed modes, -s full", (_E, "-s", FULL), requirements='allowed_sandbox_modes = ["read-only"]\n'
    ),
    Settings(
        "allowed modes, -s workspace",
        (_E, "-s", WORKSPACE),
        requirements='allowed_sandbox_modes = ["read-only", "danger-full-access"]\n',
    ),
    Settings(
        "allowed modes, yolo",
        (_E, "--yolo"),
        requirements='allowed_sandbox_modes = ["read-only", "workspace-write"]\n',
    ),
    Settings(
        "allowed modes and approvals, yolo",
        (_E, "--yolo"),
        requirements='allowed_sandbox_modes = ["read-only", "workspace-write"]\n'
        'allowed_approval_policies = ["on-request"]\n',
    ),
    Settings("managed mode above -c", (_E, "-c", f"sandbox_mode={READ_ONLY}"), managed=mode(FULL)),
    Settings("managed mode, yolo", (_E, "--yolo"), managed=mode(READ_ONLY)),
    Settings("managed permissions", top=permissions(":workspace"), managed=permissions(":read-only")),
    Settings(
        "managed network off, -c",
        (_E, "-s", WORKSPACE, "-c", "sandbox_workspace_write.network_access=true"),
        managed=NO_NETWORK,
    ),
    Settings("managed approval", managed='approval_policy = "on-request"\n'),
)
ALL = (*ARGUMENTS, *USER, *PROJECT, *PROFILES, *MANAGED)
