"""Evidence, the why screen, and findings in full."""

from msgspec.structs import replace

from agentdash.model.causes import causes
from agentdash.model.denials import Remedy
from agentdash.tui.worker.evidence import evidence_tab
from agentdash.tui.worker.findings import cause_details, remedies
from agentdash.tui.worker.screen import why

from . import sample_fleet
from .rendering import LOOK, text
from .sample_fleet import BY_NAME


def test_why_shows_evidence_against():
    shown = text(why(BY_NAME["fix tests"], 100, LOOK))
    assert "= screen      20:11:02  opencode.denied" in shown
    assert "≠ screen      20:14:05  redrawn" in shown
    assert "(against)" in shown
    assert sample_fleet.DENIED.remedy.text.splitlines()[1] in shown
    assert "pid 4100: holds the writer lock" in text(why(BY_NAME["main"], 100, LOOK))


def test_evidence_tab_shows_ids_and_files():
    shown = text(evidence_tab(BY_NAME["Pasteur"], 100, LOOK))
    for part in (
        BY_NAME["Pasteur"].id,
        BY_NAME["Pasteur"].file,
        "3 × unknown world_state2 skipped",
        "pid 4242: CODEX_THREAD_ID",
    ):
        assert part in shown


def test_causes_quote_both_sides_and_the_remedy():
    found = causes(BY_NAME["fix tests"])
    shown = text(cause_details(found, 100, LOOK))
    for part in (
        sample_fleet.DENIED.message,
        sample_fleet.DENIED.configured,
        sample_fleet.DENIED.got,
        *sample_fleet.DENIED.remedy.text.splitlines(),
        sample_fleet.DENIED.remedy.once,
        "narrower: work will fail",
        "1x",
    ):
        assert "".join(part.split()) in "".join(shown.split())


def test_remedies_are_ordered_by_severity():
    both = replace(sample_fleet.LOOSER, remedy=Remedy("the worst first")), sample_fleet.DENIED
    worker = replace(BY_NAME["deploy"], sandbox=replace(BY_NAME["deploy"].sandbox, findings=both[::-1]))
    assert remedies(worker) == ["the worst first", sample_fleet.DENIED.remedy.text]
