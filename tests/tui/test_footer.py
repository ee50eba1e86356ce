"""The key hints."""

from agentdash.tui.primitives.footer import hints
from agentdash.tui.primitives.spans import plain, width
from agentdash.tui.theme import ASCII, UNICODE


def test_hints_are_left_out_whole_and_help_stays():
    ids = ("attention", "why", "open", "help")
    assert plain(hints(ids, 80, UNICODE)) == " a attention  w why  enter open  ? help"
    assert plain(hints(ids, 30, UNICODE)) == " a attention  w why  ⋯  ? help"
    assert plain(hints(ids, 12, ASCII)) == " ..  ? help"
    assert all(width(hints(ids, cells, UNICODE)) <= cells for cells in range(1, 60))
