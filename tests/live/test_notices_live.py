"""Notices of real workers, and the commands of the documentation that receive them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.live.codex import MENU
from tests.live.conftest import OpenLab
from tests.live.patience import scaled, until

ROOT = Path(__file__).parents[2]
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


async def test_an_approval_of_codex_is_told_within_two_seconds(codex: OpenLab, tmp_path: Path) -> None:
    lab = codex({"ask": [{"run": "touch /usr/x", "escalate": "May I?"}, {"say": "done"}]})
    out, status = tmp_path / "out", tmp_path / "state" / "agentdash"
    env = settings(tmp_path, ["/bin/sh", "-c", f"cat >> {out}"])
    pane = await lab.tui()
    publishing = subprocess.Popen(lab.command("publish"), env=env, stderr=subprocess.DEVNULL)  # noqa: ASYNC220
    try:
        await until(lambda: any(status.glob("status-*")), "the status file")
        pane.submit("[[ask]] go")
        await pane.shows(MENU)
        shown = time.monotonic()
        await until(lambda: out.exists() and out.read_text().endswith("\n"), "the notice")
        assert time.monotonic() - shown < scaled(2)
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
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "notify-send").write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path}/shown\n")
    (tools / "notify-send").chmod(0o755)
    command = tomllib.loads(RECIPES[number])["command"]
    with receiving() as (address, received):
        places = dict.fromkeys(("https://ntfy.sh", "https://hooks.slack.com"), address)
        for there, here in {**places, "notify-send": str(tools / "notify-send")}.items():
            command = [part.replace(there, here) for part in command]
        env = settings(tmp_path, command)
        program = [sys.executable, "-m", "agentdash", "notify", "--test"]
        done = subprocess.run(program, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    title, text = "agentdash test: waiting approval", "wants to run git push --tags"
    if name == "desktop":
        assert (tmp_path / "shown").read_text().splitlines() == ["--", title, text]
    else:
        expected = {"topic": "my-agents", "title": title, "message": text}
        assert received == [expected if name == "ntfy" else {"text": f"{title}: {text}"}]
