"""The checks of `agentdash doctor` and their advice."""

import json
import sys
from pathlib import Path

import pytest

from agentdash.agents.codex.home import CodexHome
from agentdash.collect.remote.carrier import carrier
from agentdash.config import Config, HostSettings
from agentdash.report import doctor
from agentdash.report.doctor import DoctorCheck, check_agents, check_homes, check_hosts, check_sandbox
from agentdash.version import described_version
from tests.unit.rollout_files import RECORDINGS, home_of
from tests.unit.test_cli import agentdash


def by_name(checks: list[DoctorCheck]) -> dict[str, DoctorCheck]:
    return {check.name: check for check in checks}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    rollouts = (next(RECORDINGS.glob(f"{version}/full-access/*.jsonl")) for version in ("0.114.0", "0.169.0"))
    return home_of(tmp_path, *rollouts).root


@pytest.mark.slow
def test_document(home: Path) -> None:
    done = agentdash("doctor", "--json", "--codex-home", str(home), "--no-tmux")
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr, document["schema"]) == (0, "", "agentdash.doctor/1")
    checks = {check["name"]: check for check in document["checks"]}
    assert checks["codex home"]["detail"].endswith("2 sessions; of the newest 2 by Codex 0.169.0, 0.114.0")
    assert {
        name: checks[name]["level"] for name in ("codex home", "codex files", "tmux", "processes")
    } == dict.fromkeys(("codex home", "codex files", "tmux", "processes"), "ok")
    assert all(check["advice"] for check in document["checks"] if check["level"] != "ok")
    assert "codex home" in agentdash("doctor", "--no-tmux", "--codex-home", str(home)).stdout


def test_report_for_others(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "zebediah"
    (folder / ".codex").mkdir(parents=True)
    done = agentdash("doctor", "--report", "--no-tmux", HOME=str(folder), CODEX_HOME="")
    assert "zebediah" not in done.stdout
    assert "~/.codex" in done.stdout


def test_agents_without_codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has another agent is not told of a missing Codex."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    nothing = CodexHome(tmp_path / "nothing")
    assert [(each.name, each.level) for each in check_agents(nothing, ())] == [("agents", "warn")]
    (tmp_path / "projects" / "-srv").mkdir(parents=True)
    assert [(each.name, each.level) for each in check_agents(nothing, ())] == [("claude", "ok")]


def test_missing_home_and_later_codex(home: Path) -> None:
    probe = doctor._Probe(Config(tmux=False), None)
    missing, *_ = check_homes(CodexHome(home / "nothing"), probe.processes.values())
    assert (missing.level, "does not exist" in missing.detail) == ("warn", True)
    for path in home.rglob("*.jsonl"):
        text = path.read_text().replace('"cli_version":"0.169.0"', '"cli_version":"0.175.2"')
        path.write_text(text + '{"timestamp":"2026-11-20T00:00:00Z","type":"mood","payload":{}}\n')
    late = by_name(list(check_homes(CodexHome(home), probe.processes.values())))["codex home"]
    assert (late.level, late.advice) == ("ok", None)
    assert late.detail.endswith("later ones than 0.171 are read by its rules, lines of unknown kinds: 1 mood")


def test_status_file_is_needed_inside_of_a_sandbox(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    sandboxed = by_name(list(check_sandbox("bwrap", CodexHome(home), Config())))
    assert (sandboxed["sandbox"].level, sandboxed["status file"].level) == ("warn", "fail")
    assert "agentdash publish" in (sandboxed["status file"].advice or "")
    outside = by_name(list(check_sandbox(None, CodexHome(home), Config(publish=False))))
    assert (outside["sandbox"].level, outside["status file"].advice) == ("ok", None)


def test_hosts_of_the_configuration() -> None:
    """They are tried with the program that the configuration names for them."""
    program = f"{sys.executable} -m agentdash"
    hosts = {
        "build1": HostSettings(carrier="sh -c {}", command=program),
        "bare": HostSettings(carrier="sh -c {}", command="no-such-program"),
        "gone": HostSettings(carrier="/no/such/carrier {}"),
    }
    checks = check_hosts([carrier(name, settings) for name, settings in hosts.items()])
    reached, bare, gone = checks
    assert reached == DoctorCheck("host build1", "ok", f"reached by sh; agentdash {described_version()}")
    assert (bare.level, bare.advice) == ("warn", "install agentdash there")
    assert "no-such-program" in bare.detail
    assert gone.detail == "/no/such/carrier: No such file or directory"
    assert check_hosts([]) == []
