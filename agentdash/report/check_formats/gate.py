"""What fails `agentdash check`: `--fail-on`, and known results by `--baseline`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from agentdash.model.denials import stable_target
from agentdash.model.findings import DIRECTIONS
from agentdash.model.secrets import mask_fields
from agentdash.model.suggestions import suggest
from agentdash.report.check import CheckReport, GateReport
from agentdash.report.check_formats.results import RESULT_KINDS, UNVERIFIED, Result, results

if TYPE_CHECKING:
    from rich.console import Console

ANY: Final = "any"
"""Every result but unverified threads; what fails a check without options."""
FAIL_ON: Final = (ANY, UNVERIFIED, *DIRECTIONS, *(kind for kind in RESULT_KINDS if kind != UNVERIFIED))
"""The values of `--fail-on`."""
FORMER_DIRECTIONS: Final = {"looser": "wider", "stricter": "narrower"}
"""What directions were called up to 0.1.0; `--fail-on` still takes these."""
MAX_BASELINE_BYTES: Final = 256 << 20
"""A document of `check --json` has some kB for each thread."""


class KnownResult(msgspec.Struct, frozen=True):
    """A result that does not fail the check."""

    kind: str
    about: str
    """What it is about: the target of a denial, or the values that differ."""
    thread: str | None = None
    """The thread that it was found in. Null, by hand: known in all threads."""


class BaselineReport(msgspec.Struct):
    """The document that `agentdash check --write-baseline` writes."""

    schema: Literal["agentdash.baseline/1"]
    known: list[KnownResult]
    """The results that fail no check."""


class Gate(msgspec.Struct, frozen=True):
    """What fails a check."""

    fail_on: tuple[str, ...] = (ANY,)
    known: frozenset[KnownResult] = frozenset()
    baseline: str | None = None
    """Path of the baseline, sanitized; None without one."""

    def judge(self, report: CheckReport) -> list[Result]:
        """Return the results of an audit, each with whether it is known and whether it fails the check."""
        return [self._judge(result) for result in results(report)]

    def _judge(self, result: Result) -> Result:
        is_known = not self.known.isdisjoint(_names(result))
        return msgspec.structs.replace(
            result, is_known=is_known, is_failing=not is_known and self._is_meant(result)
        )

    def _is_meant(self, result: Result) -> bool:
        if result.kind == UNVERIFIED:
            return UNVERIFIED in self.fail_on
        return not {ANY, result.kind, result.direction}.isdisjoint(self.fail_on)

    def report(self, judged: Iterable[Result]) -> GateReport:
        """Return the report of what the gate decided."""
        found = list(judged)
        return GateReport(
            fail_on=list(self.fail_on),
            baseline=self.baseline,
            failing=sum(result.is_failing for result in found),
            known=sum(result.is_known for result in found),
        )


def invalid_value(value: str) -> str | None:
    """Return what is wrong with a value of `--fail-on`; None if nothing is."""
    if value in FAIL_ON or value in FORMER_DIRECTIONS:
        return None
    return f"invalid value {value!r}{suggest(value, FAIL_ON)}"


def baseline_of(judged: Iterable[Result]) -> BaselineReport:
    """Return the baseline in which all results are known, unverified threads too."""
    known = [KnownResult(kind=each.kind, about=each.about, thread=each.thread.id) for each in judged]
    return BaselineReport(schema="agentdash.baseline/1", known=list(dict.fromkeys(known)))


def parse_baseline(content: bytes) -> frozenset[KnownResult]:
    """Return the known results of a baseline, or of a document of `check --json`.

    Raises:
        ValueError: it is neither.
    """
    schema = msgspec.json.decode(content, type=_Document).schema
    if schema == "agentdash.check/1":
        earlier = msgspec.json.decode(content, type=CheckReport)
        return frozenset(baseline_of(results(earlier)).known)
    if schema != "agentdash.baseline/1":
        raise ValueError(f"its schema is {schema!r}: neither agentdash.baseline/1 nor agentdash.check/1")
    known = msgspec.json.decode(content, type=BaselineReport).known
    # targets as they were written by hand, or before random names had a sign
    stable = (msgspec.structs.replace(each, about=stable_target(each.about) or each.about) for each in known)
    return frozenset((*known, *stable))


class _Document(msgspec.Struct):
    schema: str


def _names(result: Result) -> Collection[KnownResult]:
    """Return the entries of a baseline that make a result known."""
    return [
        KnownResult(kind=result.kind, about=result.about, thread=thread)
        for thread in (None, result.thread.id)
    ]


def print_gate(gate: GateReport, judged: Sequence[Result], console: Console) -> None:
    """Print what fails the check, and the counts, secrets masked."""
    from rich.text import Text  # noqa: PLC0415 - documents need no tables

    failing: list[Result] = mask_fields([result for result in judged if result.is_failing])
    for result in failing:
        console.print(Text(f"fails: {result.thread.id}  {result.kind}  {result.about}"))
    known = f", {gate.known} known by {gate.baseline}" if gate.baseline is not None else ""
    console.print(Text(f"{len(failing)} of {len(judged)} fail on {', '.join(gate.fail_on)}{known}"))
