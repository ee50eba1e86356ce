"""What listens where a tmux server is expected, and is none outside every sandbox: nothing is sent to it,
and nothing of it is run."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.clis import new_root
from tests.live.codex import install
from tests.live.patience import wait_until
from tests.live.programs import run, write_program
from tests.live.tmux import outer_environment

PROGRAM = Path(sys.executable).parent / "agentdash"
HOSTILE = Path(__file__).parent / "hostile_tmux.py"
BWRAP = ("bwrap", "--dev-bind", "/", "/", "--unshare-user", "--unshare-pid", "--unshare-net")
APART = "is in a sandbox or container: it has another user namespace"


class Stage:
    """A home with a directory of tmux sockets, in which only a worker may listen."""

    def __init__(self) -> None:
        self.root = new_root()
        self.sockets = Path(tempfile.mkdtemp(prefix="ad-", dir="/tmp"))
        self.folder = self.sockets / f"tmux-{os.getuid()}"
        self.folder.mkdir(mode=0o700)
        self.default = self.folder / "default"
        self.workspace = self.root / "workspace"
        self.workspace.mkdir()
        self.received = self.folder / "received"
        self.mark = self.root / "escaped"
        self.script = write_program(self.workspace / "script", f"echo escaped >> {self.mark}")
        self.env = {
            **outer_environment(),
            "HOME": str(self.root),
            "TMUX_TMPDIR": str(self.sockets),
            "CODEX_HOME": str(self.root / ".codex"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "OPENAI_API_KEY": "sk-canary",
        }
        (self.root / ".codex").mkdir()
        self._servers: list[subprocess.Popen[bytes]] = []

    def listen(self, *prefix: str, at: Path | None = None) -> None:
        """Start a hostile server in a sandbox, and wait until it listens."""
        python = str(Path(sys.executable).resolve())
        arguments = [str(at or self.default), str(self.script), str(self.received)]
        server = subprocess.Popen(
            [*prefix, python, "-I", str(HOSTILE), *arguments],
            stdout=subprocess.PIPE,
            cwd=self.workspace,
            env=self.env,
            start_new_session=True,
        )
        self._servers.append(server)
        assert server.stdout is not None
        assert server.stdout.readline() == b"listens\n"

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        return run(command, env=self.env | env, cwd=self.root)

    def agentdash(self, *arguments: str, **env: str) -> str:
        done = self.run(str(PROGRAM), *arguments, **env)
        assert "Traceback" not in done.stderr, done.stderr
        return " ".join((done.stdout + done.stderr).split())

    def source(self, name: str = "tmux", *arguments: str) -> tuple[bool, str]:
        """Return what the snapshot has of a tmux server: whether it was read, and the detail."""
        done = self.run(str(PROGRAM), "status", "--json", *arguments)
        sources = {each["name"]: each for each in json.loads(done.stdout)["sources"]}
        return sources[name]["ok"], sources[name]["detail"]

    def close(self) -> None:
        for server in self._servers:
            os.killpg(server.pid, signal.SIGKILL)
            server.communicate()
        for place in self.folder.iterdir():
            self.run("tmux", "-S", str(place), "kill-server")
        shutil.rmtree(self.sockets)
        shutil.rmtree(self.root)


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.close()


def codex_sandbox() -> tuple[str, ...]:
    """Return what runs a command in the sandbox of a real Codex, with the network on and `/tmp` writable."""
    settings = ("-c", "sandbox_mode=workspace-write", "-c", "sandbox_workspace_write.network_access=true")
    return (str(install()), "sandbox", *settings, "--")


@pytest.mark.parametrize(
    ("prefix", "reason"),
    [
        pytest.param(codex_sandbox, APART, id="codex"),
        pytest.param(lambda: BWRAP, APART, id="bwrap"),
        pytest.param(lambda: ("setpriv", "--no-new-privs"), "it has NoNewPrivs 1", id="privileges"),
        pytest.param(tuple, "belongs to another program, ", id="no sandbox"),
    ],
)
def test_nothing_is_sent_to_a_worker_that_listens(
    stage: Stage, prefix: Callable[[], tuple[str, ...]], reason: str
) -> None:
    stage.listen(*prefix())
    other = stage.folder / "other"
    stage.listen(*prefix(), at=other)
    ok, detail = stage.source()
    assert not ok
    assert detail.startswith("refused: the socket belongs to ")
    assert reason in detail
    inside = {"TMUX": f"{stage.default},1,0", "TMUX_PANE": "%0"}
    for line in (
        *("doctor", "status %0", f"status {other}:%0", "status other:%0", f"explain {other}:%0"),
        *("status -L other", f"status -S {other}", f"wait {other}:%0 --timeout 1"),
    ):
        assert "refused: the socket belongs to " in stage.agentdash(*line.split())
    for line in ("split", "status"):
        assert "refused: the socket belongs to " in stage.agentdash(line, **inside)
    stage.agentdash("line", "--tmux", **inside)
    assert not stage.mark.exists()
    assert not stage.received.exists()

    # what a plain client does there
    stage.run("tmux", "list-panes", "-a")
    assert stage.mark.read_text("utf-8") == "escaped\n"
    assert b"sk-canary" in stage.received.read_bytes()


@pytest.mark.parametrize(
    "prefix", [codex_sandbox, lambda: BWRAP, tuple], ids=["codex", "bwrap", "no sandbox"]
)
def test_nothing_is_sent_to_a_worker_in_the_place_of_codex(
    stage: Stage, prefix: Callable[[], tuple[str, ...]]
) -> None:
    """Codex's control socket is a link to one in `/tmp`, which a worker may replace."""
    place = stage.sockets / "daemon"
    stage.listen(*prefix(), at=place)
    home = stage.root / ".codex"
    for folder in ("app-server-control", "thread-writer-locks"):
        (home / folder).mkdir()
    (home / "app-server-control" / "app-server-control.sock").symlink_to(place)
    (home / "thread-writer-locks" / "01a1fb02-ccc5-7602-aebd-da70e407d204.lock").touch()
    ok, detail = stage.source("codex feed", "--no-tmux")
    assert not ok
    assert detail.startswith("not used: the control socket belongs to ")
    assert not stage.received.exists()

    # what is sent arrives
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place))
        client.sendall(b"GET / HTTP/1.1")
    wait_until(stage.received.exists, "the request")


