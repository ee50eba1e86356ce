"""Redact reports: leave out everything that quotes a session, keep what explains a worker.

What stays is listed here: commands, directories, the paths of changed files, policies, times, states, kinds
of findings, and numbers. In all of it homes, their owners and host names are replaced.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.conversation import Conversation, Entry, Message
from agentdash.model.findings import MEANINGS, Finding
from agentdash.model.layers import LayerField
from agentdash.model.secrets import mask_secrets
from agentdash.model.worker import Assessment, Sandbox, Worker

_LEFT_OUT: Final = "[left out]"
_QUOTING_FIELDS: Final = (LayerField.SANDBOX_FLAG, LayerField.TMUX)
"""Cells whose values are texts of an output, or paths."""


def redacted_worker(worker: Worker) -> Worker:
    """Return a worker without sentences that may quote its session; it has a pseudonym already."""
    sandbox = worker.sandbox
    return Worker(
        id=worker.id,
        kind=worker.kind,
        name=worker.name,
        agent=worker.agent,
        assessment=Assessment(worker.assessment.state, worker.assessment.since, why=""),
        depth=worker.depth,
        sandbox=Sandbox(
            verdict=sandbox.verdict,
            configured=sandbox.configured,
            findings=tuple(map(_finding, sandbox.findings)),
        ),
        cwd=worker.cwd,
        tokens=worker.tokens,
        policies=worker.policies,
        model=worker.model,
        history=tuple(replace(period, why="") for period in worker.history),
        started=worker.started,
    )


def _finding(finding: Finding) -> Finding:
    return replace(
        finding,
        message=MEANINGS[finding.kind],
        configured="",
        got="",
        calls=(),
        evidence=tuple(replace(piece, text=piece.rule) for piece in finding.evidence),
        remedy=None,
        fields=tuple(field for field in finding.fields if field.name not in _QUOTING_FIELDS),
    )


def redacted_conversation(conversation: Conversation) -> Conversation:
    """Return a conversation without prompts, messages and outputs: its commands, and how they ended."""
    turns = [
        replace(turn, entries=tuple(map(_entry, turn.entries)), error=turn.error and _LEFT_OUT)
        for turn in conversation.turns
    ]
    return replace(conversation, turns=tuple(turns), problem=conversation.problem and _LEFT_OUT)


def _entry(entry: Entry) -> Entry:
    if isinstance(entry, Message):
        return replace(entry, text=_LEFT_OUT)
    is_command = entry.kind == "command"
    return replace(
        entry,
        text=entry.text if is_command else _LEFT_OUT,
        script=entry.script if is_command else "",
        shell="",
        escalation=replace(entry.escalation, reason=None) if entry.escalation else None,
        let_out_by="",
        session=None,
        denials=tuple(
            replace(each, quote=_LEFT_OUT, target=None, program=None, nested=None) for each in entry.denials
        ),
        edits=(),
        output="",
        changes=tuple(replace(change, diff="") for change in entry.changes),
    )


# ------------------------------------------------------------
# Replace what names a machine and its users in texts: homes, users and hosts


_HOST: Final = "[host]"
_USER: Final = "[user]"
_SEPARATOR: Final = r"[/\\]+"
_USUAL_HOME: Final = re.compile(
    r"(?<![\w.~-])(?<!:/)(?:(?:/private)?/(?:home|Users)/(?P<unix>[^/\s'\":,;)\]\\]+)"
    r"|/(?:var/)?root(?![\w.-])"
    r"|[A-Za-z]:[/\\]{1,4}Users[/\\]{1,4}(?P<windows>[^/\s'\":,;)\]\\]+))"
)
"""Homes by the customs of Linux, macOS and Windows."""
_DATA_OF_HOME: Final = re.compile(
    r"(?<![\w.~-])(?P<home>(?:/[\w.@+-]+)+?)/\.(?:codex/(?:sessions|archived_sessions|auth\.json)"
    r"|claude/projects|local/(?:share|state|bin)|cache(?![\w-])|ssh(?![\w-])"
    r"|bash_history|bashrc|zshrc|profile)"
)
"""What only a home has. `.config` and `.codex` alone may be those of a project."""
_MIN_NAME_CHARS: Final = 3
_COMMON_NAMES: Final = frozenset(
    (
        *("root", "user", "users", "home", "dev", "admin", "test", "tests", "runner", "build", "work"),
        *("workspace", "localhost", "local", "host", "linux", "ubuntu", "debian", "codex", "agent", "claude"),
        *("node", "project", "shared", "public", "share", "python", "docker"),
    )
)
"""Usual names of accounts and machines, which identify none and are words as well."""


class Scrubber:
    """Replaces homes by `~`, their owners and the hosts by placeholders."""

    def __init__(self, homes: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        self._homes: set[str] = set()
        self._names: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        for home in homes:
            self.add_home(home)
        for host in hosts:
            for name in {host, host.partition(".")[0]}:
                self._add_name(name, _HOST)

    @classmethod
    def of_this_machine(cls, hosts: Iterable[str] = ()) -> Scrubber:
        """Return one that knows the home of the user, this machine, and further hosts."""
        return cls([str(Path("~").expanduser())], [platform.node(), *hosts])

    def add_home(self, home: str) -> None:
        """Replace this directory by `~` from now on, and its owner's name wherever it is a word."""
        home = home.rstrip("/\\")
        if home.count("/") + home.count("\\") < 2 and home != "/root":
            return  # `/`, or a directory of the system
        if home not in self._homes:
            self._homes.add(home)
            self._pattern = None
        if _USUAL_HOME.fullmatch(home):
            self._add_name(re.split(_SEPARATOR, home)[-1], _USER)

    def learn(self, value: Any) -> None:
        """Learn the homes and hosts that an event or a text shows."""
        match value:
            case e.HostSeen() if value.home:
                self.add_home(value.home)
            case e.ProcessSeen() if value.process.env and (home := value.process.env.get("HOME")):
                self.add_home(home)
        for text in texts_of(value):
            for match in _DATA_OF_HOME.finditer(text):
                self.add_home(match["home"])
            for match in _USUAL_HOME.finditer(text):
                self._add_name(match["unix"] or match["windows"] or "", _USER)

    def text(self, text: str) -> str:
        """Return a text without what is known so far."""
        # secrets first: they may be known by what is replaced, as by the user of a URL
        text = _USUAL_HOME.sub("~", mask_secrets(text))
        return self._compiled().sub(self._placeholder, text)

    def _add_name(self, name: str, placeholder: str) -> None:
        if len(name) >= _MIN_NAME_CHARS and name.lower() not in _COMMON_NAMES and name not in self._names:
            self._names[name] = placeholder
            self._pattern = None

    def _placeholder(self, match: re.Match[str]) -> str:
        return self._names.get(match[0], "~")

    def _compiled(self) -> re.Pattern[str]:
        if self._pattern is None:
            homes = [rf"(?<![\w.~-]){re.escape(home)}(?![\w.-])" for home in _longest_first(self._homes)]
            names = [rf"(?<![A-Za-z0-9]){re.escape(n)}(?![A-Za-z0-9])" for n in _longest_first(self._names)]
            self._pattern = re.compile("|".join((*homes, *names)) or r"(?!)")
        return self._pattern


def _longest_first(texts: Iterable[str]) -> list[str]:
    return sorted(texts, key=lambda text: (-len(text), text))


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a struct, a collection or a text with all its texts changed; identifiers of enums stay."""
    match value:
        case str():
            return change(value) if type(value) is str else value
        case msgspec.Struct():
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            changes = {
                name: new for name, old in fields.items() if (new := map_texts(old, change)) is not old
            }
            return msgspec.structs.replace(value, **changes) if changes else value
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*(map_texts(item, change) for item in value))
        case tuple() | list():
            return type(value)(map_texts(item, change) for item in value)
        case dict():
            return {map_texts(key, change): map_texts(item, change) for key, item in value.items()}
    return value


def texts_of(value: Any) -> list[str]:
    """Return all texts of a struct, a collection or a text."""
    found: list[str] = []

    def keep(text: str) -> str:
        found.append(text)
        return text

    map_texts(value, keep)
    return found
