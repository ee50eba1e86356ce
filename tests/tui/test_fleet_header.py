"""The header."""

from msgspec.structs import replace

from agentdash.model.thread import Tokens
from agentdash.model.tokens import ModelUsage, TokenUsage
from agentdash.tui.fleet.header import header, sources, spent, title
from agentdash.tui.primitives.spans import plain, width

from . import sample_fleet
from .rendering import LOOK
from .sample_fleet import BY_NAME, SNAPSHOT


def headline(cells, snapshot=SNAPSHOT, **more):
    return plain(header(snapshot, snapshot.counts(), LOOK, cells, **more)).rstrip()


def test_header_has_the_longest_form_that_fits():
    assert headline(150) == (
        " agentdash   ! 6 need you   ▸ 3 running   ◦ 2 unclear   ✓ 4 done   ≠ 3 mismatches"
        "                    codex 0s ago ⋅ processes ok ⋅ tmux ok   20:14:07"
    )
    assert headline(80) == " ! 6 need you  ▸ 3 running  ◦ 2 unclear  ✓ 4 done  ≠ 3 mismatches      20:14:07"
    assert headline(45) == " ! 6  ▸ 3  ◦ 2  ✓ 4  ≠ 3            20:14:07"
    assert headline(28) == " ! 6 ▸ 3 ◦ 2 ✓ 4 ≠ 3"
    assert all(width(header(SNAPSHOT, SNAPSHOT.counts(), LOOK, cells)) <= cells for cells in range(1, 200))


def test_counts_of_one_are_singular_and_rare_groups_are_hidden_at_zero():
    one = replace(SNAPSHOT, workers=(BY_NAME["deploy"],))
    assert "! 1 needs you   ▸ 0 running   ✓ 0 done   ≠ 1 mismatch " in headline(150, one)


def test_title_of_the_terminal():
    assert title(SNAPSHOT) == "agentdash: 6 need you, 3 running, 3 mismatches"
    assert title(replace(SNAPSHOT, workers=(BY_NAME["deploy"],))) == "agentdash: 1 needs you, 1 mismatch"
    assert title(replace(SNAPSHOT, workers=())) == "agentdash"


def test_banner_is_shown_at_every_width():
    assert all("DEMO" in headline(cells, banner="DEMO") for cells in (45, 80, 120, 200))


def test_failing_sources_show_their_error_and_hide_healthy_ones():
    broken = replace(SNAPSHOT, sources=sample_fleet.sources(tmux="no server on /tmp/tmux-1000/default"))
    assert "codex 0s ago ⋅ processes ok ⋅ tmux: no server on /tmp/tmux-1000/default" in headline(180, broken)
    assert "tmux: no server on⋯" in headline(120, broken)
    assert "processes" not in headline(120, broken)
    assert plain(sources(SNAPSHOT, LOOK, failing_only=True)) == ""


def test_what_was_spent_is_not_more_exact_than_what_is_known():
    known = Tokens(by_model=(ModelUsage(model="gpt-5.2-codex", usage=TokenUsage(input=1_000_000)),))
    unknown = Tokens(by_model=(ModelUsage(model="mock", usage=TokenUsage(input=1_000_000)),))
    one, other, *_ = SNAPSHOT.workers

    def of(*tokens):
        workers = (replace(each, tokens=used) for each, used in zip((one, other), tokens, strict=True))
        return spent(replace(SNAPSHOT, workers=tuple(workers)))

    assert of(known, known) == "$3.50"
    assert of(known, unknown) == of(known, Tokens()) == "$1.75+"
    assert of(unknown, Tokens()) == ""
