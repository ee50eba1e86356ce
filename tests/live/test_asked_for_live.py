"""What people asked for, with real workers: notices and their recipes, usage limits, labels and pins, and the
diff of a directory."""

import json
import os
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from agentdash.model.states import Group, State
from agentdash.model.usage_limits import usage_limits
from tests.live.claude import ClaudeLab, install
from tests.live.codex import MENU
from tests.live.conftest import OpenLab, Screens
from tests.live.hands.dashboard import on
from tests.live.hands.hands import AGENTDASH, Hands, lacks, shows
from tests.live.patience import scaled, until
from tests.live.programs import run, write_program
from tests.live.tmux import ROOT
from tests.live.watched import watching

RECIPES = [
    line
    for line in (ROOT / "docs/pages/configuration.md").read_text("utf-8").splitlines()
    if line.startswith('command = ["sh"')
]


def settings(tmp_path: Path, command: list[str], **more: object) -> dict[str, str]:
    """Return an environment with these notices configured."""
    lines = [f"command = {json.dumps(command)}", *(f"{name} = {json.dumps(v)}" for name, v in more.items())]
    (tmp_path / "config.toml").write_text("\n".join(["[notices]", *lines]), "utf-8")
    own = {"AGENTDASH_CONFIG": str(tmp_path / "config.toml"), "XDG_STATE_HOME": str(tmp_path / "state")}
    return {**os.environ, **own}


async def test_an_approval_of_codex_is_told(codex: OpenLab, tmp_path: Path) -> None:
    lab = codex({"ask": [{"run": "touch /usr/x", "escalate": "May I?"}, {"say": "done"}]})
    out, status = tmp_path / "out", tmp_path / "state" / "agentdash"
    env = settings(tmp_path, ["/bin/sh", "-c", f"cat >> {out}"])
    pane = await lab.tui()
    publishing = subprocess.Popen(lab.command("publish"), env=env, stderr=subprocess.DEVNULL)  # noqa: ASYNC220
    try:
        await until(lambda: any(status.glob("status-*")), "the status file")
        pane.submit("[[ask]] go")
        await pane.shows(MENU)
        await until(lambda: out.exists() and out.read_text().endswith("\n"), "the notice")
        notice = json.loads(out.read_text())
        assert (notice["schema"], notice["workers"][0]["on"]) == ("agentdash.notice/1", ["needs-you"])
        assert notice["text"] == "wants to leave the sandbox for touch /usr/x"  # without its reason
        assert notice["workers"][0]["replay"] == f"agentdash replay {next(iter(lab.threads()))}"
    finally:
        publishing.terminate()
        publishing.wait(scaled(20))


@contextmanager
def receiving() -> Iterator[tuple[str, list[object]]]:
    """Yield the address of a server, and what it receives."""
    received: list[object] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", received


@pytest.mark.parametrize(("number", "name"), enumerate(("ntfy", "slack", "desktop")))
def test_recipes(number: int, name: str, tmp_path: Path) -> None:
    notify_send = write_program(tmp_path / "bin/notify-send", f"printf '%s\\n' \"$@\" > {tmp_path}/shown")
    command = tomllib.loads(RECIPES[number])["command"]
    with receiving() as (address, received):
        places = dict.fromkeys(("https://ntfy.sh", "https://hooks.slack.com"), address)
        for there, here in {**places, "notify-send": str(notify_send)}.items():
            command = [part.replace(there, here) for part in command]
        env = settings(tmp_path, command)
        done = run([sys.executable, "-m", "agentdash", "notify", "--test"], env=env)
        assert (done.returncode, done.stderr) == (0, "")
    title, text = "agentdash test: waiting approval", "wants to run git push --tags"
    if name == "desktop":
        assert (tmp_path / "shown").read_text().splitlines() == ["--", title, text]
    else:
        expected = {"topic": "my-agents", "title": title, "message": text}
        assert received == [expected if name == "ntfy" else {"text": f"{title}: {text}"}]


REJECTED = "This request would exceed your account's rate limit."


