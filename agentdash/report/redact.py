"""Redact reports: remove quoted texts, keep what explains a worker.

Replaced are prompts, messages, outputs, errors, screens and names, and every word of theirs wherever it is
quoted, unless a command or one of agentdash's own sentences contains it as well; of words in a row that all
of these contain, those that stand side by side in none of them. Commands, directories,
policies, times, states and kinds of findings stay; in all of them homes, their owners and host names are
replaced (`scrub.py`). `model.text_uses` has the treatment of each field.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Policy
from agentdash.model.secrets import mask_secrets
from agentdash.model.state_paths import PredictedDenials
from agentdash.model.text_uses import TEXTS, TextUse
from agentdash.model.thread import Call, Moment
from agentdash.model.worker import Got, Worker

_MIN_WORD_CHARS: Final = 3
"""Characters of the shortest ASCII word that is removed: shorter ones disclose nothing."""
_WORD: Final = re.compile(r"\w+")
_PLACEHOLDER: Final = "[redacted]"
_ADJACENT_PLACEHOLDERS: Final = re.compile(
    rf"{re.escape(_PLACEHOLDER)}(?:[^\w\[]{{0,4}}{re.escape(_PLACEHOLDER)})+"
)
_WITHIN_PHRASE: Final = re.compile(r"[,;.]?\s+")
_PHRASE_CHARS: Final = 500
"""Characters at both ends of a text whose pairs of words are learnt: states quote beginnings and ends."""
_SHOWN_WHOLE: Final = (Policy, PredictedDenials, Got)
"""What explains a finding: paths and flags, no texts of the session."""
_SHOWN_FIELDS: Final = (
    *("id", "kind", "agent", "parent", "children", "depth", "pids", "cwd", "tokens", "last_activity"),
    *("activity", "policies", "model", "turns", "standing", "is_new", "started", "stalled"),
)
"""Fields of a worker that are shown as they are, except for the names of homes, users and hosts."""
_UNCHANGED_TEXTS: Final[Mapping[str, TextUse]] = {}


class Redaction:
    """Learns quoted texts, in the order of time, and removes their words from what is shown after that.

    Args:
        scrubber: replaces homes, users and hosts in what is shown; learns more of them from the events.
    """

    def __init__(self, scrubber: Scrubber | None = None) -> None:
        self.scrubber = scrubber or Scrubber()
        self._quoted_words: set[str] = set()
        self._kept_words = set(_our_words())
        self._quoted_pairs: set[int] = set()
        self._command_words: set[str] = set()
        """Words of commands and paths, which are shown anyway."""
        self._pseudonyms: dict[str, str] = {}
        """By thread: its nickname, which Codex chose, or the start of its id, long enough for siblings."""

    # ------------------------------------------------------------ events

    def events(self, events: Iterable[e.Event]) -> list[e.Event]:
        """Return the events as they may be shown, and learn their texts."""
        return [self._event(event) for event in events]

    def _event(self, event: e.Event) -> e.Event:
        self.scrubber.learn(event)
        match event:
            case e.ThreadStarted():
                self._pseudonyms[event.thread] = event.nickname or _short_id(event.thread)
            case e.ChildSpawned() if event.nickname:
                self._pseudonyms[event.child] = event.nickname
            case e.CallStarted(kind="command"):
                self._keep(event.text)
                self._keep(event.script)
                return replace(event, escalation=self._redact(event.escalation))
        redacted: e.Event = self._redact(event)
        return redacted

    def _redact(self, value: Any) -> Any:
        """Return a struct, a collection or a text with the texts of all structs in it redacted by their
        use."""
        if isinstance(value, msgspec.Struct):
            return self._redact_struct(value)
        if isinstance(value, tuple):
            return tuple(map(self._redact, value))
        if isinstance(value, dict):
            return {key: self._redact(item) for key, item in value.items()}
        return value

    def _redact_struct(self, struct: msgspec.Struct) -> msgspec.Struct:
        uses = TEXTS.get(type(struct), _UNCHANGED_TEXTS)
        changes: dict[str, Any] = {}
        for name in struct.__struct_fields__:
            value = getattr(struct, name)
            if value is None or isinstance(value, bool | int | float):
                continue
            changed = self._redact_field(struct, name, value, uses.get(name, TextUse.PLAIN))
            if changed != value:
                changes[name] = changed
        return replace(struct, **changes) if changes else struct

    def _redact_field(self, struct: msgspec.Struct, name: str, value: Any, use: TextUse) -> Any:
        match use:
            case TextUse.CONTEXT:
                for text in texts_of(value):
                    self._keep(text)
            case TextUse.SCREEN:
                for text in texts_of(value):
                    self._learn(text)
            case TextUse.QUOTED:
                self._learn(value)
                return f"[{_label(struct, name)}, {len(value):,} characters]" if value else ""
            case TextUse.NAME:
                self._learn(value)
                return self._pseudonym(getattr(struct, "thread", ""))
            case TextUse.DROPPED:
                return type(value)()
            case TextUse.PLAIN:
                return self._redact(value)
        return value

    def _learn(self, text: str) -> None:
        """Remove the words of this text from now on."""
        for word in _WORD.findall(text.casefold()):
            self._quoted_words.update(_pieces(word))
        for part in (text[:_PHRASE_CHARS], text[_PHRASE_CHARS:][-_PHRASE_CHARS:]):
            self._quoted_pairs.update(map(_hash, _pairs(part)))

    def _keep(self, text: str) -> None:
        """Keep the words of this text, even where they are quoted."""
        for word in _WORD.findall(text.casefold()):
            self._kept_words.update(_pieces(word))
            self._command_words.add(word)

    def _pseudonym(self, worker: str) -> str:
        return self._pseudonyms.get(worker, _short_id(worker))

    # ------------------------------------------------------------ snapshots

    def text(self, text: str) -> str:
        """Return a text without the words that are quoted from messages, outputs and screens."""
        last = len(text.rstrip("\u2026"))
        in_phrase = self._quoted_phrases(text)

        def redact_word(match: re.Match[str]) -> str:
            is_cut = match.end() == last < len(text)  # the start of a word is not found among the whole ones
            is_hidden = is_cut or match.start() in in_phrase or self._is_quoted(match[0].casefold())
            return _PLACEHOLDER if is_hidden else match[0]

        return _ADJACENT_PLACEHOLDERS.sub(_PLACEHOLDER, _WORD.sub(redact_word, text))

    def _quoted_phrases(self, text: str) -> set[int]:
        """Return the places of the words of quoted phrases, those of commands excepted: as many pairs in a
        row as are quoted, one of them at least in no sentence of agentdash."""
        words: list[re.Match[str]] = []
        for is_quoted, run in groupby(_pairs(text), key=lambda pair: _hash(pair) in self._quoted_pairs):
            pairs = list(run)
            if is_quoted and not _our_pairs().issuperset(map(_hash, pairs)):
                words += (word for pair in pairs for word in pair)
        return {word.start() for word in words if word[0].casefold() not in self._command_words}

    def _is_quoted(self, word: str) -> bool:
        return any(piece in self._quoted_words and piece not in self._kept_words for piece in _pieces(word))

    def worker(self, worker: Worker) -> Worker:
        """Return a worker as it may be shown: what is not listed here is left out."""
        commands = {call.id: call.text for call in worker.calls if call.kind == "command"}
        redacted = Worker(
            **{name: getattr(worker, name) for name in _SHOWN_FIELDS},
            name=self._pseudonym(worker.id),
            assessment=self._words(worker.assessment),
            below=tuple(text.partition(" ")[0] for text in worker.below),
            sandbox=self._words(worker.sandbox),
            pane=_redact_pane(worker.pane) if worker.pane else None,
            notes=self._words(worker.notes),
            moments=tuple(_redact_moment(moment, commands) for moment in worker.moments),
            calls=tuple(map(_redact_call, worker.calls)),
            history=self._words(worker.history),
        )
        shown: Worker = map_texts(redacted, self.scrubber.text)
        return shown

    def _words(self, value: Any) -> Any:
        """Return a struct or a collection without quoted words in any of its texts, those of policies
        excepted: a new field is redacted without being listed."""
        match value:
            case str() if type(value) is str:
                return self.text(value)
            case _ if isinstance(value, _SHOWN_WHOLE):
                return value
            case msgspec.Struct():
                fields = {name: self._words(getattr(value, name)) for name in value.__struct_fields__}
                return type(value)(**fields)
            case tuple():
                return tuple(map(self._words, value))
        return value


def _short_id(worker: str) -> str:
    return worker[:13] if len(worker) == 36 else worker


def _label(struct: msgspec.Struct, name: str) -> str:
    """Return what a replaced text is called."""
    match struct:
        case e.MessageLogged(role="user"):
            return "prompt"
        case e.MessageLogged():
            return "message"
        case e.CallStarted():
            return "arguments"
        case e.TroubleLogged():
            return "error"
    return name


def _pieces(word: str) -> Iterator[str]:
    """Yield the word; of one in a script that may have no spaces, all pairs of its letters."""
    if word.isascii():
        if len(word) >= _MIN_WORD_CHARS:
            yield word
    else:
        yield from (word[i : i + 2] for i in range(max(1, len(word) - 1)))


_Pair = tuple[re.Match[str], re.Match[str]]


def _pairs(text: str) -> Iterator[_Pair]:
    """Yield each two words of a phrase; parts of a path, and what stands before a colon, are none."""
    for first, second in pairwise(_WORD.finditer(text)):
        if _WITHIN_PHRASE.fullmatch(text, first.end(), second.start()):
            yield first, second


def _hash(pair: _Pair) -> int:
    """Return what is kept of a pair: sets of numbers are smaller than those of texts."""
    return hash((pair[0][0].casefold(), pair[1][0].casefold()))


@cache
def _our_words() -> frozenset[str]:
    """Return every word that a sentence of agentdash may contain."""
    return frozenset(word for text in _our_texts() for word in _WORD.findall(text.casefold()))


@cache
def _our_pairs() -> frozenset[int]:
    """Return every pair of words that a sentence of agentdash may contain."""
    return frozenset(_hash(pair) for text in _our_texts() for pair in _pairs(text))


@cache
def _our_texts() -> tuple[str, ...]:
    """Return all string literals of model and engine."""
    package = Path(__file__).parents[1]
    return tuple(
        node.value
        for part in ("model", "engine")
        for source in package.joinpath(part).rglob("*.py")
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _redact_call(call: Call) -> Call:
    return replace(
        call,
        text=call.text if call.kind == "command" else "",
        script=call.script if call.kind == "command" else "",
        tail="",
        escalation=replace(call.escalation, reason=None) if call.escalation else None,
        denials=tuple(replace(each, quote=_PLACEHOLDER, target=None) for each in call.denials),
    )


def _redact_moment(moment: Moment, commands: dict[str, str]) -> Moment:
    match moment.kind:
        case "policy":
            return moment
        case "turn":  # `completed: <message>`
            return replace(moment, text=moment.text.partition(":")[0])
        case "call":
            arguments = f"[arguments, {len(moment.text):,} characters]"
            return replace(moment, text=commands.get(moment.call or "", arguments))
        case _:
            return replace(moment, text=f"[{moment.kind}, {len(moment.text):,} characters]")


def _redact_pane(pane: Pane) -> Pane:
    return Pane(
        key=PaneKey("default", pane.key.id),
        session="",
        window="",
        pid=pane.pid,
        command=pane.command,
        width=pane.width,
        height=pane.height,
        dead=pane.dead,
    )


# ------------------------------------------------------------
# Replace what names a machine and its users in texts: homes, users, hosts, and what the user lists


Replacements: TypeAlias = Sequence[tuple[str, str]]
"""Texts and what they are replaced by."""
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
    """Replaces homes by `~`, their owners and the hosts by placeholders, and what the user lists.

    Args:
        replacements: texts and what they are replaced by, first.
    """

    def __init__(
        self,
        homes: Iterable[str] = (),
        hosts: Iterable[str] = (),
        replacements: Replacements = (),
    ) -> None:
        self._homes: set[str] = set()
        self._names: dict[str, str] = {}
        self._replacements = [
            (_replaced(old), new) for old, new in sorted(replacements, key=lambda each: -len(each[0]))
        ]
        self._pattern: re.Pattern[str] | None = None
        for home in homes:
            self.add_home(home)
        for host in hosts:
            for name in {host, host.partition(".")[0]}:
                self._add_name(name, _HOST)

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
        text = _USUAL_HOME.sub("~", self._replaced(mask_secrets(text)))
        return self._compiled().sub(self._placeholder, text)

    def replaced(self, text: str) -> str:
        """Return a text with only what the user lists replaced."""
        return self._replaced(mask_secrets(text)) if self._replacements else text

    def _replaced(self, text: str) -> str:
        for pattern, new in self._replacements:
            text = pattern.sub(new.replace("\\", r"\\"), text)
        return text

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


def _replaced(old: str) -> re.Pattern[str]:
    """Return the pattern of a text to replace: a path with what is below it, else whole words in any case."""
    if old.startswith(("/", "~")):
        return re.compile(rf"(?<![\w.~-]){re.escape(old.rstrip('/'))}(?![\w.-])")
    return re.compile(rf"(?<!\w){re.escape(old)}(?!\w)", re.IGNORECASE)


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
