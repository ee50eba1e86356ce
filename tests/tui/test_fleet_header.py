"""The header and the footer: what there is room for."""

from msgspec.structs import replace

from agentdash.model.thread import Tokens
from agentdash.model.tokens import ModelUsage, TokenUsage
from agentdash.tui.fleet.header import header, spent, title
from agentdash.tui.primitives.footer import hints
from agentdash.tui.primitives.spans import plain, width
from agentdash.tui.theme import ASCII, UNICODE
from agentdash.tui.view import View

from . import sample_fleet
from .rendering import LOOK
from .sample_fleet import BY_NAME, SNAPSHOT

PRICED = Tokens(by_model=(ModelUsage(model="gpt-5.2-codex", usage=TokenUsage(input=1_000_000)),))
"""They cost $1.75."""


def drawn(cells, snapshot=SNAPSHOT, *, banner=None):
    return header(View(LOOK, snapshot, banner=banner), cells)


def headline(cells, snapshot=SNAPSHOT, **more):
    return plain(drawn(cells, snapshot, **more)).rstrip()


def test_header_has_what_there_is_room_for():
    first, *others = SNAPSHOT.workers
    priced = replace(SNAPSHOT, workers=(replace(first, tokens=PRICED), *others))
    assert headline(90, priced) == (
        " 6 need you   3 running   2 unclear   4 done   3 sandbox problems          $1.75+   20:14"
    )
    assert headline(80) == " 6 need you   3 running   2 unclear   4 done   3 sandbox problems         20:14"
    assert headline(45) == " 6 need you   3 running                20:14"
    assert all("DEMO" in headline(cells, banner="DEMO") for cells in (45, 80, 120, 200))
    assert all(width(drawn(cells)) <= cells for cells in range(1, 200))


def test_title_of_the_terminal():
    assert title(SNAPSHOT) == "agentdash: 6 need you, 3 running, 3 sandbox problems"
    assert (
        title(replace(SNAPSHOT, workers=(BY_NAME["deploy"],))) == "agentdash: 1 needs you, 1 sandbox problem"
    )
    assert title(replace(SNAPSHOT, workers=())) == "agentdash"


def test_a_failing_source_shows_its_error():
    broken = replace(SNAPSHOT, sources=sample_fleet.sources(tmux="no server on /tmp/tmux-1000/default"))
    assert "tmux: no server on /tmp/tmux-1000/default  20:14" in headline(180, broken)
    assert "3 running          tmux: no server on⋯  20:14" in headline(60, broken)
    assert "1 running" not in headline(45, broken)
    assert "tmux" not in headline(180)


def test_what_was_spent_is_not_more_exact_than_what_is_known():
    unknown = Tokens(by_model=(ModelUsage(model="mock", usage=TokenUsage(input=1_000_000)),))
    one, other, *_ = SNAPSHOT.workers

    def of(*tokens):
        workers = (replace(each, tokens=used) for each, used in zip((one, other), tokens, strict=True))
        return spent(replace(SNAPSHOT, workers=tuple(workers)))

    assert of(PRICED, PRICED) == "$3.50"
    assert of(PRICED, unknown) == of(PRICED, Tokens()) == "$1.75+"
    assert of(unknown, Tokens()) == ""


def test_hints_are_left_out_whole_and_help_stays():
    ids = ("attention", "why", "open", "help")
    assert plain(hints(ids, 80, UNICODE)) == " a next  w why  enter open  ? help"
    assert plain(hints(ids, 25, UNICODE)) == " a next  w why  ⋯  ? help"
    assert plain(hints(ids, 12, ASCII)) == " ..  ? help"
    assert all(width(hints(ids, cells, UNICODE)) <= cells for cells in range(1, 60))
