"""Structs that several documents share, and their conversion from the model."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from agentdash.documents.worker import DenialReport, EvidenceReport, FindingReport
from agentdash.model.findings import FIELD_LABELS, Finding, difference
from agentdash.model.layers import LayerField
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import mask_fields
from agentdash.model.times import parse_iso

if TYPE_CHECKING:
    from rich.console import Console

_MIN_COLUMNS: Final = 40
"""Narrower terminals break the lines themselves."""


class ViaReport(msgspec.Struct):
    """The status file that was read instead of live sources, because agentdash ran inside a sandbox."""

    file: str
    age_seconds: float | None
    """Null if the file does not exist."""
    pid: int | None
    """Process that wrote it."""
    problem: str | None
    """Why it could not be used, and what to do; null if it was used."""


class UnreadableReport(msgspec.Struct):
    """A directory or file that could not be read, so that nothing is known of what is in it."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path} cannot be read: {self.problem}"


def unreadable(error: OSError) -> UnreadableReport:
    """Return the report of an error that has a `filename`."""
    path = "?" if error.filename is None else os.fsdecode(error.filename)
    return UnreadableReport(path=clean_line(path), problem=clean_line(error.strerror or str(error)))


class HostReport(msgspec.Struct):
    """Another host that is watched, and the link to it."""

    name: str
    state: Literal["connecting", "connected", "lost"]
    """The state of the link."""
    since: str | None
    """Since when the link has been in that state: ISO 8601, UTC."""
    detail: str
    """Why it was lost; what the agentdash there could not read."""
    version: str | None
    """Of the agentdash there; null: not known yet."""
    last_news: str | None
    """Of a lost link: when something was last received; null: never, or it is not lost."""


# ------------------------------------------------------------ short ids, numbers with their nouns


_UUID_CHARS: Final = 36
_TIME_CHARS: Final = 13
"""Of a thread's id: its time in milliseconds; the first 8 are the same for a minute."""


def short_id(worker: str) -> str:
    """Return the time of a thread's id; other ids whole."""
    return worker[:_TIME_CHARS] if len(worker) == _UUID_CHARS else worker


def quantity(number: int, noun: str) -> str:
    """Return a number of things in words: `1 thread`, `2 threads`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# ------------------------------------------------------------ texts and tables


def say(console: Console, text: str, indent: int = 0, *, style: str = "") -> None:
    """Print a text that breaks between words only; its further lines are indented by two more columns."""
    from rich.text import Text  # noqa: PLC0415 - documents need no texts

    lines = textwrap.wrap(
        text,
        max(console.width, _MIN_COLUMNS),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        console.print(Text(line, style), soft_wrap=True)


def cut(text: str, cells: int) -> str:
    """Return a text of this width: filled up with blanks, or ended by an ellipsis."""
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 - as above

    is_long = cell_len(text) > cells
    return f"{set_cell_size(text, cells - 1)}…" if is_long else set_cell_size(text, cells)


# ------------------------------------------------------------ encode a document


def document_json(document: msgspec.Struct, *, indent: int | None = 2) -> bytes:
    """Return JSON without a final newline, secrets masked; without an indent on one line."""
    encoded = msgspec.json.encode(mask_fields(document))
    return encoded if indent is None else msgspec.json.format(encoded, indent=indent)


# ------------------------------------------------------------
# Evidence, findings, denials and their remedies in documents


def remedy_lines(remedy: str, where: str | None, once: str | None) -> Iterator[tuple[str, str]]:
    """Yield a remedy as labelled lines for people; further lines of the same text have an empty label."""
    first, *further = remedy.splitlines()
    yield "remedy", first
    yield from (("", line) for line in further)
    if where:
        yield "where", where
    if once:
        yield "once", once


def print_remedy(report: FindingReport | DenialReport, console: Console, indent: int) -> None:
    """Print a remedy, if there is one; what is to be copied stands on one line."""
    from rich.text import Text  # noqa: PLC0415 - documents need no texts

    if report.remedy:
        for label, line in remedy_lines(report.remedy, report.remedy_where, report.remedy_once):
            if label == "where":
                say(console, f"where   {line}", indent)
            else:
                console.print(Text(f"{' ' * indent}{label:<8}{line}"), soft_wrap=True)


def print_evidence(
    evidence: Iterable[EvidenceReport], console: Console, indent: int, *, with_rules: bool = False
) -> None:
    """Print pieces of evidence, each on a line of its own."""
    for piece in evidence:
        against = "" if piece.agrees else "against it: "
        rule = f"{piece.rule}: " if with_rules else ""
        say(console, f"{against}{piece.source} {_local(piece.at)} {rule}{piece.text}", indent, style="dim")


def _local(text: str | None) -> str:
    """Return a time of a document as people write it, in their time zone: `2026-11-20 20:12:55`."""
    at = parse_iso(text)
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def print_finding(report: FindingReport, console: Console, indent: int) -> None:
    """Print a finding with what differs, its evidence and its remedy."""
    say(console, f"{report.kind} ({report.direction}): {report.message}", indent)
    for label, text in difference_lines(report):
        say(console, f"{label}: {text}", indent + 2)
    print_evidence(report.evidence, console, indent + 2)
    print_remedy(report, console, indent + 2)


def denial_line(denial: DenialReport) -> str:
    """Return an entry of the ledger in one line."""
    certainty = "denied" if denial.certainty == "certain" else "likely denied"
    past = ", got past" if denial.got_past else ""
    target = denial.target or f"{denial.what}, target not named"
    quote = " ".join(denial.quote.split())
    return f"{certainty}: {denial.operation} {target} ({quantity(denial.count, 'call')}{past}): {quote}"


def print_denial(report: DenialReport, console: Console, indent: int) -> None:
    """Print an entry of the denial ledger with its remedy."""
    say(console, denial_line(report), indent)
    print_remedy(report, console, indent + 2)


def difference_lines(finding: Finding | FindingReport) -> Iterator[tuple[str, str]]:
    """Yield each cell that differs as a label and both values: `network`, `configured on, applied off`."""
    for field in finding.fields:
        expected, actual = difference(field)
        yield (
            FIELD_LABELS[LayerField(field.name)],
            f"{expected.label} {expected.text}, {actual.label} {actual.text}",
        )
