"""What was asked for, against real Codex: each set of settings in each version, by what a command could do.

A sample runs by default; `AGENTDASH_MATRIX=all`, as `python -m tests.live` sets it, runs everything.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import pytest
from msgspec.structs import replace

from agentdash.agents.codex.config.argv import parse_options
from agentdash.agents.codex.config.files import read_layers
from agentdash.agents.codex.config.precedence import request, requested
from agentdash.agents.codex.config.reader import read_request, read_role
from agentdash.agents.codex.policy_formats import from_turn
from agentdash.model.findings import FindingKind
from agentdash.model.memory import ThreadMemory
from agentdash.model.policy import Network, Policy
from agentdash.model.requested import Requested, RequestField
from agentdash.report.audit import audit
from tests.live.codex import VERSION, Lab, install
from tests.live.conftest import Keep
from tests.live.patience import command_seconds, scaled, until
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

    def truths(self) -> list[Truth]:
        """Return what each turn that ran a command had, in their order."""
        found: list[Truth] = []
        for file in self.rollouts():
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

# ---------------------------------------------------------------- predicted and real

EVERYTHING: Final = os.environ.get("AGENTDASH_MATRIX") == "all"
CELLS: Final = [
    pytest.param(version, settings, id=f"{version} {settings.name}")
    for version, chosen in (
        (VERSION, ALL if EVERYTHING else SAMPLE),
        *((version, IN_OLDER) for version in ("0.145.0", "0.169.0")),
    )
    for settings in chosen
]
REQUEST_KINDS: Final = {
    FindingKind.REQUESTED_NOT_CONFIGURED,
    FindingKind.RESUME_DROPPED_POLICY,
    FindingKind.ROLE_POLICY_IGNORED,
}
REFUSED_ARGUMENTS: Final = 2
"""The exit code of clap; agentdash does not predict it."""


class OpenLab(Protocol):
    """Opens a lab that is closed after the test."""

    def __call__(self, settings: Settings, version: str = VERSION, seconds: str = "0") -> MatrixLab: ...


@pytest.fixture
def matrix(keep: Keep[MatrixLab]) -> OpenLab:
    return lambda settings, version=VERSION, seconds="0": keep(MatrixLab(version, settings, seconds))


def may(policy: Policy, lab: MatrixLab) -> dict[str, bool | None]:
    """Return what a policy lets a command do, as the probe tries it."""
    return {
        "home": policy.may_write(str(lab.user / "probe")),
        "workspace": policy.may_write(str(lab.workspace / "probe")),
        "elsewhere": policy.may_write("/var/tmp/probe"),
        "network": policy.network is Network.ON,
    }


def asked_for(request: Requested, lab: MatrixLab) -> dict[str, bool | None]:
    """Return what a request asks for; only what it names."""
    named = {origin.field for origin in request.origins}
    files, roots, network = RequestField.FILESYSTEM, RequestField.WRITABLE_ROOTS, RequestField.NETWORK
    by = {"home": {files}, "workspace": {files}, "elsewhere": {files, roots}, "network": {network}}
    return {name: value for name, value in may(request.policy, lab).items() if by[name] & named}


@pytest.mark.parametrize(("version", "settings"), CELLS)
def test_settings(version: str, settings: Settings, matrix: OpenLab) -> None:
    lab = matrix(settings, version)
    arguments, workspace = parse_options(settings.args), str(lab.workspace)
    layers = read_layers(str(lab.home), workspace, arguments, root=lab.rootfs)
    asked, given = request(layers, arguments, cwd=workspace)
    code, said = lab.run(*settings.args)
    truths = lab.truths()
    if code == REFUSED_ARGUMENTS:
        assert truths == []
        return
    assert (given.refusal is not None) is (code != 0), (given.refusal, said[-500:])
    if given.refusal is not None:
        assert truths == []
        return
    (truth,) = truths
    policy = from_turn(truth.context)
    assert policy is not None
    stated = Network.ON if given.policy.network is Network.MEDIATED else given.policy.network
    assert (given.policy.filesystem, stated) == (policy.filesystem, policy.network)
    assert given.policy.approval in (None, policy.approval)
    assert may(given.policy, lab) == truth.may
    is_met = asked_for(requested(asked, given), lab).items() <= truth.may.items()
    begun = replace(read_request(arguments, str(lab.home), workspace, version, lab.rootfs), since=1.0)
    (thread,) = audit(lab.rollouts(), recall=partial(ThreadMemory, requests=(begun,))).threads
    found = {finding.kind for finding in thread.findings} & REQUEST_KINDS
    assert found == (set() if is_met else {FindingKind.REQUESTED_NOT_CONFIGURED})


async def test_choice_in_the_running_tui(matrix: OpenLab) -> None:
    """What `/permissions` was given is asked for from then on."""
    lab = matrix(Settings(f"-s {READ_ONLY} -a on-request"))
    pane = lab.pane(shlex.join(lab.argv(*lab.settings.args)))
    await until(lambda: "\n› " in pane.text(), "its prompt")
    await asyncio.sleep(scaled(2))  # in its first seconds a TUI may lose keys
    pane.submit("[[first]] go")
    await until(lambda: bool(lab.threads()) and any(each.may for each in lab.truths()), "its command")
    await pane.shows("• done")
    lab.forget()
    pane.submit("/permissions")
    await pane.answer("Update Model Permissions", "1")
    pane.submit("[[again]] go")
    await until(lambda: len([each for each in lab.truths() if each.may]) == 2, "the next command")
    (worker,) = [each for each in lab.document("status")["workers"] if each["id"] in lab.threads()]
    wanted = worker["sandbox"]["requested"]
    assert (wanted["filesystem"], wanted["network"]) == ("workspace", "off")
    assert {each["layer"] for each in wanted["origin"]} == {"thread setting"}
    assert not {each["kind"] for each in worker["sandbox"]["findings"]} & REQUEST_KINDS
    before, after = (each.may for each in lab.truths())
    assert (before["workspace"], after["workspace"], after["home"]) == (False, True, False)


_TESTER: Final = 'name = "tester"\ndescription = "tests"\ndeveloper_instructions = "test"\n'
ROLES: Final = {"narrower": (mode(READ_ONLY), True), "wider": (mode(FULL), True), "nothing": ("", False)}
"""Settings of a role, and whether a sub-agent of a thread with `workspace-write` lacks them."""


@pytest.mark.parametrize("name", list(ROLES)[: None if EVERYTHING else 1])
def test_role(name: str, matrix: OpenLab) -> None:
    wanted, is_ignored = ROLES[name]
    lab = matrix(Settings(f"exec -s {WORKSPACE}"))
    (lab.home / "agents").mkdir()
    (lab.home / "agents/tester.toml").write_text(_TESTER + wanted, "utf-8")
    args = {"message": "[[first]] go", "agent_type": "tester"}
    spawn: dict[str, Any] = {"tool": "spawn_agent", "args": args, "namespace": "multi_agent_v1"}
    lab.model.script = {**lab.model.script, "parent": [spawn, {"wait": True}, {"say": "done"}]}
    began = time.time()
    assert lab.run(*lab.settings.args, prompt="[[parent]] go")[0] == 0
    parent, child = lab.threads()
    truth = next(each for each in lab.truths() if each.may)
    assert truth.may == {"home": False, "workspace": True, "elsewhere": False, "network": False}
    where = {"home": str(lab.home), "cwd": str(lab.workspace), "root": Path("/")}
    asked = read_role("tester", **where, since=began, at=began)  # type: ignore[arg-type]
    requests = {child: (asked,)} if asked else {}
    report = audit(lab.rollouts(), recall=lambda each: ThreadMemory(each, requests=requests.get(each, ())))
    threads = {each.id: each for each in report.threads}
    findings = [each for each in threads[child].findings if each.kind in REQUEST_KINDS]
    assert [each.kind for each in findings] == ["role-policy-ignored"] * is_ignored
    assert all("the policy of the thread that spawned it" in each.message for each in findings)
    assert not {each.kind for each in threads[parent].findings} & REQUEST_KINDS


# ---------------------------------------------------------------- as reported, seen live


async def run_observed(lab: MatrixLab, *args: str, prompt: str = "[[first]] go") -> dict[str, Any]:
    """Run Codex, and return what `agentdash status` says of its sandbox while its command runs."""
    seen: list[dict[str, Any]] = []

    def is_seen() -> bool:
        workers = [each for each in lab.document("status")["workers"] if each["id"] in lab.threads()]
        judged = [each for each in workers if each["sandbox"]["verdict"] != "unverified" and each["pids"]]
        seen[:] = [each["sandbox"] for each in judged if each["sandbox"]["requested"]]
        return bool(seen)

    with lab.start(*args, prompt=prompt) as running:
        await until(is_seen, "the thread with what was asked for", limit=30.0)
        running.communicate()
    return seen[0]


async def test_managed_settings_that_outrank_an_option(matrix: OpenLab) -> None:
    """openai/codex#47464."""
    lab = matrix(Settings(f"exec -s {READ_ONLY}", requirements=FORCED_FULL), seconds=command_seconds(6))
    sandbox = await run_observed(lab, *lab.settings.args)
    assert sandbox["verdict"] == "mismatch"
    assert sandbox["requested"]["filesystem"] == "read-only"
    assert sandbox["configured"]["filesystem"] == "unrestricted"
    assert lab.truths()[0].may["home"]
    checked = lab.agentdash("check")
    assert checked.returncode == 1
    assert "requested-not-configured (wider)" in checked.stdout
    assert '/etc/codex/requirements.toml:1: default_permissions = ":danger-full-access"' in checked.stdout


