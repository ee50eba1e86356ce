"""Codex's arguments and configuration files as requests; the truth is in tests/live/test_requested.py."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentdash.agents.codex.config.argv import parse_arguments, parse_options
from agentdash.agents.codex.config.files import find_line, parse_config, read_layers
from agentdash.agents.codex.config.precedence import request
from agentdash.agents.codex.config.reader import CodexRequests, read_request
from agentdash.collect.processes.env_filter import clean_arguments
from agentdash.model.policy import Filesystem, Network
from agentdash.model.process import Process, ProcessKey
from agentdash.model.requested import RequestLayer
from agentdash.model.thread import Thread
from agentdash.report.predictions import predict_policy

# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("words", "mode", "resumes"),
    [
        ("hello exec --json", "exec", False),
        ("e -s read-only resume 01a1 again", "exec", True),
        ("-C /srv exec resume --last", "exec", True),
        ("resume --last", "tui", True),
        ("app-server --listen x", "other", False),
        ("-- exec", "tui", False),
    ],
)
def test_mode(words: str, mode: str, resumes: bool) -> None:
    arguments = parse_options(words.split())
    assert (arguments.mode, arguments.resumes) == (mode, resumes)


@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_arguments_are_parsed(args: list[str]) -> None:
    assert parse_options(args).mode in ("tui", "exec", "other")


# ---------------------------------------------------------------- lines of keys

TEXT = '''\
# sandbox_mode = "danger-full-access"
model = """
sandbox_mode = "read-only"
"""
"sandbox_mode" = "workspace-write"  # here
[sandbox_workspace_write]
writable_roots = [
  "/network_access",
  "/b",
]
network_access = true
[projects."/a.b"]
trust_level = "trusted"
[permissions.mine.network]
enabled = true
'''


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("sandbox_mode",), 5),
        (("sandbox_workspace_write", "writable_roots"), 7),
        (("sandbox_workspace_write", "network_access"), 11),
        (("projects", "/a.b", "trust_level"), 13),
        (("permissions", "mine", "network", "enabled"), 15),
        (("model",), 2),
        (("absent",), None),
    ],
)
def test_line_of_a_key(keys: tuple[str, ...], line: int | None) -> None:
    assert find_line(TEXT, keys) == line


def test_secrets_of_a_file_are_dropped() -> None:
    file = parse_config(
        'sandbox_mode = "read-only"\n[mcp_servers.x]\nenv = { TOKEN = "s3cret" }\n'
        '[shell_environment_policy]\nset = { API_KEY = "s3cret" }\n',
        RequestLayer.USER,
        "/c.toml",
    )
    assert "s3cret" not in repr(file.values)
    assert file.get("sandbox_mode") == "read-only"


# ---------------------------------------------------------------- versions and precedence


def test_untrusted_project(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    (work / ".codex").mkdir(parents=True)
    home.mkdir()
    (work / ".codex/config.toml").write_text('sandbox_mode = "danger-full-access"\n', "utf-8")
    found = read_layers(str(home), str(work), parse_options([]))
    assert (found.trust, len(found.disabled)) == (None, 1)
    _, outcome = request(found, parse_options([]), cwd=str(work))
    assert outcome.policy.filesystem is Filesystem.READ_ONLY


def test_linked_worktree_has_the_trust_of_its_repository(tmp_path: Path) -> None:
    home, main, work = tmp_path / "home", tmp_path / "main", tmp_path / "work"
    for folder in (home, main / ".git/worktrees/work", work / ".codex"):
        folder.mkdir(parents=True)
    (work / ".git").write_text(f"gitdir: {main}/.git/worktrees/work\n", "utf-8")
    (work / ".codex/config.toml").write_text('sandbox_mode = "read-only"\n', "utf-8")
    (home / "config.toml").write_text(f'[projects."{main}"]\ntrust_level = "trusted"\n', "utf-8")
    found = read_layers(str(home), str(work), parse_options([]))
    assert (found.trust, found.are_certain) == ("trusted", True)


@pytest.mark.parametrize("key", ["allowed_approvals_reviewers = ['user']", "experimental_network = {}"])
def test_managed_settings_that_are_not_understood_leave_the_arguments(key: str, tmp_path: Path) -> None:
    (tmp_path / "etc/codex").mkdir(parents=True)
    (tmp_path / "etc/codex/requirements.toml").write_text(f"{key}\n", "utf-8")
    found = read_request(parse_options(["-s", "read-only"]), "/h", "/w", "0.171.0", tmp_path)
    assert {origin.layer for origin in found.origins} == {RequestLayer.ARGV}
    assert found.given is None


@pytest.mark.parametrize(
    ("option", "network"),
    [
        ("-c features.network_proxy=true", Network.MEDIATED),
        ("--enable network_proxy", Network.MEDIATED),
        ("-c features.network_proxy.enabled=true", Network.MEDIATED),
        ("--disable network_proxy", Network.ON),
        ("-c features.network_proxy=false", Network.ON),
    ],
)
def test_proxy_of_an_option(option: str, network: Network, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        'sandbox_mode = "workspace-write"\n[sandbox_workspace_write]\nnetwork_access = true\n'
        f"[features]\nnetwork_proxy = {'true' if network is Network.ON else 'false'}\n",
        "utf-8",
    )
    found = read_request(parse_options(option.split()), str(tmp_path), "/w", "0.171.0", Path("/"))
    assert found.given is not None
    assert found.given.network is network


# ---------------------------------------------------------------- processes


def process(*argv: str, env: dict[str, str] | None, started: float = 5e9) -> Process:
    return Process(key=ProcessKey(1, started), ppid=0, name="codex", argv=argv, cwd="/w", env=env)


@pytest.mark.parametrize("is_written_later", [False, True])
def test_request_of_a_process(tmp_path: Path, is_written_later: bool) -> None:
    (tmp_path / "config.toml").write_text('approval_policy = "never"\n', "utf-8")
    started = 1.0 if is_written_later else 5e9
    codex = process("codex", "-s", "read-only", env={"CODEX_HOME": str(tmp_path)}, started=started)
    found = CodexRequests().read(codex, Thread("t", version="0.169.0", cwd="/w"), Path("/"), 6e9)
    assert found is not None
    assert (found.policy.filesystem, found.policy.approval) == (Filesystem.READ_ONLY, "never")
    changed = ((f"{tmp_path}/config.toml",), 6e9) if is_written_later else ((), None)
    assert (found.is_fixed, (found.changed_files, found.read_at)) == (False, changed)


def test_old_version_has_the_oldest_measured_rules_unless_it_may_differ(tmp_path: Path) -> None:
    def origins(text: str, version: str | None) -> tuple[set[RequestLayer], str | None]:
        (tmp_path / "config.toml").write_text(text, "utf-8")
        args = parse_options(["-s", "workspace-write"])
        found = read_request(args, str(tmp_path), "/w", version, Path("/"))
        return {origin.layer for origin in found.origins}, found.rules_of

    both = {RequestLayer.ARGV, RequestLayer.USER}
    assert origins('approval_policy = "never"\n', "0.127.0") == (both, "0.145")
    table = 'approval_policy = "never"\nprofile = "x"\n[profiles.x]\nsandbox_mode = "read-only"\n'
    assert origins(table, "0.127.0") == ({RequestLayer.ARGV}, "0.145")
    proxy = 'approval_policy = "never"\n[sandbox_workspace_write]\nnetwork_access = true\n'
    proxy += "[features]\nnetwork_proxy = true\n"
    assert origins(proxy, "0.130.0") == ({RequestLayer.ARGV}, "0.145")
    assert origins(proxy, "0.171.0") == (both, None)
    assert origins('approval_policy = "never"\n', None) == ({RequestLayer.ARGV}, None)


# ---------------------------------------------------------------- before a run


@pytest.mark.parametrize(
    ("version", "args", "why"),
    [("0.169.0", "exec --bogus", "--bogus"), ("0.169.0", "login", "starts no thread")],
)
def test_arguments_without_a_policy(version: str, args: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=why):
        predict_policy(tuple(args.split()), home=tmp_path, cwd=tmp_path, version=(version, "x"))


def test_unknown_options_of_a_newer_version_pass(tmp_path: Path) -> None:
    report = predict_policy(("--new",), home=tmp_path, cwd=tmp_path, version=("9.9.0", "x"))
    assert (report.measured, report.exit_code) == (False, 2)


def test_a_profile_that_looked_like_a_secret_leaves_the_arguments_unknown() -> None:
    assert parse_arguments(clean_arguments(("codex", "exec", "-pWork2026", "x"))) is None
    assert parse_arguments(clean_arguments(("codex", "exec", "-p", "work", "x"))) is not None
