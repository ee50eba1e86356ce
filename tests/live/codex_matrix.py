"""Run a real Codex with one set of settings, and find out what it may do, for `test_requested.py`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.live.codex import Lab, install
from tests.live.codex_settings import Settings
from tests.live.patience import scaled

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


class MatrixLab:
    """A Codex home, a workspace and an `/etc` of its own for one set of settings.

    Args:
        version: of Codex.
        settings: what is asked of it.
    """

    def __init__(self, version: str, settings: Settings) -> None:
        self.version = version
        self.settings = settings
        steps: list[dict[str, str]] = [{"run": ""}, {"say": "done"}]
        self.lab = Lab(install(version), {"first": steps, "again": steps}, settings.top)
        self._probe = f"agentdash-{self.lab.root.name}"
        steps[0]["run"] = PROBE.format(name=self._probe, port=self.lab.model.port)
        self.rootfs = self.lab.root / "rootfs"
        self._write()

    @property
    def thread(self) -> str:
        """The id of its thread."""
        return next(iter(self.lab.threads()))

    def command(self, *args: str, prompt: str = "[[first]] go") -> list[str]:
        """Return the command of a `codex exec`, in a mount namespace of its own where that has files in
        `/etc/codex`."""
        return self.interactive(*args, "--skip-git-repo-check", prompt)

    def interactive(self, *args: str) -> list[str]:
        """Return the command of a `codex` with these arguments, likewise."""
        command = [str(self.lab.binary), *args]
        if not any((self.rootfs / "etc/codex").iterdir()):
            return command
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        etc = [str(self.lab.root / "host-etc"), str(self.rootfs / "etc")]
        return [*unshare, "sh", "-c", _OWN_ETC, "sh", *etc, *command]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its Codex."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "CODEX_"))}
        return kept | {"HOME": str(self.lab.user), "CODEX_HOME": str(self.lab.home)}

    def run(self, *args: str, prompt: str = "[[first]] go") -> subprocess.CompletedProcess[str]:
        """Run `codex exec` to its end."""
        return subprocess.run(
            self.command(*args, prompt=prompt),
            cwd=self.lab.workspace,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=scaled(60),
        )

    def start(self, *args: str, prompt: str) -> subprocess.Popen[bytes]:
        """Start `codex exec`."""
        return subprocess.Popen(
            self.command(*args, prompt=prompt),
            cwd=self.lab.workspace,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def truths(self) -> list[Truth]:
        """Return what each turn that ran a command had, in their order."""
        found: list[Truth] = []
        for file in sorted(self.lab.home.glob("sessions/*/*/*/rollout-*.jsonl")):
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
        for probe in (self.lab.user / "probe", self.lab.workspace / "probe", Path("/var/tmp") / self._probe):
            probe.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove everything."""
        self.forget()
        self.lab.close()

    def _write(self) -> None:
        lab, settings = self.lab, self.settings
        config = lab.home / "config.toml"
        text = config.read_text("utf-8")
        trust = f'[projects."{lab.workspace}"]\ntrust_level = "trusted"\n'
        assert trust in text
        stated = trust.replace('"trusted"', f'"{settings.trust}"') if settings.trust else ""
        config.write_text(text.replace(trust, stated) + settings.tables, "utf-8")
        if settings.profile is not None:
            (lab.home / "x.config.toml").write_text(settings.profile, "utf-8")
        if settings.project is not None:
            (lab.workspace / ".codex").mkdir()
            (lab.workspace / ".codex/config.toml").write_text(settings.project, "utf-8")
        (lab.root / "host-etc").mkdir()
        (self.rootfs / "etc/codex").mkdir(parents=True)
        for entry in Path("/").iterdir():
            if entry.name != "etc":
                (self.rootfs / entry.name).symlink_to(entry)
        for entry in Path("/etc").iterdir():
            if entry.name != "codex":
                (self.rootfs / "etc" / entry.name).symlink_to(lab.root / "host-etc" / entry.name)
        for name, content in (
            ("requirements.toml", settings.requirements),
            ("managed_config.toml", settings.managed),
            ("config.toml", settings.system),
        ):
            if content is not None:
                (self.rootfs / "etc/codex" / name).write_text(content, "utf-8")


@contextmanager
def matrix_lab(version: str, settings: Settings) -> Iterator[MatrixLab]:
    """Return a lab that is removed at the end of the `with` block."""
    lab = MatrixLab(version, settings)
    try:
        yield lab
    finally:
        lab.close()
