"""Keeps what was said and printed out of a report, and leaves in what explains it.

Replaced are prompts, messages, outputs, errors, screens and names, and every word of theirs wherever it is quoted, unless a command or one
of our own sentences has it as well. Commands, directories, policies, times, states and kinds of findings stay. Whose home a path is below
is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Finding
from agentdash.model.fleet import Call, Moment
from agentdash.model.worker import Assessment, Snapshot, Worker

_SHORTEST: Final = 3
"""Characters of a word that can tell anything."""
_WORD: Final = re.compile(r"\w+")
_LEFT_OUT: Final = "[redacted]"
_HOME: Final = re.compile(r"(?:/(?:home|Users)/[^/\s'\":,;)\]]+|/root\b)")
_JOINED: Final = re.compile(rf"{re.escape(_LEFT_OUT)}(?:[^\w\[]{{0,4}}{re.escape(_LEFT_OUT)})+")


class Redaction:
    """Learns what was said and printed, in the order of time, and takes it out of what is shown after that."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._kept = set(_our_words())
        self._names: dict[str, str] = {}

    # ------------------------------------------------------------ learning

    def events(self, events: Iterable[e.Event]) -> list[e.Event]:
        """The events as they may be shown; what they said is known from now on."""
        return [self._event(event) for event in events]

    def _event(self, event: e.Event) -> e.Event:
        match event:
            case e.ThreadStarted():
                self._names[event.thread] = event.nickname or event.thread[:8]
                self._keep(event.cwd or "")
            case e.PolicySet() if event.policy is not None:
                for rule in event.policy.rules:
                    self._keep(rule.path)
            case e.ThreadNamed():
                self._learn(event.name)
                return replace(event, name=self._named(event.thread))
            case e.ChildSpawned() if event.nickname:
                self._names[event.child] = event.nickname
            case e.MessageLogged():
                return replace(
                    event, text=self._instead("message" if event.role == "agent" else "prompt", event.text)
                )
            case e.CallStarted():
                return self._call(event)
            case e.CallEnded():
                return replace(event, output=self._instead("output", event.output))
            case e.TurnEnded():
                message = self._instead("message", event.message) if event.message else None
                return replace(
                    event, message=message, error=self._instead("error", event.error) if event.error else None
                )
            case e.LineSkipped():
                return replace(event, detail="")
            case e.ScreenRead():
                self._learn(event.text)
            case e.TroubleLogged():
                return replace(event, text=self._instead("error", event.text))
            case e.PaneDrawn():
                for line in event.screen:
                    self._learn(line)
        return event

    def _call(self, event: e.CallStarted) -> e.Event:
        wish = event.escalation
        if wish is not None and wish.reason:
            event = replace(event, escalation=replace(wish, reason=self._instead("reason", wish.reason)))
        if event.kind == "command":
            self._keep(event.text)
            return event
        return replace(event, text=self._instead("arguments", event.text))

    def _instead(self, what: str, text: str) -> str:
        self._learn(text)
        return f"[{what}, {len(text):,} characters]" if text else ""

    def _learn(self, text: str) -> None:
        for word in _WORD.findall(text.casefold()):
            self._said.update(_pieces(word))

    def _keep(self, text: str) -> None:
        for word in _WORD.findall(text.casefold()):
            self._kept.update(_pieces(word))

    # ------------------------------------------------------------ taking out

    def text(self, text: str) -> str:
        """A text without the words that quote what was said or printed."""
        last = len(text.rstrip("\u2026"))

        def shown(match: re.Match[str]) -> str:
            cut = match.end() == last < len(text)  # what was cut off in the middle of a word is no whole one
            return _LEFT_OUT if cut or self._is_quoted(match[0].casefold()) else match[0]

        return _JOINED.sub(_LEFT_OUT, _WORD.sub(shown, text))

    def _is_quoted(self, word: str) -> bool:
        return any(piece in self._said and piece not in self._kept for piece in _pieces(word))

    def snapshot(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot as it may be shown."""
        sources = tuple(replace(source, detail=without_home(source.detail)) for source in snapshot.sources)
        return replace(
            snapshot, workers=tuple(self.worker(worker) for worker in snapshot.workers), sources=sources
        )

    def worker(self, worker: Worker) -> Worker:
        """A worker as it may be shown."""
        sandbox = worker.sandbox
        commands = {call.id: call.text for call in worker.calls if call.kind == "command"}
        pane = replace(worker.pane, title="", window="", screen=()) if worker.pane else None
        worker = replace(
            worker,
            name=self._named(worker.id),
            assessment=self._assessment(worker.assessment),
            below=tuple(text.partition(" ")[0] for text in worker.below),
            sandbox=replace(
                sandbox,
                applied=self.text(sandbox.applied or "") or None,
                findings=tuple(map(self._finding, sandbox.findings)),
                evidence=tuple(map(self._evidence, sandbox.evidence)),
            ),
            pane=pane,
            line="",
            links=(),
            moments=tuple(_moment(moment, commands) for moment in worker.moments),
            calls=tuple(map(self._ended, worker.calls)),
        )
        return _without_home(worker)

    def _named(self, worker: str) -> str:
        return self._names.get(worker, worker[:8] if len(worker) == 36 else worker)

    def _assessment(self, assessment: Assessment) -> Assessment:
        return replace(
            assessment,
            why=self.text(assessment.why),
            evidence=tuple(map(self._evidence, assessment.evidence)),
        )

    def _evidence(self, evidence: Evidence) -> Evidence:
        return replace(evidence, text=self.text(evidence.text))

    def _finding(self, finding: Finding) -> Finding:
        return replace(
            finding,
            configured=self.text(finding.configured),
            got=self.text(finding.got),
            message=self.text(finding.message),
            remedy=self.text(finding.remedy) if finding.remedy else None,
            evidence=tuple(map(self._evidence, finding.evidence)),
        )

    def _ended(self, call: Call) -> Call:
        wish = replace(call.escalation, reason=None) if call.escalation else None
        denial = replace(call.denial, quote=_LEFT_OUT, path=None) if call.denial else None
        return replace(
            call, text=call.text if call.kind == "command" else "", tail="", escalation=wish, denial=denial
        )


def without_home(text: str) -> str:
    """Paths below somebody's home without his name."""
    return _HOME.sub("~", text)


def _pieces(word: str) -> Iterator[str]:
    """The word; of one in a script that may have no spaces, all pairs of its letters."""
    if word.isascii():
        if len(word) >= _SHORTEST:
            yield word
    else:
        yield from (word[i : i + 2] for i in range(max(1, len(word) - 1)))


@cache
def _our_words() -> frozenset[str]:
    """Every word that a sentence of ours may hold: those of all texts in the sources of what judges."""
    words: set[str] = set()
    package = Path(str(files("agentdash")))
    for part in ("model", "engine"):
        for source in package.joinpath(part).rglob("*.py"):
            texts = (
                node.value
                for node in ast.walk(ast.parse(source.read_text("utf-8")))
                if isinstance(node, ast.Constant)
            )
            words.update(
                word for text in texts if isinstance(text, str) for word in _WORD.findall(text.casefold())
            )
    return frozenset(words)


def _moment(moment: Moment, commands: dict[str, str]) -> Moment:
    if moment.kind == "policy":
        return moment
    if moment.kind == "call":
        return replace(
            moment, text=commands.get(moment.call or "", f"[arguments, {len(moment.text):,} characters]")
        )
    if moment.kind == "turn":
        return replace(moment, text=moment.text.partition(":")[0])
    return replace(moment, text=f"[{moment.kind}, {len(moment.text):,} characters]")


def _without_home(worker: Worker) -> Worker:
    plain: Any = msgspec.json.decode(without_home(msgspec.json.encode(worker).decode()))
    return msgspec.convert(plain, Worker)
