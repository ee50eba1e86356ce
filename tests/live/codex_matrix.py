"""Run a real Codex with one set of settings, and find out what it may do, for `test_requested.py`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.live.codex import Lab, install
from tests.live.patience import scaled
from tests.live.tmux import outer_environment

PROBE = """\
touch "$HOME/probe" 2>/dev/null && echo home=yes || echo home=no
touch ./probe 2>/dev/null && echo workspace=yes || echo workspace=no
touch /var/tmp/{name} 2>/dev/null && echo elsewhere=yes || echo elsewhere=no
python3 -c "import socket; socket.create_connection(('127.0.0.1', {port}), 5)" 2>/dev/null \
&& echo network=yes || echo network=no"""
_OWN_ETC = """\
mount --bind /etc "$1" && mount --bind "$2" /etc && shift 2 && exec "$@"
"""


class Truth(NamedTuple):
    """What one turn of a real Codex had."""

    may: dict[str, bool]
    """`home`, `workspace`, `elsewhere` (`/var/tmp`): whether a file could be written; `network`: whether a
    socket could be opened."""
    context: dict[str, Any]
    """The payload of its `turn_context`."""


class MatrixLab(Lab):
    """A lab with an `/etc` of its own, for one set of settings.

    Args:
        version: of Codex.
        settings: what is asked of it.
        seconds: for which its commands last.
    """

    def __init__(self, version: str, settings: Settings, seconds: str = "0") -> None:
        super().__init__(install(version), {}, settings.top)
        self.version, self.settings = version, settings
        self._elsewhere = Path("/var/tmp") / f"agentdash-{self.root.name}"
        probe = PROBE.format(name=self._elsewhere.name, port=self.model.port)
        steps = [{"run": f"sleep {seconds}; {probe}"}, {"say": "done"}]
        self.model.script = {"first": steps, "again": steps}
        self.rootfs = self.root / "rootfs"
        self._write()

    def argv(self, *args: str) -> list[str]:
        """Return the command of a `codex` with these arguments, in a mount namespace of its own where that
        has files in `/etc/codex`."""
        command = [str(self.binary), *args]
        if not any((self.rootfs / "etc/codex").iterdir()):
            return command
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        etc = [str(self.root / "host-etc"), str(self.rootfs / "etc")]
        return [*unshare, "sh", "-c", _OWN_ETC, "sh", *etc, *command]

    def start(self, *args: str, prompt: str = "[[first]] go") -> subprocess.Popen[str]:
        """Start `codex exec`."""
        return subprocess.Popen(
            self.argv(*args, "--skip-git-repo-check", prompt),
            cwd=self.workspace,
            env=outer_environment() | {"HOME": str(self.user), "CODEX_HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *args: str, prompt: str = "[[first]] go") -> tuple[int, str]:
        """Run `codex exec` to its end; return its exit code and what it said."""
        with self.start(*args, prompt=prompt) as running:
            said, _ = running.communicate(timeout=scaled(60))
        return running.returncode, said

    def files(self) -> list[Path]:
        """Return the rollouts."""
        return sorted(self.home.glob("sessions/*/*/*/rollout-*.jsonl"))

    def truths(self) -> list[Truth]:
        """Return what each turn that ran a command had, in their order."""
        found: list[Truth] = []
        for file in self.files():
            context: dict[str, Any] = {}
            for line in file.read_text("utf-8").split("\n")[:-1]:  # the last one may not be whole
                payload = json.loads(line)["payload"]
                if json.loads(line)["type"] == "turn_context":
                    context = payload
                elif str(payload.get("type")).endswith("call_output"):
                    words = str(payload["output"]).replace("\\n", " ").split()
                    pairs = (word.partition("=") for word in words if word.endswith(("=yes", "=no")))
                    found.append(Truth({name: value == "yes" for name, _, value in pairs}, context))
        return found

    def forget(self) -> None:
        """Remove the files that a command wrote: Landlock lets the time of an existing file be set."""
        for probe in (self.user / "probe", self.workspace / "probe", self._elsewhere):
            probe.unlink(missing_ok=True)

    def close(self) -> None:
        self.forget()
        super().close()

    def _write(self) -> None:
        settings = self.settings
        config = self.home / "config.toml"
        text = config.read_text("utf-8")
        trust = f'[projects."{self.workspace}"]\ntrust_level = "trusted"\n'
        assert trust in text
        stated = trust.replace('"trusted"', f'"{settings.trust}"') if settings.trust else ""
        config.write_text(text.replace(trust, stated) + settings.tables, "utf-8")
        own_etc = self.rootfs / "etc"
        for folder in (self.root / "host-etc", own_etc / "codex"):
            folder.mkdir(parents=True)
        for entry in Path("/").iterdir():
            if entry.name != "etc":
                (self.rootfs / entry.name).symlink_to(entry)
        for entry in Path("/etc").iterdir():
            if entry.name != "codex":
                (own_etc / entry.name).symlink_to(self.root / "host-etc" / entry.name)
        for place, content in (
            (self.home / "x.config.toml", settings.profile),
            (self.workspace / ".codex/config.toml", settings.project),
            (own_etc / "codex/requirements.toml", settings.requirements),
            (own_etc / "codex/managed_config.toml", settings.managed),
            (own_etc / "codex/config.toml", settings.system),
        ):
            if content is not None:
                place.parent.mkdir(exist_ok=True)
                place.write_text(content, "utf-8")


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
