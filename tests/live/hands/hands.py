"""A program in a pane of a real tmux that a client shows: keys, clicks, and what is on its screen."""

from __future__ import annotations

import re
import shlex
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from subprocess import CalledProcessError

from tests.live.patience import scaled, wait_until
from tests.live.terminal import Terminal
from tests.live.tmux import TmuxServer, outer_environment

AGENTDASH = Path(sys.executable).with_name("agentdash")
"""The installed program."""
SIZE = (120, 36)
_TMUX_NAMES = {
    "space": "Space",
    "shift+tab": "BTab",
    "pagedown": "NPage",
    "pageup": "PPage",
    **{name: name.capitalize() for name in ("enter", "escape", "tab", "up", "down", "left", "right")},
    **{name: name.capitalize() for name in ("home", "end", "f1")},
}
"""Tmux's names of keys by Textual's."""
_SAYS_CODE = ("sh", "-c", '"$@"; echo "the program has ended with $?"; read -r _', "sh")
"""Runs the command behind it: tmux 3.3a does not always know the exit code of a program. The pane stays."""
_ENDED = re.compile(r"the program has ended with (\d+)")
_SESSION = "hands"
_ROW = re.compile(r"^([› ])([!?⊘↯▸◦✓✕]) (?:[├└] )?(\S+ \S+|\S+)")
"""A row of the list of workers: the cursor's sign, the state's sign, the name."""
_BELOW = re.compile(r"^[─━] .*\[[A-Z][a-z]+\]")
"""The title of the panel below the list."""
_ESCAPE_S = 0.2
_CHECKED_S = 1.0
"""Between two looks whether the program still runs."""

Seen = Callable[["Hands"], object]
"""Whether something is seen."""
Deed = str | Callable[["Hands"], object]
"""A key, by Textual's name; `click TEXT`; a text in double quotes, which is typed; or a function."""
Walk = tuple[tuple[Deed, Seen | None], ...]
"""What is done, and what is seen then, and was not before. After `escape` something must be waited for: with
the next key it would be alt and that key."""
FAILED = "That failed: "
"""How the message of an action that has failed begins."""


def shows(*texts: str) -> Seen:
    """Return whether all these texts are on the screen."""

    def seen(hands: Hands) -> bool:
        screen = hands.text
        return all(text in screen for text in texts)

    return seen


def lacks(*texts: str) -> Seen:
    """Return whether none of these texts is on the screen."""

    def seen(hands: Hands) -> bool:
        screen = hands.text
        return not any(text in screen for text in texts)

    return seen


