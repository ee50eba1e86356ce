"""Ways to ask Codex for a sandbox, by arguments and configuration files, for `test_requested.py`."""

from __future__ import annotations

import shlex
from typing import NamedTuple

READ_ONLY, WORKSPACE, FULL = "read-only", "workspace-write", "danger-full-access"
NETWORK = "[sandbox_workspace_write]\nnetwork_access = true\n"
NO_NETWORK = "[sandbox_workspace_write]\nnetwork_access = false\n"
ROOTS = '[sandbox_workspace_write]\nwritable_roots = ["/var/tmp"]\n'


class Settings(NamedTuple):
    """One way to ask."""

    command: str = "exec"
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

    @property
    def args(self) -> list[str]:
        return shlex.split(self.command)

    @property
    def name(self) -> str:
        """The arguments, and what differs from the default."""
        usual = Settings()._asdict()
        differs = {key: value for key, value in self._asdict().items() if usual[key] != value}
        return " ".join([differs.pop("command", "exec"), *(f"{k}={v!r}" for k, v in differs.items())])


def mode(value: str) -> str:
    """Return a line that sets `sandbox_mode`."""
    return f'sandbox_mode = "{value}"\n'


def permissions(value: str) -> str:
    """Return a line that sets `default_permissions`."""
    return f'default_permissions = "{value}"\n'


def allowed(*profiles: str) -> str:
    """Return a table that allows permission profiles."""
    return "[allowed_permission_profiles]\n" + "".join(f'"{name}" = true\n' for name in profiles)


ALL_PROFILES = allowed(":read-only", ":workspace", ":danger-full-access")
TWO_PROFILES = allowed(":read-only", ":workspace")
FORCED_FULL = permissions(":danger-full-access") + ALL_PROFILES
FORCED_WORKSPACE = permissions(":workspace") + TWO_PROFILES
MODES = 'allowed_sandbox_modes = ["read-only", "workspace-write"]\n'
ON_REQUEST = 'approval_policy = "on-request"\n'
IN_OLDER = (
    Settings(f"-s {FULL} exec"),
    Settings(project=mode(WORKSPACE), top=mode(READ_ONLY)),
    Settings(top=permissions(":workspace") + mode(READ_ONLY)),
    Settings(f"exec -s {FULL}", requirements='allowed_sandbox_modes = ["read-only"]\n'),
)
"""What has changed between releases."""
SAMPLE = (
    *IN_OLDER,
    Settings(),
    Settings(f"exec -s {READ_ONLY}"),
    Settings(f"exec -s {WORKSPACE} --add-dir /var/tmp"),
    Settings(f"exec -c sandbox_mode={READ_ONLY}", top=mode(FULL)),
    Settings(f"exec -s {WORKSPACE}", tables=NETWORK),
    Settings(project=mode(FULL), trust=None),
    Settings("exec -p x", top=mode(FULL), profile=mode(WORKSPACE)),
    Settings(f"exec -c 'default_permissions=\":workspace\"' -c sandbox_mode={READ_ONLY}"),
    Settings(f"exec -s {READ_ONLY}", requirements=FORCED_FULL),
    Settings(f"exec -c sandbox_mode={READ_ONLY}", managed=mode(FULL)),
)
ALL = (
    *SAMPLE,
    # arguments
    Settings("exec --yolo"),
    Settings("exec --approve-for-me"),
    Settings(f"exec -c sandbox_mode={WORKSPACE}"),
    Settings(f"exec -c sandbox_mode={READ_ONLY} -c sandbox_mode={FULL}"),
    Settings(f"exec -s {READ_ONLY} -c 'sandbox_mode=\"{FULL}\"'"),
    Settings(f"exec -s {WORKSPACE} -c 'default_permissions=\":read-only\"'"),
    Settings(f"-s {FULL} exec -s {READ_ONLY}"),
    Settings("exec --add-dir /var/tmp"),
    Settings(f"exec -s {READ_ONLY} --add-dir /var/tmp"),
    # the user's files, and the system's
    Settings(trust=None),
    Settings(top=mode(FULL)),
    Settings(top=mode(WORKSPACE), tables=NETWORK),
    Settings(top=mode(WORKSPACE), tables=ROOTS),
    Settings(top=ON_REQUEST),
    Settings(f"exec -s {READ_ONLY}", top=f'approvals_reviewer = "auto_review"\n{ON_REQUEST}'),
    Settings(top=mode("bogus")),
    Settings(system=mode(FULL)),
    # the project's
    Settings(project=mode(FULL), trust="untrusted"),
    Settings(project=mode(READ_ONLY), top=permissions(":workspace")),
    Settings(project=permissions(":workspace"), top=mode(READ_ONLY)),
    # profiles
    Settings("exec -p x", project=mode(FULL), profile=mode(WORKSPACE)),
    Settings("exec -p x", top=permissions(":read-only"), profile=mode(WORKSPACE)),
    Settings(top=permissions(":workspace")),
    Settings(top=permissions(":danger-full-access")),
    Settings(f"exec -c sandbox_mode={READ_ONLY}", top=permissions(":workspace")),
    Settings(f"exec -c features.network_proxy=true -s {WORKSPACE}", tables=NETWORK),
    Settings(f"exec -s {WORKSPACE}", tables=f"{NETWORK}[features.network_proxy]\nenabled = true\n"),
    Settings(
        f"exec -c features.network_proxy=false -s {WORKSPACE}",
        tables=f"{NETWORK}[features]\nnetwork_proxy = true\n",
    ),
    # what an administrator decides
    Settings(top=permissions(":read-only"), requirements=FORCED_FULL),
    Settings(f"exec -s {READ_ONLY}", requirements=FORCED_WORKSPACE),
    Settings("exec --yolo", requirements=FORCED_WORKSPACE),
    Settings(top=permissions(":danger-full-access"), requirements=TWO_PROFILES),
    Settings(top=permissions(":workspace"), requirements=permissions(":read-only") + allowed(":read-only")),
    Settings(
        f"exec -s {WORKSPACE}", requirements='allowed_sandbox_modes = ["read-only", "danger-full-access"]\n'
    ),
    Settings("exec --yolo", requirements=MODES),
    Settings("exec --yolo", requirements=f'{MODES}allowed_approval_policies = ["on-request"]\n'),
    Settings("exec --yolo", managed=mode(READ_ONLY)),
    Settings(top=permissions(":workspace"), managed=permissions(":read-only")),
    Settings(f"exec -s {WORKSPACE} -c sandbox_workspace_write.network_access=true", managed=NO_NETWORK),
    Settings(managed=ON_REQUEST),
)
