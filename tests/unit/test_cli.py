"""The commands, run as processes: exit codes, messages, and whole documents."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from agentdash.collect.clock import SystemClock
from agentdash.collect.live import live_sources
from agentdash.config import Config
from agentdash.engine.hub import Hub
from agentdash.model.states import Group
from agentdash.report.status import print_status
from agentdash.version import described_version
from tests.unit.captures import captures

pytestmark = pytest.mark.slow  # each test starts processes

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
BOARD = "01a1fa8b-4086-7a32-8c43-2abbeb466a8c"
"""The thread of the recording whose database may not be opened."""
BLANK = {
    "TMUX": "",
    "CODEX_HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "XDG_STATE_HOME": "/proc/nonexistent",  # cannot be created, not even by root
}


def agentdash(*args: str, stdin: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **BLANK, "TMUX_TMPDIR": "/nonexistent", **env}
    command = [sys.executable, "-m", "agentdash", *args]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, env=environ, check=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for scenario in ("spawn-leaked-flags", "kanban-board", "workspace-write"):
        shutil.copytree(RECORDINGS / "0.169.0" / scenario, tmp_path / "home/sessions/2026/11" / scenario)
    return tmp_path / "home"


def test_labels_end_with_an_empty_text(home: Path, tmp_path: Path) -> None:
    given = ("--no-tmux", "--codex-home", str(home))
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    for target, text, said in (
        (BOARD, "cards", ": cards"),
        ("cards", "cards 2", ": cards 2"),
        (BOARD, "", ": no label"),
    ):
        done = agentdash("label", target, text, *given, **env)
        assert (done.returncode, done.stdout.rstrip().endswith(said)) == (0, True), done
        shown = json.loads(agentdash("status", "--json=label", *given, **env).stdout)["workers"]
        assert {each["id"]: each["label"] for each in shown}[BOARD] == text
    several = agentdash("label", "child", "x", *given, **env)
    assert several.returncode == 2
    kept = agentdash("label", BOARD, "x", *given)
    assert (kept.returncode, kept.stderr.count("\n"), "/proc/nonexistent" in kept.stderr) == (2, 1, True)


def test_status_document(home: Path) -> None:
    done = agentdash("status", "--json", "--no-tmux", "--codex-home", str(home), BOARD)
    assert (done.returncode, done.stderr) == (0, "")
    (worker,) = json.loads(done.stdout)["workers"]
    remedy = {
        "remedy": '[sandbox_workspace_write]\nwritable_roots = ["/home/dev/board"]',
        "remedy_once": "codex -c 'sandbox_workspace_write.writable_roots=[\"/home/dev/board\"]'",
    }
    quote, channel = "sqlite3.OperationalError: unable to open database file", "/home/dev/board/kanban.db"
    # by the clock of this machine, which may be before the recording's
    assert worker["needs_you"] is (worker["group"] == "needs-you")
    assert (worker["name"], worker["state"]) == ("[[board]] run the recorded scenario", "blocked-sandbox")
    assert worker["why"] == f"its last command was denied {channel}: {quote}"
    assert worker["fact"]["text"] == f"may not write {channel} (unable to open database file)"
    (evidence,), (finding,) = worker["evidence"], worker["sandbox"]["findings"]
    assert (evidence["source"], evidence["rule"], evidence["agrees"]) == ("output", "denied-filesystem", True)
    assert evidence["text"].endswith(f"-> {quote}")
    assert finding["evidence"] == worker["evidence"]
    (denial,) = worker["sandbox"]["denials"]
    for given, expected in (
        (finding, {"kind": "denied-filesystem", "direction": "narrower", "got": quote, **remedy}),
        (denial, {"operation": "sqlite", "target": channel, "certainty": "certain", **remedy}),
        (worker["agent"], {"name": "codex", "version": "0.169.0"}),
        (worker["sandbox"], {"verdict": "unverified", "requested": None, "applied": None}),
    ):
        assert given.items() >= expected.items()
    assert finding["remedy_where"].startswith(f"{home}/config.toml, at the end, if that directory exists")
    assert [each["state"] for each in worker["history"]] == ["running", "blocked-sandbox"]


def test_wait(home: Path) -> None:
    channel = "01a1fa8b-4086"
    command = ("wait", channel, "--no-tmux", "--codex-home", str(home))
    there = agentdash(*command, "--until", "completed, blocked-sandbox")
    assert (there.returncode, there.stderr) == (0, "")
    assert there.stdout.startswith(
        "blocked-sandbox  01a1fa8b-4086-7a32-8c43-2abbeb466a8c [[board]] run the recorded scenario: may not"
    )
    late = agentdash(*command, "--until", "running", "--timeout", "0", "--json")
    document = json.loads(late.stdout)
    assert (late.returncode, document.pop("worker")["state"]) == (1, "blocked-sandbox")
    assert document.pop("waited_seconds") >= 0
    asked = {"schema": "agentdash.wait/2", "target": channel, "until": ["running"]}
    assert document == asked | {"outcome": "timed-out", "via": None}


def test_status_watch(home: Path) -> None:
    """The first snapshot is printed as additions, then changes; a closed pipe ends the command with 0."""
    command = [sys.executable, "-m", "agentdash", "status", "--watch", "--no-tmux", "--codex-home", str(home)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **BLANK}
    ) as watch:
        lines = [json.loads(watch.stdout.readline()) for _ in range(5)]
        assert {(t["schema"], t["change"]) for t in lines} == {("agentdash.change/2", "added")}
        gone = next(home.rglob("*01a1fa8b-4086*"))
        gone.unlink()
        while (change := json.loads(watch.stdout.readline()))["change"] == "source":
            pass
        assert (change["change"], change["worker"]["id"]) == ("removed", BOARD)
        watch.stdout.close()
        assert (watch.wait(20), watch.stderr.read()) == (0, "")


@pytest.mark.parametrize("json_flag", [[], ["--json"]])
def test_missing_codex_home_is_reported(json_flag: list[str]) -> None:
    done = agentdash("status", *json_flag)
    assert done.returncode == 0
    reported = done.stdout if json_flag else done.stderr  # stdout has nothing but data
    assert "/nonexistent does not exist: start Codex once, or set CODEX_HOME" in reported


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stauts"], "No such command 'stauts'. Did you mean 'status'?"),
        (["config"], "Missing command (see agentdash config --help)"),
        (["status", "--jsno"], "No such option '--jsno'. Did you mean '--json'?"),
        (
            ["wait", "%1", "--timeout", "abc"],
            "'abc' is not a time: give seconds, or 90s, 5m, 8h (see agentdash wait --help)",
        ),
        (["status", "--codex-home", "/nonexistent"], "Directory '/nonexistent' does not exist"),
        (["status", "--codex-home="], "Invalid value for '--codex-home': the path is empty"),
        (["wait", " "], "Invalid value for 'TARGET': the name is empty"),
        (["--record=~no-such-user"], "--record: no home directory ~no-such-user"),
        (["wait", "nobody", "--timeout", "0"], "no worker matches 'nobody'"),
        (["explain", "blocked-sandox"], "see `agentdash status`. Did you mean 'blocked-sandbox'?"),
        (["explain", "--screen", "/nonexistent", "--agent", "codex"], "No such file"),
        (
            ["explain", "--screen", "/dev/null", "--agent", "nobody"],
            "'nobody' is unknown: choose from aider, amp",
        ),
        (["check", "--json", "--format", "sarif"], "--json and --format sarif contradict each other"),
        (["check", "--denials", "--fail-on", "any"], "cannot be used with --denials"),
        (["split"], "not inside tmux"),
        (["split", "--size=-5"], "invalid size '-5'"),  # with which tmux 3.3a ends
    ],
)
def test_usage_error_is_one_line_and_exit_2(arguments: list[str], message: str) -> None:
    done = agentdash(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_explain_screen_reads_a_pane_as_it_was_read_live(tmp_path: Path) -> None:
    capture = captures("opencode-1.18.33")["approve-command"]
    (tmp_path / "screen.txt").write_text(capture.text)
    plain = agentdash("explain", "--screen", str(tmp_path / "screen.txt"), "--agent", "opencode")
    assert "waiting-approval" in plain.stdout
    pane = {"agent": "opencode", "title": "OC | x", "screen": capture.lines, "width": 100, "height": 30}
    for cursor, rule in (("visible", "opencode.question"), ("hidden", "opencode.permission")):
        document = {"workers": [{"screenshot": {**pane, "cursor": cursor}}]}
        (tmp_path / "pane.json").write_text(json.dumps(document))
        assert rule in agentdash("explain", "--screen", str(tmp_path / "pane.json")).stdout
    (tmp_path / "none.json").write_text('{"workers": [{"screenshot": null}]}')
    wrong = agentdash("explain", "--screen", str(tmp_path / "none.json"))
    assert (wrong.returncode, wrong.stderr.count("\n"), "it has no pane" in wrong.stderr) == (2, 1, True)


def test_sessions(home: Path) -> None:
    done = agentdash("sessions", "--json", "--codex-home", str(home))
    document = json.loads(done.stdout)
    assert document["schema"] == "agentdash.sessions/2"
    listed = [each["id"] for each in document["sessions"]]
    assert listed == sorted(listed, reverse=True)
    assert {s["version"] for s in document["sessions"]} == {"0.169.0"}
    two = agentdash("sessions", "--json", "--limit", "2", "--codex-home", str(home)).stdout
    assert len(json.loads(two)["sessions"]) == 2
    assert "no sessions" in agentdash("sessions", "--codex-home", str(home.parent)).stdout
    newest = document["sessions"][0]
    for columns, ident in ((60, newest["id"][:18]), (80, newest["id"][:18]), (140, newest["id"])):
        table = agentdash("sessions", "--codex-home", str(home), COLUMNS=str(columns)).stdout.splitlines()
        assert max(map(len, table)) <= columns
        assert f"{ident}  " in table[1]
        assert newest["prompt"][:12] in table[1]


def test_closed_pipe_is_no_failure(home: Path) -> None:
    for command in ("status --json --no-tmux", "status --no-tmux", "schema status", "--help", "--version"):
        flags = f"--codex-home {home}" if command.startswith("status -") else ""
        pipe = f"set -o pipefail; {sys.executable} -m agentdash {command} {flags} | true"
        done = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("options", ["", "--json", "--denials", "--format=sarif"])
def test_findings_count_where_the_pipe_is_closed(options: str) -> None:
    script = f'"$1" -m agentdash check --no-cache {options} "$2" | true; echo ${{PIPESTATUS[0]}}'
    command = ["bash", "-c", script, "bash", sys.executable, RECORDINGS / "0.114.0/kanban-board"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")


@pytest.mark.parametrize("command", ["--version", "check"])
@pytest.mark.parametrize("streams", [">/dev/full", ">/dev/full 2>&1"])
def test_full_disk_is_exit_code_2(command: str, streams: str, home: Path) -> None:
    script = f'"$1" -m agentdash {command} {streams}'
    env = {**os.environ, **BLANK, "CODEX_HOME": str(home)}
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable], capture_output=True, text=True, check=False, env=env
    )
    assert done.returncode == 2
    assert done.stderr in ("", "agentdash: [Errno 28] No space left on device\n")


def test_version_help_and_schema() -> None:
    assert agentdash("--version").stdout == f"agentdash {described_version()}\n"
    listed = agentdash("--help").stdout
    assert listed.index("Look:") < listed.index("status") < listed.index("Options:")
    assert agentdash("help", "status").stdout == agentdash("status", "--help").stdout
    assert json.loads(agentdash("schema", "status").stdout)["$id"] == "agentdash.status/2"


def test_a_named_review_is_said_to_be_left_out(home: Path, tmp_path: Path) -> None:
    log = next(home.rglob("*.jsonl"))
    review = tmp_path / log.name
    first, rest = log.read_text().split("\n", 1)
    record = json.loads(first)
    record["payload"]["source"] = {"subagent": "review"}
    review.write_text(f"{json.dumps(record)}\n{rest}")
    told, silent = agentdash("check", str(review)), agentdash("check", str(log))
    assert (told.returncode, "left out" in told.stderr) == (0, True)
    assert "<stdin>: a thread that Codex" in agentdash("check", "-", stdin=review.read_text()).stderr
    assert "left out" not in silent.stderr


def test_a_wrong_replay_is_told_before_a_missing_terminal(home: Path) -> None:
    told = agentdash("replay", "nosuch", "--codex-home", str(home))
    known = agentdash("replay", "01a1fa8b-4086", "--codex-home", str(home))
    assert (told.returncode, known.returncode) == (2, 2)
    assert "neither a session log nor the id of a session" in told.stderr
    assert "--export" in known.stderr


# ---------------------------------------------------------------- preflight


def test_preflight_of_a_worker(home: Path) -> None:
    unset = ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "CODEX_THREAD_ID")
    user = {"HOME": "/home/dev", **dict.fromkeys(unset, "")}
    command = ("preflight", "--worker", "opencode", "--codex-home", str(home))
    assert "DENIED" in agentdash(*command, **user).stdout
    done = agentdash(*command, "--json", "--policy", "workspace-write", **user)
    document = json.loads(done.stdout)
    assert (done.returncode, document["schema"]) == (1, "agentdash.preflight-worker/1")
    about = ("opencode", "workspace-write", False)
    assert tuple(document[name] for name in ("worker", "mode", "network")) == about
    folder = "/home/dev/.local/share/opencode"
    database = next(each for each in document["paths"] if each["path"] == folder)
    assert (database["allowed"], database["needed"]) == (False, True)
    assert database["remedy"] == f'[sandbox_workspace_write]\nwritable_roots = ["{folder}"]'
    assert f"mkdir -p {folder}" in database["remedy_where"]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_status_table_never_cuts_state_and_reason(home: Path, columns: int) -> None:
    config = Config(codex_home=home, tmux=False)
    clock = SystemClock()
    snapshot = asyncio.run(Hub(live_sources(config, clock), clock).once())
    printed = StringIO()
    print_status(snapshot, Console(width=columns, file=printed), Console(file=StringIO()))
    lines = printed.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    starts = [line.split()[0] for line in lines[1:] if not line.startswith(" ")]
    assert starts == [str(worker.state) for worker in snapshot.workers]
    assert len(lines) == len(snapshot.workers) + 1 or columns < 120
    words = {word for line in lines[1:] for word in line.split()}
    for worker in snapshot.workers:
        if worker.group is Group.NEEDS_YOU:
            assert words.issuperset(worker.fact.text.split())
        policy = worker.sandbox.configured
        assert columns < 120 or policy.brief() in printed.getvalue()


_LOG_ON_A_FULL_DISK = """
import logging, resource, sys
from pathlib import Path
from agentdash.cli import debug_log
debug_log.start(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
for _ in range(5):
    logging.getLogger("agentdash.test").warning("x" * 60)
"""


@pytest.mark.slow
def test_debug_log_on_a_full_disk_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "debug.log"
    done = subprocess.run(
        [sys.executable, "-c", _LOG_ON_A_FULL_DISK, file], capture_output=True, text=True, check=True
    )
    assert done.stderr == f"agentdash: --debug-log: {file} cannot be written any more\n"
    assert file.stat().st_size == 100


_FAILING_APP = """
from functools import partial
from agentdash.cli import screen
from agentdash.tui.base_app import BaseApp, Options

class Failing(BaseApp):
    def on_ready(self):
        secret = "sk-not-to-be-shown"
        raise IndexError("boom")

app = Failing(Options())
app.run_async = partial(app.run_async, headless=True)
try:
    screen.run_app(app)
except IndexError as error:
    print("raised", error)
"""


def test_app_that_fails_raises_its_exception_and_prints_nothing() -> None:
    """Textual's own traceback shows the values of variables, and its exit code, 1, means "findings" here."""
    size = {"COLUMNS": "80", "LINES": "24"}  # without a terminal Textual takes two sizes in turn, for ever
    command = [sys.executable, "-c", _FAILING_APP]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **size})
    assert (done.returncode, done.stdout, done.stderr) == (0, "raised boom\n", "")


@pytest.mark.parametrize("arguments", ["exec --json -s read-only", "-s workspace-write"])
def test_preflight_leaves_what_follows_to_codex(arguments: str, home: Path) -> None:
    done = agentdash("preflight", "--codex-home", str(home), "--json", *arguments.split())
    document = json.loads(done.stdout)
    assert document["schema"] == "agentdash.preflight/1"
    asked = arguments.rsplit(maxsplit=1)[-1]
    (part,) = (each for each in document["parts"] if each["part"] == "filesystem")
    assert part["value"].partition("-")[0] == asked.partition("-")[0]