class Hands:
    """A program in a tmux session of its own, and a client that shows it.

    Args:
        server: where it runs.
        command: the program and its arguments.
        env: variables for it, beside those of the server.
        size: columns and lines.
    """

    def __init__(
        self,
        server: TmuxServer,
        command: tuple[str, ...],
        env: Mapping[str, str],
        size: tuple[int, int] = SIZE,
    ) -> None:
        self._server = server
        variables = [part for name, value in env.items() for part in ("-e", f"{name}={value}")]
        where = ["-x", str(size[0]), "-y", str(size[1]), *variables, "-P", "-F", "#{pane_id}\t#{socket_path}"]
        start = ["new-session", "-d", "-s", _SESSION, *where, shlex.join([*_SAYS_CODE, *command])]
        self.pane, socket = self.tmux(*start, ";", "set-option", "-g", "status", "off").split("\t")
        self.columns, self.lines = size
        attach = ["tmux", "-u", "-S", socket, "attach", "-t", _SESSION]
        self.client = Terminal(
            attach, {**outer_environment(), "TERM": "xterm-256color"}, columns=size[0], lines=size[1]
        )

    def __enter__(self) -> Hands:
        return self

    def __exit__(self, *_: object) -> None:
        """End the program and the client."""
        with suppress(CalledProcessError):
            self.tmux("kill-session", "-t", _SESSION)
        self.client.close()

    def tmux(self, *arguments: str) -> str:
        """Run a tmux command and return its output."""
        return self._server.run_tmux(*arguments).rstrip("\n")

    # ---------------------------------------------------------------- what is seen

    @property
    def text(self) -> str:
        """The text of the screen."""
        self.client.read()  # a full terminal blocks its writer
        return self.tmux("capture-pane", "-p", "-t", self.pane)

    @property
    def _list(self) -> list[re.Match[str]]:
        lines = takewhile(lambda line: not _BELOW.match(line), self.text.split("\n"))
        return [match for line in lines if (match := _ROW.match(line))]

    @property
    def rows(self) -> list[str]:
        """The names in the list of workers."""
        return [match[3] for match in self._list]

    @property
    def selected(self) -> str:
        """The name that the cursor is on."""
        return next((match[3] for match in self._list if match[1] == "›"), "")

    @property
    def buffer(self) -> str:
        """What was copied last, in tmux; empty where it has not reached the client's clipboard (OSC 52)."""
        self.client.read()
        with suppress(CalledProcessError):  # nothing was copied yet
            text = self._server.run_tmux("show-buffer")
            return text if b64encode(text.encode()) in self.client.output else ""
        return ""

    @property
    def shown_pane(self) -> str:
        """The pane that the client shows."""
        return self.tmux("list-clients", "-F", "#{pane_id}")

    @property
    def ended(self) -> int | None:
        """The exit code of the program; None while it runs."""
        self.client.read()
        said = _ENDED.search(self.tmux("capture-pane", "-p", "-S", "-1", "-t", self.pane))
        return int(said[1]) if said else None

    def until(self, seen: Seen, what: str) -> None:
        """Wait until something is seen.

        Raises:
            AssertionError: the program has ended, or it is not seen in time.
        """
        checked = time.monotonic()

        def reached() -> bool:
            nonlocal checked
            if seen(self):
                return True
            if time.monotonic() > checked + _CHECKED_S:
                checked = time.monotonic()
                assert self.ended is None, f"{what}: the program has ended with {self.ended}\n{self.text}"
            return False

        try:
            wait_until(reached, what)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self.text}") from None

    def until_ended(self, *codes: int) -> None:
        """Wait until the program has ended, with one of these exit codes."""
        wait_until(lambda: self.ended is not None, "the end of the program")
        assert self.ended in codes, self.text

    def pause(self) -> None:
        """Wait as long as a terminal takes to tell the key escape from a sequence that begins with it."""
        time.sleep(scaled(_ESCAPE_S))

    # ---------------------------------------------------------------- what is done

    def walk(self, steps: Walk) -> None:
        """Do one thing after the other, and wait for what it promises."""
        for number, (deed, seen) in enumerate(steps):
            what = f"step {number}, {deed}"
            if seen is not None:
                self.until(lambda hands, seen=seen: not seen(hands), f"{what}: not to be seen before")
            if callable(deed):
                deed(self)
            elif deed.startswith("click "):
                text = deed.removeprefix("click ")
                self.until(shows(text), what)  # a message may stand in its place
                self.click(text)
            else:
                self.press(deed)
            if seen is not None:
                self.until(seen, what)
            assert FAILED not in self.text, f"{what}\n{self.text}"

    def press(self, *keys: str) -> None:
        """Press keys, by Textual's names; what stands in double quotes is typed."""
        self.client.read()
        commands: list[str] = []
        for key in keys:
            commands += [";"] * bool(commands) + ["send-keys", "-t", self.pane]
            if key in _TMUX_NAMES:
                commands.append(_TMUX_NAMES[key])
            elif key.startswith("ctrl+"):
                commands.append(f"C-{key[-1]}")
            else:
                commands += ["-l", "--", key.strip('"') if len(key) > 1 else key]
        self.tmux(*commands)

    def resize(self, fewer: int) -> None:
        """Let the client's terminal have its size, or a few columns and lines less."""
        self.client.resize(self.columns - fewer, self.lines - fewer)

    def mouse(self, *reports: str) -> None:
        """Send reports of the mouse, `button;column;line` from 1 and `M` or `m`, as a terminal does (SGR)."""
        self.tmux("send-keys", "-t", self.pane, "-l", "".join(f"\x1b[<{report}" for report in reports))

    def click(self, text: str) -> None:
        """Click the middle of the last place where this text is on the screen."""
        where = [(line, row.rfind(text)) for line, row in enumerate(self.text.split("\n")) if text in row]
        assert where, f"no {text!r} to click on the screen:\n{self.text}"
        line, column = where[-1]
        at = f"{column + len(text) // 2 + 1};{line + 1}"
        self.mouse(f"0;{at}M", f"0;{at}m")

    def drag(self, text: str) -> None:
        """Select a text with the mouse."""
        line, row = next((line, row) for line, row in enumerate(self.text.split("\n")) if text in row)
        start, end = row.index(text) + 1, row.index(text) + len(text)
        self.mouse(f"0;{start};{line + 1}M", f"32;{start + 1};{line + 1}M", f"32;{end};{line + 1}M")
        self.mouse(f"0;{end};{line + 1}m")

    def come_back(self) -> None:
        """Let the client show the program again, as a key of tmux does that is bound to it."""
        self.tmux("run-shell", f"{AGENTDASH} back")
