"""Real workers in one tmux server: Codex waiting, at work, done, denied, with a child; and Claude Code."""

import asyncio
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.live import claude
from tests.live.claude import ClaudeLab
from tests.live.codex import MENU, UNTIL_LET_GO, Lab, Pane, install
from tests.live.patience import until

LONG = "printf %s " + "-".join(f"part{number}" for number in range(40))
"""A command that no tab has the room for."""
_LEAKED = ("CODEX_SANDBOX_NETWORK_DISABLED", "1")
"""A flag that one worker inherits, so that its sandbox seems to be another than configured."""
_PAST = Path(__file__).parents[2] / "data" / "recordings" / "0.169.0"
"""Sessions of an earlier day."""


class Fleet:
    """The workers, by what they do, in panes of one tmux server."""

    def __init__(self, lab: Lab, claude_lab: ClaudeLab) -> None:
        self.lab = lab
        self.claude = claude_lab
        self.panes: dict[str, Pane] = {}
        """By the marker of their prompt."""

    @property
    def env(self) -> dict[str, str]:
        """What an agentdash beside them is given."""
        return {
            "HOME": str(self.lab.user),
            "CODEX_HOME": str(self.lab.home),
            "CLAUDE_CONFIG_DIR": str(self.claude.claude_home),
            "XDG_STATE_HOME": str(self.lab.root / "state"),
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
        }

    async def start(self) -> None:
        """Start all workers, and wait until each is as it is to be."""
        (self.lab.root / "board").mkdir()
        past = self.lab.home / "sessions" / "2026" / "11" / "20"
        past.mkdir(parents=True)
        for name in ("kanban-board", "spawn"):
            for file in (_PAST / name).glob("rollout-*.jsonl"):
                shutil.copy2(file, past)
        for marker, shown, arguments in (
            ("ask", MENU, ()),
            ("denied", "It did not work.", ()),
            ("parent", "both done", ()),
            ("done", "all done", ("-s", "danger-full-access", "-a", "never")),
        ):
            pane = self.panes[marker] = await self.lab.tui(*arguments)
            pane.submit(f"[[{marker}]] go")
            await pane.shows(shown)
        self.lab.run_tmux("set-environment", "-g", *_LEAKED)
        self.panes["work"] = self.lab.exec("[[work]] go", "-s", "danger-full-access")
        self.lab.run_tmux("set-environment", "-gu", _LEAKED[0])
        environment = [f"{name}={value}" for name, value in self.claude.environment.items()]
        self.panes["claude"] = pane = self.lab.pane(
            shlex.join(["env", "-C", str(self.claude.workspace), "-i", *environment, str(self.claude.binary)])
        )
        await until(lambda: "\n❯" in pane.text(), "Claude's prompt")
        pane.type("[[hello]] go")
        pane.keys("Enter")
        await pane.shows("hello and done")


@contextmanager
def real_fleet() -> Iterator[Fleet]:
    """Start the workers; end them."""
    script = {
        "ask": [{"run": "touch allowed", "escalate": "May I?"}, {"say": "never"}],
        "denied": [{"run": LONG}, {"run": "touch ../board/kanban.db"}, {"say": "It did not work."}],
        "parent": [{"spawn": ["child"]}, {"wait": True}, {"say": "both done"}],
        "child": [{"say": "child done"}],
        "done": [{"say": "all done"}],
        "work": [{"run": UNTIL_LET_GO}, {"hold": "for ever"}, {"say": "never"}],
    }
    lab = Lab(install(), script)
    try:
        claude_lab = ClaudeLab(claude.install(), {"hello": [{"say": "hello and done"}]})
        try:
            fleet = Fleet(lab, claude_lab)
            asyncio.run(fleet.start())
            yield fleet
        finally:
            claude_lab.close()
    finally:
        lab.close()
