"""What programs print when a sandbox refuses, and what only looks like it."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.sandbox.denials import MAX_DENIALS, MAX_QUOTE_CHARACTERS, Denial, find_denials

DATA = Path(__file__).parents[1] / "data"
HOME = "/home/dev"
CWD = "/home/dev/project"
MACOS_CWD = "/Users/me/proj"


def workspace(cwd: str) -> Policy:
    rules = (PolicyRule("/", "read"), *(PolicyRule(root, "write") for root in (cwd, "/tmp", "$TMPDIR")))
    return Policy(Filesystem.WORKSPACE, Network.OFF, rules)


WORKSPACE, MACOS = workspace(CWD), workspace(MACOS_CWD)
"""As Codex writes it in its legacy form: without the read-only tops of the roots."""
READ_ONLY = Policy(filesystem=Filesystem.READ_ONLY, network=Network.OFF, rules=(PolicyRule("/", "read"),))
ONLINE = Policy(filesystem=Filesystem.WORKSPACE, network=Network.ON, rules=WORKSPACE.rules)
MEDIATED = Policy(filesystem=Filesystem.WORKSPACE, network=Network.MEDIATED, rules=WORKSPACE.rules)
FULL = Policy(filesystem=Filesystem.UNRESTRICTED, network=Network.ON, enforced_by="nobody")
EXTERNAL = Policy(filesystem=Filesystem.UNRESTRICTED, network=Network.OFF, enforced_by="external")
HIDING = Policy(Filesystem.CUSTOM, Network.OFF, (*WORKSPACE.rules, PolicyRule(f"{CWD}/secrets", "deny")))
UNKNOWN = Policy(filesystem=Filesystem.UNKNOWN, network=Network.UNKNOWN)


def find(script: str, output: str, policy: Policy | None = WORKSPACE, **more: Any) -> tuple[Denial, ...]:
    arguments: dict[str, Any] = {"exit_code": 1, "outcome": "ended", "cwd": CWD, "home": HOME, **more}
    return find_denials(script, output, policy=policy, **arguments)


def short(denials: tuple[Denial, ...]) -> list[tuple[str, str, str | None, str]]:
    return [(d.what, d.operation, d.target, d.certainty) for d in denials]


# ---------------------------------------------------------------- files

EROFS, EACCES, EPERM = "Read-only file system", "Permission denied", "Operation not permitted"
INDEX_LOCK = f"fatal: Unable to create '{CWD}/.git/index.lock': {EROFS}"
POLICIES = {
    "workspace": WORKSPACE,
    "read-only": READ_ONLY,
    "online": ONLINE,
    "mediated": MEDIATED,
    "full": FULL,
    "external": EXTERNAL,
    "unknown": UNKNOWN,
    None: None,
}
TEXTS = [json.loads(line) for line in (DATA / "denials_texts.jsonl").read_text("utf-8").splitlines()]
"""What programs print, by groups: `refused-write`, `likely-write`, `refused-read`, `quoted`, `ordinary`,
`network`, `refused-socket`, `proxy`, `explained` (failures with another cause), `not-started` (the sandbox),
`nested` (agents inside the sandbox), `shown-error` (programs that print an error as data, or may),
`macos` (a home in /Users, and more tools)."""


def of_group(*groups: str) -> list[dict[str, Any]]:
    chosen = [case for case in TEXTS if case["group"] in groups]
    assert {case["group"] for case in chosen} == set(groups)
    return chosen


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: f"{case['group']}: {case['script']}")
def test_the_text_of_a_program(case: dict[str, Any]) -> None:
    """The families of messages of many programs."""
    macos = case["group"] == "macos"
    found = find(
        case["script"],
        case["output"],
        MACOS if macos else POLICIES[case.get("policy", "workspace")],
        exit_code=case.get("exit_code", 1),
        **({"cwd": MACOS_CWD, "home": "/Users/me"} if macos else {}),
    )
    assert [list(denial) for denial in short(found)] == case["denials"]
    assert [d.nested for d in found] == ([case["nested"]] if "nested" in case else [None] * len(found))


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo x >> /srv/f", "bash: line 1: /srv/f: Permission denied"),
        ("./tool", "open /home/dev/.tool/state.json: permission denied"),
    ],
)
def test_file_modes_are_no_denial_where_the_sandbox_has_other_errors(script: str, output: str) -> None:
    """Recorded in Codex 0.169's sandbox with files of mode 444 and of another user: the same is printed
    outside it."""
    assert len(find(script, output)) == 1
    assert find(script, output, landlock=False) == ()
    assert find(script, output, HIDING, landlock=False) == ()


def test_what_the_sandbox_hides_has_the_error_of_file_modes() -> None:
    output = f"bash: line 1: {CWD}/secrets/x: Permission denied"
    found = find(f"echo x > {CWD}/secrets/x", output, HIDING, landlock=False)
    assert short(found) == [("filesystem", "write", f"{CWD}/secrets/x", "certain")]


# ---------------------------------------------------------------- the exit code is no condition

ENDINGS = ("{} 2>&1 | tail -3", "bash -lc '{}'; true", "time ( {} ); true")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("script", "output", "target"),
    [
        ("git commit --allow-empty -m x", INDEX_LOCK, f"{CWD}/.git/index.lock"),
        (
            "opencode run hi",
            f"Unknown: FileSystem.open ({HOME}/.local/share/opencode/log/opencode.log)",
            f"{HOME}/.local/share/opencode/log/opencode.log",
        ),
        (
            "hermes kanban complete 7 --db /home/dev/board/kanban.db",
            "Error: unable to open database file",
            "/home/dev/board/kanban.db",
        ),
        ("curl -s https://example.com/x", "curl: (6) Could not resolve host: example.com", "example.com"),
    ],
    ids=["git", "opencode", "kanban", "curl"],
)
def test_an_exit_code_of_0_hides_nothing(script: str, output: str, target: str, ending: str) -> None:
    """Findings B1 and 14357's probe: models pipe to `tail` all the time."""
    assert [d.target for d in find(ending.format(script), output, exit_code=0)] == [target]


