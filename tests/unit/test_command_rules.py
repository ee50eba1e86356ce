"""Rules that let commands out of Codex's sandbox: what they fit, where they are read, what follows."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agentdash.agents.codex.command_rules import command_rules, parse_rules, rule_files
from agentdash.agents.codex.home import CodexHome
from agentdash.agents.session_logs import reader_of_log
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.command_rules import CommandRules
from agentdash.model.fleet import Fleet
from agentdash.model.policy import Policy, PolicyRule
from agentdash.model.process import Kernel
from agentdash.model.worker import Worker
from agentdash.report.doctor import check_rules
from tests.unit import test_grants as grants
from tests.unit.rollout_files import THREAD, answer
from tests.unit.story import FULL, HOST, SANDBOXED, WORKSPACE, begun, called, held, process, worker

G = "grep Seccomp: /proc/self/status"
TWO = 'prefix_rule(pattern=["grep"], decision="allow")\nprefix_rule(pattern=["printenv"], decision="allow")\n'


def rules(text: str) -> CommandRules:
    """Return the rules of one file."""
    file = parse_rules(text, "r")
    assert file.problem is None
    return CommandRules(file.rules, file.programs)


# ---------------------------------------------------------------- measured on 0.171.0, with the rules `TWO`


@pytest.mark.parametrize(
    "script",
    [
        G, "grep -H Seccomp: /proc/self/status", f"/usr/bin/{G}", f"/bin/{G}", f"{G} && {G}",
        f"{G}; {G}", f"{G}\n{G}",
        f"{G} | grep x", f"{G} || {G}", "grep 'Seccomp:' \"/proc/self/status\"", f"{G} && printenv CODEX",
        f"{G} a!b", f"{G} a%b", f"{G} a,b", "grep Sec'comp:' /proc/self/status", f'{G} "a!b"',
        f'{G} "a*b"', f'{G} "~"',
        f'{G} "a\nb"', f"{G} 'a\nb'", f"{G} 2", f"{G} é", f"{G} a+b", f"{G};", f"{G}\n", f"\n{G}",
        f"  {G}", f"{G} ''",
        f'{G} ""', "grep Seccomp: \\\n/proc/self/status", f"{G}\n\n{G}", f"{G} &&\n{G}", f"{G} |\n{G}",
        f"{G} -- -",
        f"printenv A=1 ; {G}", f"{G} a@b .",
    ],
)  # fmt: skip
def test_what_runs_outside(script: str) -> None:
    found = rules(TWO).letting_out(script)
    assert found is not None
    assert found.place in ("r:1", "r:2")


@pytest.mark.parametrize(
    "script",
    [
        f"{G} && sed -n 1p x", f"false || {G}", f"{G} | cat", f"{G} 2>/dev/null", f"A=1 {G}",
        f"bash -c '{G}'",
        f"bash -lc '{G}'", f"{G} $X", f"( {G} )", f"{G} &", f"cd /tmp && {G}", f"{G} # hi",
        "grep $(echo x)", f"{G} x*",
        f"! {G}", f"{G} ~", f"env {G}", "grep Seccomp\\: x", f'{G} "$X"', f"{G} <<E\nx\nE", f"{G} - < x",
        f"time {G}",
        f"{{ {G}; }}", f"if {G}; then true; fi", f"{G} {{}}", f"{G} a#b", f"{G} HEAD~1", f"{G} @{{u}}",
        f"{G} a^b",
        f"{G} a]b", f"{G} a[b", f"{G} a?", f"{G} |& {G}", f"{G} $'a'", f'{G} "a$"', f'{G} "a\\\\b"',
        "'grep' x",
        f"# hi\n{G}", f"export A ; {G}", "", " ", ";", f"&& {G}", f"{G} ; ; {G}", "sed x", "gre p x",
        "grep-x y",
        "/usr/bin/egrep x", f"{G} 'open", 'grep "open',
    ],
)  # fmt: skip
def test_what_stays_inside(script: str) -> None:
    assert rules(TWO).letting_out(script) is None


GREP, GIT = 'prefix_rule(pattern=["grep"])\n', 'prefix_rule(pattern=["git", ["fetch", "pull"]])'


@pytest.mark.parametrize(
    ("text", "script", "is_out"),
    [
        (GREP, G, True),  # an omitted decision allows
        (GIT.replace(")", ', match=["git pull"], decision="allow")'), "git pull -v", True),
        (GIT, "git push", False),
        ('prefix_rule(pattern=[["sed", "grep"], "Seccomp:"], justification="why")', G, True),
        ('prefix_rule(pattern=["grep", "Seccomp:", "/proc/self/status", "x"])', G, False),
        (GREP + 'prefix_rule(pattern=["grep", "Seccomp:"], decision="prompt")', G, False),
        (GREP + 'prefix_rule(pattern=["grep", "Seccomp:"], decision="forbidden")', G, False),
        (GREP + 'prefix_rule(pattern=["grep", "x"], decision="forbidden")', G, True),
        ('prefix_rule(pattern=["/usr/bin/grep"])', G, False),
        ('prefix_rule(pattern=["/usr/bin/grep"])', f"/usr/bin/{G}", True),
        (GREP + 'host_executable(name="grep", paths=["/opt/grep"])', f"/usr/bin/{G}", False),
        (GREP + 'host_executable(name="grep", paths=["/opt/grep"])', G, True),
        (GREP + 'host_executable(name="grep", paths=["/usr/bin/grep"])', f"/usr/bin/{G}", True),
        ('# of mine\n"""why"""\nprefix_rule(\n  pattern = ["grep"],  # all\n)', G, True),
        ('prefix_rule(pattern=[], decision="allow")', G, False),
        ('prefix_rule(pattern=["grep", []], decision="allow")', G, False),
        ('prefix_rule(pattern="grep", decision="allow")', G, False),
        ('network_rule(host="x.example", protocol="https", decision="allow")', G, False),
    ],
)
def test_rules(text: str, script: str, is_out: bool) -> None:
    assert (rules(text).letting_out(script) is not None) is is_out


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ('P = ["grep"]\nprefix_rule(pattern=P, decision="allow")', (1, 2)),
        ('[prefix_rule(pattern=[x]) for x in ["grep"]]', (1,)),
        ('\nload("x", "y")\nprefix_rule(["grep"])', (2, 3)),
        ('if True:\n  prefix_rule(pattern=["grep"])', (1,)),
        ('prefix_rule(pattern=["grep"], decision="sometimes")', (1,)),
    ],
)
def test_statements_that_are_not_understood(text: str, unknown: tuple[int, ...]) -> None:
    file = parse_rules(text, "r")
    assert (file.unknown, file.rules) == (unknown, ())


@pytest.mark.parametrize("text", ["prefix_rule(pattern=[\n", "(" * 10_000, "-" * 100_000 + "1", "\0"])
def test_hostile_files(text: str) -> None:
    file = parse_rules(text, "r")
    assert file.problem is not None
    assert file.rules == ()


# ---------------------------------------------------------------- where they are read


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


ONE = 'prefix_rule(pattern=["printenv"], decision="allow")'


@pytest.mark.parametrize(
    ("place", "trust", "is_read"),
    [
        ("home/rules/default.rules", None, True),
        ("home/rules/other.rules", None, True),
        ("home/rules/default.txt", None, False),
        ("home/rules/more/x.rules", None, False),
        ("project/.codex/rules/x.rules", "trusted", True),
        ("project/.codex/rules/x.rules", "untrusted", False),
        ("project/.codex/rules/x.rules", None, False),
        ("project/sub/.codex/rules/x.rules", "trusted", True),
    ],
)
def test_places(tmp_path: Path, place: str, trust: str | None, is_read: bool) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "sub").mkdir()
    level = f'[projects."{project}"]\ntrust_level = "{trust}"\n' if trust else ""
    write(tmp_path / "home/config.toml", level)
    write(tmp_path / place, ONE)
    found = command_rules(str(tmp_path / "home"), str(project / "sub")).letting_out("printenv")
    assert (found.place if found else None) == (f"{tmp_path / place}:1" if is_read else None)


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "rules/x.rules").mkdir(parents=True)
    write(tmp_path / "rules/y.rules", "#" * 300_000)
    assert [file.rules for file in rule_files(str(tmp_path), "/")] == [(), ()]
    assert all(file.problem for file in rule_files(str(tmp_path), "/"))


# ---------------------------------------------------------------- what follows

ENV = grants.ENV


def lines(script: str, output: str, code: int) -> list[bytes]:
    """Return a rollout with one command."""
    return [*grants.begins(), *grants.begun(), *grants.ran(script, output, code), *grants.ended()]


def read(tmp_path: Path, text: str, written: list[bytes]) -> Worker:
    path = tmp_path / f"sessions/2026/11/20/rollout-2026-11-20T19-59-47-{THREAD}.jsonl"
    write(tmp_path / "rules/default.rules", text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(written))
    events = reader_of_log(path, THREAD).read(written)
    (found,) = build_snapshot(reduce(Fleet(), [*events]), 4e9).workers
    return found


HIDING = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/etc/shadow", "deny")))
NO_HOST = "ssh: Could not resolve hostname git.example: Name or service not known\n"


@pytest.mark.parametrize(
    ("text", "script", "output", "code", "kinds", "denials"),
    [
        (ONE, "printenv", ENV, 0, [], 0),
        ("", "printenv", ENV, 0, ["missing-network-flag"], 0),
        (ONE, "printenv | cat", ENV, 0, ["missing-network-flag"], 0),
        (ONE.replace("allow", "prompt"), "printenv", ENV, 0, ["missing-network-flag"], 0),
        ('prefix_rule(pattern=["git", "fetch"])', "git fetch origin", NO_HOST, 128, [], 0),
        ('prefix_rule(pattern=["git", "fetch"])', "git pull", NO_HOST, 128, [], 1),
        ('prefix_rule(pattern=["git", "fetch"])', "git fetch 2>&1", NO_HOST, 128, [], 1),
    ],
)
def test_what_a_rule_may_have_let_out(
    tmp_path: Path, text: str, script: str, output: str, code: int, kinds: list[str], denials: int
) -> None:
    found = read(tmp_path, text, lines(script, output, code))
    assert [finding.kind for finding in found.sandbox.findings if finding.kind != "denied-network"] == kinds
    assert len(found.sandbox.denials) == denials


def test_it_is_unverified_with_the_place_of_the_rule(tmp_path: Path) -> None:
    flag = f"{ENV}CODEX_SANDBOX_NETWORK_DISABLED=1\n"  # on 0.171 it stays set outside: it proves nothing
    found = read(tmp_path, f"\n{ONE}", lines("printenv", flag, 0)).sandbox
    place = f"{tmp_path}/rules/default.rules:2"
    assert (found.verdict, found.findings) == ("unverified", ())
    assert f"what the sandbox holds, by commands that {place} may have let out of it" in found.unread
    assert any(f"{place} may let it run outside the sandbox" in each.text for each in found.evidence)
    assert read(tmp_path / "other", "", lines("printenv", flag, 0)).sandbox.verdict == "match"


def test_a_denial_that_codex_itself_states_was_inside(tmp_path: Path) -> None:
    written = lines("git fetch", "", 1)
    stated = "exec_command failed: sandbox error: sandbox denied exec error, exit code: 1, stdout: , stderr: "
    written[-2] = answer(stated + NO_HOST, id_="c1")
    assert read(tmp_path, 'prefix_rule(pattern=["git"])', written).sandbox.denials


@pytest.mark.parametrize(
    ("policy", "kernel", "rule", "verdict", "kinds"),
    [
        (WORKSPACE, HOST, "/r:1", "unverified", set()),
        (WORKSPACE, SANDBOXED, "/r:1", "match", set()),
        (FULL, HOST, "/r:1", "match", set()),
        (WORKSPACE, HOST, "", "mismatch", {"filesystem-wider", "network-open"}),
        (HIDING, HOST, "/r:1", "mismatch", {"filesystem-wider", "network-open"}),  # it lets nothing out
    ],
)
def test_live_the_kernel_decides(
    policy: Policy, kernel: Kernel, rule: str, verdict: str, kinds: set[str]
) -> None:
    env = {"CODEX_THREAD_ID": THREAD, "CODEX_TOOL_CALL_ID": "c1"}
    found = worker(
        begun(policy=policy),
        replace(called(text="printenv"), let_out_by=rule),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        process(50, started=90.0, agent="codex"),
        process(77, 50, started=104.0, kernel=kernel, env=env),
        held(110),
    ).sandbox
    assert (found.verdict, {finding.kind for finding in found.findings}) == (verdict, kinds)


def test_doctor_says_what_is_not_understood(tmp_path: Path) -> None:
    write(tmp_path / "rules/a.rules", f"{ONE}\n{ONE}\nP = 1\nload('x')\n")
    write(tmp_path / "rules/b.rules", "prefix_rule(")
    found = list(check_rules(CodexHome(tmp_path)))
    assert [each.level for each in found] == ["warn", "warn"]
    assert found[0].detail == f"{tmp_path}/rules/a.rules: 2 statements not understood, line 3 first"
    assert found[1].detail.startswith(f"{tmp_path}/rules/b.rules: not understood: ")
    assert list(check_rules(CodexHome(tmp_path / "none"))) == []
