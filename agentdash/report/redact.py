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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Policy
from agentdash.model.state_paths import PredictedDenials
from agentdash.model.text_uses import TEXTS, TextUse
from agentdash.model.thread import Call, Moment
from agentdash.model.worker import Got, Worker
from agentdash.report.scrub import Scrubber, map_texts, texts_of
from agentdash.report.timeline_report import TimelineReport

_MIN_WORD_CHARS: Final = 3
"""Characters of the shortest ASCII word that is removed: shorter ones disclose nothing."""
_WORD: Final = re.compile(r"\w+")
_PLACEHOLDER: Final = "[redacted]"
_ADJACENT_PLACEHOLDERS: Final = re.compile(
    rf"{re.escape(_PLACEHOLDER)}(?:[^\w\[]{{0,4}}{re.escape(_PLACEHOLDER)})+"
)
_WITHIN_PHRASE: Final = re.compile(r"[,;.]?\s+")
_PHRASE_CHARS: Final = 500
"""Characters at both ends of a text of which pairs of words are learnt: states quote beginnings and ends."""
_SHOWN_WHOLE: Final = (Policy, PredictedDenials, Got)
"""What explains a finding: paths and flags, no texts of the session."""
_SHOWN_FIELDS: Final = (
    *("id", "kind", "agent", "parent", "children", "depth", "pids", "cwd", "tokens", "last_activity"),
    *("activity", "policies", "model", "turns", "standing", "is_new", "started", "stalled"),
)
"""Fields of a worker that are shown as they are, but for the names of homes, users and hosts."""
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


_PATH_NAME: Final = r"(?:[\w.@+-]|\\ )+"
_PATH: Final = re.compile(
    r"(?<=['\"])(?:~|[A-Za-z]:)?[/\\][^'\"\n]+(?=['\"])"
    rf"|(?<![\w:/.~$}}<-])(?:(?:~|[A-Za-z]:)?[/\\](?:{_PATH_NAME}[/\\])*{_PATH_NAME}|~(?![\w]))"
)
_HOST: Final = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.-]+\w|(?<=://)[^/\s'\"`<>]+|\b(?:\d{1,3}\.){3}\d{1,3}\b"
    r"|\b(?:[\w-]+\.)+(?:com|org|net|io|dev|ai|co|de|local|lan|corp|internal|intern|cloud|example)\b"
)
_OUR_KINDS: Final = ("state", "finding", "policy", "turn")
"""Rows in agentdash's own words, of which the findings have quotes."""


def preview_lines(report: TimelineReport) -> Iterator[str]:
    """Yield the texts of a redacted report by what they are; each once, with how often it occurs."""
    texts = texts_of(report)
    commands = [row.text for row in report.rows if row.kind == "command"]
    sentences = [row.text for row in report.rows if row.kind in _OUR_KINDS and row.text]
    names = [
        text
        for timeline in report.workers
        for worker in (timeline.worker,)
        for text in (
            worker.name,
            worker.id,
            f"{worker.agent.name} {worker.agent.version or ''}",
            worker.model,
        )
        if text
    ]
    tools = [row.note for row in report.rows if row.kind == "call"]
    yield "A redacted export of this session shows these texts. Secrets are masked in all of them."
    yield from _section("commands", commands)
    path = _path_pattern(report)
    yield from _section("paths", (found for text in texts for found in path.findall(text)))
    yield from _section(
        "hosts, addresses and accounts", (host for text in texts for host in _HOST.findall(text))
    )
    yield from _section("names, ids, versions, models", names)
    yield from _section("tools", tools)
    yield from _section("sentences of agentdash, with what they quote", sentences)
    yield from _section("notes", report.notes)
    yield ""
    yield "Replace more with --replace OLD=NEW."


def _path_pattern(report: TimelineReport) -> re.Pattern[str]:
    """Return the pattern of a path; it has blanks where it is quoted, or known as a place of the session."""
    workers = [timeline.worker for timeline in report.workers]
    known = {
        text
        for each in workers
        for text in texts_of((each.cwd, each.policies))
        if text.startswith(("/", "~"))
    }
    known |= {each.target for worker in workers for each in worker.sandbox.denials if each.target}
    known |= {change.path for dated in report.changes for change in dated.call.changes}
    spaced = sorted((re.escape(path) for path in known if " " in path), key=len, reverse=True)
    return re.compile("|".join((*(rf"{path}(?:[/\\]{_PATH_NAME})*" for path in spaced), _PATH.pattern)))


def _section(title: str, texts: Iterable[str]) -> Iterator[str]:
    counts = Counter(" ".join(text.split()) for text in texts)
    yield ""
    yield f"{title}: {len(counts)}" if counts else f"{title}: none"
    yield from (f"  {count:>4}x  {text}" for text, count in sorted(counts.items()))