async def test_resume_without_the_sandbox(matrix: OpenLab) -> None:
    """openai/codex#40149."""
    lab = matrix(Settings(f"exec -s {READ_ONLY}", top=mode(FULL)), seconds=command_seconds(6))
    assert (await run_observed(lab, *lab.settings.args))["verdict"] == "match"
    (thread,) = lab.threads()
    resumed = await run_observed(lab, "exec", "resume", thread, prompt="[[again]] go")
    assert resumed["verdict"] == "mismatch"
    checked = lab.agentdash("check")
    assert checked.returncode == 1
    assert "resume-dropped-policy (wider)" in checked.stdout
    line = (lab.home / "config.toml").read_text("utf-8").splitlines().index(mode(FULL).strip()) + 1
    assert f"{lab.home}/config.toml:{line}: {mode(FULL).strip()}" in checked.stdout


_ANSWER: Final = '{"outcome": "%s", "risk_level": "low", "user_authorization": "high", "rationale": "x"}'


@pytest.mark.parametrize("outcome", ["allow", "deny"])
async def test_command_that_an_automatic_reviewer_lets_out(outcome: str, matrix: OpenLab) -> None:
    """openai/codex#36570: `-s read-only`, and a command that was allowed to leave it writes the home."""
    reviewed = "-c approvals_reviewer=auto_review -c approval_policy=on-request"
    lab = matrix(Settings(f"exec -s {READ_ONLY} {reviewed}"))
    command, answer = lab.model.script["first"]
    lab.model.script = {
        "first": [{**command, "escalate": "May I?"}, answer],
        "reviewer": [{"say": _ANSWER % outcome}],
    }
    assert lab.run(*lab.settings.args)[0] == 0
    threads = lab.document("check")["threads"]
    (thread,) = [each for each in threads if each["id"] in lab.threads() and not each["parent"]]
    is_out = outcome == "allow"
    assert any(truth.may.get("home") for truth in lab.truths()) is is_out
    assert [each["kind"] for each in thread["findings"]] == ["auto-approved-outside"] * is_out
    assert thread["policies"][0]["reviewer"] == "auto_review"