def test_their_number_and_their_quotes_are_bounded() -> None:
    output = "\n".join(f"touch: cannot touch '/etc/{number}{'x' * 500}': {EROFS}" for number in range(60))
    found = find("touch /etc/*", output)
    assert len(found) == MAX_DENIALS
    assert all(len(d.quote) <= MAX_QUOTE_CHARACTERS for d in found)


# ---------------------------------------------------------------- databases

SQLITE = (
    "python3 -c \"import sqlite3,os; sqlite3.connect(os.environ['HOME']+'/board/kanban.db')\"",
    "sqlite3 ~/board/kanban.db 'insert into t values(1)'",
    "node -e \"new (require('better-sqlite3'))(process.env.HOME + '/board/kanban.db')\"",
)


@pytest.mark.parametrize("script", SQLITE)
@pytest.mark.parametrize("text", ["unable to open database file", "attempt to write a readonly database"])
def test_a_database_is_named_by_the_command(script: str, text: str) -> None:
    assert short(find(script, f"sqlite3.OperationalError: {text}")) == [
        ("filesystem", "sqlite", "/home/dev/board/kanban.db", "certain")
    ]


@pytest.mark.parametrize(
    ("arguments", "output", "target"),
    [
        ('{"task": 7}', "unable to open database file", None),
        (
            '{"task": 7}',
            "Error: sqlite3.OperationalError: unable to open database file: /home/dev/board/kanban.db",
            "/home/dev/board/kanban.db",
        ),
        (
            '{"board": "/home/dev/board/kanban.db"}',
            '{"error": "attempt to write a readonly database"}',
            "/home/dev/board/kanban.db",
        ),
        ("{}", "[Errno 13] Permission denied: '/home/dev/board/x'", "/home/dev/board/x"),
    ],
)
@pytest.mark.parametrize("outcome", ["failed", "ended"])
def test_an_mcp_tool_fails_like_a_command(
    arguments: str, output: str, target: str | None, outcome: str
) -> None:
    """Finding B7: Hermes Kanban's hand-off by `kanban_complete`."""
    if outcome == "ended" and output.startswith("unable"):
        output = f"Error: {output}"
    found = find(arguments, output, tool="kanban_complete", outcome=outcome, exit_code=None)
    assert [(d.what, d.target) for d in found] == [("filesystem", target)]


# ---------------------------------------------------------------- reading and quoting

MESSAGES = (
    f"touch: cannot touch '/etc/x': {EROFS}",
    f"OSError: [Errno 30] {EROFS}: '/opt/x'",
    f"PermissionError: [Errno 13] {EACCES}: '/home/dev/.cache/x'",
    "Error: EROFS: read-only file system, open '/opt/x'",
    INDEX_LOCK.replace(CWD, "/srv/repo"),
    "sqlite3.OperationalError: unable to open database file",
    "curl: (6) Could not resolve host: example.com",
    "npm error request to https://registry.example.org/x failed, reason: getaddrinfo EAI_AGAIN "
    "registry.example.org",
    "error connecting to /tmp/tmux-0/default (Operation not permitted)",
    'Network access to "example.com" was blocked by policy.',
    "Caused by:\n  Read-only file system (os error 30)",
    "npm error code EROFS\nnpm error path /opt/x",
)
QUOTERS = (
    *("cat README.md", "head -50 log.txt", "sed -n '1,40p' docs/x.md", "rg --no-filename system"),
    *("git log -3", "git show HEAD:README.md | head -40", "cat a.txt | sort | uniq -c; exit 3"),
    *("find . -name '*.md' -exec cat {} +", "find . -name '*.md' | xargs cat", "gh issue view 12"),
    *("docker logs web", "pytest -q", "npm run test:unit", "make check", "uv run pytest -q 2>&1 | tail -20"),
    *("python tests/run.py", "ssh build uptime", "docker run --rm img make", "tmux capture-pane -p -t %3"),
    *("jq -r .message log.json", "touch ok.txt; cat notes.md", "bash -lc 'cat notes.md'"),
    *('x=$(cat notes.md); echo "$x"', "nl -ba notes.md | sed -n '1,20p'"),
)


