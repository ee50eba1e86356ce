"""What a terminal sends: what no parser understands is dropped, and what follows is read."""

import pytest
from textual.events import Key

from agentdash.tui.textual_internals import _KeyParser


@pytest.mark.parametrize(
    "garbage", ["\x1b[57344;5:3u", "\x1b[999999999u", "\x1b[1114112u", "\x1b[27;5;99999999~"]
)
def test_a_sequence_that_cannot_be_parsed_is_dropped(garbage: str) -> None:
    messages = list(_KeyParser().feed(f"a{garbage}b"))
    assert [message.key for message in messages if isinstance(message, Key)] == ["a", "b"]