def test_a_server_inside_of_a_sandbox_is_refused(stage: Stage) -> None:
    """Its program is tmux, and it is one: what it says is the worker's to decide all the same."""
    command = ("tmux", "-f", "/dev/null", "new-session", "-d", "sleep 1000")
    holder = subprocess.Popen(
        [*BWRAP, "sh", "-c", '"$@"; exec sleep 1000', "sh", *command],
        env=stage.env,
        cwd=stage.root,
        start_new_session=True,
    )
    try:
        wait_until(stage.default.exists, "the server")
        assert stage.source()[1].startswith("refused: the socket belongs to ")
        assert "it has another user namespace" in stage.agentdash("doctor")
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()


def test_servers_of_the_user_are_read(stage: Stage, program_folder: Path) -> None:
    """By default, by name, by path, one inside another, and of a tmux in the user's own directory."""
    tmux = shutil.which("tmux")
    assert tmux is not None
    own = Path(shutil.copy(tmux, program_folder / "tmux-3.9"))
    by_path = stage.sockets / "by-path"
    for program, *server in ((tmux,), (tmux, "-L", "named"), (str(own), "-S", str(by_path))):
        stage.run(program, *server, "-f", "/dev/null", "new-session", "-d", "sleep 1000")
    stage.run(tmux, "new-window", "-d", f"TMUX= {tmux} -L nested -f /dev/null new-session 'sleep 1000'")
    wait_until((stage.folder / "nested").exists, "the nested server")
    wait_until(lambda: stage.source() == (True, "2 panes"), "the default server")
    assert stage.source("tmux named", "-L", "named") == (True, "1 pane")
    assert stage.source("tmux nested", "-L", "nested") == (True, "1 pane")
    assert stage.source(f"tmux {by_path}", "-S", str(by_path)) == (True, "1 pane")
    own.unlink()  # as an upgrade does
    assert stage.source(f"tmux {by_path}", "-S", str(by_path)) == (True, "1 pane")
    stage.run(tmux, "-S", str(by_path), "kill-server")


def test_a_link_to_a_server_is_refused(stage: Stage) -> None:
    """Its panes would have two names, one of them a worker's choice."""
    stage.run("tmux", "-f", "/dev/null", "new-session", "-d", "sleep 1000")
    (stage.folder / "other").symlink_to("default")
    assert stage.source("tmux other", "-L", "other") == (False, "refused: the socket is a symbolic link")


def test_what_takes_the_place_of_a_server_is_refused(stage: Stage) -> None:
    """The same program that watches goes on: it is asked again at once, as the file is another one."""
    stage.run("tmux", "-f", "/dev/null", "new-session", "-d", "sleep 1000")
    watching = subprocess.Popen(
        [str(PROGRAM), "publish"], env=stage.env, cwd=stage.root, stdout=subprocess.DEVNULL
    )

    def detail() -> str:
        files = list((stage.root / "state" / "agentdash").glob("status-*.json"))
        published = json.loads(files[0].read_text("utf-8")) if files else {}
        return json.dumps(published.get("snapshot", published).get("sources", []))

    try:
        wait_until(lambda: "1 pane" in detail(), "the pane")
        stage.default.rename(stage.folder / "moved")
        stage.listen(*BWRAP)
        wait_until(lambda: "refused: the socket belongs to" in detail(), "the refusal")
    finally:
        watching.terminate()
        watching.wait()
    assert not stage.mark.exists()
    assert not stage.received.exists()