@pytest.mark.parametrize("script", QUOTERS)
@pytest.mark.parametrize("exit_code", [0, 1])
def test_quoted_text_is_no_denial(script: str, exit_code: int) -> None:
    """Finding A4."""
    for message in MESSAGES:
        assert find(script, f"some text\n{message}\nmore text", exit_code=exit_code) == (), message


def test_a_policy_that_hides_paths_denies_reading() -> None:
    output = f"cat: {CWD}/secrets/key: {EACCES}"
    assert short(find("cat secrets/key", output, HIDING)) == [
        ("filesystem", "read", f"{CWD}/secrets/key", "certain")
    ]
    assert find("cat /etc/shadow", "cat: /etc/shadow: Permission denied", HIDING) == ()


def test_a_message_that_is_in_doubt_needs_another_witness() -> None:
    """Either the program printed it, or the log did."""
    output = f"OSError: [Errno 30] {EROFS}: '/opt/x'"
    assert find("cat old.log; python app.py", output, exit_code=0) == ()
    assert short(find("cat old.log; python app.py", output, exit_code=1)) == [
        ("filesystem", "write", "/opt/x", "likely")
    ]
    assert short(find("cat old.log; python app.py /opt/x", output, exit_code=0)) == [
        ("filesystem", "write", "/opt/x", "certain")
    ]


# ---------------------------------------------------------------- the policy


def test_under_full_access_no_word_is_certain() -> None:
    assert short(find("touch ~/x", f"touch: cannot touch '/home/dev/x': {EROFS}", FULL)) == [
        ("filesystem", "create", "/home/dev/x", "likely")
    ]


# ---------------------------------------------------------------- the network


@pytest.mark.parametrize("case", of_group("network"), ids=lambda case: case["script"])
def test_a_network_that_is_on_or_mediated(case: dict[str, Any]) -> None:
    assert find(case["script"], case["output"], ONLINE) == ()
    mediated = [list(denial) for denial in short(find(case["script"], case["output"], MEDIATED))]
    # where some hosts can be reached a package may as well not exist
    assert mediated == ([] if "from versions: none" in case["output"] else case["denials"])


# ---------------------------------------------------------------- a sandbox that cannot start


@pytest.mark.parametrize(
    ("script", "exit_code"),
    [("cat sandbox.log", 0), ("cat sandbox.log; exit 3", 3), ("bwrap --ro-bind / / true", 1)],
)
def test_a_sandbox_that_did_start(script: str, exit_code: int) -> None:
    assert find(script, "bwrap: setting up uid map: Permission denied\n", exit_code=exit_code) == ()
    assert find(script, "first\nbwrap: setting up uid map: Permission denied\n", exit_code=exit_code) == ()


# ---------------------------------------------------------------- recorded outputs

RUN = "/home/dev/run/ws"
RECORDED = [
    json.loads(line)
    for name in ("denials_0_169.jsonl", "denials_tools.jsonl")
    for line in (DATA / name).read_text("utf-8").splitlines()
]
"""What commands printed in the sandbox of 0.169: 50 under three profiles, 250 of many tools and languages,
among them those that only show such texts. What each is read as was looked through by hand."""


def sandbox(profile: str) -> Policy:
    roots = () if profile == "read-only" else (RUN, "/tmp")
    rules = (
        PolicyRule("/", "read"),
        *(PolicyRule(root, "write") for root in roots),
        *(PolicyRule(f"{root}/.git", "read") for root in roots),
    )
    network = Network.ON if profile.endswith("network") else Network.OFF
    return Policy(
        filesystem=Filesystem.WORKSPACE if roots else Filesystem.READ_ONLY, network=network, rules=rules
    )


def denials_of(case: dict[str, Any]) -> tuple[Denial, ...]:
    """Return the denials that the recorded output of a command shows."""
    return find_denials(
        case["command"],
        case["output"],
        exit_code=case["exit"],
        outcome="ended",
        policy=sandbox(case["profile"]),
        cwd=RUN,
        home="/home/dev/run/home",
    )


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['name']}-{case['profile']}")
def test_what_commands_printed_in_the_sandbox_of_0_169(case: dict[str, Any]) -> None:
    """Real outputs: also of what failed for another reason, with the network on, or without a sandbox."""
    found = denials_of(case)
    assert [list(denial) for denial in short(found)] == case["denials"]


UNSEEN = [json.loads(line) for line in (DATA / "denials_unseen.jsonl").read_text("utf-8").splitlines()]
"""Commands in the sandbox of 0.169, and some that show such texts or fail for other reasons, written after
the rules. `shown`: what an output shows to have been denied, by hand."""


def test_what_the_rules_were_not_made_for() -> None:
    found = 0
    for case in UNSEEN:
        denials = denials_of(case)
        assert {denial.what for denial in denials} <= set(case["shown"]), case["name"]
        assert {denial.target for denial in denials} <= {None, *case["targets"]}, case["name"]
        found += bool(denials)
    assert found > 100