async def test_codex_stopped_by_a_limit_needs_you_after_the_reset(codex: OpenLab) -> None:
    resets_at = int(time.time() + scaled(15))
    window = {
        "x-codex-primary-used-percent": "82.5",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(resets_at),
    }
    refused = {"error": {"type": "usage_limit_reached", "message": REJECTED, "resets_at": resets_at}}
    full = window | {"x-codex-primary-used-percent": "100"}
    begin = [{"run": "true", "headers": window}, {"hold": "limit"}]
    lab = codex({"limit": [*begin, {"fail": 429, "body": refused, "headers": full}]})
    async with watching(lab) as watched:
        lab.exec("[[limit]] go")
        before = await watched.until_snapshot(lambda each: bool(usage_limits(each.workers, each.at)))
        (limit,) = usage_limits(before.workers, before.at)
        assert (limit.agent, limit.home, limit.span) == ("codex", str(lab.home), "5h")
        assert (limit.window.used, limit.window.resets_at) == (82.5, resets_at)

        lab.model.release("limit")
        limited = await watched.until(lambda each: each.limited_until is not None)
        assert (limited.state, limited.group) == (State.FAILED_PROVIDER, Group.DONE)
        assert limited.limited_until == resets_at
        assert limited.fact.text.startswith("limited until ")

        late = await watched.until(lambda each: each.needs_you and each.kind == "codex-thread")
        assert time.time() >= resets_at
        assert "it still stands" in late.fact.text


async def test_claude_states_its_limit_in_its_record() -> None:
    resets_at = int(time.time()) + 3_700
    prefix = "anthropic-ratelimit-unified"
    headers = {
        f"{prefix}-status": "rejected",
        f"{prefix}-reset": str(resets_at),
        f"{prefix}-representative-claim": "five_hour",
    }
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": REJECTED}}
    script = {"limit": [{"run": "true"}, {"fail": 429, "headers": headers, "body": body}]}

    class Subscribed(ClaudeLab):
        @property
        def environment(self) -> dict[str, str]:
            found = super().environment | {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-fakefakefakefake"}
            del found["ANTHROPIC_API_KEY"]  # limits are those of a subscription
            return found

    with Subscribed(install(), script) as lab:
        lab.print("[[limit]] go", "--allowedTools", "Bash")
        async with watching(lab) as watched:
            limited = await watched.until(limited_until=resets_at, group=Group.DONE)
            (limit,) = usage_limits([limited], time.time())
            assert (limit.agent, limit.span, limit.home) == ("claude", "5h", str(lab.claude_home))


EDIT_ONE = "*** Begin Patch\n*** Update File: app.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
_REPOSITORY = """
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_KEY_1=user.email
export GIT_CONFIG_VALUE_0=a GIT_CONFIG_VALUE_1=a@b
git init -q -b main; echo x = 1 > app.py; git add app.py; git commit -qm one
git worktree add -q fix -b fix
"""
"""A repository with a file, and a worktree of it."""


async def test_two_worktrees_of_a_project(codex: OpenLab, report_screens: Callable[[Screens], None]) -> None:
    lab = codex({"edit": [{"patch": EDIT_ONE}, {"say": "edited"}], "look": [{"say": "looked"}]})
    report_screens(lab.screens)
    run(["sh", "-ec", _REPOSITORY], cwd=lab.workspace, check=True)
    for prompt, folder, said in (("edit", "fix", "edited"), ("look", ".", "looked")):
        pane = await lab.tui("-s", "workspace-write", "-a", "on-request", "-C", str(lab.workspace / folder))
        pane.submit(f"[[{prompt}]] go")
        await pane.shows(said)
    env = {"HOME": str(lab.user), "CODEX_HOME": str(lab.home), "XDG_STATE_HOME": str(lab.state)}
    env |= {"LANG": "C.UTF-8"}
    with Hands(lab, (str(AGENTDASH),), env) as hands:
        hands.until(shows("[[edit]] go", "[[look]] go"), "both workers")
        hands.walk(
            (
                ("g", shows("workspace  /", "workspace  worktree fix")),
                ("G", on("[[edit]] go")),
                ("L", shows("what you call it")),
                ('"payments"', None),
                ("enter", lambda hands: hands.selected.startswith("payments")),
                ("P", shows("PINNED")),
                ("g", shows("this machine", "PINNED")),
                ("enter", shows("payments ⋅ [[edit]] go")),
                ("right", None),
                ("right", None),
                ("right", shows("against main (", "-x = 1", "+x = 2", "whoever has changed it")),
            )
        )
    workers = {each["name"]: each for each in lab.document("status")["workers"]}
    marked = {name: (each["label"], each["pinned"]) for name, each in workers.items()}
    assert marked == {"[[edit]] go": ("payments", True), "[[look]] go": ("", False)}
    with Hands(lab, (str(AGENTDASH),), env) as hands:
        hands.until(shows("PINNED", "payments"), "what was kept")
        assert lab.agentdash("label", "payments", "retries").stdout.endswith(": retries\n")
        hands.until(shows("retries"), "the other label")
        hands.walk((("P", lacks("PINNED")),))
        assert lab.agentdash("label", "retries", "").stdout.endswith(": no label\n")
        hands.until(lacks("retries"), "its name")
